// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows: allocation and deallocation. User space binds them by work requests. */
#include "pvrdma.h"

static u32 mw_flag(enum ib_mw_type type)
{
	switch (type) {
	case IB_MW_TYPE_1:
		return PVR_MR_FLAG_MW1;
	case IB_MW_TYPE_2:
		return PVR_MR_FLAG_MW2;
	default:
		return 0;
	}
}

int pvr_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibmw->device);
	struct pvr_pd *pd = to_pvr_pd(ibmw->pd);
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_MR);
	req.create_mr.pd_handle = cpu_to_le32(pd->handle);
	req.create_mr.flags = cpu_to_le32(mw_flag(ibmw->type));
	if (!req.create_mr.flags)
		return -EINVAL;
	WRITE_ONCE(pd->had_windows, true);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	to_pvr_mw(ibmw)->handle = le32_to_cpu(resp.create_mr.mr_handle);
	ibmw->rkey = le32_to_cpu(resp.create_mr.rkey);
	return 0;
}

int pvr_dealloc_mw(struct ib_mw *ibmw)
{
	pvr_cmd_destroy(to_pvr_dev(ibmw->device), PVR_CMD_DESTROY_MR,
			to_pvr_mw(ibmw)->handle);
	return 0;
}
