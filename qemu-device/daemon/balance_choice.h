/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which adapter moves from a full worker to one with time.
 *
 * DOC: which adapter moves
 *
 * Once per period, "--workers auto" compares the busy times of the workers, see turns.h. A
 * worker that was busy for most of the period is full. Its busy time is divided among its
 * adapters by a cost of their requests, because a worker does not measure the time of each
 * adapter. The adapter moves whose move lowers the larger busy time of both workers the most,
 * if that is worth it. At most one adapter moves per period, and stays for some periods.
 */
#ifndef PVR_DAEMON_BALANCE_CHOICE_H
#define PVR_DAEMON_BALANCE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pvr_balance_adapter {
	unsigned int worker;
	uint64_t cost; /* of its requests in this period, in any unit */
	bool stays; /* has moved not long ago, or must not move */
};

struct pvr_balance_move {
	size_t adapter;
	unsigned int from, to;
	unsigned int from_busy, to_busy; /* percent of the period, before the move */
};

/**
 * pvr_balance_choose() - decide whether an adapter moves
 * @busy: ns of the period in which each of @workers workers was busy
 *
 * Return: false if none should.
 */
bool pvr_balance_choose(const uint64_t *busy, unsigned int workers, uint64_t period,
			const struct pvr_balance_adapter *adapters, size_t num,
			struct pvr_balance_move *move);

#endif /* PVR_DAEMON_BALANCE_CHOICE_H */
