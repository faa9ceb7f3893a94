/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The transport between adapters of one engine: a memcpy. */
#include "transport/local.h"

#include <string.h>

#include "datapath/complete.h"
#include "datapath/responder.h"

/* Who the QP's address names, whatever state that is in. */
static struct pvr_qp *look_up(struct pvr_qp *qp)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, ah->sgid_index);
	struct pvr_adapter *adapter;
	struct pvr_qp *peer;

	adapter = sgid ? pvr_fabric_find(qp->adapter, ah->dgid) : NULL;
	peer = adapter ? pvr_qp_find(adapter, qp->attr.dest_qp_num) : NULL;
	/* IBTA vol. 1, 9.6.1.2: the responder validates who it is connected to. */
	if (!peer || peer->type != qp->type || peer->attr.dest_qp_num != qp->qpn ||
	    memcmp(peer->attr.ah_attr.dgid, sgid->gid, sizeof(sgid->gid)))
		return NULL;
	return peer;
}

struct pvr_qp *pvr_local_peer(struct pvr_qp *qp)
{
	struct pvr_engine *engine = qp->adapter->engine;

	if (qp->topology != engine->topology) {
		qp->topology = engine->topology;
		qp->peer = look_up(qp);
		qp->path = qp->peer ? pvr_fabric_path(qp->adapter, qp->peer->adapter) :
				      NULL;
	}
	if (!qp->peer || !qp->adapter->link_up || !qp->peer->adapter->link_up ||
	    !pvr_adapter_dma_ok(qp->peer->adapter))
		return NULL;
	return qp->peer;
}

void pvr_local_end_turn(struct pvr_qp *qp, struct pvr_qp *peer, const struct pvr_tally *tally)
{
	pvr_count(peer, PVR_STAT_RX_MSGS, tally->rx_msgs);
	pvr_count(peer, PVR_STAT_RX_BYTES, tally->rx_bytes);
	if (qp->path) {
		qp->path->messages += tally->rx_msgs;
		qp->path->bytes += tally->copied;
	}
	/* The requester learns of it later than the responder, as it would on a wire. */
	pvr_publish(peer->adapter);
}
