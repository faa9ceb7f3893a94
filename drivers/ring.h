/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Index arithmetic of the rings that driver and device share. */
#ifndef PVR_RING_H
#define PVR_RING_H

#include <asm/barrier.h>
#include <linux/compiler.h>
#include <linux/types.h>
#include "pvrdma_abi.h"

/*
 * DOC: Rings
 *
 * Each index has one writer, which keeps a private copy and only ever stores to
 * the shared one; the other side's index is loaded once, checked with
 * pvr_ring_used(), and then used. Pairing of barriers:
 *
 *  producer                          consumer
 *  write element                     load prod_tail
 *  dma_wmb()                         dma_rmb()
 *  store prod_tail                   read element
 *                                    pvr_ring_release(), which orders it before
 *  load cons_head                    store cons_head
 *
 * With PVR_EXT_QUIET and PVR_EXT_ARM each side stores something, has a full barrier,
 * and looks whether the other one did: pvr_ring_waits(), pvr_req_notify_cq().
 */

/**
 * pvr_ring_next() - the index after @idx in a ring of @n elements
 * @idx: a valid index, 0 .. 2n-1
 * @n: a power of two
 */
static inline u32 pvr_ring_next(u32 idx, u32 n)
{
	return (idx + 1) & (2 * n - 1);
}

/**
 * pvr_ring_slot() - the element that index @idx stands for
 * @idx: a valid index
 * @n: a power of two
 */
static inline u32 pvr_ring_slot(u32 idx, u32 n)
{
	return idx & (n - 1);
}

/**
 * pvr_ring_used() - how many elements lie between two indices
 * @tail: the producer's index, possibly garbage
 * @head: the consumer's index, possibly garbage
 * @n: a power of two
 *
 * Return: 0 .. n, or more than n when the indices cannot both be right.
 */
static inline u32 pvr_ring_used(u32 tail, u32 head, u32 n)
{
	if ((tail | head) & ~(2 * n - 1))
		return U32_MAX;
	return (tail - head) & (2 * n - 1);
}

/**
 * pvr_ring_publish() - make everything written so far visible up to @tail
 * @ring_shm: the shared indices; this side produces
 * @tail: the new index
 */
static inline void pvr_ring_publish(struct pvr_ring *ring_shm, u32 tail)
{
	/* Pairs with the device's acquire load of prod_tail. */
	dma_wmb();
	WRITE_ONCE(ring_shm->prod_tail, tail);
}

/**
 * pvr_ring_quiet() - what a device with PVR_EXT_QUIET says of its queues
 * @page: the first page of a QP or SRQ
 */
static inline const struct pvr_quiet *pvr_ring_quiet(const void *page)
{
	return page + PVR_QUIET_OFFSET;
}

/**
 * pvr_ring_waits() - does the device wait for a doorbell?
 * @quiet_shm: the word of the queue, or NULL if there is none
 *
 * The caller has published its index.
 */
static inline bool pvr_ring_waits(const u32 *quiet_shm)
{
	if (!quiet_shm)
		return true;
	/*
	 * Pairs with the device's barrier between storing 0 and its last look at
	 * prod_tail. Its CPUs are the host's, however many of them we have: hence not
	 * virt_mb(), a locked instruction, which an emulator of a machine with one CPU
	 * (QEMU's TCG) takes for an ordinary one.
	 */
	mb();
	return !READ_ONCE(*quiet_shm);
}

/**
 * pvr_ring_release() - give elements below @head back to the producer
 * @ring_shm: the shared indices; this side consumes
 * @head: the new index
 */
static inline void pvr_ring_release(struct pvr_ring *ring_shm, u32 head)
{
	/* Our reads come first: the producer may overwrite after this store. */
	smp_store_release(&ring_shm->cons_head, head);
}

#endif /* PVR_RING_H */
