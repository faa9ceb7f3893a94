// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* End of objects: reset, failure, removal of RAM. */
#include "core/adapter.h"
#include "ctrl/uar_poll.h"
#include "rdma/path.h"
#include "rdma/ud.h"
#include "core/objects.h"
#include "core/ext_dma.h"
#include "ctrl/ctrl.h"
#include "rdma/qp.h"
#include "rdma/rq.h"
#include "rdma/cq.h"
#include "rdma/worker.h"
#include "rdma/event.h"
#include "gid/fabric.h"

/* Users are destroyed first: QPs use SRQs, CQs and PDs, MRs use PDs. */
void pvr_adapter_destroy_objects(struct pvr_adapter *adapter, const struct pvr_uc *uc)
{
	struct pvr_srq *srq;
	struct pvr_qp *qp;
	struct pvr_mr *mr;
	struct pvr_cq *cq;
	struct pvr_pd *pd;
	uint32_t i;

	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp)
		if (!uc || qp->pd->uc == uc)
			pvr_qp_destroy(qp);
	PVR_TABLE_FOR_EACH(&adapter->srqs, i, srq)
		if (!uc || srq->pd->uc == uc)
			pvr_srq_destroy(adapter, srq);
	PVR_TABLE_FOR_EACH(&adapter->cqs, i, cq)
		if (!uc || cq->uc == uc)
			pvr_cq_destroy(adapter, cq);
	PVR_TABLE_FOR_EACH(&adapter->mrs, i, mr)
		if (!uc || mr->pd->uc == uc)
			pvr_mr_destroy(adapter, mr);
	PVR_TABLE_FOR_EACH(&adapter->pds, i, pd)
		if (!uc || pd->uc == uc)
			pvr_pd_destroy(adapter, pd);
}

void pvr_adapter_do_reset(struct pvr_adapter *adapter)
{
	if (adapter->state != PVR_ADAPTER_IDLE)
		pvr_info_guest(adapter, "reset; was %s", pvr_adapter_state_name(adapter->state));
	pvr_cmd_cancel(adapter);
	pvr_path_adapter_gone(adapter);
	pvr_adapter_destroy_objects(adapter, NULL);
	pvr_uc_destroy_all(adapter);
	pvr_uar_poll_reset(adapter);
	pvr_gid_unbind_all(adapter);
	if (pvr_fabric_new_incarnation(adapter))
		pvr_workers_check(adapter->engine);
	pvr_timer_cancel(&adapter->timers, &adapter->peers);
	pvr_ud_linger_drop(adapter);
	pvr_events_detach(adapter);
	pvr_regs_reset(adapter);
}

void pvr_adapter_reset(struct pvr_adapter *adapter)
{
	pvr_adapter_lock(adapter);
	pvr_adapter_do_reset(adapter);
	pvr_adapter_unlock(adapter);
}

static bool rings_in(const struct pvr_adapter *adapter, const struct pvr_ram_region *region)
{
	const void *used[] = {
		adapter->dsr_shm,
		adapter->cmd_shm,
		adapter->resp_shm,
	};
	size_t i;

	for (i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (pvr_ram_contains(region, used[i]))
			return true;
	return pvr_events_lie_in(adapter, region);
}

/*
 * Mark objects with pages in @region broken, and move CQs, SRQs and QPs to their error
 * states.
 */
static void break_objects(struct pvr_adapter *adapter, const struct pvr_ram_region *region)
{
	static const char why[] = "the guest's memory under it was unplugged";
	struct pvr_srq *srq;
	struct pvr_qp *qp;
	struct pvr_mr *mr;
	struct pvr_cq *cq;
	uint32_t i;

	PVR_TABLE_FOR_EACH(&adapter->mrs, i, mr)
		pvr_pages_check(&mr->pages, region);
	PVR_TABLE_FOR_EACH(&adapter->cqs, i, cq)
		if (!cq->pages.broken && pvr_pages_check(&cq->pages, region))
			pvr_cq_fail(adapter, cq, why);
	PVR_TABLE_FOR_EACH(&adapter->srqs, i, srq)
		if (!srq->pages.broken && pvr_pages_check(&srq->pages, region))
			pvr_srq_fail(adapter, srq, why);
	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp)
		if (!qp->pages.broken && pvr_pages_check(&qp->pages, region))
			pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, why);
}

void pvr_adapter_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	struct pvr_ram_region region;

	pvr_adapter_lock(adapter);
	pvr_cmd_finish(adapter);
	if (!pvr_ram_del(&adapter->ram, gpa, size, &region)) {
		pvr_ext_dma_revoke_all(adapter);
		if (rings_in(adapter, &region))
			pvr_adapter_do_fail(adapter,
					    "the guest's memory under its rings was unplugged");
		break_objects(adapter, &region);
	}
	pvr_adapter_unlock(adapter);
}

void pvr_adapter_do_fail(struct pvr_adapter *adapter, const char *why)
{
	if (adapter->state == PVR_ADAPTER_FAILED)
		return;
	pvr_log_limited(adapter, PVR_LOG_ERR, "failed until reset: %s", why);
	pvr_cmd_cancel(adapter);
	pvr_ext_dma_revoke_all(adapter);
	pvr_event_async(adapter, PVR_EVENT_DEVICE_FATAL, 0);
	pvr_interrupt_flush(adapter);
	adapter->state = PVR_ADAPTER_FAILED;
	pvr_events_detach(adapter);
	adapter->dsr_shm = NULL;
	adapter->cmd_shm = NULL;
	adapter->resp_shm = NULL;
}

void pvr_adapter_fail(struct pvr_adapter *adapter, const char *why)
{
	pvr_adapter_lock(adapter);
	pvr_adapter_do_fail(adapter, why);
	pvr_adapter_unlock(adapter);
}
