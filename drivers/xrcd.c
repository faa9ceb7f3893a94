// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC domains. */
#include "pvrdma.h"

int pvr_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_XRCD);
	err = pvr_cmd(to_pvr_dev(ibxrcd->device), &req, &resp);
	if (err)
		return err;
	to_pvr_xrcd(ibxrcd)->handle = le32_to_cpu(resp.create_xrcd.xrcd_handle);
	return 0;
}

int pvr_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	pvr_cmd_destroy(to_pvr_dev(ibxrcd->device), PVR_CMD_DESTROY_XRCD,
			to_pvr_xrcd(ibxrcd)->handle);
	return 0;
}
