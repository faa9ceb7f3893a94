// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_MODERATION: notifications that wait for more completions, or for a time. */
#include "cq_steps.h"
#include "ends.h"

TEST_EXT(PVR_ENGINE_EXT)

static const struct t_cq_case cases[] = {
	{ "the last of the completions notifies",
	  { MODERATE_THREE, ARM, MESSAGE, MESSAGE, MESSAGE, NOTIFIES, MUCH_LATER } },
	{ "the period notifies",
	  { MODERATE_THREE, ARM, MESSAGE, NEARLY_LATE, ONE_NS, NOTIFIES, MUCH_LATER } },
	{ "the period begins with the first completion",
	  { MODERATE_THREE, ARM, MUCH_LATER, MESSAGE, NEARLY_LATE, MESSAGE, ONE_NS, NOTIFIES } },
	{ "completions count from the last notification",
	  { MODERATE_THREE, ARM, MESSAGE, MESSAGE, MESSAGE, NOTIFIES, READ_ALL, ARM, MESSAGE,
	    MESSAGE, READ_ALL, MESSAGE, NOTIFIES } },
	{ "without a number only the period counts",
	  { MODERATE_PERIOD, ARM, MANY_READ, NEARLY_LATE, MESSAGE, ONE_NS, NOTIFIES } },
	{ "armed in memory",
	  { MODERATE_THREE, WORD_ANY, MESSAGE, MESSAGE, IS_NOT_NOTIFIED, LATE, NOTIFIES,
	    IS_NOTIFIED } },
	{ "an arm with unread completions waits, too",
	  { MODERATE_THREE, MESSAGE, ARM, NEARLY_LATE, ONE_NS, NOTIFIES } },
	{ "a solicited arm waits for a solicited completion",
	  { MODERATE_THREE, ARM_SOLICITED, MESSAGE, MUCH_LATER, SOLICITED, LATE, NOTIFIES } },
	{ "no notification without an arm",
	  { MODERATE_THREE, MESSAGE, MESSAGE, MESSAGE, MUCH_LATER } },
	{ "the end of moderation ends the wait",
	  { MODERATE_PERIOD, ARM, MESSAGE, MODERATE_NOT, NOTIFIES, ARM, MESSAGE, NOTIFIES } },
	{ "a smaller number ends the wait",
	  { MODERATE_PERIOD, ARM, MESSAGE, MESSAGE, MODERATE_THREE, NOTIFIES } },
	{ "a resize keeps moderation and wait",
	  { MODERATE_THREE, ARM, MESSAGE, RESIZE, NEARLY_LATE, ONE_NS, NOTIFIES } },
	{ "errors wait, too, and not longer",
	  { MODERATE_THREE, ARM_SOLICITED, FLUSHED, NEARLY_LATE, ONE_NS, NOTIFIES } },
};

TEST_CASES(rc_connected, test_moderation, cases)
{
	t_run_cq_case(env, row);
}

static uint32_t modify(struct t_env *env, uint16_t count, uint16_t period_us)
{
	return fg_modify_cq(env->g[1], env->b.rcq.handle, count, period_us);
}

TEST(rc_connected, test_number_without_a_period_is_refused)
{
	assert_int_equal(modify(env, 2, 0), EINVAL);
	assert_int_equal(modify(env, UINT16_MAX, 0), EINVAL);
	/* One completion is no moderation. */
	expect_ok(modify(env, 1, 0));
	fg_cq_arm(&env->b.rcq);
	t_message(env, 0);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

TEST(rc_connected, test_unknown_cq_is_refused)
{
	assert_int_equal(fg_modify_cq(env->g[1], 12345, 3, 50), EINVAL);
	assert_int_equal(fg_modify_cq(env->g[1], UINT32_MAX, 3, 50), EINVAL);
}

TEST(rc_connected, test_longest_period_is_kept)
{
	expect_ok(modify(env, UINT16_MAX, UINT16_MAX));
	fg_cq_arm(&env->b.rcq);
	t_message(env, 0);
	fg_advance(env->host, UINT16_MAX * FG_US - 1);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 0);
	fg_advance(env->host, 1);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

TEST(rc_connected, test_destroyed_cq_notifies_no_more)
{
	struct fg_cq *cq = &env->b.rcq;

	expect_ok(modify(env, 3, 50));
	fg_cq_arm(cq);
	t_message(env, 0);
	expect_ok(fg_qp_destroy(&env->b.qp));
	expect_ok(fg_cq_destroy(cq));
	fg_advance(env->host, FG_SEC);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
}

/* Without bus mastering the device writes nothing. */
TEST(rc_connected, test_notification_waits_for_bus_mastering)
{
	expect_ok(modify(env, 3, 50));
	fg_cq_arm(&env->b.rcq);
	t_message(env, 0);
	pvr_adapter_set_bus_master(env->g[1]->adapter, false);
	fg_advance(env->host, FG_MS);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	pvr_adapter_set_bus_master(env->g[1]->adapter, true);
	fg_advance(env->host, FG_MS);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

T_SETUP_EXT(without_extension, PVR_ENGINE_EXT & ~PVR_EXT_CQ_MODERATION, rc_connected)

TEST(without_extension, test_command_is_unknown_without_the_extension)
{
	assert_int_not_equal(modify(env, 3, 50), 0);
}
