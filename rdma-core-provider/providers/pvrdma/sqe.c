/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What can be posted on which QPs. */
#include <ccan/array_size.h>

#include "sqe.h"

/* The flags that the device gets; both sides have the same bits. */
#define SEND_FLAGS_PASSED (PVR_SEND_FENCE | PVR_SEND_SIGNALED | PVR_SEND_SOLICITED)
#define SEND_FLAGS_KNOWN (SEND_FLAGS_PASSED | IBV_SEND_INLINE)

static_assert(PVR_SEND_FENCE == IBV_SEND_FENCE && PVR_SEND_SIGNALED == IBV_SEND_SIGNALED &&
		      PVR_SEND_SOLICITED == IBV_SEND_SOLICITED,
	      "send flags are passed as they are");

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define RDMA PVR_SQE_RDMA
#define ATOMIC PVR_SQE_ATOMIC
#define IMM PVR_SQE_IMM
#define INV PVR_SQE_INV
#define SGES PVR_SQE_SGES
#define DATA (PVR_SQE_SGES | PVR_SQE_INLINE)

static const struct pvr_send_op send_ops[] = {
	[IBV_WR_RDMA_WRITE] = { PVRDMA_WR_RDMA_WRITE, RC | UC, RDMA | DATA },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { PVRDMA_WR_RDMA_WRITE_WITH_IMM, RC | UC,
					 RDMA | IMM | DATA },
	[IBV_WR_SEND] = { PVRDMA_WR_SEND, RC | UC | UD, DATA },
	[IBV_WR_SEND_WITH_IMM] = { PVRDMA_WR_SEND_WITH_IMM, RC | UC | UD, IMM | DATA },
	[IBV_WR_RDMA_READ] = { PVRDMA_WR_RDMA_READ, RC, RDMA | SGES },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { PVRDMA_WR_ATOMIC_CMP_AND_SWP, RC, ATOMIC | SGES },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { PVRDMA_WR_ATOMIC_FETCH_AND_ADD, RC, ATOMIC | SGES },
	/* The last that verbs name; those that are left out the device has not. */
	[IBV_WR_ATOMIC_WRITE] = {},
};

int pvr_send_op(const struct pvr_context *ctx, enum ibv_qp_type type, enum ibv_wr_opcode opcode,
		const struct pvr_send_op **op)
{
	if (unlikely(opcode >= ARRAY_SIZE(send_ops)))
		return EINVAL;
	*op = &send_ops[opcode];
	if (unlikely(!(*op)->qp_types || (*op)->features & ~ctx->features))
		return EOPNOTSUPP;
	return likely((*op)->qp_types & (1u << type)) ? 0 : EINVAL;
}

int pvr_sqe_begin(struct pvr_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, unsigned int flags,
		  struct pvrdma_sq_wqe_hdr **hdr, const struct pvr_send_op **op)
{
	const struct ibv_qp *ibqp = &qp->verbs_qp.qp;
	int err;

	if (unlikely(ibqp->state < IBV_QPS_RTS))
		return EINVAL;
	err = pvr_send_op(to_pvr_context(ibqp->context), ibqp->qp_type, opcode, op);
	if (unlikely(err))
		return err;
	if (unlikely(flags & ~SEND_FLAGS_KNOWN))
		return EINVAL;
	if (unlikely((flags & IBV_SEND_INLINE) && !((*op)->carries & PVR_SQE_INLINE)))
		return EINVAL;
	if (unlikely(pvr_wq_full(&qp->sq)))
		return ENOMEM;
	*hdr = pvr_wq_element(&qp->sq);
	**hdr = (struct pvrdma_sq_wqe_hdr){
		.wr_id = wr_id,
		.opcode = (*op)->opcode,
		.send_flags = flags & SEND_FLAGS_PASSED,
	};
	return 0;
}
