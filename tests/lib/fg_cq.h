/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues of fake guests. */
#ifndef FG_CQ_H
#define FG_CQ_H

#include <rdma/vmw_pvrdma-abi.h>

#include "fg_buf.h"
#include "fg_guest.h"

struct fg_cq {
	struct fg_ctx *ctx;
	struct fg_buf buf;
	struct pvr_ring *ring; /* in buf */
	struct pvrdma_cqe *cqes; /* in buf */
	uint32_t cqe; /* elements */
	uint32_t head; /* the program's own index */
	uint32_t handle;
};

/* CREATE_CQ with any request. */
uint32_t fg_create_cq(struct fg_guest *guest, const struct pvr_cmd_create_cq *req,
		      struct pvr_resp_create_cq *resp);
/* The request for @cqe elements that lie in @buf. */
struct pvr_cmd_create_cq fg_cq_request(const struct fg_ctx *ctx, const struct fg_buf *buf,
				       uint32_t cqe);

/* @cqe is a power of two. On failure nothing is left. */
uint32_t fg_cq_create(struct fg_ctx *ctx, uint32_t cqe, struct fg_cq *cq);
/* On a completion vector. */
uint32_t fg_cq_create_on(struct fg_ctx *ctx, uint32_t comp_vector, uint32_t cqe, struct fg_cq *cq);
/* PVR_EXT_CQ_TIMESTAMP: a CQ whose completions have timestamps. */
uint32_t fg_cq_create_timestamp(struct fg_ctx *ctx, uint32_t cqe, struct fg_cq *cq);
/* RESIZE_CQ with any request. */
uint32_t fg_resize_cq(struct fg_guest *guest, const struct pvr_cmd_resize_cq *req,
		      struct pvr_resp_resize_cq *resp);
/* The request for @cqe elements that lie in @buf. */
struct pvr_cmd_resize_cq fg_cq_resize_request(const struct fg_cq *cq, const struct fg_buf *buf,
					      uint32_t cqe);
/* Moves to a new ring, unpolled completions included. On failure the CQ is unchanged. */
uint32_t fg_cq_resize(struct fg_cq *cq, uint32_t cqe);
/* MODIFY_CQ. */
uint32_t fg_modify_cq(struct fg_guest *guest, uint32_t handle, uint16_t count, uint16_t period_us);
/* On failure the CQ is unchanged. */
uint32_t fg_cq_destroy(struct fg_cq *cq);

/* Completions that have not been polled. */
uint32_t fg_cq_pending(const struct fg_cq *cq);
/* The next completion; false if there is none. */
bool fg_cq_poll(struct fg_cq *cq, struct pvrdma_cqe *cqe);
/* PVR_EXT_CQ_TIMESTAMP: the timestamp of a completion. */
uint64_t fg_cqe_timestamp(const struct pvrdma_cqe *cqe);
/* Polls until empty; how many there were. */
uint32_t fg_cq_drain(struct fg_cq *cq);

/* Doorbells: @what is PVR_DB_CQ_*. */
void fg_cq_ring(struct fg_cq *cq, uint32_t what);
void fg_cq_arm(struct fg_cq *cq);
void fg_cq_arm_solicited(struct fg_cq *cq);

/* PVR_EXT_CQ_ARM_DBREC: the word in the ring's first page. */
uint32_t *fg_cq_arm_dbrec(const struct fg_cq *cq);
/* Return: whether the device has sent a notification for all present completions. */
bool fg_cq_notified(const struct fg_cq *cq);
/* Arms for @kind, PVR_CQ_ARM_*, and rings if something is unread. Return: whether it rang. */
bool fg_cq_arm_in_memory(struct fg_cq *cq, uint32_t kind);

#endif /* FG_CQ_H */
