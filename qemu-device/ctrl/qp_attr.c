// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Required and optional attributes of MODIFY_QP, by transition and type of the queue
 * pair.
 *
 * IBTA 10.3.1 and the table of 11.2.5.2 (Modify Queue Pair). Each state may change to
 * RESET and ERR. A transition without a table entry is refused.
 */
#include <errno.h>
#include <stddef.h>

#include "core/objects.h"
#include "ctrl/ctrl.h"

enum qp_class {
	CLASS_RC,
	CLASS_UC,
	CLASS_UD,
	CLASS_GSI,
	CLASS_XRC_INI,
	CLASS_XRC_TGT,
	CLASS_NUM,
};

struct edge {
	bool ok;
	uint32_t need[CLASS_NUM], may[CLASS_NUM];
};

#define RC_PATH                                                              \
	(PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN | \
	 PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_MIN_RNR_TIMER)
#define UC_PATH (PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN)
#define RC_SEND                                                                     \
	(PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY | PVR_QPA_SQ_PSN | \
	 PVR_QPA_MAX_RD_ATOMIC)
#define TGT_SEND (PVR_QPA_TIMEOUT | PVR_QPA_SQ_PSN)
#define RC_RUNNING                                                                             \
	(PVR_QPA_CUR_STATE | PVR_QPA_ACCESS_FLAGS | PVR_QPA_MIN_RNR_TIMER | PVR_QPA_ALT_PATH | \
	 PVR_QPA_PATH_MIG_STATE)
#define RC_DRAINED                                                                              \
	(PVR_QPA_PORT | PVR_QPA_AV | PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY |  \
	 PVR_QPA_MAX_RD_ATOMIC | PVR_QPA_ALT_PATH | PVR_QPA_ACCESS_FLAGS | PVR_QPA_PKEY_INDEX | \
	 PVR_QPA_MIN_RNR_TIMER | PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_PATH_MIG_STATE)
#define INI_DRAINED                                                                             \
	(PVR_QPA_PORT | PVR_QPA_AV | PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY |  \
	 PVR_QPA_MAX_RD_ATOMIC | PVR_QPA_ALT_PATH | PVR_QPA_ACCESS_FLAGS | PVR_QPA_PKEY_INDEX | \
	 PVR_QPA_PATH_MIG_STATE)
#define TGT_DRAINED                                                                              \
	(PVR_QPA_PORT | PVR_QPA_AV | PVR_QPA_TIMEOUT | PVR_QPA_ALT_PATH | PVR_QPA_ACCESS_FLAGS | \
	 PVR_QPA_PKEY_INDEX | PVR_QPA_MIN_RNR_TIMER | PVR_QPA_MAX_DEST_RD_ATOMIC |               \
	 PVR_QPA_PATH_MIG_STATE)
#define UC_RUNNING \
	(PVR_QPA_CUR_STATE | PVR_QPA_ACCESS_FLAGS | PVR_QPA_ALT_PATH | PVR_QPA_PATH_MIG_STATE)
#define UC_DRAINED                                                                   \
	(PVR_QPA_AV | PVR_QPA_ALT_PATH | PVR_QPA_ACCESS_FLAGS | PVR_QPA_PKEY_INDEX | \
	 PVR_QPA_PATH_MIG_STATE)
#define CONN_INIT (PVR_QPA_PKEY_INDEX | PVR_QPA_PORT | PVR_QPA_ACCESS_FLAGS)
#define CONN_CHANGE (PVR_QPA_ALT_PATH | PVR_QPA_ACCESS_FLAGS | PVR_QPA_PKEY_INDEX)
#define UD_INIT (PVR_QPA_PKEY_INDEX | PVR_QPA_PORT | PVR_QPA_QKEY)
#define GSI_INIT (PVR_QPA_PKEY_INDEX | PVR_QPA_QKEY)
#define UD_RUNNING (PVR_QPA_CUR_STATE | PVR_QPA_QKEY)
#define UD_CHANGE (PVR_QPA_PKEY_INDEX | PVR_QPA_QKEY)

static const struct edge edges[PVR_QPS_NUM][PVR_QPS_NUM] = {
	[PVR_QPS_RESET][PVR_QPS_INIT] = {
		.ok = true,
		.need = { CONN_INIT, CONN_INIT, UD_INIT, GSI_INIT, CONN_INIT, CONN_INIT },
		.may = { 0, 0, 0, PVR_QPA_PORT, 0, 0 },
	},
	[PVR_QPS_INIT][PVR_QPS_INIT] = {
		.ok = true,
		.may = { CONN_INIT, CONN_INIT, UD_INIT, GSI_INIT | PVR_QPA_PORT, CONN_INIT,
			 CONN_INIT },
	},
	[PVR_QPS_INIT][PVR_QPS_RTR] = {
		.ok = true,
		.need = { RC_PATH, UC_PATH, 0, 0, UC_PATH, RC_PATH },
		.may = { CONN_CHANGE, CONN_CHANGE, UD_CHANGE, UD_CHANGE, CONN_CHANGE,
			 CONN_CHANGE },
	},
	[PVR_QPS_RTR][PVR_QPS_RTS] = {
		.ok = true,
		.need = { RC_SEND, PVR_QPA_SQ_PSN, PVR_QPA_SQ_PSN, PVR_QPA_SQ_PSN, RC_SEND,
			  TGT_SEND },
		.may = { RC_RUNNING, UC_RUNNING, UD_RUNNING, UD_RUNNING, UC_RUNNING, RC_RUNNING },
	},
	[PVR_QPS_RTS][PVR_QPS_RTS] = {
		.ok = true,
		.may = { RC_RUNNING, UC_RUNNING, UD_RUNNING, UD_RUNNING, UC_RUNNING, RC_RUNNING },
	},
	[PVR_QPS_RTS][PVR_QPS_SQD] = {
		.ok = true,
		.may = { PVR_QPA_EN_SQD_ASYNC, PVR_QPA_EN_SQD_ASYNC, PVR_QPA_EN_SQD_ASYNC,
			 PVR_QPA_EN_SQD_ASYNC, PVR_QPA_EN_SQD_ASYNC, PVR_QPA_EN_SQD_ASYNC },
	},
	[PVR_QPS_SQD][PVR_QPS_RTS] = {
		.ok = true,
		.may = { RC_RUNNING, UC_RUNNING, UD_RUNNING, UD_RUNNING, UC_RUNNING, RC_RUNNING },
	},
	[PVR_QPS_SQD][PVR_QPS_SQD] = {
		.ok = true,
		.may = { RC_DRAINED, UC_DRAINED, UD_CHANGE, UD_CHANGE, INI_DRAINED, TGT_DRAINED },
	},
	[PVR_QPS_SQE][PVR_QPS_RTS] = {
		.ok = true,
		.may = { 0, PVR_QPA_CUR_STATE | PVR_QPA_ACCESS_FLAGS, UD_RUNNING, UD_RUNNING, 0, 0 },
	},
};

static enum qp_class qp_class(const struct pvr_qp *qp)
{
	if (qp->xrc_role)
		return qp->xrc_role == PVR_XRC_INI ? CLASS_XRC_INI : CLASS_XRC_TGT;
	switch (qp->type) {
	case PVR_QPT_GSI:
		return CLASS_GSI;
	case PVR_QPT_UD:
		return CLASS_UD;
	case PVR_QPT_UC:
		return CLASS_UC;
	default:
		return CLASS_RC;
	}
}

static bool gid_ok(const struct pvr_qp *qp, const struct pvr_ah_attr *ah)
{
	return (ah->ah_flags & PVR_AH_GRH) && pvr_gid_get(qp->adapter, ah->sgid_index);
}

/* Return: the first error among the values of @mask, or NULL. */
static const char *bad_value(const struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr)
{
	if ((mask & PVR_QPA_PORT) && attr->port_num != 1)
		return "the port is not 1";
	if ((mask & PVR_QPA_PKEY_INDEX) && attr->pkey_index != 0)
		return "the P_Key index is not 0";
	if ((mask & PVR_QPA_PATH_MTU) &&
	    (attr->path_mtu < PVR_MTU_256 || attr->path_mtu > PVR_MAX_MTU))
		return "the path MTU is not 1..5";
	if ((mask & PVR_QPA_AV) && !gid_ok(qp, &attr->ah_attr))
		return "the address has no GRH or its source GID index is not bound";
	if ((mask & PVR_QPA_DEST_QPN) && attr->dest_qp_num > 0xffffff)
		return "the destination QP number has more than 24 bits";
	if ((mask & PVR_QPA_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
		return "the RNR timer is above 31";
	if ((mask & PVR_QPA_TIMEOUT) && attr->timeout > 31)
		return "the timeout is above 31";
	if ((mask & PVR_QPA_RETRY_CNT) && attr->retry_cnt > 7)
		return "the retry count is above 7";
	if ((mask & PVR_QPA_RNR_RETRY) && attr->rnr_retry > 7)
		return "the RNR retry count is above 7";
	if ((mask & PVR_QPA_MAX_RD_ATOMIC) && attr->max_rd_atomic > PVR_MAX_RD_ATOMIC)
		return "max_rd_atomic is above the device's";
	if ((mask & PVR_QPA_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > PVR_MAX_RD_ATOMIC)
		return "max_dest_rd_atomic is above the device's";
	if (mask & PVR_QPA_ALT_PATH)
		return "RoCE has no alternate paths";
	/* The state of each queue pair is MIGRATED, so to set it changes nothing. */
	if ((mask & PVR_QPA_PATH_MIG_STATE) && attr->path_mig_state != PVR_MIG_MIGRATED)
		return "RoCE has no alternate paths: the migration state is not MIGRATED";
	return NULL;
}

/* Those that no transition has set are zero. Its source GID may have gone since. */
const char *pvr_qp_bad_attr(const struct pvr_qp *qp)
{
	uint32_t mask = PVR_QPA_DEST_QPN | PVR_QPA_MIN_RNR_TIMER | PVR_QPA_TIMEOUT |
			PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY | PVR_QPA_MAX_RD_ATOMIC |
			PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_PKEY_INDEX;

	if (qp->attr.path_mtu > PVR_MAX_MTU || (pvr_qp_is_connected(qp) && pvr_qp_can_respond(qp)))
		mask |= PVR_QPA_PATH_MTU;
	return bad_value(qp, mask, &qp->attr);
}

static const char *bad_edge(const struct pvr_qp *qp, uint32_t mask, enum pvr_qp_state from,
			    enum pvr_qp_state to)
{
	const struct edge *edge = &edges[from][to];
	enum qp_class class = qp_class(qp);

	mask &= ~PVR_QPA_STATE;
	if (to == PVR_QPS_RESET || to == PVR_QPS_ERR)
		return mask & ~PVR_QPA_CUR_STATE ? "RESET and ERR take no attributes" : NULL;
	if (!edge->ok || (from == PVR_QPS_SQE && qp->type == PVR_QPT_RC))
		return "there is no such transition";
	/* IBTA 10.3.1.5: the request in progress still uses these attributes. */
	if (from == PVR_QPS_SQD && to == PVR_QPS_SQD && qp->sq_draining)
		return "the send queue has not drained yet";
	if ((mask & edge->need[class]) != edge->need[class])
		return "a required attribute is missing";
	if (mask & ~(edge->need[class] | edge->may[class] | PVR_QPA_CUR_STATE))
		return "an attribute may not be set in this transition";
	return NULL;
}

int pvr_qp_check_modify(const struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr,
			enum pvr_qp_state *next, const char **why)
{
	enum pvr_qp_state to = mask & PVR_QPA_STATE ? attr->qp_state : qp->state;

	*why = NULL;
	if (mask & ~PVR_QPA_ALL)
		*why = "an attribute bit is unknown";
	else if (to >= PVR_QPS_NUM)
		*why = "the state is unknown";
	else if ((mask & PVR_QPA_CUR_STATE) && attr->cur_qp_state != qp->state)
		*why = "the current state differs from cur_qp_state";
	if (!*why)
		*why = bad_edge(qp, mask, qp->state, to);
	if (!*why)
		*why = bad_value(qp, mask, attr);
	*next = to;
	return *why ? -EINVAL : 0;
}
