/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Send requests that stay at home: they change regions and windows and reach no peer. */
#include "rdma/local_ops.h"

#include <errno.h>
#include <string.h>

/* Translating one page takes about as long as copying so many bytes. */
#define BYTES_PER_PAGE 64

static int fast_register(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes)
{
	int err = pvr_mr_fast_register(qp->adapter, qp->pd, &wqe->hdr);

	/* One that fails ends the turn. */
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
	switch (wqe->hdr.opcode) {
	case PVRDMA_WR_LOCAL_INV:
		return local_invalidate(qp, wqe);
	case PVRDMA_WR_BIND_MW:
		return bind_window(qp, wqe);
	default:
		return fast_register(qp, wqe, bytes);
	}
}
