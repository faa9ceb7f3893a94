// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queues of a failed QP: order, status, and the other end. */
#include "ends.h"

static void post_bad(struct fg_end *end, uint64_t wr_id)
{
	t_post(end, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, .flags = 0, .sge = &T_BAD_SGE,
	       .num_sge = 1);
}

/* Requests @first to @last complete in this order, and nothing else. */
static void expect_flushed(struct fg_cq *cq, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++)
		expect_cqe(cq, i, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(cq);
}

static void recv_many(struct fg_end *end, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		t_recv(end, i, 0, 64);
}

TEST(rc_connected, test_requests_before_the_bad_one_succeed_and_later_ones_flush)
{
	recv_many(&env->b, 10);
	for (uint32_t i = 0; i < 3; i++)
		t_send(&env->a, i, 0, 8);
	post_bad(&env->a, 3);
	for (uint32_t i = 4; i < 9; i++)
		t_send(&env->a, i, 0, 8);
	fg_run(env->host);
	for (uint32_t i = 0; i < 3; i++) {
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 8);
	}
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_LOC_PROT_ERR);
	expect_flushed(&env->a.scq, 4, 8);
	expect_no_cqe(&env->b.rcq);
}

TEST(rc_connected, test_receive_queue_is_flushed_too)
{
	recv_many(&env->a, 20);
	post_bad(&env->a, 100);
	await_cqe(&env->a.scq, 100, PVRDMA_WC_LOC_PROT_ERR);
	for (uint32_t i = 0; i < 20; i++) {
		struct pvrdma_cqe cqe = expect_cqe(&env->a.rcq, i, PVRDMA_WC_WR_FLUSH_ERR);

		assert_int_equal(cqe.qp & 0xffff, env->a.qp.handle);
	}
	expect_no_cqe(&env->a.rcq);
}

TEST(rc_connected, test_unsignaled_requests_are_flushed_with_completions)
{
	post_bad(&env->a, 0);
	for (uint32_t i = 1; i < 5; i++)
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_SEND, .flags = 0);
	await_cqe(&env->a.scq, 0, PVRDMA_WC_LOC_PROT_ERR);
	expect_flushed(&env->a.scq, 1, 4);
}

TEST(rc_connected, test_posts_to_a_qp_in_error_are_flushed)
{
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	for (uint32_t i = 0; i < 200; i++) {
		t_send(&env->a, i, 0, 8);
		t_recv(&env->a, i, 0, 8);
		fg_run(env->host);
		expect_flushed(&env->a.scq, i, i);
		expect_flushed(&env->a.rcq, i, i);
	}
}

TEST(rc_connected, test_modify_to_error_flushes_both_queues)
{
	t_send(&env->a, 1, 0, 8); /* waits: b has no receive request */
	t_send(&env->a, 2, 0, 8);
	t_recv(&env->a, 3, 0, 8);
	fg_run(env->host);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_flushed(&env->a.scq, 1, 2);
	expect_flushed(&env->a.rcq, 3, 3);
	expect_no_event(env->g[0]);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

TEST(rc, test_receives_posted_in_init_are_flushed_by_error)
{
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	t_recv(&env->a, 1, 0, 8);
	expect_ok(fg_qp_to_err(&env->a.qp));
	await_cqe(&env->a.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc_connected, test_receiver_error_flushes_the_receivers_queues)
{
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	t_recv(&env->b, 2, 0, 8);
	t_recv(&env->b, 3, 0, 8);
	t_send(&env->a, 4, 0, 8);
	t_send(&env->a, 5, 0, 8);
	await_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_flushed(&env->b.rcq, 2, 3);
	expect_cqe(&env->a.scq, 4, PVRDMA_WC_REM_OP_ERR);
	expect_flushed(&env->a.scq, 5, 5);
}

TEST(rc_connected, test_remote_access_error_flushes_both_ends)
{
	struct fg_mr wrong = env->b.mr;

	wrong.rkey ^= 0x100;
	t_recv(&env->a, 1, 0, 8);
	t_recv(&env->b, 2, 0, 8);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &wrong, 0, 8);
	t_send(&env->a, 4, 0, 8);
	await_cqe(&env->a.scq, 3, PVRDMA_WC_REM_ACCESS_ERR);
	expect_flushed(&env->a.scq, 4, 4);
	expect_flushed(&env->a.rcq, 1, 1);
	expect_flushed(&env->b.rcq, 2, 2);
}

TEST(rc, test_flushes_do_not_overrun_a_small_cq_silently)
{
	struct fg_cq small;

	expect_ok(fg_cq_create(&env->g[0]->kernel, 16, &small));
	t_qp_replace(&env->a, (struct fg_qp_spec){ .scq = &small, .rcq = &small });
	fg_end_connect(&env->a, &env->b, NULL);
	recv_many(&env->a, 64);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_flushed(&small, 0, 15);
	assert_true(fg_events_count(env->g[0], PVR_EVENT_CQ_ERR, small.handle) == 1);
}

TEST(rc_connected, test_reset_discards_without_completions)
{
	t_send(&env->a, 1, 0, 8);
	t_recv(&env->a, 2, 0, 8);
	fg_run(env->host);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->a.rcq);
}

TEST(rc_connected, test_reset_of_a_qp_in_error_ends_its_flushing)
{
	expect_ok(fg_qp_to_err(&env->a.qp));
	recv_many(&env->a, 64);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->a.rcq);
}

TEST(rc_connected, test_error_of_one_qp_leaves_others_on_its_cqs_alone)
{
	struct fg_end other = env->a, peer;

	other.qp = t_qp_create(&env->a, (struct fg_qp_spec){ 0 });
	fg_end_open(&peer, env->g[1], PVR_QPT_RC);
	fg_end_connect(&other, &peer, NULL);
	post_bad(&env->a, 1);
	fg_run(env->host);
	other.scq.head = env->a.scq.head;
	expect_cqe(&other.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	t_ping_pong(env->host, &other, &peer);
}

/* 64 requests of a full queue, a turn's budget, and the queue's own size meet. */
TEST(guests, test_full_queues_are_flushed_completely)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = 128, .rq_wr = 128 };

	fg_end_open_spec(&env->a, &env->g[0]->kernel, &spec, 2);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->b, NULL);
	for (uint32_t i = 0; i < 128; i++) {
		t_send(&env->a, i, 0, 8);
		t_recv(&env->a, i, 0, 8);
	}
	fg_run(env->host);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_flushed(&env->a.scq, 0, 127);
	expect_flushed(&env->a.rcq, 0, 127);
}

static uint64_t lines_logged(const struct fg_host *host)
{
	return host->logged[PVR_LOG_WARN] + host->logged[PVR_LOG_ERR] + host->logged[PVR_LOG_INFO];
}

TEST(rc_connected, test_errors_are_logged_at_a_bounded_rate)
{
	uint64_t before = lines_logged(env->host);

	t_not_migrated(env, "a load is logged, too");
	for (int i = 0; i < 3000; i++) {
		post_bad(&env->a, 1);
		fg_run(env->host);
		fg_cq_drain(&env->a.scq);
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	}
	assert_in_range(lines_logged(env->host) - before, 1, 200);
}

TEST(rc_self, test_qp_connected_to_itself_that_fails_its_own_receive)
{
	struct pvrdma_cqe cqe;

	t_recv_sge(&env->a, 1, T_BAD_SGE);
	t_recv(&env->a, 2, 0, 8);
	t_send(&env->a, 3, 0, 8);
	t_send(&env->a, 4, 0, 8);
	await_cqe(&env->a.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_flushed(&env->a.rcq, 2, 2);
	for (uint32_t i = 3; i <= 4; i++) {
		assert_true(fg_cq_poll(&env->a.scq, &cqe));
		assert_int_equal(cqe.wr_id, i);
		assert_int_not_equal(cqe.status, PVRDMA_WC_SUCCESS);
	}
	expect_no_cqe(&env->a.scq);
}
