// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: header page, then CQEs. */
#include "fg_cq.h"

#include <string.h>

#include "fg_cmd.h"

uint32_t fg_create_cq(struct fg_guest *guest, const struct pvr_cmd_create_cq *req,
		      struct pvr_resp_create_cq *resp)
{
	return fg_cmd(guest, req, sizeof(*req), resp, sizeof(*resp));
}

struct pvr_cmd_create_cq fg_cq_request(const struct fg_ctx *ctx, const struct fg_buf *buf,
				       uint32_t cqe)
{
	return (struct pvr_cmd_create_cq){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_CQ),
		.pdir_dma = buf->pdir,
		.ctx_handle = ctx->handle,
		.cqe = cqe,
		.nchunks = buf->npages,
	};
}

/* Pages of a ring of @cqe elements, with the header page. */
static uint32_t ring_pages(uint32_t cqe)
{
	uint64_t bytes = (uint64_t)cqe * sizeof(struct pvrdma_cqe);

	return 1 + (uint32_t)((bytes + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE);
}

static void use_ring(struct fg_cq *cq, uint32_t cqe)
{
	cq->cqe = cqe;
	cq->ring = &((struct pvr_ring_state *)cq->buf.va)->rx;
	cq->cqes = (struct pvrdma_cqe *)(cq->buf.va + PVR_PAGE_SIZE);
}

static uint32_t create(struct fg_ctx *ctx, uint32_t comp_vector, uint32_t flags, uint32_t cqe,
		       struct fg_cq *cq)
{
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	uint32_t err;

	memset(cq, 0, sizeof(*cq));
	fg_buf_init(&cq->buf, &ctx->guest->ram, ring_pages(cqe), ctx->guest->config.rings);
	req = fg_cq_request(ctx, &cq->buf, cqe);
	req.comp_vector = comp_vector;
	req.flags = flags;
	err = fg_create_cq(ctx->guest, &req, &resp);
	if (err) {
		fg_buf_exit(&cq->buf);
		return err;
	}
	cq->ctx = ctx;
	cq->handle = resp.cq_handle;
	use_ring(cq, cqe);
	return 0;
}

uint32_t fg_cq_create(struct fg_ctx *ctx, uint32_t cqe, struct fg_cq *cq)
{
	return create(ctx, 0, 0, cqe, cq);
}

uint32_t fg_cq_create_on(struct fg_ctx *ctx, uint32_t comp_vector, uint32_t cqe, struct fg_cq *cq)
{
	return create(ctx, comp_vector, 0, cqe, cq);
}

uint32_t fg_cq_create_timestamp(struct fg_ctx *ctx, uint32_t cqe, struct fg_cq *cq)
{
	return create(ctx, 0, PVR_CQ_TIMESTAMP, cqe, cq);
}

uint64_t fg_cqe_timestamp(const struct pvrdma_cqe *cqe)
{
	uint64_t timestamp = 0;

	memcpy(&timestamp, cqe->reserved2, sizeof(cqe->reserved2));
	return timestamp;
}

uint32_t fg_resize_cq(struct fg_guest *guest, const struct pvr_cmd_resize_cq *req,
		      struct pvr_resp_resize_cq *resp)
{
	return fg_cmd(guest, req, sizeof(*req), resp, sizeof(*resp));
}

uint32_t fg_modify_cq(struct fg_guest *guest, uint32_t handle, uint16_t count, uint16_t period_us)
{
	const struct pvr_cmd_modify_cq req = { .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_CQ),
					       .cq_handle = handle,
					       .count = count,
					       .period_us = period_us };

	return fg_cmd(guest, &req, sizeof(req), NULL, 0);
}

struct pvr_cmd_resize_cq fg_cq_resize_request(const struct fg_cq *cq, const struct fg_buf *buf,
					      uint32_t cqe)
{
	return (struct pvr_cmd_resize_cq){
		.hdr = FG_CMD_HDR(PVR_CMD_RESIZE_CQ),
		.cq_handle = cq->handle,
		.cqe = cqe,
		.pdir_dma = buf->pdir,
		.nchunks = buf->npages,
	};
}

uint32_t fg_cq_resize(struct fg_cq *cq, uint32_t cqe)
{
	struct pvr_cmd_resize_cq req;
	struct pvr_resp_resize_cq resp;
	struct fg_buf buf;
	uint32_t err;

	fg_buf_init(&buf, &cq->ctx->guest->ram, ring_pages(cqe), cq->ctx->guest->config.rings);
	req = fg_cq_resize_request(cq, &buf, cqe);
	err = fg_resize_cq(cq->ctx->guest, &req, &resp);
	if (err) {
		fg_buf_exit(&buf);
		return err;
	}
	fg_buf_exit(&cq->buf);
	cq->buf = buf;
	cq->head = 0;
	use_ring(cq, cqe);
	return 0;
}

uint32_t fg_cq_destroy(struct fg_cq *cq)
{
	uint32_t err = fg_cmd_destroy(cq->ctx->guest, PVR_CMD_DESTROY_CQ, cq->handle);

	if (!err)
		fg_buf_exit(&cq->buf);
	return err;
}

uint32_t fg_cq_pending(const struct fg_cq *cq)
{
	uint32_t tail = __atomic_load_n(&cq->ring->prod_tail, __ATOMIC_ACQUIRE);

	return (tail - cq->head) & (2 * cq->cqe - 1);
}

bool fg_cq_poll(struct fg_cq *cq, struct pvrdma_cqe *cqe)
{
	if (!fg_cq_pending(cq))
		return false;
	*cqe = cq->cqes[cq->head & (cq->cqe - 1)];
	cq->head = (cq->head + 1) & (2 * cq->cqe - 1);
	__atomic_store_n(&cq->ring->cons_head, cq->head, __ATOMIC_RELEASE);
	return true;
}

uint32_t fg_cq_drain(struct fg_cq *cq)
{
	struct pvrdma_cqe cqe;
	uint32_t n = 0;

	while (fg_cq_poll(cq, &cqe))
		n++;
	return n;
}

void fg_cq_ring(struct fg_cq *cq, uint32_t what)
{
	fg_uar_write(cq->ctx->guest, cq->ctx->uar, PVRDMA_UAR_CQ_OFFSET, what | cq->handle);
}

void fg_cq_arm(struct fg_cq *cq)
{
	fg_cq_ring(cq, PVR_DB_CQ_ARM);
}

void fg_cq_arm_solicited(struct fg_cq *cq)
{
	fg_cq_ring(cq, PVR_DB_CQ_ARM_SOL);
}

uint32_t *fg_cq_arm_dbrec(const struct fg_cq *cq)
{
	return &((struct pvr_cq_arm_dbrec *)(cq->buf.va + PVR_CQ_ARM_DBREC_OFFSET))->arm;
}

bool fg_cq_notified(const struct fg_cq *cq)
{
	const struct pvr_cq_arm_dbrec *arm =
		(const struct pvr_cq_arm_dbrec *)(cq->buf.va + PVR_CQ_ARM_DBREC_OFFSET);

	return __atomic_load_n(&arm->notified, __ATOMIC_RELAXED);
}

bool fg_cq_arm_in_memory(struct fg_cq *cq, uint32_t kind)
{
	uint32_t *word = fg_cq_arm_dbrec(cq);

	__atomic_store_n(word, ((*word & ~PVR_CQ_ARM_KIND) + PVR_CQ_ARM_STEP) | kind,
			 __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!fg_cq_pending(cq))
		return false;
	fg_cq_ring(cq, kind & PVR_CQ_ARM_ANY ? PVR_DB_CQ_ARM : PVR_DB_CQ_ARM_SOL);
	return true;
}
