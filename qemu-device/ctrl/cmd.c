// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The command channel.
 *
 * DOC: commands
 *
 * - A command is complete when the driver's read of ERR after REQUEST returns, or when
 *   the response slot has the key. Then destroyed objects do no DMA.
 * - The request slot is copied once, and read only then.
 * - A long command is executed in steps, so that other adapters get quanta between them.
 * - A read of ERR during a long command waits for its end. An embedder avoids the wait
 *   with pvr_adapter_busy().
 * - Vector 0 is raised only for a successful command with a response: drivers wait for no
 *   other.
 */
#include <errno.h>
#include <string.h>

#include "ctrl/uar_poll.h"
#include "core/mr.h"
#include "core/dirty.h"
#include "core/objects.h"
#include "core/compiler.h"
#include "ctrl/ctrl.h"
#include "rdma/worker.h"
#include "rdma/event.h"

struct cmd_ops {
	const char *name;
	pvr_cmd_fn *run;
	bool has_response;
	uint32_t ext; /* required PVR_EXT_*; without it the command is unknown */
};

/* A command of all devices, and a command of an extension. */
#define CMD(what, responds)                                                      \
	{                                                                        \
		.name = #what, .run = pvr_cmd_##what, .has_response = (responds) \
	}
#define CMD_EXT(what, responds, extension)                                        \
	{                                                                         \
		.name = #what, .run = pvr_cmd_##what, .has_response = (responds), \
		.ext = (extension)                                                \
	}

static const struct cmd_ops cmd_ops[] = {
	[PVR_CMD_QUERY_PORT] = CMD(query_port, true),
	[PVR_CMD_QUERY_PKEY] = CMD(query_pkey, true),
	[PVR_CMD_CREATE_PD] = CMD(create_pd, true),
	[PVR_CMD_DESTROY_PD] = CMD(destroy_pd, false),
	[PVR_CMD_CREATE_MR] = CMD(create_mr, true),
	[PVR_CMD_DESTROY_MR] = CMD(destroy_mr, false),
	[PVR_CMD_CREATE_CQ] = CMD(create_cq, true),
	[PVR_CMD_RESIZE_CQ] = CMD(resize_cq, true),
	[PVR_CMD_DESTROY_CQ] = CMD(destroy_cq, false),
	[PVR_CMD_CREATE_QP] = CMD(create_qp, true),
	[PVR_CMD_MODIFY_QP] = CMD(modify_qp, true),
	[PVR_CMD_QUERY_QP] = CMD(query_qp, true),
	[PVR_CMD_DESTROY_QP] = CMD(destroy_qp, false),
	[PVR_CMD_CREATE_UC] = CMD(create_uc, true),
	[PVR_CMD_DESTROY_UC] = CMD(destroy_uc, false),
	[PVR_CMD_CREATE_BIND] = CMD(create_bind, false),
	[PVR_CMD_DESTROY_BIND] = CMD(destroy_bind, false),
	[PVR_CMD_CREATE_SRQ] = CMD(create_srq, true),
	[PVR_CMD_MODIFY_SRQ] = CMD(modify_srq, false),
	[PVR_CMD_QUERY_SRQ] = CMD(query_srq, true),
	[PVR_CMD_DESTROY_SRQ] = CMD(destroy_srq, false),
	[PVR_CMD_SET_CQ_RING] = CMD_EXT(set_cq_ring, false, PVR_EXT_CQ_VECTORS),
	[PVR_CMD_ATTACH_MCAST] = CMD_EXT(attach_mcast, false, PVR_EXT_MCAST),
	[PVR_CMD_DETACH_MCAST] = CMD_EXT(detach_mcast, false, PVR_EXT_MCAST),
	[PVR_CMD_QUERY_STATS] = CMD_EXT(query_stats, true, PVR_EXT_STATS),
	[PVR_CMD_SUM_STATS] = CMD_EXT(sum_stats, true, PVR_EXT_SUM_STATS),
	[PVR_CMD_MODIFY_CQ] = CMD_EXT(modify_cq, false, PVR_EXT_CQ_MODERATION),
	[PVR_CMD_CREATE_XRCD] = CMD_EXT(create_xrcd, true, PVR_EXT_XRC),
	[PVR_CMD_DESTROY_XRCD] = CMD_EXT(destroy_xrcd, false, PVR_EXT_XRC),
	[PVR_CMD_QUERY_FAULT] = CMD_EXT(query_fault, true, PVR_EXT_ON_DEMAND),
	[PVR_CMD_SET_PAGES] = CMD_EXT(set_pages, false, PVR_EXT_ON_DEMAND),
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

/*
 * Writes the key last: with PVR_EXT_RESP_POLL drivers poll it before they read the rest.
 */
static void respond(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		    union pvr_cmd_resp *resp)
{
	const size_t key = sizeof(resp->hdr.response);

	resp->hdr.ack = PVR_CMD_RESP_ACK | req->hdr.cmd;
	memcpy((uint8_t *)adapter->resp_shm + key, (uint8_t *)resp + key, sizeof(*resp) - key);
	__atomic_store_n((uint64_t *)adapter->resp_shm, req->hdr.response, __ATOMIC_RELEASE);
	pvr_dirty(adapter, adapter->resp_shm, sizeof(*resp));
}

/* An initializer may leave the bytes after the union's first member undefined (C11 6.7.9). */
static void clear_response(union pvr_cmd_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
}

static void complete(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		     union pvr_cmd_resp *resp, int err)
{
	const struct cmd_ops *ops = &cmd_ops[req->hdr.cmd];

	pvr_debug(adapter, "%s: %s", ops->name, err ? strerror(err) : "done");
	if (err) {
		clear_response(resp);
		resp->hdr.err = err;
	}
	respond(adapter, req, resp);
	adapter->err = err;
	adapter->stats.commands_failed += err != 0;
	if (!err && ops->has_response)
		pvr_interrupt(adapter, PVR_VEC_CMD);
}

static void refuse(struct pvr_adapter *adapter, int err)
{
	adapter->err = err;
	adapter->stats.commands_failed++;
}

/* The function adapter->job.step of commands. */
static void step(struct pvr_adapter *adapter)
{
	union pvr_cmd_resp resp;
	int err;

	clear_response(&resp);
	err = adapter->job.run(adapter, &resp);
	if (err == -EINPROGRESS)
		return;
	pvr_job_set(adapter, NULL);
	/* Bus mastering may have ended: then the slot must not be written. */
	if (pvr_adapter_dma_ok(adapter))
		complete(adapter, &adapter->job.req, &resp, -err);
	else
		refuse(adapter, EIO);
}

static void run(struct pvr_adapter *adapter, const union pvr_cmd_req *req)
{
	const struct cmd_ops *ops = cmd_lookup(adapter, req->hdr.cmd);
	union pvr_cmd_resp resp;
	int err;

	if (!ops) {
		pvr_log_guest(
			adapter,
			"command %u refused: expected 0 to %u, or one of an extension in effect",
			req->hdr.cmd, PVR_CMD_STOCK_NUM - 1);
		refuse(adapter, ENOSYS);
		return;
	}
	clear_response(&resp);
	adapter->job.work = 0;
	err = ops->run(adapter, req, &resp);
	if (err == -EINPROGRESS) {
		pvr_job_set(adapter, step);
		pvr_worker_queue(adapter);
	} else {
		complete(adapter, req, &resp, -err);
	}
}

void pvr_cmd_run(struct pvr_adapter *adapter)
{
	union pvr_cmd_req req;

	adapter->stats.commands++;
	if (!pvr_adapter_dma_ok(adapter)) {
		pvr_log_guest(adapter, "command refused: the device is %s%s%s",
			      pvr_adapter_state_name(adapter->state),
			      adapter->bus_master ? "" : " and bus mastering is off",
			      adapter->run_state == PVR_RUN_RUNNING ? "" : " and stopped");
		refuse(adapter, EIO);
		return;
	}
	/* Doorbells before the command must take effect before it. */
	pvr_uar_poll_all(adapter);
	pvr_copy_once(&req, adapter->cmd_shm, sizeof(req));
	run(adapter, &req);
}

int pvr_cmd_begin(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		  int (*execute)(struct pvr_adapter *adapter, union pvr_cmd_resp *resp),
		  void (*cancel)(struct pvr_adapter *adapter), union pvr_cmd_resp *resp)
{
	struct pvr_job *job = &adapter->job;

	job->req = *req;
	job->run = execute;
	job->cancel = cancel;
	return execute(adapter, resp);
}

void pvr_cmd_cancel_move(struct pvr_adapter *adapter)
{
	pvr_pages_unmap(adapter, &adapter->job.move.pages);
}

void pvr_cmd_finish(struct pvr_adapter *adapter)
{
	while (adapter->job.step)
		pvr_job_step(adapter);
}

void pvr_cmd_cancel(struct pvr_adapter *adapter)
{
	if (!adapter->job.step)
		return;
	if (adapter->job.cancel)
		adapter->job.cancel(adapter);
	pvr_job_set(adapter, NULL);
}
