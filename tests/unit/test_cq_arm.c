// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_ARM_DBREC: CQs that are armed in memory, by doorbell, and by both. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "common.h"

#define EXTENSIONS (PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE)

TEST_INIT
{
	fg_default_ext = EXTENSIONS;
}

/* One completion on b's receive CQ. */
static void complete(struct t_env *env, uint32_t flags)
{
	t_message(env, PVR_SEND_SIGNALED | flags);
	expect_done(&env->a.scq, 7, PVRDMA_WC_SEND);
}

static uint32_t notifications(struct t_env *env)
{
	return fg_cq_events_count(env->g[1], env->b.rcq.handle);
}

/* Arms without a doorbell, as a guest does if no completion is unread. */
static void arm(struct fg_cq *cq, uint32_t kind)
{
	assert_false(fg_cq_arm_in_memory(cq, kind));
}

TEST(rc_connected, test_no_doorbell_is_needed)
{
	uint64_t doorbells = fg_stats(env->g[1]).doorbells;

	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	assert_int_equal(fg_stats(env->g[1]).doorbells, doorbells);
	assert_int_equal(notifications(env), 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 1);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
}

TEST(rc_connected, test_each_value_arms_once)
{
	for (uint32_t i = 1; i <= 5; i++) {
		arm(&env->b.rcq, PVR_CQ_ARM_ANY);
		complete(env, 0);
		complete(env, PVR_SEND_SOLICITED);
		assert_int_equal(notifications(env), 1);
		assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], i);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 2);
	}
}

TEST(rc_connected, test_solicited_ignores_other_completions)
{
	arm(&env->b.rcq, PVR_CQ_ARM_SOLICITED);
	complete(env, 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
	complete(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
	complete(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_solicited_sees_errors)
{
	arm(&env->b.rcq, PVR_CQ_ARM_SOLICITED);
	t_recv(&env->b, 1, 0, 0);
	expect_ok(fg_qp_to_err(&env->b.qp));
	fg_run(env->host);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_both_kinds_mean_any_and_none_means_nothing)
{
	arm(&env->b.rcq, 0);
	complete(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 0);
	fg_cq_drain(&env->b.rcq);
	arm(&env->b.rcq, PVR_CQ_ARM_ANY | PVR_CQ_ARM_SOLICITED);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	fg_cq_drain(&env->b.rcq);
	/*
	 * Arming for solicited events does not cancel an earlier arming for all events.
	 */
	arm(&env->b.rcq, PVR_CQ_ARM_SOLICITED);
	complete(env, 0);
	fg_cq_drain(&env->b.rcq);
	arm(&env->b.rcq, 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
	complete(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
}

/* The doorbell that goes with an arming is the same arming. */
TEST(rc_connected, test_unread_completions_count_at_once_and_once)
{
	complete(env, 0);
	assert_true(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	assert_int_equal(notifications(env), 1);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 1);
}

TEST(rc_connected, test_announced_completions_do_not_count_again)
{
	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	assert_true(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	fg_run(env->host);
	assert_int_equal(notifications(env), 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_doorbells_alone_arm_as_ever)
{
	for (int i = 0; i < 3; i++) {
		fg_cq_arm(&env->b.rcq);
		complete(env, 0);
		assert_int_equal(notifications(env), 1);
		complete(env, 0);
		assert_int_equal(notifications(env), 0);
		fg_cq_drain(&env->b.rcq);
		fg_cq_arm_solicited(&env->b.rcq);
		complete(env, 0);
		assert_int_equal(notifications(env), 0);
		complete(env, PVR_SEND_SOLICITED);
		assert_int_equal(notifications(env), 1);
		fg_cq_drain(&env->b.rcq);
		arm(&env->b.rcq, PVR_CQ_ARM_ANY);
		complete(env, 0);
		assert_int_equal(notifications(env), 1);
		fg_cq_drain(&env->b.rcq);
	}
}

TEST(rc_connected, test_dbrec_notified_is_what_was_announced)
{
	struct fg_cq *cq = &env->b.rcq;

	assert_false(fg_cq_notified(cq));
	complete(env, 0);
	assert_false(fg_cq_notified(cq));
	fg_cq_arm(cq);
	assert_int_equal(notifications(env), 1);
	assert_true(fg_cq_notified(cq));
	complete(env, 0);
	assert_false(fg_cq_notified(cq));
	fg_cq_drain(cq);
	arm(cq, PVR_CQ_ARM_SOLICITED);
	complete(env, 0);
	assert_false(fg_cq_notified(cq));
	complete(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
	assert_true(fg_cq_notified(cq));
}

TEST(rc_connected, test_resized_cq_has_told_nothing)
{
	struct fg_cq *cq = &env->b.rcq;

	arm(cq, PVR_CQ_ARM_ANY);
	complete(env, 0);
	assert_true(fg_cq_notified(cq));
	expect_ok(fg_cq_resize(cq, 512));
	assert_false(fg_cq_notified(cq));
	assert_int_equal(notifications(env), 1);
	fg_cq_drain(cq);
	arm(cq, PVR_CQ_ARM_ANY);
	complete(env, 0);
	assert_true(fg_cq_notified(cq));
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_resized_cq_stays_armed)
{
	/* Nothing has completed since: the device has not seen it when it moves. */
	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	expect_ok(fg_cq_resize(&env->b.rcq, 512));
	assert_int_equal(notifications(env), 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_word_of_the_new_ring_counts_from_0)
{
	uint32_t old;

	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
	fg_cq_drain(&env->b.rcq);
	old = *fg_cq_arm_dbrec(&env->b.rcq);
	expect_ok(fg_cq_resize(&env->b.rcq, 512));
	assert_int_equal(*fg_cq_arm_dbrec(&env->b.rcq), 0);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
	fg_cq_drain(&env->b.rcq);
	/* The value that it saw last in the old ring is a new one here. */
	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	assert_int_equal(*fg_cq_arm_dbrec(&env->b.rcq), old);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_refused_resize_keeps_the_word)
{
	for (int i = 0; i < 3; i++)
		complete(env, 0);
	assert_true(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	assert_int_equal(notifications(env), 1);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 2), EINVAL);
	complete(env, 0);
	assert_int_equal(notifications(env), 0);
	assert_int_equal(fg_cq_drain(&env->b.rcq), 4);
	arm(&env->b.rcq, PVR_CQ_ARM_ANY);
	complete(env, 0);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_without_the_extension_the_word_means_nothing)
{
	struct fg_end c;

	fg_default_ext = EXTENSIONS & ~PVR_EXT_CQ_ARM_DBREC;
	env->g[2] = fg_guest_start(env->host, 3);
	fg_default_ext = EXTENSIONS;
	fg_end_open(&c, env->g[2], PVR_QPT_RC);
	fg_end_connect(&c, &c, NULL);
	for (uint32_t i = 0; i < 20; i++) {
		*fg_cq_arm_dbrec(&c.rcq) = i * PVR_CQ_ARM_STEP + i % 4;
		t_recv(&c, i, 0, 8);
		t_send(&c, i, 64, 8);
		fg_run(env->host);
		expect_recv(&c.rcq, i, 8);
		expect_done(&c.scq, i, PVRDMA_WC_SEND);
	}
	assert_int_equal(fg_cq_events_pending(env->g[2]), 0);
	assert_int_equal(env->g[2]->irq[PVR_VEC_CQ], 0);
	fg_cq_arm(&c.rcq);
	t_recv(&c, 20, 0, 8);
	t_send(&c, 20, 64, 8);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[2]), 1);
	assert_false(fg_cq_notified(&c.rcq));
}

/* An arbitrary value in the arm record costs at most one notification per completion. */
TEST(rc_connected, test_any_value_is_harmless)
{
	static const uint32_t words[] = { UINT32_MAX, 0,	  1u << 31, PVR_CQ_ARM_STEP - 1,
					  0x7fffffff, 0xfffffffc, 2,	    UINT32_MAX,
					  1 };

	for (uint32_t i = 0; i < 300; i++) {
		uint32_t word = i < COUNT(words) ? words[i] : i * 0x9e3779b9u;

		*fg_cq_arm_dbrec(&env->b.rcq) = word;
		complete(env, i % 2 ? PVR_SEND_SOLICITED : 0);
		assert_in_range(fg_cq_events_pending(env->g[1]), 0, 1);
		if (word & PVR_CQ_ARM_ANY)
			assert_int_equal(fg_cq_events_pending(env->g[1]), 1);
		notifications(env);
		if (i % 3 == 0)
			fg_cq_ring(&env->b.rcq, PVR_DB_CQ_ARM | PVR_DB_CQ_ARM_SOL);
		expect_recv(&env->b.rcq, 7, 0);
		fg_run(env->host);
		notifications(env);
	}
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* A CQ in error has no ring any more: its arm record is not read. */
TEST(rc_connected, test_failed_cq_is_not_armed)
{
	for (uint32_t i = 0; i <= FG_END_CQE; i++)
		complete(env, 0);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	assert_true(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	fg_run(env->host);
	assert_int_equal(notifications(env), 0);
}

/* -------------------------------------------------------- at the same time */

#define WAKEUPS 200000
#define PATIENCE_S 20

/* A CPU of the guest that sleeps until the next notification. */
struct sleeper {
	struct t_env *env;
	pthread_t thread;
	uint32_t known; /* completions that were notified or polled */
	bool give_up;
};

static bool gives_up(const struct sleeper *s)
{
	return __atomic_load_n(&s->give_up, __ATOMIC_RELAXED);
}

/* So that it arms at all moments of the device's turn. */
static void dawdle(uint32_t n)
{
	for (volatile uint32_t i = 0; i < n; i++)
		;
}

static void arm_word(struct fg_cq *cq)
{
	uint32_t *word = fg_cq_arm_dbrec(cq);

	__atomic_store_n(word, *word + PVR_CQ_ARM_STEP, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void sleep_until_event(const struct sleeper *s)
{
	uint32_t handle;

	while (!fg_cq_event_poll(s->env->g[1], &handle) && !gives_up(s))
		sched_yield();
}

/* Rings no doorbell, which is not this thread's to do: it reads what it finds instead. */
static void *sleep_and_read(void *arg)
{
	struct sleeper *s = arg;
	struct fg_cq *cq = &s->env->b.rcq;
	struct pvrdma_cqe cqe;

	while (s->known < WAKEUPS && !gives_up(s)) {
		dawdle(s->known * 7 % 2048);
		arm_word(cq);
		if (!fg_cq_pending(cq))
			sleep_until_event(s);
		while (fg_cq_poll(cq, &cqe))
			__atomic_fetch_add(&s->known, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Arms while much is unread, and reads it once in a while, or instead of a doorbell. */
static void *sleep_and_believe(void *arg)
{
	struct sleeper *s = arg;
	struct fg_cq *cq = &s->env->b.rcq;
	uint32_t read = 0;

	while (s->known < WAKEUPS && !gives_up(s)) {
		dawdle(s->known * 7 % 2048);
		arm_word(cq);
		if (fg_cq_pending(cq) && !fg_cq_notified(cq)) {
			read += fg_cq_drain(cq);
		} else {
			sleep_until_event(s);
			read += fg_cq_pending(cq) >= 8 ? fg_cq_drain(cq) : 0;
		}
		__atomic_store_n(&s->known, read + fg_cq_pending(cq), __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Return: whether the sleeper has woken up for @n completions. */
static bool wait_until_known(const struct sleeper *s, uint32_t n)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (__atomic_load_n(&s->known, __ATOMIC_ACQUIRE) < n) {
		if (time(NULL) > end)
			return false;
		sched_yield();
	}
	return true;
}

static void expect_each_wakes(struct t_env *env, void *(*sleeper)(void *arg))
{
	struct sleeper s = { .env = env };
	bool woken = true;

	*fg_cq_arm_dbrec(&env->b.rcq) = PVR_CQ_ARM_ANY;
	assert_int_equal(pthread_create(&s.thread, NULL, sleeper, &s), 0);
	for (uint32_t i = 0; i < WAKEUPS && woken; i++) {
		complete(env, 0);
		woken = wait_until_known(&s, i + 1);
	}
	__atomic_store_n(&s.give_up, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	assert_true(woken);
}

TEST(rc_connected, test_no_wakeup_is_lost)
{
	expect_each_wakes(env, sleep_and_read);
}

TEST(rc_connected, test_no_wakeup_is_lost_on_what_was_told)
{
	expect_each_wakes(env, sleep_and_believe);
}
