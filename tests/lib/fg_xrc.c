// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC domains, their SRQs and target queue pairs. */
#include "fg_xrc.h"

#include <string.h>

#include "fg_cmd.h"

uint32_t fg_xrcd_create(struct fg_guest *guest, struct fg_xrcd *xrcd)
{
	struct pvr_cmd_hdr req = FG_CMD_HDR(PVR_CMD_CREATE_XRCD);
	struct pvr_resp_create_xrcd resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (err)
		return err;
	xrcd->guest = guest;
	xrcd->handle = resp.xrcd_handle;
	return 0;
}

uint32_t fg_xrcd_destroy(struct fg_xrcd *xrcd)
{
	return fg_cmd_destroy(xrcd->guest, PVR_CMD_DESTROY_XRCD, xrcd->handle);
}

uint32_t fg_xrc_srq_create(const struct fg_xrcd *xrcd, const struct fg_pd *pd,
			   const struct fg_cq *cq, uint32_t wr, uint32_t sge, struct fg_srq *srq)
{
	struct pvr_cmd_create_srq req;
	struct pvr_resp_create_srq resp;
	uint32_t err;

	memset(srq, 0, sizeof(*srq));
	fg_buf_init(&srq->buf, &xrcd->guest->ram, fg_srq_pages(wr, sge), xrcd->guest->config.rings);
	req = fg_srq_request(pd, &srq->buf, wr, sge);
	req.srq_type = PVR_SRQT_XRC;
	req.xrcd_handle = xrcd->handle;
	req.cq_handle = cq->handle;
	err = fg_create_srq(xrcd->guest, &req, &resp);
	if (err) {
		fg_buf_exit(&srq->buf);
		return err;
	}
	fg_srq_fill(srq, pd, resp.srqn, wr, sge);
	return 0;
}

struct pvr_cmd_create_qp fg_xrc_tgt_request(const struct fg_xrcd *xrcd, const struct fg_buf *buf)
{
	return (struct pvr_cmd_create_qp){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_QP),
		.pdir_dma = buf->pdir,
		.total_chunks = 1,
		.qp_type = PVR_QPT_XRC_TGT,
		.xrcd_handle = xrcd->handle,
	};
}

uint32_t fg_xrc_tgt_create(const struct fg_xrcd *xrcd, struct fg_qp *qp)
{
	struct pvr_cmd_create_qp req;
	struct pvr_resp_create_qp resp;
	uint32_t err;

	memset(qp, 0, sizeof(*qp));
	fg_buf_init(&qp->buf, &xrcd->guest->ram, 1, xrcd->guest->config.rings);
	req = fg_xrc_tgt_request(xrcd, &qp->buf);
	err = fg_create_qp(xrcd->guest, &req, &resp);
	if (err) {
		fg_buf_exit(&qp->buf);
		return err;
	}
	qp->guest = xrcd->guest;
	qp->ctx = &xrcd->guest->kernel;
	qp->type = PVR_QPT_XRC_TGT;
	qp->ring = (struct pvr_ring_state *)qp->buf.va;
	qp->qpn = resp.qpn;
	qp->handle = resp.qp_handle;
	return 0;
}
