// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CQs with an overwritten arming: notified late, but surely; rarely notified without need. */
#include <pthread.h>
#include <sched.h>

#include "cq_steps.h"
#include "ends.h"

TEST_INIT
{
	fg_default_uar_mapped = true;
	fg_default_ext = PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE;
}

static uint32_t notifications(struct t_env *env)
{
	return fg_cq_events_count(env->g[1], env->b.rcq.handle);
}

/* As a stock program before it waits: arm, and poll once more. */
static void arm_and_lose_it(struct t_env *env)
{
	fg_cq_arm(&env->b.rcq);
	fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
	fg_run(env->host);
}

/* Such an arming, and then a completion. */
T_SETUP(lost_arm, rc_connected)
{
	arm_and_lose_it(env);
	t_message(env, 0);
}

static const struct t_cq_case armings[] = {
	{ "an arm that is seen notifies at once", { ARM, MESSAGE, NOTIFIES, MUCH_LATER } },
	{ "a lost arm notifies late",
	  { LOST_ARM, MESSAGE, NEARLY_LATE, ONE_NS, NOTIFIES, MUCH_LATER } },
	{ "a lost arm is remembered", { LOST_ARM, MUCH_LATER, MESSAGE, LATE, NOTIFIES } },
	{ "a lost arm after the completion", { MESSAGE, MUCH_LATER, LOST_ARM, LATE, NOTIFIES } },
	{ "a doorbell of another CQ may have overwritten it",
	  { ARM_LOST_TO_OTHER, MESSAGE, LATE, NOTIFIES } },
	/* No doorbell since: the CQ cannot be armed again. */
	{ "many completions, one notification",
	  { LOST_ARM, MESSAGE, MESSAGE, MESSAGE, LATE, NOTIFIES, MESSAGE, LATE, MUCH_LATER,
	    MUCH_LATER } },
	{ "a late notification takes no arming back",
	  { ARM_SOLICITED, MESSAGE, LATE, NOTIFIES, SOLICITED, NOTIFIES } },
	{ "a lost arm survives a resize",
	  { MANY_READ, LOST_ARM, MESSAGE, RESIZE, LATE, NOTIFIES } },
	/* The index that the guest is to reach in time moves to the new ring, too. */
	{ "read in time after a resize",
	  { MANY_READ, LOST_ARM, MESSAGE, RESIZE, READ_ALL, NEARLY_LATE, MESSAGE, ONE_NS, LATE,
	    NOTIFIES } },
	/* PVR_EXT_CQ_ARM_DBREC: this CQ is known not to be armed, others of the context ring. */
	{ "arms in memory are exact",
	  { WORD_ANY, MESSAGE, NOTIFIES, READ_ALL, OTHER_POLL_BELL, MESSAGE, MUCH_LATER,
	    OTHER_POLL_BELL, MESSAGE, MUCH_LATER, OTHER_POLL_BELL, MESSAGE, MUCH_LATER } },
};

TEST_CASES(rc_connected, test_arming, armings)
{
	t_run_cq_case(env, row);
}

TEST(rc_connected, test_without_doorbells_no_timer_runs)
{
	for (int i = 0; i < 20; i++) {
		t_message(env, PVR_SEND_SOLICITED);
		fg_advance(env->host, FG_SEC);
	}
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	expect_no_timer(env->host);
}

/* Polls without end, and consumes in time. */
TEST(rc_connected, test_polling_guests_are_not_notified)
{
	for (int i = 0; i < 5000; i++) {
		t_message(env, 0);
		fg_advance(env->host, 10 * FG_US);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		fg_advance(env->host, 3 * FG_US);
	}
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 0);
}

/* Only new completions are unread: older ones are consumed in time. */
TEST(rc_connected, test_stream_that_is_never_all_read_is_no_reason)
{
	struct pvrdma_cqe cqe;

	fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
	fg_run(env->host);
	t_message(env, 0);
	for (int i = 0; i < 1000; i++) {
		t_message(env, 0);
		fg_advance(env->host, 20 * FG_US);
		assert_true(fg_cq_poll(&env->b.rcq, &cqe));
	}
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
}

/* Polls now and then, computes in between, and never reads its completion channel. */
TEST(rc_connected, test_busy_guests_are_notified_rarely)
{
	uint32_t notified = 0;

	for (int i = 0; i < 1000; i++) {
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		fg_run(env->host);
		t_message(env, 0);
		for (int k = 0; k < 100; k++)
			fg_advance(env->host, 100 * FG_US);
		notified += notifications(env);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	}
	assert_in_range(notified, 1, 20);
}

/* Without any poll: as many completions as fit. */
TEST(rc_connected, test_unread_cq_is_notified_rarely)
{
	uint32_t notified = 0;

	for (int i = 0; i < 60; i++) {
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		t_message(env, 0);
		fg_advance(env->host, 3 * FG_MS);
		notified += notifications(env);
	}
	assert_in_range(notified, 1, 12);
	assert_int_equal(fg_cq_drain(&env->b.rcq), 60);
}

/* Always answered at once: it stays as quick as it was, also after a time of bad luck. */
TEST(rc_connected, test_backoff_ends_when_a_reader_waits)
{
	uint64_t start;

	for (int i = 0; i < 30; i++) {
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		t_message(env, 0);
		for (int k = 0; k < 2000; k++)
			fg_advance(env->host, FG_MS);
		fg_cq_drain(&env->b.rcq);
		notifications(env);
	}
	for (int i = 0; i < 10; i++) {
		arm_and_lose_it(env);
		t_message(env, 0);
		start = env->host->now;
		while (!fg_cq_events_pending(env->g[1])) {
			fg_advance(env->host, 10 * FG_US);
			assert_true(env->host->now - start <= FG_SEC);
		}
		assert_int_equal(notifications(env), 1);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
		fg_advance(env->host, 10 * FG_MS);
	}
	assert_true(env->host->now - start < T_LATE + 20 * FG_MS);
	arm_and_lose_it(env);
	t_message(env, 0);
	fg_advance(env->host, T_LATE);
	assert_int_equal(notifications(env), 1);
}

static void expect_forgotten(struct t_env *env)
{
	fg_advance(env->host, FG_SEC);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	expect_no_timer(env->host);
}

TEST(lost_arm, test_cq_goes_while_it_is_watched)
{
	fg_end_close(&env->b);
	expect_forgotten(env);
}

TEST(lost_arm, test_adapter_fails_while_its_cq_is_watched)
{
	pvr_adapter_fail(env->g[1]->adapter, "a test");
	expect_forgotten(env);
}

TEST(lost_arm, test_bus_master_off_while_it_is_watched)
{
	pvr_adapter_set_bus_master(env->g[1]->adapter, false);
	for (int i = 0; i < 10; i++)
		fg_advance(env->host, 100 * FG_MS);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	pvr_adapter_set_bus_master(env->g[1]->adapter, true);
	fg_advance(env->host, 200 * FG_MS);
	assert_int_equal(notifications(env), 1);
}

/* A guest that arms in memory and finds a completion rings, too; that doorbell may be lost. */
TEST(rc_connected, test_lost_doorbell_of_an_arm_in_memory)
{
	t_message(env, 0);
	assert_true(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	fg_cq_ring(&env->b.scq, PVR_DB_CQ_POLL);
	fg_run(env->host);
	assert_int_equal(notifications(env), 1);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 0);
}

/* ------------------------------------------------------- a guest with a vCPU of its own */

#define WAITS 100

struct vcpu {
	struct t_env *env;
	uint32_t slept; /* for an event */
	bool done; /* the device's side may stop */
};

/* As a stock program waits: arm, poll once more, which also rings, and sleep. */
static void wait_for_completion(struct vcpu *v)
{
	struct fg_end *a = &v->env->a;
	struct pvrdma_cqe cqe;
	uint32_t handle;

	while (!fg_cq_poll(&a->scq, &cqe)) {
		fg_cq_arm(&a->scq);
		if (fg_cq_poll(&a->scq, &cqe))
			return;
		fg_cq_ring(&a->scq, PVR_DB_CQ_POLL);
		while (!fg_cq_event_poll(v->env->g[0], &handle))
			sched_yield();
		v->slept++;
	}
}

static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;
	const struct fg_wr wr = { .opcode = PVRDMA_WR_SEND, .flags = PVR_SEND_SIGNALED };

	for (int i = 0; i < WAITS; i++) {
		if (!fg_post_send(&v->env->a.qp, &wr))
			fg_die("the queue is full");
		wait_for_completion(v);
	}
	__atomic_store_n(&v->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST(rc_connected, test_no_wake_up_is_lost_in_a_race)
{
	struct vcpu v = { .env = env };
	struct pvrdma_cqe cqe;
	pthread_t thread;

	for (int i = 0; i < 32; i++)
		t_recv(&env->b, 7, 0, 0);
	fg_run(env->host);
	assert_int_equal(pthread_create(&thread, NULL, run_vcpu, &v), 0);
	while (!__atomic_load_n(&v.done, __ATOMIC_ACQUIRE)) {
		pvr_engine_poll(env->host->engine, 0);
		pvr_engine_run(env->host->engine, 0);
		env->host->now += FG_US;
		while (fg_cq_poll(&env->b.rcq, &cqe))
			t_recv(&env->b, 7, 0, 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(v.slept > 0);
}
