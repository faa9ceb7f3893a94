// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_ARM_DBREC: CQs that are armed in memory, by doorbell, and by both. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "cq_steps.h"
#include "ends.h"

#define EXTENSIONS (PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE)

TEST_EXT(EXTENSIONS)

/* One completion on b's receive CQ. */
static void complete(struct t_env *env, uint32_t flags)
{
	t_message(env, PVR_SEND_SIGNALED | flags);
	expect_sent(&env->a, 7);
}

static uint32_t notifications(struct t_env *env)
{
	return fg_cq_events_count(env->g[1], env->b.rcq.handle);
}

static const struct t_cq_case armings[] = {
	{ "no notification before a completion", { WORD_ANY, MESSAGE, NOTIFIES } },
	{ "each value arms once",
	  { WORD_ANY, MESSAGE, NOTIFIES, SOLICITED, READ_ALL, WORD_ANY, MESSAGE, NOTIFIES,
	    SOLICITED, READ_ALL } },
	{ "solicited ignores other completions",
	  { WORD_SOLICITED, MESSAGE, MESSAGE, SOLICITED, NOTIFIES, SOLICITED } },
	{ "solicited sees errors", { WORD_SOLICITED, FLUSHED, NOTIFIES } },
	{ "both kinds mean any", { WORD_NONE, SOLICITED, READ_ALL, WORD_BOTH, MESSAGE, NOTIFIES } },
	{ "no kind does not cancel an earlier one",
	  { WORD_SOLICITED, MESSAGE, READ_ALL, WORD_NONE, MESSAGE, SOLICITED, NOTIFIES } },
	/* The doorbell that goes with an arming is the same arming. */
	{ "unread completions count at once and once", { MESSAGE, WORD_ANY, NOTIFIES, MESSAGE } },
	{ "notified completions do not count again",
	  { WORD_ANY, MESSAGE, NOTIFIES, WORD_ANY, MESSAGE, NOTIFIES, MESSAGE } },
	{ "doorbells alone arm",
	  { ARM, MESSAGE, NOTIFIES, MESSAGE, READ_ALL, ARM_SOLICITED, MESSAGE, SOLICITED, NOTIFIES,
	    READ_ALL, WORD_ANY, MESSAGE, NOTIFIES, READ_ALL, ARM, MESSAGE, NOTIFIES } },
	{ "the arm record says what was notified",
	  { IS_NOT_NOTIFIED, MESSAGE, IS_NOT_NOTIFIED, ARM, NOTIFIES, IS_NOTIFIED, MESSAGE,
	    IS_NOT_NOTIFIED, READ_ALL, WORD_SOLICITED, MESSAGE, IS_NOT_NOTIFIED, SOLICITED,
	    NOTIFIES, IS_NOTIFIED } },
	{ "a resized CQ has notified nothing",
	  { WORD_ANY, MESSAGE, NOTIFIES, IS_NOTIFIED, RESIZE, IS_NOT_NOTIFIED, READ_ALL, WORD_ANY,
	    MESSAGE, NOTIFIES, IS_NOTIFIED } },
	/* Nothing has completed since: the device has not seen it when it moves. */
	{ "a resized CQ stays armed", { WORD_ANY, RESIZE, MESSAGE, NOTIFIES, MESSAGE } },
	/* The value that the device saw last in the old ring is a new one in the new ring. */
	{ "the record of the new ring counts from 0",
	  { WORD_ANY, MESSAGE, NOTIFIES, READ_ALL, RESIZE, MESSAGE, READ_ALL, WORD_ANY, MESSAGE,
	    NOTIFIES } },
	{ "a refused resize keeps the record",
	  { MESSAGE, MESSAGE, MESSAGE, WORD_ANY, NOTIFIES, BAD_RESIZE, MESSAGE, READ_ALL, WORD_ANY,
	    MESSAGE, NOTIFIES } },
};

TEST_CASES(rc_connected, test_arming, armings)
{
	t_run_cq_case(env, row);
}

TEST(rc_connected, test_without_the_extension_the_word_means_nothing)
{
	struct fg_end c;

	fg_default_ext = EXTENSIONS & ~PVR_EXT_CQ_ARM_DBREC;
	env->g[2] = fg_guest_start(env->host, 3);
	fg_default_ext = EXTENSIONS;
	t_open_self(&c, env->g[2]);
	for (uint32_t i = 0; i <= 20; i++) {
		*fg_cq_arm_dbrec(&c.rcq) = i * PVR_CQ_ARM_STEP + i % 4;
		if (i == 20)
			fg_cq_arm(&c.rcq);
		t_recv(&c, i, 0, 8);
		t_send(&c, i, 64, 8);
		await_recv(&c.rcq, i, 8);
		expect_sent(&c, i);
		assert_int_equal(fg_cq_events_pending(env->g[2]), i == 20);
		assert_int_equal(env->g[2]->irq[PVR_VEC_CQ], i == 20);
	}
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
static void *sleep_by_record(void *arg)
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

static const struct {
	const char *label;
	void *(*run)(void *arg);
} sleepers[] = {
	{ "if it reads what is unread", sleep_and_read },
	{ "if it relies on the arm record", sleep_by_record },
};

TEST_CASES(rc_connected, test_no_wakeup_is_lost, sleepers)
{
	struct sleeper s = { .env = env };
	bool woken = true;

	*fg_cq_arm_dbrec(&env->b.rcq) = PVR_CQ_ARM_ANY;
	assert_int_equal(pthread_create(&s.thread, NULL, row->run, &s), 0);
	for (uint32_t i = 0; i < WAKEUPS && woken; i++) {
		complete(env, 0);
		woken = wait_until_known(&s, i + 1);
	}
	__atomic_store_n(&s.give_up, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	assert_true(woken);
}
