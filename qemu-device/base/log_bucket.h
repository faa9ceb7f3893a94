/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How many log lines somebody outside may cause. */
#ifndef PVR_LOG_BUCKET_H
#define PVR_LOG_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define PVR_LOG_BUCKET_NS 5000000000ull

struct pvr_log_bucket {
	uint64_t since;
	uint32_t count, suppressed;
};

/*
 * May another line be logged, of @lines in PVR_LOG_BUCKET_NS? @suppressed: how many were
 * not before it, to be told once.
 */
static inline bool pvr_log_bucket_take(struct pvr_log_bucket *bucket, uint32_t lines, uint64_t now,
				       uint32_t *suppressed)
{
	*suppressed = 0;
	if (now - bucket->since >= PVR_LOG_BUCKET_NS) {
		*suppressed = bucket->suppressed;
		*bucket = (struct pvr_log_bucket){ .since = now };
	}
	if (bucket->count < lines) {
		bucket->count++;
		return true;
	}
	bucket->suppressed++;
	return false;
}

#endif /* PVR_LOG_BUCKET_H */
