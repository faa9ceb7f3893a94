/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One end of a conversation: PD, two CQs, a registered buffer and a QP. */
#ifndef FG_END_H
#define FG_END_H

#include "fg_cq.h"
#include "fg_mr.h"
#include "fg_pd.h"
#include "fg_qp.h"
#include "fg_wr.h"

#define FG_END_CQE 256 /* of each CQ; more if the queue of the QP is longer */
#define FG_END_PAGES 16 /* of the registered buffer */

struct fg_end {
	struct fg_guest *guest;
	struct fg_pd pd;
	struct fg_cq scq, rcq;
	struct fg_buf buf;
	struct fg_mr mr; /* all of buf, all access */
	struct fg_qp qp;
	uint8_t gid[16]; /* the guest's default GID */
};

/* In the guest's kernel context, with a QP of the default size. Dies on failure. */
void fg_end_open(struct fg_end *end, struct fg_guest *guest, enum pvr_qp_type type);
/*
 * In any context; @spec's sizes, type and sig_all are used, the rest is filled in.
 * @pages of buffer.
 */
void fg_end_open_spec(struct fg_end *end, struct fg_ctx *ctx, const struct fg_qp_spec *spec,
		      uint32_t pages);
/* Destroys everything that still exists; dies if the device refuses. */
void fg_end_close(struct fg_end *end);

/* Connects two RC or UC ends (or one with itself); NULL: the default. Dies on failure. */
void fg_end_connect(struct fg_end *a, struct fg_end *b, const struct fg_conn *conn);
/* Brings a UD or GSI QP to RTS. */
void fg_end_ready(struct fg_end *end);

#endif /* FG_END_H */
