// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows, and the work requests that bind and invalidate. */
#include "fake_kernel.h"

#define EXTENSIONS (PVR_EXT_UC | PVR_EXT_USER_OPS | PVR_EXT_MW)

static struct ibv_mr mr = { .lkey = 0x500 };

static struct ibv_qp *qp;
static struct ibv_mw *mw; /* of type 1 */

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = pvr_alloc_mw(fake.ibpd, type);

	assert_non_null(mw);
	assert_int_equal(mw->type, type);
	mw->rkey |= 0xff;
	return mw;
}

static void mw_begin(void)
{
	fake.ctx.features = EXTENSIONS;
	mr.pd = fake.ibpd;
	qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	mw = window(IBV_MW_TYPE_1);
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

TEST(mw, test_alloc_needs_the_extension)
{
	fake.ctx.features = PVR_EXT_USER_OPS;
	assert_fails(pvr_alloc_mw(fake.ibpd, IBV_MW_TYPE_1), EOPNOTSUPP);
}

TEST(mw, test_alloc_refuses)
{
	assert_fails(pvr_alloc_mw(fake.ibpd, 3), EINVAL);
	fake.fail = ENOSPC;
	assert_fails(pvr_alloc_mw(fake.ibpd, IBV_MW_TYPE_2), ENOSPC);
}

TEST(mw, test_failed_dealloc_keeps_the_window)
{
	fake.fail = EBUSY;
	assert_int_equal(pvr_dealloc_mw(mw), EBUSY);
	assert_int_equal(mw->type, IBV_MW_TYPE_1);
	assert_int_equal(pvr_dealloc_mw(mw), 0);
}

/* Only the low byte of the key is incremented. */
TEST(mw, test_bind_posts_and_sets_the_next_key)
{
	struct ibv_mw_bind bind = bind_request();
	uint32_t old = mw->rkey;

	assert_int_equal(pvr_bind_mw(qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, old & ~0xffu);
	FAKE_EXPECT_BIND(qp, 0, 42, PVR_SEND_SIGNALED, .addr = 0x8000, .length = 64, .mw_rkey = old,
			 .new_rkey = old & ~0xffu, .mr_lkey = 0x500,
			 .access_flags = PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_ZERO_BASED);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
}

TEST(mw, test_bind_of_length_0_unbinds)
{
	uint32_t old = mw->rkey;

	assert_int_equal(pvr_bind_mw(qp, mw, &(struct ibv_mw_bind){}), 0);
	FAKE_EXPECT_BIND(qp, 0, 0, 0, .mw_rkey = old, .new_rkey = mw->rkey);
}

static struct pvr_pd other_pd = { .ibv_pd.handle = 99 };
static struct ibv_mr foreign = { .pd = &other_pd.ibv_pd };

static const struct {
	const char *label;
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

TEST_CASES(mw, test_bind_refuses, refused_binds)
{
	struct ibv_mw_bind bind = row->bind;
	uint32_t rkey = mw->rkey;

	qp = fake_qp(row->type, 2, 1, 1, 1);
	assert_int_equal(pvr_bind_mw(qp, mw, &bind), row->err);
	assert_int_equal(mw->rkey, rkey);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

TEST(mw, test_bind_on_a_full_queue_keeps_the_key)
{
	struct ibv_mw_bind bind = bind_request();
	uint32_t rkey;

	qp = fake_qp(IBV_QPT_UC, 1, 1, 1, 1);
	assert_int_equal(pvr_bind_mw(qp, mw, &bind), 0);
	rkey = mw->rkey;
	assert_int_equal(pvr_bind_mw(qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, rkey);
}

/* test_errno.c has the requests that are refused. */
TEST(mw, test_type_2_is_bound_by_a_work_request)
{
	struct ibv_mw *two = window(IBV_MW_TYPE_2);

	FAKE_SEND(qp, 0, .opcode = IBV_WR_BIND_MW,
		  .bind_mw = { two, two->rkey - 5, { .mr = &mr, .addr = 0x9000, .length = 8 } });
	FAKE_EXPECT_BIND(qp, 0, 0, 0, .addr = 0x9000, .length = 8, .mw_rkey = two->rkey,
			 .new_rkey = two->rkey - 5, .mr_lkey = 0x500);
}

static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
	uint32_t pvr;
	int num_sge; /* in the WQE */
} invalidations[] = {
	{ "LOCAL_INV", IBV_WR_LOCAL_INV, PVRDMA_WR_LOCAL_INV, 0 },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV, PVRDMA_WR_SEND_WITH_INV, 1 },
};

TEST_CASES(mw, test_invalidation_has_the_key, invalidations)
{
	FAKE_SEND(qp, 0, .opcode = row->opcode, FAKE_SGES(1), .invalidate_rkey = 0xabc);
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .opcode = row->pvr, .num_sge = row->num_sge,
			.ex.invalidate_rkey = 0xabc);
}
