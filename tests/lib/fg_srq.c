// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: header page, then WQEs. */
#include "fg_srq.h"

#include <string.h>

#include "fg_cmd.h"
#include "fg_qp.h"

uint32_t fg_create_srq(struct fg_guest *guest, const struct pvr_cmd_create_srq *req,
		       struct pvr_resp_create_srq *resp)
{
	return fg_cmd(guest, req, sizeof(*req), resp, sizeof(*resp));
}

struct pvr_cmd_create_srq fg_srq_request(const struct fg_pd *pd, const struct fg_buf *buf,
					 uint32_t wr, uint32_t sge)
{
	return (struct pvr_cmd_create_srq){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_SRQ),
		.pdir_dma = buf->pdir,
		.pd_handle = pd->handle,
		.nchunks = buf->npages,
		.attrs = { .max_wr = wr, .max_sge = sge },
	};
}

uint32_t fg_srq_pages(uint32_t wr, uint32_t sge)
{
	return 1 + fg_queue_pages(wr, fg_rq_stride(sge));
}

void fg_srq_fill(struct fg_srq *srq, const struct fg_pd *pd, uint32_t handle, uint32_t wr,
		 uint32_t sge)
{
	srq->ctx = pd->ctx;
	srq->handle = handle;
	srq->wr = wr;
	srq->sge = sge;
	srq->stride = fg_rq_stride(sge);
	srq->ring = &((struct pvr_ring_state *)srq->buf.va)->rx;
}

uint32_t fg_srq_create(const struct fg_pd *pd, uint32_t wr, uint32_t sge, struct fg_srq *srq)
{
	struct fg_guest *guest = pd->ctx->guest;
	struct pvr_cmd_create_srq req;
	struct pvr_resp_create_srq resp;
	uint32_t err;

	memset(srq, 0, sizeof(*srq));
	fg_buf_init(&srq->buf, &guest->ram, fg_srq_pages(wr, sge), guest->config.rings);
	req = fg_srq_request(pd, &srq->buf, wr, sge);
	err = fg_create_srq(guest, &req, &resp);
	if (err) {
		fg_buf_exit(&srq->buf);
		return err;
	}
	fg_srq_fill(srq, pd, resp.srqn, wr, sge);
	return 0;
}

uint32_t fg_srq_destroy(struct fg_srq *srq)
{
	uint32_t err = fg_cmd_destroy(srq->ctx->guest, PVR_CMD_DESTROY_SRQ, srq->handle);

	if (!err)
		fg_buf_exit(&srq->buf);
	return err;
}

uint32_t fg_srq_modify(struct fg_srq *srq, uint32_t mask, const struct pvr_srq_attr *attr)
{
	struct pvr_cmd_modify_srq req = {
		.hdr = FG_CMD_HDR(PVR_CMD_MODIFY_SRQ),
		.srq_handle = srq->handle,
		.attr_mask = mask,
		.attrs = *attr,
	};

	return fg_cmd(srq->ctx->guest, &req, sizeof(req), NULL, 0);
}

struct pvr_cmd_modify_srq fg_srq_resize_request(const struct fg_srq *srq, const struct fg_buf *buf,
						uint32_t wr)
{
	return (struct pvr_cmd_modify_srq){
		.hdr = FG_CMD_HDR(PVR_CMD_MODIFY_SRQ),
		.srq_handle = srq->handle,
		.attr_mask = PVR_SRQ_MAX_WR,
		.attrs = { .max_wr = wr, .max_sge = UINT32_MAX, .srq_limit = UINT32_MAX },
		.pdir_dma = buf->pdir,
		.nchunks = buf->npages,
	};
}

uint32_t fg_srq_resize(struct fg_srq *srq, uint32_t wr)
{
	struct fg_guest *guest = srq->ctx->guest;
	struct pvr_cmd_modify_srq req;
	struct fg_buf buf;
	uint32_t err;

	fg_buf_init(&buf, &guest->ram, fg_srq_pages(wr, srq->sge), guest->config.rings);
	req = fg_srq_resize_request(srq, &buf, wr);
	err = fg_cmd(guest, &req, sizeof(req), NULL, 0);
	if (err) {
		fg_buf_exit(&buf);
		return err;
	}
	fg_buf_exit(&srq->buf);
	srq->buf = buf;
	srq->wr = wr;
	srq->ring = &((struct pvr_ring_state *)buf.va)->rx;
	srq->tail = srq->ring->prod_tail;
	return 0;
}

uint32_t fg_srq_set_limit(struct fg_srq *srq, uint32_t limit)
{
	struct pvr_srq_attr attr = { .srq_limit = limit };

	return fg_srq_modify(srq, PVR_SRQ_LIMIT, &attr);
}

uint32_t fg_srq_query(struct fg_srq *srq, struct pvr_srq_attr *attr)
{
	struct pvr_cmd_handle req = {
		.hdr = FG_CMD_HDR(PVR_CMD_QUERY_SRQ),
		.handle = srq->handle,
	};
	struct pvr_resp_query_srq resp;
	uint32_t err = fg_cmd(srq->ctx->guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*attr = resp.attrs;
	return err;
}
