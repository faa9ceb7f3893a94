// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Removal of RAM.
 *
 * DOC: removal in steps
 *
 * - The region leaves the table of RAM first: no new translation leads to it.
 * - External DMA is revoked, and the device fails if its own rings lie in the region.
 * - The pages of all objects are checked, in steps of bounded work. Objects with pages in
 *   the region fail.
 * - DMA of the adapter is suspended between the steps, because an object that is not
 *   checked yet may lead to the region.
 * - At the end all queue pairs are kicked. The embedder may unmap the region then.
 */
#include "core/adapter.h"
#include "core/ext_dma.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "rdma/cq.h"
#include "rdma/event.h"
#include "rdma/peer_gone.h"
#include "rdma/qp.h"
#include "rdma/rq.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

static const char why[] = "the guest's memory under it was unplugged";

void pvr_adapter_suspend(struct pvr_adapter *adapter, bool suspended)
{
	adapter->suspended = suspended;
	pvr_adapter_update_dma(adapter);
}

/* Return: whether all pages are checked. */
static bool check(struct pvr_adapter *adapter, struct pvr_pages *pages)
{
	struct pvr_job *job = &adapter->job;
	uint32_t budget = job->work < PVR_STEP_WORK ? PVR_STEP_WORK - job->work : 0;
	uint32_t left = budget;
	bool done = pvr_pages_check(pages, &job->region, &job->at, &left);

	pvr_job_spend(adapter, budget - left);
	return done;
}

/* Each visits an object. Return: false if it needs more steps. */
static bool check_mr(struct pvr_adapter *adapter, void *object)
{
	struct pvr_mr *mr = object;

	return check(adapter, &mr->pages);
}

static bool check_cq(struct pvr_adapter *adapter, void *object)
{
	struct pvr_cq *cq = object;

	if (cq->pages.broken)
		return true;
	if (!check(adapter, &cq->pages))
		return false;
	if (cq->pages.broken)
		pvr_cq_fail(adapter, cq, why);
	return true;
}

static bool check_srq(struct pvr_adapter *adapter, void *object)
{
	struct pvr_srq *srq = object;

	if (srq->pages.broken)
		return true;
	if (!check(adapter, &srq->pages))
		return false;
	if (srq->pages.broken)
		pvr_srq_fail(adapter, srq, why);
	return true;
}

static bool check_qp(struct pvr_adapter *adapter, void *object)
{
	struct pvr_qp *qp = object;

	if (qp->pages.broken)
		return true;
	if (!check(adapter, &qp->pages))
		return false;
	if (!qp->pages.broken)
		return true;
	pvr_job_spend(adapter, PVR_WORK_QP);
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, why);
	return true;
}

/* Doorbells, responses and the ends of waits are lost while DMA is suspended. */
static bool kick_qp(struct pvr_adapter *adapter, void *object)
{
	if (adapter->suspended)
		pvr_adapter_suspend(adapter, false);
	pvr_job_spend(adapter, PVR_WORK_OBJECT);
	pvr_sched_kick(object);
	return true;
}

struct pass {
	size_t table; /* offset of the struct pvr_table in the adapter */
	bool (*visit)(struct pvr_adapter *adapter, void *object);
};

static const struct pass passes[] = {
	{ offsetof(struct pvr_adapter, mrs), check_mr },
	{ offsetof(struct pvr_adapter, cqs), check_cq },
	{ offsetof(struct pvr_adapter, srqs), check_srq },
	{ offsetof(struct pvr_adapter, qps), check_qp },
};

static const struct pass kick = { offsetof(struct pvr_adapter, qps), kick_qp };

/* Return: whether all objects of the table are visited. */
static bool visit_some(struct pvr_adapter *adapter, const struct pass *pass)
{
	struct pvr_table *table = (void *)((char *)adapter + pass->table);
	struct pvr_job *job = &adapter->job;
	void *object;

	for (; job->handle < table->size; job->handle++) {
		if (!pvr_job_may_go_on(adapter))
			return false;
		pvr_job_spend(adapter, 1);
		object = table->slot[job->handle];
		if (object && !pass->visit(adapter, object))
			return false;
	}
	job->handle = 0;
	job->table++;
	return true;
}

/* The function adapter->job.step of a removal. */
static void unmap_step(struct pvr_adapter *adapter)
{
	const unsigned int num = sizeof(passes) / sizeof(passes[0]);
	struct pvr_job *job = &adapter->job;

	while (job->table < num)
		if (!visit_some(adapter, &passes[job->table]))
			return;
	if (job->suspends && !visit_some(adapter, &kick))
		return;
	pvr_adapter_suspend(adapter, false);
	pvr_job_set(adapter, NULL);
	if (job->suspends)
		pvr_peer_gone_check_later(adapter);
}

bool pvr_adapter_is_unmapping(const struct pvr_adapter *adapter)
{
	return adapter->job.step == unmap_step;
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

/* There is no job. Begins one, unless there is no such region or one step is enough. */
static void begin(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	struct pvr_job *job = &adapter->job;

	if (pvr_ram_del(&adapter->ram, gpa, size, &job->region))
		return;
	/* Nothing uses its objects until the start, which loads them again. */
	if (adapter->run_state == PVR_RUN_LOADED) {
		pvr_load_ram_gone(adapter);
		return;
	}
	pvr_ext_dma_revoke_all(adapter);
	if (rings_in(adapter, &job->region))
		pvr_adapter_do_fail(adapter, "the guest's memory under its rings was unplugged");
	job->cancel = NULL;
	job->table = 0;
	job->handle = 0;
	job->at = 0;
	job->suspends = false;
	pvr_job_set(adapter, unmap_step);
	pvr_job_step(adapter);
	if (!job->step)
		return;
	job->suspends = true;
	pvr_adapter_suspend(adapter, true);
	pvr_worker_queue(adapter);
}

void pvr_adapter_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	pvr_adapter_lock(adapter);
	pvr_cmd_finish(adapter);
	begin(adapter, gpa, size);
	pvr_cmd_finish(adapter);
	pvr_adapter_unlock(adapter);
}

bool pvr_adapter_prepare_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	bool done;

	pvr_adapter_lock(adapter);
	if (!adapter->job.step)
		begin(adapter, gpa, size);
	done = !adapter->job.step;
	pvr_adapter_unlock(adapter);
	return done;
}
