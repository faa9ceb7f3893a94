// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows: allocation, and binding of windows of type 1. */
#include <errno.h>
#include <stdlib.h>

#include "doorbell.h"
#include "pvrdma.h"
#include "sqe.h"

struct ibv_mw *pvr_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int err;

	err = to_pvr_context(ibpd->context)->features & PVR_EXT_MW ? 0 : EOPNOTSUPP;
	if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		err = EINVAL;
	if (err)
		goto err_errno;
	err = ENOMEM;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		goto err_errno;
	err = ibv_cmd_alloc_mw(ibpd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_free;
	return mw;

err_free:
	free(mw);
err_errno:
	errno = err;
	return NULL;
}

int pvr_dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (!err)
		free(mw);
	return err;
}

static int post_bind_locked(struct pvr_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind,
			    bool *ring)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct pvr_sq_wqe *hdr;
	const struct pvr_send_op *op;
	int err;

	err = pvr_sqe_begin(qp, IBV_WR_BIND_MW, bind->wr_id, bind->send_flags, &hdr, &op);
	if (!err)
		err = pvr_sqe_bind(hdr, mw, rkey, &bind->bind_info);
	if (err)
		return err;
	mw->rkey = rkey;
	pvr_wq_advance(&qp->sq);
	*ring = pvr_wq_publish(&qp->sq);
	return 0;
}

/* libibverbs has checked the window's type and PD. */
int pvr_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	bool ring = false;
	uint32_t tail;
	int err;

	pvr_lock(&qp->sq.lock);
	err = post_bind_locked(qp, mw, bind, &ring);
	tail = pvr_wq_tail(&qp->sq);
	pvr_unlock(&qp->sq.lock);
	if (ring)
		pvr_ring_sq(qp, tail);
	return err;
}
