// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: write CQEs, publish them, notify the guest. */
#include "rdma/cq.h"

#include <errno.h>
#include <string.h>

#include "rdma/cq_lost_arm.h"
#include "rdma/cq_moderation.h"
#include "core/compiler.h"
#include "core/dirty.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/event.h"

uint32_t pvr_cq_unread(const struct pvr_cq *cq)
{
	/*
	 * Pairs with the guest's barrier between its read of a slot and its store to
	 * cons_head.
	 */
	uint32_t cons = __atomic_load_n(&cq->shm->cons_head, __ATOMIC_ACQUIRE);

	return ((uint32_t)cq->produced - cons) & (2 * cq->cqe - 1);
}

/* PVR_EXT_CQ_ARM_DBREC: true if the guest was notified of all published completions. */
static void set_arm_notified(struct pvr_cq *cq, bool notified)
{
	if (!cq->arm_dbrec || cq->arm_notified == notified)
		return;
	cq->arm_notified = notified;
	__atomic_store_n(&cq->arm_dbrec->notified, notified, __ATOMIC_RELAXED);
}

/* While the log of dirty pages is on. The page also has the words that are set here. */
static pvr_noinline void mark_header(struct pvr_adapter *adapter, const struct pvr_cq *cq)
{
	pvr_dirty_mark(adapter, cq->shm, sizeof(*cq->shm));
}

void pvr_cq_notify(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	cq->notified = cq->produced;
	cq->late.doorbells = cq->uc->cq_doorbells;
	set_arm_notified(cq, true);
	if (pvr_dirty_is_on(adapter))
		mark_header(adapter, cq);
	pvr_event_cq(adapter, cq);
}

static void notify(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	if (pvr_cq_moderation_holds(cq))
		return;
	cq->armed = PVR_CQ_DISARMED;
	pvr_cq_notify(adapter, cq);
}

void pvr_cq_notify_late(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	uint64_t news = cq->armed == PVR_CQ_ARMED_ANY ? cq->produced : cq->solicited;

	/* The memory of the ring may be unplugged. */
	if (cq->error || cq->armed == PVR_CQ_DISARMED || news <= cq->notified)
		return;
	cq->armed = PVR_CQ_DISARMED;
	pvr_cq_notify(adapter, cq);
}

/* The slot of completion number @n. */
static pvr_always_inline struct pvrdma_cqe *slot(const struct pvr_cq *cq, uint64_t n)
{
	uint64_t offset = (n & (cq->cqe - 1)) * sizeof(struct pvrdma_cqe);

	return (struct pvrdma_cqe *)pvr_pages_ptr(&cq->pages, PVR_PAGE_SIZE + offset);
}

/* Pairs with the guest's load of prod_tail: entries become visible before the index. */
static void publish(struct pvr_cq *cq)
{
	uint32_t tail = cq->produced & (2 * cq->cqe - 1);

	cq->published = cq->produced;
	set_arm_notified(cq, false);
	__atomic_store_n(&cq->shm->prod_tail, tail, __ATOMIC_RELEASE);
}

/* While the log of dirty pages is on: the header, and the completions from number @n on. */
static pvr_noinline void mark_published(struct pvr_adapter *adapter, const struct pvr_cq *cq,
					uint64_t n)
{
	mark_header(adapter, cq);
	for (; n < cq->produced; n++)
		pvr_dirty_mark(adapter, slot(cq, n), sizeof(struct pvrdma_cqe));
}

static void arm(struct pvr_cq *cq, enum pvr_cq_arm arm)
{
	/* An arm for any completion includes an arm for solicited completions. */
	if (cq->armed < arm)
		cq->armed = arm;
}

/*
 * PVR_EXT_CQ_ARM_DBREC. At least one side sees the other's store:
 *
 *	guest				device
 *	arm = new value			prod_tail = new
 *	full barrier			full barrier
 *	load prod_tail			load arm
 *
 * The guest may have consumed all completions before it armed; it is notified
 * nevertheless.
 */
static void take_arming(struct pvr_cq *cq)
{
	static const enum pvr_cq_arm kinds[PVR_CQ_ARM_KIND + 1] = {
		[PVR_CQ_ARM_SOLICITED] = PVR_CQ_ARMED_SOLICITED,
		[PVR_CQ_ARM_ANY] = PVR_CQ_ARMED_ANY,
		[PVR_CQ_ARM_ANY | PVR_CQ_ARM_SOLICITED] = PVR_CQ_ARMED_ANY,
	};
	uint32_t word;

	if (!cq->arm_dbrec)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	word = __atomic_load_n(&cq->arm_dbrec->arm, __ATOMIC_RELAXED);
	if (word == cq->arm_seen)
		return;
	cq->arm_seen = word;
	arm(cq, kinds[word & PVR_CQ_ARM_KIND]);
}

/*
 * Loads cons_head only when the known room is used up: the guest writes to its cache
 * line.
 */
static bool has_room(struct pvr_cq *cq)
{
	uint32_t n;

	if (cq->room)
		return true;
	n = pvr_cq_unread(cq);
	cq->room = n < cq->cqe ? cq->cqe - n : 0;
	return cq->room;
}

bool pvr_cq_has_room(struct pvr_cq *cq)
{
	return !cq->error && has_room(cq);
}

static void write_cqe(struct pvr_adapter *adapter, struct pvr_cq *cq, const struct pvrdma_cqe *cqe)
{
	struct pvrdma_cqe *slot_shm = slot(cq, cq->produced++);

	*slot_shm = *cqe;
	cq->room--;
	if (cq->in_run)
		return;
	cq->in_run = true;
	SLIST_INSERT_HEAD(&adapter->completed, cq, run);
}

/* The other queue pairs of the CQ fail later, in a sweep. */
static void lose(struct pvr_qp *qp, struct pvr_cq *cq)
{
	if (!cq->error) {
		pvr_count(qp, PVR_STAT_CQ_OVERFLOWS, 1);
		pvr_cq_fail(qp->adapter, cq, "overrun: no room for a completion");
	}
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its CQ is in error");
}

/* The timestamp has the bytes of a VLAN ID. */
static void stamp(const struct pvr_adapter *adapter, struct pvrdma_cqe *cqe)
{
	uint64_t clock = pvr_adapter_clock(adapter);

	memcpy(cqe->reserved2, &clock, sizeof(cqe->reserved2));
	cqe->wc_flags &= ~(uint32_t)PVRDMA_WC_WITH_VLAN;
}

void pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe, bool solicited)
{
	struct pvr_adapter *adapter = qp->adapter;

	if (cq->error || !has_room(cq)) {
		lose(qp, cq);
		return;
	}
	cqe->qp = qp->cqe_qp;
	if (cq->has_timestamps)
		stamp(adapter, cqe);
	write_cqe(adapter, cq, cqe);
	if (solicited || cqe->status != PVRDMA_WC_SUCCESS)
		cq->solicited = cq->produced;
}

/* Make new completions visible, and notify the guest if it has armed for one of them. */
static void publish_cq(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	uint64_t before = cq->published;

	cq->in_run = false;
	cq->room = 0;
	publish(cq);
	if (pvr_dirty_is_on(adapter))
		mark_published(adapter, cq, before);
	take_arming(cq);
	if (cq->armed == PVR_CQ_ARMED_ANY ||
	    (cq->armed == PVR_CQ_ARMED_SOLICITED && cq->solicited > before))
		notify(adapter, cq);
	else if (adapter->uar_poll.uar_shm)
		pvr_cq_lost_arm_pushed(cq);
}

void pvr_publish(struct pvr_adapter *adapter)
{
	struct pvr_wq *wq;
	struct pvr_cq *cq;

	/*
	 * Before the CQs: a guest that sees a completion may reuse the slot of its
	 * request.
	 */
	while ((wq = SLIST_FIRST(&adapter->consumed))) {
		SLIST_REMOVE_HEAD(&adapter->consumed, run);
		wq->in_run = false;
		__atomic_store_n(&wq->shm->cons_head, wq->head, __ATOMIC_RELEASE);
		pvr_dirty(adapter, wq->shm, sizeof(*wq->shm));
	}
	while ((cq = SLIST_FIRST(&adapter->completed))) {
		SLIST_REMOVE_HEAD(&adapter->completed, run);
		publish_cq(adapter, cq);
	}
}

void pvr_cq_arm(struct pvr_adapter *adapter, struct pvr_cq *cq, enum pvr_cq_arm kind)
{
	uint64_t news = kind == PVR_CQ_ARMED_ANY ? cq->produced : cq->solicited;

	if (cq->error)
		return;
	/* A guest that arms in memory may ring, too: both are one arm. */
	take_arming(cq);
	arm(cq, kind);
	if (news > cq->notified && cq->produced - news < pvr_cq_unread(cq) &&
	    pvr_adapter_dma_ok(adapter))
		notify(adapter, cq);
}

bool pvr_cq_check_arming(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	take_arming(cq);
	if (cq->armed != PVR_CQ_DISARMED)
		pvr_cq_arm(adapter, cq, cq->armed);
	return cq->arm_seen;
}

/* Renumber: completion number @first becomes 0, and so do all before it. */
static uint64_t count_from(uint64_t first, uint64_t n)
{
	return n > first ? n - first : 0;
}

/*
 * Both rings may have the same pages, and the guest may write to them at any time: each
 * entry goes through a private copy, and no decision depends on its content.
 */
static void copy_some(const struct pvr_cq *cq, struct pvr_ring_move *move, uint32_t n)
{
	const struct pvr_cq to = { .pages = move->pages, .cqe = move->size };
	struct pvrdma_cqe cqe, *slot_shm;

	for (; n; n--) {
		pvr_copy_once(&cqe, slot(cq, move->first + move->copied), sizeof(cqe));
		slot_shm = slot(&to, move->copied++);
		*slot_shm = cqe;
		pvr_dirty(cq->uc->adapter, slot_shm, sizeof(*slot_shm));
	}
}

void pvr_cq_use_ring(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	uint8_t *page_shm = pvr_pages_ptr(&cq->pages, 0);

	cq->shm = &((struct pvr_ring_state *)page_shm)->rx;
	cq->arm_dbrec = adapter->features & PVR_EXT_CQ_ARM_DBREC
				? (struct pvr_cq_arm_dbrec *)(page_shm + PVR_CQ_ARM_DBREC_OFFSET)
				: NULL;
	cq->arm_seen = 0;
}

int pvr_cq_move_begin(const struct pvr_cq *cq, struct pvr_ring_move *move)
{
	uint32_t n = pvr_cq_unread(cq);

	/* More than the old ring holds: cons_head is out of range. */
	if (n > cq->cqe || n > move->size)
		return -EINVAL;
	move->first = cq->produced - n;
	move->copied = 0;
	return 0;
}

/* All entries are copied: use the new ring. @move gets the pages of the old one. */
static void switch_ring(struct pvr_adapter *adapter, struct pvr_cq *cq, struct pvr_ring_move *move)
{
	struct pvr_pages old = cq->pages;

	take_arming(cq);
	cq->pages = move->pages;
	move->pages = old;
	cq->cqe = move->size;
	cq->room = 0;
	pvr_cq_use_ring(adapter, cq);
	cq->produced = move->copied;
	cq->notified = count_from(move->first, cq->notified);
	cq->solicited = count_from(move->first, cq->solicited);
	cq->late.watched = count_from(move->first, cq->late.watched);
	publish(cq);
	if (pvr_dirty_is_on(adapter))
		mark_header(adapter, cq);
}

int pvr_cq_move_run(struct pvr_adapter *adapter, struct pvr_cq *cq, struct pvr_ring_move *move)
{
	const uint32_t page = PVR_PAGE_SIZE / sizeof(struct pvrdma_cqe);
	uint64_t n = cq->produced - move->first;

	if (cq->error)
		return -EIO;
	/* The guest polls meanwhile, which makes room for more than the new ring holds. */
	if (n > move->size)
		return -EINVAL;
	while (move->copied < n) {
		if (!pvr_job_may_go_on(adapter))
			return -EINPROGRESS;
		copy_some(cq, move, n - move->copied < page ? n - move->copied : page);
		pvr_job_spend(adapter, PVR_WORK_COPY);
	}
	switch_ring(adapter, cq, move);
	return 0;
}

void pvr_cq_fail(struct pvr_adapter *adapter, struct pvr_cq *cq, const char *why)
{
	if (cq->error)
		return;
	cq->error = true;
	pvr_log_guest(adapter, "cq %u: error: %s", cq->handle, why);
	pvr_event_async(adapter, PVR_EVENT_CQ_ERR, cq->handle);
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_ERRORS);
}
