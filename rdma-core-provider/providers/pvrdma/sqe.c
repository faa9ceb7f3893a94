// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Operations that a QP supports, and binding of memory windows. */
#include "sqe.h"

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
