// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Allocations that fail. malloc() and its kin are wrapped (--wrap, see meson.build), so
 * that the n-th call from the device fails, for every n until the operation succeeds
 * without. Each failure must be ENOMEM and leave nothing; leaks are LSan's to find.
 */
#include <stdlib.h>

#include "objects.h"
#include "rndv.h"

TEST_EXT(PVR_ENGINE_EXT)

static uint32_t fail_at; /* 0: never; else the call, counted from 1, that fails */
static uint32_t calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *s);

static bool fails(void)
{
	return fail_at && ++calls == fail_at;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

static void fail_from(uint32_t n)
{
	assert_in_range(n, 0, 99); /* an operation of more allocations does not end */
	calls = 0;
	fail_at = n;
}

/* Whether the call that was to fail has happened; disarms. */
static bool failed(void)
{
	bool done = fail_at && calls >= fail_at;

	fail_at = 0;
	return done;
}

/* Evaluates @operation while its n-th allocation fails; false if it has fewer. */
#define failing(n, operation) (fail_from(n), (operation), failed())

/* PVR_EXT_LONG_FAST_REG: pages of a fast region */
#define LONGEST 1024

/* All answers but CREATE_QP's begin with the handle. */
static void undo(struct fg_guest *g, uint32_t cmd, const union pvr_cmd_resp *resp)
{
	static const uint32_t destroy[] = {
		[PVR_CMD_CREATE_UC] = PVR_CMD_DESTROY_UC,
		[PVR_CMD_CREATE_PD] = PVR_CMD_DESTROY_PD,
		[PVR_CMD_CREATE_MR] = PVR_CMD_DESTROY_MR,
		[PVR_CMD_CREATE_CQ] = PVR_CMD_DESTROY_CQ,
		[PVR_CMD_CREATE_QP] = PVR_CMD_DESTROY_QP,
		[PVR_CMD_CREATE_SRQ] = PVR_CMD_DESTROY_SRQ,
	};

	expect_ok(fg_cmd_destroy(g, destroy[cmd],
				 cmd == PVR_CMD_CREATE_QP ? resp->create_qp.qp_handle
							  : resp->create_pd.pd_handle));
}

static uint32_t try_command(struct objects *o, const void *req, size_t len)
{
	const struct pvr_adapter_stats before = fg_stats(o->g);
	uint32_t err, shown = 0;
	union pvr_cmd_resp resp;

	for (uint32_t n = 1; failing(n, err = fg_cmd(o->g, req, len, &resp, sizeof(resp))); n++) {
		struct pvr_adapter_stats after;

		if (!err) {
			/* The device did without: undo it, and fail the next allocation. */
			undo(o->g, ((const struct pvr_cmd_hdr *)req)->cmd, &resp);
			continue;
		}
		assert_int_equal(err, ENOMEM);
		shown++;
		after = fg_stats(o->g);
		assert_int_equal(after.contexts, before.contexts);
		assert_int_equal(after.pds, before.pds);
		assert_int_equal(after.mrs, before.mrs);
		assert_int_equal(after.mws, before.mws);
		assert_int_equal(after.cqs, before.cqs);
		assert_int_equal(after.qps, before.qps);
		assert_int_equal(after.srqs, before.srqs);
	}
	expect_ok(err);
	return shown;
}

/* A region or window has the PD of the fixture. */
static const struct {
	const char *label;
	uint32_t least, mws;
	union pvr_cmd_req req;
} creations[] = {
	{ "user context",
	  1,
	  0,
	  { .create_uc = { FG_CMD_HDR(PVR_CMD_CREATE_UC), (FG_BAR2_GPA >> PVR_PAGE_SHIFT) + 1 } } },
	{ "pd", 1, 0, { .create_pd = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD) } } },
	{ "window of type 1",
	  1,
	  1,
	  { .create_mr = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR), .flags = PVR_MR_FLAG_MW1 } } },
	{ "window of type 2",
	  1,
	  1,
	  { .create_mr = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR), .flags = PVR_MR_FLAG_MW2 } } },
	{ "region for fast registration",
	  2,
	  0,
	  { .create_mr = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
			   .flags = PVR_MR_FLAG_FRMR,
			   .nchunks = LONGEST } } },
};

TEST_OBJECTS_CASES(test_create, creations)
{
	union pvr_cmd_req req = row->req;

	if (req.hdr.cmd == PVR_CMD_CREATE_MR)
		req.create_mr.pd_handle = o->pd.handle;
	assert_true(try_command(o, &req, sizeof(req)) >= row->least);
	assert_int_equal(fg_stats(o->g).mws, row->mws);
}

TEST_OBJECTS(test_create_mr)
{
	struct pvr_cmd_create_mr req =
		fg_mr_request(&o->pd, &o->buf, 0, o->buf.size, FG_ACCESS_ALL);

	assert_true(try_command(o, &req, sizeof(req)) >= 2);
}

/*
 * Shape of the page list: @runs of @pages each, then @single ones, at any number of
 * levels.
 */
struct shape {
	const char *label;
	uint32_t levels, runs, pages, single;
	uint32_t least; /* allocations: the region and what its pages are kept in */
};

static uint32_t fill_shape(const struct shape *shape, const struct fg_buf *buf, uint64_t *gpa)
{
	uint32_t n = 0, at = buf->npages;

	for (uint32_t run = 0; run < shape->runs; run++) {
		at -= shape->pages;
		for (uint32_t i = 0; i < shape->pages; i++)
			gpa[n++] = fg_buf_gpa(buf, (size_t)(at + i) * PVR_PAGE_SIZE);
	}
	for (uint32_t i = 0; i < shape->single; i++)
		gpa[n++] = fg_buf_gpa(buf, (size_t)--at * PVR_PAGE_SIZE);
	return n;
}

static const struct shape shapes[] = {
	{ "one run, without a list", 2, 1, 200, 0, 1 },	 { "a list of runs", 2, 2, 100, 0, 2 },
	{ "a list of runs that grows", 3, 6, 32, 0, 3 }, { "a table of pages", 2, 0, 0, 200, 2 },
	{ "runs that become a table", 3, 3, 40, 80, 3 },
};

TEST_OBJECTS_CASES(test_create_layouts, shapes)
{
	struct pvr_cmd_create_mr req;
	uint64_t gpa[200];
	struct fg_buf buf;
	uint32_t n;

	fg_buf_init(&buf, &o->g->ram, 200, FG_LINEAR);
	n = fill_shape(row, &buf, gpa);
	req = fg_layout_request(&o->pd, fg_pdir(&o->g->ram, row->levels, gpa, n), PVR_PAGE_SHIFT, 0,
				0, (uint64_t)n * PVR_PAGE_SIZE);
	req.pdir_levels = row->levels;
	assert_true(try_command(o, &req, sizeof(req)) >= row->least);
	assert_int_equal(fg_stats(o->g).mrs, 1);
}

TEST_OBJECTS(test_create_cq)
{
	struct pvr_cmd_create_cq req = fg_cq_request(&o->g->kernel, &o->buf, 64);

	assert_true(try_command(o, &req, sizeof(req)) >= 2);
}

TEST_OBJECTS(test_create_srq)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 64, 1);

	assert_true(try_command(o, &req, sizeof(req)) >= 2);
	expect_ok(fg_cq_destroy(&o->cq));
}

static const struct {
	const char *label;
	enum pvr_qp_type type;
	bool srq;
	uint32_t max_inline;
} qp_kinds[] = {
	{ "create rc qp", PVR_QPT_RC, false, 0 },
	{ "create ud qp", PVR_QPT_UD, false, 0 },
	{ "create gsi qp", PVR_QPT_GSI, false, 0 },
	{ "create uc qp", PVR_QPT_UC, false, 0 },
	{ "create qp with inline data", PVR_QPT_RC, false, PVR_MAX_INLINE },
	{ "create qp with srq", PVR_QPT_RC, true, 0 },
};

TEST_OBJECTS_CASES(test_create_qp, qp_kinds)
{
	struct pvr_cmd_create_qp req;
	struct fg_srq shared;

	o->qp.type = row->type;
	o->qp.max_inline = row->max_inline;
	if (row->srq) {
		expect_ok(fg_srq_create(&o->pd, 16, 1, &shared));
		o->qp.srq = &shared;
	}
	req = fg_qp_request(&o->qp);
	req.pdir_dma = o->buf.pdir;
	assert_in_range(req.total_chunks, 1, o->buf.npages);
	assert_true(try_command(o, &req, sizeof(req)) >= 2);
	/* Exactly one QP holds the CQ now. */
	assert_int_equal(fg_stats(o->g).qps, 1);
	assert_int_equal(fg_cq_destroy(&o->cq), EBUSY);
}

TEST_GUEST(guests, test_create_bind)
{
	uint8_t gid[16];
	uint32_t n, err;

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	for (n = 1; failing(n, err = fg_bind_gid(g, 1, gid)); n++) {
		assert_int_equal(err, ENOMEM);
		assert_int_equal(fg_stats(g).gids, 1);
		/* The GID is free again. */
		expect_ok(fg_bind_gid(env->g[1], 1, gid));
		expect_ok(fg_unbind_gid(env->g[1], 1, gid));
	}
	expect_ok(err);
	assert_true(n >= 2);
}

TEST_GUEST(unprobed, test_dsr)
{
	uint32_t err;

	for (uint32_t n = 1; failing(n, err = fg_guest_boot(g)); n++) {
		assert_int_equal(err, UINT32_MAX); /* refused, caps zero */
		assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	}
	expect_ok(err);
}

/*
 * As try_command(), for commands that make no object: @unchanged is asserted after each
 * failure, and the last try succeeds.
 */
static uint32_t try_change(struct objects *o, const void *req, size_t len,
			   void (*unchanged)(struct objects *o))
{
	uint32_t n, err;

	for (n = 1; failing(n, err = fg_cmd(o->g, req, len, NULL, 0)); n++) {
		assert_int_equal(err, ENOMEM);
		unchanged(o);
	}
	expect_ok(err);
	return n - 1;
}

static void cq_is_as_it_was(struct objects *o)
{
	const struct pvr_ring *new_shm = &((struct pvr_ring_state *)o->buf.va)->rx;

	fg_cq_arm(&o->cq);
	fg_run(o->env->host);
	assert_int_equal(new_shm->prod_tail, 0);
	assert_int_equal(o->cq.ring->prod_tail, 1);
}

TEST_OBJECTS(test_resize_cq)
{
	struct pvr_cmd_resize_cq req = fg_cq_resize_request(&o->cq, &o->buf, 512);
	struct fg_qp qp;

	/* Something to move: a receive request that is flushed. */
	expect_ok(fg_qp_create(&o->qp, &qp));
	expect_ok(fg_qp_to_init(&qp, NULL));
	assert_true(fg_post_recv(&qp, 7, NULL, 0));
	expect_ok(fg_qp_to_err(&qp));
	fg_run(env->host);
	assert_true(try_change(o, &req, sizeof(req), cq_is_as_it_was) >= 1);
	assert_int_equal(((struct pvr_ring_state *)o->buf.va)->rx.prod_tail, 1);
	expect_cqe(&o->cq, 7, PVRDMA_WC_WR_FLUSH_ERR);
}

static struct fg_srq resized;

static void srq_is_as_it_was(struct objects *o)
{
	struct pvr_srq_attr attr;

	expect_ok(fg_srq_query(&resized, &attr));
	assert_int_equal(attr.max_wr, 16);
	assert_int_equal(attr.srq_limit, 3);
}

TEST_OBJECTS(test_resize_srq)
{
	struct pvr_cmd_modify_srq req;
	struct pvr_srq_attr attr;

	expect_ok(fg_srq_create(&o->pd, 16, 1, &resized));
	expect_ok(fg_srq_set_limit(&resized, 3));
	req = fg_srq_resize_request(&resized, &o->buf, 64);
	req.attr_mask |= PVR_SRQ_LIMIT;
	req.attrs.srq_limit = 5;
	assert_true(try_change(o, &req, sizeof(req), srq_is_as_it_was) >= 1);
	expect_ok(fg_srq_query(&resized, &attr));
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.srq_limit, 5);
}

static void vector_is_not_there(struct objects *o)
{
	struct fg_cq cq;

	assert_int_equal(fg_cq_create_on(&o->g->kernel, 1, 64, &cq), EINVAL);
}

TEST_OBJECTS(test_set_cq_ring)
{
	struct pvr_cmd_set_cq_ring req = fg_cq_ring_request(1, &o->buf);
	struct fg_cq cq;

	assert_true(try_change(o, &req, sizeof(req), vector_is_not_there) >= 1);
	expect_ok(fg_cq_create_on(&o->g->kernel, 1, 64, &cq));
}

static void raise_nothing(void *host, uint32_t vector)
{
}

TEST(host, test_create_adapter)
{
	static const struct pvr_adapter_ops ops = { .raise = raise_nothing };
	const struct pvr_adapter_config config = {
		.name = "a",
		.fabric = "a-new-one",
		.mac = { 2, 0, 0, 0, 0, 1 },
	};
	struct pvr_adapter *adapter;
	char err[100] = "";
	uint32_t n;

	for (n = 1; failing(n, adapter = pvr_adapter_create(env->host->engine, &config, &ops, NULL,
							    err, sizeof(err)));
	     n++) {
		assert_null(adapter);
		assert_string_equal(err, "out of memory");
		err[0] = '\0';
	}
	assert_non_null(adapter);
	assert_true(n >= 2);
}

TEST_GUEST(guest, test_map_ram)
{
	static uint8_t ram[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	struct pvr_adapter *adapter = g->adapter;
	uint32_t n;
	int err;

	for (n = 1;
	     failing(n, err = pvr_adapter_map_ram(adapter, 0xf0000000, sizeof(ram), ram, true));
	     n++)
		assert_int_equal(err, -ENOMEM);
	assert_int_equal(err, 0);
	assert_true(n >= 2);
}

TEST_GUEST(guest, test_start_dirty_log)
{
	static uint8_t ram[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	uint32_t n;
	int err;

	for (n = 1; failing(n, err = pvr_adapter_start_dirty_log(g->adapter)); n++) {
		assert_int_equal(err, -ENOMEM);
		assert_false(pvr_adapter_has_dirty_log(g->adapter));
	}
	assert_int_equal(err, 0);
	assert_true(n > 3); /* a bitmap for each piece of RAM */
	for (n = 1;
	     failing(n, err = pvr_adapter_map_ram(g->adapter, 0xf0000000, sizeof(ram), ram, true));
	     n++)
		assert_int_equal(err, -ENOMEM);
	assert_int_equal(err, 0);
	assert_true(n >= 3);
}

TEST(host, test_create_engine)
{
	static const struct pvr_engine_ops ops = { 0 };
	struct pvr_engine *engine;
	uint32_t n;

	for (n = 1; failing(n, engine = pvr_engine_create(&ops, NULL, 1)); n++)
		assert_null(engine);
	assert_true(n >= 2);
	pvr_engine_destroy(engine);
}

/* The data path allocates nothing once a path is known, and little before. */
TEST(rc_connected, test_traffic_continues_without_memory)
{
	t_ping_pong(env->host, &env->a, &env->b);
	for (uint32_t n = 1; n < 4; n++) {
		for (int i = 0; i < 3; i++) {
			fail_from(n);
			t_exchange(env, 1, 100);
			assert_false(failed());
		}
	}
}

/* Statistics of the path may be missing, the message not. */
TEST(rc_connected, test_first_message_arrives_without_memory)
{
	fail_from(1);
	t_exchange(env, 1, 100);
	failed();
}

TEST(ud_ready, test_first_datagram_arrives_without_memory)
{
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	fail_from(1);
	fg_run(env->host);
	failed();
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 140);
}

TEST_OBJECTS(test_create_many_qps)
{
	struct pvr_cmd_create_qp req;

	o->qp.sq_wr = o->qp.rq_wr = 1;
	req = fg_qp_request(&o->qp);
	req.pdir_dma = o->buf.pdir;
	for (int i = 0; i < 70; i++)
		assert_true(try_command(o, &req, sizeof(req)) >= 2);
	assert_int_equal(fg_stats(o->g).qps, 70);
}

/* Binding, registration and invalidation allocate nothing: they cannot fail for that. */
TEST(rc_connected, test_windows_are_bound_without_memory)
{
	struct pvr_wqe_bind_mw bind = { .length = 100, .access_flags = PVR_ACCESS_REMOTE_READ };
	struct fg_mr region, mw;

	expect_ok(fg_mr_create(&env->b.pd, &env->b.buf, PVR_ACCESS_MW_BIND, &region));
	expect_ok(fg_mw_create(&env->b.pd, PVR_MR_FLAG_MW2, &mw));
	bind.addr = region.start;
	bind.mr_lkey = region.lkey;
	bind.mw_rkey = bind.new_rkey = mw.rkey;
	expose_put_bind(&env->b, 1, &bind);
	expose_put(&env->b, 2, PVRDMA_WR_LOCAL_INV, mw.rkey);
	fail_from(1);
	fg_ring_send(&env->b.qp);
	fg_run(env->host);
	assert_false(failed());
	expect_done(&env->b.scq, 1, PVRDMA_WC_BIND_MW);
	expect_done(&env->b.scq, 2, PVRDMA_WC_LOCAL_INV);
}

T_SETUP_EXT(mcast, PVR_EXT_MCAST, ud_ready)

/* Group, adapter and QP of the group: each failure leaves none of them. */
TEST(mcast, test_attach_mcast)
{
	static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 1 };
	uint32_t n, err;

	for (n = 1; failing(n, err = fg_qp_attach(&env->a.qp, mgid)); n++) {
		assert_int_equal(err, ENOMEM);
		assert_int_equal(fg_qp_detach(&env->a.qp, mgid), EINVAL);
	}
	expect_ok(err);
	assert_int_equal(n, 4);
	expect_ok(fg_qp_detach(&env->a.qp, mgid));
}
