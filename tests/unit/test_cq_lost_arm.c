// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CQs with an overwritten arming: notified late, but surely; rarely notified without need. */
#include <pthread.h>
#include <sched.h>

#include "common.h"

#define LATE (50 * FG_US) /* until an unread completion is notified again */

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

TEST(rc_connected, test_arm_that_is_seen_is_at_once)
{
	fg_cq_arm(&env->b.rcq);
	fg_run(env->host);
	t_message(env, 0);
	assert_int_equal(notifications(env), 1);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_lost_arm_is_late)
{
	arm_and_lose_it(env);
	t_message(env, 0);
	fg_advance(env->host, LATE - 1);
	assert_int_equal(notifications(env), 0);
	fg_advance(env->host, 1);
	assert_int_equal(notifications(env), 1);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 1);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_lost_arm_is_remembered)
{
	arm_and_lose_it(env);
	fg_advance(env->host, 1000 * FG_SEC);
	t_message(env, 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

/* The completion was there before the doorbells. */
TEST(rc_connected, test_lost_arm_after_the_completion)
{
	t_message(env, 0);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 0);
	arm_and_lose_it(env);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_doorbell_of_another_cq_may_have_overwritten_it)
{
	fg_cq_arm(&env->b.rcq);
	fg_cq_ring(&env->b.scq, PVR_DB_CQ_POLL);
	fg_run(env->host);
	t_message(env, 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_without_doorbells_no_timer_runs)
{
	for (int i = 0; i < 20; i++) {
		t_message(env, PVR_SEND_SOLICITED);
		fg_advance(env->host, FG_SEC);
	}
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), UINT64_MAX);
}

TEST(rc_connected, test_announced_once)
{
	arm_and_lose_it(env);
	for (int i = 0; i < 10; i++)
		t_message(env, 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
	/* No doorbell since: the CQ cannot be armed again. */
	t_message(env, 0);
	for (int i = 0; i < 10; i++)
		fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 0);
}

/* Polls without end, and consumes in time. */
TEST(rc_connected, test_polling_guests_are_not_bothered)
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
TEST(rc_connected, test_busy_guests_are_bothered_seldom)
{
	uint32_t told = 0;

	for (int i = 0; i < 1000; i++) {
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		fg_run(env->host);
		t_message(env, 0);
		for (int k = 0; k < 100; k++)
			fg_advance(env->host, 100 * FG_US);
		told += notifications(env);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	}
	assert_in_range(told, 1, 20);
}

/* Without any poll: as many completions as fit. */
TEST(rc_connected, test_unread_cq_is_notified_rarely)
{
	uint32_t told = 0;

	for (int i = 0; i < 60; i++) {
		fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
		t_message(env, 0);
		fg_advance(env->host, 3 * FG_MS);
		told += notifications(env);
	}
	assert_in_range(told, 1, 12);
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
	assert_true(env->host->now - start < LATE + 20 * FG_MS);
	arm_and_lose_it(env);
	t_message(env, 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

/* Known to be armed for solicited completions: it stays so. */
TEST(rc_connected, test_late_notice_takes_no_arming_back)
{
	fg_cq_arm_solicited(&env->b.rcq);
	fg_run(env->host);
	t_message(env, 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
	t_message(env, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_cq_goes_while_it_is_watched)
{
	arm_and_lose_it(env);
	t_message(env, 0);
	fg_end_close(&env->b);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), UINT64_MAX);
}

TEST(rc_connected, test_bus_master_off_while_it_is_watched)
{
	arm_and_lose_it(env);
	t_message(env, 0);
	pvr_adapter_set_bus_master(env->g[1]->adapter, false);
	for (int i = 0; i < 10; i++)
		fg_advance(env->host, 100 * FG_MS);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	pvr_adapter_set_bus_master(env->g[1]->adapter, true);
	fg_advance(env->host, 200 * FG_MS);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_failed_adapter_is_left_alone)
{
	arm_and_lose_it(env);
	t_message(env, 0);
	pvr_adapter_fail(env->g[1]->adapter, "a test says so");
	fg_advance(env->host, FG_SEC);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	assert_int_equal(pvr_engine_deadline(env->host->engine, 0), UINT64_MAX);
}

TEST(rc_connected, test_lost_arm_survives_a_resize)
{
	for (int i = 0; i < 40; i++) {
		t_message(env, 0);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	}
	arm_and_lose_it(env);
	t_message(env, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

/* What was to be consumed is known under its new number. */
TEST(rc_connected, test_consumed_in_time_after_a_resize)
{
	for (int i = 0; i < 40; i++) {
		t_message(env, 0);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	}
	arm_and_lose_it(env);
	t_message(env, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	fg_advance(env->host, LATE - 1);
	t_message(env, 0);
	fg_advance(env->host, 1);
	assert_int_equal(notifications(env), 0);
	fg_advance(env->host, LATE);
	assert_int_equal(notifications(env), 1);
}

/* ------------------------------------------------------------------ PVR_EXT_CQ_ARM_DBREC */

TEST(rc_connected, test_arms_in_memory_are_exact)
{
	assert_false(fg_cq_arm_in_memory(&env->b.rcq, PVR_CQ_ARM_ANY));
	t_message(env, 0);
	assert_int_equal(notifications(env), 1);
	fg_cq_drain(&env->b.rcq);
	/* Other CQs of the context ring: this one is known not to be armed. */
	for (int i = 0; i < 10; i++) {
		fg_cq_ring(&env->b.scq, PVR_DB_CQ_POLL);
		fg_run(env->host);
		t_message(env, 0);
		fg_advance(env->host, FG_SEC);
	}
	assert_int_equal(notifications(env), 0);
}

/*
 * A guest that arms in memory and finds a completion rings, too; that doorbell may be
 * lost.
 */
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
	struct fg_wr wr = { .opcode = PVRDMA_WR_SEND, .flags = PVR_SEND_SIGNALED };

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
