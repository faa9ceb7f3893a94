// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC: domains, and target QPs. A target has no queues: its messages complete in the CQ of
 * the SRQ that each of them names, see use_srq() in cq_poll.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"
#include "uverbs_abi.h"

struct ibv_xrcd *pvr_open_xrcd(struct ibv_context *ibctx, struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int err = EOPNOTSUPP;

	if (!(to_pvr_context(ibctx)->features & PVR_EXT_XRC))
		goto err_errno;
	err = ENOMEM;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		goto err_errno;
	err = ibv_cmd_open_xrcd(ibctx, xrcd, sizeof(*xrcd), attr, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (err)
		goto err_free;
	return &xrcd->xrcd;

err_free:
	free(xrcd);
err_errno:
	errno = err;
	return NULL;
}

int pvr_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int err = ibv_cmd_close_xrcd(xrcd);

	if (err)
		return err;
	free(xrcd);
	return 0;
}

static struct pvr_qp *alloc_target(void)
{
	struct pvr_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->recv_wq = &qp->rq;
	pvr_lock_init(&qp->sq.lock, false);
	return qp;
}

static int check_target(const struct pvr_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(ctx->features & PVR_EXT_XRC) || attr->comp_mask & ~IBV_QP_INIT_ATTR_XRCD)
		return EOPNOTSUPP;
	return attr->comp_mask && attr->xrcd ? 0 : EINVAL;
}

struct ibv_qp *pvr_create_target(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct pvr_context *ctx = to_pvr_context(ibctx);
	struct pvr_uverbs_create_qp_resp resp = {};
	struct ibv_qp_init_attr_ex init = *attr;
	struct pvr_uverbs_create_qp cmd = {};
	struct pvr_qp *qp;
	int err;

	err = check_target(ctx, attr);
	if (err)
		goto err_errno;
	err = ENOMEM;
	qp = alloc_target();
	if (!qp)
		goto err_errno;
	init.cap = qp->cap;
	err = ibv_cmd_create_qp_ex(ibctx, &qp->verbs_qp, &init, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_free;
	attr->cap = qp->cap;
	return &qp->verbs_qp.qp;

err_free:
	free(qp);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_qp *pvr_open_qp(struct ibv_context *ibctx, struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct pvr_qp *qp;
	int err = EOPNOTSUPP;

	if (!(to_pvr_context(ibctx)->features & PVR_EXT_XRC))
		goto err_errno;
	err = ENOMEM;
	qp = alloc_target();
	if (!qp)
		goto err_errno;
	err = ibv_cmd_open_qp(ibctx, &qp->verbs_qp, sizeof(qp->verbs_qp), attr, &cmd, sizeof(cmd),
			      &resp, sizeof(resp));
	if (err)
		goto err_free;
	return &qp->verbs_qp.qp;

err_free:
	free(qp);
err_errno:
	errno = err;
	return NULL;
}
