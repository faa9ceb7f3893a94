// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The state of a queue pair, and its waits. */
#include "rdma/qp.h"

#include <string.h>

#include "core/ext_dma.h"
#include "core/mr.h"
#include "rdma/db_suppress.h"
#include "rdma/path.h"
#include "rdma/rq.h"
#include "rdma/sched.h"
#include "rdma/event.h"
#include "rdma/responder_state.h"
#include "rdma/xrc.h"

const char *pvr_qp_state_name(enum pvr_qp_state state)
{
	static const char *const names[PVR_QPS_NUM] = {
		[PVR_QPS_RESET] = "RESET", [PVR_QPS_INIT] = "INIT", [PVR_QPS_RTR] = "RTR",
		[PVR_QPS_RTS] = "RTS",	   [PVR_QPS_SQD] = "SQD",   [PVR_QPS_SQE] = "SQE",
		[PVR_QPS_ERR] = "ERR",
	};

	return state < PVR_QPS_NUM ? names[state] : "?";
}

void pvr_qp_set_wait(struct pvr_qp *qp, enum pvr_qp_wait wait)
{
	struct pvr_pipe_sq_lists *hosts = &qp->adapter->hosts;

	if (qp->wait == PVR_QP_WAIT_RETRY)
		TAILQ_REMOVE(&hosts->unanswered, qp, unanswered_link);
	qp->wait = wait;
	if (wait != PVR_QP_WAIT_RETRY)
		return;
	TAILQ_INSERT_TAIL(&hosts->unanswered, qp, unanswered_link);
	qp->path_searched = false;
	qp->resumes_by_timer = false;
	/* A loaded queue pair waits, and has resolved nothing here. */
	__atomic_store_n(&hosts->any, true, __ATOMIC_SEQ_CST);
}

void pvr_qp_set_state(struct pvr_qp *qp, enum pvr_qp_state state)
{
	if (qp->state == state)
		return;
	pvr_debug(qp->adapter, "qp %u: %s -> %s", qp->handle, pvr_qp_state_name(qp->state),
		  pvr_qp_state_name(state));
	qp->state = state;
	qp->sq_draining = false;
	/* Each change of state ends a wait: the next quantum acts by the new state. */
	pvr_timer_cancel(&qp->adapter->timers, &qp->timer);
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	if (state != PVR_QPS_RTS && state != PVR_QPS_SQD) {
		pvr_ext_dma_revoke_qp(qp);
		pvr_path_stop(qp);
	}
	pvr_db_update_rq(qp);
	if (state != PVR_QPS_RESET) {
		pvr_sched_kick_unlimited(qp);
		return;
	}
	pvr_sched_remove(qp);
	pvr_db_reset(qp);
}

void pvr_qp_note_error(struct pvr_qp *qp, const char *why)
{
	struct pvr_adapter *adapter = qp->adapter;

	adapter->qp_errors[adapter->next_qp_error] = (struct pvr_qp_error){
		.qpn = qp->qpn,
		.why = why,
		.time = pvr_now(adapter->engine),
	};
	adapter->next_qp_error = (adapter->next_qp_error + 1) % PVR_QP_ERRORS;
}

bool pvr_qp_fail(struct pvr_qp *qp, enum pvr_eqe_type event, const char *why)
{
	if (qp->state == PVR_QPS_ERR || qp->state == PVR_QPS_RESET)
		return false;
	pvr_log_guest(qp->adapter, "qp %u: %s -> ERR: %s", qp->handle, pvr_qp_state_name(qp->state),
		      why);
	pvr_qp_note_error(qp, why);
	pvr_qp_set_state(qp, PVR_QPS_ERR);
	if (event != PVR_EVENT_NUM)
		pvr_event_async(qp->adapter, event, qp->handle);
	return true;
}

void pvr_qp_set_rnr_nak_sent(struct pvr_qp *qp, bool waits)
{
	if (qp->rnr_nak_sent == waits)
		return;
	qp->rnr_nak_sent = waits;
	if (qp->srq && waits)
		TAILQ_INSERT_TAIL(&qp->srq->waiting, qp, waiting);
	else if (qp->srq)
		TAILQ_REMOVE(&qp->srq->waiting, qp, waiting);
	pvr_db_update_rq(qp);
}

void pvr_qp_set_rnr_resume_pending(struct pvr_qp *qp, bool wakes)
{
	if (qp->srq)
		qp->srq->waking += wakes - qp->rnr_resume_pending;
	qp->rnr_resume_pending = wakes;
}

void pvr_qp_drop_requester(struct pvr_qp *qp)
{
	bool reserved = qp->rnr_resume_pending;

	pvr_qp_set_rnr_nak_sent(qp, false);
	pvr_qp_set_rnr_resume_pending(qp, false);
	if (reserved)
		pvr_sched_pass_on(qp);
}

void pvr_qp_reset_queues(struct pvr_qp *qp)
{
	qp->adapter->qp_gen++;
	qp->sq.head = 0;
	qp->rq.head = 0;
	qp->sq_offset = 0;
	qp->rq_offset = 0;
	qp->flushed = 0;
	pvr_qp_drop_requester(qp);
	qp->mcast_next = 0;
	qp->mcast_taken = false;
	qp->ud_waits = false;
	qp->comm_est = false;
	qp->last_wqe = false;
	qp->unanswered = false;
	qp->rnr_nak = false;
	qp->rnr_slow = false;
	qp->peer_incarnation = 0;
	qp->peer_is_far = false;
	qp->is_new_connection = false;
	qp->peer_qp_gone = false;
	qp->peer_gone = false;
	qp->path_gen = 0;
	pvr_path_close(qp);
	pvr_responder_state_free(qp);
	if (qp->held)
		qp->held->valid = false;
	if (qp->xrc_target)
		pvr_xrc_drop_srq(qp);
	qp->sq_psn = 0;
	qp->rq_psn = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
}
