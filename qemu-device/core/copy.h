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

#include "core/compiler.h"

/* Shorter runs are always the library's. */
#define PVR_COPY_MIN 1024u

struct pvr_copy_impl {
	const char *name;
	/* The CPU has it. */
	bool (*works)(void);
	/* At least PVR_COPY_MIN bytes, which do not overlap. */
	void (*copy)(void *to, const void *from, size_t len);
};

#define PVR_COPY_IMPLS 4
extern const struct pvr_copy_impl pvr_copy_impls[PVR_COPY_IMPLS]; /* the first is the library's */

/*
 * By the length of the message, or of the piece of it that is copied at once: what both
 * ends have in the first level of the cache, and all else. Behind the second level, ways
 * do not differ by much.
 */
#define PVR_COPY_CLASSES 2
#define PVR_COPY_SHORT (16u << 10) /* at most, in the first class */

struct pvr_copy {
	const struct pvr_copy_impl *impl[PVR_COPY_CLASSES];
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
static inline const struct pvr_copy_impl *pvr_copy_impl_for(const struct pvr_copy *copy,
							    uint64_t len)
{
	return copy->impl[len > PVR_COPY_SHORT];
}

/* Not all ways mind that one process may name the same memory on both sides. */
static inline void pvr_copy_run(const struct pvr_copy_impl *impl, void *to, const void *from,
				uint64_t len)
{
	uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;

	if (len < PVR_COPY_MIN || a - b < len || b - a < len)
		memmove(to, from, len);
	else
		impl->copy(to, from, len);
}

/* The run but for its last bytes, then those. */
static pvr_always_inline void pvr_copy_in_two(const struct pvr_copy_impl *impl, uint8_t *to,
					      const uint8_t *from, uint64_t head, uint64_t tail)
{
	uint64_t last;

	/* Loaded first: the head may be copied over it. */
	memcpy(&last, from + head, tail);
	pvr_copy_run(impl, to, from, head);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to + head, &last, tail);
}

/*
 * The run with which a message ends. Its last bytes are stored last: programs poll them to see that
 * all of a WRITE is there, which no specification promises, but adapters do. The ways above store
 * them when they like. They are as many as one aligned store has, so that who polls for a number
 * sees all of it or nothing.
 */
static inline void pvr_copy_last(const struct pvr_copy_impl *impl, void *to, const void *from,
				 uint64_t len)
{
	uint64_t tail = 1u << __builtin_ctzl(((uintptr_t)to + len) | sizeof(uint64_t));

	if (len <= tail)
		memmove(to, from, len);
	else if (tail == sizeof(uint64_t)) /* known to the compiler, and the usual one */
		pvr_copy_in_two(impl, to, from, len - sizeof(uint64_t), sizeof(uint64_t));
	else
		pvr_copy_in_two(impl, to, from, len - tail, tail);
}

#endif /* PVR_COPY_H */
