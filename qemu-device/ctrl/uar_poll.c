// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Polling of mapped doorbell pages, and the search for overwritten doorbells. */
#include "ctrl/uar_poll.h"

#include "rdma/cq_lost_arm.h"
#include "core/wq.h"
#include "rdma/requester.h"
#include "rdma/sched.h"
#include "ctrl/ctrl.h"
#include "rdma/rq.h"
#include "rdma/worker.h"

#define PAGES_PER_POLL 64
#define OBJECTS_PER_POLL 64

/* ------------------------------------------------------- contexts and objects */

static uint32_t *page_of(const struct pvr_uc *uc)
{
	return uc->adapter->uar_poll.uar_shm + uc->uar * (PVR_PAGE_SIZE / sizeof(uint32_t));
}

/* A doorbell of the last owner of the page must not reach objects of the next owner. */
static void clear_page(const struct pvr_uc *uc)
{
	uint32_t offset;

	if (!uc->adapter->uar_poll.uar_shm)
		return;
	for (offset = 0; offset <= PVRDMA_UAR_SRQ_OFFSET; offset += sizeof(uint32_t))
		__atomic_store_n(page_of(uc) + offset / sizeof(uint32_t), 0, __ATOMIC_RELAXED);
}

void pvr_uc_init(struct pvr_adapter *adapter, struct pvr_uc *uc, uint32_t uar)
{
	uint32_t i;

	uc->adapter = adapter;
	uc->uar = uar;
	for (i = 0; i < PVR_OWNED_NUM; i++)
		TAILQ_INIT(&uc->owned[i].list);
	TAILQ_INSERT_TAIL(&adapter->contexts, uc, link);
	adapter->num_contexts++;
	adapter->uar[uar] = uc;
	clear_page(uc);
}

static void stop_sweep(struct pvr_uc *uc)
{
	if (!uc->is_sweeping)
		return;
	uc->is_sweeping = false;
	TAILQ_REMOVE(&uc->adapter->uar_poll.sweeping, uc, sweeping);
}

void pvr_uc_exit(struct pvr_uc *uc)
{
	struct pvr_adapter *adapter = uc->adapter;

	stop_sweep(uc);
	if (adapter->uar_poll.next == uc)
		adapter->uar_poll.next = TAILQ_NEXT(uc, link);
	TAILQ_REMOVE(&adapter->contexts, uc, link);
	adapter->num_contexts--;
	adapter->uar[uc->uar] = NULL;
	clear_page(uc);
}

void pvr_uc_own(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned)
{
	TAILQ_INSERT_TAIL(&uc->owned[kind].list, owned, link);
	uc->owned[kind].count++;
}

void pvr_uc_disown(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned)
{
	struct pvr_owned_list *all = &uc->owned[kind];

	if (all->next == owned)
		all->next = TAILQ_NEXT(owned, link);
	TAILQ_REMOVE(&all->list, owned, link);
	all->count--;
}

/* ------------------------------------------------------------------ the sweep */

static void poll_qp(struct pvr_owned *owned)
{
	struct pvr_qp *qp = (struct pvr_qp *)((char *)owned - offsetof(struct pvr_qp, owned));

	if (qp->pages.broken)
		return;
	if (pvr_requester_has_work(qp))
		pvr_sched_kick(qp);
	if ((qp->rnr_nak_sent || qp->state == PVR_QPS_ERR) && pvr_wq_avail(&qp->rq))
		pvr_sched_posted_recv(qp);
}

static void poll_cq(struct pvr_owned *owned)
{
	struct pvr_cq *cq = (struct pvr_cq *)((char *)owned - offsetof(struct pvr_cq, owned));

	pvr_cq_lost_arm_rung(cq);
}

static void poll_srq(struct pvr_owned *owned)
{
	struct pvr_srq *srq = (struct pvr_srq *)((char *)owned - offsetof(struct pvr_srq, owned));

	if (!TAILQ_EMPTY(&srq->waiting))
		pvr_sched_posted_srq(srq);
}

static void (*const look_at[PVR_OWNED_NUM])(struct pvr_owned *owned) = {
	[PVR_OWNED_QP] = poll_qp,
	[PVR_OWNED_CQ] = poll_cq,
	[PVR_OWNED_SRQ] = poll_srq,
};

static void start_sweep(struct pvr_uc *uc, enum pvr_owned_kind kind)
{
	uc->owned[kind].left = uc->owned[kind].count;
	if (uc->is_sweeping)
		return;
	uc->is_sweeping = true;
	TAILQ_INSERT_TAIL(&uc->adapter->uar_poll.sweeping, uc, sweeping);
}

/*
 * Checks at most *budget objects. Objects that existed at the start of the sweep are all
 * checked.
 */
static void sweep_kind(struct pvr_uc *uc, enum pvr_owned_kind kind, uint32_t *budget)
{
	struct pvr_owned_list *all = &uc->owned[kind];
	struct pvr_owned *owned;

	for (; all->left && *budget; all->left--, --*budget) {
		owned = all->next ? all->next : TAILQ_FIRST(&all->list);
		if (!owned) {
			all->left = 0;
			return;
		}
		all->next = TAILQ_NEXT(owned, link);
		look_at[kind](owned);
	}
}

static bool sweep_context(struct pvr_uc *uc, uint32_t *budget)
{
	bool more = false;
	uint32_t i;

	for (i = 0; i < PVR_OWNED_NUM; i++) {
		sweep_kind(uc, i, budget);
		more |= uc->owned[i].left != 0;
	}
	return more;
}

/* A context with objects left goes to the end of the list. */
static bool sweep(struct pvr_uar_poll *poll)
{
	uint32_t budget = OBJECTS_PER_POLL;
	struct pvr_uc *uc = TAILQ_FIRST(&poll->sweeping);

	if (!uc)
		return false;
	while (uc && budget) {
		stop_sweep(uc);
		if (sweep_context(uc, &budget)) {
			uc->is_sweeping = true;
			TAILQ_INSERT_TAIL(&poll->sweeping, uc, sweeping);
		}
		uc = TAILQ_FIRST(&poll->sweeping);
	}
	return true;
}

/* ------------------------------------------------------------------ the pages */

static const uint32_t word_offset[PVR_OWNED_NUM] = {
	[PVR_OWNED_QP] = PVRDMA_UAR_QP_OFFSET,
	[PVR_OWNED_CQ] = PVRDMA_UAR_CQ_OFFSET,
	[PVR_OWNED_SRQ] = PVRDMA_UAR_SRQ_OFFSET,
};

/* A valid doorbell is never 0: 0 names an object, but requests no action. */
static bool poll_word(struct pvr_uc *uc, enum pvr_owned_kind kind)
{
	uint32_t *word_shm = page_of(uc) + word_offset[kind] / sizeof(uint32_t);
	uint32_t value;

	if (!__atomic_load_n(word_shm, __ATOMIC_RELAXED))
		return false;
	value = __atomic_exchange_n(word_shm, 0, __ATOMIC_SEQ_CST);
	if (kind == PVR_OWNED_CQ)
		uc->cq_doorbells++;
	pvr_uar_ring(uc, word_offset[kind], value);
	start_sweep(uc, kind);
	return true;
}

static bool poll_page(struct pvr_uc *uc)
{
	bool found = false;
	uint32_t i;

	for (i = 0; i < PVR_OWNED_NUM; i++)
		found |= poll_word(uc, i);
	return found;
}

bool pvr_uar_poll_some(struct pvr_adapter *adapter)
{
	struct pvr_uar_poll *poll = &adapter->uar_poll;
	uint32_t i, n = adapter->num_contexts;
	struct pvr_uc *uc;
	bool found;

	if (!pvr_uar_poll_is_active(adapter))
		return false;
	/*
	 * Before the pages: objects rung below run before the sweep that they start
	 * checks them.
	 */
	found = sweep(poll);
	if (n > PAGES_PER_POLL)
		n = PAGES_PER_POLL;
	for (i = 0; i < n; i++) {
		uc = poll->next ? poll->next : TAILQ_FIRST(&adapter->contexts);
		poll->next = TAILQ_NEXT(uc, link);
		found |= poll_page(uc);
	}
	return found;
}

void pvr_uar_poll_all(struct pvr_adapter *adapter)
{
	uint32_t i;

	for (i = 0; i < adapter->num_contexts; i += PAGES_PER_POLL)
		pvr_uar_poll_some(adapter);
}

/* A sweep visits each object once, so the loop ends. */
void pvr_uar_poll_finish(struct pvr_adapter *adapter)
{
	pvr_uar_poll_all(adapter);
	while (sweep(&adapter->uar_poll))
		;
}

void pvr_uar_poll_reset(struct pvr_adapter *adapter)
{
	stop_sweep(&adapter->kernel_uc);
	clear_page(&adapter->kernel_uc);
}

void pvr_adapter_map_uar(struct pvr_adapter *adapter, void *uar_shm)
{
	pvr_adapter_lock(adapter);
	pvr_cmd_finish(adapter);
	__atomic_store_n(&adapter->uar_poll.uar_shm, uar_shm, __ATOMIC_RELAXED);
	pvr_adapter_unlock(adapter);
}

bool pvr_adapter_is_uar_mapped(const struct pvr_adapter *adapter)
{
	return adapter->uar_poll.on;
}
