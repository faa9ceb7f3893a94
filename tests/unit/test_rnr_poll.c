// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Long receive queues that run empty: the requester polls for receives (path/local/rnr.h). */
#include "core/objects.h"
#include "db_suppress.h"
#include "deaths.h"

#define LONG 128 /* the shortest queue that is polled */
#define PART (LONG / 4)
#define POLLED (300 * FG_US) /* by then all RNR polls are over */
#define FIRST_POLL (20 * FG_US)
#define SLOW (3 * FG_MS) /* a wait after which the next begins with the doorbell */
#define RNR (10 * FG_MS + 240 * FG_US)
#define RNR_TIMER 20 /* RNR as a min_rnr_timer */

TEST_EXT(PVR_ENGINE_EXT)

static struct fg_end open_end(struct fg_guest *guest, uint32_t recv_wr)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = 256, .rq_wr = recv_wr };
	struct fg_end end;

	fg_end_open_spec(&end, &guest->kernel, &spec, FG_END_PAGES);
	return end;
}

/* @receives: of the queue of b. */
static void connect(struct t_env *env, uint32_t receives, uint8_t rnr_retry, uint8_t rnr_timer)
{
	const struct fg_conn conn = t_conn_rnr(rnr_retry, rnr_timer);

	env->a = open_end(env->g[0], 0);
	env->b = open_end(env->g[1], receives);
	fg_end_connect(&env->a, &env->b, &conn);
	fg_run(env->host);
}

/* As a guest whose doorbells are suppressed. */
static void post_suppressed(struct t_env *env, uint64_t wr_id)
{
	uint64_t spared = env->g[1]->doorbells_spared;

	t_recv(&env->b, wr_id, 0, 8);
	assert_int_equal(env->g[1]->doorbells_spared, spared + 1);
}

static bool needs_doorbell(const struct fg_end *end)
{
	return rq_word(end) == 0;
}

static void meet_rnr_nak(struct t_env *env)
{
	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->a.scq);
}

/* The doorbell of a new receive ends the wait at once. */
static void end_by_doorbell(struct t_env *env)
{
	t_recv(&env->b, 2, 0, 8);
	await_sent(&env->a, 1);
}

/* A connection with a long receive queue. */
T_SETUP(long, guests)
{
	connect(env, LONG, T_RNR_FOREVER, RNR_TIMER);
}

/* As long, and a waits for a receive. */
T_SETUP(waiting, long)
{
	meet_rnr_nak(env);
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

/* Advances to the next RNR poll, which must come within POLLED. */
static void next_poll(struct fg_host *host)
{
	uint64_t deadline = pvr_engine_deadline(host->engine, 0);

	assert_in_range(deadline, host->now + 1, host->now + POLLED);
	host->now = deadline;
	fg_run(host);
}

/* ---------------------------------------------------------------------- polled queues */

TEST(waiting, test_long_queue_is_found_filled_without_a_doorbell)
{
	post_suppressed(env, 2);
	assert_true(fg_settle(env->host, FG_SEC) <= POLLED);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_false(needs_doorbell(&env->b));
	assert_int_equal(env->g[1]->doorbells, 0);
}

TEST(guests, test_short_queue_needs_the_doorbell_at_once)
{
	connect(env, LONG / 2, T_RNR_FOREVER, RNR_TIMER);
	meet_rnr_nak(env);
	assert_true(needs_doorbell(&env->b));
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), env->host->now + RNR);
}

/* Its doorbells come anyway, so timers would be for nothing. */
TEST(rc, test_queue_of_a_stock_driver_is_not_polled)
{
	env->g[1]->config.ext = PVR_ENGINE_EXT & ~PVR_EXT_DB_SUPPRESS;
	expect_ok(fg_guest_boot(env->g[1]));
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
	connect(env, LONG, T_RNR_FOREVER, RNR_TIMER);
	meet_rnr_nak(env);
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), env->host->now + RNR);
	end_by_doorbell(env);
}

TEST(guests, test_unreliable_messages_are_dropped_as_ever)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UC, .rq_wr = LONG };

	t_open_connected(env, &spec, FG_END_PAGES);
	t_send(&env->a, 1, 0, 8);
	await_sent(&env->a, 1);
	expect_no_timer(env->host);
}

/* ------------------------------------------------------------- when it goes on */

/* A quarter of the queue is worth going on, whether more come or not. */
TEST(long, test_goes_on_when_a_part_is_filled)
{
	uint32_t posted = 0;

	for (uint32_t i = 0; i < LONG; i++)
		t_send(&env->a, i, 0, 8);
	fg_run(env->host);
	while (posted < PART - 1)
		post_suppressed(env, posted++);
	next_poll(env->host);
	expect_no_cqe(&env->a.scq);
	post_suppressed(env, posted++);
	next_poll(env->host);
	for (uint32_t i = 0; i < PART; i++)
		expect_sent(&env->a, i);
	expect_no_cqe(&env->a.scq);
}

TEST(waiting, test_goes_on_when_no_more_come)
{
	t_send(&env->a, 2, 0, 8);
	for (uint32_t i = 0; i < 2; i++) {
		post_suppressed(env, i);
		next_poll(env->host);
		expect_no_cqe(&env->a.scq);
	}
	next_poll(env->host);
	expect_sent(&env->a, 1);
	expect_sent(&env->a, 2);
}

/* Receives that come slowly do come: the last RNR poll ends the wait. */
TEST(waiting, test_goes_on_after_the_last_rnr_poll)
{
	uint64_t begin;

	begin = env->host->now;
	while (!fg_cq_pending(&env->a.scq)) {
		post_suppressed(env, 2);
		next_poll(env->host);
		assert_true(env->host->now - begin <= POLLED);
	}
	assert_false(needs_doorbell(&env->b));
}

/* The same pair repeatedly: each wait starts with fresh polls. */
TEST(long, test_each_wait_has_its_rnr_polls)
{
	for (uint32_t i = 0; i < 1000; i++) {
		meet_rnr_nak(env);
		assert_false(needs_doorbell(&env->b));
		post_suppressed(env, i);
		next_poll(env->host);
		expect_no_cqe(&env->a.scq); /* as more may come */
		assert_true(fg_settle(env->host, FG_SEC) <= POLLED);
		expect_sent(&env->a, 1);
		expect_recv(&env->b.rcq, i, 8);
	}
	assert_int_equal(fg_stats(env->g[1]).rnr_naks, 1000);
}

/* ----------------------------------------------------------------- no receives posted */

/* With a short RNR timer some polls come together with it, and are fewer. */
static const struct {
	const char *label;
	uint8_t rnr_timer;
	uint64_t rnr, polled; /* ns */
	uint32_t least, most; /* timers while it polls */
} timers[] = {
	{ "10 ms", RNR_TIMER, RNR, POLLED, 1, 4 },
	{ "160 us", 8, 160 * FG_US, 160 * FG_US, 2, 5 },
};

/* An idle pair costs nothing but the RNR timer, however soon that comes. */
TEST_CASES(guests, test_rnr_polls_are_few, timers)
{
	connect(env, LONG, T_RNR_FOREVER, row->rnr_timer);
	meet_rnr_nak(env);
	assert_in_range(timers_in(env->host, row->polled), row->least, row->most);
	assert_true(needs_doorbell(&env->b));
	assert_int_equal(timers_in(env->host, 100 * row->rnr), 100);
	assert_true(needs_doorbell(&env->b));
	expect_no_cqe(&env->a.scq);
}

/* The responder does not answer, and the requester waits for its retries. */
TEST(waiting, test_peer_in_error_ends_the_polls)
{
	expect_ok(fg_qp_to_err(&env->b.qp));
	fg_advance(env->host, FIRST_POLL);
	assert_int_equal(t_device_qp(&env->a)->wait, PVR_QP_WAIT_RETRY);
}

TEST(waiting, test_after_rnr_polls_the_doorbell_wakes_at_once)
{
	timers_in(env->host, POLLED);
	end_by_doorbell(env);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(env->g[1]->doorbells, 1);
	assert_false(needs_doorbell(&env->b));
	expect_no_timer(env->host);
}

/* A receiver that posts rarely rings, and is polled again when it posts faster. */
TEST(long, test_after_a_long_wait_the_next_begins_with_the_doorbell)
{
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(timers_in(env->host, SLOW), i ? 0 : 4);
		end_by_doorbell(env);
	}
	meet_rnr_nak(env);
	assert_true(needs_doorbell(&env->b));
	fg_advance(env->host, 10 * FG_US);
	end_by_doorbell(env);
	meet_rnr_nak(env);
	assert_false(needs_doorbell(&env->b));
}

/* A wait is as long as all its retries. */
TEST(guests, test_long_wait_of_many_short_retries)
{
	connect(env, LONG, T_RNR_FOREVER, 16); /* 2.56 ms */
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(needs_doorbell(&env->b), i != 0);
		/* Just behind a retry. */
		timers_in(env->host, 4 * 2560 * FG_US + FG_US);
		end_by_doorbell(env);
	}
}

/* A wait longer than all RNR polls, but not long, does not change the next one. */
TEST(long, test_short_wait_that_the_doorbell_ends)
{
	for (uint32_t i = 0; i < 3; i++) {
		meet_rnr_nak(env);
		assert_int_equal(timers_in(env->host, FG_MS), 4);
		end_by_doorbell(env);
	}
}

TEST(waiting, test_reset_queue_pair_polls_again)
{
	timers_in(env->host, SLOW);
	end_by_doorbell(env);
	t_reconnect(env);
	fg_run(env->host);
	meet_rnr_nak(env);
	assert_false(needs_doorbell(&env->b));
}

/* -------------------------------------------------- what InfiniBand counts */

/* Until a reports the error. */
static void count_naks(struct t_env *env, uint32_t receives, uint8_t timer, uint64_t *waited,
		       uint64_t *naks)
{
	uint64_t before = fg_stats(env->g[1]).rnr_naks;

	connect(env, receives, timer % 7, timer);
	t_send(&env->a, 1, 0, 8);
	*waited = fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RNR_RETRY_EXC_ERR);
	*naks = fg_stats(env->g[1]).rnr_naks - before;
	fg_end_close(&env->a);
	fg_end_close(&env->b);
}

/* RNR retries, and how long they take, are those of a short queue. */
TEST(guests, test_rnr_polls_are_no_retries)
{
	for (uint8_t timer = 0; timer < 32; timer++) {
		uint64_t short_wait, long_wait, short_naks, long_naks;

		count_naks(env, LONG / 2, timer, &short_wait, &short_naks);
		count_naks(env, LONG, timer, &long_wait, &long_naks);
		assert_int_equal(long_wait, short_wait);
		assert_int_equal(long_naks, short_naks);
		/* The grace of the first NAK can add one. */
		assert_in_range(long_naks, timer % 7 + 1, timer % 7 + 2);
	}
}

/* Without time for an RNR poll the doorbell is needed. */
TEST(guests, test_short_rnr_timer_leaves_no_time_for_an_rnr_poll)
{
	connect(env, LONG, T_RNR_FOREVER, 1); /* 10 us */
	meet_rnr_nak(env);
	assert_true(needs_doorbell(&env->b));
	end_by_doorbell(env);
}

/* ------------------------------------------- events between two polls */

/* The wait of the message ends without a receive. */
static void expect_end(struct t_env *env, uint32_t status)
{
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, status);
	expect_no_timer(env->host);
}

TEST_CASES(waiting, test_peer_dies_between_rnr_polls, t_deaths)
{
	row->kill(env);
	expect_end(env, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(waiting, test_wild_index_found_by_an_rnr_poll)
{
	env->b.qp.ring->rx.prod_tail = 5000;
	expect_end(env, PVRDMA_WC_REM_OP_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
}

TEST(waiting, test_requester_fails_between_rnr_polls)
{
	expect_ok(fg_qp_to_err(&env->a.qp));
	expect_end(env, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(waiting, test_requester_is_destroyed_between_rnr_polls)
{
	fg_end_close(&env->a);
	expect_no_timer(env->host);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
}

/* More to send, or a receive of its own, gives a QP quanta, which are no RNR polls. */
TEST(waiting, test_quanta_between_rnr_polls_are_no_polls)
{
	uint64_t deadline;

	deadline = pvr_engine_deadline(env->host->engine, 0);
	post_suppressed(env, 3);
	for (uint32_t i = 0; i < 10; i++) {
		fg_ring_send(&env->a.qp);
		fg_run(env->host);
		assert_int_equal(pvr_engine_deadline(env->host->engine, 0), deadline);
	}
	expect_no_cqe(&env->a.scq);
	assert_false(needs_doorbell(&env->b));
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
}

TEST(waiting, test_other_direction_goes_on)
{
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->a, i, 0, 8);
		t_send(&env->b, i, 0, 8);
		await_recv(&env->a.rcq, i, 8);
		expect_sent(&env->b, i);
	}
	expect_no_cqe(&env->a.scq);
}

/* The request in progress is part of what SQD waits for. */
TEST(waiting, test_drain_waits_for_an_rnr_poll)
{
	t_qp_set_state(&env->a, PVR_QPS_SQD);
	await_no_cqe(&env->a.scq);
	post_suppressed(env, 2);
	assert_true(fg_settle(env->host, FG_SEC) <= POLLED);
	expect_sent(&env->a, 1);
	expect_state(&env->a, PVR_QPS_SQD);
}

/* An RNR poll is due without bus master: it runs when DMA is allowed again. */
TEST(waiting, test_rnr_poll_due_without_bus_master_runs_later)
{
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	post_suppressed(env, 2);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}
