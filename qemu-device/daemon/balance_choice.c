// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which adapter moves from a full worker to one with time. */
#include "daemon/balance_choice.h"

#define FULL 75 /* percent of the period */
#define WORTH 85 /* percent of the larger busy time at most that a move must leave */

static uint64_t cost_of_worker(const struct pvr_balance_adapter *adapters, size_t num,
			       unsigned int worker)
{
	uint64_t cost = 0;
	size_t i;

	for (i = 0; i < num; i++)
		cost += adapters[i].worker == worker ? adapters[i].cost : 0;
	return cost;
}

static unsigned int percent(uint64_t busy, uint64_t period)
{
	return (unsigned int)(busy >= period ? 100 : busy * 100 / period);
}

static void find_extremes(const uint64_t *busy, unsigned int workers, struct pvr_balance_move *move)
{
	unsigned int i;

	move->from = move->to = 0;
	for (i = 1; i < workers; i++) {
		if (busy[i] > busy[move->from])
			move->from = i;
		if (busy[i] < busy[move->to])
			move->to = i;
	}
}

bool pvr_balance_choose(const uint64_t *busy, unsigned int workers, uint64_t period,
			const struct pvr_balance_adapter *adapters, size_t num,
			struct pvr_balance_move *move)
{
	uint64_t from, to, sum, part, larger, best;
	size_t i;

	find_extremes(busy, workers, move);
	from = busy[move->from];
	to = busy[move->to];
	move->from_busy = percent(from, period);
	move->to_busy = percent(to, period);
	sum = cost_of_worker(adapters, num, move->from);
	if (move->from_busy < FULL || !sum)
		return false;
	best = from * WORTH / 100;
	move->adapter = num;
	for (i = 0; i < num; i++) {
		if (adapters[i].worker != move->from || adapters[i].stays || !adapters[i].cost)
			continue;
		part = (uint64_t)((double)from * (double)adapters[i].cost / (double)sum);
		larger = from - part > to + part ? from - part : to + part;
		if (larger > best)
			continue;
		best = larger;
		move->adapter = i;
	}
	return move->adapter < num;
}
