// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Import of PDs and regions of another context on the same file, by their handles in the
 * kernel.
 */
#include "fake_kernel.h"

static struct ibv_pd *import_pd(uint32_t handle)
{
	return pvr_import_pd(fake.ibctx, handle);
}

/* Commands use the kernel's handle of a PD, address vectors the device's. */
TEST(fake, test_imported_pds_have_both_handles)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh.dgid.raw = { 0xfe, [15] = 1 } };
	struct ibv_pd *pd = import_pd(FAKE_KERNEL_PD);
	struct ibv_ah *ah;

	assert_non_null(pd);
	assert_ptr_equal(pd->context, fake.ibctx);
	assert_int_equal(pd->handle, FAKE_KERNEL_PD);
	ah = pvr_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(to_pvr_ah(ah)->av.port_pd, FAKE_PDN | 1u << 24);
	pvr_destroy_ah(ah);
	pvr_unimport_pd(pd);
}

/* Only the exporting context deallocates the PD. */
TEST(fake, test_unimport_does_not_deallocate_the_pd)
{
	int pds = fake.pds;

	pvr_unimport_pd(import_pd(FAKE_KERNEL_PD));
	assert_int_equal(fake.pds, pds);
}

TEST(fake, test_parent_domains_of_imported_pds_have_both_handles)
{
	struct ibv_parent_domain_init_attr attr = { .pd = import_pd(FAKE_KERNEL_PD) };
	struct ibv_pd *parent = pvr_alloc_parent_domain(fake.ibctx, &attr);

	assert_non_null(parent);
	assert_int_equal(parent->handle, FAKE_KERNEL_PD);
	assert_int_equal(to_pvr_pd(parent)->handle, FAKE_PDN);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
	pvr_unimport_pd(attr.pd);
}

TEST(fake, test_imported_regions_have_the_keys_of_the_kernel)
{
	struct ibv_pd *pd = import_pd(FAKE_KERNEL_PD);
	struct ibv_mr *mr = pvr_import_mr(pd, FAKE_KERNEL_MR);

	assert_non_null(mr);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(mr->lkey, FAKE_MR_KEY);
	assert_int_equal(mr->rkey, FAKE_MR_KEY);
	/* The region is not deregistered. */
	fake.fail = EIO;
	pvr_unimport_mr(mr);
	assert_int_equal(fake.fail, EIO);
	pvr_unimport_pd(pd);
}

TEST(fake, test_unknown_handles_are_refused)
{
	assert_fails(import_pd(FAKE_KERNEL_PD + 1), ENOENT);
	assert_fails(pvr_import_mr(fake.ibpd, FAKE_KERNEL_MR + 1), ENOENT);
}
