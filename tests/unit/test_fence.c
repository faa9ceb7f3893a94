// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A guest takes its memory back in the middle of a message. When the command has ended, the device
 * neither writes to the memory nor reads it, and executes no later request.
 */
#include <stdlib.h>

#include "ends.h"
#include "rndv.h"

TEST_EXT(PVR_EXT_MW | PVR_EXT_MR_LAYOUT | PVR_EXT_USER_OPS | PVR_EXT_UC)

#define PAGES 16u /* of each buffer; a region repeats them */
/* A run of the device executes 32 fragments of 256 KiB of the local path. */
#define LOCAL_LEN (24u << 20)
#define FAR_LEN (256u << 10)
#define FAR_BUFFER 10000u /* of a stream: a fragment of 64 KiB arrives in parts */
#define FAR_ROUNDS 9 /* from one moment to the next one */
#define SEGMENT_ROUNDS 3
#define ATOMICS 40
#define MARK 0x77
#define MINE 0x11 /* in the memory of the guest that takes it back */
#define THEIRS 0x22
#define MW_RIGHTS (FG_ACCESS_ALL & ~PVR_ACCESS_LOCAL_WRITE)

/* a's request, and the memory of the fence. */
enum part {
	WRITE_TARGET, /* b's */
	SEND_TARGET, /* b's */
	READ_SOURCE, /* b's */
	ATOMIC_TARGET, /* b's */
	WRITE_SOURCE, /* a's */
	READ_TARGET, /* a's */
	PARTS,
};

#define BIT(part) (1u << (part))
#define ALL_PARTS (BIT(PARTS) - 1)
#define PARTS_BY_KEY (BIT(WRITE_TARGET) | BIT(READ_SOURCE) | BIT(ATOMIC_TARGET))
#define PARTS_OF_UC (BIT(WRITE_TARGET) | BIT(SEND_TARGET) | BIT(WRITE_SOURCE))

struct scene {
	struct t_env *env;
	enum part part;
	struct fg_end *victim, *other;
	struct fg_mr region; /* the victim's */
	struct fg_mr mw; /* a window of it, if handle is not 0 */
	struct fg_mr from; /* a's region */
	struct fg_mr to; /* b's, with the key that a uses */
};

static bool is_source(enum part part)
{
	return part == READ_SOURCE || part == WRITE_SOURCE;
}

static bool is_of_a(enum part part)
{
	return part == WRITE_SOURCE || part == READ_TARGET;
}

static uint32_t length(const struct scene *s)
{
	return s->env->wire || s->env->segment ? FAR_LEN : LOCAL_LEN;
}

static unsigned int rounds_between(const struct t_env *env)
{
	if (env->segment)
		return SEGMENT_ROUNDS;
	return env->wire ? FAR_ROUNDS : 1;
}

/* -------------------------------------------------------------------------------- set up */

static struct pvr_cmd_create_mr request_of(const struct scene *s, const struct fg_end *end)
{
	uint32_t npages = length(s) / PVR_PAGE_SIZE;
	uint64_t *gpa = calloc(npages, sizeof(*gpa));
	struct pvr_cmd_create_mr req;

	assert_non_null(gpa);
	for (uint32_t i = 0; i < npages; i++)
		gpa[i] = fg_buf_gpa(&end->buf, (size_t)(i % PAGES) * PVR_PAGE_SIZE);
	req = fg_layout_request(&end->pd, fg_pdir(&end->guest->ram, 2, gpa, npages), PVR_PAGE_SHIFT,
				FG_USER_VA, 0, length(s));
	free(gpa);
	return req;
}

static struct fg_mr make_region(const struct scene *s, const struct fg_end *end)
{
	struct pvr_cmd_create_mr req = request_of(s, end);
	struct fg_mr mr;

	req.access_flags |= PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&end->pd, &req, &mr));
	return mr;
}

static void scene_init(struct scene *s, struct t_env *env, enum part part)
{
	*s = (struct scene){ .env = env, .part = part };
	s->victim = is_of_a(part) ? &env->a : &env->b;
	s->other = is_of_a(part) ? &env->b : &env->a;
	s->from = make_region(s, &env->a);
	s->to = make_region(s, &env->b);
	s->region = is_of_a(part) ? s->from : s->to;
	memset(s->victim->buf.va, MINE, s->victim->buf.size);
	memset(s->other->buf.va, THEIRS, s->other->buf.size);
}

static void bind_window(struct scene *s, uint32_t type)
{
	const struct pvr_wqe_bind_mw bind = {
		.addr = s->region.start,
		.length = s->region.length,
		.mr_lkey = s->region.lkey,
		.access_flags = MW_RIGHTS,
	};
	struct pvrdma_sq_wqe_hdr *wqe;

	expect_ok(fg_mw_create(&s->victim->pd, type, &s->mw));
	wqe = expose_put_bind(s->victim, BIND_ID, &bind);
	((struct pvr_wqe_bind_mw *)&wqe->wr)->mw_rkey = s->mw.rkey;
	((struct pvr_wqe_bind_mw *)&wqe->wr)->new_rkey = s->mw.rkey ^ 1;
	fg_ring_send(&s->victim->qp);
	await_done(&s->victim->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	s->mw.rkey ^= 1;
	s->to.rkey = s->mw.rkey;
}

static void bind_window_1(struct scene *s)
{
	bind_window(s, PVR_MR_FLAG_MW1);
}

static void bind_window_2(struct scene *s)
{
	bind_window(s, PVR_MR_FLAG_MW2);
}

/* -------------------------------------------------------------------------------- fences */

static void fail_qp(struct scene *s)
{
	expect_ok(fg_qp_to_err(&s->victim->qp));
}

static void reset_qp(struct scene *s)
{
	expect_ok(fg_qp_to_reset(&s->victim->qp));
}

static void destroy_qp(struct scene *s)
{
	expect_ok(fg_qp_destroy(&s->victim->qp));
}

static void take_rights(struct scene *s)
{
	const struct pvr_qp_attr attr = { .qp_access_flags = 0 };

	expect_ok(fg_qp_modify(&s->victim->qp, PVR_QPA_ACCESS_FLAGS, &attr));
}

static void destroy_region(struct scene *s)
{
	expect_ok(fg_mr_destroy(&s->region));
}

static void replace_region(struct scene *s)
{
	struct pvr_cmd_create_mr req = request_of(s, s->victim);
	struct pvr_resp_create_mr resp;

	req.flags |= PVR_MR_FLAG_REPLACE;
	req.mr_handle = s->region.handle;
	req.access_flags = PVR_ACCESS_LOCAL_WRITE;
	expect_ok(fg_create_mr(s->victim->guest, &req, &resp));
}

static void destroy_window(struct scene *s)
{
	expect_ok(fg_mr_destroy(&s->mw));
}

/* The fence is the completion. */
static void await_fence(struct scene *s, uint32_t opcode)
{
	for (int i = 0; i < 1000 && !fg_cq_pending(&s->victim->scq); i++)
		fg_run_bounded(s->env->host, 1);
	expect_done(&s->victim->scq, 901, opcode);
}

static void invalidate_window(struct scene *s)
{
	t_post(s->victim, .wr_id = 901, .opcode = PVRDMA_WR_LOCAL_INV, .imm = s->mw.rkey);
	await_fence(s, PVRDMA_WC_LOCAL_INV);
}

static void unbind_window(struct scene *s)
{
	const struct pvr_wqe_bind_mw bind = { .mw_rkey = s->mw.rkey, .new_rkey = s->mw.rkey ^ 1 };

	expose_put_bind(s->victim, 901, &bind);
	fg_ring_send(&s->victim->qp);
	await_fence(s, PVRDMA_WC_BIND_MW);
}

static void reset_adapter(struct scene *s)
{
	fg_ctl(s->victim->guest, PVR_CTL_RESET);
}

static const struct fence {
	const char *label;
	void (*prepare)(struct scene *s);
	void (*take_back)(struct scene *s);
	unsigned int parts;
} fences[] = {
	{ "queue pair goes to error", NULL, fail_qp, ALL_PARTS },
	{ "queue pair is reset", NULL, reset_qp, ALL_PARTS },
	{ "queue pair is destroyed", NULL, destroy_qp, ALL_PARTS },
	{ "queue pair loses its rights", NULL, take_rights, PARTS_BY_KEY },
	{ "region is destroyed", NULL, destroy_region, ALL_PARTS },
	{ "region loses its rights", NULL, replace_region, PARTS_BY_KEY },
	{ "window is destroyed", bind_window_1, destroy_window, PARTS_BY_KEY },
	{ "window is unbound", bind_window_1, unbind_window, PARTS_BY_KEY },
	{ "window is invalidated", bind_window_2, invalidate_window, PARTS_BY_KEY },
	{ "adapter is reset", NULL, reset_adapter, ALL_PARTS },
};

/* ------------------------------------------------------------------------------ messages */

static void post_atomics(struct scene *s)
{
	for (uint64_t i = 0; i < ATOMICS; i++)
		t_post(&s->env->a, .wr_id = i, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       .compare_add = 1, T_SGE(&s->from, 0, 8), T_REMOTE(&s->to, 0));
}

static void post(struct scene *s)
{
	struct t_env *env = s->env;
	const struct pvrdma_sge source = fg_sge(&s->from, 0, length(s));
	const struct pvrdma_sge target = fg_sge(&s->to, 0, length(s));

	switch (s->part) {
	case SEND_TARGET:
		assert_true(fg_post_recv(&env->b.qp, 1, &target, 1));
		t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = &source, .num_sge = 1);
		break;
	case ATOMIC_TARGET:
		post_atomics(s);
		break;
	default:
		t_post(&env->a, .wr_id = 1,
		       .opcode = s->part == WRITE_TARGET || s->part == WRITE_SOURCE
					 ? PVRDMA_WR_RDMA_WRITE
					 : PVRDMA_WR_RDMA_READ,
		       .sge = &source, .num_sge = 1, T_REMOTE(&s->to, 0));
	}
}

static bool is_done(const struct scene *s)
{
	uint32_t all = s->part == ATOMIC_TARGET ? ATOMICS : 1;

	return fg_cq_pending(&s->env->a.scq) == all;
}

/* Return: whether a byte of the message has arrived, and the message has not ended. */
static bool is_between(const struct scene *s)
{
	const struct fg_end *to = s->part == READ_SOURCE || s->part == READ_TARGET ? &s->env->a
										   : &s->env->b;
	uint8_t before = to == s->victim ? MINE : THEIRS;

	return to->buf.va[0] != before;
}

static void check(const struct scene *s)
{
	const struct fg_end *end = is_source(s->part) ? s->other : s->victim;
	bool expected = !is_source(s->part);

	for (size_t i = 0; i < end->buf.size; i++)
		if ((end->buf.va[i] == MARK) != expected)
			fail_msg("part %d: byte %zu is %#x", s->part, i, end->buf.va[i]);
}

/* The fence comes after @n runs of the device. Return: false if the message has ended before. */
static bool run(struct scene *s, const struct fence *fence, unsigned int n, unsigned int *between)
{
	if (fence->prepare)
		fence->prepare(s);
	post(s);
	while (n--)
		fg_run_bounded(s->env->host, 1);
	if (is_done(s))
		return false;
	*between += is_between(s);
	fence->take_back(s);
	memset(s->victim->buf.va, MARK, s->victim->buf.size);
	fg_settle(s->env->host, 30 * FG_SEC);
	check(s);
	return true;
}

/* Messages that one run of the device sends, and completes. */
static bool is_at_once(const struct t_env *env, enum part part)
{
	return part == ATOMIC_TARGET || (env->segment && env->a.qp.type == PVR_QPT_UC);
}

/* At each moment of the message. */
static void run_all(struct t_env *env, t_fixture *setup, const struct fence *fence, enum part part)
{
	unsigned int n = 0, between = 0;
	struct scene s;

	for (;; n += rounds_between(env)) {
		env = t_renew(setup);
		scene_init(&s, env, part);
		if (!run(&s, fence, n, &between))
			break;
	}
	if (!is_at_once(env, part))
		assert_in_range(between, 1, n);
}

static void open_as(struct t_env *env, enum pvr_qp_type type)
{
	const struct fg_qp_spec spec = { .type = type };

	t_open_connected(env, &spec, PAGES);
}

static int t_setup_narrow(void **state)
{
	const struct fg_wire_config config = { .hosts = 2, .buffer = FAR_BUFFER };

	if (!getenv("FG_WIRE"))
		return t_setup_guests(state);
	fg_run(t_env_of_hosts(state, &config)->host);
	return 0;
}

T_SETUP(rc_pages, narrow)
{
	open_as(env, PVR_QPT_RC);
}

T_SETUP(uc_pages, narrow)
{
	open_as(env, PVR_QPT_UC);
}

TEST_CASES(rc_pages, test_memory_is_the_guests_after_the_fence, fences)
{
	(void)env;
	for (enum part part = 0; part < PARTS; part++)
		if (row->parts & BIT(part))
			run_all(*t_state(), t_setup_rc_pages, row, part);
}

TEST_CASES(uc_pages, test_memory_is_the_guests_after_the_fence_of_uc, fences)
{
	(void)env;
	for (enum part part = 0; part < PARTS; part++)
		if (row->parts & PARTS_OF_UC & BIT(part))
			run_all(*t_state(), t_setup_uc_pages, row, part);
}

/* Its doorbell may be suppressed, or in memory. */
TEST(rc_pages, test_request_behind_the_fence_is_flushed)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	await_written(&env->a, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, env->a.mr.length);
	fg_run_bounded(env->host, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	memset(env->b.buf.va, MINE, env->b.buf.size);
	memset(env->a.buf.va, MARK, env->a.buf.size);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 64);
	fg_run(env->host);
	fg_cq_poll(&env->a.scq, &(struct pvrdma_cqe){ 0 }); /* the second one, either way */
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	assert_null(memchr(env->b.buf.va, MARK, env->b.buf.size));
}

TEST(ud_ready, test_datagram_behind_the_fence_is_dropped)
{
	memset(env->b.buf.va, MINE, env->b.buf.size);
	memset(env->a.buf.va, MARK, env->a.buf.size);
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	expect_ok(fg_qp_to_err(&env->b.qp));
	t_run_ud(env->host);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_null(memchr(env->b.buf.va, MARK, env->b.buf.size));
}
