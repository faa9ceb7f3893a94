/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completions and their notification. */
#include "datapath/complete.h"

/* How many completions the guest has not consumed; above cqe if its index is wild. */
static uint32_t unread(const struct pvr_cq *cq)
{
	/* Pairs with the guest's barrier between reading a slot and giving it back. */
	uint32_t cons = __atomic_load_n(&cq->shm->cons_head, __ATOMIC_ACQUIRE);

	return ((uint32_t)cq->produced - cons) & (2 * cq->cqe - 1);
}

static void notify(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	cq->armed = PVR_CQ_DISARMED;
	cq->announced = cq->produced;
	pvr_event_cq(adapter, cq);
}

static void write_cqe(struct pvr_cq *cq, const struct pvrdma_cqe *cqe)
{
	uint64_t slot = cq->produced++ & (cq->cqe - 1);
	uint32_t tail = cq->produced & (2 * cq->cqe - 1);
	struct pvrdma_cqe *slot_shm;

	slot_shm = (struct pvrdma_cqe *)pvr_pages_ptr(&cq->pages,
						      PVR_PAGE_SIZE + slot * sizeof(*cqe));
	*slot_shm = *cqe;
	/* Pairs with the guest's load of prod_tail: the entry is visible before it. */
	__atomic_store_n(&cq->shm->prod_tail, tail, __ATOMIC_RELEASE);
}

void pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
		 bool solicited)
{
	struct pvr_adapter *adapter = qp->adapter;

	if (cq->error)
		return;
	if (unread(cq) >= cq->cqe) {
		adapter->stats.cq_overflows++;
		pvr_cq_fail(adapter, cq, "overrun: no room for a completion");
		return;
	}
	cqe->qp = qp->handle;
	solicited |= cqe->status != PVRDMA_WC_SUCCESS;
	write_cqe(cq, cqe);
	if (solicited)
		cq->solicited = cq->produced;
	if (cq->armed == PVR_CQ_ARMED_ANY ||
	    (cq->armed == PVR_CQ_ARMED_SOLICITED && solicited))
		notify(adapter, cq);
}

void pvr_cq_arm(struct pvr_adapter *adapter, struct pvr_cq *cq, enum pvr_cq_arm arm)
{
	uint64_t news = arm == PVR_CQ_ARMED_ANY ? cq->produced : cq->solicited;

	if (cq->error)
		return;
	/* Asking for any completion includes having asked for solicited ones. */
	if (cq->armed < arm)
		cq->armed = arm;
	if (news > cq->announced && cq->produced - news < unread(cq))
		notify(adapter, cq);
}
