/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Rate limit for log lines that a guest or another host can cause. */
#ifndef PVR_BASE_RATELIMIT_H
#define PVR_BASE_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define PVR_RATELIMIT_NS 5000000000ull

struct pvr_ratelimit {
	uint64_t since;
	uint32_t count, suppressed;
};

/*
 * Return: true if one more line may be logged, of @lines per PVR_RATELIMIT_NS.
 * @suppressed: the number of lines suppressed in the previous period; reported once.
 */
static inline bool pvr_ratelimit_pass(struct pvr_ratelimit *ratelimit, uint32_t lines, uint64_t now,
				      uint32_t *suppressed)
{
	*suppressed = 0;
	if (now - ratelimit->since >= PVR_RATELIMIT_NS) {
		*suppressed = ratelimit->suppressed;
		*ratelimit = (struct pvr_ratelimit){ .since = now };
	}
	if (ratelimit->count < lines) {
		ratelimit->count++;
		return true;
	}
	ratelimit->suppressed++;
	return false;
}

#endif /* PVR_BASE_RATELIMIT_H */
