// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: pages of the driver, which the process maps to copy data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "pvrdma.h"

#define DM_ACCESS_NEEDED IBV_ACCESS_ZERO_BASED /* a DM has no address, see ibv_reg_dm_mr(3) */

#define DM_UNIT 4 /* bytes; as NICs with memory behind PCI, which copy whole units */

static bool in_range(const struct pvr_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static bool can_copy(const struct pvr_dm *dm, uint64_t offset, size_t length)
{
	return !((offset | length) % DM_UNIT) && in_range(dm, offset, length);
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);

	if (!can_copy(dm, offset, length))
		return EFAULT;
	memcpy(dm->addr + offset, from, length);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);

	if (!can_copy(dm, offset, length))
		return EFAULT;
	memcpy(to, dm->addr + offset, length);
	return 0;
}

static int query(struct ibv_context *ibctx, uint32_t handle, struct pvr_dm_query_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, PVR_METHOD_DM_QUERY, 2);

	fill_attr_in_obj(cmd, PVR_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, PVR_ATTR_DM_QUERY_RESP, resp);
	return execute_ioctl(ibctx, cmd);
}

/* The mapping has whole pages; the rest behind length stays unused. */
static int map(struct ibv_context *ibctx, struct pvr_dm *dm)
{
	struct pvr_dm_query_resp resp = {};
	void *addr;
	int err;

	err = query(ibctx, dm->verbs_dm.handle, &resp);
	if (err)
		return err;
	dm->length = resp.length;
	dm->mapped = (resp.length + PVR_PAGE_SIZE - 1) & ~(size_t)(PVR_PAGE_SIZE - 1);
	addr = mmap(NULL, dm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, ibctx->cmd_fd,
		    resp.mmap_offset);
	if (addr == MAP_FAILED)
		return errno;
	dm->addr = addr;
	return 0;
}

static void set_calls(struct ibv_context *ibctx, struct pvr_dm *dm)
{
	dm->verbs_dm.dm.context = ibctx;
	dm->verbs_dm.dm.memcpy_to_dm = copy_to;
	dm->verbs_dm.dm.memcpy_from_dm = copy_from;
}

struct ibv_dm *pvr_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr)
{
	struct pvr_dm *dm;
	int err = EINVAL;

	if (attr->comp_mask)
		goto err_errno;
	err = ENOMEM;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		goto err_errno;
	err = ibv_cmd_alloc_dm(ibctx, attr, &dm->verbs_dm, NULL);
	if (err)
		goto err_free;
	set_calls(ibctx, dm);
	err = map(ibctx, dm);
	if (err)
		goto err_dm;
	return &dm->verbs_dm.dm;

err_dm:
	ibv_cmd_free_dm(&dm->verbs_dm);
err_free:
	free(dm);
err_errno:
	errno = err;
	return NULL;
}

int pvr_free_dm(struct ibv_dm *ibdm)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);
	int err = ibv_cmd_free_dm(&dm->verbs_dm);

	if (err)
		return err;
	pvr_unimport_dm(ibdm);
	return 0;
}

struct ibv_dm *pvr_import_dm(struct ibv_context *ibctx, uint32_t handle)
{
	struct pvr_dm *dm = calloc(1, sizeof(*dm));
	int err;

	if (!dm)
		return NULL;
	dm->verbs_dm.handle = handle;
	dm->verbs_dm.dm.handle = handle;
	set_calls(ibctx, dm);
	err = map(ibctx, dm);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->verbs_dm.dm;
}

void pvr_unimport_dm(struct ibv_dm *ibdm)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);

	munmap(dm->addr, dm->mapped);
	free(dm);
}

struct ibv_mr *pvr_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm, uint64_t offset,
			     size_t length, unsigned int access)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);
	struct verbs_mr *vmr;
	int err = EINVAL;

	if (!(access & DM_ACCESS_NEEDED) || !in_range(dm, offset, length))
		goto err_errno;
	err = ENOMEM;
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		goto err_errno;
	err = ibv_cmd_reg_dm_mr(ibpd, &dm->verbs_dm, offset, length, access, vmr, NULL);
	if (!err)
		return &vmr->ibv_mr;
	free(vmr);
err_errno:
	errno = err;
	return NULL;
}
