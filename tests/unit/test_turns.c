// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The turns of a worker: their sum, and the longest one of a period. */
#include "daemon/turns.h"
#include "test.h"

#define START (1000 * PVR_SEC)
#define SHORT (1 * PVR_MSEC)
#define LONG (50 * PVR_MSEC)

static void turn(struct pvr_turns *turns, uint64_t at, uint64_t length)
{
	pvr_turns_add(turns, START + at, START + at + length);
}

static uint64_t longest(const struct pvr_turns *turns, uint64_t at)
{
	return pvr_turns_longest(turns, START + at);
}

TEST_PLAIN(test_worker_without_turns_has_no_longest_one)
{
	struct pvr_turns turns = { 0 };

	assert_int_equal(longest(&turns, 0), 0);
	assert_int_equal(pvr_turns_busy(&turns), 0);
}

TEST_PLAIN(test_busy_time_is_the_sum_of_all_turns)
{
	struct pvr_turns turns = { 0 };

	turn(&turns, 0, SHORT);
	turn(&turns, PVR_SEC, LONG);
	turn(&turns, 1000 * PVR_SEC, SHORT);
	assert_int_equal(pvr_turns_busy(&turns), 2 * SHORT + LONG);
}

TEST_PLAIN(test_longest_turn_stays_for_a_period_at_least)
{
	struct pvr_turns turns = { 0 };

	turn(&turns, 0, LONG);
	turn(&turns, PVR_SEC, SHORT);
	assert_int_equal(longest(&turns, 2 * PVR_SEC), LONG);
	turn(&turns, PVR_TURNS_PERIOD + PVR_SEC, SHORT);
	assert_int_equal(longest(&turns, PVR_TURNS_PERIOD + 2 * PVR_SEC), LONG);
}

TEST_PLAIN(test_longest_turn_is_forgotten_after_two_periods)
{
	struct pvr_turns turns = { 0 };

	turn(&turns, 0, LONG);
	turn(&turns, PVR_TURNS_PERIOD + PVR_SEC, SHORT);
	turn(&turns, 2 * PVR_TURNS_PERIOD + 2 * PVR_SEC, SHORT);
	assert_int_equal(longest(&turns, 2 * PVR_TURNS_PERIOD + 3 * PVR_SEC), SHORT);
}

TEST_PLAIN(test_longest_turn_of_a_sleeping_worker_is_forgotten)
{
	struct pvr_turns turns = { 0 };

	turn(&turns, 0, LONG);
	assert_int_equal(longest(&turns, PVR_TURNS_PERIOD + PVR_SEC), LONG);
	assert_int_equal(longest(&turns, 2 * PVR_TURNS_PERIOD + PVR_SEC), 0);
	turn(&turns, 3 * PVR_TURNS_PERIOD, SHORT);
	assert_int_equal(longest(&turns, 3 * PVR_TURNS_PERIOD + PVR_SEC), SHORT);
}
