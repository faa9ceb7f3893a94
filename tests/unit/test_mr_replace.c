// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_MR_FLAG_REPLACE: a region becomes another one and keeps its keys. */
#include "ends.h"

TEST_EXT(PVR_EXT_MR_LAYOUT | PVR_EXT_MW)

/* b's region, which a writes; @req describes what it is to become. */
struct swap {
	struct t_env *env;
	struct fg_guest *g;
	struct fg_buf buf; /* four pages */
	struct fg_mr mr; /* the first two, at FG_USER_VA */
	struct pvr_cmd_create_mr req; /* valid: all four, at FG_USER_VA */
};

static void swap_init(struct swap *s, struct t_env *env)
{
	struct pvr_cmd_create_mr two;

	memset(s, 0, sizeof(*s));
	s->env = env;
	s->g = env->b.guest;
	fg_buf_init(&s->buf, &s->g->ram, 4, FG_SCATTERED);
	s->req = fg_layout_request(&env->b.pd, s->buf.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0,
				   4 * PVR_PAGE_SIZE);
	two = fg_layout_request(&env->b.pd, s->buf.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0,
				2 * PVR_PAGE_SIZE);
	expect_ok(fg_mr_create_as(&env->b.pd, &two, &s->mr));
	s->req.flags |= PVR_MR_FLAG_REPLACE;
	s->req.mr_handle = s->mr.handle;
}

#define TEST_SWAP(name) TEST_OBJECT(rc_connected, struct swap, s, swap_init, name)

static uint32_t replace(struct swap *s)
{
	struct pvr_resp_create_mr resp = { .mr_handle = UINT32_MAX };
	uint32_t err = fg_create_mr(s->g, &s->req, &resp);

	if (err)
		return err;
	assert_int_equal(resp.mr_handle, s->mr.handle);
	assert_int_equal(resp.lkey, s->mr.lkey);
	assert_int_equal(resp.rkey, s->mr.rkey);
	return 0;
}

static void write_to(struct swap *s, uint64_t addr, enum pvrdma_wc_status status)
{
	t_write_to(s->env, s->mr.rkey, addr, 64, status);
}

#define LAST (FG_USER_VA + 4 * PVR_PAGE_SIZE - 64)

TEST_SWAP(test_region_grows_under_its_key)
{
	write_to(s, LAST, PVRDMA_WC_REM_ACCESS_ERR);
	expect_ok(replace(s));
	write_to(s, LAST, PVRDMA_WC_SUCCESS);
	write_to(s, FG_USER_VA, PVRDMA_WC_SUCCESS);
}

TEST_SWAP(test_old_addresses_are_gone)
{
	s->req.start = FG_USER_VA + (1ull << 32);
	expect_ok(replace(s));
	write_to(s, FG_USER_VA, PVRDMA_WC_REM_ACCESS_ERR);
	write_to(s, FG_USER_VA + (1ull << 32), PVRDMA_WC_SUCCESS);
}

TEST_SWAP(test_rights_are_the_new_ones)
{
	s->req.access_flags = PVR_ACCESS_LOCAL_WRITE;
	expect_ok(replace(s));
	write_to(s, FG_USER_VA, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_SWAP(test_region_moves_to_another_pd)
{
	struct fg_pd pd;

	expect_ok(fg_pd_create(env->b.pd.ctx, &pd));
	s->req.pd_handle = pd.handle;
	expect_ok(replace(s));
	write_to(s, FG_USER_VA, PVRDMA_WC_REM_ACCESS_ERR);
	expect_refused(fg_pd_destroy(&pd)); /* in use now */
	s->req.pd_handle = env->b.pd.handle;
	expect_ok(replace(s));
	write_to(s, FG_USER_VA, PVRDMA_WC_SUCCESS);
	expect_ok(fg_pd_destroy(&pd));
}

TEST_SWAP(test_pages_are_not_counted_twice)
{
	for (int i = 0; i < 100000; i++)
		expect_ok(replace(s));
	assert_int_equal(fg_stats(s->g).mrs, 2); /* of the end, and this one */
	expect_ok(fg_mr_destroy(&s->mr));
}

static void expect_unchanged(struct swap *s, uint32_t err)
{
	assert_int_equal(replace(s), err);
	write_to(s, FG_USER_VA, PVRDMA_WC_SUCCESS);
	write_to(s, LAST, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_SWAP(test_failure_leaves_the_region_as_it_was)
{
	const struct pvr_cmd_create_mr valid = s->req;

	s->req.pdir_dma = 0xdead000;
	expect_unchanged(s, EFAULT);
	s->req = valid;
	s->req.nchunks = 3;
	expect_unchanged(s, EINVAL);
	s->req = valid;
	s->req.pd_handle = 0xffff;
	expect_unchanged(s, EINVAL);
}

TEST_SWAP(test_only_regions_of_pages_can_be_replaced)
{
	struct fg_mr dma, mw;

	expect_ok(fg_mr_create_dma(&env->b.pd, &dma));
	expect_ok(fg_mw_create(&env->b.pd, PVR_MR_FLAG_MW1, &mw));
	const uint32_t bad[] = { dma.handle, mw.handle, 0, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		s->req.mr_handle = bad[i];
		assert_int_equal(replace(s), EINVAL);
	}
}

TEST_SWAP(test_region_of_another_context_stays)
{
	struct fg_ctx ctx;
	struct fg_pd pd;

	expect_ok(fg_ctx_create(s->g, &ctx));
	expect_ok(fg_pd_create(&ctx, &pd));
	s->req.pd_handle = pd.handle;
	expect_unchanged(s, EINVAL);
}

TEST_SWAP(test_replace_needs_a_layout)
{
	s->req.flags = PVR_MR_FLAG_REPLACE;
	assert_int_equal(replace(s), EINVAL);
	s->req.flags = PVR_MR_FLAG_REPLACE | PVR_MR_FLAG_DMA;
	assert_int_equal(replace(s), EINVAL);
}

TEST_SWAP(test_region_of_no_bytes)
{
	s->req = fg_layout_request(&env->b.pd, 0, PVR_PAGE_SHIFT, 0, 0, 0);
	s->req.nchunks = 0;
	expect_ok(fg_mr_create_as(&env->b.pd, &s->req, &s->mr));
	write_to(s, 0, PVRDMA_WC_REM_ACCESS_ERR);
	expect_ok(fg_mr_destroy(&s->mr));
}
