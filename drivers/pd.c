// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains. */
#include "pvrdma.h"

static int create_pd(struct pvr_dev *dev, struct pvr_pd *pd, u32 ctx)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = PVR_CMD_CREATE_PD;
	req.create_pd.ctx_handle = ctx;
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	pd->handle = resp.create_pd.pd_handle;
	if (pd->handle & ~PVR_AV_PD_MASK) {
		pvr_dev_fail(dev, "a PD's handle has more than 24 bits");
		return -EIO;
	}
	return 0;
}

int pvr_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	struct pvrdma_alloc_pd_resp resp = {};
	struct pvr_pd *pd = to_pvr_pd(ibpd);
	int err;

	atomic_set(&pd->windows, 0);
	err = create_pd(dev, pd, pvr_udata_ctx(udata));
	if (err || !udata)
		return err;
	resp.pdn = pd->handle;
	err = pvr_udata_out(udata, &resp, sizeof(resp));
	if (err)
		pvr_cmd_destroy(dev, PVR_CMD_DESTROY_PD, pd->handle);
	return err;
}

int pvr_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	pvr_cmd_destroy(to_pvr_dev(ibpd->device), PVR_CMD_DESTROY_PD,
			to_pvr_pd(ibpd)->handle);
	return 0;
}
