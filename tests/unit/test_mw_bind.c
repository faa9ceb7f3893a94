// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_MW: which binds are refused, and on which queue pairs (IBTA vol. 1, 10.6.7.2). */
#include "rndv.h"

#define TEST_EXPOSE(fixture, flag, name) \
	TEST_OBJECT(fixture, struct expose, l, expose_init, name, flag)

TEST_INIT
{
	fg_default_ext = PVR_EXT_MW | PVR_EXT_USER_OPS | PVR_EXT_MR_LAYOUT;
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_region_must_allow_windows)
{
	l->bind.mr_lkey = l->b->mr.lkey; /* all access but that */
	expose_bind_refused(l);
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_writing_windows_need_local_write_of_the_region)
{
	expect_ok(fg_mr_create(&l->b->pd, &l->b->buf, PVR_ACCESS_MW_BIND, &l->region));
	l->bind.mr_lkey = l->region.lkey;
	l->bind.access_flags = PVR_ACCESS_REMOTE_WRITE;
	expose_bind_refused(l);
	l->bind.access_flags = PVR_ACCESS_REMOTE_ATOMIC;
	expose_bind_refused(l);
	l->bind.access_flags = PVR_ACCESS_REMOTE_READ;
	expose_bind(l);
	expose_access(l, PVRDMA_WR_RDMA_READ, l->mw.rkey, l->bind.addr, 8);
	expect_done(&l->a->scq, 1, PVRDMA_WC_RDMA_READ);
}

/* One field of the request is wrong; nothing must be bound then. */
#define EXPECT_BAD_BIND(l, field, value)                                             \
	do {                                                                         \
		const struct pvr_wqe_bind_mw good = (l)->bind;                       \
                                                                                     \
		(l)->bind.field = (value);                                           \
		expose_bind_refused(l);                                              \
		(l)->bind = good;                                                    \
		assert_int_equal(fg_stats((l)->b->guest).mws, 1);                    \
		expose_refused(l, PVRDMA_WR_RDMA_READ, good.new_rkey, good.addr, 1); \
		expose_reconnect(l);                                                 \
	} while (0)

static void expect_bad_binds(struct expose *l)
{
	const uint64_t start = l->region.start, length = l->region.length;
	struct fg_mr dma;

	EXPECT_BAD_BIND(l, addr, start - 1);
	EXPECT_BAD_BIND(l, addr, start + length - BOUND_LEN + 1);
	EXPECT_BAD_BIND(l, addr, start + length);
	EXPECT_BAD_BIND(l, addr, 0);
	EXPECT_BAD_BIND(l, addr, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, length - BOUND_FROM + 1);
	EXPECT_BAD_BIND(l, length, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, -(uint64_t)BOUND_FROM);
	EXPECT_BAD_BIND(l, mw_rkey, l->mw.rkey ^ 0x100);
	EXPECT_BAD_BIND(l, mw_rkey, l->region.rkey);
	EXPECT_BAD_BIND(l, mw_rkey, 0);
	EXPECT_BAD_BIND(l, new_rkey, l->bind.new_rkey ^ 0x100);
	EXPECT_BAD_BIND(l, new_rkey, 0);
	EXPECT_BAD_BIND(l, mr_lkey, l->region.lkey ^ 1);
	EXPECT_BAD_BIND(l, mr_lkey, l->mw.rkey);
	EXPECT_BAD_BIND(l, mr_lkey, UINT32_MAX);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_LOCAL_WRITE);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_MW_BIND);
	EXPECT_BAD_BIND(l, access_flags, 1u << 31);
	expect_ok(fg_mr_create_dma(&l->b->pd, &dma));
	EXPECT_BAD_BIND(l, mr_lkey, dma.lkey);
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_bad_binds_of_type_1_fail)
{
	expect_bad_binds(l);
	EXPECT_BAD_BIND(l, mw_rkey, l->mw.rkey ^ 1);
	expose_bind(l);
	expose_all_ok(l);
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW2, test_bad_binds_of_type_2_fail)
{
	expect_bad_binds(l);
	expose_bind(l);
	expose_all_ok(l);
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_bind_in_another_domain_fails)
{
	struct fg_mr region, mw;
	struct fg_pd pd;

	expect_ok(fg_pd_create(&l->b->guest->kernel, &pd));
	expect_ok(fg_mr_create(&pd, &l->b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND, &region));
	expect_ok(fg_mw_create(&pd, PVR_MR_FLAG_MW1, &mw));
	l->bind.mr_lkey = region.lkey;
	expose_bind_refused(l);
	l->bind.mr_lkey = l->region.lkey;
	l->bind.mw_rkey = mw.rkey;
	l->bind.new_rkey = mw.rkey;
	expose_bind_refused(l);
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_key_of_a_region_is_no_windows)
{
	struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					 .flags = PVR_MR_FLAG_FRMR,
					 .nchunks = 4 };
	struct fg_mr fast;

	/* As if the bind were within it and permitted. */
	req.pd_handle = l->b->pd.handle;
	req.start = l->region.start;
	req.length = l->region.length;
	req.access_flags = FG_ACCESS_ALL | PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l->b->pd, &req, &fast));
	l->bind.mw_rkey = l->bind.new_rkey = l->b->mr.rkey;
	expose_bind_refused(l);
	l->bind.mw_rkey = l->bind.new_rkey = fast.rkey;
	expose_bind_refused(l);
	/* Nor is a window a region to bind to, or one that has no memory of its own yet. */
	l->bind.mw_rkey = l->bind.new_rkey = l->mw.rkey;
	l->bind.mr_lkey = fast.lkey;
	expose_bind_refused(l);
	l->bind.mr_lkey = l->mw.rkey;
	expose_bind_refused(l);
	/* The region is what it was. */
	l->bind.mr_lkey = l->region.lkey;
	l->region.rkey = l->b->mr.rkey;
	t_rdma(l->a, PVRDMA_WR_RDMA_WRITE, 7, 0, &l->region, 0, 8);
	fg_run(env->host);
	expect_done(&l->a->scq, 7, PVRDMA_WC_RDMA_WRITE);
}

TEST(rc_connected, test_window_of_another_domain_is_refused)
{
	static const uint32_t flags[] = { PVR_MR_FLAG_MW1, PVR_MR_FLAG_MW2 };
	struct fg_end near, far;
	struct expose l;

	fg_end_open(&near, env->g[1], PVR_QPT_RC);
	fg_end_open(&far, env->g[0], PVR_QPT_RC);
	for (size_t i = 0; i < 2; i++) {
		expose_init(&l, env, flags[i]);
		expose_bind(&l);
		fg_end_connect(&far, &near, NULL);
		l.region.rkey = l.mw.rkey;
		t_rdma(&far, PVRDMA_WR_RDMA_WRITE, 7, 0, &l.region, BOUND_FROM, 8);
		fg_run(l.env->host);
		expect_cqe(&far.scq, 7, PVRDMA_WC_REM_ACCESS_ERR);
		expect_ok(fg_qp_to_reset(&near.qp));
		expect_ok(fg_qp_to_reset(&far.qp));
		expose_all_ok(&l);
	}
}

TEST_EXPOSE(rc_connected, PVR_MR_FLAG_MW1, test_failed_bind_leaves_type_1_as_it_was)
{
	struct pvr_wqe_bind_mw good;

	expose_bind(l);
	good = l->bind;
	l->bind.length = UINT64_MAX;
	expose_bind_refused(l);
	l->bind = good;
	expose_all_ok(l);
}

static int t_setup_uc_connected(void **state)
{
	struct t_env *env;

	t_setup_uc(state);
	env = *state;
	fg_end_connect(&env->a, &env->b, NULL);
	return 0;
}

/* IBTA table 38: UC supports binds, but reports no refused access. */
TEST_EXPOSE(uc_connected, PVR_MR_FLAG_MW2, test_unreliable_connections_bind_windows)
{
	expose_bind(l);
	expose_all_ok(l);
	memset(l->b->buf.va, 0, l->b->buf.size);
	l->a->mr.va[0] = 1;
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM - 1, 1);
	expect_done(&l->a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(l->b->buf.va[BOUND_FROM - 1], 0);
	expose_invalidated(l);
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM, 1);
	expect_done(&l->a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(l->b->buf.va[BOUND_FROM], 0);
	expect_state(l->b, PVR_QPS_RTS);
}

TEST_EXPOSE(ud_ready, PVR_MR_FLAG_MW1, test_datagram_queue_pairs_bind_nothing)
{
	expose_put_bind(l->b, BIND_ID, &l->bind);
	expose_run(l, l->b);
	expect_cqe(&l->b->scq, BIND_ID, PVRDMA_WC_LOC_QP_OP_ERR);
}
