// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the words of a rule, the messages that it matches, changes of the rules. */
#include "core/objects.h"

#include "faults.h"

#define SIZE 64u
#define MESSAGES 40
#define ACK_TIMEOUT (4096ull << 14) /* ns, of fg_conn_default */

/* -------------------------------------------------------------------------- words */

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
