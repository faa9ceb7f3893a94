// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Import of PDs and regions of another context on the same file, by their handles in the
 * kernel.
 */
#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "fake_kernel.h"

#define PD_HANDLE 41u /* handle in the kernel */
#define PDN 0x00abcdefu /* handle in the device */
#define MR_HANDLE 43u
#define KEY 0x4300u

int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	const struct ib_uverbs_attr *attrs = cmd->hdr.attrs;
	struct pvrdma_alloc_pd_resp *resp = (void *)(uintptr_t)attrs[1].data;

	assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_PD);
	assert_int_equal(cmd->hdr.method_id, PVR_METHOD_PD_QUERY);
	assert_int_equal(attrs[0].attr_id, PVR_ATTR_PD_QUERY_HANDLE);
	assert_int_equal(attrs[1].attr_id, PVR_ATTR_PD_QUERY_RESP);
	assert_int_equal(attrs[1].len, sizeof(*resp));
	if (attrs[0].data != PD_HANDLE)
		return ENOENT;
	resp->pdn = PDN;
	return 0;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t mr_handle)
{
	if (mr_handle != MR_HANDLE)
		return ENOENT;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.handle = mr_handle;
	vmr->ibv_mr.lkey = vmr->ibv_mr.rkey = KEY;
	vmr->mr_type = IBV_MR_TYPE_IMPORTED_MR;
	return 0;
}

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
	struct ibv_pd *pd = import_pd(PD_HANDLE);
	struct ibv_ah *ah;

	assert_non_null(pd);
	assert_ptr_equal(pd->context, fake.ibctx);
	assert_int_equal(pd->handle, PD_HANDLE);
	ah = pvr_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(to_pvr_ah(ah)->av.port_pd, PDN | 1u << 24);
	pvr_destroy_ah(ah);
	pvr_unimport_pd(pd);
}

/* Only the exporting context deallocates the PD. */
TEST(fake, test_unimport_does_not_deallocate_the_pd)
{
	int pds = fake.pds;

	pvr_unimport_pd(import_pd(PD_HANDLE));
	assert_int_equal(fake.pds, pds);
}

TEST(fake, test_parent_domains_of_imported_pds_have_both_handles)
{
	struct ibv_parent_domain_init_attr attr = { .pd = import_pd(PD_HANDLE) };
	struct ibv_pd *parent = pvr_alloc_parent_domain(fake.ibctx, &attr);

	assert_non_null(parent);
	assert_int_equal(parent->handle, PD_HANDLE);
	assert_int_equal(to_pvr_pd(parent)->handle, PDN);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
	pvr_unimport_pd(attr.pd);
}

TEST(fake, test_imported_regions_have_the_keys_of_the_kernel)
{
	struct ibv_pd *pd = import_pd(PD_HANDLE);
	struct ibv_mr *mr = pvr_import_mr(pd, MR_HANDLE);

	assert_non_null(mr);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(mr->lkey, KEY);
	assert_int_equal(mr->rkey, KEY);
	/* The region is not deregistered. */
	fake.fail = EIO;
	pvr_unimport_mr(mr);
	assert_int_equal(fake.fail, EIO);
	pvr_unimport_pd(pd);
}

TEST(fake, test_unknown_handles_are_refused)
{
	assert_fails(import_pd(PD_HANDLE + 1), ENOENT);
	assert_fails(pvr_import_mr(fake.ibpd, MR_HANDLE + 1), ENOENT);
}
