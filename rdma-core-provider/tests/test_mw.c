// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows, and the work requests that bind and invalidate. */
#include <errno.h>
#include <string.h>

#include "fake_kernel.h"

#define EXTENSIONS (PVR_EXT_UC | PVR_EXT_USER_OPS | PVR_EXT_MW)

static struct ibv_mr mr = { .lkey = 0x500 };

static int mw_setup(void **state)
{
	int err = fake_setup(state);

	fake.ctx.features = EXTENSIONS;
	mr.pd = &fake.pd.ibv_pd;
	return err;
}
#define mw_teardown fake_teardown

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = pvr_alloc_mw(&fake.pd.ibv_pd, type);

	assert_non_null(mw);
	assert_int_equal(mw->type, type);
	mw->rkey |= 0xff;
	return mw;
}

static struct ibv_mw_bind bind_request(void)
{
	return (struct ibv_mw_bind){
		.wr_id = 42,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = &mr,
			       .addr = 0x8000,
			       .length = 64,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED },
	};
}

static struct pvr_wqe_bind_mw bind_of(struct ibv_qp *qp, uint32_t slot)
{
	struct pvr_wqe_bind_mw bind;

	memcpy(&bind, &fake_send_wqe(qp, slot)->wr, sizeof(bind));
	return bind;
}

TEST(mw, test_alloc_needs_the_extension)
{
	fake.ctx.features = PVR_EXT_USER_OPS;
	assert_fails(pvr_alloc_mw(&fake.pd.ibv_pd, IBV_MW_TYPE_1), EOPNOTSUPP);
}

TEST(mw, test_alloc_refuses)
{
	assert_fails(pvr_alloc_mw(&fake.pd.ibv_pd, 3), EINVAL);
	fake.fail = ENOSPC;
	assert_fails(pvr_alloc_mw(&fake.pd.ibv_pd, IBV_MW_TYPE_2), ENOSPC);
}

TEST(mw, test_dealloc_that_fails_keeps_the_window)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);

	fake.fail = EBUSY;
	assert_int_equal(pvr_dealloc_mw(mw), EBUSY);
	assert_int_equal(mw->type, IBV_MW_TYPE_1);
	assert_int_equal(pvr_dealloc_mw(mw), 0);
}

/* Only the low byte of the key is incremented. */
TEST(mw, test_bind_posts_and_tells_the_next_key)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 2, 1, 1, 1);
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request();
	uint32_t old = mw->rkey;
	struct pvr_wqe_bind_mw wqe;

	assert_int_equal(pvr_bind_mw(qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, old & ~0xffu);
	assert_int_equal(fake_send_wqe(qp, 0)->wr_id, 42);
	assert_int_equal(fake_send_wqe(qp, 0)->opcode, PVRDMA_WR_BIND_MW);
	assert_int_equal(fake_send_wqe(qp, 0)->send_flags, PVR_SEND_SIGNALED);
	assert_int_equal(fake_send_wqe(qp, 0)->num_sge, 0);
	wqe = bind_of(qp, 0);
	assert_int_equal(wqe.addr, 0x8000);
	assert_int_equal(wqe.length, 64);
	assert_int_equal(wqe.mw_rkey, old);
	assert_int_equal(wqe.new_rkey, old & ~0xffu);
	assert_int_equal(wqe.mr_lkey, 0x500);
	assert_int_equal(wqe.access_flags, PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_ZERO_BASED);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), PVR_DB_QP_SEND | to_pvr_qp(qp)->handle);
	pvr_dealloc_mw(mw);
}

TEST(mw, test_bind_of_nothing_unbinds)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 2, 1, 1, 1);
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {};

	assert_int_equal(pvr_bind_mw(qp, mw, &bind), 0);
	assert_int_equal(bind_of(qp, 0).length, 0);
	assert_int_equal(bind_of(qp, 0).mr_lkey, 0);
	pvr_dealloc_mw(mw);
}

static struct pvr_pd other_pd = { .ibv_pd.handle = 99 };
static struct ibv_mr foreign = { .pd = &other_pd.ibv_pd };

static const struct {
	const char *what;
	enum ibv_qp_type type;
	struct ibv_mw_bind bind;
	int err;
} refused_binds[] = {
	{ "on UD", IBV_QPT_UD, {}, EINVAL },
	{ "right to bind", IBV_QPT_RC, { .bind_info.mw_access_flags = IBV_ACCESS_MW_BIND }, EINVAL },
	{ "no region", IBV_QPT_RC, { .bind_info.length = 1 }, EINVAL },
	{ "other PD", IBV_QPT_RC, { .bind_info.mr = &foreign }, EPERM },
	{ "unknown flag", IBV_QPT_RC, { .send_flags = IBV_SEND_IP_CSUM }, EINVAL },
	{ "inline", IBV_QPT_RC, { .send_flags = IBV_SEND_INLINE }, EINVAL },
};

TEST(mw, test_bind_refuses)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	uint32_t rkey = mw->rkey;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused_binds); i++) {
		struct ibv_qp *qp = fake_qp(refused_binds[i].type, 2, 1, 1, 1);
		struct ibv_mw_bind bind = refused_binds[i].bind;
		int err = pvr_bind_mw(qp, mw, &bind);

		fake_check_err(refused_binds[i].what, err, refused_binds[i].err);
		assert_int_equal(mw->rkey, rkey);
		assert_int_equal(to_pvr_qp(qp)->sq.ring_shm->prod_tail, 0);
		assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
		fake_destroy_qp(qp);
	}
	pvr_dealloc_mw(mw);
}

TEST(mw, test_bind_on_a_full_queue)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_UC, 1, 1, 1, 1);
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request();
	uint32_t rkey;

	assert_int_equal(pvr_bind_mw(qp, mw, &bind), 0);
	rkey = mw->rkey;
	assert_int_equal(pvr_bind_mw(qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, rkey);
	pvr_dealloc_mw(mw);
}

static int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *to)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw,
			     .rkey = rkey,
			     .bind_info = { .mr = to, .addr = 0x9000, .length = 8 } },
	};

	return pvr_post_send(qp, &wr, &bad);
}

TEST(mw, test_type_2_is_bound_by_a_work_request)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	struct ibv_mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);

	assert_int_equal(post_bind(qp, two, two->rkey - 5, &mr), 0);
	assert_int_equal(bind_of(qp, 0).new_rkey, two->rkey - 5);
	assert_int_equal(bind_of(qp, 0).mw_rkey, two->rkey);
	assert_int_equal(bind_of(qp, 0).addr, 0x9000);
	assert_int_equal(post_bind(qp, one, one->rkey, &mr), EINVAL);
	assert_int_equal(post_bind(qp, NULL, 1, &mr), EINVAL);
	assert_int_equal(post_bind(qp, two, two->rkey, NULL), EINVAL);
	assert_int_equal(post_bind(qp, two, two->rkey ^ 0x100, &mr), EINVAL);
	assert_int_equal(post_bind(qp, two, two->rkey, &foreign), EPERM);
	assert_int_equal(to_pvr_qp(qp)->sq.ring_shm->prod_tail, 1);
	pvr_dealloc_mw(one);
	pvr_dealloc_mw(two);
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t pvr;
	int num_sge; /* in the WQE */
} invalidations[] = {
	{ IBV_WR_LOCAL_INV, PVRDMA_WR_LOCAL_INV, 0 },
	{ IBV_WR_SEND_WITH_INV, PVRDMA_WR_SEND_WITH_INV, 1 },
};

TEST(mw, test_invalidations_carry_the_key)
{
	struct ibv_sge sge = { .addr = 0x1000, .length = 5, .lkey = 6 };
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1), *stock;
	uint32_t i;

	fake.ctx.features = PVR_EXT_MW;
	stock = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	for (i = 0; i < 2; i++) {
		struct ibv_send_wr *bad, wr = { .opcode = invalidations[i].opcode,
						.num_sge = 1,
						.sg_list = &sge,
						.invalidate_rkey = 0xabc };

		assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
		assert_int_equal(fake_send_wqe(qp, i)->opcode, invalidations[i].pvr);
		assert_int_equal(fake_send_wqe(qp, i)->ex.invalidate_rkey, 0xabc);
		assert_int_equal(fake_send_wqe(qp, i)->num_sge, invalidations[i].num_sge);
		/* Stock devices use these opcodes for other requests. */
		assert_int_equal(pvr_post_send(stock, &wr, &bad), EOPNOTSUPP);
	}
}
