// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request is outstanding until its completion is polled, not until the device has executed
 * it. So requests never complete into a CQ without room if it has as many CQEs as the queues
 * have elements.
 */
#include "cq.h"
#include "fake_kernel.h"

#define NUM 16 /* elements of each queue, and CQEs */

static struct ibv_poll_cq_attr no_attr;
static struct ibv_cq_ex *cq_ex;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_srq *srq;

static struct ibv_qp *create_qp(struct ibv_srq *shared)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = shared,
		.cap = { .max_send_wr = NUM, .max_recv_wr = NUM },
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *created = fake_create_qp_ex(&attr);

	assert_non_null(created);
	return created;
}

static void outstanding_begin(void)
{
	fake.ctx.features = PVR_EXT_NO_POLL_DB | PVR_EXT_RESIZE | PVR_EXT_USER_OPS | PVR_EXT_MW;
	cq_ex = FAKE_CQ_EX(.cqe = NUM, .wc_flags = IBV_WC_STANDARD_FLAGS);
	assert_non_null(cq_ex);
	cq = ibv_cq_ex_to_cq(cq_ex);
	srq = fake_srq(NUM, 1);
	qp = create_qp(NULL);
}

static void srq_begin(void)
{
	outstanding_begin();
	qp = create_qp(srq);
}

/* --------------------------------------------------------------------- each queue */

static int send(uint64_t wr_id, unsigned int flags)
{
	return fake_post_send(qp, &(struct ibv_send_wr){ .wr_id = wr_id,
							 .opcode = IBV_WR_SEND,
							 .send_flags = flags });
}

static int post_send(uint64_t wr_id)
{
	return send(wr_id, IBV_SEND_SIGNALED);
}

static int post_by_function(uint64_t wr_id)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	qpx->wr_id = wr_id;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	return ibv_wr_complete(qpx);
}

static int post_bind(uint64_t wr_id)
{
	struct ibv_mw mw = { .pd = fake.ibpd, .type = IBV_MW_TYPE_1 };

	return pvr_bind_mw(
		qp, &mw, &(struct ibv_mw_bind){ .wr_id = wr_id, .send_flags = IBV_SEND_SIGNALED });
}

static int post_recv(uint64_t wr_id)
{
	return fake_post_recv(qp, &(struct ibv_recv_wr){ .wr_id = wr_id });
}

static int post_srq_recv(uint64_t wr_id)
{
	return fake_post_srq_recv(srq, &(struct ibv_recv_wr){ .wr_id = wr_id });
}

static const struct way {
	const char *label;
	int (*post)(uint64_t wr_id);
	uint32_t opcode; /* of the CQE */
	bool shared;
} ways[] = {
	{ "send", post_send, PVRDMA_WC_SEND },
	{ "send by function", post_by_function, PVRDMA_WC_SEND },
	{ "bind", post_bind, PVRDMA_WC_BIND_MW },
	{ "receive", post_recv, PVRDMA_WC_RECV },
	{ "shared receive", post_srq_recv, PVRDMA_WC_RECV, true },
};

static struct pvr_wq *wq_of(const struct way *way)
{
	return way->opcode == PVRDMA_WC_RECV ? to_pvr_qp(qp)->recv_wq : fake_sq(qp);
}

/* The device executes a request, whose number of wq counts from 0. */
static void execute(const struct way *way, uint32_t number)
{
	struct pvr_wq *wq = wq_of(way);
	uint64_t wr_id = *(const uint64_t *)pvr_wq_slot(wq, number);

	fake_take(wq, 1);
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = way->opcode, .wr_id = wr_id);
}

static void execute_all(const struct way *way, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		execute(way, from);
}

static void post_all(const struct way *way, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_int_equal(way->post(1000 + from), 0);
	assert_int_equal(way->post(0), ENOMEM);
}

static void poll_one(uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 1000 + wr_id);
	assert_int_equal(wc.qp_num, qp->qp_num);
}

TEST_CASES(outstanding, test_request_is_outstanding_until_its_completion_is_polled, ways)
{
	struct ibv_wc wcs[NUM];
	int i;

	if (row->shared)
		qp = create_qp(srq);
	post_all(row, 0, NUM);
	execute_all(row, 0, NUM);
	assert_int_equal(row->post(0), ENOMEM);
	poll_one(0);
	post_all(row, NUM, NUM + 1);
	poll_one(1);
	poll_one(2);
	post_all(row, NUM + 1, NUM + 3);
	execute_all(row, NUM, NUM + 3);
	assert_int_equal(pvr_poll_cq(cq, NUM, wcs), NUM);
	for (i = 0; i < NUM; i++)
		assert_int_equal(wcs[i].wr_id, 1000 + 3 + i);
	post_all(row, NUM + 3, 2 * NUM + 3);
}

/* The lazy calls copy the CQE, so that the next request can be posted before end_poll. */
TEST_CASES(outstanding, test_lazy_calls_end_a_request_at_once, ways)
{
	if (row->shared)
		qp = create_qp(srq);
	post_all(row, 0, NUM);
	execute_all(row, 0, NUM);
	assert_int_equal(ibv_start_poll(cq_ex, &no_attr), 0);
	assert_int_equal(cq_ex->wr_id, 1000);
	post_all(row, NUM, NUM + 1);
	execute(row, NUM);
	assert_int_equal(cq_ex->wr_id, 1000);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), qp->qp_num);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(cq_ex->wr_id, 1001);
	post_all(row, NUM + 1, NUM + 2);
	ibv_end_poll(cq_ex);
}

/* Bad input: a broken device repeats completions, or completes what was not posted. */
TEST_CASES(outstanding, test_completion_of_no_outstanding_request_is_skipped, ways)
{
	struct ibv_wc wc;

	if (row->shared)
		return; /* see test_srq_with_too_many_completions_is_full */
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = row->opcode);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(row->post(1000), 0);
	execute(row, 0);
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = row->opcode, .wr_id = 0);
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = row->opcode, .wr_id = 1);
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = row->opcode, .wr_id = UINT64_MAX);
	poll_one(0);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	post_all(row, 1, NUM + 1);
}

/* -------------------------------------------------------------------------- sends */

TEST(outstanding, test_completion_ends_the_unsignaled_sends_before_it)
{
	const struct way *way = &ways[0];
	uint32_t i;

	for (i = 0; i < NUM; i++)
		assert_int_equal(send(1000 + i, i == 4 || i == 9 ? IBV_SEND_SIGNALED : 0), 0);
	fake_take(fake_sq(qp), NUM);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 4);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 9);
	assert_int_equal(post_send(0), ENOMEM);
	poll_one(4);
	post_all(way, NUM, NUM + 5);
	poll_one(9);
	post_all(way, NUM + 5, NUM + 10);
}

/* Unsignaled sends that fail complete. */
TEST(outstanding, test_error_ends_the_sends_before_it)
{
	struct ibv_wc wcs[NUM];
	uint32_t i;

	for (i = 0; i < NUM; i++)
		assert_int_equal(send(1000 + i, 0), 0);
	for (i = 6; i < NUM; i++)
		FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = i,
			 .status = i == 6 ? PVRDMA_WC_REM_ACCESS_ERR : PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(pvr_poll_cq(cq, 1, wcs), 1);
	assert_int_equal(wcs[0].wr_id, 1006);
	assert_int_equal(wcs[0].status, IBV_WC_REM_ACCESS_ERR);
	post_all(&ways[0], NUM, NUM + 7);
	assert_int_equal(pvr_poll_cq(cq, NUM, wcs), NUM - 7);
	assert_int_equal(wcs[0].wr_id, 1007);
	assert_int_equal(wcs[NUM - 8].wr_id, 1000 + NUM - 1);
}

TEST(outstanding, test_aborted_batch_leaves_the_room)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	int i;

	ibv_wr_start(qpx);
	for (i = 0; i < 5; i++)
		ibv_wr_send(qpx);
	ibv_wr_abort(qpx);
	post_all(&ways[0], 0, NUM);
}

TEST(outstanding, test_reset_ends_all_requests)
{
	struct ibv_wc wc;

	post_all(&ways[0], 0, NUM);
	post_all(&ways[3], 0, NUM);
	execute_all(&ways[0], 0, 3);
	poll_one(0);
	assert_int_equal(fake_reset_qp(qp), 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	post_all(&ways[0], 0, NUM);
	post_all(&ways[3], 0, NUM);
	execute_all(&ways[0], 0, 2);
	poll_one(0);
	poll_one(1);
}

/* Bad input: a poller must not use what it remembers of the destroyed QP. */
TEST(outstanding, test_completion_of_the_destroyed_qp_of_the_last_poll_is_skipped)
{
	uint32_t handle = fake_handle(qp), qp_num;
	struct ibv_wc wc;

	post_all(&ways[0], 0, NUM);
	execute_all(&ways[0], 0, 3);
	poll_one(0);
	assert_int_equal(pvr_destroy_qp(qp), 0);
	FAKE_CQE(cq, .qp = handle, .wr_id = 1);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	fake.next_handle = handle;
	qp = create_qp(NULL);
	assert_int_equal(fake_handle(qp), handle);
	qp_num = qp->qp_num;
	FAKE_CQE(cq, .qp = handle, .wr_id = 0);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	post_all(&ways[0], 0, NUM);
	execute(&ways[0], 0);
	poll_one(0);
	assert_int_equal(qp->qp_num, qp_num);
}

/* Skipped CQEs do not count: later completions fill the array of the program. */
TEST(outstanding, test_poll_returns_the_completions_behind_skipped_ones)
{
	struct ibv_wc wcs[NUM];
	uint32_t i;

	post_all(&ways[0], 0, NUM);
	for (i = 0; i < 5; i++) {
		execute(&ways[0], i);
		FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = i);
		FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = NUM);
	}
	assert_int_equal(pvr_poll_cq(cq, 3, wcs), 3);
	assert_int_equal(wcs[2].wr_id, 1002);
	assert_int_equal(pvr_poll_cq(cq, 3, wcs), 2);
	assert_int_equal(wcs[1].wr_id, 1004);
	assert_int_equal(pvr_poll_cq(cq, 3, wcs), 0);
	post_all(&ways[0], NUM, NUM + 5);
}

TEST(outstanding, test_resized_cq_keeps_requests_outstanding)
{
	post_all(&ways[0], 0, NUM);
	execute_all(&ways[0], 0, NUM);
	assert_int_equal(pvr_resize_cq(cq, 2 * NUM), 0);
	assert_int_equal(post_send(0), ENOMEM);
	poll_one(0);
	post_all(&ways[0], NUM, NUM + 1);
}

/* ---------------------------------------------------------------- shared receives */

static const struct way *const shared = &ways[4];

static const struct {
	const char *label;
	int (*end)(struct ibv_qp *qp);
} ends[] = {
	{ "destroy", pvr_destroy_qp },
	{ "reset", fake_reset_qp },
};

/* The completions that are dropped with a QP end their requests of the SRQ. */
TEST_CASES(srq, test_end_of_a_qp_ends_its_shared_receives, ends)
{
	struct ibv_qp *other = qp;
	struct ibv_wc wc;

	post_all(shared, 0, NUM);
	execute_all(shared, 0, 3);
	qp = create_qp(srq);
	execute_all(shared, 3, 7);
	assert_int_equal(row->end(qp), 0);
	post_all(shared, NUM, NUM + 4);
	qp = other;
	poll_one(0);
	poll_one(1);
	poll_one(2);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	post_all(shared, NUM + 4, NUM + 7);
}

/* Sends of the same CQ between shared receives: each queue counts its own. */
TEST(srq, test_poll_of_several_queues_counts_each)
{
	struct ibv_wc wcs[NUM];
	uint32_t i;

	post_all(shared, 0, NUM);
	post_all(&ways[0], 0, NUM);
	for (i = 0; i < NUM / 2; i++) {
		execute(shared, i);
		execute(&ways[0], i);
	}
	assert_int_equal(pvr_poll_cq(cq, 5, wcs), 5);
	post_all(shared, NUM, NUM + 3);
	post_all(&ways[0], NUM, NUM + 2);
	assert_int_equal(pvr_poll_cq(cq, NUM, wcs), NUM - 5);
	post_all(shared, NUM + 3, NUM + NUM / 2);
	post_all(&ways[0], NUM + 2, NUM + NUM / 2);
}

static void poll_by_verb(uint32_t from, uint32_t to)
{
	struct ibv_wc wcs[NUM], *wc = wcs;

	assert_int_equal(pvr_poll_cq(cq, to - from, wcs), to - from);
	while (from < to)
		assert_int_equal(wc++->wr_id, 1000 + from++);
}

static void poll_by_lazy_calls(uint32_t from, uint32_t to)
{
	assert_int_equal(ibv_start_poll(cq_ex, &no_attr), 0);
	while (cq_ex->wr_id == 1000 + from && ++from < to)
		assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(from, to);
	ibv_end_poll(cq_ex);
}

static const struct {
	const char *label;
	void (*poll)(uint32_t from, uint32_t to);
} polls[] = {
	{ "poll_cq", poll_by_verb },
	{ "lazy calls", poll_by_lazy_calls },
};

TEST_CASES(srq, test_completions_of_two_qps_of_an_srq_alternate, polls)
{
	struct ibv_qp *qps[] = { qp, create_qp(srq) };
	uint32_t i;

	post_all(shared, 0, NUM);
	for (i = 0; i < NUM; i++) {
		qp = qps[i % 2];
		execute(shared, i);
	}
	row->poll(0, NUM / 2);
	post_all(shared, NUM, NUM + NUM / 2);
	row->poll(NUM / 2, NUM);
	post_all(shared, NUM + NUM / 2, 2 * NUM);
}

/* Again and again: a poll leaves nothing behind at the sides of its QPs. */
TEST(outstanding, test_sends_of_three_qps_alternate)
{
	struct ibv_qp *qps[] = { qp, create_qp(NULL), create_qp(NULL) };
	struct ibv_wc wcs[NUM];
	uint32_t of_each = 4, round, i;

	for (i = 0; i < 3; i++) {
		qp = qps[i];
		post_all(&ways[0], 0, NUM);
	}
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3 * of_each; i++) {
			qp = qps[i % 3];
			execute(&ways[0], round * of_each + i / 3);
		}
		assert_int_equal(pvr_poll_cq(cq, NUM, wcs), 3 * of_each);
		for (i = 0; i < 3 * of_each; i++) {
			assert_int_equal(wcs[i].wr_id, 1000 + round * of_each + i / 3);
			assert_int_equal(wcs[i].qp_num, qps[i % 3]->qp_num);
		}
		for (i = 0; i < 3; i++) {
			qp = qps[i];
			post_all(&ways[0], NUM + round * of_each, NUM + (round + 1) * of_each);
		}
	}
}

static int resize(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

TEST(srq, test_resized_srq_keeps_requests_outstanding)
{
	post_all(shared, 0, NUM);
	execute_all(shared, 0, 10);
	poll_one(0);
	assert_int_equal(resize(8), EINVAL);
	assert_int_equal(resize(2 * NUM), 0);
	post_all(shared, NUM, 2 * NUM + 1);
	poll_one(1);
	post_all(shared, 2 * NUM + 1, 2 * NUM + 2);
}

TEST(srq, test_srq_with_too_many_completions_is_full)
{
	struct ibv_wc wcs[2];

	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = PVRDMA_WC_RECV);
	FAKE_CQE(cq, .qp = fake_handle(qp), .opcode = PVRDMA_WC_RECV);
	assert_int_equal(pvr_poll_cq(cq, 2, wcs), 2);
	assert_int_equal(post_srq_recv(0), ENOMEM);
}

/* ------------------------------------------------------------------------ threads */

static struct {
	uint32_t round;
	uint32_t early; /* times that a request ended before its CQE returned to the device */
} poster;

/* Waits until the poll has ended the sends of the round, as a poster in another thread. */
static void await_room(void)
{
	const struct pvr_wq *wq = fake_sq(qp);

	poster.round++;
	while (atomic_load_explicit(&wq->polled, memory_order_acquire) != 2 * poster.round)
		;
	poster.early += to_pvr_cq(cq)->ring_shm->cons_head != (3 * poster.round & (2 * NUM - 1));
}

static const struct {
	const char *label;
	uint32_t opcodes[3];
} orders[] = {
	{ "sends last", { PVRDMA_WC_RECV, PVRDMA_WC_SEND, PVRDMA_WC_SEND } },
	{ "sends first", { PVRDMA_WC_SEND, PVRDMA_WC_SEND, PVRDMA_WC_RECV } },
};

/* The completion of a request that is posted at once must find a free CQE. */
TEST_CASES(outstanding, test_cqe_returns_to_the_device_before_its_request_ends, orders)
{
	struct ibv_wc wcs[3];
	uint32_t i;

	memset(&poster, 0, sizeof(poster));
	fake_race_start(await_room);
	while (fake_race_next()) {
		for (i = 0; i < 3; i++)
			FAKE_COMPLETE(cq, .qp = fake_handle(qp), .opcode = row->opcodes[i]);
		fake_race_begin();
		assert_int_equal(pvr_poll_cq(cq, 3, wcs), 3);
		fake_race_wait();
	}
	assert_int_equal(poster.early, 0);
}
