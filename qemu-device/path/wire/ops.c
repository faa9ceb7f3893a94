// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The path ops of the wire path. */
#include "path/wire/ops.h"

#include <stdlib.h>

#include "path/wire/internal.h"
#include "rdma/responder_state.h"

/* The largest path MTU whose packets the interface carries. */
static uint8_t active_mtu(uint32_t mtu)
{
	uint8_t path_mtu = PVR_MAX_MTU;

	while (path_mtu > PVR_MTU_256 && (128u << path_mtu) + PVR_PORT_OVERHEAD > mtu)
		path_mtu--;
	return path_mtu;
}

static void timer_exit(struct pvr_adapter *adapter, struct pvr_timer *timer)
{
	pvr_timer_cancel(&adapter->timers, timer);
	pvr_timer_exit(&adapter->timers, timer);
}

/* Return: 0 or -ENOMEM. */
static int timers_init(struct pvr_adapter *adapter, struct pvr_eth_adapter *wire)
{
	if (pvr_timer_init(&adapter->timers, &wire->timer, pvr_eth_answer_timer))
		return -ENOMEM;
	if (pvr_timer_init(&adapter->timers, &wire->pause, pvr_eth_pause_timer)) {
		timer_exit(adapter, &wire->timer);
		return -ENOMEM;
	}
	if (pvr_timer_init(&adapter->timers, &wire->hold, pvr_eth_hold_timer)) {
		timer_exit(adapter, &wire->timer);
		timer_exit(adapter, &wire->pause);
		return -ENOMEM;
	}
	return 0;
}

/* Without memory the adapter does without its port: its peers there stay unreachable. */
static void adapter_init(struct pvr_adapter *adapter)
{
	struct pvr_eth_adapter *wire;

	if (!adapter->port)
		return;
	wire = calloc(1, sizeof(*wire));
	if (!wire || timers_init(adapter, wire)) {
		free(wire);
		pvr_log(adapter->engine, adapter, PVR_LOG_ERR,
			"out of memory: it does not use port %s", adapter->port->name);
		return;
	}
	wire->adapter = adapter;
	wire->port = adapter->port;
	wire->ecn = adapter->port_ecn;
	TAILQ_INIT(&wire->answering);
	TAILQ_INIT(&wire->pausing);
	LIST_INSERT_HEAD(&adapter->port->adapters, wire, link);
	adapter->wire = wire;
	adapter->active_mtu = active_mtu(wire->port->mtu);
}

static void adapter_exit(struct pvr_adapter *adapter)
{
	struct pvr_eth_adapter *wire = adapter->wire;

	if (!wire)
		return;
	LIST_REMOVE(wire, link);
	timer_exit(adapter, &wire->timer);
	timer_exit(adapter, &wire->pause);
	timer_exit(adapter, &wire->hold);
	adapter->wire = NULL;
	free(wire);
}

bool pvr_eth_was_elsewhere(const struct pvr_qp *qp)
{
	if (qp->peer_incarnation || qp->pipe_sq ||
	    (qp->responder_state && qp->responder_state->from))
		return true;
	/* The path of this process has no state but these. */
	return (!pvr_eth_sq(qp) && (qp->sq_psn != qp->attr.sq_psn || qp->sq_offset)) ||
	       (!pvr_eth_rq(qp) && (qp->rq_psn != qp->attr.rq_psn || qp->rq_offset));
}

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	struct pvr_adapter *adapter = qp->adapter;

	if (!adapter->wire || adapter->gid_type != PVR_GID_TYPE_ROCE_V2 || qp->xrc_role ||
	    !pvr_eth_is_mac_ok(ah->dmac) ||
	    pvr_eth_mtu(qp) + PVR_PORT_OVERHEAD > adapter->wire->port->mtu ||
	    pvr_eth_was_elsewhere(qp))
		return PVR_RESOLVE_NO;
	return pvr_eth_find(adapter, ah->dgid) == PVR_GID_ABSENT ? PVR_RESOLVE_YES : PVR_RESOLVE_NO;
}

/* Until RESET: a peer on the wire has its PSNs. */
static bool detach(struct pvr_qp *qp)
{
	return !pvr_eth_sq(qp) && !pvr_eth_rq(qp);
}

const struct pvr_path_ops pvr_eth_path_ops = {
	.name = "wire",
	.adapter_init = adapter_init,
	.adapter_exit = adapter_exit,
	.resolve = resolve,
	.detach = detach,
	.run_sq = pvr_eth_run_sq,
	.describe = pvr_eth_describe,
	.timeout = pvr_eth_timeout,
	.stop = pvr_eth_stop,
	.close = pvr_eth_close,
	.end_answers = pvr_eth_end_answers,
	.forget = pvr_eth_rq_free,
	.ud_send = pvr_eth_ud_send,
	.mcast_send = pvr_eth_mcast_send,
};
