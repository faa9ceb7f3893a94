/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Index arithmetic and memory order of the rings that driver and device share. */
#ifndef PVR_RING_H
#define PVR_RING_H

#include <asm/barrier.h>
#include <asm/byteorder.h>
#include <linux/compiler.h>
#include <linux/types.h>
#include "pvrdma_abi.h"

/*
 * DOC: Rings
 *
 * Each index has one writer, which keeps a private copy and only stores the shared one.
 * The other side loads it once, checks it with pvr_ring_used() and then uses it. The
 * barriers pair as follows:
 *
 * producer                          consumer
 * write element                     load prod_tail
 * dma_wmb()                         dma_rmb()
 * store prod_tail                   read element
 *                                   pvr_ring_release(), which orders it before
 * load cons_head                    store cons_head
 *
 * With PVR_EXT_DB_SUPPRESS (doorbell suppression) and PVR_EXT_CQ_ARM_DBREC (CQ arm
 * doorbell record) each side stores its word, executes a full barrier and loads the other
 * side's word. At least one of them sees the other's store. See pvr_ring_waits() and
 * pvr_req_notify_cq().
 */

/**
 * pvr_ring_next() - the index after @idx
 * @idx: a valid index, 0 .. 2n-1
 * @n: number of elements, a power of two
 */
static inline u32 pvr_ring_next(u32 idx, u32 n)
{
	return (idx + 1) & (2 * n - 1);
}

/**
 * pvr_ring_slot() - the element number of index @idx
 * @idx: a valid index
 * @n: number of elements, a power of two
 */
static inline u32 pvr_ring_slot(u32 idx, u32 n)
{
	return idx & (n - 1);
}

/**
 * pvr_ring_used() - number of elements between two indices
 * @tail: the producer's index, possibly invalid
 * @head: the consumer's index, possibly invalid
 * @n: number of elements, a power of two
 *
 * Return: 0 .. n, or more than n if the indices are impossible.
 */
static inline u32 pvr_ring_used(u32 tail, u32 head, u32 n)
{
	if ((tail | head) & ~(2 * n - 1))
		return U32_MAX;
	return (tail - head) & (2 * n - 1);
}

/**
 * pvr_ring_publish() - make all elements before @tail visible to the consumer
 * @ring_shm: the shared indices; this side produces
 * @tail: the new index
 */
static inline void pvr_ring_publish(struct pvr_ring *ring_shm, u32 tail)
{
	/* Pairs with the device's acquire load of prod_tail. */
	dma_wmb();
	WRITE_ONCE(ring_shm->prod_tail, cpu_to_le32(tail));
}

/**
 * pvr_ring_db_suppress() - the doorbell suppression words of a QP or SRQ
 * @page: its first page; the device has PVR_EXT_DB_SUPPRESS
 */
static inline const struct pvr_db_suppress *
pvr_ring_db_suppress(const void *page)
{
	return page + PVR_DB_SUPPRESS_OFFSET;
}

/**
 * pvr_ring_waits() - whether the device needs a doorbell
 * @db_suppress_shm: doorbell suppression word of the queue, or NULL if there is none
 *
 * Call after pvr_ring_publish().
 * Return: true, or false while the device polls the queue.
 */
static inline bool pvr_ring_waits(const __le32 *db_suppress_shm)
{
	if (!db_suppress_shm)
		return true;
	/*
	 * Pairs with the device's barrier between storing 0 to the word and its last load
	 * of prod_tail. Not virt_mb(): that is a locked instruction, which an emulator of
	 * a machine with one CPU (QEMU's TCG) executes without a barrier. But the device
	 * runs on other CPUs of the host.
	 */
	mb();
	return !READ_ONCE(*db_suppress_shm);
}

/**
 * pvr_ring_release() - return the elements before @head to the producer
 * @ring_shm: the shared indices; this side consumes
 * @head: the new index
 */
static inline void pvr_ring_release(struct pvr_ring *ring_shm, u32 head)
{
	/*
	 * Orders our reads of the elements before the store: the producer may then
	 * overwrite them.
	 */
	smp_store_release(&ring_shm->cons_head, cpu_to_le32(head));
}

#endif /* PVR_RING_H */
