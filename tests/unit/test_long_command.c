// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands that take long: others have their turns meanwhile, and nobody sees them half done. */
#include "common.h"

#include "lend.h"

#define SPARE_GPA 0x4000000000ull /* behind what the fake guest has */
#define LONG_PAGES 60000u /* of 4 KiB: several steps */

TEST_INIT
{
	fg_default_ext = PVR_EXT_USER_OPS | PVR_EXT_MR_LAYOUT | PVR_EXT_MW;
}

/* b's guest registers a large region, whose pages are all the same one. */
struct reg {
	struct t_env *env;
	struct fg_guest *g;
	struct pvr_cmd_create_mr req;
	uint32_t page; /* the one that all entries name */
};

static void reg_init(struct reg *r, struct t_env *env)
{
	memset(r, 0, sizeof(*r));
	r->env = env;
	r->g = r->env->b.guest;
	r->req = fg_mr_request(&r->env->b.pd, &r->env->b.buf, 0, 1, FG_ACCESS_ALL);
	r->req.nchunks = LONG_PAGES;
	r->req.length = (uint64_t)LONG_PAGES * PVR_PAGE_SIZE;
	r->req.pdir_dma = t_wide_pdir(r->g, LONG_PAGES, &r->page);
}

#define TEST_REG(name) TEST_OBJECT(rc_connected, struct reg, r, reg_init, name)

static void begin(struct reg *r)
{
	fg_cmd_begin(r->g, &r->req, sizeof(r->req));
	assert_true(pvr_adapter_busy(r->g->adapter));
}

static uint32_t end(struct reg *r, struct pvr_resp_create_mr *resp)
{
	return fg_cmd_end(r->g, &r->req, resp, sizeof(*resp));
}

/* a writes to the last page of the region. */
static void write_last(struct reg *r, const struct pvr_resp_create_mr *resp,
		       enum pvrdma_wc_status status)
{
	struct fg_end *a = &r->env->a;
	struct fg_mr mr = { .start = r->req.start, .length = r->req.length, .rkey = resp->rkey };

	t_rdma(a, PVRDMA_WR_RDMA_WRITE, 1, 0, &mr, mr.length - 64, 64);
	fg_run(r->env->host);
	expect_cqe(&a->scq, 1, status);
}

static void point_all_entries_to(struct reg *r, uint64_t gpa)
{
	uint64_t *dir = fg_gpa_va(&r->g->ram, r->req.pdir_dma);
	uint64_t *table = fg_gpa_va(&r->g->ram, dir[0]); /* they all are this one */

	for (uint32_t i = 0; i < PVR_PDIR_ENTRIES; i++)
		table[i] = gpa;
}

TEST_REG(goes_on_from_run)
{
	struct pvr_resp_create_mr resp;

	begin(r);
	fg_run(env->host);
	assert_false(pvr_adapter_busy(r->g->adapter));
	expect_ok(end(r, &resp));
	write_last(r, &resp, PVRDMA_WC_SUCCESS);
}

TEST_REG(interrupts_when_it_is_done)
{
	uint32_t before;

	before = r->g->irq[PVR_VEC_CMD];
	begin(r);
	assert_int_equal(r->g->irq[PVR_VEC_CMD], before);
	fg_run(env->host);
	assert_int_equal(r->g->irq[PVR_VEC_CMD], before + 1);
}

TEST_REG(others_have_turns_meanwhile)
{
	begin(r);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	pvr_engine_run(env->host->engine, 0);
	assert_true(pvr_adapter_busy(r->g->adapter));
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
}

TEST_REG(two_adapters_take_turns)
{
	struct pvr_cmd_create_mr req;
	struct fg_guest *other;
	uint32_t page;

	other = env->a.guest;
	req = fg_mr_request(&env->a.pd, &env->a.buf, 0, 1, FG_ACCESS_ALL);
	req.nchunks = LONG_PAGES;
	req.length = r->req.length;
	req.pdir_dma = t_wide_pdir(other, LONG_PAGES, &page);
	begin(r);
	fg_cmd_begin(other, &req, sizeof(req));
	while (pvr_adapter_busy(r->g->adapter))
		pvr_engine_run(env->host->engine, 0);
	pvr_engine_run(env->host->engine, 0);
	assert_false(pvr_adapter_busy(other->adapter));
	expect_ok(fg_cmd_end(other, &req, NULL, 0));
}

TEST_REG(err_waits_for_the_end)
{
	struct pvr_resp_create_mr resp;

	begin(r);
	expect_ok(end(r, &resp));
	assert_false(pvr_adapter_busy(r->g->adapter));
	write_last(r, &resp, PVRDMA_WC_SUCCESS);
}

TEST_REG(next_request_waits_for_the_end)
{
	begin(r);
	begin(r);
	expect_ok(end(r, &(struct pvr_resp_create_mr){ 0 }));
	/* Both, and that of each end's buffer. */
	assert_int_equal(fg_stats(r->g).mrs, 3);
}

TEST_REG(a_bad_page_far_behind_is_refused)
{
	struct pvr_resp_create_mr resp;
	uint64_t *dir, *table;
	uint32_t page;

	page = fg_ram_get_page(&r->g->ram);
	table = fg_page_va(&r->g->ram, page);
	for (uint32_t i = 0; i < PVR_PDIR_ENTRIES; i++)
		table[i] = fg_page_gpa(&r->g->ram, r->page);
	table[3] = 1ull << 50;
	dir = fg_gpa_va(&r->g->ram, r->req.pdir_dma);
	dir[LONG_PAGES / PVR_PDIR_ENTRIES - 1] = fg_page_gpa(&r->g->ram, page);
	begin(r);
	assert_int_equal(end(r, &resp), EFAULT);
	assert_int_equal(fg_stats(r->g).mrs, 1);
	assert_int_equal(fg_stats(r->g).commands_failed, 1);
}

TEST_REG(a_reset_forgets_it)
{
	begin(r);
	pvr_adapter_reset(r->g->adapter);
	assert_false(pvr_adapter_busy(r->g->adapter));
	fg_run(env->host);
	assert_int_equal(fg_stats(r->g).mrs, 0);
}

TEST_REG(a_failure_forgets_it)
{
	begin(r);
	pvr_adapter_fail(r->g->adapter, "a test says so");
	assert_false(pvr_adapter_busy(r->g->adapter));
	fg_run(env->host);
}

/* The pointers that it has found so far lead there: the region is finished, and broken. */
TEST_REG(ram_that_goes_waits_for_the_end)
{
	static uint8_t spare[2 * PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	struct pvr_resp_create_mr resp;

	expect_ok(pvr_adapter_map_ram(r->g->adapter, SPARE_GPA, sizeof(spare), spare, true));
	point_all_entries_to(r, SPARE_GPA);
	begin(r);
	pvr_adapter_unmap_ram(r->g->adapter, SPARE_GPA, sizeof(spare));
	assert_false(pvr_adapter_busy(r->g->adapter));
	expect_ok(end(r, &resp));
	write_last(r, &resp, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_REG(bus_master_off_lets_it_finish)
{
	begin(r);
	pvr_adapter_set_bus_master(r->g->adapter, false);
	assert_false(pvr_adapter_busy(r->g->adapter));
	assert_int_equal(fg_stats(r->g).mrs, 2);
}

TEST_REG(an_adapter_can_go_meanwhile)
{
	begin(r);
	fg_guest_unplug(r->g);
	fg_run(env->host);
}

/* A window that is bound to the old region while the new one is being made. */
TEST_REG(a_window_bound_meanwhile_keeps_the_old_one)
{
	struct pvr_resp_create_mr resp;
	struct lend l;

	lend_init(&l, env, PVR_MR_FLAG_MW2);
	r->req.flags = PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_REPLACE;
	r->req.mr_handle = l.region.handle;
	r->req.page_shift = PVR_PAGE_SHIFT;
	r->req.pdir_levels = 2;
	r->req.offset = 0;
	begin(r);
	lend_put_bind(l.b, BIND_ID, &l.bind);
	fg_ring_send(&l.b->qp);
	pvr_engine_run(env->host->engine, 0);
	expect_done(&l.b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	assert_true(pvr_adapter_busy(r->g->adapter));
	assert_int_equal(end(r, &resp), EBUSY);
	l.mw.rkey = l.bind.new_rkey;
	lend_all_ok(&l);
}
