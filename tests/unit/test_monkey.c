// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two guests that do anything, at random but repeatably, next to two that work. Asserted
 * are invariants only: nothing crashes or hangs, and the working pair keeps working.
 */
#include "common.h"

#define STEPS 20000
#define OBJECTS 8

struct monkey {
	struct t_env *env;
	uint64_t rnd;
	struct fg_end c, d; /* the bystanders, on vm3 and vm4 */
	/* What the monkeys have, or had; some of it is stale. */
	uint32_t handle[2][OBJECTS];
	struct fg_buf buf[2];
};

static uint32_t rnd(struct monkey *m, uint32_t n)
{
	m->rnd = m->rnd * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->rnd >> 33) % n;
}

/* Mostly plausible, sometimes wild. */
static uint32_t number(struct monkey *m, uint32_t plausible)
{
	static const uint32_t wild[] = { 0,	     1,		 2,	     3,
					 63,	     64,	 127,	     255,
					 4095,	     4096,	 0xffff,     0x10000,
					 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

	if (rnd(m, 8))
		return rnd(m, plausible + 1);
	return wild[rnd(m, sizeof(wild) / sizeof(wild[0]))];
}

static uint32_t some_handle(struct monkey *m, int who)
{
	return rnd(m, 4) ? m->handle[who][rnd(m, OBJECTS)] : number(m, 16);
}

static uint64_t some_pdir(struct monkey *m, int who)
{
	return rnd(m, 8) ? m->buf[who].pdir : (uint64_t)number(m, 100) << 12;
}

static struct fg_end *monkey_end(struct monkey *m, int who)
{
	return who ? &m->env->b : &m->env->a;
}

static void fill_create(struct monkey *m, int who, union pvr_cmd_req *req)
{
	const uint32_t wr = 1u << rnd(m, 8), sge = 1 + rnd(m, 6);

	switch (req->hdr.cmd) {
	case PVR_CMD_CREATE_UC:
		req->create_uc.pfn = (FG_BAR2_GPA >> PVR_PAGE_SHIFT) + number(m, 8);
		break;
	case PVR_CMD_CREATE_PD:
		req->create_pd.ctx_handle = some_handle(m, who);
		break;
	case PVR_CMD_CREATE_MR:
		req->create_mr.start = FG_USER_VA + number(m, 5000);
		req->create_mr.length = 1 + number(m, 20000);
		req->create_mr.pdir_dma = some_pdir(m, who);
		req->create_mr.pd_handle = some_handle(m, who);
		req->create_mr.access_flags = rnd(m, 16);
		req->create_mr.flags = rnd(m, 6) ? 0 : rnd(m, 4);
		req->create_mr.nchunks =
			(uint32_t)((req->create_mr.start + req->create_mr.length - 1) / 4096 -
				   req->create_mr.start / 4096 + 1);
		break;
	case PVR_CMD_CREATE_CQ:
		req->create_cq.pdir_dma = some_pdir(m, who);
		req->create_cq.ctx_handle = rnd(m, 3) ? 0 : some_handle(m, who);
		req->create_cq.cqe = rnd(m, 8) ? wr : number(m, 4096);
		req->create_cq.nchunks = number(m, 16);
		break;
	case PVR_CMD_CREATE_SRQ:
		req->create_srq.pdir_dma = some_pdir(m, who);
		req->create_srq.pd_handle = some_handle(m, who);
		req->create_srq.nchunks = number(m, 16);
		req->create_srq.attrs.max_wr = wr;
		req->create_srq.attrs.max_sge = sge;
		break;
	case PVR_CMD_CREATE_QP:
		req->create_qp.pdir_dma = some_pdir(m, who);
		req->create_qp.pd_handle = some_handle(m, who);
		req->create_qp.send_cq_handle = some_handle(m, who);
		req->create_qp.recv_cq_handle = some_handle(m, who);
		req->create_qp.max_send_wr = rnd(m, 8) ? wr : number(m, 100);
		req->create_qp.max_recv_wr = rnd(m, 8) ? wr : number(m, 100);
		req->create_qp.max_send_sge = sge;
		req->create_qp.max_recv_sge = sge;
		req->create_qp.send_chunks = (uint16_t)number(m, 8);
		req->create_qp.total_chunks = (uint16_t)number(m, 16);
		req->create_qp.qp_type = (uint8_t)(rnd(m, 8) ? 2 + 2 * rnd(m, 2) : rnd(m, 8));
		req->create_qp.is_srq = !rnd(m, 6);
		req->create_qp.srq_handle = some_handle(m, who);
		break;
	case PVR_CMD_CREATE_BIND:
		req->create_bind.index = number(m, 16);
		req->create_bind.gid_type = PVR_GID_TYPE_ROCE_V2;
		fg_gid_from_ipv4(req->create_bind.new_gid, 10, 0, 0, (uint8_t)rnd(m, 8));
		break;
	}
}

static void fill_modify(struct monkey *m, int who, union pvr_cmd_req *req)
{
	struct pvr_cmd_modify_qp *cmd = &req->modify_qp;
	struct fg_end *peer = monkey_end(m, rnd(m, 2));

	cmd->qp_handle = rnd(m, 3) ? monkey_end(m, who)->qp.handle : some_handle(m, who);
	cmd->attr_mask =
		rnd(m, 3) ? 0x1 | 1u << rnd(m, 24) | 1u << rnd(m, 24) : rnd(m, PVR_QPA_ALL);
	cmd->attrs.qp_state = number(m, PVR_QPS_NUM);
	cmd->attrs.cur_qp_state = rnd(m, PVR_QPS_NUM);
	cmd->attrs.path_mtu = number(m, 5);
	cmd->attrs.dest_qp_num = rnd(m, 2) ? peer->qp.qpn : number(m, 20);
	cmd->attrs.port_num = 1;
	cmd->attrs.timeout = (uint8_t)number(m, 31);
	cmd->attrs.retry_cnt = (uint8_t)number(m, 7);
	cmd->attrs.rnr_retry = (uint8_t)number(m, 7);
	cmd->attrs.min_rnr_timer = (uint8_t)number(m, 31);
	cmd->attrs.qp_access_flags = rnd(m, 16);
	cmd->attrs.ah_attr.ah_flags = 1;
	cmd->attrs.ah_attr.sgid_index = (uint8_t)number(m, 2);
	memcpy(cmd->attrs.ah_attr.dgid, peer->gid, 16);
}

static void random_command(struct monkey *m, int who)
{
	struct fg_guest *g = m->env->g[who];
	union pvr_cmd_req req;
	union pvr_cmd_resp resp;
	uint32_t err;

	memset(&req, 0, sizeof(req));
	req.hdr.cmd = number(m, PVR_CMD_NUM);
	req.handle.handle = some_handle(m, who);
	fill_create(m, who, &req);
	if (req.hdr.cmd == PVR_CMD_MODIFY_QP)
		fill_modify(m, who, &req);
	if (req.hdr.cmd == PVR_CMD_MODIFY_SRQ || req.hdr.cmd == PVR_CMD_RESIZE_CQ)
		req.modify_srq.attr_mask = rnd(m, 4);
	/* The monkeys' own ends live a little longer. */
	if ((req.hdr.cmd == PVR_CMD_DESTROY_UC || req.hdr.cmd == PVR_CMD_DESTROY_QP) && rnd(m, 4))
		return;
	memset(g->resp_slot, 0, PVR_CMD_RESP_SIZE);
	err = fg_cmd(g, &req, sizeof(req), NULL, 0);
	memcpy(&resp, g->resp_slot, sizeof(resp));
	if (!err && resp.hdr.ack == (PVR_CMD_RESP_ACK | req.hdr.cmd))
		m->handle[who][rnd(m, OBJECTS)] = resp.create_pd.pd_handle;
}

static void random_register(struct monkey *m, int who)
{
	struct fg_guest *g = m->env->g[who];
	uint64_t offset = number(m, 0x40);

	if (offset == PVR_REG_CTL || offset == PVR_REG_DSRHIGH || offset == PVR_REG_DSRLOW)
		return; /* reset comes in its own time */
	if (rnd(m, 2))
		fg_reg_write(g, offset, number(m, 256));
	else
		fg_reg_read(g, offset);
	fg_reg_write(g, PVR_REG_IMR, 0);
}

static void random_request(struct monkey *m, int who)
{
	struct fg_end *end = monkey_end(m, who), *peer = monkey_end(m, !who);
	struct pvrdma_sge sge[4];
	struct pvrdma_av av = fg_av(&end->pd, peer->gid, (uint8_t)number(m, 2));
	struct fg_wr wr = {
		.wr_id = rnd(m, 1000),
		.opcode = number(m, PVRDMA_WR_ERROR),
		.flags = number(m, 31),
		.sge = sge,
		.num_sge = number(m, 4),
		.imm = rnd(m, 1000),
		.remote_addr = peer->mr.start + number(m, 70000),
		.rkey = rnd(m, 8) ? peer->mr.rkey : number(m, 10000),
		.av = &av,
		.remote_qpn = peer->qp.qpn,
		.remote_qkey = FG_QKEY,
	};

	for (int i = 0; i < 4; i++) {
		sge[i] = fg_sge(&end->mr, number(m, 60000), number(m, 9000));
		if (!rnd(m, 16))
			sge[i].lkey = number(m, 10000);
	}
	if (rnd(m, 2))
		fg_put_send(&end->qp, &wr);
	else
		fg_put_recv(&end->qp, wr.wr_id, sge, wr.num_sge);
}

static void random_index(struct monkey *m, int who)
{
	struct fg_end *end = monkey_end(m, who);
	struct pvr_ring *rings[] = { &end->qp.ring->tx, &end->qp.ring->rx, end->scq.ring,
				     end->rcq.ring };
	struct pvr_ring *ring = rings[rnd(m, 4)];

	if (rnd(m, 2))
		ring->prod_tail = number(m, 128);
	else
		ring->cons_head = number(m, 128);
}

static void random_doorbell(struct monkey *m, int who)
{
	struct fg_end *end = monkey_end(m, who);
	uint32_t page = rnd(m, 4) ? 0 : number(m, 8);
	uint32_t handle = rnd(m, 2)   ? end->qp.handle
			  : rnd(m, 2) ? end->scq.handle
				      : some_handle(m, who);

	fg_uar_write(m->env->g[who], page, number(m, 3) * 4 % 64, handle | rnd(m, 8) << 29);
}

static void new_end(struct monkey *m, int who)
{
	struct fg_guest *g = m->env->g[who];
	struct fg_end *end = monkey_end(m, who);

	fg_buf_exit(&end->qp.buf);
	fg_buf_exit(&end->buf);
	fg_buf_exit(&end->scq.buf);
	fg_buf_exit(&end->rcq.buf);
	pvr_adapter_set_bus_master(g->adapter, true);
	expect_ok(fg_guest_boot(g));
	fg_gid_from_mac(end->gid, g->config.mac);
	expect_ok(fg_bind_gid(g, 0, end->gid));
	fg_end_open(end, g, rnd(m, 3) ? PVR_QPT_RC : PVR_QPT_UD);
}

static void reconnect(struct monkey *m)
{
	struct fg_end *a = &m->env->a, *b = &m->env->b;

	/* Any of it may fail: who knows what the commands have done to the QPs. */
	fg_qp_to_reset(&a->qp);
	fg_qp_to_reset(&b->qp);
	fg_qp_connect(&a->qp, NULL, b->gid, b->qp.qpn);
	fg_qp_connect(&b->qp, NULL, a->gid, a->qp.qpn);
	a->scq.head = a->rcq.head = b->scq.head = b->rcq.head = 0;
}

static void step(struct monkey *m)
{
	int who = (int)rnd(m, 2);
	uint32_t what = rnd(m, 1000);

	if (what < 350)
		random_command(m, who);
	else if (what < 650)
		random_request(m, who);
	else if (what < 880)
		random_doorbell(m, who);
	else if (what < 930)
		random_register(m, who);
	else if (what < 950)
		random_index(m, who);
	else if (what < 975)
		reconnect(m);
	else if (what < 985)
		pvr_adapter_set_link(m->env->g[who]->adapter, rnd(m, 2));
	else if (what < 990)
		pvr_adapter_set_bus_master(m->env->g[who]->adapter, rnd(m, 4));
	else if (what < 996)
		m->env->host->now += (uint64_t)rnd(m, 1000) * FG_MS;
	else
		new_end(m, who);
	if (!rnd(m, 3))
		assert_true(fg_run_bounded(m->env->host, 100000));
}

static void run_monkey(void **state, uint64_t seed)
{
	struct monkey m = { .env = *state, .rnd = seed };
	struct t_env *env = m.env;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	fg_end_open(&m.c, env->g[2], PVR_QPT_RC);
	fg_end_open(&m.d, env->g[3], PVR_QPT_RC);
	fg_end_connect(&m.c, &m.d, NULL);
	for (int i = 0; i < 2; i++) {
		fg_buf_init(&m.buf[i], &env->g[i]->ram, 16, FG_SCATTERED);
		new_end(&m, i);
	}
	reconnect(&m);
	for (int i = 0; i < STEPS; i++) {
		step(&m);
		if (i % 500 == 0)
			t_ping_pong(env->host, &m.c, &m.d);
	}
	/* They come to their senses, and everything works for them too. */
	for (int i = 0; i < 2; i++) {
		pvr_adapter_set_bus_master(env->g[i]->adapter, true);
		pvr_adapter_set_link(env->g[i]->adapter, true);
		fg_reg_write(env->g[i], PVR_REG_CTL, PVR_CTL_RESET);
		fg_reg_write(env->g[i], PVR_REG_EXT_ACK, 0);
	}
	fg_run(env->host);
	for (int i = 0; i < 2; i++) {
		struct fg_end *end = monkey_end(&m, i);

		expect_ok(fg_guest_boot(env->g[i]));
		expect_ok(fg_bind_gid(env->g[i], 0, end->gid));
		fg_end_open(end, env->g[i], PVR_QPT_RC);
	}
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
	t_ping_pong(env->host, &m.c, &m.d);
}

#define SEED(n)                                             \
	static void test_monkey_with_seed_##n(void **state) \
	{                                                   \
		run_monkey(state, n);                       \
	}

SEED(1)
SEED(2)
SEED(3)
SEED(4)
SEED(5)
SEED(6)
SEED(7)
SEED(8)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_monkey_with_seed_1, guests), T(test_monkey_with_seed_2, guests),
		T(test_monkey_with_seed_3, guests), T(test_monkey_with_seed_4, guests),
		T(test_monkey_with_seed_5, guests), T(test_monkey_with_seed_6, guests),
		T(test_monkey_with_seed_7, guests), T(test_monkey_with_seed_8, guests),
	};

	return T_MAIN(tests);
}
