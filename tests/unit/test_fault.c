// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the words of a rule, and what a guest sees of each kind on one host. */
#include "core/objects.h"

#include "faults.h"
#include "nics.h"

#define SIZE 64u
#define MESSAGES 40
#define ACK_TIMEOUT (4096ull << 14) /* ns, of fg_conn_default */

/* ------------------------------------------------------------------------- a rule */

static const struct {
	const char *label, *text;
	struct pvr_fault_rule rule;
} good[] = {
	{ "drop", "drop=1%", { .drop_ppm = 10000 } },
	{ "drop_decimals", "drop=0.0125%", { .drop_ppm = 125 } },
	{ "drop_all", "drop=100%", { .drop_ppm = 1000000 } },
	{ "reorder", "reorder=2%", { .reorder_ppm = 20000 } },
	{ "duplicate", "duplicate=0.5%", { .duplicate_ppm = 5000 } },
	{ "delay", "delay=5ms", { .delay_ns = 5000000 } },
	{ "delay_varies", "delay=5ms+-200us", { .delay_ns = 5000000, .jitter_ns = 200000 } },
	{ "delay_varies_sign", "delay=1s±1s", { .delay_ns = 1000000000, .jitter_ns = 1000000000 } },
	{ "error", "error=REM_ACCESS_ERR", { .status = PVRDMA_WC_REM_ACCESS_ERR } },
	{ "error_after",
	  "error=RETRY_EXC_ERR,after=1000",
	  { .status = PVRDMA_WC_RETRY_EXC_ERR, .after = 1000 } },
	{ "recv_error",
	  "recv-error=LOC_PROT_ERR,after=5",
	  { .recv_status = PVRDMA_WC_LOC_PROT_ERR, .after = 5 } },
	{ "rnr_every", "rnr=every:100", { .rnr_every = 100 } },
	{ "rnr_always", "rnr=always", { .rnr_always = true } },
	{ "nak_every", "nak=sequence,every=3", { .nak_every = 3 } },
	{ "nak_always", "nak=sequence", { .nak_always = true } },
	{ "nak_access", "nak=remote-access", { .status = PVRDMA_WC_REM_ACCESS_ERR } },
	{ "nak_request",
	  "nak=invalid-request,after=7",
	  { .status = PVRDMA_WC_REM_INV_REQ_ERR, .after = 7 } },
	{ "nak_operation", "nak=remote-operational", { .status = PVRDMA_WC_REM_OP_ERR } },
	{ "corrupt", "corrupt=1e-6", { .corrupt = 1e-6 } },
	{ "corrupt_decimal", "corrupt=0.001", { .corrupt = 0.001 } },
	{ "port_down", "port-down=2s", { .port_down_ns = 2000000000 } },
	{ "port_down_after", "port-down=5ms,after=3", { .port_down_ns = 5000000, .after = 3 } },
	{ "stall", "stall=peer", { .after = 0 } },
	{ "stall_after", "stall=peer,after=3", { .after = 3 } },
	{ "rate", "rate=25Gbit", { .rate = 25000000000 } },
	{ "rate_low", "rate=1kbit", { .rate = 1000 } },
	{ "cq_overflow", "cq-overflow=after:12", { .after = 12 } },
	{ "all",
	  "fabric=f  from=vm1 to=vm2 qp=17 seed=18446744073709551615 drop=50% delay=1us",
	  { .match = { "f", "vm1", "vm2", 17 },
	    .seed = UINT64_MAX,
	    .drop_ppm = 500000,
	    .delay_ns = 1000 } },
};

TEST_CASES(host, test_rule_is_read, good)
{
	const struct pvr_fault_rule *expected = &row->rule;
	struct pvr_fault_rule rule;
	struct pvr_error err;

	assert_true(pvr_fault_parse(&rule, row->text, &err));
	assert_true(pvr_fault_match_equal(&rule.match, &expected->match));
	assert_int_equal(rule.seed, expected->seed ? expected->seed : 1);
	assert_int_equal(rule.drop_ppm, expected->drop_ppm);
	assert_int_equal(rule.reorder_ppm, expected->reorder_ppm);
	assert_int_equal(rule.duplicate_ppm, expected->duplicate_ppm);
	assert_int_equal(rule.delay_ns, expected->delay_ns);
	assert_int_equal(rule.jitter_ns, expected->jitter_ns);
	assert_int_equal(rule.status, expected->status);
	assert_int_equal(rule.recv_status, expected->recv_status);
	assert_int_equal(rule.after, expected->after);
	assert_int_equal(rule.rnr_every, expected->rnr_every);
	assert_int_equal(rule.rnr_always, expected->rnr_always);
	assert_int_equal(rule.nak_every, expected->nak_every);
	assert_int_equal(rule.nak_always, expected->nak_always);
	assert_int_equal(rule.rate, expected->rate);
	assert_float_equal(rule.corrupt, expected->corrupt, 1e-12);
	assert_int_equal(rule.port_down_ns, expected->port_down_ns);
	assert_string_equal(rule.text, row->text);
}

static const struct {
	const char *label, *text, *complaint;
} bad[] = {
	{ "empty", "",
	  "no fault is given: there are drop, delay, reorder, duplicate, corrupt, rate, "
	  "rnr, nak, error, recv-error, port-down, cq-overflow and stall" },
	{ "only_match", "from=vm1", "no fault is given" },
	{ "no_value", "drop", "'drop' is not KEY=VALUE" },
	{ "unknown", "lose=1%", "unknown word 'lose': there are fabric, from, to, qp, seed, drop" },
	{ "twice", "drop=1% drop=2%", "drop is given twice" },
	{ "all_and_delay", "drop=100% delay=1ms", "drop=100% leaves no message" },
	{ "all_and_error", "error=REM_OP_ERR drop=100.0%", "drop=100% leaves no message" },
	{ "error_and_overflow", "error=REM_OP_ERR cq-overflow=after:2", "stall a fault has one" },
	{ "rnr", "rnr=never", "rnr 'never' is neither every:NUMBER nor always" },
	{ "rnr_zero", "rnr=every:0", "is neither every:NUMBER" },
	{ "rnr_rest", "rnr=every:5x", "is neither every:NUMBER" },
	{ "nak", "nak=maybe", "nak 'maybe' is none of sequence, sequence,every" },
	{ "nak_empty", "nak=", "is none of sequence" },
	{ "nak_zero", "nak=sequence,every=0", "is none of sequence" },
	{ "nak_rest", "nak=sequence,every=5x", "is none of sequence" },
	{ "nak_huge", "nak=sequence,every=99999999999999999999", "is none of sequence" },
	{ "nak_after", "nak=sequence,after=5", "is none of sequence" },
	{ "nak_access_every", "nak=remote-access,every=2", "is not KIND or KIND,after=NUMBER" },
	{ "nak_access_and_error", "nak=remote-access error=GENERAL_ERR",
	  "both end the connection" },
	{ "error_and_nak_access", "error=GENERAL_ERR nak=remote-access",
	  "both end the connection" },
	{ "port_down", "port-down=2", "port-down '2' is not TIME or TIME,after=NUMBER" },
	{ "port_down_zero", "port-down=0s", "is not TIME" },
	{ "port_down_long", "port-down=61s", "is not TIME" },
	{ "port_down_rest", "port-down=1s,before=2", "is not TIME" },
	{ "corrupt_zero", "corrupt=0", "corrupt '0' is not the probability of a bit error" },
	{ "corrupt_one", "corrupt=1", "from 1e-15 to 0.01, such as 1e-6" },
	{ "corrupt_negative", "corrupt=-1e-6", "is not the probability" },
	{ "corrupt_small", "corrupt=1e-16", "is not the probability" },
	{ "corrupt_percent", "corrupt=1%", "is not the probability" },
	{ "corrupt_hex", "corrupt=0x1p-20", "is not the probability" },
	{ "corrupt_nan", "corrupt=nan", "is not the probability" },
	{ "corrupt_empty", "corrupt=", "is not the probability" },
	{ "stall", "stall=me", "stall 'me' is neither peer nor peer,after=NUMBER" },
	{ "stall_empty", "stall=", "is neither peer" },
	{ "stall_rest", "stall=peer,after=x", "is neither peer" },
	{ "stall_and_error", "stall=peer error=GENERAL_ERR", "stall a fault has one" },
	{ "port_down_and_stall", "port-down=1s stall=peer", "stall a fault has one" },
	{ "nak_and_error", "nak=sequence error=GENERAL_ERR", "leaves no message for the other" },
	{ "nak_and_drop", "nak=sequence drop=1%", "nak=sequence leaves no message" },
	{ "rate_unit", "rate=1000", "rate '1000' is not a number with kbit, Mbit or Gbit" },
	{ "rate_zero", "rate=0Gbit", "is not a number with kbit" },
	{ "rate_large", "rate=1001Gbit", "is not a number with kbit" },
	{ "rate_huge", "rate=99999999999999999999Gbit", "is not a number with kbit" },
	{ "rate_bytes", "rate=1GByte", "is not a number with kbit" },
	{ "overflow", "cq-overflow=5", "cq-overflow '5' is not after:NUMBER" },
	{ "overflow_rest", "cq-overflow=after:5x", "is not after:NUMBER" },
	{ "qp_alone", "qp=3 drop=1%", "qp needs from" },
	{ "qp_zero", "from=a qp=0 drop=1%", "qp '0' is not a number from 1 to 16777215" },
	{ "qp_large", "from=a qp=16777216 drop=1%", "qp '16777216' is not a number" },
	{ "qp_text", "from=a qp=x drop=1%", "qp 'x' is not a number" },
	{ "seed", "seed=-1 drop=1%", "seed '-1' is not a number" },
	{ "seed_large", "seed=18446744073709551616 drop=1%", "is not a number" },
	{ "name_empty", "from= drop=1%", "from '' is not a name of 1 to 63 characters" },
	{ "name_long",
	  "to=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa drop=1%",
	  "is not a name of 1 to 63" },
	{ "percent_sign", "drop=1", "drop '1' is not a percentage from 0.0001% to 100%" },
	{ "percent_zero", "drop=0%", "is not a percentage" },
	{ "percent_small", "drop=0.00001%", "is not a percentage" },
	{ "percent_large", "drop=100.0001%", "is not a percentage" },
	{ "percent_huge", "drop=101%", "is not a percentage" },
	{ "percent_negative", "drop=-1%", "is not a percentage" },
	{ "percent_point", "drop=1.%", "is not a percentage" },
	{ "reorder", "reorder=0%", "reorder '0%' is not a percentage from 0.0001% to 100%" },
	{ "reorder_text", "reorder=yes", "reorder 'yes' is not a percentage" },
	{ "duplicate", "duplicate=2", "duplicate '2' is not a percentage" },
	{ "all_and_duplicate", "drop=100% duplicate=1%", "drop=100% leaves no message" },
	{ "delay_unit", "delay=5", "delay '5' is not a time of up to 60s" },
	{ "delay_zero", "delay=0ms", "is not a time" },
	{ "delay_long", "delay=61s", "is not a time" },
	{ "delay_huge", "delay=99999999999999999999s", "is not a time" },
	{ "delay_rest", "delay=5msx", "is not a time" },
	{ "delay_sign", "delay=5ms-2ms", "is not a time" },
	{ "delay_jitter", "delay=1ms+-2ms", "the variation is longer than the delay" },
	{ "status", "error=BAD_LUCK", "error 'BAD_LUCK' is no status of a send request" },
	{ "status_success", "error=SUCCESS", "is no status" },
	{ "recv_status", "recv-error=REM_ACCESS_ERR",
	  "recv-error 'REM_ACCESS_ERR' is none of LOC_" },
	{ "recv_after", "recv-error=LOC_LEN_ERR,every=2", "is not STATUS or STATUS,after=NUMBER" },
	{ "recv_and_error", "recv-error=LOC_LEN_ERR error=GENERAL_ERR", "stall a fault has one" },
	{ "after", "error=REM_OP_ERR,after=", "is not STATUS or STATUS,after=NUMBER" },
	{ "after_text", "error=REM_OP_ERR,before=1", "is not STATUS or STATUS,after=NUMBER" },
	{ "after_rest", "error=REM_OP_ERR,after=1x", "is not STATUS or STATUS,after=NUMBER" },
};

TEST_CASES(host, test_bad_rule_is_refused, bad)
{
	struct pvr_fault_rule rule;
	struct pvr_error err;

	assert_false(pvr_fault_parse(&rule, row->text, &err));
	assert_non_null(strstr(err.text, row->complaint));
	assert_null(strchr(err.text, '\n'));
}

TEST(host, test_rule_of_too_many_characters_is_refused)
{
	char text[PVR_FAULT_TEXT_MAX + 1];
	struct pvr_fault_rule rule;
	struct pvr_error err;

	memset(text, 'x', PVR_FAULT_TEXT_MAX);
	text[PVR_FAULT_TEXT_MAX] = '\0';
	assert_false(pvr_fault_parse(&rule, text, &err));
	assert_string_equal(err.text, "the fault has 256 characters, the limit is 255");
}

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

/* ------------------------------------------------------------------------ matching */

static const struct {
	const char *label, *text;
	bool hits;
} matches[] = {
	{ "from", "from=vm1 drop=100%", true },
	{ "from_other", "from=vm2 drop=100%", false },
	{ "to", "to=vm2 drop=100%", true },
	{ "to_other", "to=vm1 drop=100%", false },
	{ "fabric", "fabric=default drop=100%", true },
	{ "fabric_other", "fabric=blue drop=100%", false },
	{ "both", "from=vm1 to=vm2 drop=100%", true },
	{ "reverse", "from=vm2 to=vm1 drop=100%", false },
	{ "qp_other", "from=vm1 qp=16777215 drop=100%", false },
};

TEST_CASES(rc_idle, test_only_matching_messages_are_dropped, matches)
{
	add(env, row->text);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&env->a.scq), !row->hits);
	expect_path(env, row->hits ? "fault" : "local");
}

TEST(rc_idle, test_only_the_named_queue_pair_has_the_fault)
{
	struct fg_end c, d;
	char text[64];

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	snprintf(text, sizeof(text), "from=vm1 qp=%u drop=100%%", env->a.qp.qpn);
	add(env, text);
	t_rdma(&c, PVRDMA_WR_RDMA_WRITE, 1, 0, &d.mr, 0, SIZE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_written(&c, 1);
	expect_no_cqe(&env->a.scq);
	fg_end_close(&c);
	fg_end_close(&d);
}

/* ------------------------------------------------------------------- changes of rules */

TEST(rc_idle, test_cleared_rule_ends_the_fault)
{
	uint32_t drop, delay;

	drop = add(env, "to=vm2 drop=100%");
	delay = add(env, "from=vm1 delay=1ms");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	fg_advance(env->host, FG_MS);
	expect_no_cqe(&env->a.scq);
	/* The lost message is sent again after its ACK timeout. */
	assert_int_equal(pvr_engine_clear_faults(env->host->engine, drop), 1);
	assert_int_equal(pvr_engine_clear_faults(env->host->engine, drop), 0);
	fg_advance(env->host, ACK_TIMEOUT);
	expect_written(&env->a, 1);
	expect_path(env, "fault");
	assert_int_equal(last(env).id, delay);
	assert_int_equal(pvr_engine_clear_faults(env->host->engine, 0), 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, SIZE);
	fg_run(env->host);
	expect_written(&env->a, 2);
	expect_path(env, "local");
	assert_null(t_device_qp(&env->a)->fault_sq);
}

/* A rule that is added does not change the count of another one. */
TEST(rc_idle, test_added_rule_leaves_the_count_of_another)
{
	add(env, "from=vm1 error=GENERAL_ERR,after=3");
	for (uint32_t i = 0; i < 3; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
		fg_run(env->host);
		expect_written(&env->a, i);
	}
	add(env, "to=vm2 delay=1ms");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_GENERAL_ERR);
}

/* A new connection counts from 0. */
TEST(rc_idle, test_reset_forgets_the_count)
{
	add(env, "from=vm1 error=GENERAL_ERR,after=1");
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 2; i++)
			t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
		fg_settle(env->host, FG_SEC);
		expect_written(&env->a, 0);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_GENERAL_ERR);
		t_reconnect(env);
	}
}

TEST(rc_idle, test_contradicting_rules_are_refused)
{
	struct pvr_fault_rule rule;
	struct pvr_error err;
	uint32_t first = add(env, "from=vm1 drop=1% delay=1ms"), id;

	assert_true(pvr_fault_parse(&rule, "from=vm1 drop=2%", &err));
	assert_int_equal(pvr_engine_add_fault(env->host->engine, &rule, &id), -EEXIST);
	assert_int_equal(id, first);
	add(env, "from=vm1 error=GENERAL_ERR,after=5");
	add(env, "from=vm2 drop=2%");
}

TEST(rc_idle, test_number_of_rules_has_a_limit)
{
	struct pvr_fault_rule rule;
	struct pvr_error err;
	char text[64];
	uint32_t id;

	for (uint32_t i = 0; i <= PVR_FAULTS_MAX; i++) {
		snprintf(text, sizeof(text), "from=vm1 qp=%u drop=1%%", i + 1);
		assert_true(pvr_fault_parse(&rule, text, &err));
		assert_int_equal(pvr_engine_add_fault(env->host->engine, &rule, &id),
				 i < PVR_FAULTS_MAX ? 0 : -ENOSPC);
	}
}

/* The numbers of tries that get lost, as a text. */
static void record_losses(struct t_env *env, const char *text, char *losses)
{
	uint64_t before;

	add(env, text);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		before = last(env).dropped;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
		fg_settle(env->host, FG_SEC);
		expect_written(&env->a, i);
		losses[i] = (char)('0' + (last(env).dropped - before) % 10);
	}
	losses[MESSAGES] = '\0';
	pvr_engine_clear_faults(env->host->engine, 0);
	fg_run(env->host);
}

TEST(rc_idle, test_seed_repeats_the_losses)
{
	char first[MESSAGES + 1], second[MESSAGES + 1], other[MESSAGES + 1];

	record_losses(env, "seed=5 drop=30%", first);
	t_reconnect(env);
	record_losses(env, "seed=5 drop=30%", second);
	t_reconnect(env);
	record_losses(env, "seed=6 drop=30%", other);
	assert_string_equal(first, second);
	assert_string_not_equal(first, other);
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

/* No request to another host has it as result, so only the requester fails. */
TEST(hosts, test_error_of_the_responder_at_another_host_fails_the_requester)
{
	add(env, "error=REM_OP_ERR,after=2");
	for (uint32_t i = 0; i < 4; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, SIZE);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 0);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_OP_ERR);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
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
