// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which adapter moves from a full worker to another one. */
#include "base/loop.h"
#include "daemon/balance_choice.h"
#include "test.h"

#define PERIOD PVR_SEC
#define PERCENT (PERIOD / 100)

static bool choose(const uint64_t *busy, unsigned int workers,
		   const struct pvr_balance_adapter *adapters, size_t num,
		   struct pvr_balance_move *move)
{
	return pvr_balance_choose(busy, workers, PERIOD, adapters, num, move);
}

TEST_PLAIN(test_adapter_leaves_a_full_worker)
{
	const uint64_t busy[] = { 98 * PERCENT, 2 * PERCENT };
	const struct pvr_balance_adapter adapters[] = { { 0, 50, false }, { 0, 50, false } };
	struct pvr_balance_move move;

	assert_true(choose(busy, 2, adapters, 2, &move));
	assert_int_equal(move.from, 0);
	assert_int_equal(move.to, 1);
	assert_int_equal(move.from_busy, 98);
	assert_int_equal(move.to_busy, 2);
}

TEST_PLAIN(test_worker_with_time_keeps_its_adapters)
{
	const uint64_t busy[] = { 70 * PERCENT, 0 };
	const struct pvr_balance_adapter adapters[] = { { 0, 50, false }, { 0, 50, false } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 2, adapters, 2, &move));
}

/* The other worker would be as full. */
TEST_PLAIN(test_only_busy_adapter_stays)
{
	const uint64_t busy[] = { 100 * PERCENT, 0 };
	const struct pvr_balance_adapter adapters[] = { { 0, 100, false }, { 0, 0, false } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 2, adapters, 2, &move));
}

TEST_PLAIN(test_adapter_that_balances_best_moves)
{
	const uint64_t busy[] = { 10 * PERCENT, 100 * PERCENT, 60 * PERCENT };
	const struct pvr_balance_adapter adapters[] = {
		{ 1, 70, false }, { 2, 45, false }, { 1, 10, false }, { 1, 40, false }
	};
	struct pvr_balance_move move;

	assert_true(choose(busy, 3, adapters, 4, &move));
	assert_int_equal(move.adapter, 3);
	assert_int_equal(move.to, 0);
}

TEST_PLAIN(test_adapter_that_must_stay_does_not_move)
{
	const uint64_t busy[] = { 100 * PERCENT, 0 };
	const struct pvr_balance_adapter adapters[] = { { 0, 50, true }, { 0, 50, true } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 2, adapters, 2, &move));
}

/* Both are full: a move would not help, and the next period would move it back. */
TEST_PLAIN(test_nothing_moves_between_full_workers)
{
	const uint64_t busy[] = { 100 * PERCENT, 95 * PERCENT };
	const struct pvr_balance_adapter adapters[] = { { 0, 5, false },
							{ 0, 95, false },
							{ 1, 100, false } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 2, adapters, 3, &move));
}

TEST_PLAIN(test_full_worker_without_requests_keeps_its_adapters)
{
	const uint64_t busy[] = { 100 * PERCENT, 0 };
	const struct pvr_balance_adapter adapters[] = { { 0, 0, false }, { 0, 0, false } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 2, adapters, 2, &move));
}

TEST_PLAIN(test_single_worker_keeps_its_adapters)
{
	const uint64_t busy[] = { 100 * PERCENT };
	const struct pvr_balance_adapter adapters[] = { { 0, 50, false }, { 0, 50, false } };
	struct pvr_balance_move move;

	assert_false(choose(busy, 1, adapters, 2, &move));
}
