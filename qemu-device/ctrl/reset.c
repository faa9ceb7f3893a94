// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* End of objects: reset and failure. */
#include <errno.h>

#include "core/demand.h"
#include "core/adapter.h"
#include "ctrl/uar_poll.h"
#include "rdma/path.h"
#include "rdma/peer_gone.h"
#include "rdma/ud.h"
#include "core/objects.h"
#include "core/ext_dma.h"
#include "ctrl/ctrl.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/rq.h"
#include "rdma/cq.h"
#include "rdma/worker.h"
#include "rdma/xrc.h"
#include "rdma/event.h"
#include "gid/fabric.h"
#include "gid/referral.h"

/* -------------------------------------------------------- destruction in steps */

/* Each destroys an object, if it is of @uc. Return: false if this object needs more steps. */
static bool destroy_qp(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	struct pvr_qp *qp = object;

	if (uc && qp->pd->uc != uc)
		return true;
	if (!pvr_mw_unbind_some(adapter, &qp->windows))
		return false;
	pvr_job_spend(adapter, PVR_WORK_QP);
	pvr_qp_destroy(qp);
	return true;
}

static bool destroy_srq(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	struct pvr_srq *srq = object;

	if (uc && srq->pd->uc != uc)
		return true;
	if (!pvr_xrc_release_some(srq))
		return false;
	pvr_job_spend(adapter, PVR_WORK_OBJECT);
	pvr_srq_destroy(adapter, srq);
	return true;
}

static bool destroy_cq(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	struct pvr_cq *cq = object;

	if (!uc || cq->uc == uc) {
		pvr_job_spend(adapter, PVR_WORK_OBJECT);
		pvr_cq_destroy(adapter, cq);
	}
	return true;
}

static bool destroy_mr(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	struct pvr_mr *mr = object;

	if (uc && mr->pd->uc != uc)
		return true;
	if (!pvr_mw_unbind_some(adapter, &mr->windows) ||
	    !pvr_demand_clear_some(adapter, &mr->pages))
		return false;
	pvr_job_spend(adapter, PVR_WORK_OBJECT);
	pvr_mr_destroy(adapter, mr);
	return true;
}

static bool destroy_pd(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	struct pvr_pd *pd = object;

	if (!uc || pd->uc == uc) {
		pvr_job_spend(adapter, PVR_WORK_OBJECT);
		pvr_pd_destroy(adapter, pd);
	}
	return true;
}

/* Its context is the driver's, so DESTROY_UC keeps it. */
static bool destroy_xrcd(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc)
{
	if (!uc) {
		pvr_job_spend(adapter, PVR_WORK_OBJECT);
		pvr_xrcd_destroy(adapter, object);
	}
	return true;
}

struct object_kind {
	size_t table; /* offset of the struct pvr_table in the adapter */
	bool (*destroy)(struct pvr_adapter *adapter, void *object, const struct pvr_uc *uc);
};

/* Users are destroyed first: QPs use SRQs, CQs, PDs and XRCDs, MRs use PDs. */
static const struct object_kind kinds[] = {
	{ offsetof(struct pvr_adapter, qps), destroy_qp },
	{ offsetof(struct pvr_adapter, srqs), destroy_srq },
	{ offsetof(struct pvr_adapter, cqs), destroy_cq },
	{ offsetof(struct pvr_adapter, mrs), destroy_mr },
	{ offsetof(struct pvr_adapter, pds), destroy_pd },
	{ offsetof(struct pvr_adapter, xrcds), destroy_xrcd },
};

static struct pvr_table *table_of(struct pvr_adapter *adapter, const struct object_kind *kind)
{
	return (void *)((char *)adapter + kind->table);
}

/* The GSI QP does not count as used. */
static bool has_objects(struct pvr_adapter *adapter)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (table_of(adapter, &kinds[i])->used)
			return true;
	return adapter->gsi || adapter->replaced;
}

/* Return: whether all objects of this kind are visited. */
static bool destroy_kind(struct pvr_adapter *adapter, const struct object_kind *kind,
			 const struct pvr_uc *uc)
{
	struct pvr_table *table = table_of(adapter, kind);
	struct pvr_job *job = &adapter->job;
	void *object;

	while ((table->used || adapter->gsi) && job->handle < table->size) {
		if (!pvr_job_may_go_on(adapter))
			return false;
		pvr_job_spend(adapter, 1);
		object = pvr_table_get(table, job->handle);
		if (object && !kind->destroy(adapter, object, uc))
			return false;
		job->handle++;
	}
	job->handle = 0;
	return true;
}

bool pvr_adapter_destroy_some(struct pvr_adapter *adapter, const struct pvr_uc *uc)
{
	struct pvr_job *job = &adapter->job;

	for (; job->table < sizeof(kinds) / sizeof(kinds[0]); job->table++)
		if (!destroy_kind(adapter, &kinds[job->table], uc))
			return false;
	job->table = 0;
	return true;
}

/* ---------------------------------------------------------------------- reset */

static void reset_end(struct pvr_adapter *adapter)
{
	uint32_t ext_ack = adapter->ext_ack, dsr_low = adapter->dsr_low;

	pvr_job_set(adapter, NULL);
	pvr_uc_destroy_all(adapter);
	pvr_uar_poll_reset(adapter);
	pvr_timer_cancel(&adapter->timers, &adapter->peers);
	pvr_events_detach(adapter);
	pvr_regs_reset(adapter);
	if (adapter->job.reloads)
		pvr_load_begin(adapter);
	if (!adapter->job.keeps_regs)
		return;
	adapter->ext_ack = ext_ack;
	adapter->dsr_low = dsr_low;
}

/* Return: whether the peers of all queue pairs are notified. */
static bool notify_peers(struct pvr_adapter *adapter)
{
	struct pvr_job *job = &adapter->job;
	struct pvr_qp *qp;

	for (; job->handle < adapter->qps.size; job->handle++) {
		if (!pvr_job_may_go_on(adapter))
			return false;
		qp = pvr_qp_get(adapter, job->handle);
		pvr_job_spend(adapter, qp && pvr_path_gone(qp) ? PVR_WORK_FRAME : 1);
	}
	job->handle = 0;
	return true;
}

/* The function adapter->job.step of a reset. */
static void reset_step(struct pvr_adapter *adapter)
{
	struct pvr_job *job = &adapter->job;

	if (!job->has_notified) {
		if (!job->is_silent && !notify_peers(adapter))
			return;
		/* The frames name its GIDs. */
		pvr_gid_unbind_all(adapter);
		job->has_notified = true;
	}
	if (pvr_mr_free_replaced(adapter) && pvr_adapter_destroy_some(adapter, NULL))
		reset_end(adapter);
}

/* End all work of the adapter, but keep its objects. */
static void halt(struct pvr_adapter *adapter)
{
	pvr_cmd_cancel(adapter);
	pvr_qp_sweep_cancel(adapter);
	/* Timers that stood still while the adapter was stopped expire now, without effect. */
	pvr_adapter_set_run_state(adapter, PVR_RUN_RUNNING);
	adapter->stops++;
	pvr_adapter_suspend(adapter, false);
	pvr_lone_start_end(adapter);
	pvr_referrals_forget(adapter);
	/* A result that is late concerns no one. */
	adapter->move.claim = PVR_CLAIM_NONE;
	memset(adapter->move.loaded, 0, sizeof(adapter->move.loaded));
	/* From here on no DMA: neither its own, nor by peers, nor by NICs. */
	adapter->state = PVR_ADAPTER_IDLE;
	adapter->qp_gen++;
	pvr_ext_dma_revoke_all(adapter);
	/* Before another adapter can take the GIDs that they are from. */
	pvr_ud_linger_drop(adapter);
}

/* The members of the job that select the kind of the reset are set. */
static void begin_steps(struct pvr_adapter *adapter)
{
	struct pvr_job *job = &adapter->job;

	job->cancel = NULL;
	job->has_notified = false;
	job->table = 0;
	job->handle = 0;
	pvr_job_set(adapter, reset_step);
	pvr_job_step(adapter);
	if (job->step)
		pvr_worker_queue(adapter);
}

/* Its queue pairs go on at another host, or were loaded here and have never run. */
static bool lives_elsewhere(const struct pvr_adapter *adapter)
{
	return adapter->run_state == PVR_RUN_MOVED || adapter->run_state == PVR_RUN_LOADED ||
	       adapter->move.refused;
}

static void begin_reset(struct pvr_adapter *adapter, bool keeps_regs)
{
	bool is_silent = lives_elsewhere(adapter);

	/* Its peers hear of the end, so a state that was read before has no connections. */
	if (!is_silent && adapter->state != PVR_ADAPTER_IDLE)
		adapter->move.ran = true;
	if (adapter->state != PVR_ADAPTER_IDLE)
		pvr_info_guest(adapter, "reset; was %s", pvr_adapter_state_name(adapter->state));
	halt(adapter);
	pvr_load_free(adapter);
	adapter->load_err = 0;
	if (!is_silent && pvr_fabric_new_incarnation(adapter))
		pvr_workers_check(adapter->engine);
	adapter->job.keeps_regs = keeps_regs;
	adapter->job.is_silent = is_silent;
	adapter->move.refused = false;
	adapter->job.reloads = false;
	begin_steps(adapter);
}

void pvr_adapter_empty(struct pvr_adapter *adapter, bool reloads)
{
	halt(adapter);
	if (!reloads)
		pvr_load_free(adapter);
	adapter->job.keeps_regs = false;
	adapter->job.is_silent = true;
	adapter->job.reloads = reloads;
	begin_steps(adapter);
}

int pvr_adapter_drop(struct pvr_adapter *adapter)
{
	int err = 0;

	pvr_adapter_lock(adapter);
	if ((pvr_adapter_is_stopped(adapter) || adapter->run_state == PVR_RUN_MOVED) &&
	    !adapter->job.step) {
		pvr_move_keep_gids(adapter);
		pvr_adapter_empty(adapter, false);
	} else {
		err = -EINVAL;
	}
	pvr_adapter_unlock(adapter);
	if (!err)
		pvr_peer_gone_moved(adapter);
	return err;
}

void pvr_adapter_do_reset(struct pvr_adapter *adapter)
{
	begin_reset(adapter, false);
}

void pvr_adapter_reset(struct pvr_adapter *adapter)
{
	pvr_adapter_lock(adapter);
	pvr_adapter_do_reset(adapter);
	pvr_adapter_unlock(adapter);
}

bool pvr_adapter_prepare_reset(struct pvr_adapter *adapter)
{
	bool done;

	pvr_adapter_lock(adapter);
	if (!adapter->job.step && has_objects(adapter))
		begin_reset(adapter, true);
	done = !adapter->job.step;
	pvr_adapter_unlock(adapter);
	return done;
}

/* -------------------------------------------------------------------- failure */

void pvr_adapter_do_fail(struct pvr_adapter *adapter, const char *why)
{
	/* A reset ends all uses of what has failed. Its steps must not be canceled. */
	if (adapter->state == PVR_ADAPTER_FAILED || adapter->job.step == reset_step)
		return;
	pvr_log_limited(adapter, PVR_LOG_ERR, "failed until reset: %s", why);
	if (!pvr_adapter_is_unmapping(adapter))
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
