/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The command channel.
 *
 * REQUEST runs the command in the slot to its end: when the driver reads ERR behind
 * it, destroyed objects do no more DMA. The slot is copied once, then never looked at
 * again. Vector 0 is raised only for a success that has a response, because drivers
 * neither wait for it nor want it otherwise.
 */
#include <errno.h>
#include <string.h>

#include "model/objects.h"
#include "model/shm.h"

struct cmd_ops {
	const char *name;
	pvr_cmd_fn *run;
	bool has_response;
	uint32_t ext; /* PVR_EXT_*: without it there is no such command */
};

static const struct cmd_ops cmd_ops[] = {
	[PVR_CMD_QUERY_PORT] = { "query_port", pvr_cmd_query_port, true },
	[PVR_CMD_QUERY_PKEY] = { "query_pkey", pvr_cmd_query_pkey, true },
	[PVR_CMD_CREATE_PD] = { "create_pd", pvr_cmd_create_pd, true },
	[PVR_CMD_DESTROY_PD] = { "destroy_pd", pvr_cmd_destroy_pd, false },
	[PVR_CMD_CREATE_MR] = { "create_mr", pvr_cmd_create_mr, true },
	[PVR_CMD_DESTROY_MR] = { "destroy_mr", pvr_cmd_destroy_mr, false },
	[PVR_CMD_CREATE_CQ] = { "create_cq", pvr_cmd_create_cq, true },
	[PVR_CMD_RESIZE_CQ] = { "resize_cq", pvr_cmd_resize_cq, true },
	[PVR_CMD_DESTROY_CQ] = { "destroy_cq", pvr_cmd_destroy_cq, false },
	[PVR_CMD_CREATE_QP] = { "create_qp", pvr_cmd_create_qp, true },
	[PVR_CMD_MODIFY_QP] = { "modify_qp", pvr_cmd_modify_qp, true },
	[PVR_CMD_QUERY_QP] = { "query_qp", pvr_cmd_query_qp, true },
	[PVR_CMD_DESTROY_QP] = { "destroy_qp", pvr_cmd_destroy_qp, false },
	[PVR_CMD_CREATE_UC] = { "create_uc", pvr_cmd_create_uc, true },
	[PVR_CMD_DESTROY_UC] = { "destroy_uc", pvr_cmd_destroy_uc, false },
	[PVR_CMD_CREATE_BIND] = { "create_bind", pvr_cmd_create_bind, false },
	[PVR_CMD_DESTROY_BIND] = { "destroy_bind", pvr_cmd_destroy_bind, false },
	[PVR_CMD_CREATE_SRQ] = { "create_srq", pvr_cmd_create_srq, true },
	[PVR_CMD_MODIFY_SRQ] = { "modify_srq", pvr_cmd_modify_srq, false },
	[PVR_CMD_QUERY_SRQ] = { "query_srq", pvr_cmd_query_srq, true },
	[PVR_CMD_DESTROY_SRQ] = { "destroy_srq", pvr_cmd_destroy_srq, false },
	[PVR_CMD_SET_CQ_RING] = { "set_cq_ring", pvr_cmd_set_cq_ring, false, PVR_EXT_CQ_VECTORS },
	[PVR_CMD_ATTACH_MCAST] = { "attach_mcast", pvr_cmd_attach_mcast, false, PVR_EXT_MCAST },
	[PVR_CMD_DETACH_MCAST] = { "detach_mcast", pvr_cmd_detach_mcast, false, PVR_EXT_MCAST },
	[PVR_CMD_QUERY_STATS] = { "query_stats", pvr_cmd_query_stats, true, PVR_EXT_STATS },
};
_Static_assert(sizeof(cmd_ops) / sizeof(cmd_ops[0]) <= PVR_CMD_NUM, "a command per row");

static const struct cmd_ops *cmd_lookup(const struct pvr_adapter *adapter, uint32_t cmd)
{
	const struct cmd_ops *ops;

	if (cmd >= sizeof(cmd_ops) / sizeof(cmd_ops[0]))
		return NULL;
	ops = &cmd_ops[cmd];
	return ops->run && !(ops->ext & ~adapter->features) ? ops : NULL;
}

static void respond(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		    union pvr_cmd_resp *resp)
{
	resp->hdr.response = req->hdr.response;
	resp->hdr.ack = PVR_CMD_RESP_ACK | req->hdr.cmd;
	memcpy(adapter->resp_shm, resp, sizeof(*resp));
}

static int run(struct pvr_adapter *adapter, const union pvr_cmd_req *req)
{
	const struct cmd_ops *ops = cmd_lookup(adapter, req->hdr.cmd);
	union pvr_cmd_resp resp = { 0 };
	int err;

	if (!ops) {
		pvr_log_guest(adapter,
			      "command %u refused: expected 0 to %u, or one of an extension in effect",
			      req->hdr.cmd, PVR_CMD_STOCK_NUM - 1);
		return ENOSYS;
	}
	err = -ops->run(adapter, req, &resp);
	pvr_debug(adapter, "%s: %s", ops->name, err ? strerror(err) : "done");
	if (err) {
		memset(&resp, 0, sizeof(resp));
		resp.hdr.err = err;
	}
	respond(adapter, req, &resp);
	if (!err && ops->has_response)
		pvr_interrupt(adapter, PVR_VEC_CMD);
	return err;
}

int pvr_cmd_run(struct pvr_adapter *adapter)
{
	union pvr_cmd_req req;
	int err;

	adapter->stats.commands++;
	if (!pvr_adapter_dma_ok(adapter)) {
		pvr_log_guest(adapter, "command refused: the device is %s%s",
			      pvr_adapter_state_name(adapter->state),
			      adapter->bus_master ? "" : " and bus mastering is off");
		err = EIO;
	} else {
		pvr_copy_once(&req, adapter->cmd_shm, sizeof(req));
		err = run(adapter, &req);
	}
	adapter->stats.commands_failed += err != 0;
	return err;
}
