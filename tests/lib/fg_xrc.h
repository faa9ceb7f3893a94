/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* XRC domains of fake guests, their SRQs and target queue pairs. */
#ifndef FG_XRC_H
#define FG_XRC_H

#include "fg_cq.h"
#include "fg_qp.h"
#include "fg_srq.h"

struct fg_xrcd {
	struct fg_guest *guest;
	uint32_t handle;
};

uint32_t fg_xrcd_create(struct fg_guest *guest, struct fg_xrcd *xrcd);
uint32_t fg_xrcd_destroy(struct fg_xrcd *xrcd);

/* An SRQ of @wr requests, a power of two. On failure nothing is left. */
uint32_t fg_xrc_srq_create(const struct fg_xrcd *xrcd, const struct fg_pd *pd,
			   const struct fg_cq *cq, uint32_t wr, uint32_t sge, struct fg_srq *srq);

/* The request for a target, whose header page is @buf. */
struct pvr_cmd_create_qp fg_xrc_tgt_request(const struct fg_xrcd *xrcd, const struct fg_buf *buf);
/* On failure nothing is left. */
uint32_t fg_xrc_tgt_create(const struct fg_xrcd *xrcd, struct fg_qp *qp);

#endif /* FG_XRC_H */
