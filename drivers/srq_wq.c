// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work requests of kernel SRQs: posting and completion. */
#include <linux/mm.h>

#include "pvrdma.h"
#include "srq_wq.h"
#include "wq.h"

/*
 * Put the entries @first .. @n - 1 at the head of the free list @free. Return: the new
 * head.
 */
static u32 chain(struct pvr_srq_wr *wrs, u32 first, u32 n, u32 free)
{
	u32 i;

	for (i = n; i-- > first;) {
		wrs[i].next = free;
		free = i;
	}
	return free;
}

int pvr_srq_wq_init(struct pvr_srq_wq *wq, struct pvr_ring *ring_shm, u32 n,
		    u32 max_sge, u32 stride)
{
	wq->wrs = kvcalloc(n, sizeof(*wq->wrs), GFP_KERNEL);
	wq->slots = kvcalloc(n, sizeof(*wq->slots), GFP_KERNEL);
	if (!wq->wrs || !wq->slots) {
		pvr_srq_wq_exit(wq);
		return -ENOMEM;
	}
	spin_lock_init(&wq->lock);
	wq->ring_shm = ring_shm;
	wq->n = n;
	wq->nwrs = n;
	wq->max_sge = max_sge;
	wq->stride = stride;
	wq->free = chain(wq->wrs, 0, n, n);
	return 0;
}

void pvr_srq_wq_exit(struct pvr_srq_wq *wq)
{
	kvfree(wq->slots);
	kvfree(wq->wrs);
	wq->slots = NULL;
	wq->wrs = NULL;
}

/*
 * Return: the number of a request that is now outstanding. The caller has checked that
 * one is free.
 */
static u32 take_locked(struct pvr_srq_wq *wq, u64 wr_id)
{
	struct pvr_srq_wr *wr = &wq->wrs[wq->free];
	u32 idx = wq->free;

	lockdep_assert_held(&wq->lock);
	wq->free = wr->next;
	wr->wr_id = wr_id;
	wr->posted = true;
	wr->waits = wq->ended;
	wq->used++;
	return idx;
}

static struct pvr_done put_locked(struct pvr_srq_wq *wq, u32 idx)
{
	struct pvr_srq_wr *wr = &wq->wrs[idx];

	lockdep_assert_held(&wq->lock);
	wr->posted = false;
	wr->next = wq->free;
	wq->free = idx;
	wq->used--;
	return (struct pvr_done){ wr->wr_id, wr->bytes };
}

bool pvr_srq_wq_complete(struct pvr_srq_wq *wq, u32 idx, struct pvr_done *done)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&wq->lock, flags);
	ok = idx < wq->nwrs && wq->wrs[idx].posted;
	if (ok)
		*done = put_locked(wq, idx);
	spin_unlock_irqrestore(&wq->lock, flags);
	return ok;
}

/*
 * Mark the requests between @head, the device's last cons_head, and our tail: no QP has
 * taken them.
 */
static void mark_waiting_locked(struct pvr_srq_wq *wq, u32 head)
{
	u32 used = pvr_ring_used(wq->tail, head, wq->n);

	if (used > wq->n)
		return;
	while (used--) {
		wq->wrs[wq->slots[pvr_ring_slot(head, wq->n)]].waits = true;
		head = pvr_ring_next(head, wq->n);
	}
}

/* A request never becomes one to flush, so each number is examined once. */
static bool flush_locked(struct pvr_srq_wq *wq, u64 *wr_id)
{
	u32 i;

	while (wq->flushed < wq->nwrs) {
		i = wq->flushed++;
		if (wq->wrs[i].posted && !wq->wrs[i].waits) {
			*wr_id = put_locked(wq, i).wr_id;
			return true;
		}
	}
	return false;
}

bool pvr_srq_wq_flush(struct pvr_srq_wq *wq, u64 *wr_id)
{
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&wq->lock, flags);
	if (!wq->ended)
		mark_waiting_locked(
			wq, le32_to_cpu(READ_ONCE(wq->ring_shm->cons_head)));
	wq->ended = true;
	found = flush_locked(wq, wr_id);
	spin_unlock_irqrestore(&wq->lock, flags);
	return found;
}

static void move_free(struct pvr_srq_move *move)
{
	kvfree(move->slots);
	kvfree(move->wrs);
}

int pvr_srq_move_begin(struct pvr_srq_wq *wq, struct pvr_srq_move *move)
{
	unsigned long flags;
	int err = 0;

	move->wrs = kvcalloc(move->n, sizeof(*move->wrs), GFP_KERNEL);
	move->slots = kvcalloc(move->n, sizeof(*move->slots), GFP_KERNEL);
	spin_lock_irqsave(&wq->lock, flags);
	if (!move->wrs || !move->slots)
		err = -ENOMEM;
	else if (wq->used > move->n)
		err = -EINVAL;
	else
		wq->moving = true;
	spin_unlock_irqrestore(&wq->lock, flags);
	if (err)
		move_free(move);
	return err;
}

/*
 * The device still uses the numbers of outstanding requests, so the table never shrinks.
 */
static void grow_locked(struct pvr_srq_wq *wq, struct pvr_srq_move *move)
{
	if (move->n <= wq->nwrs)
		return;
	memcpy(move->wrs, wq->wrs, wq->nwrs * sizeof(*wq->wrs));
	wq->free = chain(move->wrs, wq->nwrs, move->n,
			 wq->used < wq->nwrs ? wq->free : move->n);
	wq->nwrs = move->n;
	swap(wq->wrs, move->wrs);
}

static void use_locked(struct pvr_srq_wq *wq, struct pvr_srq_move *move,
		       u32 moved)
{
	u32 i, idx = wq->tail - moved;

	for (i = 0; i < moved; i++, idx++)
		move->slots[i] = wq->slots[pvr_ring_slot(idx, wq->n)];
	swap(wq->slots, move->slots);
	wq->ring_shm = move->ring_shm;
	wq->db_suppress_shm = move->db_suppress_shm;
	wq->n = move->n;
	wq->tail = moved;
}

int pvr_srq_move_end(struct pvr_srq_wq *wq, struct pvr_srq_move *move,
		     u32 moved)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&wq->lock, flags);
	ok = moved <= min(wq->n, move->n);
	grow_locked(wq, move);
	use_locked(wq, move, ok ? moved : 0);
	wq->moving = false;
	spin_unlock_irqrestore(&wq->lock, flags);
	move_free(move);
	return ok ? 0 : -EIO;
}

void pvr_srq_move_undo(struct pvr_srq_wq *wq, struct pvr_srq_move *move)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	wq->moving = false;
	spin_unlock_irqrestore(&wq->lock, flags);
	move_free(move);
}

static int check_recv_locked(struct pvr_srq_wq *wq, const struct ib_recv_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > wq->max_sge)
		return -EINVAL;
	if (wq->moving)
		return -EBUSY;
	return wq->used < wq->n ? 0 : -ENOMEM;
}

static int post_one_locked(struct pvr_srq *srq, const struct ib_recv_wr *wr)
{
	struct pvr_srq_wq *wq = &srq->wq;
	u32 slot = pvr_ring_slot(wq->tail, wq->n);
	struct pvr_rq_wqe *wqe;
	int err;

	err = check_recv_locked(wq, wr);
	if (err)
		return err;
	wq->slots[slot] = take_locked(wq, wr->wr_id);
	wqe = pvr_pdir_at(&srq->mem.pdir,
			  PVR_PAGE_SIZE + (size_t)slot * wq->stride);
	wqe->wr_id = cpu_to_le64(wq->slots[slot] | PVR_WQ_RECV);
	wqe->num_sge = cpu_to_le32(wr->num_sge);
	wqe->total_len = 0;
	wq->wrs[wq->slots[slot]].bytes = pvr_wqe_fill_sges(
		(struct pvr_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	wq->tail = pvr_ring_next(wq->tail, wq->n);
	pvr_ring_publish(wq->ring_shm, wq->tail);
	return 0;
}

/* The requests before a bad one stay posted and need a doorbell. */
int pvr_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct pvr_dev *dev = to_pvr_dev(ibsrq->device);
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	unsigned long flags;
	bool posted = false, waits;
	int err = 0;

	spin_lock_irqsave(&srq->wq.lock, flags);
	for (; wr; wr = wr->next) {
		err = post_one_locked(srq, wr);
		if (err)
			break;
		posted = true;
	}
	/* A resize exchanges the word after the lock is released. */
	waits = posted && pvr_ring_waits(srq->wq.db_suppress_shm);
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	if (waits && !pvr_dev_dead(dev))
		pvr_doorbell(dev, PVRDMA_UAR_SRQ_OFFSET,
			     srq->handle | PVR_DB_SRQ_RECV);
	if (err)
		*bad_wr = wr;
	return err;
}
