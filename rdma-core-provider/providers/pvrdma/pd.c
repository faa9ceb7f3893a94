// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "pvrdma.h"
#include "uverbs_abi.h"

struct ibv_pd *pvr_alloc_pd(struct ibv_context *ibctx)
{
	struct pvr_uverbs_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct pvr_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->handle = resp.pdn;
	return &pd->ibv_pd;
}

/* Also frees parent domains. The kernel counts only the users of real PDs. */
int pvr_dealloc_pd(struct ibv_pd *ibpd)
{
	struct pvr_parent_domain *parent = to_pvr_parent_domain(ibpd);
	struct pvr_pd *pd = to_pvr_pd(ibpd);
	int err;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (parent) {
		pvr_free_parent_domain(parent);
		return 0;
	}
	err = ibv_cmd_dealloc_pd(ibpd);
	if (!err)
		free(pd);
	return err;
}

static int query(struct ibv_context *ibctx, uint32_t handle, struct pvrdma_alloc_pd_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, PVR_METHOD_PD_QUERY, 2);

	fill_attr_in_obj(cmd, PVR_ATTR_PD_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, PVR_ATTR_PD_QUERY_RESP, resp);
	return execute_ioctl(ibctx, cmd);
}

struct ibv_pd *pvr_import_pd(struct ibv_context *ibctx, uint32_t handle)
{
	struct pvrdma_alloc_pd_resp resp = {};
	struct pvr_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = query(ibctx, handle, &resp);
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->ibv_pd.context = ibctx;
	pd->ibv_pd.handle = handle;
	pd->handle = resp.pdn;
	return &pd->ibv_pd;
}

void pvr_unimport_pd(struct ibv_pd *ibpd)
{
	free(to_pvr_pd(ibpd));
}
