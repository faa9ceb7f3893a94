/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a request of a connected queue pair has to fulfil before anything of it is sent. */
#ifndef PVR_PREPARE_H
#define PVR_PREPARE_H

#include "rdma/gather.h"
#include "rdma/opcode.h"

/* Of those that not everybody may post. */
static inline bool pvr_has_right(const struct pvr_qp *qp, const struct pvr_opcode *op)
{
	if (op->ext & ~qp->adapter->features)
		return false;
	return qp->pd->uc == &qp->adapter->kernel_uc ||
	       (op->right == PVR_OP_USER_OPS && qp->user_ops);
}

static inline bool pvr_may_post(const struct pvr_qp *qp, const struct pvr_opcode *op)
{
	if (op->types >> qp->type & 1)
		return true;
	return (op->limited >> qp->type & 1) && pvr_has_right(qp, op);
}

/* @done: bytes of it that have been sent. */
static inline bool pvr_length_ok(const struct pvr_opcode *op, uint64_t length, uint64_t done)
{
	if (op->kind == PVR_OP_ATOMIC)
		return length == sizeof(uint64_t) && !done;
	return length <= PVR_MAX_MSG_SIZE && done <= length;
}

/**
 * pvr_prepare() - find the memory of a request that goes to a peer
 * @op: that of @wqe, which may be posted
 * @done: bytes that have been sent
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which it fails.
 */
static pvr_always_inline enum pvrdma_wc_status
pvr_prepare(struct pvr_sg *sg, const struct pvr_qp *qp, struct pvr_send_wqe *wqe,
	    const struct pvr_opcode *op, uint64_t done)
{
	enum pvrdma_wc_status status;

	if (op->local && !qp->attr.max_rd_atomic)
		return PVRDMA_WC_LOC_QP_OP_ERR;
	status = pvr_gather(sg, qp, wqe, op->local);
	if (status != PVRDMA_WC_SUCCESS)
		return status;
	return pvr_length_ok(op, sg->total, done) ? PVRDMA_WC_SUCCESS : PVRDMA_WC_LOC_LEN_ERR;
}

/* Why pvr_prepare() has said so. */
static inline const char *pvr_prepare_why(const struct pvr_qp *qp, const struct pvr_opcode *op,
					  enum pvrdma_wc_status status)
{
	if (op->local && !qp->attr.max_rd_atomic)
		return "RDMA READ or atomic with max_rd_atomic 0";
	if (status == PVRDMA_WC_LOC_LEN_ERR)
		return "message too long, or an atomic that is not 8 bytes";
	return "send of forbidden memory, or of too many pieces";
}

#endif /* PVR_PREPARE_H */
