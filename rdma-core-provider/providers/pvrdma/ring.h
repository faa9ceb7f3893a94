/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ring indices in memory that the device and this process share, and the producer side of
 * a work queue.
 *
 * The device is a thread of the hypervisor's host, so what two CPUs need to see each other's
 * stores in order is enough: an index is stored with release after what it covers, and loaded
 * with acquire before it. No index is ever read back by its owner, but after a resizing, and when
 * the device is gone.
 */
#ifndef PVR_RING_H
#define PVR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"
#include "pvrdma_abi.h"

/* struct pvr_ring and pvr_ring_state as two sides see them at the same time. */
struct pvr_ring_shm {
	_Atomic uint32_t prod_tail;
	_Atomic uint32_t cons_head;
};

struct pvr_ring_state_shm {
	struct pvr_ring_shm tx;
	struct pvr_ring_shm rx;
};
static_assert(sizeof(struct pvr_ring_state_shm) == sizeof(struct pvr_ring_state),
	      "the shared view has the layout of the ABI");
static_assert(offsetof(struct pvr_ring_state_shm, rx) == offsetof(struct pvr_ring_state, rx),
	      "the shared view has the layout of the ABI");
static_assert(offsetof(struct pvr_ring_shm, cons_head) == offsetof(struct pvr_ring, cons_head),
	      "the shared view has the layout of the ABI");

/* struct pvr_quiet, likewise. */
struct pvr_quiet_shm {
	_Atomic uint32_t sq;
	_Atomic uint32_t rq;
};
static_assert(sizeof(struct pvr_quiet_shm) == sizeof(struct pvr_quiet) &&
		      offsetof(struct pvr_quiet_shm, rq) == offsetof(struct pvr_quiet, rq),
	      "the shared view has the layout of the ABI");

/* The words of a QP or SRQ whose first page this is; NULL if the device writes none. */
static inline const struct pvr_quiet_shm *pvr_quiet_of(const void *page, uint32_t features)
{
	if (!(features & PVR_EXT_QUIET))
		return NULL;
	return (const void *)((const uint8_t *)page + PVR_QUIET_OFFSET);
}

/* struct pvr_arm, likewise. */
struct pvr_arm_shm {
	_Atomic uint32_t word;
	_Atomic uint32_t told;
};
static_assert(sizeof(struct pvr_arm_shm) == sizeof(struct pvr_arm) &&
		      offsetof(struct pvr_arm_shm, told) == offsetof(struct pvr_arm, told),
	      "the shared view has the layout of the ABI");

/*
 * Orders our store before our load also for somebody who is none of our CPUs. Compilers make a
 * locked instruction of atomic_thread_fence(), and an emulator of a machine with one CPU (QEMU's
 * TCG) an ordinary one of that, as no other CPU could tell the difference: but the device can.
 */
static inline void pvr_full_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("mfence" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Indices of a ring of num (a power of two) elements run over 0 .. 2 * num - 1. */
static inline uint32_t pvr_ring_next(uint32_t idx, uint32_t num)
{
	return (idx + 1) & (2 * num - 1);
}

/* Elements between head and tail; above num if one of them is no valid index. */
static inline uint32_t pvr_ring_used(uint32_t tail, uint32_t head, uint32_t num)
{
	if (tail >= 2 * num || head >= 2 * num)
		return UINT32_MAX;
	return (tail - head) & (2 * num - 1);
}

/* A send, receive or shared receive queue, whose producer we are. */
struct pvr_wq {
	struct pvr_lock lock; /* protects tail and the free elements; innermost */
	uint32_t tail; /* our prod_tail, also that of elements not published yet */
	uint32_t room; /* free elements that the last look found, at least */
	uint32_t num; /* elements, a power of two; 0: there is no such queue */
	uint32_t stride_shift;
	uint32_t max_sge;
	struct pvr_ring_shm *ring_shm;
	const _Atomic uint32_t *quiet_shm; /* not 0: no doorbell; NULL: always one */
	bool is_send; /* the device takes what is in it as soon as it can */
	bool rang; /* a doorbell for the elements before rung may be on its way */
	uint32_t rung;
	uint8_t *wqes;
};

static inline void *pvr_wq_element(struct pvr_wq *wq)
{
	return wq->wqes + ((size_t)(wq->tail & (wq->num - 1)) << wq->stride_shift);
}

/*
 * The acquire pairs with the device's release of cons_head, after it copied the element that
 * we are about to write over. An index out of range (a broken device) counts as full. One looks
 * only when what the last look found is used up: the device writes to that line all the time.
 */
static inline bool pvr_wq_full(struct pvr_wq *wq)
{
	uint32_t head, used;

	if (wq->room)
		return false;
	head = atomic_load_explicit(&wq->ring_shm->cons_head, memory_order_acquire);
	used = pvr_ring_used(wq->tail, head, wq->num);
	if (used >= wq->num)
		return true;
	wq->room = wq->num - used;
	return false;
}

static inline void pvr_wq_advance(struct pvr_wq *wq)
{
	wq->tail = pvr_ring_next(wq->tail, wq->num);
	wq->room--;
}

/* Goes on at another index, or in another ring. */
static inline void pvr_wq_set_tail(struct pvr_wq *wq, uint32_t tail)
{
	wq->tail = tail;
	wq->room = 0;
	wq->rang = false;
}

/*
 * The word is 0; has the device not come yet since we rang? Then it sees all that is posted
 * meanwhile, too. More was posted since, so the index that it has yet to pass is less than the
 * whole ring ahead of it. Whoever finds that it has passed, or that it looks by itself, forgets
 * about that doorbell: indices come round again.
 */
static inline bool pvr_wq_is_rung(const struct pvr_wq *wq)
{
	uint32_t head = atomic_load_explicit(&wq->ring_shm->cons_head, memory_order_relaxed);

	return pvr_ring_used(wq->rung, head, wq->num) - 1 < wq->num - 1;
}

static inline bool pvr_wq_must_ring(struct pvr_wq *wq)
{
	if (wq->rang && pvr_wq_is_rung(wq))
		return false;
	wq->rang = wq->is_send;
	wq->rung = wq->tail;
	return true;
}

/*
 * Hands over the elements before tail. Returns whether the doorbell has to be rung; a queue that
 * moves (SRQ) must be locked still, for its words move with it.
 *
 * The release pairs with the device's acquire of prod_tail, before it reads the elements. The
 * fence pairs with the device's between storing 0 in the word and its last look at prod_tail:
 * either it sees the new index, or we see the 0. The acquire pairs with the release of that 0,
 * behind cons_head.
 */
static inline bool pvr_wq_publish(struct pvr_wq *wq)
{
	atomic_store_explicit(&wq->ring_shm->prod_tail, wq->tail, memory_order_release);
	if (!wq->quiet_shm)
		return true;
	pvr_full_barrier();
	if (!atomic_load_explicit(wq->quiet_shm, memory_order_acquire))
		return pvr_wq_must_ring(wq);
	wq->rang = false;
	return false;
}

/*
 * Back to empty; the device did the same when it accepted RESET and does not look any more. With
 * the CQ locked, so that nobody flushes it on behalf of a dead device.
 */
static inline void pvr_wq_reset(struct pvr_wq *wq)
{
	pvr_lock(&wq->lock);
	pvr_wq_set_tail(wq, 0);
	atomic_store_explicit(&wq->ring_shm->prod_tail, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->ring_shm->cons_head, 0, memory_order_relaxed);
	pvr_unlock(&wq->lock);
}

#endif /* PVR_RING_H */
