// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Long receive queues that run empty: the requester polls for receives (path/local/rnr.h). */
#include "common.h"

#define LONG 128 /* the shortest queue that is polled */
#define PART (LONG / 4)
#define LOOKED (300 * FG_US) /* by then all RNR polls are over */
#define SLOW (3 * FG_MS) /* a wait after which the next begins with the doorbell */
#define RNR (10 * FG_MS + 240 * FG_US)

static const struct fg_conn patient = {
	.mtu = PVR_MTU_1024,
	.access = FG_ACCESS_ALL,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 20,
	.max_rd_atomic = 16,
	.max_dest_rd_atomic = 16,
};

TEST_INIT
{
	fg_default_ext = PVR_ENGINE_EXT;
}

static struct fg_end again(struct fg_guest *guest, uint32_t recv_wr)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = 256, .rq_wr = recv_wr };
	struct fg_end end;

	fg_end_open_spec(&end, &guest->kernel, &spec, FG_END_PAGES);
	return end;
}

/* @receives: that b's queue holds. */
static void connect_long(struct t_env *env, uint32_t receives, const struct fg_conn *conn)
{
	env->a = again(env->g[0], 0);
	env->b = again(env->g[1], receives);
	fg_end_connect(&env->a, &env->b, conn);
	fg_run(env->host);
}

/* As a guest whose doorbells are suppressed. */
static void post_suppressed(struct t_env *env, uint64_t wr_id)
{
	uint64_t spared = env->g[1]->doorbells_spared;

	t_recv(&env->b, wr_id, 0, 8);
	assert_int_equal(env->g[1]->doorbells_spared, spared + 1);
}

static bool asks_for_doorbell(const struct fg_end *end)
{
	return !__atomic_load_n(&fg_qp_db_suppress(&end->qp)->rq, __ATOMIC_RELAXED);
}

static void meet_rnr_nak(struct t_env *env)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
}

/* Timers that expire in the next @ns. */
static uint32_t timers_in(struct fg_host *host, uint64_t ns)
{
	uint64_t end = host->now + ns, deadline;
	uint32_t n = 0;

	while ((deadline = pvr_engine_deadline(host->engine, 0)) <= end) {
		assert_true(deadline > host->now);
		host->now = deadline;
		fg_run(host);
		n++;
	}
	host->now = end;
	return n;
}

/* Advances to the next RNR poll, which must come within LOOKED. */
static void next_look(struct fg_host *host)
{
	uint64_t deadline = pvr_engine_deadline(host->engine, 0);

	assert_in_range(deadline, host->now + 1, host->now + LOOKED);
	host->now = deadline;
	fg_run(host);
}

/* ---------------------------------------------------------------------- polled queues */

TEST(guests, test_long_queue_is_found_filled_without_a_doorbell)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	post_suppressed(env, 2);
	assert_true(fg_settle(env->host, FG_SEC) <= LOOKED);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 2, 8);
	assert_false(asks_for_doorbell(&env->b));
	assert_int_equal(env->g[1]->doorbells, 0);
}

TEST(guests, test_short_queue_is_rung_for_at_once)
{
	connect_long(env, LONG / 2, &patient);
	meet_rnr_nak(env);
	assert_true(asks_for_doorbell(&env->b));
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), env->host->now + RNR);
}

/* Its doorbells come anyway, so timers would be for nothing. */
TEST(rc, test_stock_drivers_queue_is_not_looked_at)
{
	env->g[1]->config.ext = PVR_ENGINE_EXT & ~PVR_EXT_DB_SUPPRESS;
	expect_ok(fg_guest_boot(env->g[1]));
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), env->host->now + RNR);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
}

TEST(guests, test_unreliable_messages_are_dropped_as_ever)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UC, .rq_wr = LONG };

	fg_end_open_spec(&env->a, &env->g[0]->kernel, &spec, FG_END_PAGES);
	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, FG_END_PAGES);
	fg_end_connect(&env->a, &env->b, NULL);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

/* ------------------------------------------------------------- when it goes on */

/* A quarter of the queue is worth going on, whether more come or not. */
TEST(guests, test_goes_on_when_a_part_is_filled)
{
	uint32_t posted = 0;

	connect_long(env, LONG, &patient);
	for (uint32_t i = 0; i < LONG; i++)
		t_send(&env->a, i, 0, 8);
	fg_run(env->host);
	while (posted < PART - 1)
		post_suppressed(env, posted++);
	next_look(env->host);
	expect_no_cqe(&env->a.scq);
	post_suppressed(env, posted++);
	next_look(env->host);
	for (uint32_t i = 0; i < PART; i++)
		expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
	expect_no_cqe(&env->a.scq);
}

TEST(guests, test_goes_on_when_no_more_come)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	t_send(&env->a, 2, 0, 8);
	for (uint32_t i = 0; i < 2; i++) {
		post_suppressed(env, i);
		next_look(env->host);
		expect_no_cqe(&env->a.scq);
	}
	next_look(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
}

/* They come slowly, but they do come: after the last look it is time. */
TEST(guests, test_goes_on_after_the_last_look)
{
	uint64_t begin;

	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	begin = env->host->now;
	while (!fg_cq_pending(&env->a.scq)) {
		post_suppressed(env, 2);
		next_look(env->host);
		assert_true(env->host->now - begin <= LOOKED);
	}
	assert_false(asks_for_doorbell(&env->b));
}

/* The same pair repeatedly: each wait starts with fresh polls. */
TEST(guests, test_each_wait_has_its_looks)
{
	connect_long(env, LONG, &patient);
	for (uint32_t i = 0; i < 1000; i++) {
		meet_rnr_nak(env);
		assert_false(asks_for_doorbell(&env->b));
		post_suppressed(env, i);
		next_look(env->host);
		expect_no_cqe(&env->a.scq); /* as more may come */
		assert_true(fg_settle(env->host, FG_SEC) <= LOOKED);
		expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
		expect_recv(&env->b.rcq, i, 8);
	}
	assert_int_equal(fg_stats(env->g[1]).rnr_naks, 1000);
}

/* ----------------------------------------------------------------- no receives posted */

/* An idle pair costs nothing but the RNR timer, however soon that comes. */
TEST(guests, test_rnr_polls_are_few)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	assert_in_range(timers_in(env->host, LOOKED), 1, 4);
	assert_true(asks_for_doorbell(&env->b));
	assert_int_equal(timers_in(env->host, 100 * RNR), 100);
	assert_true(asks_for_doorbell(&env->b));
	expect_no_cqe(&env->a.scq);
}

TEST(guests, test_rnr_polls_are_few_with_a_short_rnr_timer)
{
	struct fg_conn conn = patient;

	conn.min_rnr_timer = 8;
	connect_long(env, LONG, &conn);
	meet_rnr_nak(env);
	assert_in_range(timers_in(env->host, 160 * FG_US), 2, 5);
	assert_true(asks_for_doorbell(&env->b));
	assert_int_equal(timers_in(env->host, 100 * 160 * FG_US), 100);
	assert_true(asks_for_doorbell(&env->b));
	expect_no_cqe(&env->a.scq);
}

TEST(guests, test_after_rnr_polls_the_doorbell_wakes_at_once)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	timers_in(env->host, LOOKED);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(env->g[1]->doorbells, 1);
	assert_false(asks_for_doorbell(&env->b));
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

/* A receiver that posts rarely rings, and is polled again when it posts faster. */
TEST(guests, test_after_a_long_wait_the_next_begins_with_the_doorbell)
{
	connect_long(env, LONG, &patient);
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(timers_in(env->host, SLOW), i ? 0 : 4);
		t_recv(&env->b, 2, 0, 8);
		fg_run(env->host);
		expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	}
	meet_rnr_nak(env);
	assert_true(asks_for_doorbell(&env->b));
	fg_advance(env->host, 10 * FG_US);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	meet_rnr_nak(env);
	assert_false(asks_for_doorbell(&env->b));
}

/* A wait is as long as all its retries. */
TEST(guests, test_long_wait_of_many_short_retries)
{
	struct fg_conn conn = patient;

	conn.min_rnr_timer = 16; /* 2.56 ms */
	connect_long(env, LONG, &conn);
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(asks_for_doorbell(&env->b), i != 0);
		/* Just behind a retry. */
		timers_in(env->host, 4 * 2560 * FG_US + FG_US);
		t_recv(&env->b, 2, 0, 8);
		fg_run(env->host);
		expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	}
}

/* What lasts longer than all looks, but not long, says nothing about the next time. */
TEST(guests, test_short_wait_that_the_doorbell_ends)
{
	connect_long(env, LONG, &patient);
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(timers_in(env->host, FG_MS), 4);
		t_recv(&env->b, 2, 0, 8);
		fg_run(env->host);
		expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	}
}

TEST(guests, test_a_reset_queue_pair_looks_again)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	timers_in(env->host, SLOW);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &patient);
	fg_run(env->host);
	meet_rnr_nak(env);
	assert_false(asks_for_doorbell(&env->b));
}

/* -------------------------------------------------- what InfiniBand counts */

/* To the error: RNR retries, and how long they take, are those of a short queue. */
TEST(guests, test_rnr_polls_are_no_retries)
{
	for (uint8_t timer = 0; timer < 32; timer++) {
		uint64_t waited[2], naks[2];

		for (uint32_t is_long = 0; is_long < 2; is_long++) {
			struct fg_conn conn = patient;
			uint64_t before = fg_stats(env->g[1]).rnr_naks;

			conn.rnr_retry = timer % 7;
			conn.min_rnr_timer = timer;
			connect_long(env, is_long ? LONG : LONG / 2, &conn);
			t_send(&env->a, 1, 0, 8);
			waited[is_long] = fg_settle(env->host, 10 * FG_SEC);
			expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
			naks[is_long] = fg_stats(env->g[1]).rnr_naks - before;
			fg_end_close(&env->a);
			fg_end_close(&env->b);
		}
		assert_int_equal(waited[1], waited[0]);
		assert_int_equal(naks[1], naks[0]);
		assert_int_equal(naks[1], timer % 7 + 1);
	}
}

/* Without time for an RNR poll the doorbell is needed. */
TEST(guests, test_short_rnr_timer_leaves_no_time_to_look)
{
	struct fg_conn conn = patient;

	conn.min_rnr_timer = 1; /* 10 us */
	connect_long(env, LONG, &conn);
	meet_rnr_nak(env);
	assert_true(asks_for_doorbell(&env->b));
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
}

/* ------------------------------------------- events between two polls */

/* The wait of the message ends without a receive, in each of these ways. */
static void while_it_looks(struct t_env *env, void (*happen)(struct t_env *env), uint32_t status)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	happen(env);
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, status);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

static void peer_is_destroyed(struct t_env *env)
{
	fg_end_close(&env->b);
}

static void peer_is_reset(struct t_env *env)
{
	expect_ok(fg_qp_to_reset(&env->b.qp));
}

static void peer_fails(struct t_env *env)
{
	expect_ok(fg_qp_to_err(&env->b.qp));
}

static void peer_loses_its_link(struct t_env *env)
{
	pvr_adapter_set_link(env->g[1]->adapter, false);
}

static void peer_loses_bus_master(struct t_env *env)
{
	pvr_adapter_set_bus_master(env->g[1]->adapter, false);
}

static void peer_is_unplugged(struct t_env *env)
{
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
}

TEST(guests, test_peer_goes_while_it_looks)
{
	static void (*const ways[])(struct t_env * env) = {
		peer_is_destroyed,
		peer_is_reset,
		peer_fails,
		peer_loses_its_link,
	};

	for (size_t i = 0; i < COUNT(ways); i++)
		while_it_looks(env, ways[i], PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(guests, test_peer_loses_bus_master_while_it_looks)
{
	while_it_looks(env, peer_loses_bus_master, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(guests, test_peer_is_unplugged_while_it_looks)
{
	while_it_looks(env, peer_is_unplugged, PVRDMA_WC_RETRY_EXC_ERR);
}

static void peers_index_is_wild(struct t_env *env)
{
	env->b.qp.ring->rx.prod_tail = 5000;
}

TEST(guests, test_wild_index_found_by_a_look)
{
	while_it_looks(env, peers_index_is_wild, PVRDMA_WC_REM_OP_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
}

static void it_fails(struct t_env *env)
{
	expect_ok(fg_qp_to_err(&env->a.qp));
}

TEST(guests, test_requester_fails_while_it_looks)
{
	while_it_looks(env, it_fails, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(guests, test_requester_is_destroyed_while_it_looks)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	fg_end_close(&env->a);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
}

/* More to send, or a receive of its own, gives a QP quanta, which are no RNR polls. */
TEST(guests, test_quanta_between_rnr_polls_are_no_polls)
{
	uint64_t deadline;

	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	deadline = pvr_engine_deadline(env->host->engine, 0);
	post_suppressed(env, 3);
	for (uint32_t i = 0; i < 10; i++) {
		fg_ring_send(&env->a.qp);
		fg_run(env->host);
		assert_int_equal(pvr_engine_deadline(env->host->engine, 0), deadline);
	}
	expect_no_cqe(&env->a.scq);
	assert_false(asks_for_doorbell(&env->b));
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
}

TEST(guests, test_other_direction_goes_on)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->a, i, 0, 8);
		t_send(&env->b, i, 0, 8);
		fg_run(env->host);
		expect_recv(&env->a.rcq, i, 8);
		expect_done(&env->b.scq, i, PVRDMA_WC_SEND);
	}
	expect_no_cqe(&env->a.scq);
}

/* The request in progress is part of what SQD waits for. */
TEST(guests, test_drain_waits_for_a_look)
{
	const struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
	post_suppressed(env, 2);
	assert_true(fg_settle(env->host, FG_SEC) <= LOOKED);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_state(&env->a, PVR_QPS_SQD);
}

/* An RNR poll is due without bus master: it runs when DMA is allowed again. */
TEST(guests, test_rnr_poll_due_without_bus_master_runs_later)
{
	connect_long(env, LONG, &patient);
	meet_rnr_nak(env);
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	post_suppressed(env, 2);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 2, 8);
}
