/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Send requests that stay at home: they change memory regions and reach no peer. */
#include "datapath/local_ops.h"

#include <errno.h>

static int local_invalidate(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	struct pvr_mr *mr =
		pvr_mr_find_fast(qp->adapter, qp->pd, wqe->hdr.ex.invalidate_rkey);

	if (!mr)
		return -EINVAL;
	mr->valid = false;
	return 0;
}

int pvr_local_op(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	switch (wqe->hdr.opcode) {
	case PVRDMA_WR_LOCAL_INV:
		return local_invalidate(qp, wqe);
	default:
		return pvr_mr_fast_register(qp->adapter, qp->pd, &wqe->hdr);
	}
}
