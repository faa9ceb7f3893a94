// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QP_GONE frames: sent when an adapter loses all queue pairs, and received. */
#include "path/pipe/internal.h"

#include <endian.h>

#include "rdma/cq.h"
#include "gid/resolve.h"
#include "rdma/peer_gone.h"
#include "path/pipe/sq.h"
#include "rdma/worker.h"
#include "rdma/responder_state.h"
#include "gid/dest.h"
#include "gid/fabric.h"

/* ----------------------------------------------------------------------- sending */

/* The host of the peer, by the directory or by earlier frames. NULL: no other host. */
static struct pvr_host *host_of(struct pvr_qp *qp)
{
	const uint8_t *dgid = qp->attr.ah_attr.dgid;
	struct pvr_host *host;

	if (qp->type != PVR_QPT_RC || !pvr_peer_gone_is_connected(qp) ||
	    pvr_dest_get(qp->adapter, dgid)->adapter)
		return NULL;
	host = pvr_gid_find_host(qp->adapter, dgid);
	if (!host && qp->pipe_sq)
		host = qp->pipe_sq->route.host;
	return host ? host : pvr_responder_state_host(qp);
}

static bool fill(struct pvr_frame_qp_gone *frame, const struct pvr_qp *qp)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, ah->sgid_index);

	if (!sgid)
		return false;
	*frame = (struct pvr_frame_qp_gone){
		.frame.type = PVR_FRAME_QP_GONE,
		.src_qpn = htole32(qp->qpn),
		.dst_qpn = htole32(qp->attr.dest_qp_num),
		.gid_type = qp->adapter->gid_type,
	};
	memcpy(frame->sgid, sgid->gid, sizeof(frame->sgid));
	memcpy(frame->dgid, ah->dgid, sizeof(frame->dgid));
	return true;
}

static bool send(const struct pvr_route *route, const struct pvr_fabric *fabric,
		 union pvr_any_frame *any)
{
	if (pvr_link_send(route, fabric, any, sizeof(any->qp_gone), NULL, NULL, 0, 0) != PVR_SENT)
		return false;
	pvr_link_flush(route);
	return true;
}

/*
 * Without a connection or space the frame waits for one. It is lost if too many wait, or with
 * its connection; then the peer's own timeout detects the end.
 */
bool pvr_pipe_send_qp_gone(struct pvr_qp *qp)
{
	struct pvr_host *host = qp->adapter->engine->fabrics->gid_ops ? host_of(qp) : NULL;
	const struct pvr_fabric *fabric = qp->adapter->fabric;
	uint8_t dscp = pvr_dscp_of(qp->attr.ah_attr.traffic_class);
	union pvr_any_frame any;
	struct pvr_route route;

	if (!host || !fill(&any.qp_gone, qp))
		return false;
	if (pvr_link_route(host, qp->qpn, dscp, &route) && send(&route, fabric, &any))
		return true;
	if (!pvr_link_keep_qp_gone(&route, fabric, &any.qp_gone))
		return false;
	/* The connection may have come up, or got space, in the meantime. */
	if (pvr_link_route(host, qp->qpn, dscp, &route)) {
		pvr_link_send_kept(&route);
		pvr_link_flush(&route);
	}
	return true;
}

/* ----------------------------------------------------------------------- receiving */

/* Only the host that has the GID, or had it during the connection, may send QP_GONE. */
static bool is_plausible(const struct pvr_qp *qp, const struct pvr_host *host,
			 enum pvr_gid_state where)
{
	return where == PVR_GID_AT_HOST || (qp->peer_is_far && qp->peer_host == host) ||
	       (qp->pipe_sq && qp->pipe_sq->route.host == host) ||
	       pvr_responder_state_host(qp) == host;
}

static struct pvr_qp *find(struct pvr_adapter *adapter, const struct pvr_frame_qp_gone *frame)
{
	struct pvr_qp *qp = pvr_qp_find(adapter, le32toh(frame->dst_qpn));

	if (!qp || qp->type != PVR_QPT_RC || qp->attr.dest_qp_num != le32toh(frame->src_qpn) ||
	    memcmp(qp->attr.ah_attr.dgid, frame->sgid, sizeof(frame->sgid)))
		return NULL;
	return qp;
}

void pvr_pipe_recv_qp_gone(struct pvr_rsp_conn *in, const char *fabric,
			   const struct pvr_frame_qp_gone *frame)
{
	struct pvr_host *host = pvr_rsp_conn_host(in);
	struct pvr_adapter *adapter;
	enum pvr_gid_state where;
	struct pvr_qp *qp;

	where = pvr_rsp_conn_check_sender(in, fabric, frame->sgid, frame->gid_type, frame->dgid);
	adapter = pvr_fabric_look_up(pvr_host_engine(host), fabric, frame->dgid, frame->gid_type);
	if (!adapter)
		return;
	pvr_adapter_lock(adapter);
	qp = find(adapter, frame);
	if (qp && is_plausible(qp, host, where))
		pvr_peer_gone_end(qp);
	pvr_publish(adapter);
	pvr_adapter_unlock(adapter);
}
