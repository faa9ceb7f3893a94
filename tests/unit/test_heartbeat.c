// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* When a worker counts as alive, against a clock of ours. */
#include "daemon/heartbeat.h"
#include "test.h"

#define START (1000 * PVR_SEC)
#define INTERVAL (20 * PVR_SEC)

static bool is_alive(struct pvr_heartbeat *beat, uint64_t *seen, uint64_t after)
{
	return pvr_heartbeat_is_alive(beat, seen, START + after, INTERVAL);
}

TEST_PLAIN(test_worker_that_ends_iterations_is_alive)
{
	struct pvr_heartbeat beat = { 0 };
	uint64_t seen = 0;

	pvr_heartbeat_round(&beat);
	assert_true(is_alive(&beat, &seen, 0));
	pvr_heartbeat_round(&beat);
	assert_true(is_alive(&beat, &seen, INTERVAL));
}

TEST_PLAIN(test_worker_that_ends_no_iteration_is_not_alive)
{
	struct pvr_heartbeat beat = { 0 };
	uint64_t seen = 0;

	pvr_heartbeat_round(&beat);
	assert_true(is_alive(&beat, &seen, 0));
	assert_false(is_alive(&beat, &seen, INTERVAL));
	pvr_heartbeat_round(&beat);
	assert_true(is_alive(&beat, &seen, 2 * INTERVAL));
}

TEST_PLAIN(test_sleeping_worker_is_alive_until_its_deadline)
{
	struct pvr_heartbeat beat = { 0 };
	uint64_t seen = 0;

	pvr_heartbeat_sleep(&beat, START + PVR_SEC);
	assert_true(is_alive(&beat, &seen, 0));
	assert_true(is_alive(&beat, &seen, INTERVAL));
	assert_false(is_alive(&beat, &seen, 2 * INTERVAL));
	pvr_heartbeat_sleep(&beat, PVR_NEVER);
	assert_true(is_alive(&beat, &seen, 1000 * INTERVAL));
	pvr_heartbeat_sleep(&beat, 0);
	assert_false(is_alive(&beat, &seen, 1000 * INTERVAL));
}
