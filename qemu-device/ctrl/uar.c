// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User contexts and their doorbell pages.
 *
 * Each page belongs to one context, page 0 to the guest driver. A doorbell for an object
 * of another context is ignored and counted: so processes of a guest with different pages
 * cannot affect each other's queues.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/uar_poll.h"
#include "rdma/cq.h"
#include "rdma/sched.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "rdma/rq.h"
#include "rdma/worker.h"
static bool ring_qp(struct pvr_adapter *adapter, const struct pvr_uc *uc, uint32_t value)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, value & PVRDMA_UAR_HANDLE_MASK);

	if (!qp || qp->pd->uc != uc)
		return false;
	qp->stat[PVR_STAT_DOORBELLS]++;
	if (value & PVR_DB_QP_SEND)
		pvr_sched_kick(qp);
	if (value & PVR_DB_QP_RECV)
		pvr_sched_posted_recv(qp);
	return true;
}

static bool ring_cq(struct pvr_adapter *adapter, const struct pvr_uc *uc, uint32_t value)
{
	struct pvr_cq *cq = pvr_cq_get(adapter, value & PVRDMA_UAR_HANDLE_MASK);

	if (!cq || cq->uc != uc)
		return false;
	/* POLL needs no action: the device writes completions without it. */
	if (value & PVR_DB_CQ_ARM)
		pvr_cq_arm(adapter, cq, PVR_CQ_ARMED_ANY);
	else if (value & PVR_DB_CQ_ARM_SOL)
		pvr_cq_arm(adapter, cq, PVR_CQ_ARMED_SOLICITED);
	return true;
}

static bool ring_srq(struct pvr_adapter *adapter, const struct pvr_uc *uc, uint32_t value)
{
	struct pvr_srq *srq = pvr_srq_get(adapter, value & PVRDMA_UAR_HANDLE_MASK);

	if (!srq || srq->pd->uc != uc)
		return false;
	if (value & PVR_DB_SRQ_RECV)
		pvr_sched_posted_srq(srq);
	return true;
}

void pvr_uar_ring(const struct pvr_uc *uc, uint32_t offset, uint32_t value)
{
	struct pvr_adapter *adapter = uc->adapter;
	bool done = false;

	switch (offset) {
	case PVRDMA_UAR_QP_OFFSET:
		done = ring_qp(adapter, uc, value);
		break;
	case PVRDMA_UAR_CQ_OFFSET:
		done = ring_cq(adapter, uc, value);
		break;
	case PVRDMA_UAR_SRQ_OFFSET:
		done = ring_srq(adapter, uc, value);
		break;
	}
	adapter->stat[PVR_STAT_DOORBELLS]++;
	adapter->stat[PVR_STAT_DOORBELLS_IGNORED] += !done;
}

/* An embedder that does not postpone doorbells waits for the end of the job. */
static bool end_suspension(struct pvr_adapter *adapter)
{
	if (!adapter->suspended)
		return false;
	pvr_cmd_finish(adapter);
	return pvr_adapter_dma_ok(adapter);
}

/* A stopped adapter remembers its arms; each queue is checked after the start. */
static bool is_stopped(const struct pvr_adapter *adapter)
{
	return adapter->run_state == PVR_RUN_STOPPED && adapter->state == PVR_ADAPTER_ACTIVE;
}

/* Return: false if the page has no context, or the adapter may not do DMA. */
static bool ring(struct pvr_adapter *adapter, uint64_t offset, uint32_t value)
{
	const struct pvr_uc *uc = adapter->uar[offset / PVR_PAGE_SIZE];

	if (!uc ||
	    (!pvr_adapter_dma_ok(adapter) && !is_stopped(adapter) && !end_suspension(adapter)))
		return false;
	pvr_uar_ring(uc, offset % PVR_PAGE_SIZE, value);
	return true;
}

void pvr_adapter_uar_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			   size_t len)
{
	uint32_t value;

	pvr_adapter_lock(adapter);
	if (len != sizeof(value) || offset % sizeof(value) || offset >= PVR_BAR_UAR_SIZE) {
		adapter->stats.bad_accesses++;
	} else {
		memcpy(&value, buf, sizeof(value));
		if (!ring(adapter, offset, value)) {
			adapter->stat[PVR_STAT_DOORBELLS]++;
			adapter->stat[PVR_STAT_DOORBELLS_IGNORED]++;
		}
	}
	pvr_adapter_unlock(adapter);
}
