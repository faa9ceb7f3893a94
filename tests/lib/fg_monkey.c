// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Random commands, work requests, doorbells and register accesses. */
#include "fg_monkey.h"

#include <string.h>

#include "engine.h"

#define BUF_PAGES 16
#define VECTORS 3 /* that have rings, the first included */
#define INLINE_MAX 64

static uint32_t rnd(struct fg_monkey *m, uint32_t n)
{
	if (m->draw)
		return m->draw(m->opaque) % n;
	m->rnd = m->rnd * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->rnd >> 33) % n;
}

/* Mostly up to @plausible, sometimes wild. */
static uint32_t number(struct fg_monkey *m, uint32_t plausible)
{
	static const uint32_t wild[] = { 0,	     1,		2,	 3,	     63,
					 64,	     127,	255,	 4095,	     4096,
					 0xffff,     0x10000,	1 << 20, 0x7fffffff, 0x80000000,
					 0xfffffffe, 0xffffffff };

	if (rnd(m, 8))
		return rnd(m, plausible + 1);
	return wild[rnd(m, sizeof(wild) / sizeof(wild[0]))];
}

/* Mostly @good. */
static uint32_t mostly(struct fg_monkey *m, uint32_t good, uint32_t plausible)
{
	return rnd(m, 8) ? good : number(m, plausible);
}

static uint32_t handle(struct fg_monkey *m, int who, enum fg_kind kind)
{
	return mostly(m, m->handle[who][kind][rnd(m, FG_MONKEY_OBJECTS)], 16);
}

static uint64_t pdir(struct fg_monkey *m, int who)
{
	return rnd(m, 8) ? m->buf[who].pdir : (uint64_t)number(m, 100) << 12;
}

static struct fg_end *end_of(struct fg_monkey *m, int who)
{
	return &m->end[who];
}

/* --------------------------------------------------------------- commands */

static void fill_mr(struct fg_monkey *m, int who, struct pvr_cmd_create_mr *cmd)
{
	cmd->pd_handle = handle(m, who, FG_KIND_PD);
	cmd->flags = rnd(m, 8) ? mostly(m, 0, 3) : 1u << rnd(m, 7);
	cmd->access_flags = rnd(m, 64);
	cmd->offset = number(m, 5000);
	cmd->page_shift = mostly(m, PVR_PAGE_SHIFT + rnd(m, 3), 63);
	cmd->pdir_levels = mostly(m, 2, 4);
	if (cmd->flags == PVR_MR_FLAG_FRMR) {
		cmd->nchunks = number(m, 130);
		return;
	}
	cmd->start = FG_USER_VA + number(m, 5000);
	cmd->length = 1 + number(m, 20000);
	cmd->pdir_dma = pdir(m, who);
	cmd->nchunks = mostly(m,
			      (uint32_t)((cmd->start + cmd->length - 1) / PVR_PAGE_SIZE -
					 cmd->start / PVR_PAGE_SIZE + 1),
			      BUF_PAGES);
}

static void fill_qp(struct fg_monkey *m, int who, struct pvr_cmd_create_qp *cmd)
{
	const uint32_t sge = 1 + rnd(m, 6);

	cmd->pdir_dma = pdir(m, who);
	cmd->pd_handle = handle(m, who, FG_KIND_PD);
	cmd->send_cq_handle = handle(m, who, FG_KIND_CQ);
	cmd->recv_cq_handle = handle(m, who, FG_KIND_CQ);
	cmd->max_send_wr = mostly(m, 1u << rnd(m, 6), 100);
	cmd->max_recv_wr = mostly(m, 1u << rnd(m, 6), 100);
	cmd->max_send_sge = sge;
	cmd->max_recv_sge = sge;
	cmd->send_chunks = (uint16_t)mostly(m, BUF_PAGES / 2, BUF_PAGES);
	cmd->total_chunks = (uint16_t)mostly(m, BUF_PAGES, 2 * BUF_PAGES);
	cmd->qp_type = (uint8_t)mostly(m, PVR_QPT_RC + rnd(m, 3), 8);
	cmd->max_inline_data = rnd(m, 2) ? 0 : number(m, 1000);
	cmd->flags = (uint8_t)mostly(m, rnd(m, 2), 255);
	if (!rnd(m, 4)) {
		cmd->is_srq = 1;
		cmd->srq_handle = handle(m, who, FG_KIND_SRQ);
		cmd->max_recv_wr = 0;
	}
}

static void fill_modify_qp(struct fg_monkey *m, int who, struct pvr_cmd_modify_qp *cmd)
{
	struct fg_end *peer = end_of(m, (int)rnd(m, 2));

	cmd->qp_handle = handle(m, who, FG_KIND_QP);
	cmd->attr_mask = rnd(m, 3) ? 1u | 1u << rnd(m, 24) | 1u << rnd(m, 24) : rnd(m, PVR_QPA_ALL);
	cmd->attrs = (struct pvr_qp_attr){
		.qp_state = number(m, PVR_QPS_NUM),
		.cur_qp_state = rnd(m, PVR_QPS_NUM),
		.path_mtu = number(m, 5),
		.dest_qp_num = rnd(m, 2) ? peer->qp.qpn : number(m, 20),
		.port_num = 1,
		.timeout = (uint8_t)number(m, 31),
		.retry_cnt = (uint8_t)number(m, 7),
		.rnr_retry = (uint8_t)number(m, 7),
		.min_rnr_timer = (uint8_t)number(m, 31),
		.qp_access_flags = rnd(m, 16),
		.ah_attr = { .ah_flags = PVR_AH_GRH, .sgid_index = (uint8_t)number(m, 2) },
	};
	memcpy(cmd->attrs.ah_attr.dgid, peer->gid, 16);
}

static void fill_modify_srq(struct fg_monkey *m, int who, struct pvr_cmd_modify_srq *cmd)
{
	cmd->srq_handle = handle(m, who, FG_KIND_SRQ);
	cmd->attr_mask = mostly(m, 1 + rnd(m, 3), 4);
	cmd->attrs.srq_limit = number(m, 16);
	cmd->attrs.max_wr = mostly(m, 1u << rnd(m, 8), 100);
	cmd->pdir_dma = pdir(m, who);
	cmd->nchunks = mostly(m, BUF_PAGES, 2 * BUF_PAGES);
}

static void fill_extension(struct fg_monkey *m, int who, union pvr_cmd_req *req)
{
	switch (req->hdr.cmd) {
	case PVR_CMD_RESIZE_CQ:
		req->resize_cq.cqe = mostly(m, 1u << rnd(m, 8), 4096);
		req->resize_cq.pdir_dma = pdir(m, who);
		req->resize_cq.nchunks = mostly(m, BUF_PAGES, 2 * BUF_PAGES);
		break;
	case PVR_CMD_MODIFY_SRQ:
		fill_modify_srq(m, who, &req->modify_srq);
		break;
	case PVR_CMD_SET_CQ_RING:
		req->set_cq_ring.comp_vector = number(m, PVR_CQ_VECTORS_MAX);
		req->set_cq_ring.ring.num_pages = mostly(m, BUF_PAGES, 600);
		req->set_cq_ring.ring.pdir_dma = pdir(m, who);
		break;
	case PVR_CMD_SET_PAGES:
		req->set_pages.npages = number(m, PVR_SET_PAGES_MAX);
		req->set_pages.first = number(m, 2 * BUF_PAGES);
		req->set_pages.list_dma = pdir(m, who);
		req->set_pages.state = mostly(m, rnd(m, PVR_PAGES_NUM), 5);
		break;
	case PVR_CMD_ATTACH_MCAST:
	case PVR_CMD_DETACH_MCAST:
		req->mcast.mgid[0] = (uint8_t)mostly(m, 0xff, 255);
		req->mcast.mgid[1] = 0x0e;
		req->mcast.mgid[15] = (uint8_t)rnd(m, 4);
		break;
	}
}

static void fill(struct fg_monkey *m, int who, union pvr_cmd_req *req)
{
	switch (req->hdr.cmd) {
	case PVR_CMD_QUERY_PORT:
	case PVR_CMD_QUERY_PKEY:
		req->query_pkey.port_num = (uint8_t)mostly(m, 1, 3);
		break;
	case PVR_CMD_CREATE_UC:
		req->create_uc.pfn = (FG_BAR2_GPA >> PVR_PAGE_SHIFT) + number(m, 8);
		break;
	case PVR_CMD_CREATE_PD:
		req->create_pd.ctx_handle = rnd(m, 2) ? 0 : handle(m, who, FG_KIND_UC);
		break;
	case PVR_CMD_CREATE_MR:
		fill_mr(m, who, &req->create_mr);
		break;
	case PVR_CMD_CREATE_CQ:
		req->create_cq.pdir_dma = pdir(m, who);
		req->create_cq.ctx_handle = rnd(m, 2) ? 0 : handle(m, who, FG_KIND_UC);
		req->create_cq.cqe = mostly(m, 1u << rnd(m, 8), 4096);
		req->create_cq.nchunks = mostly(m, BUF_PAGES, 2 * BUF_PAGES);
		req->create_cq.comp_vector = number(m, PVR_CQ_VECTORS_MAX);
		req->create_cq.flags = mostly(m, PVR_CQ_TIMESTAMP * rnd(m, 2), 4);
		break;
	case PVR_CMD_CREATE_SRQ:
		req->create_srq.pdir_dma = pdir(m, who);
		req->create_srq.pd_handle = handle(m, who, FG_KIND_PD);
		req->create_srq.nchunks = mostly(m, BUF_PAGES, 2 * BUF_PAGES);
		req->create_srq.attrs.max_wr = mostly(m, 1u << rnd(m, 8), 100);
		req->create_srq.attrs.max_sge = number(m, 6);
		break;
	case PVR_CMD_CREATE_QP:
		fill_qp(m, who, &req->create_qp);
		break;
	case PVR_CMD_MODIFY_QP:
		fill_modify_qp(m, who, &req->modify_qp);
		break;
	case PVR_CMD_CREATE_BIND:
		req->create_bind.index = number(m, 16);
		req->create_bind.gid_type = PVR_GID_TYPE_ROCE_V2;
		fg_gid_from_ipv4(req->create_bind.new_gid, 10, 0, 0, (uint8_t)rnd(m, 8));
		break;
	case PVR_CMD_DESTROY_BIND:
		req->destroy_bind.index = number(m, 16);
		fg_gid_from_ipv4(req->destroy_bind.dest_gid, 10, 0, 0, (uint8_t)rnd(m, 8));
		break;
	default:
		fill_extension(m, who, req);
	}
}

/* The kind of object that a command creates, destroys or queries, by number. */
static const uint8_t kinds[PVR_CMD_NUM] = {
	[PVR_CMD_CREATE_UC] = FG_KIND_UC,    [PVR_CMD_DESTROY_UC] = FG_KIND_UC,
	[PVR_CMD_CREATE_PD] = FG_KIND_PD,    [PVR_CMD_DESTROY_PD] = FG_KIND_PD,
	[PVR_CMD_CREATE_MR] = FG_KIND_MR,    [PVR_CMD_DESTROY_MR] = FG_KIND_MR,
	[PVR_CMD_CREATE_CQ] = FG_KIND_CQ,    [PVR_CMD_DESTROY_CQ] = FG_KIND_CQ,
	[PVR_CMD_RESIZE_CQ] = FG_KIND_CQ,    [PVR_CMD_CREATE_QP] = FG_KIND_QP,
	[PVR_CMD_DESTROY_QP] = FG_KIND_QP,   [PVR_CMD_QUERY_QP] = FG_KIND_QP,
	[PVR_CMD_CREATE_SRQ] = FG_KIND_SRQ,  [PVR_CMD_DESTROY_SRQ] = FG_KIND_SRQ,
	[PVR_CMD_QUERY_SRQ] = FG_KIND_SRQ,   [PVR_CMD_ATTACH_MCAST] = FG_KIND_QP,
	[PVR_CMD_DETACH_MCAST] = FG_KIND_QP, [PVR_CMD_QUERY_STATS] = FG_KIND_QP,
	[PVR_CMD_SUM_STATS] = FG_KIND_QP,    [PVR_CMD_MODIFY_CQ] = FG_KIND_CQ,
	[PVR_CMD_QUERY_FAULT] = FG_KIND_MR,  [PVR_CMD_SET_PAGES] = FG_KIND_MR,
};

static bool is_create(uint32_t cmd)
{
	return cmd == PVR_CMD_CREATE_UC || cmd == PVR_CMD_CREATE_PD || cmd == PVR_CMD_CREATE_MR ||
	       cmd == PVR_CMD_CREATE_CQ || cmd == PVR_CMD_CREATE_QP || cmd == PVR_CMD_CREATE_SRQ;
}

static void random_command(struct fg_monkey *m, int who)
{
	union pvr_cmd_req req;
	union pvr_cmd_resp resp;
	enum fg_kind kind;

	memset(&req, 0, sizeof(req));
	req.hdr.cmd = number(m, PVR_CMD_NUM);
	kind = req.hdr.cmd < PVR_CMD_NUM ? kinds[req.hdr.cmd] : FG_KIND_UC;
	req.handle.handle = handle(m, who, kind);
	fill(m, who, &req);
	if (!is_create(req.hdr.cmd)) {
		fg_cmd(m->guest[who], &req, sizeof(req), NULL, 0);
		return;
	}
	/* Slot 0 of each kind is the end's own: it is not forgotten. */
	if (!fg_cmd(m->guest[who], &req, sizeof(req), &resp, sizeof(resp)))
		m->handle[who][kind][1 + rnd(m, FG_MONKEY_OBJECTS - 1)] =
			kind == FG_KIND_QP ? resp.create_qp.qp_handle : resp.create_pd.pd_handle;
}

/* ---------------------------------------------------------- work requests */

static void random_sges(struct fg_monkey *m, const struct fg_end *end, struct pvrdma_sge sge[4])
{
	for (int i = 0; i < 4; i++) {
		sge[i] = fg_sge(&end->mr, number(m, 50000), number(m, 9000));
		if (!rnd(m, 8) && m->demand_key[end == &m->end[1]])
			sge[i].lkey = m->demand_key[end == &m->end[1]];
		sge[i].lkey = mostly(m, sge[i].lkey, 10000);
	}
}

static void random_send(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who), *peer = end_of(m, rnd(m, 8) ? !who : who);
	struct pvrdma_av av = fg_av(&end->pd, peer->gid, (uint8_t)mostly(m, 0, 2));
	struct pvrdma_sge sge[4];
	struct fg_wr wr = {
		.wr_id = rnd(m, 1000),
		.opcode = mostly(m, rnd(m, PVRDMA_WR_LSO), PVRDMA_WR_ERROR),
		.flags = number(m, 31),
		.sge = sge,
		.num_sge = mostly(m, 1, 4),
		.imm = rnd(m, 1000),
		.remote_addr = peer->mr.start + number(m, 50000),
		.rkey = mostly(m, peer->mr.rkey, 10000),
		.compare_add = rnd(m, 3),
		.swap = rnd(m, 3),
		.av = &av,
		.remote_qpn = mostly(m, peer->qp.qpn, 20),
		.remote_qkey = mostly(m, FG_QKEY, 10),
	};

	random_sges(m, end, sge);
	if (end->qp.type == PVR_QPT_UD) {
		wr.opcode = mostly(m, PVRDMA_WR_SEND + rnd(m, 2), PVRDMA_WR_ERROR);
		sge[0].length = mostly(m, rnd(m, 4097), 9000);
	}
	if (wr.opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP ||
	    wr.opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD) {
		sge[0].length = mostly(m, 8, 16);
		wr.remote_addr &= ~(uint64_t)(rnd(m, 8) ? 7 : 0);
	}
	if (rnd(m, 4) == 0 && m->fast_key[!who])
		wr.rkey = m->fast_key[!who];
	if (rnd(m, 8) == 0 && m->window_key[!who])
		wr.rkey = m->window_key[!who];
	if (rnd(m, 8) == 0 && m->demand_key[!who])
		wr.rkey = m->demand_key[!who];
	if (rnd(m, 8) == 0) {
		wr.flags |= PVR_SEND_INLINE;
		wr.num_sge = mostly(m, 0, 4);
		wr.data = m->buf[who].va;
		wr.data_len = number(m, INLINE_MAX);
	}
	fg_put_send(&end->qp, &wr);
}

/* A window that is bound, often to what cannot be bound. */
static void random_bind(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&end->qp, end->qp.sq_tail);
	const struct fg_wr wr = { .opcode = PVRDMA_WR_BIND_MW };
	uint32_t key = mostly(m, m->window_key[who], 1 << 20);
	struct pvr_wqe_bind_mw bind = {
		.addr = end->mr.start + number(m, 50000),
		.length = number(m, 9000),
		.mw_rkey = key,
		.new_rkey = mostly(m, (key & ~0xffu) | rnd(m, 256), 1 << 20),
		.mr_lkey = mostly(m, end->mr.lkey, 10000),
		.access_flags = mostly(m, rnd(m, 8) << 1, 0xff),
	};

	if (!fg_put_send(&end->qp, &wr))
		return;
	memcpy(&wqe->wr, &bind, sizeof(bind));
	fg_ring_send(&end->qp);
	fg_run_bounded(m->host, 1000);
	if (key == m->window_key[who] && rnd(m, 2))
		m->window_key[who] = bind.new_rkey;
}

static void random_recv(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);
	struct pvrdma_sge sge[4];
	uint32_t num_sge = mostly(m, 1 + rnd(m, 4), 4);

	random_sges(m, end, sge);
	sge[0].length = mostly(m, 9000, 100);
	if (m->has_srq)
		fg_put_srq_recv(&m->srq[who], rnd(m, 1000), sge, num_sge);
	else
		fg_put_recv(&end->qp, rnd(m, 1000), sge, num_sge);
}

static void invalidate(struct fg_monkey *m, int who, enum pvrdma_wr_opcode opcode, uint32_t key)
{
	struct fg_end *end = end_of(m, who);
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&end->qp, end->qp.sq_tail);
	const struct fg_wr wr = { .opcode = opcode };

	if (fg_put_send(&end->qp, &wr))
		wqe->ex.invalidate_rkey = key;
}

/* A fast registration, and often an invalidation of it, local or by the peer. */
static void random_registration(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&end->qp, end->qp.sq_tail);
	const struct fg_wr wr = { .opcode = PVRDMA_WR_FAST_REG_MR };
	uint32_t key = mostly(m, m->fast_key[who], 1 << 20);

	if (end->qp.type != PVR_QPT_RC || !fg_put_send(&end->qp, &wr))
		return;
	if (rnd(m, 2))
		key = (key & ~0xffu) | rnd(m, 256);
	wqe->wr.fast_reg.iova_start = FG_USER_VA + number(m, 9000);
	wqe->wr.fast_reg.pl_pdir_dma = pdir(m, who);
	wqe->wr.fast_reg.page_shift = mostly(m, PVR_PAGE_SHIFT, 63);
	wqe->wr.fast_reg.page_list_len = mostly(m, BUF_PAGES, 130);
	wqe->wr.fast_reg.length = number(m, 50000);
	wqe->wr.fast_reg.access_flags = mostly(m, 15, 255);
	wqe->wr.fast_reg.rkey = key;
	if (key >> 8 == m->fast_key[who] >> 8)
		m->fast_key[who] = key;
	fg_ring_send(&end->qp);
	fg_run_bounded(m->host, 1000);
	key = mostly(m, key, 1 << 20);
	if (rnd(m, 3))
		invalidate(m, who, PVRDMA_WR_LOCAL_INV, key);
	else if (rnd(m, 2))
		invalidate(m, !who, PVRDMA_WR_SEND_WITH_INV, key);
}

static void random_index(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);
	struct pvr_ring *rings[] = { &end->qp.ring->tx, &end->qp.ring->rx, end->scq.ring,
				     end->rcq.ring, m->has_srq ? m->srq[who].ring : NULL };
	struct pvr_ring *ring = rings[rnd(m, 5)];

	if (!ring)
		return;
	if (rnd(m, 2))
		ring->prod_tail = number(m, 128);
	else
		ring->cons_head = number(m, 128);
}

/* To a ring of the right form; what is in the queue may not fit. */
static void random_resize(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);

	if (m->has_srq && rnd(m, 2))
		fg_srq_resize(&m->srq[who], 1u << rnd(m, 8));
	else
		fg_cq_resize(rnd(m, 2) ? &end->scq : &end->rcq, 1u << rnd(m, 9));
}

/* ------------------------------------------------- doorbells and registers */

static void random_doorbell(struct fg_monkey *m, int who)
{
	static const struct {
		enum fg_kind kind;
		uint32_t offset, bits;
	} bells[] = {
		{ FG_KIND_QP, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND },
		{ FG_KIND_QP, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_RECV },
		{ FG_KIND_CQ, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM },
		{ FG_KIND_CQ, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM_SOL },
		{ FG_KIND_SRQ, PVRDMA_UAR_SRQ_OFFSET, PVR_DB_SRQ_RECV },
	};
	const uint32_t i = rnd(m, sizeof(bells) / sizeof(bells[0]));
	uint32_t value = rnd(m, 2) ? m->handle[who][bells[i].kind][0]
				   : handle(m, who, bells[i].kind);

	value |= mostly(m, bells[i].bits, 0x7fffffff);
	fg_uar_write(m->guest[who], mostly(m, 0, 8) % PVR_MAX_UAR,
		     mostly(m, bells[i].offset, 16) % PVR_PAGE_SIZE, value);
}

static void random_register(struct fg_monkey *m, int who)
{
	struct fg_guest *g = m->guest[who];
	uint64_t offset = number(m, 0x40);

	if (offset == PVR_REG_CTL || offset == PVR_REG_DSRHIGH || offset == PVR_REG_DSRLOW)
		return; /* start_over() resets */
	if (rnd(m, 2))
		fg_reg_write(g, offset, number(m, 256));
	else
		fg_reg_read(g, offset);
	fg_reg_write(g, PVR_REG_IMR, 0);
}

/* ------------------------------------------------------------------- ends */

/* The device refuses no valid command of a new driver. */
static void must(struct fg_monkey *m, int who, int err)
{
	if (err)
		fg_die("%s: a valid command of a new driver fails: %d", m->guest[who]->name, err);
}

static void drop(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);

	fg_buf_exit(&end->qp.buf);
	fg_buf_exit(&end->buf);
	fg_buf_exit(&end->scq.buf);
	fg_buf_exit(&end->rcq.buf);
	fg_buf_exit(&m->srq[who].buf);
	for (uint32_t v = 1; v < VECTORS; v++)
		fg_buf_exit(&m->guest[who]->vector[v].buf);
}

/* A region for fast registration. */
static uint32_t fast_mr_create(const struct fg_pd *pd, uint32_t pages, struct fg_mr *mr)
{
	const struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					       .pd_handle = pd->handle,
					       .flags = PVR_MR_FLAG_FRMR,
					       .nchunks = pages };

	return fg_mr_create_as(pd, &req, mr);
}

static void make_fast_region(struct fg_monkey *m, int who)
{
	struct fg_mr mr;

	m->fast_key[who] = fast_mr_create(&end_of(m, who)->pd, BUF_PAGES, &mr) ? 0 : mr.rkey;
}

/* A region on demand at the addresses of the end's region. */
static void make_demand(struct fg_monkey *m, int who)
{
	struct pvr_cmd_create_mr req = fg_layout_request(&end_of(m, who)->pd, 0, PVR_PAGE_SHIFT,
							 end_of(m, who)->mr.start, 0,
							 2 * BUF_PAGES * PVR_PAGE_SIZE);
	struct fg_mr mr;

	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	m->demand_key[who] = fg_mr_create_as(&end_of(m, who)->pd, &req, &mr) ? 0 : mr.rkey;
	m->handle[who][FG_KIND_MR][1] = m->demand_key[who] ? mr.handle : 0;
}

static void make_window(struct fg_monkey *m, int who)
{
	uint32_t flag = rnd(m, 2) ? PVR_MR_FLAG_MW1 : PVR_MR_FLAG_MW2;
	struct fg_mr mw;

	m->window_key[who] = fg_mw_create(&end_of(m, who)->pd, flag, &mw) ? 0 : mw.rkey;
}

/* The receive CQ notifies on a vector of its own. */
static void use_vectors(struct fg_monkey *m, int who)
{
	struct fg_guest *g = m->guest[who];
	struct fg_end *end = end_of(m, who);

	for (uint32_t v = 1; v < VECTORS; v++)
		must(m, who, fg_vector_open(g, v));
	must(m, who, fg_cq_destroy(&end->rcq));
	must(m, who, fg_cq_create_on(&g->kernel, 1 + rnd(m, VECTORS - 1), FG_END_CQE, &end->rcq));
}

static void open_end(struct fg_monkey *m, int who, enum pvr_qp_type type)
{
	struct fg_guest *g = m->guest[who];
	struct fg_end *end = end_of(m, who);
	struct fg_qp_spec spec;
	drop(m, who);
	pvr_adapter_set_bus_master(g->adapter, true);
	must(m, who, fg_guest_boot(g));
	fg_gid_from_mac(end->gid, g->config.mac);
	must(m, who, fg_bind_gid(g, 0, end->gid));
	fg_end_open(end, g, type);
	must(m, who, fg_qp_destroy(&end->qp));
	if (g->config.ext & PVR_EXT_CQ_VECTORS)
		use_vectors(m, who);
	spec = (struct fg_qp_spec){
		.type = end->qp.type, .pd = &end->pd, .scq = &end->scq, .rcq = &end->rcq
	};
	if (g->config.ext & PVR_EXT_INLINE)
		spec.max_inline = INLINE_MAX;
	if (m->has_srq) {
		must(m, who, fg_srq_create(&end->pd, 64, 4, &m->srq[who]));
		spec.srq = &m->srq[who];
	}
	must(m, who, fg_qp_create(&spec, &end->qp));
	make_fast_region(m, who);
	make_window(m, who);
	memset(m->handle[who], 0, sizeof(m->handle[who]));
	make_demand(m, who);
	m->handle[who][FG_KIND_PD][0] = end->pd.handle;
	m->handle[who][FG_KIND_MR][0] = end->mr.handle;
	m->handle[who][FG_KIND_CQ][0] = end->scq.handle;
	m->handle[who][FG_KIND_CQ][1] = end->rcq.handle;
	m->handle[who][FG_KIND_QP][0] = end->qp.handle;
	m->handle[who][FG_KIND_SRQ][0] = m->srq[who].handle;
}

static void reconnect(struct fg_monkey *m)
{
	struct fg_end *a = &m->end[0], *b = &m->end[1];

	/* Any of these may fail: the commands have left the QPs in any state. */
	fg_qp_to_reset(&a->qp);
	fg_qp_to_reset(&b->qp);
	fg_qp_connect(&a->qp, NULL, b->gid, b->qp.qpn);
	fg_qp_connect(&b->qp, NULL, a->gid, a->qp.qpn);
}

void fg_monkey_open(struct fg_monkey *m, enum pvr_qp_type type, bool has_srq)
{
	m->has_srq = has_srq;
	open_end(m, 0, type);
	open_end(m, 1, type);
	reconnect(m);
}

static void start_over(struct fg_monkey *m)
{
	enum pvr_qp_type type = rnd(m, 3) ? PVR_QPT_RC : PVR_QPT_UD;

	if (m->guest[0]->config.ext & PVR_EXT_UC && !rnd(m, 4))
		type = PVR_QPT_UC;
	fg_monkey_open(m, type, !rnd(m, 3));
}

static void drain(struct fg_monkey *m, int who)
{
	struct fg_end *end = end_of(m, who);

	/* With invalid indices a CQ seems endless. */
	for (int i = 0; i < 300; i++) {
		struct pvrdma_cqe cqe;

		if (!fg_cq_poll(&end->scq, &cqe) && !fg_cq_poll(&end->rcq, &cqe))
			break;
	}
	fg_events_count(m->guest[who], 0, 0);
	for (uint32_t v = 0; v < VECTORS; v++)
		if (!v || m->guest[who]->vector[v].buf.view)
			fg_vector_count(m->guest[who], v, 0);
}

/* ------------------------------------------------------------------------ steps */

void fg_monkey_step(struct fg_monkey *m)
{
	int who = (int)rnd(m, 2);
	uint32_t what = rnd(m, 1000);

	if (what < 200)
		random_command(m, who);
	else if (what < 400)
		random_send(m, who);
	else if (what < 600)
		random_recv(m, who);
	else if (what < 640)
		random_registration(m, who);
	else if (what < 660)
		random_bind(m, who);
	else if (what < 680)
		random_resize(m, who);
	else if (what < 890)
		random_doorbell(m, who);
	else if (what < 910)
		random_register(m, who);
	else if (what < 915)
		random_index(m, who);
	else if (what < 950)
		drain(m, who);
	else if (what < 980)
		reconnect(m);
	else if (what < 984)
		pvr_adapter_set_link(m->guest[who]->adapter, rnd(m, 4));
	else if (what < 988)
		pvr_adapter_set_bus_master(m->guest[who]->adapter, rnd(m, 4));
	else if (what < 995)
		m->host->now += (uint64_t)rnd(m, 1000) * FG_MS;
	else if (!m->keeps_ends)
		start_over(m);
	if (!rnd(m, 3) && !fg_run_bounded(m->host, 100000))
		fg_die("the device does not come to rest");
}

void fg_monkey_recover(struct fg_monkey *m)
{
	for (int i = 0; i < 2; i++) {
		pvr_adapter_set_bus_master(m->guest[i]->adapter, true);
		pvr_adapter_set_link(m->guest[i]->adapter, true);
		fg_reg_write(m->guest[i], PVR_REG_CTL, PVR_CTL_RESET);
	}
	fg_run(m->host);
	m->has_srq = false;
	open_end(m, 0, PVR_QPT_RC);
	open_end(m, 1, PVR_QPT_RC);
	fg_end_connect(&m->end[0], &m->end[1], NULL);
}

void fg_monkey_init(struct fg_monkey *m, struct fg_host *host, struct fg_guest *first,
		    struct fg_guest *second, uint64_t seed)
{
	*m = (struct fg_monkey){ .host = host, .guest = { first, second }, .rnd = seed };
	for (int i = 0; i < 2; i++)
		fg_buf_init(&m->buf[i], &m->guest[i]->ram, BUF_PAGES, FG_SCATTERED);
	start_over(m);
}
