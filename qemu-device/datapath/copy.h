/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fastest way to copy that this CPU has.
 *
 * DOC: ways
 *
 * Guests' pages are scattered, so a large message is many copies of 4 KiB. The C library
 * chooses by the length of each; we know that of the message, and so in which cache it
 * may lie: an unrolled loop of the widest registers is up to 1.8 times as fast as the
 * library in the first level, the CPU's own string copy is behind that. Which one it is
 * for which length is measured when the daemon starts, and the library's is used unless
 * another one is clearly faster.
 */
#ifndef PVR_COPY_H
#define PVR_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Shorter runs are always the library's. */
#define PVR_COPY_MIN 1024u

struct pvr_copy_way {
	const char *name;
	/* The CPU has it. */
	bool (*works)(void);
	/* At least PVR_COPY_MIN bytes, which do not overlap. */
	void (*copy)(void *to, const void *from, size_t len);
};

#define PVR_COPY_WAYS 4
extern const struct pvr_copy_way pvr_copy_ways[PVR_COPY_WAYS]; /* the first is the library's */

/*
 * By the length of the message, or of the piece of it that is copied at once: what both
 * ends have in the first level of the cache, and all else. Behind the second level, ways
 * do not differ by much.
 */
#define PVR_COPY_CLASSES 2
#define PVR_COPY_SHORT (16u << 10) /* at most, in the first class */

struct pvr_copy {
	const struct pvr_copy_way *way[PVR_COPY_CLASSES];
};

/* Each way is tried so often, by two looks at the clock. */
#define PVR_COPY_ROUNDS 15

/* The library's, for all lengths. */
void pvr_copy_init(struct pvr_copy *copy);

/**
 * pvr_copy_measure() - try all ways, and choose for each class
 * @now: a clock in nanoseconds
 *
 * Takes a few milliseconds. Without memory, or if the clock stands still, nothing changes.
 */
void pvr_copy_measure(struct pvr_copy *copy, uint64_t (*now)(void *opaque), void *opaque);

/* The way for a message of @len. */
static inline const struct pvr_copy_way *pvr_copy_way_for(const struct pvr_copy *copy,
							  uint64_t len)
{
	return copy->way[len > PVR_COPY_SHORT];
}

/* Not all ways mind that one process may name the same memory on both sides. */
static inline void pvr_copy_run(const struct pvr_copy_way *way, void *to, const void *from,
				uint64_t len)
{
	uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;

	if (len < PVR_COPY_MIN || a - b < len || b - a < len)
		memmove(to, from, len);
	else
		way->copy(to, from, len);
}

#endif /* PVR_COPY_H */
