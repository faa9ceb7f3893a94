// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_DB_SUPPRESS: doorbells with and without suppression. */
#include "doorbell.h"
#include "fake_kernel.h"

static struct ibv_qp *qp;

static struct ibv_qp *qp_ex(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return fake_create_qp_ex(&attr);
}

static void db_suppress_begin(void)
{
	fake.ctx.features = PVR_EXT_DB_SUPPRESS | PVR_EXT_RESIZE;
	qp = qp_ex();
	assert_non_null(qp);
}

static struct fake_db_suppress *words(void)
{
	return fake_db_suppress(&to_pvr_qp(qp)->buf);
}

static int post_send(void)
{
	return fake_post_send(qp, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND, FAKE_SGES(1) });
}

static int post_recv(void)
{
	return fake_post_recv(qp, &(struct ibv_recv_wr){ FAKE_SGES(1) });
}

static int post_by_function(void)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 1, fake_sges);
	return ibv_wr_complete(qpx);
}

/* Posts, and checks the doorbell; 0: it does not ring. */
static void expect_post(int (*post)(void), uint32_t rung)
{
	assert_int_equal(post(), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), rung);
}

/* The three ways to post on a QP, and the suppression word of each. */
static const struct way {
	const char *label;
	int (*post)(void);
	bool is_recv;
	size_t word, other;
} ways[] = {
	{ "send", post_send, false, offsetof(struct fake_db_suppress, sq),
	  offsetof(struct fake_db_suppress, rq) },
	{ "send by function", post_by_function, false, offsetof(struct fake_db_suppress, sq),
	  offsetof(struct fake_db_suppress, rq) },
	{ "receive", post_recv, true, offsetof(struct fake_db_suppress, rq),
	  offsetof(struct fake_db_suppress, sq) },
};

static _Atomic uint32_t *word_at(size_t offset)
{
	return (void *)((uint8_t *)words() + offset);
}

static uint32_t rung(const struct way *way)
{
	return way->is_recv ? FAKE_RECV_RUNG(qp) : FAKE_SEND_RUNG(qp);
}

TEST_CASES(db_suppress, test_new_queue_rings, ways)
{
	assert_int_equal(*word_at(row->word), 0);
	expect_post(row->post, rung(row));
}

TEST_CASES(db_suppress, test_queue_does_not_ring_while_its_word_is_set, ways)
{
	const struct pvr_wq *wq = row->is_recv ? fake_rq(qp) : fake_sq(qp);

	*word_at(row->word) = 0x80000000;
	expect_post(row->post, 0);
	assert_int_equal(wq->ring_shm->prod_tail, 1);
	*word_at(row->word) = 0;
	expect_post(row->post, rung(row));
}

TEST_CASES(db_suppress, test_queue_rings_while_the_other_word_is_set, ways)
{
	*word_at(row->other) = 1;
	expect_post(row->post, rung(row));
}

/* Without the extension the words have no meaning. */
TEST_CASES(db_suppress, test_queue_without_the_extension_rings_each_time, ways)
{
	fake.ctx.features = PVR_EXT_RESIZE;
	qp = qp_ex();
	*word_at(row->word) = 1;
	expect_post(row->post, rung(row));
	expect_post(row->post, rung(row));
}

/* Until the device reads the queue, the first doorbell covers all later posts. */
TEST(db_suppress, test_send_queue_rings_once_until_the_device_reads)
{
	expect_post(post_send, FAKE_SEND_RUNG(qp));
	expect_post(post_send, 0);
	expect_post(post_by_function, 0);
	expect_post(post_send, 0);
	/* The device has taken one element and may have missed the others. */
	fake_consume(fake_sq(qp), 1);
	expect_post(post_send, FAKE_SEND_RUNG(qp));
	fake_consume(fake_sq(qp), 3);
	expect_post(post_send, 0);
	fake_consume(fake_sq(qp), 2);
	expect_post(post_send, FAKE_SEND_RUNG(qp));
}

/* Another thread is stopped between its post and its doorbell, as by a debugger. */
TEST(db_suppress, test_send_does_not_wait_for_the_doorbell_of_another_thread)
{
	struct pvr_wq *sq = fake_sq(qp);
	uint32_t tail;

	pvr_lock(&sq->lock);
	memset(pvr_wq_element(sq), 0, sq->stride);
	pvr_wq_advance(sq);
	assert_true(pvr_wq_publish(sq));
	tail = pvr_wq_tail(sq);
	pvr_unlock(&sq->lock);
	expect_post(post_send, FAKE_SEND_RUNG(qp));
	expect_post(post_by_function, 0); /* the doorbell of the post before is pending */
	pvr_ring_sq(to_pvr_qp(qp), tail);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
	expect_post(post_send, 0);
}

/* The doorbell of a post that RESET has dropped does not count for the posts after it. */
TEST(db_suppress, test_doorbell_of_a_dropped_post_does_not_count)
{
	expect_post(post_send, FAKE_SEND_RUNG(qp));
	expect_post(post_send, 0);
	assert_int_equal(fake_reset_qp(qp), 0);
	qp->state = IBV_QPS_RTS;
	pvr_ring_sq(to_pvr_qp(qp), 2);
	fake_rung(PVRDMA_UAR_QP_OFFSET);
	expect_post(post_send, FAKE_SEND_RUNG(qp));
}

/* The device takes a receive request when a message arrives, independent of doorbells. */
TEST(db_suppress, test_receive_queue_rings_each_time)
{
	int i;

	for (i = 0; i < 3; i++)
		expect_post(post_recv, FAKE_RECV_RUNG(qp));
}

/* Indices wrap: that of an earlier doorbell must not match. */
TEST(db_suppress, test_doorbell_of_an_earlier_round_does_not_count)
{
	struct pvr_wq *sq = fake_sq(qp);
	uint32_t i;

	expect_post(post_send, FAKE_SEND_RUNG(qp));
	words()->sq = 1;
	for (i = 0; i < 2 * sq->num - 1; i++) {
		fake_consume(sq, 1);
		expect_post(post_send, 0);
	}
	words()->sq = 0;
	expect_post(post_send, FAKE_SEND_RUNG(qp));
}

/* RESET drops the requests and the pending doorbell. */
TEST(db_suppress, test_reset_drops_the_pending_doorbell)
{
	expect_post(post_send, FAKE_SEND_RUNG(qp));
	expect_post(post_send, 0);
	assert_int_equal(fake_reset_qp(qp), 0);
	qp->state = IBV_QPS_RTS;
	expect_post(post_send, FAKE_SEND_RUNG(qp));
}

TEST(db_suppress, test_send_queue_of_one_rings_each_time)
{
	int i;

	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	for (i = 0; i < 5; i++) {
		expect_post(post_send, FAKE_SEND_RUNG(qp));
		fake_consume(fake_sq(qp), 1);
	}
}

TEST(db_suppress, test_nothing_posted_does_not_ring)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_abort(qpx);
	qp->state = IBV_QPS_INIT;
	assert_int_equal(post_send(), EINVAL);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

/* The device owns the words and may still write them after RESET. */
TEST(db_suppress, test_reset_does_not_write_the_words)
{
	words()->sq = 5;
	words()->rq = 6;
	assert_int_equal(fake_reset_qp(qp), 0);
	assert_int_equal(words()->sq, 5);
	assert_int_equal(words()->rq, 6);
}

static void expect_srq_post(struct ibv_srq *srq, uint32_t rung)
{
	FAKE_SRQ_RECV(srq, 0, FAKE_SGES(1));
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), rung);
}

/* After a resize the word is in the new ring. */
TEST(db_suppress, test_srq_does_not_ring_while_its_word_is_set)
{
	struct ibv_srq *srq = fake_srq(4, 1);

	expect_srq_post(srq, FAKE_SRQ_RUNG(srq));
	fake_db_suppress(&to_pvr_srq(srq)->buf)->rq = 1;
	expect_srq_post(srq, 0);
	assert_int_equal(pvr_modify_srq(srq, &(struct ibv_srq_attr){ .max_wr = 8 }, IBV_SRQ_MAX_WR),
			 0);
	expect_srq_post(srq, FAKE_SRQ_RUNG(srq));
	fake_db_suppress(&to_pvr_srq(srq)->buf)->rq = 1;
	expect_srq_post(srq, 0);
}

static struct {
	uint32_t before; /* prod_tail of the last round */
	bool saw; /* the request, in its last load of prod_tail */
} device;

static void sleep_once(void)
{
	atomic_store_explicit(&words()->sq, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	device.saw = atomic_load_explicit(&fake_sq(qp)->ring_shm->prod_tail,
					  memory_order_acquire) != device.before;
	device.before = (device.before + 1) & 7;
}

/* Without the fence in posting, some request is lost sooner or later. */
TEST(db_suppress, test_device_that_stops_polling_misses_no_request)
{
	uint32_t lost = 0;

	device.before = 0;
	fake_race_start(sleep_once);
	while (fake_race_next()) {
		words()->sq = 1;
		fake_race_begin();
		assert_int_equal(post_send(), 0);
		fake_race_wait();
		lost += !fake_rung(PVRDMA_UAR_QP_OFFSET) && !device.saw;
		fake_consume(fake_sq(qp), 1);
	}
	assert_int_equal(lost, 0);
}

/* After a doorbell the device takes all elements and sleeps again. */
static void serve_once(void)
{
	struct pvr_ring_shm *ring_shm = fake_sq(qp)->ring_shm;
	uint32_t taken;

	atomic_store_explicit(&words()->sq, 1, memory_order_relaxed);
	taken = atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire);
	atomic_store_explicit(&ring_shm->cons_head, taken, memory_order_release);
	atomic_store_explicit(&words()->sq, 0, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	device.saw = atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire) != taken;
}

/* The test posts while the device takes elements or goes to sleep. */
TEST(db_suppress, test_device_that_answers_a_doorbell_misses_no_request)
{
	struct pvr_ring_shm *ring_shm = fake_sq(qp)->ring_shm;
	uint32_t lost = 0;
	bool rung;

	fake_race_start(serve_once);
	while (fake_race_next()) {
		expect_post(post_send, FAKE_SEND_RUNG(qp));
		fake_race_begin();
		assert_int_equal(post_send(), 0);
		rung = fake_rung(PVRDMA_UAR_QP_OFFSET) != 0;
		fake_race_wait();
		lost += ring_shm->cons_head != ring_shm->prod_tail && !rung && !device.saw;
		/* for the next round: no element is left */
		ring_shm->cons_head = ring_shm->prod_tail;
		fake_sq(qp)->polled = fake_sq(qp)->tail;
	}
	assert_int_equal(lost, 0);
}
