/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The transport between adapters of one engine: a memcpy.
 *
 * DOC: what is remembered of the peer
 *
 * A queue pair keeps what it has found: the adapter that its destination GID belongs to,
 * and the peer there. The first is good as long as the fabric's topology is what it was
 * then, and the second while the peer's adapter has its own, which takes its lock to look
 * at; so what a queue pair remembers of an adapter that is gone is never followed. What a
 * tenant does to its own queue pairs makes none look again but their peers.
 */
#include "transport/local.h"

#include <string.h>

#include "datapath/complete.h"
#include "datapath/hold.h"
#include "datapath/responder.h"
#include "fabric/remote_gid.h"

static uint64_t topology_of(const struct pvr_fabric *fabric)
{
	return __atomic_load_n(&fabric->topology, __ATOMIC_ACQUIRE);
}

/* Where the QP's address leads; the topology is read before, so that it is not too new. */
static void find_adapter(struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = qp->adapter;
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;

	qp->topology = topology_of(adapter->fabric);
	qp->peer = NULL;
	qp->peer_topology = 0;
	qp->path = NULL;
	qp->peer_adapter = NULL;
	qp->peer_remote = NULL;
	if (!pvr_gid_get(adapter, ah->sgid_index))
		return;
	qp->peer_adapter = pvr_fabric_find(adapter, ah->dgid);
	if (qp->peer_adapter)
		return;
	/* Whoever makes the GID known after this look finds that we may wait for it. */
	__atomic_store_n(&adapter->remotes.any, true, __ATOMIC_SEQ_CST);
	qp->peer_remote = pvr_remote_gid_find(adapter, ah->dgid);
	/* A question can get lost: each turn that finds nobody asks. */
	if (!qp->peer_remote && adapter->engine->net.ops)
		qp->topology--;
}

void pvr_local_look(struct pvr_qp *qp)
{
	if (qp->topology != topology_of(qp->adapter->fabric))
		find_adapter(qp);
}

/* Who the QP's address names there, whatever state that is in. */
static struct pvr_qp *look_up(const struct pvr_qp *qp)
{
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, qp->attr.ah_attr.sgid_index);
	struct pvr_qp *peer = pvr_qp_find(qp->peer_adapter, qp->attr.dest_qp_num);

	/* IBTA vol. 1, 9.6.1.2: the responder validates who it is connected to. */
	if (!sgid || !peer || peer->type != qp->type || peer->attr.dest_qp_num != qp->qpn ||
	    memcmp(peer->attr.ah_attr.dgid, sgid->gid, sizeof(sgid->gid)))
		return NULL;
	return peer;
}

static bool is_connected(const struct pvr_qp *qp)
{
	return qp->peer && qp->adapter->link_up && qp->peer_adapter->link_up &&
	       pvr_adapter_dma_ok(qp->peer_adapter);
}

bool pvr_local_peer(struct pvr_qp *qp, struct pvr_qp **peer)
{
	struct pvr_fabric *fabric = qp->adapter->fabric;

	*peer = NULL;
	pvr_local_look(qp);
	if (!qp->peer_adapter)
		return !qp->peer_remote;
	if (!pvr_hold(qp->adapter, qp->peer_adapter))
		return false;
	/* Before it was held, its GID may have gone elsewhere: that is for the next turn. */
	if (qp->topology != topology_of(fabric))
		return false;
	if (qp->peer_topology != qp->peer_adapter->topology) {
		qp->peer_topology = qp->peer_adapter->topology;
		qp->peer = look_up(qp);
		if (qp->peer && !qp->path)
			qp->path = pvr_fabric_path(qp->adapter, qp->peer_adapter);
	}
	if (is_connected(qp))
		*peer = qp->peer;
	return true;
}

void pvr_local_end_turn(struct pvr_qp *qp, struct pvr_qp *peer, const struct pvr_tally *tally)
{
	uint64_t msgs = tally->msgs - tally->lost_msgs;
	uint64_t bytes = tally->bytes - tally->lost_bytes;

	pvr_count(peer, PVR_STAT_RX_MSGS, msgs);
	pvr_count(peer, PVR_STAT_RX_BYTES, bytes);
	if (qp->path) {
		pvr_stat_add(&qp->path->messages, msgs);
		pvr_stat_add(&qp->path->bytes, bytes);
	}
	/* The requester learns of it later than the responder, as it would on a wire. */
	pvr_publish(peer->adapter);
}
