// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fake_kernel.h"

#define ADDR ((void *)0x12345678)

static struct verbs_mr *reg(uint64_t iova, int access)
{
	struct ibv_mr *mr = pvr_reg_mr(fake.ibpd, ADDR, 5000, iova, access);

	return mr ? verbs_get_mr(mr) : NULL;
}

TEST(fake, test_region_at_its_own_address_needs_no_extension)
{
	assert_non_null(reg((uintptr_t)ADDR, IBV_ACCESS_RELAXED_ORDERING));
	assert_int_equal(fake.iova, (uintptr_t)ADDR);
}

static const struct {
	const char *label;
	uint64_t iova;
	int access;
} layouts[] = {
	{ "another address", 0x1000, 0 },
	{ "zero based", (uintptr_t)ADDR, IBV_ACCESS_ZERO_BASED },
};

TEST_CASES(fake, test_region_of_another_layout_needs_the_extension, layouts)
{
	struct verbs_mr *vmr;

	assert_fails(reg(row->iova, row->access), EOPNOTSUPP);
	fake.ctx.features = PVR_EXT_MR_LAYOUT;
	vmr = reg(row->iova, row->access);
	assert_non_null(vmr);
	assert_int_equal(fake.iova, row->iova);
	assert_int_equal(vmr->access, row->access);
}

/* With and without extensions; some kernels fail with another errno. */
TEST(fake, test_there_is_no_on_demand_paging)
{
	fake.ctx.features = PVR_EXT_MR_LAYOUT;
	assert_fails(reg((uintptr_t)ADDR, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE),
		     EOPNOTSUPP);
}

TEST(fake, test_region_on_demand_is_the_kernels)
{
	struct ibv_mr *mr;

	fake.ctx.features = PVR_EXT_MR_LAYOUT | PVR_EXT_ON_DEMAND;
	mr = pvr_reg_mr(fake.ibpd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	assert_int_equal(verbs_get_mr(mr)->access, IBV_ACCESS_ON_DEMAND);
	pvr_dereg_mr(verbs_get_mr(mr));
}

TEST(fake, test_region_on_demand_is_registered_in_spite_of_signals)
{
	struct verbs_mr *vmr;

	fake.ctx.features = PVR_EXT_ON_DEMAND;
	fake.fail = EINTR;
	fake.fails_again = 20;
	vmr = reg((uintptr_t)ADDR, IBV_ACCESS_ON_DEMAND);
	assert_non_null(vmr);
	pvr_dereg_mr(vmr);
}

/* A region with pinned pages has another reason for EINTR, a fatal signal. */
TEST(fake, test_region_gives_up_after_signals_without_end)
{
	fake.ctx.features = PVR_EXT_ON_DEMAND;
	fake.fail = EINTR;
	fake.fails_again = 1000;
	assert_fails(reg((uintptr_t)ADDR, IBV_ACCESS_ON_DEMAND), EINTR);
	assert_int_equal(fake.fails_again, 1000 - 100);
	assert_fails(reg((uintptr_t)ADDR, 0), EINTR);
	assert_int_equal(fake.fails_again, 1000 - 101);
	fake.fails_again = 0;
	fake.fail = 0;
}

TEST(fake, test_advice_goes_to_the_kernel)
{
	struct ibv_sge sge = { .addr = 0x5000, .length = 1, .lkey = 7 };

	assert_int_equal(pvr_advise_mr(fake.ibpd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
	assert_true(fake.iova == 0x5000 && fake.length == 1);
	fake.fail = EINVAL;
	assert_int_equal(pvr_advise_mr(fake.ibpd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
			 EINVAL);
}

TEST(fake, test_region_returns_the_errno_of_the_kernel)
{
	struct verbs_mr *vmr;

	fake.fail = ENOMEM;
	assert_fails(reg((uintptr_t)ADDR, 0), ENOMEM);
	vmr = reg((uintptr_t)ADDR, 0);
	fake.fail = EBUSY;
	assert_int_equal(pvr_dereg_mr(vmr), EBUSY);
	assert_int_equal(pvr_dereg_mr(vmr), 0);
}

TEST(fake, test_region_of_a_dmabuf)
{
	struct ibv_mr *mr = pvr_reg_dmabuf_mr(fake.ibpd, 5, 100, 0x1234, 3, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(fake.iova, 0x1234);
	assert_int_equal(fake.length, 100);
	fake.fail = EBADF;
	assert_fails(pvr_reg_dmabuf_mr(fake.ibpd, 5, 100, 0x1234, -1, 0), EBADF);
	assert_int_equal(fake.mrs.num, 1);
}

TEST(fake, test_rereg_updates_the_access)
{
	struct verbs_mr *vmr = reg((uintptr_t)ADDR, 0);

	assert_int_equal(pvr_rereg_mr(vmr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 0);
	assert_int_equal(fake.rereg_flags, IBV_REREG_MR_CHANGE_ACCESS);
	assert_int_equal(vmr->access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(
		pvr_rereg_mr(vmr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)0x9999, 10, 0), 0);
	assert_int_equal(fake.iova, 0x9999);
	assert_int_equal(vmr->access, IBV_ACCESS_LOCAL_WRITE);
}

TEST(fake, test_rereg_refuses)
{
	struct ibv_context other = {};
	struct pvr_pd foreign = { .ibv_pd.context = &other };
	struct verbs_mr *vmr = reg((uintptr_t)ADDR, 0);

	fake.rereg_flags = 0;
	assert_int_equal(pvr_rereg_mr(vmr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), EINVAL);
	assert_int_equal(pvr_rereg_mr(vmr, IBV_REREG_MR_CHANGE_PD, &foreign.ibv_pd, NULL, 0, 0),
			 EINVAL);
	assert_int_equal(fake.rereg_flags, 0);
	fake.fail = EOPNOTSUPP;
	assert_int_equal(pvr_rereg_mr(vmr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 EOPNOTSUPP);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(vmr->access, 0);
}

TEST(fake, test_mcast_returns_the_errno_of_the_kernel)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_UD, 1, 1, 1, 1);
	union ibv_gid gid = { .raw = { 0xff } };

	assert_int_equal(pvr_attach_mcast(qp, &gid, 0), 0);
	fake.fail = EOPNOTSUPP;
	assert_int_equal(pvr_attach_mcast(qp, &gid, 0), EOPNOTSUPP);
	fake.fail = EINVAL;
	assert_int_equal(pvr_detach_mcast(qp, &gid, 0), EINVAL);
}
