/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester's own memory that a send request names, or the data that it brings. */
#ifndef PVR_GATHER_H
#define PVR_GATHER_H

#include "core/sg.h"
#include "core/wq.h"

static inline bool pvr_inline_ok(const struct pvr_wq *sq, const struct pvr_send_wqe *wqe,
				 uint32_t access)
{
	/* What comes back, of RDMA READ and atomics, needs a place to go to. */
	return !access && !wqe->hdr.num_sge && wqe->hdr.total_len <= sq->max_inline;
}

/**
 * pvr_gather() - find what a send request sends, or where it wants an answer
 * @wqe: must live as long as @sg
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 to read
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which the request fails.
 */
static inline enum pvrdma_wc_status pvr_gather(struct pvr_sg *sg, const struct pvr_qp *qp,
					       struct pvr_send_wqe *wqe, uint32_t access)
{
	if (pvr_wqe_is_inline(&qp->sq, wqe)) {
		if (!pvr_inline_ok(&qp->sq, wqe, access))
			return PVRDMA_WC_LOC_QP_OP_ERR;
		pvr_sg_build_flat(sg, qp->adapter, wqe->data, wqe->hdr.total_len);
		return PVRDMA_WC_SUCCESS;
	}
	if (wqe->hdr.num_sge > qp->sq.max_sge)
		return PVRDMA_WC_LOC_QP_OP_ERR;
	if (pvr_sg_build(sg, qp, qp->pd, wqe->sge, wqe->hdr.num_sge, access))
		return PVRDMA_WC_LOC_PROT_ERR;
	return PVRDMA_WC_SUCCESS;
}

#endif /* PVR_GATHER_H */
