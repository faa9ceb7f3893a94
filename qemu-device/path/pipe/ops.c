// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The path ops of the pipe path. */
#include "path/pipe/ops.h"

#include "gid/resolve.h"
#include "path/pipe/internal.h"
#include "path/pipe/sq.h"
#include "gid/fabric.h"

static void adapter_init(struct pvr_adapter *adapter)
{
	TAILQ_INIT(&adapter->hosts.starved);
	TAILQ_INIT(&adapter->hosts.blocked);
	TAILQ_INIT(&adapter->hosts.in_flight);
}

/*
 * Set the flag before the search: a GID that is resolved after the search then resumes
 * the queue pair.
 */
static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = qp->adapter;
	enum pvr_gid_state state;

	__atomic_store_n(&adapter->hosts.any, true, __ATOMIC_SEQ_CST);
	state = pvr_gid_resolve(adapter, qp->attr.ah_attr.dgid, NULL, &qp->path_host);
	if (qp->path_host)
		return PVR_RESOLVE_YES;
	/* A peer without a pvrdmad is perhaps on the wire. */
	if (adapter->port && state == PVR_GID_ABSENT)
		return PVR_RESOLVE_NO;
	return adapter->engine->fabrics->gid_ops ? PVR_RESOLVE_PENDING : PVR_RESOLVE_NO;
}

static const char *peer_name(const struct pvr_qp *qp)
{
	return qp->path_host ? pvr_host_name(qp->path_host) : "";
}

static const char *gid_name(struct pvr_adapter *from, const uint8_t gid[16])
{
	const struct pvr_host *host = pvr_gid_find_host(from, gid);

	return host ? pvr_host_name(host) : NULL;
}

/* UC has no requests in flight. */
static void set_serial(struct pvr_qp *qp, bool on)
{
	if (qp->pipe_sq)
		qp->pipe_sq->window = on ? 1 : qp->pipe_sq->size;
}

const struct pvr_path_ops pvr_pipe_path_ops = {
	.name = "pipe",
	.adapter_init = adapter_init,
	.resolve = resolve,
	.detach = pvr_host_detach,
	.run_sq = pvr_pipe_run_sq,
	.peer_name = peer_name,
	.gid_name = gid_name,
	.set_serial = set_serial,
	.save = pvr_pipe_sq_save,
	.load = pvr_pipe_sq_load,
	.resume = pvr_pipe_resume,
	.timeout = pvr_pipe_timeout,
	.stop = pvr_pipe_sq_stop,
	.close = pvr_pipe_sq_free,
	.gone = pvr_pipe_send_qp_gone,
	.ud_send = pvr_pipe_ud_send,
	.mcast_targets = pvr_pipe_ud_find_group,
	.mcast_send = pvr_pipe_ud_send_group,
	.ud_fail = pvr_pipe_ud_fail,
};
