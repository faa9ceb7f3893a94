// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Limits of adapters and fabrics, and weights (rdma/shaper.h). */
#include "core/bucket.h"
#include "core/objects.h"
#include "faults.h"

TEST_EXT(PVR_EXT_UC | PVR_EXT_RESIZE)

#define DEPTH 256u /* requests that a send queue holds */
#define PAGES 64u
#define LENGTH (PAGES * PVR_PAGE_SIZE) /* 256 KiB: one fragment without limits */
#define STEP FG_MS /* the guest posts this often */
/* 2 % of a second, of which the burst is a half. */
#define LEAST(n) ((n)*98 / 100)
#define MOST(n) ((n)*102 / 100)

static void limit(struct fg_guest *g, uint64_t rate, uint64_t messages)
{
	const struct pvr_qos qos = { .rate = rate, .messages = messages };

	assert_int_equal(pvr_adapter_set_qos(g->adapter, &qos), 0);
}

static void limit_fabric(struct t_env *env, uint64_t rate, uint64_t messages)
{
	const struct pvr_qos qos = { .rate = rate, .messages = messages };

	assert_int_equal(pvr_engine_set_fabric_qos(env->host->engine, "default", &qos), 0);
}

static void weigh(struct fg_guest *g, uint32_t weight)
{
	const struct pvr_qos qos = { .weight = weight };

	assert_int_equal(pvr_adapter_set_qos(g->adapter, &qos), 0);
}

static uint64_t sent_bytes(struct fg_guest *g)
{
	return fg_stats(g).tx_bytes;
}

static uint64_t sent_messages(struct fg_guest *g)
{
	return fg_stats(g).tx_messages;
}

/* Fills the send queue with unsignaled requests. */
static void fill(struct fg_end *from, const struct fg_end *to, enum pvrdma_wr_opcode op,
		 uint32_t len)
{
	const struct pvrdma_av av = fg_av(&from->pd, to->gid, 0);
	const struct fg_wr wr = {
		.opcode = op,
		T_SGE(&from->mr, 0, len),
		T_REMOTE(&to->mr, 0),
	};
	const struct fg_wr datagram = {
		.opcode = op,
		T_SGE(&from->mr, 0, len),
		T_UD(&av, to),
	};
	bool posted = false;

	while (fg_put_send(&from->qp, op == PVRDMA_WR_SEND ? &datagram : &wr))
		posted = true;
	if (posted)
		fg_ring_send(&from->qp);
}

/* The clock advances by @ns, from timer to timer. */
static void pass(struct fg_host *host, uint64_t ns)
{
	uint64_t passed = fg_settle(host, ns);

	if (passed < ns)
		fg_advance(host, ns - passed);
}

static void keep_full(struct t_env *env, enum pvrdma_wr_opcode op, uint32_t len, uint64_t ns)
{
	uint64_t end = env->host->now + ns;

	while (env->host->now < end) {
		fill(&env->a, &env->b, op, len);
		pass(env->host, STEP);
	}
}

static void open_pair(struct t_env *env, enum pvr_qp_type type)
{
	t_open_connected(env, &(struct fg_qp_spec){ .type = type, .sq_wr = DEPTH }, PAGES);
}

T_SETUP(deep, guests)
{
	open_pair(env, PVR_QPT_RC);
}

/* -------------------------------------------------------------------------- a limit */

static const struct rate_case {
	const char *label;
	uint64_t rate;
	uint32_t len;
	enum pvrdma_wr_opcode op;
} rates[] = {
	{ "1 MB/s, long writes", 1000000, LENGTH, PVRDMA_WR_RDMA_WRITE },
	{ "1 MB/s, short writes", 1000000, 512, PVRDMA_WR_RDMA_WRITE },
	{ "12.5 MB/s, long writes", 12500000, LENGTH, PVRDMA_WR_RDMA_WRITE },
	{ "12.5 MB/s, long reads", 12500000, LENGTH, PVRDMA_WR_RDMA_READ },
	{ "333.3 MB/s, long writes", 333333333, LENGTH, PVRDMA_WR_RDMA_WRITE },
	{ "333.3 MB/s, pages", 333333333, PVR_PAGE_SIZE, PVRDMA_WR_RDMA_WRITE },
};

/* A completed message counts whole, so one more may be in progress at each end. */
TEST_CASES(deep, test_rate_is_exact_over_a_second, rates)
{
	uint64_t before, bytes;

	limit(env->g[0], row->rate, 0);
	before = sent_bytes(env->g[0]);
	keep_full(env, row->op, row->len, FG_SEC);
	bytes = sent_bytes(env->g[0]) - before;
	assert_in_range(bytes, LEAST(row->rate) - row->len, MOST(row->rate) + row->len);
}

static const struct t_case message_rates[] = {
	T_CASE(1),
	T_CASE(100),
	T_CASE(1000),
	T_CASE(99999),
};

TEST_CASES(deep, test_messages_are_exact_over_a_second, message_rates)
{
	uint64_t messages;

	limit(env->g[0], 0, row->value);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 8, FG_SEC);
	messages = sent_messages(env->g[0]);
	assert_in_range(messages, LEAST(row->value), MOST(row->value) + 1);
}

TEST(deep, test_lower_limit_of_two_holds)
{
	limit(env->g[0], 1000000, 10);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 512, FG_SEC);
	assert_in_range(sent_messages(env->g[0]), 10, 12);
	limit(env->g[0], 51200, 100000);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 512, FG_SEC);
	assert_in_range(sent_messages(env->g[0]), 10 + 98, 12 + 102 + 8);
}

TEST(guests, test_rate_of_unreliable_connections_is_exact)
{
	open_pair(env, PVR_QPT_UC);
	limit(env->g[0], 1000000, 0);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 4096, FG_SEC);
	assert_in_range(sent_bytes(env->g[0]), LEAST(1000000) - 4096, MOST(1000000) + 4096);
}

TEST(ud_ready, test_rate_of_datagrams_is_exact)
{
	limit(env->g[0], 1000000, 0);
	keep_full(env, PVRDMA_WR_SEND, 1000, FG_SEC);
	assert_in_range(sent_bytes(env->g[0]), LEAST(1000000), MOST(1000000) + 4000);
}

/* A rate of 4,096 bytes per ms: a message of 256 KiB moves in parts of a page. */
TEST(deep, test_long_message_moves_in_parts)
{
	t_not_on_segment(env, "the wire sends packets of the path MTU");
	fg_fill(env->a.mr.va, LENGTH, 1);
	limit(env->g[0], 4096000, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LENGTH);
	pass(env->host, 31 * FG_MS);
	assert_in_range(fg_mismatch(env->b.mr.va, LENGTH, 1), 30 * 4096, 33 * 4096);
	await_no_cqe(&env->a.scq);
	pass(env->host, 34 * FG_MS);
	expect_written(&env->a, 1);
	assert_int_equal(fg_mismatch(env->b.mr.va, LENGTH, 1), LENGTH);
}

/* ----------------------------------------------------------------------------- bursts */

TEST(deep, test_idle_adapter_saves_its_burst)
{
	const struct pvr_qos qos = { .rate = 1000000, .burst = 128 * 512 };

	assert_int_equal(pvr_adapter_set_qos(env->g[0]->adapter, &qos), 0);
	fg_advance(env->host, 10 * FG_SEC);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 512);
	fg_run(env->host);
	/* And the quantum after the last saved byte. */
	assert_in_range(sent_messages(env->g[0]), 128, 128 + 8);
}

/*
 * A quantum of 1 ms has 4096 bytes here, and no time passes for another one. Between two hosts, the
 * window of the path may end it before.
 */
TEST(deep, test_quantum_of_a_queue_pair_with_a_fault_ends_at_the_limit)
{
	add(env, "from=vm1 error=GENERAL_ERR,after=1000");
	limit(env->g[0], 1000000, 0);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 512);
	fg_run(env->host);
	if (env->wire || env->segment)
		assert_in_range(sent_bytes(env->g[0]), 512, 4096);
	else
		assert_int_equal(sent_bytes(env->g[0]), 4096);
}

TEST(deep, test_default_burst_is_ten_milliseconds)
{
	limit(env->g[0], 1000000, 0);
	fg_advance(env->host, 10 * FG_SEC);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 500);
	fg_run(env->host);
	assert_in_range(sent_messages(env->g[0]), 20, 20 + 9);
}

/* -------------------------------------------------------------------------- the wait */

static uint32_t runs(struct fg_host *host, uint64_t ns)
{
	uint64_t end = host->now + ns, deadline;
	uint32_t n = 0;

	while ((deadline = pvr_engine_deadline(host->engine, 0)) <= end) {
		host->now = deadline > host->now ? deadline : host->now + 1;
		fg_run(host);
		n++;
	}
	host->now = end;
	return n;
}

TEST(deep, test_waiting_adapter_has_only_a_timer)
{
	t_one_host_only(env, "it counts the runs of one host");
	limit(env->g[0], 0, 100);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	assert_false(pvr_engine_run(env->host->engine, 0));
	/* One for each message. */
	assert_in_range(runs(env->host, FG_SEC), 98, 102);
}

TEST(deep, test_doorbells_do_not_end_the_wait)
{
	limit(env->g[0], 0, 1);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), 1);
	for (int i = 0; i < 100; i++) {
		fg_ring_send(&env->a.qp);
		fg_run(env->host);
	}
	assert_int_equal(sent_messages(env->g[0]), 1);
}

TEST(deep, test_wait_is_counted)
{
	struct pvr_adapter_stats stats;

	t_one_host_only(env, "a request in flight may wait once more");
	limit(env->g[0], 0, 1);
	t_write(&env->a, &env->b, 1);
	t_write(&env->a, &env->b, 2);
	pass(env->host, 2 * FG_SEC);
	stats = fg_stats(env->g[0]);
	assert_int_equal(stats.qos_waits, 1);
	assert_in_range(stats.qos_wait_ns, 989 * FG_MS, FG_SEC);
	assert_int_equal(fg_stats(env->g[1]).qos_waits, 0);
}

/* The peer's own traffic has no limit. */
TEST(deep, test_limit_of_a_neighbor_delays_nobody_else)
{
	limit(env->g[0], 0, 1);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fill(&env->b, &env->a, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), 1);
	assert_int_equal(sent_messages(env->g[1]), DEPTH);
}

/* a waits for a receive of b, whose own requests wait for its limit. */
TEST(deep, test_limit_of_a_responder_does_not_delay_its_requesters)
{
	t_one_host_only(env, "a responder of another host sends no message when a receive comes");
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	limit(env->g[1], 0, 1);
	fill(&env->b, &env->a, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	t_recv(&env->b, 2, 0, 8);
	await_sent(&env->a, 1);
	assert_int_equal(sent_messages(env->g[1]), 1);
}

TEST(deep, test_flush_does_not_wait)
{
	uint32_t flushed;

	limit(env->g[0], 0, 1);
	for (uint64_t i = 0; i < 10; i++)
		t_write(&env->a, &env->b, i);
	fg_run(env->host);
	expect_written(&env->a, 0);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	for (flushed = 0; fg_cq_pending(&env->a.scq); flushed++)
		expect_cqe(&env->a.scq, flushed + 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(flushed, 9);
}

/* --------------------------------------------------------------------- ways around it */

TEST(deep, test_resizing_a_cq_does_not_exceed_the_limit)
{
	limit(env->g[0], 0, 1);
	for (uint32_t i = 0; i < 20; i++) {
		fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
		expect_ok(fg_cq_resize(&env->a.rcq, FG_END_CQE << (i & 1)));
	}
	assert_in_range(sent_messages(env->g[0]), 0, 2);
}

/* The last datagrams of a QP do not wait, but are paid for. */
TEST(ud_ready, test_destroyed_qps_do_not_exceed_the_limit)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UD };
	struct fg_end end;
	uint32_t i;

	t_one_host_only(env, "datagrams to other hosts linger");
	limit(env->g[0], 0, 10);
	for (i = 0; i < 50; i++) {
		fg_end_open_spec(&end, &env->g[0]->kernel, &spec, 1);
		fg_end_ready(&end);
		fill(&end, &env->b, PVRDMA_WR_SEND, 8);
		fg_end_close(&end);
	}
	assert_in_range(sent_messages(env->g[0]), 1, 64 + 2);
}

/* ----------------------------------------------------------------------------- fabrics */

TEST(deep, test_adapters_of_a_fabric_share_its_limit)
{
	uint64_t a, b;

	t_one_host_only(env, "a limit is one of a host");
	limit_fabric(env, 10000000, 0);
	for (int i = 0; i < 1000; i++) {
		fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, LENGTH);
		fill(&env->b, &env->a, PVRDMA_WR_RDMA_WRITE, 4096);
		pass(env->host, STEP);
	}
	a = sent_bytes(env->g[0]);
	b = sent_bytes(env->g[1]);
	assert_in_range(a + b, LEAST(10000000) - LENGTH, MOST(10000000) + LENGTH);
	assert_in_range(a, b * 95 / 100 - LENGTH, b * 105 / 100 + LENGTH);
}

TEST(deep, test_limit_of_an_adapter_holds_in_a_fabric_with_one)
{
	t_one_host_only(env, "a limit is one of a host");
	limit_fabric(env, 10000000, 0);
	limit(env->g[0], 1000000, 0);
	for (int i = 0; i < 1000; i++) {
		fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 4096);
		fill(&env->b, &env->a, PVRDMA_WR_RDMA_WRITE, 4096);
		pass(env->host, STEP);
	}
	assert_in_range(sent_bytes(env->g[0]), LEAST(1000000) - 4096, MOST(1000000) + 4096);
	assert_in_range(sent_bytes(env->g[1]), LEAST(9000000) - 4096, MOST(9000000) + 8192);
}

TEST(guests, test_limit_of_a_fabric_holds_for_a_new_adapter)
{
	struct fg_end c, d;
	struct fg_guest *g;

	t_one_host_only(env, "a limit is one of a host");
	limit_fabric(env, 0, 1);
	g = fg_guest_start(env->host, 3);
	t_open_pair(&c, g, &d, env->g[1]);
	t_write(&c, &d, 1);
	t_write(&c, &d, 2);
	fg_run(env->host);
	assert_int_equal(sent_messages(g), 1);
	fg_end_close(&c);
	fg_end_close(&d);
	fg_guest_destroy(g);
}

TEST(guests, test_limit_of_another_fabric_does_not_count)
{
	const struct pvr_qos qos = { .messages = 1 };
	struct pvr_qos got;

	t_one_host_only(env, "a limit is one of a host");
	assert_int_equal(pvr_engine_set_fabric_qos(env->host->engine, "other", &qos), 0);
	assert_true(pvr_engine_get_fabric_qos(env->host->engine, "other", &got));
	assert_int_equal(got.messages, 1);
	assert_false(pvr_engine_get_fabric_qos(env->host->engine, "default", &got));
	open_pair(env, PVR_QPT_RC);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), DEPTH);
}

/* ----------------------------------------------------------------------------- changes */

TEST(deep, test_removed_limit_ends_the_wait)
{
	limit(env->g[0], 0, 1);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	limit(env->g[0], 0, 0);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), DEPTH);
	assert_null(t_device_qp(&env->a)->adapter->shaper);
}

TEST(deep, test_removed_limit_of_a_fabric_ends_the_wait)
{
	t_one_host_only(env, "a limit is one of a host");
	limit_fabric(env, 0, 1);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	limit_fabric(env, 0, 0);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), DEPTH);
	assert_null(t_device_qp(&env->a)->adapter->shaper);
}

TEST(deep, test_higher_limit_holds_at_once)
{
	limit(env->g[0], 0, 1);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 8, FG_SEC);
	limit(env->g[0], 0, 1000);
	keep_full(env, PVRDMA_WR_RDMA_WRITE, 8, FG_SEC);
	assert_in_range(sent_messages(env->g[0]), 981, 1023);
}

TEST(deep, test_reset_of_a_waiting_adapter)
{
	limit(env->g[0], 0, 1);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	pvr_adapter_reset(env->g[0]->adapter);
	pass(env->host, 2 * FG_SEC);
	assert_false(pvr_engine_run(env->host->engine, 0));
	assert_int_equal(sent_messages(env->g[0]), 1);
}

/* ----------------------------------------------------------------------------- weights */

static const struct weight_case {
	const char *label;
	uint32_t a, b;
} weights[] = {
	{ "100 and 100", 100, 100 },
	{ "300 and 100", 300, 100 },
	{ "100 and 50", 100, 50 },
	{ "10 and 1000", 10, 1000 },
};

/* More than a run of the worker executes. */
T_SETUP(deepest, guests)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = 16 * DEPTH };

	t_open_connected(env, &spec, 1);
}

TEST_CASES(deepest, test_shares_are_as_weights, weights)
{
	uint64_t a, b, due;

	t_one_host_only(env, "weights are those of one worker");
	weigh(env->g[0], row->a);
	weigh(env->g[1], row->b);
	for (int i = 0; i < 200; i++) {
		fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
		fill(&env->b, &env->a, PVRDMA_WR_RDMA_WRITE, 8);
		pvr_engine_run(env->host->engine, 0);
	}
	a = sent_messages(env->g[0]);
	b = sent_messages(env->g[1]);
	due = (a + b) * row->a / (row->a + row->b);
	assert_in_range(a, due * 95 / 100 - 64, due * 105 / 100 + 64);
}

TEST(deep, test_low_weight_does_not_slow_an_adapter_alone)
{
	weigh(env->g[0], PVR_QOS_WEIGHT_MIN);
	fill(&env->a, &env->b, PVRDMA_WR_RDMA_WRITE, 8);
	fg_run(env->host);
	assert_int_equal(sent_messages(env->g[0]), DEPTH);
}

/* ----------------------------------------------------------------------------- buckets */

/* 3 units per second: no unit takes a whole number of nanoseconds. */
TEST(host, test_bucket_loses_nothing_by_rounding)
{
	struct pvr_bucket bucket = { .rate = 3 };

	for (int i = 0; i < 3000; i++)
		pvr_bucket_take(&bucket, 0, 1);
	assert_int_equal(bucket.next, 1000 * FG_SEC);
	for (int i = 0; i < 2999; i++)
		pvr_bucket_give_back(&bucket, 1);
	assert_int_equal(bucket.next, FG_SEC / 3);
	pvr_bucket_give_back(&bucket, 1);
	assert_int_equal(bucket.next, 0);
	assert_int_equal(bucket.rest, 0);
}

TEST(host, test_bucket_saves_up_to_its_depth)
{
	struct pvr_bucket bucket = { .rate = 1000, .depth = 5 * FG_MS };

	assert_int_equal(pvr_bucket_saved(&bucket, 3 * FG_MS, 100), 3);
	assert_int_equal(pvr_bucket_saved(&bucket, FG_SEC, 100), 5);
	assert_int_equal(pvr_bucket_saved(&bucket, FG_SEC, 4), 4);
	assert_int_equal(pvr_bucket_take(&bucket, FG_SEC, 6), FG_SEC - 5 * FG_MS);
	assert_int_equal(pvr_bucket_saved(&bucket, FG_SEC, 100), 0);
	assert_int_equal(pvr_bucket_take(&bucket, FG_SEC, 1), FG_SEC + FG_MS);
}
