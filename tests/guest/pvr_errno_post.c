// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Invalid work requests. */
#include <errno.h>
#include <string.h>

#include "pvr_errno.h"

static struct ibv_sge sges[64];

static int post_one(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(qp, wr, &bad);

	return err && bad != wr ? WRONG_BAD_WR : err;
}

/* number: the opcode, flags: the flags. */
static int send_on_rc(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wr = { .opcode = check->number, .send_flags = check->flags };

	return post_one(lab->rc, &wr);
}

static int send_on_ud(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wr = { .opcode = check->number, .send_flags = check->flags };

	return post_one(lab->ud, &wr);
}

static int send_in_reset(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wr = { .opcode = check->number };

	return post_one(lab->reset, &wr);
}

static int send_in_init(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wr = { .opcode = check->number };

	return post_one(lab->init, &wr);
}

/* number: of SGEs. */
static int send_sges(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = sges,
				  .num_sge = check->number };

	return post_one(lab->rc, &wr);
}

/* number: bytes. */
static int send_inline(struct lab *lab, const struct check *check)
{
	struct ibv_sge sge = { .addr = (uintptr_t)lab->memory, .length = check->number };
	struct ibv_send_wr wr = {
		.opcode = check->flags, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE
	};

	return post_one(lab->rc, &wr);
}

/* The requests of a list before the bad one are posted, those behind it are ignored. */
static int send_list(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wrs[3] = {
		{ .opcode = IBV_WR_SEND, .next = &wrs[1] },
		{ .opcode = 99, .next = &wrs[2] },
		{ .opcode = 98 },
	};
	struct ibv_send_wr *bad = NULL;
	int err;

	(void)check;
	err = ibv_post_send(lab->error, wrs, &bad);
	return err && bad != &wrs[1] ? WRONG_BAD_WR : err;
}

/* The doorbell rings at the end of a list, so the device frees no slots before that. */
static int send_until_full(struct lab *lab, const struct check *check)
{
	struct ibv_send_wr wrs[64] = {}, *bad = NULL;
	int i, err;

	(void)check;
	for (i = 0; i < 64; i++) {
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].next = i < 63 ? &wrs[i + 1] : NULL;
	}
	err = ibv_post_send(lab->error, wrs, &bad);
	return err && (bad < &wrs[1] || bad > &wrs[4]) ? WRONG_BAD_WR : err;
}

static int recv_in(struct ibv_qp *qp, int num_sge)
{
	struct ibv_recv_wr *bad = NULL, wr = { .sg_list = sges, .num_sge = num_sge };
	int err = ibv_post_recv(qp, &wr, &bad);

	return err && bad != &wr ? WRONG_BAD_WR : err;
}

static int recv_sges(struct lab *lab, const struct check *check)
{
	return recv_in(lab->init, check->number);
}

static int recv_in_reset(struct lab *lab, const struct check *check)
{
	return recv_in(lab->reset, check->number);
}

static int recv_with_srq(struct lab *lab, const struct check *check)
{
	return recv_in(lab->with_srq, check->number);
}

static int recv_until_full(struct lab *lab, const struct check *check)
{
	int i, err = 0;

	for (i = 0; i < check->number && !err; i++)
		err = recv_in(lab->init, 0);
	return err;
}

/* number: the kind of mistake. */
static int bind_window(struct lab *lab, const struct check *check)
{
	struct ibv_mw *mws[] = { lab->mw1, lab->mw2, lab->mw2, lab->mw2, NULL };
	struct ibv_mr *mrs[] = { lab->mr, NULL, lab->other_mr, lab->mr, lab->mr };
	struct ibv_mw *mw = mws[check->number];
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw,
			     .rkey = mw ? mw->rkey ^ (check->number == 3 ? 0x100 : 1) : 0,
			     .bind_info = { .mr = mrs[check->number],
					    .addr = (uintptr_t)lab->memory,
					    .length = 8 } },
	};

	return post_one(lab->rc, &wr);
}

/* An extended QP: the error is returned at the end, and nothing is posted. */
static int wr_calls(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = lab->node.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(lab->node.ctx, &attr);
	struct ibv_qp_ex *qpx;
	int err;

	if (!qp)
		return errno;
	qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, check->number, sges);
	err = ibv_wr_complete(qpx);
	ibv_destroy_qp(qp);
	return err;
}

const struct check post_checks[] = {
	{ "ibv_post_send", "in RESET", send_in_reset, EINVAL, .number = IBV_WR_SEND },
	{ "ibv_post_send", "in INIT", send_in_init, EINVAL, .number = IBV_WR_SEND },
	{ "ibv_post_send", "opcode 99", send_on_rc, EINVAL, .number = 99 },
	{ "ibv_post_send", "TSO", send_on_rc, EOPNOTSUPP, .number = IBV_WR_TSO },
	{ "ibv_post_send", "flag 1 << 20", send_on_rc, EINVAL, IBV_WR_SEND, 1 << 20 },
	{ "ibv_post_send", "IP checksum", send_on_rc, EINVAL, IBV_WR_SEND, IBV_SEND_IP_CSUM },
	{ "ibv_post_send", "too many SGEs", send_sges, EINVAL, .number = 64 },
	{ "ibv_post_send", "-1 SGEs", send_sges, EINVAL, .number = -1 },
	{ "ibv_post_send", "too much inline data", send_inline, EINVAL, 8192, IBV_WR_SEND },
	{ "ibv_post_send", "READ of inline data", send_inline, EINVAL, 8, IBV_WR_RDMA_READ },
	{ "ibv_post_send", "WRITE on UD", send_on_ud, EINVAL, .number = IBV_WR_RDMA_WRITE },
	{ "ibv_post_send", "atomic on UD", send_on_ud, EINVAL,
	  .number = IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "ibv_post_send", "UD without address handle", send_on_ud, EINVAL, .number = IBV_WR_SEND },
	{ "ibv_post_send", "second of a list", send_list, EINVAL },
	{ "ibv_post_send", "full", send_until_full, ENOMEM },
	{ "ibv_post_send", "bind of type 1", bind_window, EINVAL, .number = 0 },
	{ "ibv_post_send", "bind to nothing", bind_window, EINVAL, .number = 1 },
	{ "ibv_post_send", "bind to another PD's region", bind_window, EPERM, .number = 2 },
	{ "ibv_post_send", "bind to another index", bind_window, EINVAL, .number = 3 },
	{ "ibv_post_send", "bind of nothing", bind_window, EINVAL, .number = 4 },
	{ "ibv_wr_complete", "in RESET", wr_calls, EINVAL, .number = 1 },
	{ "ibv_post_recv", "in RESET", recv_in_reset, EINVAL },
	{ "ibv_post_recv", "with an SRQ", recv_with_srq, EINVAL },
	{ "ibv_post_recv", "too many SGEs", recv_sges, EINVAL, .number = 64 },
	{ "ibv_post_recv", "-1 SGEs", recv_sges, EINVAL, .number = -1 },
	{ "ibv_post_recv", "full", recv_until_full, ENOMEM, .number = 1000 },
	{}
};
