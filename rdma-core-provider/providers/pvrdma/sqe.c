// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The table of send operations. */
#include <ccan/array_size.h>

#include "sqe.h"

#define RC (1u << IBV_QPT_RC | 1u << IBV_QPT_XRC_SEND)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define RDMA PVR_SQE_RDMA
#define ATOMIC PVR_SQE_ATOMIC
#define IMM PVR_SQE_IMM
#define INV PVR_SQE_INV
#define BIND PVR_SQE_BIND
#define SGES PVR_SQE_SGES
#define FUNCTION PVR_SQE_FUNCTION
#define DATA (PVR_SQE_SGES | PVR_SQE_INLINE)

const struct pvr_send_op pvr_send_ops[PVR_NUM_SEND_OPS] = {
	[IBV_WR_RDMA_WRITE] = { PVRDMA_WR_RDMA_WRITE, RC | UC, RDMA | DATA },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { PVRDMA_WR_RDMA_WRITE_WITH_IMM, RC | UC,
					 RDMA | IMM | DATA },
	[IBV_WR_SEND] = { PVRDMA_WR_SEND, RC | UC | UD, DATA },
	[IBV_WR_SEND_WITH_IMM] = { PVRDMA_WR_SEND_WITH_IMM, RC | UC | UD, IMM | DATA },
	[IBV_WR_RDMA_READ] = { PVRDMA_WR_RDMA_READ, RC, RDMA | SGES },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { PVRDMA_WR_ATOMIC_CMP_AND_SWP, RC, ATOMIC | SGES },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { PVRDMA_WR_ATOMIC_FETCH_AND_ADD, RC, ATOMIC | SGES },
	[IBV_WR_LOCAL_INV] = { PVRDMA_WR_LOCAL_INV, RC | UC, INV, PVR_EXT_USER_OPS },
	[IBV_WR_BIND_MW] = { PVRDMA_WR_BIND_MW, RC | UC, BIND, PVR_EXT_USER_OPS | PVR_EXT_MW },
	[IBV_WR_SEND_WITH_INV] = { PVRDMA_WR_SEND_WITH_INV, RC | UC, INV | DATA, PVR_EXT_USER_OPS },
	[IBV_WR_FLUSH] = { PVR_WR_FLUSH, RC, FUNCTION, PVR_EXT_USER_OPS | PVR_EXT_FLUSH },
	[IBV_WR_ATOMIC_WRITE] = { PVR_WR_ATOMIC_WRITE, RC, FUNCTION,
				  PVR_EXT_USER_OPS | PVR_EXT_ATOMIC_WRITE },
	/* The device does not support other opcodes. */
};

int pvr_send_op(const struct pvr_context *ctx, enum ibv_qp_type type, enum ibv_wr_opcode opcode,
		const struct pvr_send_op **op)
{
	if (opcode >= PVR_NUM_SEND_OPS)
		return EINVAL;
	*op = &pvr_send_ops[opcode];
	if (!(*op)->qp_types || (*op)->features & ~ctx->features)
		return EOPNOTSUPP;
	return (*op)->qp_types & (1u << type) ? 0 : EINVAL;
}

uint32_t pvr_send_ops_of(const struct pvr_context *ctx, enum ibv_qp_type type)
{
	const struct pvr_send_op *op;
	uint32_t ops = 0;
	unsigned int opcode;

	for (opcode = 0; opcode < PVR_NUM_SEND_OPS; opcode++)
		if (!pvr_send_op(ctx, type, opcode, &op))
			ops |= 1u << opcode;
	return ops;
}

int pvr_sqe_why_not(const struct pvr_qp *qp, enum ibv_wr_opcode opcode)
{
	const struct ibv_qp *ibqp = &qp->verbs_qp.qp;
	const struct pvr_send_op *op;

	if (ibqp->state < IBV_QPS_RTS)
		return EINVAL;
	return pvr_send_op(to_pvr_context(ibqp->context), ibqp->qp_type, opcode, &op);
}

#define MW_ACCESS                                                                      \
	(PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC | \
	 PVR_ACCESS_ZERO_BASED)

static_assert(PVR_ACCESS_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
		      PVR_ACCESS_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
		      PVR_ACCESS_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC &&
		      PVR_ACCESS_ZERO_BASED == IBV_ACCESS_ZERO_BASED,
	      "access flags are passed as they are");

int pvr_sqe_bind(struct pvr_sq_wqe *hdr, const struct ibv_mw *mw, uint32_t new_rkey,
		 const struct ibv_mw_bind_info *info)
{
	struct pvr_wqe_bind_mw bind = {
		.addr = htole64(info->addr),
		.length = htole64(info->length),
		.mw_rkey = htole32(mw->rkey),
		.new_rkey = htole32(new_rkey),
		.mr_lkey = htole32(info->mr ? info->mr->lkey : 0),
		.access_flags = htole32(info->mw_access_flags & MW_ACCESS),
	};

	/*
	 * There is no local access through a window, so the right to local writes is
	 * ignored.
	 */
	if (info->mw_access_flags & ~(MW_ACCESS | PVR_ACCESS_LOCAL_WRITE) ||
	    (new_rkey ^ mw->rkey) & ~0xffu)
		return EINVAL;
	if (!info->mr && (info->addr || info->length))
		return EINVAL;
	/* Compare handles: a parent domain has that of its PD. */
	if (info->mr && info->mr->pd->handle != mw->pd->handle)
		return EPERM;
	memcpy(&hdr->wr, &bind, sizeof(bind));
	return 0;
}
