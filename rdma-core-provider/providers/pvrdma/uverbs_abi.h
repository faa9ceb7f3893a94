/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Driver data in uverbs commands. */
#ifndef PVR_UVERBS_ABI_H
#define PVR_UVERBS_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/vmw_pvrdma-abi.h>
#include <kernel-abi/vmw_pvrdma-abi.h>

#include "pvrdma_abi.h"

DECLARE_DRV_CMD(pvr_uverbs_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD, empty, pvrdma_alloc_pd_resp);
DECLARE_DRV_CMD(pvr_uverbs_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, pvrdma_create_cq,
		pvrdma_create_cq_resp);
DECLARE_DRV_CMD(pvr_uverbs_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, pvrdma_resize_cq, empty);
DECLARE_DRV_CMD(pvr_uverbs_create_qp, IB_USER_VERBS_CMD_CREATE_QP, pvrdma_create_qp,
		pvrdma_create_qp_resp);
DECLARE_DRV_CMD(pvr_uverbs_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, pvrdma_create_srq,
		pvrdma_create_srq_resp);
DECLARE_DRV_CMD(pvr_uverbs_create_xsrq, IB_USER_VERBS_CMD_CREATE_XSRQ, pvrdma_create_srq,
		pvrdma_create_srq_resp);
/* With IBV_SRQ_MAX_WR and PVR_EXT_RESIZE: the new buffer. */
DECLARE_DRV_CMD(pvr_uverbs_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ, pvrdma_create_srq, empty);
DECLARE_DRV_CMD(pvr_uverbs_stock_get_context, IB_USER_VERBS_CMD_GET_CONTEXT, empty,
		pvrdma_alloc_ucontext_resp);

/*
 * GET_CONTEXT with a request for features. A stock driver ignores the request and leaves
 * "reserved" of the response 0. Our driver returns the features in effect there.
 */
struct pvr_uverbs_get_context {
	struct ibv_get_context ibv_cmd;
	struct pvr_alloc_ucontext drv_payload;
};
static_assert(sizeof(struct pvr_uverbs_get_context) ==
		      sizeof(struct ibv_get_context) + sizeof(struct pvr_alloc_ucontext),
	      "GET_CONTEXT has no padding");

#endif /* PVR_UVERBS_ABI_H */
