// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description of queue pairs for pvrdmactl. */
#include <string.h>

#include "core/objects.h"
#include "rdma/qp.h"
#include "rdma/worker.h"

/* Table slots per call: bounds the time for which the adapter is locked. */
#define SLOTS_PER_CALL 1024

static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		[PVR_QPT_GSI] = "GSI",
		[PVR_QPT_RC] = "RC",
		[PVR_QPT_UC] = "UC",
		[PVR_QPT_UD] = "UD",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

static const char *wait_name(enum pvr_qp_wait wait)
{
	switch (wait) {
	case PVR_QP_RUNNING:
		return "";
	case PVR_QP_WAIT_RNR:
	case PVR_QP_WAIT_RNR_POLL:
		return "receive request";
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
	info->type = type_name(qp->type);
	info->state = pvr_qp_state_name(qp->state);
	info->waits = wait_name(qp->wait);
	if (pvr_qp_is_connected(qp)) {
		info->dest_qpn = qp->attr.dest_qp_num;
		memcpy(info->dgid, qp->attr.ah_attr.dgid, sizeof(info->dgid));
		info->traffic_class = qp->attr.ah_attr.traffic_class;
	}
	memcpy(info->stat, qp->stat, sizeof(info->stat));
}

/* Slot 0 stands for the GSI QP, slot n for table index n - 1. */
static struct pvr_qp *at(struct pvr_adapter *adapter, uint32_t slot)
{
	return slot ? pvr_table_get(&adapter->qps, slot - 1) : adapter->gsi;
}

bool pvr_adapter_get_qps(struct pvr_adapter *adapter, uint32_t *cursor, struct pvr_qp_info *infos,
			 size_t max, size_t *num)
{
	uint32_t slots, looked = 0;
	struct pvr_qp *qp;

	*num = 0;
	pvr_adapter_lock(adapter);
	slots = adapter->qps.size + 1;
	while (*cursor < slots && *num < max && looked++ < SLOTS_PER_CALL) {
		qp = at(adapter, (*cursor)++);
		if (qp)
			describe(qp, &infos[(*num)++]);
	}
	pvr_adapter_unlock(adapter);
	return *cursor < slots;
}
