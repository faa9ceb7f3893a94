// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs, for display. */
#include <stdio.h>
#include <string.h>

#include "core/objects.h"
#include "core/wq.h"
#include "rdma/path.h"
#include "rdma/qp.h"
#include "rdma/worker.h"

/* Table slots per call: bounds the time for which the adapter is locked. */
#define SLOTS_PER_CALL 1024

static const char *type_name(const struct pvr_qp *qp)
{
	static const char *const names[] = {
		[PVR_QPT_GSI] = "GSI",
		[PVR_QPT_RC] = "RC",
		[PVR_QPT_UC] = "UC",
		[PVR_QPT_UD] = "UD",
	};

	if (qp->xrc_role)
		return qp->xrc_role == PVR_XRC_INI ? "XRC_INI" : "XRC_TGT";
	return names[qp->type];
}

static const char *wait_name(enum pvr_qp_wait wait)
{
	switch (wait) {
	case PVR_QP_RUNNING:
		return "";
	case PVR_QP_WAIT_RNR:
	case PVR_QP_WAIT_RNR_POLL:
		return "receive request";
	case PVR_QP_WAIT_PAGE:
		return "page";
	case PVR_QP_WAIT_CONN:
		return "connection";
	default:
		return "answer";
	}
}

static void describe(const struct pvr_qp *qp, struct pvr_qp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->qpn = qp->qpn;
	info->type = type_name(qp);
	info->state = pvr_qp_state_name(qp->state);
	info->waits = wait_name(qp->wait);
	if (pvr_qp_is_connected(qp)) {
		info->dest_qpn = qp->attr.dest_qp_num;
		memcpy(info->dgid, qp->attr.ah_attr.dgid, sizeof(info->dgid));
		info->traffic_class = qp->attr.ah_attr.traffic_class;
	}
	memcpy(info->stat, qp->stat, sizeof(info->stat));
}

bool pvr_adapter_get_qps(struct pvr_adapter *adapter, uint32_t *cursor, struct pvr_qp_info *infos,
			 size_t max, size_t *num)
{
	uint32_t slots, looked = 0;
	struct pvr_qp *qp;

	*num = 0;
	pvr_adapter_lock(adapter);
	slots = adapter->qps.size;
	while (*cursor < slots && *num < max && looked++ < SLOTS_PER_CALL) {
		qp = pvr_table_get(&adapter->qps, (*cursor)++);
		if (qp)
			describe(qp, &infos[(*num)++]);
	}
	pvr_adapter_unlock(adapter);
	return *cursor < slots;
}

static uint32_t posted(const struct pvr_wq *wq)
{
	int avail = pvr_wq_avail(wq);

	return avail > 0 ? (uint32_t)avail : 0;
}

static void describe_path(const struct pvr_qp *qp, struct pvr_qp_detail *detail)
{
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, qp->attr.ah_attr.sgid_index);
	uint8_t id = qp->path_id == PVR_PATH_FAULT ? qp->path_behind : qp->path_id;
	const struct pvr_path_ops *path = qp->adapter->engine->paths[id];

	if (!qp->attr.path_mtu)
		return;
	detail->path_mtu = 128u << qp->attr.path_mtu;
	if (sgid)
		memcpy(detail->sgid, sgid->gid, sizeof(detail->sgid));
	detail->path = path->name;
	if (path->peer_name)
		snprintf(detail->peer, sizeof(detail->peer), "%s", path->peer_name(qp));
	if (path->describe)
		path->describe(qp, detail);
}

static void find_error(const struct pvr_qp *qp, struct pvr_qp_detail *detail)
{
	const struct pvr_adapter *adapter = qp->adapter;
	uint64_t now = pvr_now(adapter->engine);
	const struct pvr_qp_error *error;
	uint32_t i;

	for (i = 0; i < PVR_QP_ERRORS; i++) {
		error = &adapter->qp_errors[i];
		if (!error->why || error->qpn != qp->qpn ||
		    (detail->error && now - error->time >= detail->error_age))
			continue;
		detail->error = error->why;
		detail->error_age = now - error->time;
	}
}

static void describe_all(const struct pvr_qp *qp, struct pvr_qp_detail *detail)
{
	memset(detail, 0, sizeof(*detail));
	describe(qp, &detail->info);
	detail->sq_psn = qp->sq_psn;
	detail->rq_psn = qp->rq_psn;
	detail->max_sends = qp->sq.count;
	detail->max_recvs = qp->rq.count;
	/* Without DMA the rings may be of another process of the guest. */
	if (pvr_adapter_dma_ok(qp->adapter)) {
		detail->sends = posted(&qp->sq);
		detail->recvs = posted(&qp->rq);
	}
	detail->in_flight = qp->sq_inflight;
	detail->sent_bytes = qp->sq_offset;
	detail->received_bytes = qp->rq_offset;
	detail->timeout = qp->attr.timeout;
	detail->retry_cnt = qp->attr.retry_cnt;
	detail->retry_left = qp->retry_left;
	detail->rnr_retry = qp->attr.rnr_retry;
	detail->rnr_left = qp->rnr_left;
	detail->path = "";
	if (pvr_qp_is_connected(qp))
		describe_path(qp, detail);
	find_error(qp, detail);
}

bool pvr_adapter_get_qp(struct pvr_adapter *adapter, uint32_t qpn, struct pvr_qp_detail *detail)
{
	struct pvr_qp *qp;

	pvr_adapter_lock(adapter);
	qp = pvr_qp_find(adapter, qpn);
	if (qp)
		describe_all(qp, detail);
	pvr_adapter_unlock(adapter);
	return qp;
}
