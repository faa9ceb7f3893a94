/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ATTACH_MCAST and DETACH_MCAST (IBTA 10.5.2).
 *
 * A queue pair stays attached in all states, including RESET: Modify Queue Pair does not
 * list attachment among the state that RESET clears. Only DETACH_MCAST, DESTROY_QP and a
 * reset of the device end it. In a state without receive the datagrams are dropped.
 */
#include <errno.h>

#include "gid/mcast_group.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"

int pvr_cmd_attach_mcast(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_mcast *cmd = &req->mcast;
	struct pvr_qp *qp = pvr_qp_get(adapter, cmd->qp_handle);

	if (!qp || qp->type != PVR_QPT_UD || !pvr_gid_is_multicast(cmd->mgid))
		return -EINVAL;
	return pvr_group_attach(qp, cmd->mgid);
}

int pvr_cmd_detach_mcast(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, req->mcast.qp_handle);

	return qp ? pvr_group_detach(qp, req->mcast.mgid) : -EINVAL;
}
