// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the result of each kind on one host, and to another host. */
#include "core/objects.h"

#include "faults.h"
#include "nics.h"

#define SIZE 64u
#define MESSAGES 40
#define ACK_TIMEOUT (4096ull << 14) /* ns, of fg_conn_default */

/* ------------------------------------------------------------------------ messages */

static uint32_t *word(const struct fg_end *end, uint32_t i)
{
	return (uint32_t *)(end->mr.va + i * SIZE);
}

static void post_sends(struct t_env *env)
{
	for (uint32_t i = 0; i < MESSAGES; i++) {
		*word(&env->a, i) = 1000 + i;
		t_recv(&env->b, i, i * SIZE, SIZE);
		t_send(&env->a, i, i * SIZE, SIZE);
	}
}

/* Each once, and in order. */
static void expect_sends(struct t_env *env)
{
	for (uint32_t i = 0; i < MESSAGES; i++) {
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, SIZE);
		assert_int_equal(*word(&env->b, i), 1000 + i);
	}
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
}

/* ---------------------------------------------------------------------------- drop */

TEST(rc_idle, test_dropped_messages_arrive_once_in_order)
{
	struct pvr_fault_info info;

	add(env, "drop=20%");
	post_sends(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_sends(env);
	info = last(env);
	assert_int_equal(info.messages, MESSAGES);
	assert_true(info.dropped >= MESSAGES / 20 && info.dropped <= MESSAGES / 2);
	expect_path(env, "fault");
}

/* The first try and one for each of the 7 retries, an ACK timeout apart. */
TEST(rc_idle, test_total_loss_ends_with_retry_exceeded)
{
	uint64_t begin = env->host->now;

	add(env, "drop=100%");
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	t_send(&env->a, 2, 0, SIZE);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(last(env).dropped, 1 + fg_conn_default.retry_cnt);
	assert_true(env->host->now - begin >= (1 + fg_conn_default.retry_cnt) * ACK_TIMEOUT);
}

TEST(uc_connected, test_dropped_uc_messages_complete_without_effect)
{
	for (uint32_t i = 0; i < 2; i++) {
		if (i)
			add(env, "drop=100%");
		t_recv(&env->b, i, 0, SIZE);
		t_send(&env->a, i, 0, SIZE);
		fg_settle(env->host, FG_SEC);
		expect_sent(&env->a, i);
	}
	expect_recv(&env->b.rcq, 0, SIZE);
	expect_no_cqe(&env->b.rcq);
	pvr_engine_clear_faults(env->host->engine, 0);
	t_send(&env->a, 2, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, SIZE);
}

/* --------------------------------------------------------------------------- delay */

TEST(rc_idle, test_delay_holds_messages_and_keeps_order)
{
	add(env, "delay=3ms");
	post_sends(env);
	fg_run(env->host);
	fg_advance(env->host, 3 * FG_MS - 1);
	expect_no_cqe(&env->b.rcq);
	/* All were posted before the first was held. */
	fg_advance(env->host, 1);
	expect_sends(env);
	assert_int_equal(last(env).delayed, MESSAGES);
}

TEST(rc_idle, test_varying_delay_stays_in_its_range)
{
	uint64_t begin, shortest = UINT64_MAX, longest = 0, ns;

	add(env, "delay=3ms+-2ms");
	for (uint32_t i = 0; i < MESSAGES; i++) {
		begin = env->host->now;
		t_recv(&env->b, i, 0, SIZE);
		t_send(&env->a, i, 0, SIZE);
		fg_settle(env->host, FG_SEC);
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, SIZE);
		ns = env->host->now - begin;
		shortest = ns < shortest ? ns : shortest;
		longest = ns > longest ? ns : longest;
	}
	assert_true(shortest >= FG_MS && longest <= 5 * FG_MS);
	assert_true(longest - shortest > FG_MS);
}

TEST(rc_idle, test_err_ends_a_delay)
{
	add(env, "delay=3ms");
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	fg_run(env->host);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
}

/* --------------------------------------------------------------------------- error */

static const struct {
	const char *label;
	uint32_t status;
	enum pvr_qp_state peer; /* its state afterwards */
	enum pvr_eqe_type event; /* at the peer, or PVR_EVENT_NUM */
} errors[] = {
	{ "LOC_LEN_ERR", PVRDMA_WC_LOC_LEN_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "LOC_QP_OP_ERR", PVRDMA_WC_LOC_QP_OP_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "LOC_PROT_ERR", PVRDMA_WC_LOC_PROT_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "REM_INV_REQ_ERR", PVRDMA_WC_REM_INV_REQ_ERR, PVR_QPS_ERR, PVR_EVENT_QP_REQ_ERR },
	{ "REM_ACCESS_ERR", PVRDMA_WC_REM_ACCESS_ERR, PVR_QPS_ERR, PVR_EVENT_QP_ACCESS_ERR },
	{ "REM_OP_ERR", PVRDMA_WC_REM_OP_ERR, PVR_QPS_ERR, PVR_EVENT_NUM },
	{ "RETRY_EXC_ERR", PVRDMA_WC_RETRY_EXC_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "RNR_RETRY_EXC_ERR", PVRDMA_WC_RNR_RETRY_EXC_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "GENERAL_ERR", PVRDMA_WC_GENERAL_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "LOC_EEC_OP_ERR", PVRDMA_WC_LOC_EEC_OP_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "MW_BIND_ERR", PVRDMA_WC_MW_BIND_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "BAD_RESP_ERR", PVRDMA_WC_BAD_RESP_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "LOC_ACCESS_ERR", PVRDMA_WC_LOC_ACCESS_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "LOC_RDD_VIOL_ERR", PVRDMA_WC_LOC_RDD_VIOL_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "REM_INV_RD_REQ_ERR", PVRDMA_WC_REM_INV_RD_REQ_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "REM_ABORT_ERR", PVRDMA_WC_REM_ABORT_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "INV_EECN_ERR", PVRDMA_WC_INV_EECN_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "INV_EEC_STATE_ERR", PVRDMA_WC_INV_EEC_STATE_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "FATAL_ERR", PVRDMA_WC_FATAL_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
	{ "RESP_TIMEOUT_ERR", PVRDMA_WC_RESP_TIMEOUT_ERR, PVR_QPS_RTS, PVR_EVENT_NUM },
};

TEST_CASES(rc_idle, test_error_after_two_messages, errors)
{
	char text[64];

	snprintf(text, sizeof(text), "from=vm1 error=%s,after=2", row->label);
	add(env, text);
	for (uint32_t i = 0; i < 4; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
	t_recv(&env->b, 9, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 0);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, row->status);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, row->peer);
	if (row->peer == PVR_QPS_ERR)
		expect_cqe(&env->b.rcq, 9, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(last(env).failed, 1);
	if (row->event != PVR_EVENT_NUM)
		expect_one_event(env->g[1], row->event, env->b.qp.handle);
}

/* A UC requester learns nothing of its responder. */
TEST(uc_connected, test_remote_error_has_no_effect_on_uc)
{
	add(env, "error=REM_ACCESS_ERR");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	assert_int_equal(last(env).failed, 0);
}

TEST(uc_connected, test_local_error_of_uc_leads_to_sqe)
{
	add(env, "error=LOC_PROT_ERR");
	t_send(&env->a, 1, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->a, PVR_QPS_SQE);
}

/* The failure as responder comes first. */
TEST(rc_self, test_queue_pair_that_is_its_own_peer_fails_once)
{
	add(env, "error=REM_ACCESS_ERR");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->a.mr, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_one_event(env->g[0], PVR_EVENT_QP_ACCESS_ERR, env->a.qp.handle);
}

/* ----------------------------------------------------------------------------- RNR */

TEST(rc_idle, test_every_second_send_gets_an_rnr_nak)
{
	uint64_t begin = env->host->now;

	add(env, "rnr=every:2");
	post_sends(env);
	fg_settle(env->host, FG_SEC);
	expect_sends(env);
	assert_int_equal(last(env).rnr, MESSAGES / 2);
	/* Each waits for the RNR timer of fg_conn_default, 0.64 ms. */
	assert_true(env->host->now - begin >= MESSAGES / 2 * 640 * FG_US);
}

TEST(rc, test_rnr_naks_without_end_exceed_the_rnr_retries)
{
	t_connect_with(env, rnr_retry, 3);
	add(env, "rnr=always");
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_true(last(env).rnr >= 4);
}

TEST(rc_idle, test_write_needs_no_receive)
{
	add(env, "rnr=always");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_written(&env->a, 1);
	assert_int_equal(last(env).rnr, 0);
}

/* -------------------------------------------------------------------- sequence errors */

/* The requester sends it again at once, without the ACK timeout. */
TEST(rc_idle, test_every_second_message_gets_a_sequence_nak)
{
	uint64_t begin = env->host->now;

	add(env, "from=vm1 nak=sequence,every=2");
	post_sends(env);
	fg_run(env->host);
	expect_sends(env);
	assert_int_equal(last(env).seq_naks, MESSAGES / 2);
	assert_int_equal(last(env).messages, MESSAGES);
	assert_int_equal(env->g[0]->adapter->stat[PVR_STAT_ACK_TIMEOUTS], 0);
	assert_int_equal(env->host->now, begin);
}

TEST(rc_idle, test_sequence_naks_without_end_exceed_the_retries)
{
	add(env, "from=vm1 nak=sequence");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(last(env).seq_naks, 1 + fg_conn_default.retry_cnt);
	assert_int_equal(env->g[0]->adapter->stat[PVR_STAT_RETRIES_EXCEEDED], 1);
}

TEST(rc, test_sequence_nak_without_a_retry_fails_the_request)
{
	t_connect_with(env, retry_cnt, 0);
	add(env, "from=vm1 nak=sequence,every=2");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
}

/* UC has no responses. */
TEST(uc_connected, test_sequence_nak_has_no_effect_on_uc)
{
	add(env, "nak=sequence");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	assert_int_equal(last(env).seq_naks, 0);
}

/* ---------------------------------------------------------------------------- rate */

/* 20 messages of 4096 bytes at 1 Gbit/s take 655 us; the last one is not held for its own. */
TEST(rc_idle, test_rate_holds_messages)
{
	uint64_t begin = env->host->now, ns;

	add(env, "rate=1Gbit");
	for (uint32_t i = 0; i < 20; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 4096);
	fg_settle(env->host, FG_SEC);
	for (uint32_t i = 0; i < 20; i++)
		expect_written(&env->a, i);
	ns = env->host->now - begin;
	assert_true(ns >= 500 * FG_US && ns <= 700 * FG_US);
	assert_true(last(env).delayed > 0);
}

/* --------------------------------------------------------------------- CQ overflow */

TEST(rc_idle, test_cq_overflow_fails_cq_and_queue_pair)
{
	add(env, "from=vm1 cq-overflow=after:1");
	for (uint32_t i = 0; i < 3; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 0);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(fg_events_pending(env->g[0]), 2);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_CQ_ERR, env->a.scq.handle), 1);
	assert_int_equal(last(env).failed, 1);
}

/* --------------------------------------------------------------- waits and other paths */

/* The responder's doorbell resumes a requester on the path of faults, too. */
TEST(rc_idle, test_wait_for_a_receive_ends_with_its_doorbell)
{
	add(env, "delay=1us");
	t_send(&env->a, 1, 0, SIZE);
	fg_run(env->host);
	fg_advance(env->host, 10 * FG_US);
	expect_no_cqe(&env->a.scq);
	t_recv(&env->b, 1, 0, SIZE);
	await_recv(&env->b.rcq, 1, SIZE);
	expect_sent(&env->a, 1);
}

TEST(rc_idle, test_drain_completes_a_delayed_message)
{
	const struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	add(env, "delay=1ms");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_SQD);
}

TEST(rc_idle, test_long_message_has_one_fault)
{
	struct fg_mr wide_a, wide_b;

	t_wide_mr(&env->a, 256, &wide_a);
	t_wide_mr(&env->b, 256, &wide_b);
	add(env, "delay=1ms");
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&wide_a, 0, 256 * 4096),
	       T_REMOTE(&wide_b, 0));
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
	fg_advance(env->host, FG_MS);
	expect_written(&env->a, 1);
	assert_int_equal(last(env).messages, 1);
}

/* The state is the guest's: without memory for it the requests wait. */
TEST(rc_idle, test_guest_at_its_memory_limit_waits)
{
	add(env, "from=vm1 delay=1us");
	t_leave_memory(env->g[0], 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	fg_advance(env->host, FG_SEC);
	expect_no_cqe(&env->a.scq);
	t_leave_memory(env->g[0], 1 << 20);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
}

TEST(rc_idle, test_destroyed_queue_pair_leaves_nothing)
{
	uint64_t charged;

	expect_ok(fg_qp_to_reset(&env->a.qp));
	charged = env->g[0]->adapter->charged;
	t_reconnect(env);
	add(env, "delay=1s");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	assert_true(env->g[0]->adapter->charged > charged);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_int_equal(env->g[0]->adapter->charged, charged);
}

/* ----------------------------------------------------------------------- other hosts */

T_SETUP_HOSTS(hosts, 2)
{
	hosts_connect(env, &env->a, &env->b, FG_END_PAGES);
}

static int t_setup_hosts_uc(void **state)
{
	const struct fg_wire_config config = { .hosts = 2 };
	struct t_env *env;

	fg_default_ext = PVR_EXT_UC;
	env = t_env_of_hosts(state, &config);
	fg_default_ext = 0;
	fg_wire_run(env->wire);
	hosts_open(env, &env->a, &env->b, PVR_QPT_UC, FG_END_PAGES);
	fg_end_connect(&env->a, &env->b, NULL);
	return 0;
}

TEST(hosts, test_dropped_messages_to_another_host_arrive_once_in_order)
{
	add(env, "to=host2 drop=20%");
	post_sends(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_sends(env);
	assert_int_equal(last(env).messages, MESSAGES);
	assert_true(last(env).dropped >= MESSAGES / 20 && last(env).dropped <= MESSAGES / 2);
	expect_path(env, "fault");
}

TEST(hosts, test_sequence_naks_to_another_host_keep_order)
{
	add(env, "to=host2 nak=sequence,every=3");
	post_sends(env);
	fg_settle(env->host, FG_SEC);
	expect_sends(env);
	assert_int_equal(last(env).seq_naks, MESSAGES / 3);
}

TEST(hosts, test_total_loss_to_another_host_ends_with_retry_exceeded)
{
	uint64_t begin = env->host->now;

	add(env, "drop=100%");
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	t_send(&env->a, 2, 0, SIZE);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(last(env).dropped, 1 + fg_conn_default.retry_cnt);
	assert_true(env->host->now - begin >= (1 + fg_conn_default.retry_cnt) * ACK_TIMEOUT);
}

TEST(hosts, test_delay_to_another_host_keeps_order)
{
	add(env, "delay=3ms");
	post_sends(env);
	fg_run(env->host);
	expect_no_cqe(&env->b.rcq);
	fg_settle(env->host, FG_SEC);
	expect_sends(env);
	assert_int_equal(last(env).delayed, MESSAGES);
}

TEST(hosts_uc, test_dropped_uc_messages_to_another_host_have_no_effect)
{
	add(env, "drop=50%");
	for (uint32_t i = 0; i < MESSAGES; i++) {
		t_recv(&env->b, i, 0, SIZE);
		t_send(&env->a, i, 0, SIZE);
	}
	fg_settle(env->host, FG_SEC);
	for (uint32_t i = 0; i < MESSAGES; i++)
		expect_sent(&env->a, i);
	assert_int_equal(last(env).messages, MESSAGES);
	assert_true(last(env).dropped > 0 && last(env).dropped < MESSAGES);
	assert_int_equal(fg_cq_pending(&env->b.rcq), MESSAGES - last(env).dropped);
}

static const struct {
	const char *label, *text;
	bool hits;
} far_matches[] = {
	{ "host", "to=host2 drop=100%", true },
	{ "adapter", "to=vm2 drop=100%", false },
	{ "from", "from=vm1 drop=100%", true },
};

TEST_CASES(hosts, test_messages_match_by_the_name_of_the_host, far_matches)
{
	add(env, row->text);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&env->a.scq), !row->hits);
}

/* Requests in flight complete; the first one behind them has the fault. */
TEST(hosts, test_fault_begins_while_requests_are_in_flight)
{
	hosts_hold(env);
	for (uint32_t i = 0; i < 8; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	assert_int_equal(t_device_qp(&env->a)->sq_inflight, 8);
	add(env, "error=GENERAL_ERR,after=1");
	for (uint32_t i = 8; i < 11; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_path(env, "fault");
	assert_int_equal(t_device_qp(&env->a)->sq_inflight, 8);
	hosts_release(env);
	for (uint32_t i = 0; i < 9; i++)
		expect_written(&env->a, i);
	expect_cqe(&env->a.scq, 9, PVRDMA_WC_GENERAL_ERR);
	expect_cqe(&env->a.scq, 10, PVRDMA_WC_WR_FLUSH_ERR);
}

/* One request at a time while there is a fault, many again afterwards. */
TEST(hosts, test_window_opens_after_the_fault)
{
	static const uint32_t in_flight[] = { 1, 8 };

	add(env, "error=GENERAL_ERR,after=1000");
	for (uint32_t round = 0; round < 2; round++) {
		hosts_hold(env);
		for (uint32_t i = 0; i < 8; i++)
			t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
		fg_run(env->host);
		assert_int_equal(t_device_qp(&env->a)->sq_inflight, in_flight[round]);
		hosts_release(env);
		for (uint32_t i = 0; i < 8; i++)
			expect_written(&env->a, i);
		pvr_engine_clear_faults(env->host->engine, 0);
	}
	expect_path(env, "pipe");
}

TEST(hosts, test_destroyed_queue_pair_to_another_host_leaves_nothing)
{
	uint64_t charged;

	expect_ok(fg_qp_to_reset(&env->a.qp));
	charged = env->g[0]->adapter->charged;
	t_reconnect(env);
	add(env, "drop=100%");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	assert_true(env->g[0]->adapter->charged > charged);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_int_equal(env->g[0]->adapter->charged, charged);
}

/* The NICs read the payload of each message from the guest's memory. */
TEST(nics, test_dropped_messages_by_rdma_nics_arrive_once)
{
	memset(env->a.mr.va, 0x5a, NICS_PAGES * PVR_PAGE_SIZE);
	memset(env->b.mr.va, 0, NICS_PAGES * PVR_PAGE_SIZE);
	add(env, "to=host2 drop=40% delay=1ms");
	for (uint32_t i = 0; i < 10; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, i * 2 * NICS_LEAST, &env->b.mr,
		       i * 2 * NICS_LEAST, 2 * NICS_LEAST);
	fg_settle(env->host, 100 * FG_SEC);
	for (uint32_t i = 0; i < 10; i++)
		expect_written(&env->a, i);
	nics_expect_bytes(&env->b, 0x5a);
	assert_int_equal(nics_out(env, 0), 0);
	assert_int_equal(last(env).messages, 10);
	assert_true(last(env).dropped > 0);
}
