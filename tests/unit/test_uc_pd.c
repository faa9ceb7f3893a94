// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* User contexts and protection domains. */
#include "objects.h"

#define BAR2_PFN (FG_BAR2_GPA >> PVR_PAGE_SHIFT)

TEST_GUEST(guest, test_create_uc_gives_nonzero_distinct_handles)
{
	struct fg_ctx a, b;

	expect_ok(fg_ctx_create(g, &a));
	expect_ok(fg_ctx_create(g, &b));
	assert_int_not_equal(a.handle, 0);
	assert_int_not_equal(b.handle, 0);
	assert_int_not_equal(a.handle, b.handle);
	assert_int_equal(fg_stats(g).contexts, 2);
	expect_ok(fg_ctx_destroy(&a));
	expect_ok(fg_ctx_destroy(&b));
	assert_int_equal(fg_stats(g).contexts, 0);
}

TEST_GUEST(guest, test_create_uc_rejects_pages_outside_the_bar)
{
	static const uint64_t bad[] = { 0,
					1,
					BAR2_PFN - 1,
					BAR2_PFN + PVR_MAX_UAR,
					BAR2_PFN + PVR_MAX_UAR + 1,
					BAR2_PFN + (1ull << 32) + 1,
					1ull << 52,
					UINT64_MAX };
	uint32_t handle;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fg_create_uc(g, bad[i], &handle), EINVAL);
}

TEST_GUEST(guest, test_create_uc_rejects_the_drivers_own_page)
{
	uint32_t handle;

	expect_refused(fg_create_uc(g, BAR2_PFN, &handle));
}

TEST_GUEST(guest, test_create_uc_rejects_a_page_in_use)
{
	uint32_t handle, other;

	expect_ok(fg_create_uc(g, BAR2_PFN + 7, &handle));
	expect_refused(fg_create_uc(g, BAR2_PFN + 7, &other));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_UC, handle));
	expect_ok(fg_create_uc(g, BAR2_PFN + 7, &handle));
}

TEST_GUEST(guest, test_create_uc_accepts_the_last_page)
{
	uint32_t handle;

	expect_ok(fg_create_uc(g, BAR2_PFN + g->dsr->caps.max_uar - 1, &handle));
}

TEST_GUEST(unprobed, test_create_uc_ignores_upper_half_below_version_19)
{
	uint32_t handle;

	g->config.driver_version = 18;
	expect_ok(fg_guest_boot(g));
	expect_ok(fg_create_uc(g, 0xa5a5a5a500000000ull | (BAR2_PFN + 1), &handle));
}

TEST_GUEST(guest, test_all_contexts_can_be_used_up_and_used_again)
{
	uint32_t max = g->dsr->caps.max_uar;

	for (int round = 0; round < 2; round++) {
		static uint32_t handle[PVR_MAX_UAR];

		for (uint32_t page = 1; page < max; page++)
			expect_ok(fg_create_uc(g, BAR2_PFN + page, &handle[page]));
		for (uint32_t page = 1; page < max; page++)
			expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_UC, handle[page]));
	}
}

TEST_GUEST(guest, test_destroy_uc_rejects_unknown_handles)
{
	static const uint32_t bad[] = { 0, 1, 99, 0x10000, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fg_cmd_destroy(g, PVR_CMD_DESTROY_UC, bad[i]), EINVAL);
}

TEST_GUEST(guest, test_destroy_uc_twice_is_rejected)
{
	struct fg_ctx ctx;

	expect_ok(fg_ctx_create(g, &ctx));
	expect_ok(fg_ctx_destroy(&ctx));
	assert_int_equal(fg_ctx_destroy(&ctx), EINVAL);
}

TEST_GUEST(guest, test_destroy_uc_destroys_what_belongs_to_it)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvr_adapter_stats stats;
	struct fg_ctx ctx;
	struct fg_srq srq;

	t_open_user(&env->a, &ctx, g, &spec);
	fg_end_open(&env->b, g, PVR_QPT_RC);
	expect_ok(fg_srq_create(&env->a.pd, 16, 1, &srq));
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
	t_send(&env->a, 1, 0, 100);
	expect_ok(fg_ctx_destroy(&ctx));
	fg_run(env->host);
	stats = fg_stats(g);
	assert_int_equal(stats.contexts, 0);
	assert_int_equal(stats.pds, 1);
	assert_int_equal(stats.mrs, 1);
	assert_int_equal(stats.cqs, 2);
	assert_int_equal(stats.qps, 1);
	assert_int_equal(stats.srqs, 0);
	assert_int_equal(fg_qp_destroy(&env->a.qp), EINVAL);
	assert_int_equal(fg_mr_destroy(&env->a.mr), EINVAL);
	assert_int_equal(fg_cq_destroy(&env->a.scq), EINVAL);
	assert_int_equal(fg_pd_destroy(&env->a.pd), EINVAL);
}

TEST_GUEST(guest, test_create_pd_gives_handles_below_2_24)
{
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	assert_true(pd < 1u << 24);
	assert_int_equal(fg_stats(g).pds, 1);
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_PD, pd));
	assert_int_equal(fg_stats(g).pds, 0);
}

TEST_GUEST(guest, test_create_pd_rejects_unknown_contexts)
{
	static const uint32_t bad[] = { 1, 99, 0x10000, UINT32_MAX };
	uint32_t pd;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fg_create_pd(g, bad[i], &pd), EINVAL);
}

TEST_GUEST(guest, test_create_pd_rejects_a_destroyed_context)
{
	struct fg_ctx ctx;
	struct fg_pd pd;

	expect_ok(fg_ctx_create(g, &ctx));
	expect_ok(fg_ctx_destroy(&ctx));
	assert_int_equal(fg_pd_create(&ctx, &pd), EINVAL);
}

TEST_OBJECTS(test_destroy_pd_rejects_unknown_handles)
{
	assert_int_equal(fg_cmd_destroy(o->g, PVR_CMD_DESTROY_PD, o->pd.handle + 1), EINVAL);
	assert_int_equal(fg_cmd_destroy(o->g, PVR_CMD_DESTROY_PD, UINT32_MAX), EINVAL);
}

TEST_OBJECTS(test_destroy_pd_twice_is_rejected)
{
	expect_ok(fg_pd_destroy(&o->pd));
	assert_int_equal(fg_pd_destroy(&o->pd), EINVAL);
}

TEST_OBJECTS(test_destroy_pd_in_use_by_an_mr_is_rejected)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_dma(&o->pd, &mr));
	assert_int_equal(fg_pd_destroy(&o->pd), EBUSY);
	expect_ok(fg_mr_destroy(&mr));
	expect_ok(fg_pd_destroy(&o->pd));
}

TEST_OBJECTS(test_destroy_pd_in_use_by_a_qp_is_rejected)
{
	struct fg_qp qp;

	expect_ok(fg_qp_create(&o->qp, &qp));
	assert_int_equal(fg_pd_destroy(&o->pd), EBUSY);
	expect_ok(fg_qp_destroy(&qp));
	expect_ok(fg_pd_destroy(&o->pd));
}

TEST_OBJECTS(test_destroy_pd_in_use_by_an_srq_is_rejected)
{
	struct fg_srq srq;

	expect_ok(fg_srq_create(&o->pd, 16, 1, &srq));
	assert_int_equal(fg_pd_destroy(&o->pd), EBUSY);
	expect_ok(fg_srq_destroy(&srq));
	expect_ok(fg_pd_destroy(&o->pd));
}

TEST_GUEST(guest, test_all_pds_can_be_used_up_and_used_again)
{
	uint32_t max = g->dsr->caps.max_pd;
	uint32_t *handle = test_calloc(max + 1, sizeof(*handle));

	for (int round = 0; round < 2; round++) {
		uint32_t n = 0;

		while (n <= max && !fg_create_pd(g, 0, &handle[n]))
			n++;
		assert_int_equal(n, max);
		while (n--)
			expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_PD, handle[n]));
	}
	test_free(handle);
}

TEST_GUEST(guests, test_one_guests_handles_mean_nothing_to_another)
{
	uint32_t pd;

	for (int i = 0; i < 10; i++)
		expect_ok(fg_create_pd(g, 0, &pd));
	assert_int_equal(fg_cmd_destroy(env->g[1], PVR_CMD_DESTROY_PD, pd), EINVAL);
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_PD, pd));
}
