// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Visits of all queue pairs of an adapter, in steps of bounded work. */
#include "rdma/qp_sweep.h"

#include "core/objects.h"
#include "rdma/cq.h"
#include "rdma/path.h"
#include "rdma/peer_gone.h"
#include "rdma/qp.h"
#include "rdma/requester.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

/* Work of a visit: the queue pair and its CQs are not in the cache. */
#define WORK_VISIT 8u
/* Work of two look-ups of a GID. */
#define WORK_WATCH 32u

void pvr_qp_sweep_begin(struct pvr_adapter *adapter, enum pvr_qp_sweep_for reason)
{
	struct pvr_qp_sweep *sweep = reason & PVR_SWEEP_WITHOUT_DMA ? &adapter->watch_sweep
								    : &adapter->qp_sweep;

	/* One that has visited nothing yet takes the reason. */
	if (sweep->handle) {
		sweep->next |= reason;
		return;
	}
	sweep->reasons |= reason;
	pvr_worker_queue(adapter);
}

void pvr_qp_sweep_cancel(struct pvr_adapter *adapter)
{
	adapter->qp_sweep = (struct pvr_qp_sweep){ 0 };
	adapter->watch_sweep = (struct pvr_qp_sweep){ 0 };
	adapter->ends_connections = false;
	pvr_adapter_update_dma(adapter);
}

/* The reasons that came meanwhile are next. */
static void end_sweep(struct pvr_qp_sweep *sweep)
{
	sweep->reasons = sweep->next;
	sweep->next = 0;
	sweep->handle = 0;
}

static void set_ends_connections(struct pvr_adapter *adapter, bool ends)
{
	adapter->ends_connections = ends;
	pvr_adapter_update_dma(adapter);
}

/* Kicks had no effect meanwhile. */
static void check_end_of_connections(struct pvr_adapter *adapter)
{
	const struct pvr_qp_sweep *sweep = &adapter->watch_sweep;

	if (!adapter->ends_connections || (sweep->reasons | sweep->next) & PVR_SWEEP_STALE)
		return;
	set_ends_connections(adapter, false);
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_KICK);
}

static void postpone_peers(struct pvr_adapter *adapter)
{
	struct pvr_qp_sweep *sweep = &adapter->qp_sweep;

	if ((sweep->reasons | sweep->next) & PVR_SWEEP_PEERS)
		pvr_peer_gone_postpone(adapter);
	sweep->reasons &= ~PVR_SWEEP_PEERS;
	sweep->next &= ~PVR_SWEEP_PEERS;
	if (!sweep->reasons)
		end_sweep(sweep);
}

/* Return: whether it was moved to ERR. */
static bool fail_if_broken(struct pvr_qp *qp)
{
	const char *why = NULL;

	if ((qp->send_cq && qp->send_cq->error) || (qp->recv_cq && qp->recv_cq->error))
		why = "its CQ is in error";
	else if (qp->srq && qp->srq->error)
		why = "its SRQ is in error";
	return why && pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, why);
}

static bool has_connection(const struct pvr_qp *qp)
{
	return pvr_qp_is_connected(qp) && qp->state >= PVR_QPS_RTR && qp->state != PVR_QPS_ERR;
}

/* Return: the work. */
static uint32_t end_connection(struct pvr_qp *qp)
{
	uint32_t work = PVR_WORK_QP;

	if (qp->is_new_connection || !has_connection(qp)) {
		qp->is_new_connection = false;
		return 0;
	}
	if (pvr_path_gone(qp))
		work += PVR_WORK_FRAME;
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its state is older than that of its peer");
	return work;
}

/* Return: whether the sweep that ends connections is still to come to it. */
static bool awaits_end(const struct pvr_qp *qp)
{
	const struct pvr_qp_sweep *sweep = &qp->adapter->watch_sweep;

	return qp->adapter->ends_connections &&
	       (sweep->next & PVR_SWEEP_STALE || qp->handle >= sweep->handle);
}

void pvr_qp_end_connection(struct pvr_qp *qp)
{
	if (awaits_end(qp) && !qp->is_new_connection)
		end_connection(qp);
}

void pvr_qp_note_connection(struct pvr_qp *qp)
{
	qp->is_new_connection = awaits_end(qp);
}

/*
 * A receive request of the peer, at this host, may have come while the requester stood still. So it
 * tries once more, which costs no RNR retry.
 */
static void end_rnr_wait(struct pvr_qp *qp)
{
	if (qp->wait != PVR_QP_WAIT_RNR || qp->path_id != PVR_PATH_DEFAULT)
		return;
	if (qp->rnr_left < qp->attr.rnr_retry)
		qp->rnr_left++;
	pvr_requester_resume(qp);
}

/* Return: the work. @living: see pvr_peer_gone_check(). */
static uint32_t visit_qp(struct pvr_qp *qp, uint32_t reasons, uint64_t *living)
{
	uint32_t work = WORK_VISIT;

	if (reasons & PVR_SWEEP_ERRORS && fail_if_broken(qp))
		work += PVR_WORK_QP;
	if (reasons & PVR_SWEEP_PEERS && pvr_peer_gone_check(qp, living))
		work += PVR_WORK_QP;
	if (reasons & PVR_SWEEP_KICK) {
		work += WORK_VISIT;
		end_rnr_wait(qp);
		pvr_sched_kick(qp);
	}
	if (reasons & PVR_SWEEP_RESUME && pvr_adapter_dma_ok(qp->adapter)) {
		work += WORK_VISIT;
		pvr_path_resume(qp);
	}
	if (reasons & PVR_SWEEP_STALE)
		work += end_connection(qp);
	if (reasons & PVR_SWEEP_FORGET)
		pvr_peer_gone_forget(qp);
	if (reasons & PVR_SWEEP_WATCH && !qp->peer_incarnation) {
		work += WORK_WATCH;
		pvr_peer_gone_watch_again(qp);
	}
	return work;
}

static uint32_t visit_cq(struct pvr_cq *cq)
{
	if (!cq->error)
		pvr_cq_check_arming(cq->uc->adapter, cq);
	return WORK_VISIT;
}

/* Visit the objects of handle @handle. Return: the work. */
static uint32_t visit(struct pvr_adapter *adapter, uint32_t handle, uint32_t reasons,
		      uint64_t *living)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, handle);
	struct pvr_cq *cq = reasons & PVR_SWEEP_KICK ? pvr_cq_get(adapter, handle) : NULL;
	uint32_t work = 1;

	if (qp)
		work += visit_qp(qp, reasons, living);
	if (cq)
		work += visit_cq(cq);
	return work;
}

/* Return: whether no table that is visited has this handle or a higher one. */
static bool is_end(const struct pvr_adapter *adapter, const struct pvr_qp_sweep *sweep)
{
	return sweep->handle >= adapter->qps.size &&
	       (!(sweep->reasons & PVR_SWEEP_KICK) || sweep->handle >= adapter->cqs.size);
}

/* Return: the work after more visits. @work: that of this step before. */
static uint32_t run(struct pvr_adapter *adapter, struct pvr_qp_sweep *sweep, uint32_t work)
{
	uint64_t living = 0; /* most queue pairs have the same peer */

	while (sweep->reasons && work < PVR_STEP_WORK) {
		if (is_end(adapter, sweep)) {
			end_sweep(sweep);
			break;
		}
		work += visit(adapter, sweep->handle++, sweep->reasons, &living);
	}
	return work;
}

void pvr_qp_sweep_step(struct pvr_adapter *adapter)
{
	uint32_t work = run(adapter, &adapter->watch_sweep, 0);

	check_end_of_connections(adapter);
	if (adapter->run_state == PVR_RUN_RUNNING) {
		if (!pvr_adapter_dma_ok(adapter))
			postpone_peers(adapter);
		work = run(adapter, &adapter->qp_sweep, work);
	}
	if (work > adapter->job.longest)
		adapter->job.longest = work;
}

void pvr_qp_end_connections(struct pvr_adapter *adapter)
{
	set_ends_connections(adapter, true);
	/* What was read of its state has them. */
	if (pvr_adapter_is_stopped(adapter))
		adapter->stops++;
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_STALE);
	if (pvr_qp_sweep_is_due(adapter))
		pvr_qp_sweep_step(adapter);
}
