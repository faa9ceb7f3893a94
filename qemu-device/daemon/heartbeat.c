// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* When a worker is alive. */
#include "daemon/heartbeat.h"

bool pvr_heartbeat_is_alive(const struct pvr_heartbeat *beat, uint64_t *seen, uint64_t now,
			    uint64_t interval)
{
	uint64_t rounds = __atomic_load_n(&beat->rounds, __ATOMIC_RELAXED);
	uint64_t until = __atomic_load_n(&beat->sleeps_until, __ATOMIC_RELAXED);
	bool moved = rounds != *seen;

	*seen = rounds;
	/* After a deadline of its own, a worker may wait for a CPU. */
	return moved || (until && (until >= now || now - until < interval));
}
