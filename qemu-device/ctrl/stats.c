// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters for the guest (QUERY_STATS, SUM_STATS) and for the host. */
#include <errno.h>
#include <string.h>

#include "core/charge.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "ctrl/revision.h"
#include "rdma/worker.h"
#include "rdma/qp.h"

int pvr_cmd_query_stats(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	uint32_t handle = req->query_stats.qp_handle;
	const uint64_t *stat = adapter->stat;
	const struct pvr_qp *qp;

	if (handle) {
		qp = pvr_qp_get(adapter, handle);
		if (!qp)
			return -EINVAL;
		stat = qp->stat;
	}
	memcpy(resp->query_stats.stat, stat, sizeof(resp->query_stats.stat));
	return 0;
}

int pvr_cmd_sum_stats(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_sum_stats *cmd = &req->sum_stats;
	const struct pvr_qp *qp;
	uint32_t i, stat;

	if (!cmd->count || cmd->count > PVR_SUM_STATS_MAX)
		return -EINVAL;
	for (i = 0; i < cmd->count; i++) {
		qp = pvr_qp_get(adapter, cmd->qp_handle[i]);
		if (!qp)
			return -EINVAL;
		for (stat = 0; stat < PVR_STAT_NUM; stat++)
			resp->query_stats.stat[stat] += qp->stat[stat];
	}
	return 0;
}

static void count_objects(const struct pvr_adapter *adapter, struct pvr_adapter_stats *stats)
{
	uint32_t i;

	stats->contexts = adapter->ucs.used;
	stats->pds = adapter->pds.used;
	stats->mrs = adapter->mrs.used - adapter->mws;
	stats->mws = adapter->mws;
	stats->cqs = adapter->cqs.used;
	stats->qps = adapter->qps.used + (adapter->gsi != NULL);
	stats->srqs = adapter->srqs.used;
	stats->gids = 0;
	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		stats->gids += adapter->gids[i].bound;
}

static void get_stats(const struct pvr_adapter *adapter, struct pvr_adapter_stats *stats)
{
	const uint64_t *stat = adapter->stat;

	*stats = adapter->stats;
	stats->state = adapter->state;
	stats->run_state = adapter->run_state;
	if (pvr_adapter_is_stopped(adapter))
		stats->stopped_ns = pvr_now(adapter->engine) - adapter->stopped_at;
	stats->link_up = adapter->link_up;
	stats->driver_version = adapter->driver_version;
	stats->features = adapter->features;
	count_objects(adapter, stats);
	stats->memory = adapter->charged;
	stats->memory_budget = pvr_charge_limit(adapter);
	stats->doorbells = stat[PVR_STAT_DOORBELLS];
	stats->doorbells_ignored = stat[PVR_STAT_DOORBELLS_IGNORED];
	stats->tx_messages = stat[PVR_STAT_TX_MSGS];
	stats->tx_bytes = stat[PVR_STAT_TX_BYTES];
	stats->rx_messages = stat[PVR_STAT_RX_MSGS];
	stats->rx_bytes = stat[PVR_STAT_RX_BYTES];
	stats->local_bytes = stat[PVR_STAT_LOCAL_BYTES];
	stats->verbs_bytes = stat[PVR_STAT_RDMA_BYTES];
	stats->tcp_bytes = stat[PVR_STAT_TCP_BYTES];
	stats->tx_reads = stat[PVR_STAT_TX_READS];
	stats->tx_atomics = stat[PVR_STAT_TX_ATOMICS];
	stats->tx_multicast = stat[PVR_STAT_TX_MCAST];
	stats->rx_multicast = stat[PVR_STAT_RX_MCAST];
	stats->rnr_naks = stat[PVR_STAT_RNR_NAKS];
	stats->ack_timeouts = stat[PVR_STAT_ACK_TIMEOUTS];
	stats->retries_exceeded = stat[PVR_STAT_RETRIES_EXCEEDED];
	stats->access_errors = stat[PVR_STAT_ACCESS_ERRORS];
	stats->request_errors = stat[PVR_STAT_REQUEST_ERRORS];
	stats->ud_dropped = stat[PVR_STAT_UD_DROPPED];
	stats->cq_overflows = stat[PVR_STAT_CQ_OVERFLOWS];
}

void pvr_adapter_get_stats(struct pvr_adapter *adapter, struct pvr_adapter_stats *stats)
{
	pvr_adapter_lock(adapter);
	get_stats(adapter, stats);
	pvr_adapter_unlock(adapter);
}

void pvr_adapter_get_limits(const struct pvr_adapter *adapter, struct pvr_adapter_limits *limits)
{
	/* The first numbers of some tables are not used, see tables_init() of adapter.c. */
	*limits = (struct pvr_adapter_limits){
		.contexts = PVR_MAX_UAR - 1,
		.pds = PVR_MAX_PD - 1,
		.cqs = PVR_MAX_CQ,
		.qps = PVR_MAX_QP - 2 + 1, /* and the GSI QP */
		.srqs = adapter->revision->srq ? PVR_MAX_SRQ : 0,
		.gids = PVR_GID_TABLE_LEN,
		.mrs = PVR_MAX_MR - 1,
	};
}
