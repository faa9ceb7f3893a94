// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The local path: copies between adapters of one engine.
 *
 * DOC: cached peer
 *
 * * A queue pair caches the adapter of its destination GID and the peer there.
 * * The cached adapter is valid while the fabric's GID generation is the cached one.
 * * The cached peer is valid while the QP generation of the peer's adapter is the cached
 *   one. Reading that generation takes the lock of the peer's adapter, so a reference to
 *   a removed adapter is never followed.
 * * A guest that changes its own queue pairs invalidates the caches of their peers only.
 */
#include "path/local/local.h"

#include <string.h>

#include "path/local/step.h"
#include "rdma/sched.h"
#include "rdma/qp.h"
#include "rdma/rq.h"
#include "rdma/throttle.h"
#include "gid/dest.h"
#include "gid/fabric.h"

/* The queue pair that @qp's address and destination QPN name, in any state. */
static struct pvr_qp *look_up(const struct pvr_qp *qp)
{
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, qp->attr.ah_attr.sgid_index);
	struct pvr_qp *peer = pvr_qp_find(qp->peer_adapter, qp->attr.dest_qp_num);

	/* IBTA 9.6.1.2: the responder validates that the requester is its peer. */
	if (!sgid || !peer || !pvr_qp_is_partner(qp, peer) || peer->attr.dest_qp_num != qp->qpn ||
	    memcmp(peer->attr.ah_attr.dgid, sgid->gid, sizeof(sgid->gid)))
		return NULL;
	return peer;
}

static bool is_connected(const struct pvr_qp *qp)
{
	return qp->peer && qp->adapter->link_up && qp->peer_adapter->link_up &&
	       pvr_adapter_serves(qp->peer_adapter);
}

bool pvr_local_peer(struct pvr_qp *qp, struct pvr_qp **peer)
{
	struct pvr_fabric *fabric = qp->adapter->fabric;

	*peer = NULL;
	if (!qp->peer_adapter)
		return true;
	if (!pvr_adapter_lock_peer(qp->adapter, qp->peer_adapter))
		return false;
	/*
	 * The GID may have moved before the peer's adapter was locked: retry in the next
	 * quantum.
	 */
	if (qp->path_gen != pvr_fabric_gid_gen(fabric))
		return false;
	if (qp->peer_qp_gen != qp->peer_adapter->qp_gen) {
		qp->peer_qp_gen = qp->peer_adapter->qp_gen;
		qp->peer = look_up(qp);
		if (qp->peer && !qp->flow)
			qp->flow = pvr_flow_get(qp->adapter, qp->peer_adapter);
	}
	if (is_connected(qp))
		*peer = qp->peer;
	else if (qp->peer_adapter->suspended)
		return false; /* as if it were locked: no retry is counted */
	return true;
}

#define END_NS 1000000ull /* until the connection to a peer with an old state may have ended */

/* The flag makes the start of the other adapter search this one, see pvr_host_resume_fabric(). */
bool pvr_local_hold(struct pvr_qp *qp)
{
	if (!qp->peer_adapter || !pvr_adapter_is_held(qp->peer_adapter))
		return false;
	if (pvr_adapter_is_closed(qp->peer_adapter)) {
		pvr_requester_wait_rnr(qp, pvr_throttle_left(qp->peer_adapter));
		return true;
	}
	if (qp->peer_adapter->ends_connections) {
		pvr_requester_wait_rnr(qp, END_NS);
		return true;
	}
	__atomic_store_n(&qp->adapter->hosts.any, true, __ATOMIC_SEQ_CST);
	pvr_requester_wait(qp);
	return true;
}

/* ------------------------------------------------------------------------ requester */

static enum pvr_quantum local_run_sq(struct pvr_qp *qp, unsigned int max)
{
	return local_run(qp, max, false, false);
}

/* A pending RNR poll timer stays set: the queue pair cannot leave this path before. */
static bool detach(struct pvr_qp *qp)
{
	if (qp->wait != PVR_QP_WAIT_RNR_POLL)
		return true;
	if (pvr_timer_is_set(&qp->timer))
		return false;
	qp->wait = PVR_QP_RUNNING;
	return true;
}

static bool rnr_resume(struct pvr_qp *qp)
{
	struct pvr_qp *peer;
	bool waits;

	if (!pvr_local_peer(qp, &peer))
		return false;
	pvr_qp_set_rnr_resume_pending(qp, false);
	waits = peer && peer->wait == PVR_QP_WAIT_RNR;
	if (waits)
		pvr_requester_resume(peer);
	/* In ERR the queue pair uses no receive: it is for the next one of the SRQ. */
	if (!waits || !pvr_local_can_receive(qp))
		pvr_sched_pass_on(qp);
	return true;
}

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	qp->peer_adapter = pvr_dest_get(qp->adapter, qp->attr.ah_attr.dgid)->adapter;
	return qp->peer_adapter ? PVR_RESOLVE_YES : PVR_RESOLVE_NO;
}

static const char *peer_name(const struct pvr_qp *qp)
{
	return qp->peer_adapter ? qp->peer_adapter->name : "";
}

static const char *gid_name(struct pvr_adapter *from, const uint8_t gid[16])
{
	const struct pvr_adapter *to = pvr_dest_get(from, gid)->adapter;

	return to ? to->name : NULL;
}

#define LOCAL_PATH_OPS                                                                           \
	.name = "local", .resolve = resolve, .detach = detach, .peer_name = peer_name,           \
	.gid_name = gid_name, .run_damaged = pvr_local_run_damaged, .lock_peer = pvr_local_peer, \
	.rnr_resume = rnr_resume

static const struct pvr_path_ops captured_path_ops = {
	LOCAL_PATH_OPS,
	.run_sq = pvr_local_run_captured,
	.twin = &pvr_local_path_ops,
	.captures = true,
};

const struct pvr_path_ops pvr_local_path_ops = {
	LOCAL_PATH_OPS,
	.run_sq = local_run_sq,
	.twin = &captured_path_ops,
};
