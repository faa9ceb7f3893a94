// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_DB_SUPPRESS: doorbells with and without suppression. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fake_kernel.h"

static struct ibv_sge sge = { .addr = 0x1000, .length = 10, .lkey = 1 };

static int db_suppress_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake.ctx.features = PVR_EXT_DB_SUPPRESS | PVR_EXT_RESIZE;
	return 0;
}
#define db_suppress_teardown fake_teardown

/* Returns a suppression word of the device in a first page. */
static _Atomic uint32_t *word_at(const struct pvr_buf *buf, size_t offset)
{
	return (void *)((uint8_t *)buf->addr + PVR_DB_SUPPRESS_OFFSET + offset);
}

static _Atomic uint32_t *send_word(struct ibv_qp *qp)
{
	return word_at(&to_pvr_qp(qp)->sbuf, offsetof(struct pvr_db_suppress, sq));
}

static _Atomic uint32_t *recv_word(struct ibv_qp *qp)
{
	return word_at(&to_pvr_qp(qp)->sbuf, offsetof(struct pvr_db_suppress, rq));
}

static int post_send(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	return pvr_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return pvr_post_recv(qp, &wr, &bad);
}

static int post_by_function(struct ibv_qp *qp)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(qpx);
}

/* Posts, and checks whether that rings the doorbell. */
static void expect_post(int (*post)(struct ibv_qp *qp), struct ibv_qp *qp, bool rings)
{
	assert_int_equal(post(qp), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET) != 0, rings);
}

static struct ibv_qp *qp_ex(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = &fake.pd.ibv_pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = pvr_create_qp_ex(&fake.ctx.ibv_ctx.context, &attr);

	assert_non_null(qp);
	qp->state = IBV_QPS_RTS;
	return qp;
}

/* The three ways to post on a QP, and the suppression word of each. */
static const struct {
	int (*post)(struct ibv_qp *qp);
	_Atomic uint32_t *(*word)(struct ibv_qp *qp), *(*other)(struct ibv_qp *qp);
	uint32_t flag;
} ways[] = {
	{ post_send, send_word, recv_word, PVR_DB_QP_SEND },
	{ post_by_function, send_word, recv_word, PVR_DB_QP_SEND },
	{ post_recv, recv_word, send_word, PVR_DB_QP_RECV },
};
#define NUM_WAYS (ARRAY_SIZE(ways))

static struct pvr_wq *queue_of(struct ibv_qp *qp, size_t way)
{
	struct pvr_qp *pqp = to_pvr_qp(qp);

	return ways[way].post == post_recv ? &pqp->rq : &pqp->sq;
}

static uint32_t prod_tail(struct ibv_qp *qp, size_t way)
{
	return queue_of(qp, way)->ring_shm->prod_tail;
}

/* The device takes all posted elements. */
static void take_all(struct ibv_qp *qp, size_t way)
{
	queue_of(qp, way)->ring_shm->cons_head = prod_tail(qp, way);
}

TEST(db_suppress, test_a_new_queue_wants_its_doorbell)
{
	struct ibv_qp *qp = qp_ex();
	size_t i;

	for (i = 0; i < NUM_WAYS; i++) {
		assert_int_equal(*ways[i].word(qp), 0);
		assert_int_equal(ways[i].post(qp), 0);
		assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET),
				 ways[i].flag | to_pvr_qp(qp)->handle);
		take_all(qp, i);
	}
}

TEST(db_suppress, test_no_doorbell_while_the_word_is_set)
{
	struct ibv_qp *qp = qp_ex();
	uint32_t before;
	size_t i;

	for (i = 0; i < NUM_WAYS; i++) {
		*ways[i].word(qp) = 0x80000000;
		before = prod_tail(qp, i);
		assert_int_equal(ways[i].post(qp), 0);
		assert_int_equal(prod_tail(qp, i), before + 1);
		assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
		*ways[i].word(qp) = 0;
		assert_int_equal(ways[i].post(qp), 0);
		assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET),
				 ways[i].flag | to_pvr_qp(qp)->handle);
		take_all(qp, i);
	}
}

TEST(db_suppress, test_the_two_words_of_a_qp_are_told_apart)
{
	struct ibv_qp *qp = qp_ex();
	size_t i;

	for (i = 0; i < NUM_WAYS; i++) {
		*ways[i].other(qp) = 1;
		expect_post(ways[i].post, qp, true);
		*ways[i].other(qp) = 0;
		take_all(qp, i);
	}
}

/* Until the device reads the queue, the first doorbell covers all later posts. */
TEST(db_suppress, test_one_doorbell_is_enough_to_wake_the_device)
{
	struct ibv_qp *qp = qp_ex();
	struct pvr_wq *sq = &to_pvr_qp(qp)->sq;

	expect_post(post_send, qp, true);
	assert_int_equal(post_send(qp), 0);
	assert_int_equal(post_by_function(qp), 0);
	expect_post(post_send, qp, false);
	/* The device has taken one element and may have missed the others. */
	fake_consume(sq, 1);
	expect_post(post_send, qp, true);
	fake_consume(sq, 3);
	expect_post(post_send, qp, false);
	fake_consume(sq, 2);
	expect_post(post_send, qp, true);
}

/* The device takes a receive request when a message arrives, independent of doorbells. */
TEST(db_suppress, test_receive_queues_ring_each_time)
{
	struct ibv_qp *qp = qp_ex();
	int i;

	for (i = 0; i < 3; i++) {
		expect_post(post_recv, qp, true);
	}
}

/* Indices wrap: that of an earlier doorbell must not match. */
TEST(db_suppress, test_doorbells_of_the_past_do_not_count)
{
	struct ibv_qp *qp = qp_ex();
	struct pvr_wq *sq = &to_pvr_qp(qp)->sq;
	uint32_t i;

	expect_post(post_send, qp, true);
	*send_word(qp) = 1;
	for (i = 0; i < 2 * sq->num - 1; i++) {
		fake_consume(sq, 1);
		assert_int_equal(post_send(qp), 0);
	}
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
	*send_word(qp) = 0;
	expect_post(post_send, qp, true);
}

/* RESET drops the requests and the pending doorbell. */
TEST(db_suppress, test_a_reset_forgets_the_doorbell)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = qp_ex();

	assert_int_equal(post_send(qp), 0);
	expect_post(post_send, qp, true);
	assert_int_equal(pvr_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	qp->state = IBV_QPS_RTS;
	expect_post(post_send, qp, true);
}

TEST(db_suppress, test_a_queue_of_one_rings_each_time)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	int i;

	for (i = 0; i < 5; i++) {
		expect_post(post_send, qp, true);
		fake_consume(&to_pvr_qp(qp)->sq, 1);
	}
}

/* Without the extension the words have no meaning. */
TEST(db_suppress, test_without_the_extension_every_posting_rings)
{
	struct ibv_qp *qp;
	size_t i;

	fake.ctx.features = PVR_EXT_RESIZE;
	qp = qp_ex();
	for (i = 0; i < NUM_WAYS; i++) {
		*ways[i].word(qp) = 1;
		expect_post(ways[i].post, qp, true);
	}
}

TEST(db_suppress, test_nothing_posted_nothing_rung)
{
	struct ibv_qp *qp = qp_ex();

	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), 0);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	ibv_wr_send(ibv_qp_to_qp_ex(qp));
	ibv_wr_abort(ibv_qp_to_qp_ex(qp));
	qp->state = IBV_QPS_INIT;
	assert_int_equal(post_send(qp), EINVAL);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

/* The device owns the words and may still write them after RESET. */
TEST(db_suppress, test_a_reset_leaves_the_words)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = qp_ex();

	*send_word(qp) = 5;
	*recv_word(qp) = 6;
	assert_int_equal(pvr_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(*send_word(qp), 5);
	assert_int_equal(*recv_word(qp), 6);
}

static int post_srq(struct ibv_srq *srq)
{
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return pvr_post_srq_recv(srq, &wr, &bad);
}

/* After a resize the word is in the new ring. */
TEST(db_suppress, test_an_srq_and_its_words)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = pvr_create_srq(&fake.pd.ibv_pd, &attr);
	uint32_t rung = PVR_DB_SRQ_RECV | to_pvr_srq(srq)->handle;

	assert_int_equal(post_srq(srq), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), rung);
	*word_at(&to_pvr_srq(srq)->buf, offsetof(struct pvr_db_suppress, rq)) = 1;
	assert_int_equal(post_srq(srq), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), 0);
	attr.attr.max_wr = 8;
	assert_int_equal(pvr_modify_srq(srq, &attr.attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(post_srq(srq), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), rung);
	*word_at(&to_pvr_srq(srq)->buf, offsetof(struct pvr_db_suppress, rq)) = 1;
	assert_int_equal(post_srq(srq), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), 0);
	pvr_destroy_srq(srq);
}

#define ROUNDS 200000

/* A device that goes to sleep in each round, while the test posts. */
static struct {
	struct ibv_qp *qp;
	_Atomic uint32_t begun, ended; /* rounds */
	bool saw; /* the request, in its last load of prod_tail */
} device;

static void *sleep_in_each_round(void *arg)
{
	const _Atomic uint32_t *tail_shm = &to_pvr_qp(device.qp)->sq.ring_shm->prod_tail;
	_Atomic uint32_t *word_shm = send_word(device.qp);
	uint32_t round, before = 0;

	for (round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&device.begun) != round)
			;
		atomic_store_explicit(word_shm, 0, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		device.saw = atomic_load_explicit(tail_shm, memory_order_acquire) != before;
		atomic_store(&device.ended, round);
		before = (before + 1) & 7;
	}
	return NULL;
}

/* Without the fence in posting, some request is lost sooner or later. */
TEST(db_suppress, test_a_device_going_to_sleep_misses_nothing)
{
	struct pvr_qp *pqp;
	uint32_t round, lost = 0;
	pthread_t thread;

	memset(&device, 0, sizeof(device));
	device.qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	pqp = to_pvr_qp(device.qp);
	assert_int_equal(pthread_create(&thread, NULL, sleep_in_each_round, NULL), 0);
	for (round = 1; round <= ROUNDS; round++) {
		*send_word(device.qp) = 1;
		atomic_store(&device.begun, round);
		assert_int_equal(post_send(device.qp), 0);
		while (atomic_load(&device.ended) != round)
			;
		lost += !fake_rung(PVRDMA_UAR_QP_OFFSET) && !device.saw;
		fake_consume(&pqp->sq, 1);
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
}

/* After a doorbell the device takes all elements in each round and sleeps again. */
static void *serve_in_each_round(void *arg)
{
	struct pvr_ring_shm *ring_shm = to_pvr_qp(device.qp)->sq.ring_shm;
	_Atomic uint32_t *word_shm = send_word(device.qp);
	uint32_t round, taken;

	for (round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&device.begun) != round)
			;
		atomic_store_explicit(word_shm, 1, memory_order_relaxed);
		taken = atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire);
		atomic_store_explicit(&ring_shm->cons_head, taken, memory_order_release);
		atomic_store_explicit(word_shm, 0, memory_order_release);
		atomic_thread_fence(memory_order_seq_cst);
		device.saw = atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire) !=
			     taken;
		atomic_store(&device.ended, round);
	}
	return NULL;
}

/* The test posts while the device takes elements or goes to sleep. */
TEST(db_suppress, test_a_device_that_comes_misses_nothing)
{
	struct pvr_ring_shm *ring_shm;
	uint32_t round, lost = 0;
	pthread_t thread;
	bool rung;

	memset(&device, 0, sizeof(device));
	device.qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	ring_shm = to_pvr_qp(device.qp)->sq.ring_shm;
	assert_int_equal(pthread_create(&thread, NULL, serve_in_each_round, NULL), 0);
	for (round = 1; round <= ROUNDS; round++) {
		assert_int_equal(post_send(device.qp), 0);
		assert_int_not_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
		atomic_store(&device.begun, round);
		assert_int_equal(post_send(device.qp), 0);
		rung = fake_rung(PVRDMA_UAR_QP_OFFSET) != 0;
		while (atomic_load(&device.ended) != round)
			;
		lost += ring_shm->cons_head != ring_shm->prod_tail && !rung && !device.saw;
		/* for the next round: no element is left */
		ring_shm->cons_head = ring_shm->prod_tail;
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
}
