/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fastest copy function of this CPU.
 *
 * DOC: choice of the copy function
 *
 * - Guests' pages are scattered, so a large message is many copies of 4 KiB.
 * - The C library chooses its method by the length of each copy. The engine chooses by
 *   the length of the message, which tells the cache level that holds it.
 * - In the first-level cache, an unrolled loop of the widest registers is up to 1.8 times
 *   as fast as the C library. Beyond it, the CPU's string copy may be the fastest.
 * - The daemon measures all functions at its start. The C library's function is used
 *   unless another one is clearly faster.
 *
 * DOC: cold memory
 *
 * - The CPU's prefetcher stops at the end of a page and needs some lines to begin again. From
 *   memory, scattered pages one after the other take 1.6 times as long as contiguous ones.
 * - So PVR_COPY_LANES pages are copied at once, a block of each in turn: then the prefetcher
 *   follows that many pages. This takes as long as contiguous memory.
 * - From the second-level cache this is some percent slower. Pages that were a destination a
 *   few messages ago are expected there, see struct pvr_copy_recent.
 * - Stores that bypass the caches are about as fast, but the reader of the message then takes
 *   twice as long.
 */
#ifndef PVR_COPY_H
#define PVR_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/compiler.h"

/* Shorter runs are always copied by the C library. */
#define PVR_COPY_MIN 1024u

struct pvr_copy_impl {
	const char *name;
	/* Return: whether this CPU has the instructions. */
	bool (*works)(void);
	/* @len: at least PVR_COPY_MIN bytes. The buffers do not overlap. */
	void (*copy)(void *to, const void *from, size_t len);
};

#define PVR_COPY_IMPLS 4
extern const struct pvr_copy_impl pvr_copy_impls[PVR_COPY_IMPLS]; /* [0]: the C library */

/*
 * Classes of lengths: of a message, or of the fragment that is copied at once. Class 0:
 * both buffers fit into the first-level cache. Class 1: all longer lengths. Beyond the
 * second-level cache all functions are about as fast.
 */
#define PVR_COPY_CLASSES 2
#define PVR_COPY_SHORT (16u << 10) /* maximum length of class 0 */

/* Pages that are copied at once. */
#define PVR_COPY_LANES 4
/* The bytes of a page that are copied in turn. */
#define PVR_COPY_BLOCK 512u

/*
 * Copy @len bytes, a multiple of PVR_COPY_BLOCK, of each lane. No destination overlaps a source.
 */
typedef void pvr_copy_lanes(void *const to[PVR_COPY_LANES], const void *const from[PVR_COPY_LANES],
			    size_t len);
/* Return: NULL if this CPU has no fast way. */
pvr_copy_lanes *pvr_copy_lanes_of_cpu(void);

struct pvr_copy {
	const struct pvr_copy_impl *impl[PVR_COPY_CLASSES];
	pvr_copy_lanes *lanes; /* or NULL */
};

/* Destinations of the last messages above PVR_COPY_SHORT: half of a second-level cache. */
#define PVR_COPY_RECENT 8
struct pvr_copy_recent {
	const void *to[PVR_COPY_RECENT];
	unsigned int last; /* index of the last one that was found or added */
	unsigned int next;
};

/* The same for a destination that is not the last one. */
bool pvr_copy_note_other(struct pvr_copy_recent *recent, const void *to);

/* Add a destination. Return: whether it was there: its memory is in a cache. */
static inline bool pvr_copy_note(struct pvr_copy_recent *recent, const void *to)
{
	return recent->to[recent->last] == to || pvr_copy_note_other(recent, to);
}

/* Number of measurements of each function; each reads the clock twice. */
#define PVR_COPY_ROUNDS 15

/* Use the C library for all lengths, and no lanes. */
void pvr_copy_init(struct pvr_copy *copy);

/**
 * pvr_copy_measure() - measure all functions and choose the fastest for each class
 * @now: a clock in nanoseconds
 *
 * Takes a few milliseconds. Changes nothing if out of memory or if the clock stands
 * still.
 */
void pvr_copy_measure(struct pvr_copy *copy, uint64_t (*now)(void *opaque), void *opaque);

/* The copy function for a message of @len bytes. */
static inline const struct pvr_copy_impl *pvr_copy_impl_for(const struct pvr_copy *copy,
							    uint64_t len)
{
	return copy->impl[len > PVR_COPY_SHORT];
}

/* Overlapping buffers need memmove(): a guest may use the same memory at both ends. */
static inline void pvr_copy_run(const struct pvr_copy_impl *impl, void *to, const void *from,
				uint64_t len)
{
	uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;

	if (len < PVR_COPY_MIN || a - b < len || b - a < len)
		memmove(to, from, len);
	else
		impl->copy(to, from, len);
}

/* Copy the first @head bytes, then the last @tail bytes. */
static pvr_always_inline void pvr_copy_in_two(const struct pvr_copy_impl *impl, uint8_t *to,
					      const uint8_t *from, uint64_t head, uint64_t tail)
{
	uint64_t last;

	/* Load the tail first: the copy of the head may overwrite it. */
	memcpy(&last, from + head, tail);
	pvr_copy_run(impl, to, from, head);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to + head, &last, tail);
}

/*
 * Copy the last run of a message, and store its last bytes last. Programs poll these
 * bytes to detect the end of an RDMA WRITE. No specification guarantees this order, but
 * adapters keep it. The copy functions above do not. The last bytes are one aligned
 * store, so a program that polls a number sees all of its bytes or none.
 */
static inline void pvr_copy_last(const struct pvr_copy_impl *impl, void *to, const void *from,
				 uint64_t len)
{
	uint64_t tail = 1u << __builtin_ctzl(((uintptr_t)to + len) | sizeof(uint64_t));

	if (len <= tail)
		memmove(to, from, len);
	else if (tail == sizeof(uint64_t)) /* the usual case, with a constant length */
		pvr_copy_in_two(impl, to, from, len - sizeof(uint64_t), sizeof(uint64_t));
	else
		pvr_copy_in_two(impl, to, from, len - tail, tail);
}

#endif /* PVR_COPY_H */
