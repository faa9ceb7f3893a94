/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues of fake guests. */
#ifndef FG_SRQ_H
#define FG_SRQ_H

#include <rdma/vmw_pvrdma-abi.h>

#include "fg_buf.h"
#include "fg_pd.h"

struct fg_srq {
	struct fg_ctx *ctx;
	struct fg_buf buf;
	struct pvr_ring *ring; /* in buf */
	uint32_t stride, wr, sge;
	uint32_t tail; /* the program's own index */
	uint32_t handle;
};

/* CREATE_SRQ with any request. */
uint32_t fg_create_srq(struct fg_guest *guest, const struct pvr_cmd_create_srq *req,
		       struct pvr_resp_create_srq *resp);
struct pvr_cmd_create_srq fg_srq_request(const struct fg_pd *pd, const struct fg_buf *buf,
					 uint32_t wr, uint32_t sge);
/* Pages that @wr elements of @sge entries need, with the header page. */
uint32_t fg_srq_pages(uint32_t wr, uint32_t sge);

/* After CREATE_SRQ of a ring in srq->buf. */
void fg_srq_fill(struct fg_srq *srq, const struct fg_pd *pd, uint32_t handle, uint32_t wr,
		 uint32_t sge);

/* @wr is a power of two. On failure nothing is left. */
uint32_t fg_srq_create(const struct fg_pd *pd, uint32_t wr, uint32_t sge, struct fg_srq *srq);
uint32_t fg_srq_destroy(struct fg_srq *srq);
uint32_t fg_srq_modify(struct fg_srq *srq, uint32_t mask, const struct pvr_srq_attr *attr);
/* PVR_SRQ_MAX_WR for elements that lie in @buf. */
struct pvr_cmd_modify_srq fg_srq_resize_request(const struct fg_srq *srq, const struct fg_buf *buf,
						uint32_t wr);
/* Moves to a new ring, waiting requests included. On failure the SRQ is unchanged. */
uint32_t fg_srq_resize(struct fg_srq *srq, uint32_t wr);
uint32_t fg_srq_set_limit(struct fg_srq *srq, uint32_t limit);
uint32_t fg_srq_query(struct fg_srq *srq, struct pvr_srq_attr *attr);

#endif /* FG_SRQ_H */
