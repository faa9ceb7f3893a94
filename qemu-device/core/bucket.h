/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A token bucket as a virtual clock (GCRA).
 *
 * @next is the time at which all units taken so far are paid for, at @rate units per second. An
 * idle bucket saves the units of at most @depth nanoseconds. No unit is lost by rounding.
 */
#ifndef PVR_BUCKET_H
#define PVR_BUCKET_H

#include <stdint.h>

#define PVR_BUCKET_SEC 1000000000ull

struct pvr_bucket {
	uint64_t rate; /* units per second, not 0 */
	uint64_t depth; /* ns */
	uint64_t next; /* ns */
	uint64_t rest; /* of @next, in 1 / @rate ns; below @rate */
};

/* Return: the units that are saved at the time @now, at most @max. */
static inline uint64_t pvr_bucket_saved(const struct pvr_bucket *bucket, uint64_t now, uint64_t max)
{
	uint64_t ns = now > bucket->next ? now - bucket->next : 0;

	ns = ns < bucket->depth ? ns : bucket->depth;
	/* The product fits: @depth is some seconds, or the time of @max units. */
	if (ns > max * PVR_BUCKET_SEC / bucket->rate)
		return max;
	return ns * bucket->rate / PVR_BUCKET_SEC;
}

/*
 * Take @units, up to 2^34. Return: the time from which they may be used: @now or earlier if the
 * bucket has saved something, else when the units before them are paid for.
 */
static inline uint64_t pvr_bucket_take(struct pvr_bucket *bucket, uint64_t now, uint64_t units)
{
	uint64_t work = units * PVR_BUCKET_SEC, start;

	if (now > bucket->depth && bucket->next < now - bucket->depth) {
		bucket->next = now - bucket->depth;
		bucket->rest = 0;
	}
	start = bucket->next;
	bucket->rest += work % bucket->rate;
	bucket->next += work / bucket->rate + (bucket->rest >= bucket->rate);
	bucket->rest -= bucket->rest >= bucket->rate ? bucket->rate : 0;
	return start;
}

/* Undo the take of @units that were not used. */
static inline void pvr_bucket_give_back(struct pvr_bucket *bucket, uint64_t units)
{
	uint64_t work = units * PVR_BUCKET_SEC, rest = work % bucket->rate;
	uint64_t ns = work / bucket->rate + (bucket->rest < rest);

	bucket->rest += (bucket->rest < rest ? bucket->rate : 0) - rest;
	bucket->next -= ns < bucket->next ? ns : bucket->next;
}

#endif /* PVR_BUCKET_H */
