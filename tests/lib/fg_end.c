// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ends of connections, with default objects, for tests that need no special setup. */
#include "fg_end.h"

#include <string.h>

#include "fg_gid.h"

static void must(uint32_t err, const char *what)
{
	if (err)
		fg_die("%s: ERR 0x%x", what, err);
}

void fg_end_open_spec(struct fg_end *end, struct fg_ctx *ctx, const struct fg_qp_spec *spec,
		      uint32_t pages)
{
	struct fg_qp_spec full = *spec;
	uint32_t send_cqe = spec->sq_wr > FG_END_CQE ? spec->sq_wr : FG_END_CQE;
	uint32_t recv_cqe = spec->rq_wr > FG_END_CQE ? spec->rq_wr : FG_END_CQE;

	memset(end, 0, sizeof(*end));
	end->guest = ctx->guest;
	fg_gid_from_mac(end->gid, ctx->guest->config.mac);
	must(fg_pd_create(ctx, &end->pd), "PD");
	must(fg_cq_create(ctx, send_cqe, &end->scq), "send CQ");
	must(fg_cq_create(ctx, recv_cqe, &end->rcq), "receive CQ");
	fg_buf_init(&end->buf, &ctx->guest->ram, pages, ctx->guest->config.ends);
	must(fg_mr_create(&end->pd, &end->buf, FG_ACCESS_ALL, &end->mr), "MR");
	full.pd = &end->pd;
	full.scq = &end->scq;
	full.rcq = &end->rcq;
	must(fg_qp_create(&full, &end->qp), "QP");
}

void fg_end_open(struct fg_end *end, struct fg_guest *guest, enum pvr_qp_type type)
{
	struct fg_qp_spec spec = { .type = type };

	fg_end_open_spec(end, &guest->kernel, &spec, FG_END_PAGES);
}

void fg_end_close(struct fg_end *end)
{
	if (end->qp.buf.view)
		must(fg_qp_destroy(&end->qp), "destroy QP");
	if (end->mr.length)
		must(fg_mr_destroy(&end->mr), "destroy MR");
	fg_buf_exit(&end->buf);
	if (end->scq.buf.view)
		must(fg_cq_destroy(&end->scq), "destroy send CQ");
	if (end->rcq.buf.view)
		must(fg_cq_destroy(&end->rcq), "destroy receive CQ");
	must(fg_pd_destroy(&end->pd), "destroy PD");
	memset(end, 0, sizeof(*end));
}

void fg_end_connect(struct fg_end *a, struct fg_end *b, const struct fg_conn *conn)
{
	must(fg_qp_connect(&a->qp, conn, b->gid, b->qp.qpn), "connect");
	if (a != b)
		must(fg_qp_connect(&b->qp, conn, a->gid, a->qp.qpn), "connect");
}

void fg_end_ready(struct fg_end *end)
{
	must(fg_qp_connect(&end->qp, NULL, NULL, 0), "RTS");
}
