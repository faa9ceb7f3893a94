/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ring indices in memory shared with the device, and the producer side of work queues.
 *
 * The device is a thread on a CPU of the same host, so the memory order between CPUs is
 * sufficient. An index is stored with release after the elements that it covers, and
 * loaded with acquire before them. Its owner never reads an index back, except after a
 * resize and on a dead device.
 */
#ifndef PVR_RING_H
#define PVR_RING_H

#include <endian.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <util/compiler.h>

#include "lock.h"
#include "pvrdma_abi.h"

/* Values in shared memory are little-endian. */
static inline uint32_t pvr_shm_load(const _Atomic(__le32) *from, memory_order order)
{
	return le32toh(atomic_load_explicit(from, order));
}

static inline void pvr_shm_store(_Atomic(__le32) *to, uint32_t value, memory_order order)
{
	atomic_store_explicit(to, htole32(value), order);
}

/* struct pvr_ring and pvr_ring_state with atomic members. */
struct pvr_ring_shm {
	_Atomic(__le32) prod_tail;
	_Atomic(__le32) cons_head;
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

/* struct pvr_db_suppress (doorbell suppression), likewise. */
struct pvr_db_suppress_shm {
	_Atomic(__le32) sq;
	_Atomic(__le32) rq;
};
static_assert(sizeof(struct pvr_db_suppress_shm) == sizeof(struct pvr_db_suppress) &&
		      offsetof(struct pvr_db_suppress_shm, rq) ==
			      offsetof(struct pvr_db_suppress, rq),
	      "the shared view has the layout of the ABI");

/*
 * Returns the suppression words of a QP or SRQ with this first page. Without
 * PVR_EXT_DB_SUPPRESS they are words that stay 0, so that posting needs no other test.
 */
static inline const struct pvr_db_suppress_shm *pvr_db_suppress_at(const void *page,
								   uint32_t features)
{
	static const struct pvr_db_suppress_shm always_ring;

	if (!(features & PVR_EXT_DB_SUPPRESS))
		return &always_ring;
	return (const void *)((const uint8_t *)page + PVR_DB_SUPPRESS_OFFSET);
}

/* struct pvr_cq_arm_dbrec (CQ arm doorbell record), likewise. */
struct pvr_cq_arm_shm {
	_Atomic(__le32) arm;
	_Atomic(__le32) notified;
};
static_assert(sizeof(struct pvr_cq_arm_shm) == sizeof(struct pvr_cq_arm_dbrec) &&
		      offsetof(struct pvr_cq_arm_shm, notified) ==
			      offsetof(struct pvr_cq_arm_dbrec, notified),
	      "the shared view has the layout of the ABI");

/*
 * Orders a store before a later load, also as seen by the device. Compilers implement
 * atomic_thread_fence() by a locked instruction. An emulator of a machine with one CPU
 * (QEMU's TCG) executes that without a barrier, but the device runs on another CPU of the
 * host.
 */
static inline void pvr_full_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("mfence" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Indices of a ring of num elements, a power of two, are 0 .. 2 * num - 1. */
static inline uint32_t pvr_ring_next(uint32_t idx, uint32_t num)
{
	return (idx + 1) & (2 * num - 1);
}

/* Returns the elements between head and tail; above num if an index is invalid. */
static inline uint32_t pvr_ring_used(uint32_t tail, uint32_t head, uint32_t num)
{
	if (tail >= 2 * num || head >= 2 * num)
		return UINT32_MAX;
	return (tail - head) & (2 * num - 1);
}

/*
 * A send, receive or shared receive queue; this process is the producer.
 *
 * A request is outstanding from its post until its completion is polled, as verbs specify.
 * The device's cons_head does not count: it passes a request before the completion is
 * polled. The completion of a send also ends the unsignaled sends before it.
 *
 * tail and polled count requests and wrap at 2^32. The lock of the queue protects tail.
 * The lock of the completion queue protects polled. Pollers of several CQs add to polled
 * of an SRQ. A poller publishes cons_head of the CQ before it adds to polled, so the
 * completion of a later request finds a free CQE.
 */
struct pvr_wq {
	struct pvr_lock lock; /* protects the members before wr_ids, the free elements; innermost */
	_Atomic(uint32_t) tail; /* requests posted; prod_tail may lag behind it */
	uint32_t limit; /* up to this tail requests can be posted, maybe farther */
	uint32_t num; /* elements, a power of two; 0: unused queue */
	uint32_t mask; /* of slots: num - 1 */
	uint32_t idx_mask; /* of indices: 2 * num - 1 */
	uint32_t max_sge;
	size_t stride; /* bytes of an element, a power of two */
	struct pvr_ring_shm *ring_shm;
	const _Atomic(__le32) *db_suppress_shm; /* suppression word: doorbell if 0 */
	bool is_send; /* a send queue: the device takes its elements at once */
	bool rang; /* a doorbell for the requests before rung may be pending */
	uint32_t rung; /* a former tail */
	uint8_t *wqes;
	/*
	 * wr_ids of a send queue by slot. The device gets the number of the request instead,
	 * and returns it in the CQE. NULL: the device gets the wr_id.
	 */
	uint64_t *wr_ids;
	bool is_shared; /* an SRQ */
	uint8_t pad[64]; /* pollers write to another cache line than posters */
	_Atomic(uint32_t) polled; /* requests that are no longer outstanding */
};

static inline uint32_t pvr_wq_tail(const struct pvr_wq *wq)
{
	return atomic_load_explicit(&wq->tail, memory_order_relaxed);
}

static inline void *pvr_wq_slot(const struct pvr_wq *wq, uint32_t idx)
{
	return wq->wqes + (idx & wq->mask) * wq->stride;
}

static inline void *pvr_wq_element(struct pvr_wq *wq)
{
	return pvr_wq_slot(wq, pvr_wq_tail(wq));
}

/*
 * Returns their number. It is huge if a broken device has completed more requests of an SRQ
 * than were posted. The acquire pairs with the release in pvr_wq_end(): the poller has read wr_ids, and
 * has returned the CQE.
 */
static inline uint32_t pvr_wq_outstanding(const struct pvr_wq *wq)
{
	return pvr_wq_tail(wq) - atomic_load_explicit(&wq->polled, memory_order_acquire);
}

/* tail: that of wq. */
static inline bool pvr_wq_full(struct pvr_wq *wq, uint32_t tail)
{
	uint32_t used;

	if (likely(tail != wq->limit))
		return false;
	used = pvr_wq_outstanding(wq);
	if (used >= wq->num)
		return true;
	wq->limit += wq->num - used;
	return false;
}

static inline void pvr_wq_advance(struct pvr_wq *wq)
{
	atomic_store_explicit(&wq->tail, pvr_wq_tail(wq) + 1, memory_order_relaxed);
}

/* Continues at another number or in another ring. */
static inline void pvr_wq_set_tail(struct pvr_wq *wq, uint32_t tail)
{
	atomic_store_explicit(&wq->tail, tail, memory_order_relaxed);
	wq->limit = tail;
	wq->rang = false;
}

/* Ends the requests before polled. The caller holds the lock of the CQ. */
static inline void pvr_wq_end(struct pvr_wq *wq, uint32_t polled)
{
	atomic_store_explicit(&wq->polled, polled, memory_order_release);
}

/* Ends n requests of an SRQ. */
static inline void pvr_wq_end_shared(struct pvr_wq *wq, uint32_t n)
{
	atomic_fetch_add_explicit(&wq->polled, n, memory_order_release);
}

/*
 * Returns whether the doorbell of rung is still pending: the device has not passed rung.
 * It then also sees all later elements. The number of elements between cons_head and rung
 * is less than the ring, because more were posted since. A caller that gets false clears
 * rang: indices wrap.
 */
static inline bool pvr_wq_is_rung(const struct pvr_wq *wq)
{
	uint32_t head;

	if (!wq->rang)
		return false;
	head = pvr_shm_load(&wq->ring_shm->cons_head, memory_order_relaxed);
	return pvr_ring_used(wq->rung & wq->idx_mask, head, wq->num) - 1 < wq->mask;
}

/*
 * Notes the doorbell of a post that published the requests before tail. The caller has rung
 * it: a thread that is stopped between its post and its doorbell must not delay the
 * requests of others. Nothing is noted if others have filled the ring since, or RESET has
 * emptied it.
 */
static inline void pvr_wq_note_doorbell(struct pvr_wq *wq, uint32_t tail)
{
	pvr_lock(&wq->lock);
	if (pvr_wq_tail(wq) - tail < wq->num) {
		wq->rang = true;
		wq->rung = tail;
	}
	pvr_unlock(&wq->lock);
}

/*
 * Publishes the elements before tail, the new end of the queue. Returns whether a doorbell is needed. The caller
 * must still hold the lock of an SRQ, because a resize replaces the word.
 *
 * The release pairs with the device's acquire of prod_tail before it reads the elements.
 * The fence pairs with the device's fence between storing 0 in the word and its last load
 * of prod_tail: either the device sees the new index, or this thread sees the 0. The
 * acquire pairs with the release of that 0, which follows cons_head.
 */
static inline bool pvr_wq_publish_to(struct pvr_wq *wq, uint32_t tail)
{
	atomic_store_explicit(&wq->tail, tail, memory_order_relaxed);
	pvr_shm_store(&wq->ring_shm->prod_tail, tail & wq->idx_mask, memory_order_release);
	pvr_full_barrier();
	if (likely(pvr_shm_load(wq->db_suppress_shm, memory_order_acquire))) {
		wq->rang = false;
		return false;
	}
	wq->rang = pvr_wq_is_rung(wq);
	return !wq->rang;
}

static inline bool pvr_wq_publish(struct pvr_wq *wq)
{
	return pvr_wq_publish_to(wq, pvr_wq_tail(wq));
}

/*
 * Empties the queue. The device did the same when it accepted RESET and no longer reads
 * the indices. The caller has locked the CQ, so that no thread polls or flushes.
 */
static inline void pvr_wq_reset(struct pvr_wq *wq)
{
	pvr_lock(&wq->lock);
	pvr_wq_set_tail(wq, 0);
	pvr_wq_end(wq, 0);
	pvr_shm_store(&wq->ring_shm->prod_tail, 0, memory_order_relaxed);
	pvr_shm_store(&wq->ring_shm->cons_head, 0, memory_order_relaxed);
	pvr_unlock(&wq->lock);
}

#endif /* PVR_RING_H */
