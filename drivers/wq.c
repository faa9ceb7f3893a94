// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Outstanding work requests of kernel QPs. */
#include <linux/mm.h>

#include "pvrdma.h"
#include "wq.h"

int pvr_wq_init(struct pvr_wq *wq, struct pvr_ring *ring_shm, u32 n,
		u32 max_sge, u32 stride, size_t offset)
{
	wq->wr_ids = kvcalloc(n, sizeof(*wq->wr_ids), GFP_KERNEL);
	wq->bytes = kvcalloc(n, sizeof(*wq->bytes), GFP_KERNEL);
	if (!wq->wr_ids || !wq->bytes) {
		pvr_wq_exit(wq);
		return -ENOMEM;
	}
	spin_lock_init(&wq->lock);
	wq->ring_shm = ring_shm;
	wq->n = n;
	wq->max_sge = max_sge;
	wq->stride = stride;
	wq->offset = offset;
	return 0;
}

void pvr_wq_exit(struct pvr_wq *wq)
{
	kvfree(wq->bytes);
	kvfree(wq->wr_ids);
	wq->bytes = NULL;
	wq->wr_ids = NULL;
}

int pvr_wq_room(struct pvr_wq *wq)
{
	/* Pairs with end_up_to(): the entry to reuse has been read. */
	u32 done = smp_load_acquire(&wq->done);

	lockdep_assert_held(&wq->lock);
	return pvr_ring_used(wq->tail, done, wq->n) < wq->n ? 0 : -ENOMEM;
}

bool pvr_wq_index_ok(const struct pvr_wq *wq)
{
	return !(le32_to_cpu(READ_ONCE(wq->ring_shm->cons_head)) &
		 ~(2 * wq->n - 1));
}

void pvr_wq_push(struct pvr_wq *wq, u64 wr_id, u32 bytes)
{
	u32 slot = pvr_ring_slot(wq->tail, wq->n);
	u32 tail = pvr_ring_next(wq->tail, wq->n);

	lockdep_assert_held(&wq->lock);
	wq->wr_ids[slot] = wr_id;
	wq->bytes[slot] = bytes;
	/* Pairs with outstanding(): the entry is written before it counts. */
	smp_store_release(&wq->tail, tail);
	pvr_ring_publish(wq->ring_shm, tail);
}

static u32 outstanding(const struct pvr_wq *wq)
{
	/* Pairs with pvr_wq_push(). */
	return pvr_ring_used(smp_load_acquire(&wq->tail), wq->done, wq->n);
}

static struct pvr_done end_up_to(struct pvr_wq *wq, u32 idx)
{
	u32 slot = pvr_ring_slot(idx, wq->n);
	struct pvr_done done = { wq->wr_ids[slot], wq->bytes[slot] };

	/* Pairs with pvr_wq_room(): the entry has been read. */
	smp_store_release(&wq->done, pvr_ring_next(idx, wq->n));
	return done;
}

bool pvr_wq_complete(struct pvr_wq *wq, u32 idx, struct pvr_done *done)
{
	u32 mask = 2 * wq->n - 1;

	if (!wq->wr_ids || (idx & ~mask) ||
	    ((idx - wq->done) & mask) >= outstanding(wq))
		return false;
	*done = end_up_to(wq, idx);
	return true;
}

bool pvr_wq_flush(struct pvr_wq *wq, u64 *wr_id)
{
	if (!wq->wr_ids || !outstanding(wq))
		return false;
	*wr_id = end_up_to(wq, wq->done).wr_id;
	return true;
}

/* Only in RESET does the driver own both indices. */
void pvr_wq_reset(struct pvr_wq *wq, struct pvr_cq *cq)
{
	unsigned long flags;

	if (!wq->wr_ids)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	spin_lock(&wq->lock);
	wq->tail = 0;
	wq->done = 0;
	WRITE_ONCE(wq->ring_shm->prod_tail, 0);
	WRITE_ONCE(wq->ring_shm->cons_head, 0);
	spin_unlock(&wq->lock);
	spin_unlock_irqrestore(&cq->lock, flags);
}
