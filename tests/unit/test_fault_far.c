// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: errors and stalls of a peer at another host, which its pvrdmad agrees to. */
#include "faults.h"
#include "rdma/path.h"

TEST_EXT(PVR_EXT_UC | PVR_EXT_ATOMIC_WRITE | PVR_EXT_FLUSH)

#define SIZE 64u
#define LONG 200000u /* of several fragments */
#define FOREVER 7 /* rnr_retry */

T_SETUP_HOSTS(hosts, 2)
{
	hosts_connect(env, &env->a, &env->b, (LONG + 4095) / 4096);
}

T_SETUP_HOSTS(hosts_uc, 2)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_UC, FG_END_PAGES);
	fg_end_connect(&env->a, &env->b, NULL);
	fg_wire_run(env->wire);
}

T_SETUP_HOSTS(hosts_ud, 2)
{
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
}

/* The daemon of b does not allow faults. */
T_SETUP_HOSTS(refusing, 2, .old = true)
{
	hosts_connect(env, &env->a, &env->b, FG_END_PAGES);
}

T_SETUP_HOSTS(refusing_ud, 2, .old = true)
{
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
}

static void write_b(struct t_env *env, uint32_t wr_id)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &env->b.mr, 0, SIZE);
}

static void write_a(struct t_env *env, uint32_t wr_id)
{
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &env->a.mr, 0, SIZE);
}

/* -------------------------------------------------------------------- errors of requests */

static const struct {
	const char *label;
	uint32_t opcode, len;
} requests[] = {
	{ "send", PVRDMA_WR_SEND, SIZE },
	{ "send_empty", PVRDMA_WR_SEND, 0 },
	{ "send_long", PVRDMA_WR_SEND, LONG },
	{ "write", PVRDMA_WR_RDMA_WRITE, SIZE },
	{ "write_empty", PVRDMA_WR_RDMA_WRITE, 0 },
	{ "write_long", PVRDMA_WR_RDMA_WRITE, LONG },
	{ "write_imm", PVRDMA_WR_RDMA_WRITE_WITH_IMM, SIZE },
	{ "read", PVRDMA_WR_RDMA_READ, SIZE },
	{ "read_empty", PVRDMA_WR_RDMA_READ, 0 },
	{ "read_long", PVRDMA_WR_RDMA_READ, LONG },
	{ "compare_swap", PVRDMA_WR_ATOMIC_CMP_AND_SWP, 8 },
	{ "fetch_add", PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 8 },
	{ "atomic_write", PVR_WR_ATOMIC_WRITE, 0 },
	{ "flush", PVR_WR_FLUSH, 0 },
};

static const struct {
	const char *text;
	uint32_t status;
	enum pvr_eqe_type event; /* of the responder, or PVR_EVENT_NUM */
} naks[] = {
	{ "error=REM_INV_REQ_ERR,after=1", PVRDMA_WC_REM_INV_REQ_ERR, PVR_EVENT_QP_REQ_ERR },
	{ "nak=remote-access,after=1", PVRDMA_WC_REM_ACCESS_ERR, PVR_EVENT_QP_ACCESS_ERR },
	{ "error=REM_OP_ERR,after=1", PVRDMA_WC_REM_OP_ERR, PVR_EVENT_NUM },
};

static void expect_nak(struct t_env *env, uint32_t opcode, uint32_t len, size_t nak)
{
	const struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, len);

	add(env, naks[nak].text);
	t_recv(&env->b, 9, 0, SIZE);
	write_b(env, 1);
	t_post(&env->a, .wr_id = 2, .opcode = opcode, .sge = &sge, .num_sge = len != 0,
	       .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey);
	write_b(env, 3);
	fg_settle(env->host, 10 * FG_SEC);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, naks[nak].status);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	/* The receive request was not used. */
	expect_cqe(&env->b.rcq, 9, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	if (naks[nak].event != PVR_EVENT_NUM)
		expect_one_event(env->g[1], naks[nak].event, env->b.qp.handle);
	assert_int_equal(last(env).failed, 1);
	assert_int_equal(last(env).refused, 0);
}

TEST_CASES(hosts, test_invalid_request_fails_both_ends_of_two_hosts, requests)
{
	expect_nak(env, row->opcode, row->len, 0);
}

TEST_CASES(hosts, test_access_error_fails_both_ends_of_two_hosts, requests)
{
	expect_nak(env, row->opcode, row->len, 1);
}

TEST_CASES(hosts, test_operational_error_fails_both_ends_of_two_hosts, requests)
{
	expect_nak(env, row->opcode, row->len, 2);
}

TEST(hosts, test_error_by_rdma_nics_fails_both_ends)
{
	fg_wire_verbs(env->wire, 0, 1, true);
	expect_nak(env, PVRDMA_WR_RDMA_WRITE, LONG, 2);
}

/* The NAK is lost with its connection: the responder repeats it. */
TEST(hosts, test_nak_of_a_fault_is_repeated_after_a_lost_connection)
{
	add(env, "error=REM_OP_ERR");
	fg_wire_hold(env->wire, 1, 0, true);
	write_b(env, 1);
	fg_wire_run(env->wire);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_no_cqe(&env->a.scq);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_OP_ERR);
	assert_int_equal(last(env).failed, 1);
}

/* ----------------------------------------------------------- errors of receive requests */

static const struct {
	const char *label, *text;
	uint32_t status, nak, opcode, len;
} recv_errors[] = {
	{ "LOC_LEN_ERR", "recv-error=LOC_LEN_ERR,after=1", PVRDMA_WC_LOC_LEN_ERR,
	  PVRDMA_WC_REM_INV_REQ_ERR, PVRDMA_WR_SEND, SIZE },
	{ "LOC_QP_OP_ERR", "recv-error=LOC_QP_OP_ERR,after=1", PVRDMA_WC_LOC_QP_OP_ERR,
	  PVRDMA_WC_REM_OP_ERR, PVRDMA_WR_SEND, SIZE },
	{ "LOC_PROT_ERR", "recv-error=LOC_PROT_ERR,after=1", PVRDMA_WC_LOC_PROT_ERR,
	  PVRDMA_WC_REM_OP_ERR, PVRDMA_WR_SEND, SIZE },
	{ "LOC_ACCESS_ERR", "recv-error=LOC_ACCESS_ERR,after=1", PVRDMA_WC_LOC_ACCESS_ERR,
	  PVRDMA_WC_REM_OP_ERR, PVRDMA_WR_SEND, SIZE },
	{ "GENERAL_ERR", "recv-error=GENERAL_ERR,after=1", PVRDMA_WC_GENERAL_ERR,
	  PVRDMA_WC_REM_OP_ERR, PVRDMA_WR_SEND, SIZE },
	{ "FATAL_ERR", "recv-error=FATAL_ERR,after=1", PVRDMA_WC_FATAL_ERR, PVRDMA_WC_REM_OP_ERR,
	  PVRDMA_WR_SEND, SIZE },
	{ "empty", "recv-error=LOC_LEN_ERR,after=1", PVRDMA_WC_LOC_LEN_ERR,
	  PVRDMA_WC_REM_INV_REQ_ERR, PVRDMA_WR_SEND, 0 },
	{ "long", "recv-error=LOC_PROT_ERR,after=1", PVRDMA_WC_LOC_PROT_ERR, PVRDMA_WC_REM_OP_ERR,
	  PVRDMA_WR_SEND, LONG },
	{ "imm", "recv-error=LOC_PROT_ERR,after=1", PVRDMA_WC_LOC_PROT_ERR, PVRDMA_WC_REM_OP_ERR,
	  PVRDMA_WR_SEND_WITH_IMM, SIZE },
	{ "write_imm", "recv-error=LOC_LEN_ERR,after=1", PVRDMA_WC_LOC_LEN_ERR,
	  PVRDMA_WC_REM_INV_REQ_ERR, PVRDMA_WR_RDMA_WRITE_WITH_IMM, SIZE },
};

TEST_CASES(hosts, test_error_of_a_receive_request_at_another_host, recv_errors)
{
	const struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, row->len);

	add(env, row->text);
	for (uint32_t i = 0; i < 3; i++)
		t_recv(&env->b, i, 0, LONG);
	t_send(&env->a, 0, 0, SIZE);
	t_post(&env->a, .wr_id = 1, .opcode = row->opcode, .sge = &sge, .num_sge = row->len != 0,
	       .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey);
	t_send(&env->a, 2, 0, SIZE);
	fg_settle(env->host, 10 * FG_SEC);
	expect_sent(&env->a, 0);
	expect_cqe(&env->a.scq, 1, row->nak);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_recv(&env->b.rcq, 0, SIZE);
	expect_cqe(&env->b.rcq, 1, row->status);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(last(env).failed, 1);
}

/* A WRITE needs no receive request, and a missing one is an RNR NAK as ever. */
TEST(hosts, test_error_of_a_receive_request_at_another_host_needs_one)
{
	add(env, "recv-error=LOC_PROT_ERR");
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
	assert_int_equal(last(env).failed, 1);
}

TEST(hosts_uc, test_error_of_a_receive_request_of_uc_at_another_host_fails_the_responder)
{
	add(env, "recv-error=LOC_PROT_ERR");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	expect_cqe(&env->b.rcq, 7, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(last(env).failed, 1);
}

TEST(hosts_ud, test_error_of_a_receive_request_of_ud_at_another_host_fails_the_receiver)
{
	add(env, "recv-error=LOC_LEN_ERR,after=1");
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, i, 0, GRH + SIZE);
		t_send_ud(&env->a, &env->b, i, 0, SIZE);
	}
	t_run_ud(env->host);
	for (uint32_t i = 0; i < 3; i++)
		expect_sent(&env->a, i);
	expect_recv(&env->b.rcq, 0, GRH + SIZE);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_LEN_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_ERR);
}

/* A receiver with another Q_Key does not take the datagram, and does not fail. */
TEST(hosts_ud, test_error_of_a_receive_request_of_ud_needs_the_key_of_the_receiver)
{
	struct pvrdma_av av;

	add(env, "recv-error=LOC_LEN_ERR");
	t_recv(&env->b, 1, 0, GRH + SIZE);
	av = fg_av(&env->a.pd, env->b.gid, 0);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&env->a.mr, 0, SIZE),
	       T_UD(&av, &env->b), .remote_qkey = FG_QKEY ^ 1);
	t_run_ud(env->host);
	expect_sent(&env->a, 1);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->b, PVR_QPS_RTS);
}

/* --------------------------------------------------------- a host that allows no faults */

TEST(refusing, test_nak_that_the_other_host_refuses_fails_the_requester_alone)
{
	add(env, "error=REM_ACCESS_ERR,after=1");
	for (uint32_t i = 0; i < 3; i++)
		write_b(env, i);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 0);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_event(env->g[1]);
	assert_int_equal(last(env).failed, 1);
	assert_int_equal(last(env).refused, 1);
}

TEST(refusing, test_receive_error_that_the_other_host_refuses_does_not_happen)
{
	add(env, "recv-error=LOC_PROT_ERR");
	for (uint32_t i = 0; i < 2; i++) {
		t_recv(&env->b, i, 0, SIZE);
		t_send(&env->a, i, 0, SIZE);
	}
	fg_settle(env->host, FG_SEC);
	for (uint32_t i = 0; i < 2; i++) {
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, SIZE);
	}
	assert_int_equal(last(env).failed, 0);
	assert_int_equal(last(env).refused, 2);
}

TEST(refusing_ud, test_receive_error_of_ud_that_the_other_host_refuses_does_not_happen)
{
	add(env, "recv-error=LOC_PROT_ERR");
	t_recv(&env->b, 1, 0, GRH + SIZE);
	t_send_ud(&env->a, &env->b, 1, 0, SIZE);
	t_run_ud(env->host);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 1, GRH + SIZE);
}

/* ----------------------------------------------------------------------- port and stall */

TEST(hosts, test_port_down_before_a_request_to_another_host)
{
	add(env, "to=host2 port-down=100ms,after=1");
	write_b(env, 1);
	write_b(env, 2);
	fg_run(env->host);
	expect_written(&env->a, 1);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, 10 * FG_SEC);
	expect_written(&env->a, 2);
}

TEST(hosts, test_stalled_peer_at_another_host_does_not_answer)
{
	add(env, "to=host2 stall=peer,after=1");
	write_b(env, 1);
	write_b(env, 2);
	fg_settle(env->host, 100 * FG_SEC);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
}

static const struct {
	const char *label;
	uint32_t opcode, len;
} of_the_peer[] = {
	{ "write", PVRDMA_WR_RDMA_WRITE, SIZE },
	{ "write_long", PVRDMA_WR_RDMA_WRITE, LONG },
	{ "read_long", PVRDMA_WR_RDMA_READ, LONG },
	{ "fetch_add", PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 8 },
};

/* Its requests neither complete nor fail, however long the stall is, and have no effect. */
TEST_CASES(hosts, test_requests_of_a_stalled_peer_at_another_host_wait, of_the_peer)
{
	const struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, row->len);

	memset(env->a.buf.va, 0, SIZE);
	memset(env->b.buf.va, 1, SIZE);
	add(env, "to=host2 stall=peer");
	t_post(&env->b, .wr_id = 1, .opcode = row->opcode, .sge = &sge, .num_sge = 1,
	       .remote_addr = env->a.mr.start, .rkey = env->a.mr.rkey, .compare_add = 1);
	fg_advance(env->host, 20 * FG_SEC);
	expect_no_cqe(&env->b.scq);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(*(uint32_t *)env->a.buf.va, 0);
	pvr_engine_clear_faults(env->host->engine, 0);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->b.scq, 1, PVRDMA_WC_SUCCESS);
}

/* The messages before the stall are those of the connection. */
TEST(hosts, test_peer_at_another_host_sends_until_it_stalls)
{
	add(env, "to=host2 stall=peer,after=1");
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

TEST(hosts_uc, test_messages_of_a_stalled_peer_of_uc_at_another_host_are_lost)
{
	add(env, "to=host2 stall=peer");
	t_recv(&env->a, 1, 0, SIZE);
	t_send(&env->b, 1, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->b, 1);
	expect_no_cqe(&env->a.rcq);
	pvr_engine_clear_faults(env->host->engine, 0);
	t_send(&env->b, 2, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->b, 2);
	expect_recv(&env->a.rcq, 1, SIZE);
}

/* Its daemon has no wait for pages: the requests get RNR NAKs. */
TEST(refusing, test_requests_of_a_stalled_peer_with_an_old_daemon_get_rnr_naks)
{
	fg_qp_to_reset(&env->a.qp);
	fg_qp_to_reset(&env->b.qp);
	t_connect_with(env, rnr_retry, FOREVER);
	add(env, "to=host2 stall=peer");
	write_a(env, 1);
	fg_advance(env->host, 5 * FG_SEC);
	expect_no_cqe(&env->b.scq);
	pvr_engine_clear_faults(env->host->engine, 0);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->b, 1);
}

TEST(hosts, test_end_of_the_queue_pair_during_a_stall_leaves_nothing)
{
	add(env, "to=host2 stall=peer");
	write_a(env, 1);
	fg_run(env->host);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_null(t_device_qp(&env->a)->fault_sq);
}
