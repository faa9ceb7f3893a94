// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RAM that goes away under an object, in each state and wait of its queue pair. The RAM is
 * unmapped in this process, too: any later access of the device is a fault.
 */
#include "ends.h"
#include "slots.h"

#define RECVS 128 /* the shortest receive queue that is polled */
#define BIG (1u << 20) /* bytes of a message of several quanta */

TEST_EXT(PVR_ENGINE_EXT)

/* ------------------------------------------------------------------------ guests */

/* Two guests with slots, and a third one beside the first. */
T_SETUP(split, host)
{
	env->g[0] = t_split_guest(env->host, 1);
	env->g[1] = t_split_guest(t_other_host(env), 2);
	env->g[2] = fg_guest_start(env->host, 3);
}

struct pair {
	struct t_env *env;
	struct fg_end other; /* of the third guest */
	struct fg_srq srq; /* of b, if it has one */
};

static void pair_init(struct pair *p, struct t_env *env)
{
	t_slots_init();
	*p = (struct pair){ .env = env };
	t_open_self(&p->other, env->g[2]);
}

static struct fg_end open_end(struct fg_guest *g, enum pvr_qp_type type)
{
	const struct fg_qp_spec spec = { .type = type, .rq_wr = RECVS };
	struct fg_end end;

	t_prefer_slots(&g->ram, true);
	fg_end_open_spec(&end, &g->kernel, &spec, 1);
	t_prefer_slots(&g->ram, false);
	return end;
}

static void open_ends(struct t_env *env, enum pvr_qp_type type)
{
	env->a = open_end(env->g[0], type);
	env->b = open_end(env->g[1], type);
}

static bool is_connected(const struct fg_end *end)
{
	return end->qp.type == PVR_QPT_RC || end->qp.type == PVR_QPT_UC;
}

/* ------------------------------------------------------------------- situations */

static void send(struct t_env *env, uint64_t wr_id)
{
	if (is_connected(&env->a))
		t_send(&env->a, wr_id, 0, 64);
	else
		t_send_ud(&env->a, &env->b, wr_id, 0, 64);
}

/* RTS, without a request. */
static void ready(struct t_env *env)
{
	if (is_connected(&env->a)) {
		fg_end_connect(&env->a, &env->b, NULL);
	} else {
		fg_end_ready(&env->a);
		fg_end_ready(&env->b);
	}
	fg_run(env->host);
}

static void in_reset(struct t_env *env)
{
	(void)env;
}

static void in_rtr(struct t_env *env)
{
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	t_recv(&env->a, 1, 0, 128);
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
}

/* Requests are posted to all queues, and no quantum has run. */
static void posted(struct t_env *env)
{
	ready(env);
	for (uint64_t n = 0; n < 3; n++) {
		t_recv(&env->a, n, 0, 128);
		t_recv(&env->b, n, 0, 128);
		send(env, n);
	}
}

static void idle_after_work(struct t_env *env)
{
	posted(env);
	fg_run(env->host);
}

/* Its region has BIG bytes, which are all in one page. */
static void widen(struct fg_end *end)
{
	struct pvr_cmd_create_mr req = fg_mr_request(&end->pd, &end->buf, 0, 64, FG_ACCESS_ALL);
	uint64_t gpa[BIG / PVR_PAGE_SIZE];

	for (size_t i = 0; i < COUNT(gpa); i++)
		gpa[i] = fg_buf_gpa(&end->buf, 0);
	req.length = BIG;
	req.nchunks = COUNT(gpa);
	req.pdir_dma = fg_pdir(&end->guest->ram, 2, gpa, COUNT(gpa));
	expect_ok(fg_mr_destroy(&end->mr));
	expect_ok(fg_mr_create_as(&end->pd, &req, &end->mr));
}

/* A quantum has written the first part of a message. */
static void writing(struct t_env *env)
{
	widen(&env->a);
	widen(&env->b);
	ready(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, BIG);
	fg_host_step(env->host);
}

static void reading(struct t_env *env)
{
	widen(&env->a);
	widen(&env->b);
	ready(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, BIG);
	fg_host_step(env->host);
}

/* The requester polls the receive queue. */
static void rnr_poll(struct t_env *env)
{
	ready(env);
	send(env, 1);
	fg_run(env->host);
}

/* The requester waits for a doorbell. */
static void rnr_wait(struct t_env *env)
{
	rnr_poll(env);
	fg_advance(env->host, 20 * FG_US);
	fg_advance(env->host, 40 * FG_US);
	fg_advance(env->host, 80 * FG_US);
	fg_advance(env->host, 160 * FG_US);
}

/* The receive is posted, and the requester not yet resumed. */
static void rnr_resumed(struct t_env *env)
{
	rnr_wait(env);
	t_recv(&env->b, 1, 0, 128);
}

static void draining(struct t_env *env)
{
	rnr_poll(env);
	t_qp_set_state(&env->a, PVR_QPS_SQD);
}

/* No response comes. */
static void unanswered(struct t_env *env)
{
	ready(env);
	pvr_adapter_set_link(env->g[1]->adapter, false);
	send(env, 1);
	fg_run(env->host);
	pvr_adapter_set_link(env->g[1]->adapter, true);
}

/* Another host is asked for, or the datagram is dropped. */
static void to_nowhere(struct t_env *env)
{
	uint8_t gid[16];

	ready(env);
	memcpy(gid, env->b.gid, sizeof(gid));
	env->b.gid[7] ^= 0x55;
	send(env, 1);
	send(env, 2);
	memcpy(env->b.gid, gid, sizeof(gid));
	fg_run(env->host);
}

/* An unreliable send queue that has failed alone, and has a further request. */
static void send_error(struct t_env *env)
{
	ready(env);
	t_post(&env->a, .wr_id = 1, .opcode = 77);
	fg_run(env->host);
	send(env, 2);
}

/* Errors, with requests that are not flushed yet. */
static void failed(struct t_env *env)
{
	posted(env);
	expect_ok(fg_qp_to_err(&env->a.qp));
	expect_ok(fg_qp_to_err(&env->b.qp));
}

#define RC (1u << PVR_QPT_RC)
#define UC (1u << PVR_QPT_UC)
#define UD (1u << PVR_QPT_UD)
#define GSI (1u << PVR_QPT_GSI)
#define ALL (RC | UC | UD | GSI)

struct situation {
	const char *label;
	unsigned int types;
	void (*enter)(struct t_env *env);
};

static const struct situation situations[] = {
	{ "reset", ALL, in_reset },
	{ "rtr", ALL, in_rtr },
	{ "idle", ALL, ready },
	{ "posted", ALL, posted },
	{ "idle-after-work", ALL, idle_after_work },
	{ "writing", RC | UC, writing },
	{ "reading", RC, reading },
	{ "rnr-poll", RC, rnr_poll },
	{ "rnr-wait", RC, rnr_wait },
	{ "rnr-resumed", RC, rnr_resumed },
	{ "draining", RC, draining },
	{ "unanswered", RC, unanswered },
	{ "to-nowhere", UD | GSI, to_nowhere },
	{ "send-error", UC | UD | GSI, send_error },
	{ "failed", ALL, failed },
};

/* ------------------------------------------------------------- what is unplugged */

static uint32_t page_at(const struct fg_buf *buf, const void *va)
{
	return (uint32_t)(((const uint8_t *)va - buf->va) >> PVR_PAGE_SHIFT);
}

enum memory { HEADER, SQ, RQ, SCQ_HEADER, SCQ, RCQ_HEADER, RCQ, REGION, MEMORIES };

static const struct fg_buf *memory_of(const struct fg_end *end, enum memory memory, uint32_t *index)
{
	switch (memory) {
	case HEADER:
		*index = 0;
		return &end->qp.buf;
	case SQ:
		*index = page_at(&end->qp.buf, end->qp.sq);
		return &end->qp.buf;
	case RQ:
		*index = page_at(&end->qp.buf, end->qp.rq);
		return &end->qp.buf;
	case SCQ_HEADER:
	case SCQ:
		*index = memory == SCQ;
		return &end->scq.buf;
	case RCQ_HEADER:
	case RCQ:
		*index = memory == RCQ;
		return &end->rcq.buf;
	default:
		*index = 0;
		return &end->buf;
	}
}

/* ------------------------------------------------------------------ what follows */

static void ring_all(struct fg_end *end)
{
	fg_ring_send(&end->qp);
	fg_ring_recv(&end->qp);
	fg_cq_arm(&end->scq);
	fg_cq_arm_solicited(&end->rcq);
}

static void post_all(struct fg_end *end, struct fg_end *to)
{
	t_recv(end, 70, 0, 128);
	if (is_connected(end))
		t_send(end, 71, 0, 64);
	else
		t_send_ud(end, to, 71, 0, 64);
	if (end->qp.type == PVR_QPT_RC)
		t_rdma(end, PVRDMA_WR_RDMA_READ, 72, 0, &to->mr, 0, 64);
}

/* Polls, doorbells and time. */
static void use(struct t_env *env)
{
	fg_run_bounded(env->host, 100);
	ring_all(&env->a);
	ring_all(&env->b);
	post_all(&env->a, &env->b);
	post_all(&env->b, &env->a);
	env->host->polls = true;
	fg_run_bounded(env->host, 100);
	env->host->polls = false;
	pvr_engine_enable_doorbells(env->host->engine, 0);
	fg_settle(env->host, 100 * FG_MS);
}

/* The result is that of an object with or without its memory. */
static void command_all(struct fg_end *end)
{
	struct pvr_cmd_resize_cq req = fg_cq_resize_request(&end->rcq, &end->scq.buf, 256);
	struct pvr_resp_resize_cq resp;
	struct pvr_qp_attr attr;

	expect_ok(fg_qp_query(&end->qp, &attr));
	attr.qp_state = PVR_QPS_SQD;
	fg_qp_modify(&end->qp, PVR_QPA_STATE, &attr);
	expect_ok(fg_qp_to_err(&end->qp));
	fg_resize_cq(end->guest, &req, &resp);
}

static void use_again(struct t_env *env)
{
	ring_all(&env->a);
	ring_all(&env->b);
	fg_run_bounded(env->host, 100);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_qp_to_init(&env->a.qp, NULL);
	fg_qp_to_init(&env->b.qp, NULL);
	ring_all(&env->a);
	ring_all(&env->b);
	fg_run_bounded(env->host, 100);
}

static void close_ends(struct pair *p)
{
	fg_end_close(&p->env->a);
	fg_end_close(&p->env->b);
	fg_run_bounded(p->env->host, 100);
	fg_events_count(p->env->g[0], 0, 0);
	fg_events_count(p->env->g[1], 0, 0);
}

/* @use_first: doorbells and commands before the objects are destroyed. */
static void lose(struct pair *p, struct fg_end *end, enum memory memory, bool use_first)
{
	struct fg_guest *g = end->guest;
	uint32_t index;
	const struct fg_buf *buf = memory_of(end, memory, &index);
	uint32_t page = buf->page[index];

	t_unplug_slot(g, page);
	if (use_first) {
		use(p->env);
		command_all(&p->env->a);
		command_all(&p->env->b);
		use_again(p->env);
	}
	close_ends(p);
	t_plug_slot(g, page);
}

static void try_all(struct pair *p, const struct situation *situation, enum pvr_qp_type type)
{
	for (unsigned int n = 0; n < MEMORIES * 4; n++) {
		struct t_env *env = p->env;

		open_ends(env, type);
		situation->enter(env);
		lose(p, n & 1 ? &env->b : &env->a, n >> 2, n & 2);
	}
	t_ping_pong(p->env->host, &p->other, &p->other);
}

#define TEST_PAIR_CASES(name, rows) TEST_OBJECT_CASES(split, struct pair, p, pair_init, name, rows)

TEST_PAIR_CASES(test_memory_goes_under_a_queue_pair, situations)
{
	static const enum pvr_qp_type types[] = { PVR_QPT_RC, PVR_QPT_UC, PVR_QPT_UD, PVR_QPT_GSI };

	for (size_t i = 0; i < COUNT(types); i++)
		if (row->types & 1u << types[i])
			try_all(p, row, types[i]);
}

/* ---------------------------------------------------------------------- SRQ */

static void srq_unused(struct pair *p)
{
	ready(p->env);
}

static void srq_posted(struct pair *p)
{
	ready(p->env);
	t_srq_recv(&p->srq, 1, &p->env->b.mr, 0, 64);
	send(p->env, 1);
}

/* The sender waits for the SRQ. */
static void srq_empty(struct pair *p)
{
	ready(p->env);
	send(p->env, 1);
	fg_run(p->env->host);
}

static void srq_resumed(struct pair *p)
{
	srq_empty(p);
	t_srq_recv(&p->srq, 1, &p->env->b.mr, 0, 64);
}

static void srq_limited(struct pair *p)
{
	expect_ok(fg_srq_set_limit(&p->srq, 8));
	srq_posted(p);
}

static const struct srq_situation {
	const char *label;
	void (*enter)(struct pair *p);
} srq_situations[] = {
	{ "unused", srq_unused },   { "posted", srq_posted },	{ "empty", srq_empty },
	{ "resumed", srq_resumed }, { "limited", srq_limited },
};

static void use_srq(struct pair *p)
{
	struct pvr_srq_attr attr;

	t_srq_recv(&p->srq, 2, &p->env->b.mr, 0, 64);
	fg_ring_srq(&p->srq);
	fg_run_bounded(p->env->host, 100);
	fg_settle(p->env->host, 100 * FG_MS);
	expect_ok(fg_srq_query(&p->srq, &attr));
	fg_srq_set_limit(&p->srq, 4);
	fg_ring_srq(&p->srq);
	fg_run_bounded(p->env->host, 100);
}

/* @index: the header page, or that of the requests. */
static void lose_srq(struct pair *p, uint32_t index, bool use_first)
{
	struct fg_guest *g = p->env->g[1];
	uint32_t page = p->srq.buf.page[index];

	t_unplug_slot(g, page);
	if (use_first)
		use_srq(p);
	expect_ok(fg_qp_destroy(&p->env->b.qp));
	expect_ok(fg_srq_destroy(&p->srq));
	close_ends(p);
	t_plug_slot(g, page);
}

TEST_PAIR_CASES(test_memory_goes_under_an_srq, srq_situations)
{
	for (uint32_t n = 0; n < 4; n++) {
		open_ends(p->env, PVR_QPT_RC);
		t_prefer_slots(&p->env->g[1]->ram, true);
		t_srq_use(&p->env->b, 32, &p->srq);
		t_prefer_slots(&p->env->g[1]->ram, false);
		row->enter(p);
		lose_srq(p, n & 1, n & 2);
	}
	t_ping_pong(p->env->host, &p->other, &p->other);
}
