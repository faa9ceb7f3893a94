// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Properties of the operations of send requests, and local operations. */
#include "rdma/wr.h"

#include <errno.h>
#include <string.h>
#include "core/mr.h"

/* IBTA table 38. */
#define RC (1u << PVR_QPT_RC)
#define BOTH (RC | 1u << PVR_QPT_UC)

/*
 * In user space some opcodes have other values, and stock providers do not convert them:
 * then only the guest kernel may post these opcodes. FAST_REG_MR is always limited to the
 * guest kernel, because its page list may name any memory of the guest.
 */
const struct pvr_opcode pvr_opcodes[PVR_OPCODES] = {
	[PVRDMA_WR_RDMA_WRITE] = {
		.kind = PVR_OP_WRITE, .types = BOTH, .remote = PVR_ACCESS_REMOTE_WRITE,
		.done = PVRDMA_WC_RDMA_WRITE,
	},
	[PVRDMA_WR_RDMA_WRITE_WITH_IMM] = {
		.kind = PVR_OP_WRITE, .types = BOTH, .remote = PVR_ACCESS_REMOTE_WRITE,
		.recv = true, .imm = true, .done = PVRDMA_WC_RDMA_WRITE,
	},
	[PVRDMA_WR_SEND] = {
		.kind = PVR_OP_SEND, .types = BOTH, .recv = true, .done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_SEND_WITH_IMM] = {
		.kind = PVR_OP_SEND, .types = BOTH, .recv = true, .imm = true,
		.done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_SEND_WITH_INV] = {
		.kind = PVR_OP_SEND, .right = PVR_OP_USER_OPS, .limited = RC, .recv = true,
		.done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_RDMA_READ] = {
		.kind = PVR_OP_READ, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_READ, .done = PVRDMA_WC_RDMA_READ,
	},
	[PVRDMA_WR_ATOMIC_CMP_AND_SWP] = {
		.kind = PVR_OP_ATOMIC, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_ATOMIC, .done = PVRDMA_WC_COMP_SWAP,
	},
	[PVRDMA_WR_ATOMIC_FETCH_AND_ADD] = {
		.kind = PVR_OP_ATOMIC, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_ATOMIC, .done = PVRDMA_WC_FETCH_ADD,
	},
	[PVR_WR_ATOMIC_WRITE] = {
		.kind = PVR_OP_ATOMIC_WRITE, .right = PVR_OP_USER_OPS,
		.ext = PVR_EXT_ATOMIC_WRITE, .limited = RC, .remote = PVR_ACCESS_REMOTE_WRITE,
		.done = PVR_WC_ATOMIC_WRITE,
	},
	[PVR_WR_FLUSH] = {
		.kind = PVR_OP_FLUSH, .right = PVR_OP_USER_OPS, .ext = PVR_EXT_FLUSH,
		.limited = RC, .done = PVR_WC_FLUSH,
	},
	[PVRDMA_WR_LOCAL_INV] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_USER_OPS, .limited = BOTH,
		.done = PVRDMA_WC_LOCAL_INV,
	},
	[PVRDMA_WR_FAST_REG_MR] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_KERNEL, .limited = BOTH,
		.done = PVRDMA_WC_FAST_REG_MR,
	},
	[PVRDMA_WR_BIND_MW] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_USER_OPS, .ext = PVR_EXT_MW, .limited = BOTH,
		.done = PVRDMA_WC_BIND_MW,
	},
};

/* --------------------------------------------------------------- local operations */

/* The translation of one page takes about as long as a copy of so many bytes. */
#define BYTES_PER_PAGE 64

static int fast_register(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes)
{
	int err = pvr_mr_fast_register(qp->adapter, qp->pd, &wqe->hdr);

	/* A failure ends the quantum anyway. */
	if (!err)
		*bytes += (uint64_t)wqe->hdr.wr.fast_reg.page_list_len * BYTES_PER_PAGE;
	return err;
}

static int local_invalidate(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	struct pvr_mr *mr = pvr_mr_find_invalidable(qp, wqe->hdr.ex.invalidate_rkey, false);

	if (!mr)
		return -EINVAL;
	pvr_mr_invalidate(mr);
	return 0;
}

static int bind_window(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	struct pvr_wqe_bind_mw bind;

	memcpy(&bind, &wqe->hdr.wr, sizeof(bind));
	return pvr_mw_bind(qp, &bind);
}

int pvr_local_op(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes)
{
	if (qp->sq_local_done) {
		qp->sq_local_done--;
		return 0;
	}
	switch (wqe->hdr.opcode) {
	case PVRDMA_WR_LOCAL_INV:
		return local_invalidate(qp, wqe);
	case PVRDMA_WR_BIND_MW:
		return bind_window(qp, wqe);
	default:
		return fast_register(qp, wqe, bytes);
	}
}
