// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Reliable connections whose peer no longer exists. */
#include "rdma/peer_gone.h"

#include <stddef.h>

#include "core/wq.h"
#include "rdma/requester.h"
#include "gid/fabric.h"
#include "gid/resolve.h"
#include "core/adapter.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/worker.h"

/* Delay before the check; shorter than common ACK timeouts. */
#define LOOK_NS 5000000ull

static void expired(struct pvr_timer *timer);

int pvr_peer_gone_init(struct pvr_adapter *adapter)
{
	return pvr_timer_init(&adapter->timers, &adapter->peers, expired);
}

void pvr_peer_gone_exit(struct pvr_adapter *adapter)
{
	pvr_timer_exit(&adapter->timers, &adapter->peers);
}

static void watch(struct pvr_qp *qp)
{
	qp->peer_incarnation = 0;
	qp->peer_is_far = false;
	if (qp->type != PVR_QPT_RC || !(qp->adapter->features & PVR_EXT_PEER_GONE))
		return;
	qp->peer_incarnation = pvr_fabric_incarnation(qp->adapter, qp->attr.ah_attr.dgid);
	if (qp->peer_incarnation)
		return;
	qp->peer_host = pvr_gid_find_host(qp->adapter, qp->attr.ah_attr.dgid);
	qp->peer_is_far = qp->peer_host;
}

void pvr_peer_gone_watch(struct pvr_qp *qp)
{
	qp->peer_gone = false;
	qp->peer_qp_gone = false;
	watch(qp);
}

void pvr_peer_gone_watch_again(struct pvr_qp *qp)
{
	if (pvr_peer_gone_is_connected(qp) && !qp->peer_gone && !qp->peer_qp_gone)
		watch(qp);
}

void pvr_peer_gone_watch_missing(struct pvr_adapter *adapter)
{
	if (adapter->features & PVR_EXT_PEER_GONE &&
	    (adapter->run_state == PVR_RUN_RUNNING || adapter->run_state == PVR_RUN_STOPPED))
		pvr_qp_sweep_begin(adapter, PVR_SWEEP_WATCH);
}

void pvr_peer_gone_forget(struct pvr_qp *qp)
{
	if (qp->peer_incarnation && !qp->peer_is_far &&
	    pvr_fabric_has_moved(qp->adapter, qp->peer_incarnation))
		qp->peer_incarnation = 0;
}

void pvr_peer_gone_moved(struct pvr_adapter *moved)
{
	struct pvr_adapter *adapter;

	if (!pvr_fabric_move_incarnation(moved))
		return;
	LIST_FOREACH(adapter, &moved->fabric->adapters, fabric_link) {
		pvr_adapter_lock(adapter);
		if (adapter->features & PVR_EXT_PEER_GONE)
			pvr_qp_sweep_begin(adapter, PVR_SWEEP_FORGET);
		pvr_adapter_unlock(adapter);
	}
}

void pvr_peer_gone_settle(struct pvr_qp *qp, uint64_t *living)
{
	uint64_t incarnation = qp->peer_is_far ? 0 : qp->peer_incarnation;

	if (!incarnation || incarnation == *living || !pvr_peer_gone_is_connected(qp))
		return;
	if (pvr_fabric_is_alive(qp->adapter, incarnation)) {
		*living = incarnation;
		return;
	}
	qp->peer_qp_gone = true;
	pvr_peer_gone_postpone(qp->adapter);
}

void pvr_peer_gone_check_later(struct pvr_adapter *adapter)
{
	if (!__atomic_exchange_n(&adapter->has_lost_peers, false, __ATOMIC_RELAXED))
		return;
	if (adapter->features & PVR_EXT_PEER_GONE && !pvr_timer_is_set(&adapter->peers))
		pvr_timer_set(&adapter->timers, &adapter->peers,
			      pvr_now(adapter->engine) + LOOK_NS);
}

/*
 * If a request is posted, it fails in the next quantum; else the QP goes to ERR at once.
 */
static void give_up(struct pvr_qp *qp)
{
	qp->peer_incarnation = 0;
	qp->peer_is_far = false;
	qp->peer_qp_gone = false;
	qp->peer_gone = true;
	if ((qp->state == PVR_QPS_RTS || qp->sq_draining) && pvr_wq_avail(&qp->sq) > 0)
		pvr_requester_resume(qp);
	else
		pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its peer's guest is gone");
}

bool pvr_peer_gone_is_connected(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_RTR || qp->state == PVR_QPS_RTS || qp->state == PVR_QPS_SQD;
}

void pvr_peer_gone_end(struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = qp->adapter;

	if (!(adapter->features & PVR_EXT_PEER_GONE) || !pvr_peer_gone_is_connected(qp))
		return;
	if (pvr_adapter_dma_ok(adapter)) {
		give_up(qp);
		return;
	}
	qp->peer_qp_gone = true;
	pvr_peer_gone_postpone(adapter);
}

bool pvr_peer_gone_check(struct pvr_qp *qp, uint64_t *living)
{
	if (!pvr_peer_gone_is_connected(qp))
		return false;
	if (qp->peer_qp_gone) {
		give_up(qp);
		return true;
	}
	if (!qp->peer_incarnation || qp->peer_is_far || qp->peer_incarnation == *living)
		return false;
	if (pvr_fabric_is_alive(qp->adapter, qp->peer_incarnation)) {
		*living = qp->peer_incarnation;
		return false;
	}
	give_up(qp);
	return true;
}

void pvr_peer_gone_postpone(struct pvr_adapter *adapter)
{
	__atomic_store_n(&adapter->has_lost_peers, true, __ATOMIC_RELAXED);
}

/* Without DMA the first step postpones the check. */
static void expired(struct pvr_timer *timer)
{
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)timer - offsetof(struct pvr_adapter, peers));

	pvr_qp_sweep_begin(adapter, PVR_SWEEP_PEERS);
}
