// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: a port that goes down, a peer that stalls, NAKs that end a connection. */
#include "faults.h"
#include "rdma/path.h"

#define SIZE 64u
#define ACK_TIMEOUT (4096ull << 14) /* ns, of fg_conn_default */

static void write_b(struct t_env *env, uint32_t wr_id)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &env->b.mr, 0, SIZE);
}

static void write_a(struct t_env *env, uint32_t wr_id)
{
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &env->a.mr, 0, SIZE);
}

/* --------------------------------------------------------------------------------- NAKs */

static const struct {
	const char *label, *text;
	uint32_t status;
	enum pvr_eqe_type event; /* at the peer, or PVR_EVENT_NUM */
} naks[] = {
	{ "request", "from=vm1 nak=invalid-request,after=1", PVRDMA_WC_REM_INV_REQ_ERR,
	  PVR_EVENT_QP_REQ_ERR },
	{ "access", "from=vm1 nak=remote-access,after=1", PVRDMA_WC_REM_ACCESS_ERR,
	  PVR_EVENT_QP_ACCESS_ERR },
	{ "operation", "from=vm1 nak=remote-operational,after=1", PVRDMA_WC_REM_OP_ERR,
	  PVR_EVENT_NUM },
};

TEST_CASES(rc_connected, test_fatal_nak_ends_the_connection_at_both_ends, naks)
{
	add(env, row->text);
	t_recv(&env->b, 9, 0, SIZE);
	for (uint32_t i = 0; i < 3; i++)
		write_b(env, i);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 0);
	expect_cqe(&env->a.scq, 1, row->status);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_cqe(&env->b.rcq, 9, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	if (row->event != PVR_EVENT_NUM)
		expect_one_event(env->g[1], row->event, env->b.qp.handle);
	assert_int_equal(last(env).failed, 1);
}

/* ----------------------------------------------------------- errors of receive requests */

static const struct {
	const char *label;
	uint32_t status, nak;
} recv_errors[] = {
	{ "LOC_LEN_ERR", PVRDMA_WC_LOC_LEN_ERR, PVRDMA_WC_REM_INV_REQ_ERR },
	{ "LOC_QP_OP_ERR", PVRDMA_WC_LOC_QP_OP_ERR, PVRDMA_WC_REM_OP_ERR },
	{ "LOC_PROT_ERR", PVRDMA_WC_LOC_PROT_ERR, PVRDMA_WC_REM_OP_ERR },
	{ "LOC_ACCESS_ERR", PVRDMA_WC_LOC_ACCESS_ERR, PVRDMA_WC_REM_OP_ERR },
	{ "GENERAL_ERR", PVRDMA_WC_GENERAL_ERR, PVRDMA_WC_REM_OP_ERR },
	{ "FATAL_ERR", PVRDMA_WC_FATAL_ERR, PVRDMA_WC_REM_OP_ERR },
};

TEST_CASES(rc_connected, test_error_of_a_receive_request_ends_the_connection, recv_errors)
{
	char text[64];

	snprintf(text, sizeof(text), "from=vm1 recv-error=%s,after=1", row->label);
	add(env, text);
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, i, 0, SIZE);
		t_send(&env->a, i, 0, SIZE);
	}
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 0);
	expect_cqe(&env->a.scq, 1, row->nak);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_recv(&env->b.rcq, 0, SIZE);
	expect_cqe(&env->b.rcq, 1, row->status);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(last(env).failed, 1);
}

/* A write needs no receive request, and a missing one is an RNR NAK as ever. */
TEST(rc_connected, test_error_of_a_receive_request_needs_one)
{
	add(env, "from=vm1 recv-error=LOC_PROT_ERR");
	write_b(env, 1);
	fg_run(env->host);
	expect_written(&env->a, 1);
	t_send(&env->a, 2, 0, SIZE);
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
	t_recv(&env->b, 2, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_OP_ERR);
}

TEST(uc, test_error_of_a_receive_request_of_uc_fails_the_responder_alone)
{
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
	add(env, "recv-error=LOC_PROT_ERR");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	expect_cqe(&env->b.rcq, 7, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_ERR);
}

/* ----------------------------------------------------------------------------- port-down */

/* The port is up again before the retries of the queue pair are used up. */
TEST(rc_connected, test_request_is_executed_after_a_short_port_down)
{
	uint64_t begin = env->host->now;

	add(env, "from=vm1 port-down=100ms,after=1");
	for (uint32_t i = 0; i < 4; i++)
		write_b(env, i);
	fg_run(env->host);
	expect_written(&env->a, 0);
	expect_no_cqe(&env->a.scq);
	expect_one_event(env->g[0], PVR_EVENT_PORT_ERR, 1);
	expect_no_event(env->g[1]);
	fg_advance(env->host, 100 * FG_MS);
	expect_one_event(env->g[0], PVR_EVENT_PORT_ACTIVE, 1);
	fg_settle(env->host, FG_SEC);
	for (uint32_t i = 1; i < 4; i++)
		expect_written(&env->a, i);
	assert_true(env->host->now - begin >= 100 * FG_MS);
	assert_int_equal(last(env).port_downs, 1);
}

TEST(rc_connected, test_long_port_down_exceeds_the_retries)
{
	add(env, "from=vm1 port-down=2s");
	write_b(env, 1);
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(fg_events_pending(env->g[0]), 2);
	assert_true(env->g[0]->adapter->link_up);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_PORT_ACTIVE, 1), 1);
}

/* Both directions need the port: the requests of the peer are not answered. */
TEST(rc_connected, test_port_down_stops_the_requests_of_the_peer)
{
	add(env, "from=vm1 port-down=100ms");
	write_b(env, 1);
	fg_run(env->host);
	write_a(env, 2);
	fg_run(env->host);
	expect_no_cqe(&env->b.scq);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	expect_written(&env->b, 2);
	assert_int_equal(last(env).port_downs, 1);
}

TEST(ud_ready, test_datagrams_are_lost_while_the_port_is_down)
{
	add(env, "port-down=10ms,after=1");
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, i, 0, GRH + SIZE);
		t_send_ud(&env->a, &env->b, i, 0, SIZE);
	}
	fg_run(env->host);
	for (uint32_t i = 0; i < 3; i++)
		expect_sent(&env->a, i);
	expect_recv(&env->b.rcq, 0, GRH + SIZE);
	expect_no_cqe(&env->b.rcq);
	fg_advance(env->host, 10 * FG_MS);
	t_send_ud(&env->a, &env->b, 3, 0, SIZE);
	t_run_ud(env->host);
	expect_sent(&env->a, 3);
	expect_recv(&env->b.rcq, 1, GRH + SIZE);
}

/* The state that the operator sets is the last word. */
TEST(rc_connected, test_operator_ends_a_port_down)
{
	add(env, "from=vm1 port-down=1s");
	write_b(env, 1);
	fg_run(env->host);
	pvr_adapter_set_link(env->g[0]->adapter, true);
	fg_settle(env->host, 200 * FG_MS);
	expect_written(&env->a, 1);
	pvr_adapter_set_link(env->g[0]->adapter, false);
	fg_advance(env->host, 2 * FG_SEC);
	assert_false(env->g[0]->adapter->link_up);
}

/* -------------------------------------------------------------------------------- stall */

TEST(rc_connected, test_stalled_peer_does_not_answer)
{
	uint64_t begin = env->host->now;

	add(env, "from=vm1 to=vm2 stall=peer,after=2");
	for (uint32_t i = 0; i < 4; i++)
		write_b(env, i);
	fg_settle(env->host, 10 * FG_SEC);
	expect_written(&env->a, 0);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(last(env).stalled, 1 + fg_conn_default.retry_cnt);
	assert_true(env->host->now - begin >= (1 + fg_conn_default.retry_cnt) * ACK_TIMEOUT);
}

/* Its requests neither complete nor fail, however long the stall is. */
TEST(rc_connected, test_stalled_peer_sends_nothing)
{
	add(env, "from=vm1 to=vm2 stall=peer");
	write_a(env, 1);
	fg_advance(env->host, 20 * FG_SEC);
	expect_no_cqe(&env->b.scq);
	expect_state(&env->b, PVR_QPS_RTS);
	pvr_engine_clear_faults(env->host->engine, 0);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->b, 1);
}

/* The messages before the stall are those of the connection. */
TEST(rc_connected, test_peer_sends_until_it_stalls)
{
	add(env, "from=vm1 to=vm2 stall=peer,after=1");
	write_a(env, 1);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->b, 1);
	write_b(env, 2);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
	write_a(env, 3);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->b, 3);
	write_b(env, 4);
	fg_run(env->host);
	write_a(env, 5);
	fg_advance(env->host, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.scq);
}

TEST(rc_connected, test_end_of_a_stall_before_the_retries_end)
{
	add(env, "from=vm1 to=vm2 stall=peer");
	write_b(env, 1);
	fg_advance(env->host, 2 * ACK_TIMEOUT);
	pvr_engine_clear_faults(env->host->engine, 0);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
}

TEST(rc_connected, test_other_queue_pairs_do_not_stall)
{
	struct fg_end c, d;
	char text[64];

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	snprintf(text, sizeof(text), "from=vm1 qp=%u stall=peer", env->a.qp.qpn);
	add(env, text);
	t_rdma(&d, PVRDMA_WR_RDMA_WRITE, 1, 0, &c.mr, 0, SIZE);
	write_a(env, 1);
	fg_run(env->host);
	expect_written(&d, 1);
	expect_no_cqe(&env->b.scq);
	fg_end_close(&c);
	fg_end_close(&d);
}

TEST(ud_ready, test_stalled_peer_receives_no_datagrams)
{
	add(env, "to=vm2 stall=peer,after=1");
	for (uint32_t i = 0; i < 2; i++) {
		t_recv(&env->b, i, 0, GRH + SIZE);
		t_send_ud(&env->a, &env->b, i, 0, SIZE);
	}
	t_run_ud(env->host);
	expect_sent(&env->a, 0);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 0, GRH + SIZE);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(last(env).stalled, 1);
}

TEST(uc, test_stalled_peer_receives_nothing_by_uc)
{
	fg_end_connect(&env->a, &env->b, NULL);
	add(env, "to=vm2 stall=peer");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	expect_no_cqe(&env->b.rcq);
}
