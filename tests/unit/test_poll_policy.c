// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* When a worker polls: its decisions against a clock of ours. */
#include "daemon/poll_policy.h"
#include "test.h"

#define US 1000ull
#define MS 1000000ull
#define SEC 1000000000ull
#define START (1000 * SEC)
#define ROUND 100ull /* what the engine takes to find nothing */

/* A worker whose engine finds work under the test's control. */
struct worker {
	struct pvr_poll_policy policy;
	uint64_t now;
	uint64_t cpu, switches;
	uint32_t usages, socket_polls;
	bool cpu_contended; /* others take its CPU for as long as it polls */
	bool uar_mapped;
};

static void worker_init(struct worker *w, enum pvr_poll_mode mode)
{
	*w = (struct worker){ .now = START };
	pvr_poll_policy_init(&w->policy, mode, 100 * US);
}

static int setup_auto(void **state)
{
	static struct worker worker;

	worker_init(&worker, PVR_POLL_AUTO);
	*state = &worker;
	return 0;
}

/* A test of a worker in the mode "auto". */
#define TEST_AUTO(name) TEST_WITH(struct worker *w, setup_auto, NULL, name)

static void pass(struct worker *w, uint64_t ns)
{
	w->now += ns;
	w->cpu += ns;
}

static void measure(struct worker *w)
{
	if (!pvr_poll_needs_usage(&w->policy, w->now))
		return;
	w->usages++;
	w->switches += w->cpu_contended;
	pvr_poll_usage(&w->policy, w->now, w->cpu, w->switches);
}

static enum pvr_poll_step step(struct worker *w, bool worked)
{
	enum pvr_poll_step next = pvr_poll_next(&w->policy, w->now, worked, w->uar_mapped);

	if (next == PVR_POLL_GO_ON)
		return next;
	measure(w);
	if (next == PVR_POLL_SOCKETS) {
		w->socket_polls++;
		pvr_poll_sockets_done(&w->policy, w->now, false);
	}
	return next;
}

/* Polls without work. Return: the time until it slept, or @ns if it did not. */
static uint64_t idle(struct worker *w, uint64_t ns)
{
	uint64_t from = w->now;

	while (w->now - from < ns) {
		pass(w, ROUND);
		if (step(w, false) == PVR_POLL_SLEEP)
			break;
	}
	return w->now - from;
}

static void sleep_for(struct worker *w, uint64_t ns)
{
	w->now += ns;
	pvr_poll_slept(&w->policy, w->now - ns, w->now);
	pvr_poll_sockets_done(&w->policy, w->now, true);
}

/* The worker is woken, works, polls without work and sleeps. Return: the polling time. */
static uint64_t wake_in_vain(struct worker *w)
{
	uint64_t polled;

	pass(w, US);
	step(w, true);
	polled = idle(w, SEC);
	sleep_for(w, 10 * US);
	return polled;
}

static bool polls(struct worker *w)
{
	return pvr_poll_is_on(&w->policy, w->now);
}

/* The worker wakes in vain until it stops to poll. Return: the time until it polls again. */
static uint64_t pause_after_trial(struct worker *w)
{
	uint64_t from;

	while (polls(w))
		wake_in_vain(w);
	for (from = w->now; !polls(w);)
		wake_in_vain(w);
	return w->now - from;
}

/* Works again before the window is over. */
static void work_after(struct worker *w, uint64_t ns)
{
	uint64_t polled = idle(w, ns);

	assert_true(polled >= ns || !polls(w));
	step(w, true);
}

/* ---------------------------------------------------------------- windows */

TEST_AUTO(test_off_sleeps_at_once)
{
	worker_init(w, PVR_POLL_OFF);
	assert_false(polls(w));
	for (uint32_t i = 0; i < 100; i++)
		assert_true(wake_in_vain(w) <= ROUND);
	assert_int_equal(w->policy.stats.poll_windows, 0);
	assert_int_equal(w->policy.stats.sleeps, 100);
	assert_int_equal(w->usages, 0);
}

TEST_AUTO(test_idle_worker_sleeps_at_once)
{
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(idle(w, SEC) <= ROUND);
		sleep_for(w, SEC);
	}
	assert_int_equal(w->policy.stats.poll_windows, 0);
}

TEST_AUTO(test_after_work_comes_a_window)
{
	assert_in_range(wake_in_vain(w), PVR_POLL_WINDOW_NS, PVR_POLL_WINDOW_NS + 2 * US);
	assert_int_equal(w->policy.stats.poll_windows, 1);
	assert_int_equal(w->policy.stats.poll_hits, 0);
}

TEST_AUTO(test_work_makes_the_window_begin_again)
{
	step(w, true);
	for (uint32_t i = 0; i < 1000; i++)
		work_after(w, PVR_POLL_WINDOW_NS - 5 * US);
	assert_int_equal(w->policy.stats.poll_windows, 1000);
	assert_int_equal(w->policy.stats.poll_hits, 1000);
	assert_int_equal(w->policy.stats.sleeps, 0);
	assert_in_range(idle(w, SEC), PVR_POLL_WINDOW_NS, PVR_POLL_WINDOW_NS + 2 * US);
}

TEST_AUTO(test_always_has_its_own_window_and_never_backs_off)
{
	worker_init(w, PVR_POLL_ALWAYS);
	w->cpu_contended = true;
	for (uint32_t i = 0; i < 1000; i++)
		assert_in_range(wake_in_vain(w), 100 * US, 102 * US);
	assert_int_equal(w->policy.stats.backoffs, 0);
	assert_int_equal(w->usages, 0);
	assert_true(polls(w));
}

/* --------------------------------------------------------------- sockets */

/* The time between polls while the engine always or never has work. */
static uint64_t sockets_interval(struct worker *w, bool worked)
{
	uint64_t from;

	while (step(w, worked) != PVR_POLL_SOCKETS)
		pass(w, ROUND);
	for (from = w->now; w->now == from || step(w, worked) != PVR_POLL_SOCKETS;)
		pass(w, ROUND);
	return w->now - from;
}

TEST_AUTO(test_silent_sockets_are_polled_rarely)
{
	for (uint32_t i = 0; i < 20; i++)
		sockets_interval(w, true);
	assert_in_range(sockets_interval(w, true), 20 * US, 30 * US);
	assert_in_range(sockets_interval(w, false), 4 * US, 6 * US);
}

TEST_AUTO(test_sockets_with_events_are_polled_often)
{
	uint64_t from;

	for (uint32_t i = 0; i < 20; i++)
		sockets_interval(w, true);
	pvr_poll_sockets_done(&w->policy, w->now, true);
	for (from = w->now; pvr_poll_next(&w->policy, w->now, true, false) != PVR_POLL_SOCKETS;)
		pass(w, ROUND);
	assert_in_range(w->now - from, 0, US);
}

static const struct {
	const char *label;
	enum pvr_poll_mode mode;
} modes[] = {
	{ "off", PVR_POLL_OFF },
	{ "auto", PVR_POLL_AUTO },
	{ "always", PVR_POLL_ALWAYS },
};

/* With or without polling, an engine that is never done must not keep others waiting. */
TEST_CASES_WITH(struct worker *w, setup_auto, NULL, test_busy_engine_leaves_sockets_their_turn,
		modes)
{
	worker_init(w, row->mode);
	for (uint32_t i = 0; i < 10000; i++) {
		pass(w, ROUND);
		assert_int_not_equal(step(w, true), PVR_POLL_SLEEP);
	}
	assert_in_range(w->socket_polls, 10000 * ROUND / (30 * US), 10000);
}

/* -------------------------------------------------------------- usefulness */

TEST_AUTO(test_windows_in_vain_end_polling_for_a_while)
{
	uint64_t end;

	for (uint32_t i = 0; i < 3; i++)
		assert_true(wake_in_vain(w) >= PVR_POLL_WINDOW_NS);
	assert_int_equal(w->policy.stats.backoffs, 1);
	assert_int_equal(w->policy.stats.cpu_contended, 0);
	assert_false(polls(w));
	for (end = w->now + MS - 100 * US; w->now < end;)
		assert_true(wake_in_vain(w) <= ROUND);
	sleep_for(w, MS);
	assert_true(polls(w));
	assert_true(wake_in_vain(w) >= PVR_POLL_WINDOW_NS);
}

TEST_AUTO(test_each_trial_in_vain_doubles_the_pause)
{
	for (uint64_t expected = MS; expected <= 10 * SEC; expected *= 2) {
		uint64_t most = expected < SEC ? expected : SEC;

		assert_in_range(pause_after_trial(w), most - 50 * US, most + 50 * US);
	}
}

TEST_AUTO(test_backoff_restarts_after_successful_polling)
{
	for (uint32_t i = 0; i < 6; i++)
		pause_after_trial(w);
	step(w, true);
	while (w->now < w->policy.resume_at + SEC)
		work_after(w, 20 * US);
	assert_in_range(pause_after_trial(w), MS - 50 * US, MS + 50 * US);
}

/* @good windows with work for one without. */
static uint64_t backoffs_at(uint32_t good)
{
	struct worker w;

	worker_init(&w, PVR_POLL_AUTO);
	step(&w, true);
	for (uint32_t i = 0; i < 200; i++) {
		for (uint32_t k = 0; k < good && polls(&w); k++)
			work_after(&w, 20 * US);
		if (polls(&w))
			wake_in_vain(&w);
		step(&w, true);
	}
	return w.policy.stats.backoffs;
}

TEST_PLAIN(test_it_is_the_share_of_windows_that_counts)
{
	assert_int_equal(backoffs_at(9), 0);
	assert_int_equal(backoffs_at(5), 0);
	assert_true(backoffs_at(1) > 0);
}

/* ----------------------------------------------------------------- crowded */

static void work_for(struct worker *w, uint64_t ns)
{
	uint64_t end = w->now + ns;

	step(w, true);
	while (w->now < end && polls(w))
		work_after(w, 20 * US);
}

TEST_AUTO(test_cpu_of_its_own_is_no_reason_to_back_off)
{
	work_for(w, SEC);
	assert_true(polls(w));
	assert_int_equal(w->policy.stats.backoffs, 0);
	/* And asking costs little. */
	assert_in_range(w->usages, 100, SEC / (250 * US));
}

TEST_AUTO(test_involuntary_switch_ends_polling_for_a_while)
{
	work_for(w, 10 * MS);
	w->switches++;
	work_for(w, 10 * MS);
	assert_int_equal(w->policy.stats.backoffs, 1);
	assert_false(polls(w));
	assert_in_range(w->policy.resume_at, w->now + MS / 2, w->now + MS);
}

TEST_AUTO(test_on_a_crowded_host_trials_become_rare)
{
	uint64_t end, polled = 0;

	w->cpu_contended = true;
	for (end = w->now + 60 * SEC; w->now < end;) {
		uint64_t from = w->now;

		/* Windows find work: it is only that others suffer. */
		work_for(w, 10 * MS);
		polled += w->now - from;
		sleep_for(w, 100 * US);
	}
	assert_true(polled < 60 * SEC / 100);
	assert_int_equal(w->policy.stats.cpu_contended, w->policy.stats.backoffs);
	assert_in_range(w->policy.stats.backoffs, 10, 100);
}

TEST_AUTO(test_time_without_the_cpu_counts_too)
{
	work_for(w, 10 * MS);
	w->now += MS; /* and not w->cpu */
	work_for(w, 10 * MS);
	assert_int_equal(w->policy.stats.backoffs, 1);
}

TEST_AUTO(test_sleep_is_not_time_without_the_cpu)
{
	for (uint32_t i = 0; i < 1000; i++) {
		work_for(w, MS);
		idle(w, SEC);
		sleep_for(w, 10 * MS);
	}
	assert_int_equal(w->policy.stats.backoffs, 0);
	assert_true(w->usages > 100);
}

/* Events during the pause do not count for the trial. */
TEST_AUTO(test_trial_begins_with_a_new_measurement)
{
	uint64_t backoffs;

	work_for(w, 10 * MS);
	w->switches++;
	work_for(w, 10 * MS);
	backoffs = w->policy.stats.backoffs;
	w->switches += 1000;
	w->now += 10 * MS;
	work_for(w, 100 * MS);
	assert_int_equal(w->policy.stats.backoffs, backoffs);
}

/* -------------------------------------------------------------- other hosts */

/* Something comes now and every 20 us. Others have the CPU for @turn after each socket poll. */
static void talk(struct worker *w, uint64_t ns, uint64_t turn)
{
	uint64_t end = w->now + ns, next = w->now;

	pvr_poll_moved(&w->policy, w->now);
	while (w->now < end && polls(w)) {
		pass(w, ROUND);
		if (step(w, false) != PVR_POLL_SOCKETS || !polls(w))
			continue;
		w->now += turn;
		pass(w, 300);
		w->switches++;
		pvr_poll_yielded(&w->policy, w->now - turn - 300, w->now);
		if (w->now < next)
			continue;
		pvr_poll_moved(&w->policy, w->now);
		next = w->now + 20 * US;
	}
}

TEST_AUTO(test_what_comes_from_other_hosts_is_work)
{
	idle(w, 10 * US);
	pvr_poll_moved(&w->policy, w->now);
	assert_in_range(idle(w, SEC), PVR_POLL_WINDOW_NS, PVR_POLL_WINDOW_NS + 2 * US);
	step(w, true);
	idle(w, 20 * US);
	pvr_poll_moved(&w->policy, w->now);
	assert_int_equal(w->policy.stats.poll_hits, 1);
}

TEST_AUTO(test_short_time_slices_are_no_contention)
{
	talk(w, SEC, 3 * US);
	assert_true(polls(w));
	assert_int_equal(w->policy.stats.backoffs, 0);
	assert_int_equal(w->policy.stats.sleeps, 0);
}

TEST_AUTO(test_rare_time_slices_are_no_contention)
{
	for (uint32_t i = 0; i < 30; i++) {
		talk(w, 27 * MS, 3 * US);
		w->now += 3 * MS;
		w->switches++;
		pvr_poll_moved(&w->policy, w->now);
	}
	assert_true(polls(w));
	assert_int_equal(w->policy.stats.backoffs, 0);
	/* But nothing else may be that patient. */
	idle(w, SEC);
	sleep_for(w, SEC);
	work_for(w, MS);
	w->now += 3 * MS;
	work_for(w, MS);
	assert_int_equal(w->policy.stats.cpu_contended, 1);
}

TEST_AUTO(test_long_time_slices_are_contention)
{
	talk(w, SEC, 3 * MS);
	assert_false(polls(w));
	assert_int_equal(w->policy.stats.cpu_contended, 1);
}

/* If another task keeps the CPU, a trial loses a few time slices, and the next one comes soon. */
TEST_AUTO(test_trials_between_hosts_are_short_and_come_soon)
{
	uint64_t from;

	for (uint32_t i = 0; i < 30; i++) {
		from = w->now;
		talk(w, SEC, 3 * MS);
		assert_in_range(w->now - from, 3 * MS, 12 * MS);
		assert_false(polls(w));
		assert_true(w->policy.resume_at - w->now <= 64 * MS);
		sleep_for(w, 64 * MS);
	}
	assert_int_equal(w->policy.stats.cpu_contended, 30);
}

/* Between guests of one host, a context switch means that another task waits for the CPU. */
TEST_AUTO(test_switch_without_remote_traffic_is_contention)
{
	work_for(w, 10 * MS);
	w->switches++;
	pvr_poll_yielded(&w->policy, w->now - 3 * US, w->now);
	assert_false(pvr_poll_is_shared(&w->policy));
	work_for(w, 10 * MS);
	assert_int_equal(w->policy.stats.cpu_contended, 1);
}

TEST_AUTO(test_cpu_that_others_need_is_offered_in_each_round)
{
	pvr_poll_moved(&w->policy, w->now);
	pvr_poll_yielded(&w->policy, w->now - 3 * US, w->now);
	assert_true(pvr_poll_is_shared(&w->policy));
	pvr_poll_sockets_done(&w->policy, w->now, true);
	/* But for a guest that answers. */
	pass(w, US);
	assert_int_equal(step(w, false), PVR_POLL_GO_ON);
	pass(w, US);
	for (uint32_t i = 0; i < 20; i++) {
		pass(w, ROUND);
		assert_int_equal(step(w, i % 2), PVR_POLL_SOCKETS);
	}
	pvr_poll_yielded(&w->policy, w->now - 300, w->now);
	assert_false(pvr_poll_is_shared(&w->policy));
	pass(w, ROUND);
	assert_int_equal(step(w, false), PVR_POLL_GO_ON);
}

/* -------------------------------------------------------------------- async */

TEST_AUTO(test_worker_with_a_mapped_uar_does_not_sleep)
{
	w->uar_mapped = true;
	assert_int_equal(idle(w, SEC), SEC);
	assert_int_equal(w->policy.stats.poll_windows, 0);
	assert_int_equal(w->policy.stats.backoffs, 0);
}

TEST_AUTO(test_worker_with_a_mapped_uar_sleeps_where_others_need_the_cpu)
{
	w->uar_mapped = w->cpu_contended = true;
	assert_true(idle(w, SEC) < MS);
	assert_true(w->policy.stats.backoffs > 0);
	worker_init(w, PVR_POLL_OFF);
	w->uar_mapped = true;
	assert_true(idle(w, SEC) <= ROUND);
}
