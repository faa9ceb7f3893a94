// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receivers that are not ready, peers that do not answer, and how long one waits. */
#include "deaths.h"
#include "ends.h"

#define RNR_TIMER 12 /* of fg_conn_default */

/* IBTA vol. 1, 9.7.5.2.8, table 45, in ns. */
static const uint64_t rnr_ns[32] = {
	655360 * FG_US, 10 * FG_US,	20 * FG_US,	30 * FG_US,	40 * FG_US,
	60 * FG_US,	80 * FG_US,	120 * FG_US,	160 * FG_US,	240 * FG_US,
	320 * FG_US,	480 * FG_US,	640 * FG_US,	960 * FG_US,	1280 * FG_US,
	1920 * FG_US,	2560 * FG_US,	3840 * FG_US,	5120 * FG_US,	7680 * FG_US,
	10240 * FG_US,	15360 * FG_US,	20480 * FG_US,	30720 * FG_US,	40960 * FG_US,
	61440 * FG_US,	81920 * FG_US,	122880 * FG_US, 163840 * FG_US, 245760 * FG_US,
	327680 * FG_US, 491520 * FG_US,
};

static void connect_with(struct t_env *env, struct fg_conn conn)
{
	fg_end_connect(&env->a, &env->b, &conn);
	fg_run(env->host);
}

/* A SEND of a waits for a receive. */
T_SETUP(waiting, rc_idle)
{
	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->a.scq);
}

/* a: to a queue pair that does not exist. */
static void connect_to_nothing(struct t_env *env, struct fg_conn conn)
{
	expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, 0xabcdef));
}

static void expect_given_up(struct t_env *env)
{
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(waiting, test_without_a_receive_request_the_sender_waits)
{
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_true(pvr_engine_deadline(env->host->engine, 0) != UINT64_MAX);
	assert_true(fg_stats(env->g[1]).rnr_naks >= 1);
}

TEST(rc_idle, test_posting_a_receive_request_lets_the_message_in)
{
	t_send(&env->a, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	t_recv(&env->b, 3, 0, 8);
	t_recv(&env->b, 4, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 3, 8);
	expect_recv(&env->b.rcq, 4, 8);
	expect_no_timer(env->host);
}

TEST(waiting, test_receive_request_without_a_doorbell_is_found_by_the_retry)
{
	t_put_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST(rc, test_rnr_retry_0_fails_after_the_grace)
{
	connect_with(env, t_conn_rnr(0, T_RNR_LONGEST));
	t_send(&env->a, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_no_cqe(&env->a.scq);
	assert_in_range(fg_settle(env->host, 10 * FG_SEC), rnr_ns[T_RNR_LONGEST],
			rnr_ns[T_RNR_LONGEST] + FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	/* The responder has done nothing wrong. */
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_event(env->g[1]);
}

/* As with fio, whose queue pairs have no RNR retries: the sender is faster. */
TEST(rc, test_receives_in_the_grace_need_no_retry)
{
	connect_with(env, t_conn_rnr(0, RNR_TIMER));
	for (uint32_t i = 0; i < 20; i++) {
		t_send(&env->a, i, 0, 8);
		fg_settle(env->host, 3 * FG_MS / 4);
		expect_no_cqe(&env->a.scq);
		t_recv(&env->b, i, 0, 8);
		fg_settle(env->host, FG_SEC);
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 8);
	}
	expect_state(&env->a, PVR_QPS_RTS);
}

/* The kernel's CM sets this timer. A guest whose CPUs are busy posts its receive late. */
TEST(rc, test_guest_as_slow_as_its_rnr_timer_needs_no_retry)
{
	connect_with(env, t_conn_rnr(0, T_RNR_LONGEST));
	for (uint32_t i = 0; i < 3; i++) {
		t_send(&env->a, i, 0, 8);
		fg_settle(env->host, rnr_ns[T_RNR_LONGEST] - FG_MS);
		expect_no_cqe(&env->a.scq);
		t_recv(&env->b, i, 0, 8);
		fg_settle(env->host, FG_SEC);
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 8);
	}
	expect_state(&env->a, PVR_QPS_RTS);
}

TEST(rc, test_rnr_retry_7_waits_for_ever)
{
	connect_with(env, t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST));
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, 1000 * FG_SEC);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_RTS);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
}

/* Return: the time until a gives up. */
static uint64_t wait_for_rnr_error(struct t_env *env, uint8_t rnr_retry, uint8_t timer)
{
	uint64_t waited;

	connect_with(env, t_conn_rnr(rnr_retry, timer));
	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->a.scq);
	waited = fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	return waited;
}

TEST(rc, test_rnr_timer_is_that_of_the_table)
{
	for (uint8_t timer = 0; timer < COUNT(rnr_ns); timer++)
		/* Never less, and not much more. */
		assert_in_range(wait_for_rnr_error(env, 1, timer), rnr_ns[timer],
				2 * rnr_ns[timer] + FG_MS);
}

TEST(rc, test_rnr_retries_are_counted)
{
	const uint64_t one = rnr_ns[RNR_TIMER];

	for (uint8_t retries = 1; retries < 7; retries++)
		assert_in_range(wait_for_rnr_error(env, retries, RNR_TIMER), retries * one,
				(retries + 1) * one - 1);
}

TEST(rc, test_rnr_count_starts_anew_with_each_message)
{
	connect_with(env, t_conn_rnr(2, RNR_TIMER));
	for (uint32_t i = 0; i < 10; i++) {
		t_send(&env->a, i, 0, 8);
		fg_settle(env->host, rnr_ns[RNR_TIMER] + 1);
		expect_no_cqe(&env->a.scq);
		t_recv(&env->b, i, 0, 8);
		fg_settle(env->host, FG_SEC);
		expect_sent(&env->a, i);
	}
}

TEST(rc_idle, test_waiting_sender_does_not_hold_up_others)
{
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	t_ping_pong(env->host, &c, &d);
}

TEST(waiting, test_waiting_qp_can_be_destroyed)
{
	fg_end_close(&env->a);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, 10 * FG_SEC);
	expect_no_cqe(&env->b.rcq);
	expect_no_timer(env->host);
}

TEST(waiting, test_waited_for_qp_can_be_destroyed)
{
	fg_end_close(&env->b);
	expect_given_up(env);
}

TEST(rc, test_absent_peer_is_retried_and_then_given_up)
{
	uint64_t waited, one = 4096ull << fg_conn_default.timeout;

	connect_to_nothing(env, fg_conn_default);
	t_send(&env->a, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_no_cqe(&env->a.scq);
	waited = fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	/* A first try and retry_cnt more, each from one to four timeouts long (9.7.6.1.3). */
	assert_true(waited >= 8 * one);
	assert_true(waited <= 4 * 8 * one);
	assert_int_equal(fg_stats(env->g[0]).retries_exceeded, 1);
	assert_true(fg_stats(env->g[0]).ack_timeouts >= 7);
}

static const struct {
	const char *label;
	uint8_t timeout, retries;
} timeouts[] = {
	{ "the least", 1, 0 },	     { "short timeout, most retries", 1, 7 },
	{ "1 ms, 1 retry", 8, 1 },   { "67 ms, no retry", 14, 0 },
	{ "4 s, 3 retries", 20, 3 }, { "longest timeout, no retry", 31, 0 },
	{ "the most", 31, 7 },
};

TEST_CASES(rc, test_timeouts_and_retries_are_those_of_the_qp, timeouts)
{
	uint64_t least = (4096ull << row->timeout) * (row->retries + 1);

	connect_to_nothing(env, t_conn_ack(row->timeout, row->retries));
	t_send(&env->a, 1, 0, 8);
	assert_in_range(fg_settle(env->host, UINT64_MAX / 4), least, 4 * least);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(rc, test_timeout_0_never_gives_up)
{
	const struct fg_conn conn = t_conn_ack(0, 7);

	t_not_on_segment(env, "a lost packet is sent again by the timer only");
	expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, env->b.qp.qpn));
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_RTS);
	t_recv(&env->b, 2, 0, 8);
	expect_ok(fg_qp_connect(&env->b.qp, &conn, env->a.gid, env->a.qp.qpn));
	fg_settle(env->host, 10 * FG_SEC);
	expect_sent(&env->a, 1);
}

TEST(rc, test_peer_that_comes_in_time_gets_the_message)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	t_send(&env->a, 1, 0, 8);
	fg_advance(env->host, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	t_recv(&env->b, 2, 0, 8);
	expect_ok(fg_qp_connect(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	fg_settle(env->host, 10 * FG_SEC);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST(rc, test_unknown_gid_is_retried_and_then_given_up)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 9, 9, 9);
	expect_ok(fg_qp_connect(&env->a.qp, NULL, gid, 5));
	t_send(&env->a, 1, 0, 8);
	expect_given_up(env);
}

TEST(rc, test_peer_of_another_type_does_not_answer)
{
	struct fg_end ud;

	fg_end_open(&ud, env->g[1], PVR_QPT_UD);
	fg_end_ready(&ud);
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, ud.qp.qpn));
	t_recv(&ud, 2, 0, 100);
	t_send(&env->a, 1, 0, 8);
	expect_given_up(env);
	expect_no_cqe(&ud.rcq);
}

/* The result at a if b dies in the middle of a long transfer. */
TEST_CASES(guests, test_peer_dies_under_traffic, t_deaths)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvrdma_cqe cqe;
	uint32_t n = 0;

	fg_end_open_spec(&env->a, &env->g[0]->kernel, &spec, 256);
	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, 256);
	connect_with(env, fg_conn_default);
	for (uint32_t i = 0; i < 40; i++)
		t_rdma(&env->a, i % 2 ? PVRDMA_WR_RDMA_READ : PVRDMA_WR_RDMA_WRITE, i, 0,
		       &env->b.mr, 0, 1 << 20);
	pvr_engine_run(env->host->engine, 0);
	row->kill(env);
	fg_settle(env->host, 100 * FG_SEC);
	while (fg_cq_poll(&env->a.scq, &cqe)) {
		assert_int_equal(cqe.wr_id, n++);
		if (cqe.status != PVRDMA_WC_SUCCESS)
			break;
	}
	assert_int_equal(cqe.status, PVRDMA_WC_RETRY_EXC_ERR);
	while (fg_cq_poll(&env->a.scq, &cqe)) {
		assert_int_equal(cqe.wr_id, n++);
		assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(n, 40);
	expect_state(&env->a, PVR_QPS_ERR);
}

TEST(rc_idle, test_a_new_guest_takes_the_place_of_a_dead_one)
{
	t_ping_pong(env->host, &env->a, &env->b);
	t_unplug_peer(env);
	t_send(&env->a, 1, 0, 8);
	expect_given_up(env);

	env->g[1] = fg_guest_start(env->host, 2);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	connect_with(env, fg_conn_default);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_idle, test_own_adapter_reset_under_traffic)
{
	uint32_t tail;

	for (uint32_t i = 0; i < 40; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 60000);
	pvr_engine_run(env->host->engine, 0);
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
	tail = env->a.scq.ring->prod_tail;
	memset(env->b.buf.va, 0, env->b.buf.size);
	fg_settle(env->host, 10 * FG_SEC);
	assert_int_equal(env->a.scq.ring->prod_tail, tail);
	for (size_t i = 0; i < env->b.buf.size; i++)
		assert_int_equal(env->b.buf.va[i], 0);
	expect_no_timer(env->host);
	expect_ok(fg_guest_boot(env->g[0]));
}

TEST(rc, test_qp_without_a_receive_queue_is_never_ready)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvr_cmd_create_qp req;
	struct pvr_resp_create_qp resp;

	spec.pd = &env->b.pd;
	spec.scq = &env->b.scq;
	spec.rcq = &env->b.rcq;
	req = fg_qp_request(&spec);
	req.pdir_dma = env->b.qp.buf.pdir;
	req.max_recv_wr = req.max_recv_sge = 0;
	req.total_chunks = 1 + req.send_chunks;
	expect_ok(fg_cmd_destroy(env->g[1], PVR_CMD_DESTROY_QP, env->b.qp.handle));
	expect_ok(fg_create_qp(env->g[1], &req, &resp));
	env->b.qp.handle = resp.qp_handle;
	env->b.qp.qpn = resp.qpn;
	connect_with(env, t_conn_rnr(1, RNR_TIMER));
	env->b.qp.ring->rx.prod_tail = 5;
	fg_ring_recv(&env->b.qp);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
	t_write(&env->b, &env->a, 2);
	expect_ok(fg_qp_to_err(&env->b.qp));
	await_no_cqe(&env->b.rcq);
}

/* Many that wait differently long: each ends in its own time. */
TEST(rc, test_many_timers_expire_in_order)
{
	enum { N = 60 };
	static struct fg_qp qp[N];
	struct pvrdma_cqe cqe;
	uint64_t start;

	for (uint32_t i = 0; i < N; i++) {
		const struct fg_conn conn = t_conn_ack(1 + i * 7 % 20, 0);
		const struct fg_wr wr = { .wr_id = conn.timeout, .opcode = PVRDMA_WR_SEND };

		qp[i] = t_qp_create(&env->a, (struct fg_qp_spec){ .sq_wr = 2, .rq_wr = 2 });
		expect_ok(fg_qp_connect(&qp[i], &conn, env->b.gid, 0xabcde));
		assert_true(fg_post_send(&qp[i], &wr));
	}
	fg_run(env->host);
	for (uint32_t i = 0; i < N; i += 9) /* some are taken out of the middle */
		expect_ok(fg_qp_destroy(&qp[i]));
	start = env->host->now;
	for (uint32_t n = 0; n < N - 7;) {
		uint64_t last = 0;

		env->host->now = pvr_engine_deadline(env->host->engine, 0);
		fg_run(env->host);
		while (fg_cq_poll(&env->a.scq, &cqe)) {
			assert_int_equal(cqe.status, PVRDMA_WC_RETRY_EXC_ERR);
			assert_in_range(env->host->now - start, 4096ull << cqe.wr_id,
					4 * (4096ull << cqe.wr_id));
			assert_true(cqe.wr_id >= last);
			last = cqe.wr_id;
			n++;
		}
	}
	expect_no_timer(env->host);
}

TEST(rc, test_posting_a_receive_request_wakes_the_sender_at_once)
{
	t_one_host_only(env, "requesters of another host wait for their timer");
	connect_with(env, t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST));
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	t_recv(&env->b, 2, 0, 8);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	expect_no_timer(env->host);
}

TEST(rc, test_retry_count_starts_anew_with_each_message)
{
	t_not_on_segment(env, "a try takes the timeout exactly");
	connect_with(env, t_conn_ack(fg_conn_default.timeout, 2));
	for (uint32_t i = 0; i < 10; i++) {
		pvr_adapter_set_link(env->g[1]->adapter, false);
		t_write(&env->a, &env->b, i);
		fg_settle(env->host, 2 * (4096ull << fg_conn_default.timeout));
		expect_no_cqe(&env->a.scq);
		pvr_adapter_set_link(env->g[1]->adapter, true);
		fg_settle(env->host, FG_SEC);
		expect_written(&env->a, i);
	}
}

/* The responder is in the middle of a message that is never continued. */
TEST(rc_idle, test_requester_that_starts_anew_in_the_middle_of_a_message)
{
	const uint32_t len = 1 << 26;

	t_widen(&env->a, len);
	t_widen(&env->b, len);
	t_recv(&env->b, 1, 0, len);
	t_send(&env->a, 1, 0, len);
	fg_run_bounded(env->host, 1);
	expect_no_cqe(&env->b.rcq);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	t_send(&env->a, 1, 0, 8);
	expect_given_up(env);
	expect_no_cqe(&env->b.rcq);
	t_reconnect(env);
	t_recv(&env->b, 3, 0, len);
	t_send(&env->a, 2, 0, 8);
	await_recv(&env->b.rcq, 3, 8);
}
