// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains. */
#include <rdma/uverbs_std_types.h>

#include "pvrdma.h"

#define UVERBS_MODULE_NAME pvr_uverbs
#include <rdma/uverbs_named_ioctl.h>

static int create_pd(struct pvr_dev *dev, struct pvr_pd *pd, u32 ctx)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_PD);
	req.create_pd.ctx_handle = cpu_to_le32(ctx);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	pd->handle = le32_to_cpu(resp.create_pd.pd_handle);
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

	pd->had_windows = false;
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

/* The provider imports a PD: its address vectors carry the device's handle. */
static int UVERBS_HANDLER(PVR_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd =
		uverbs_attr_get_obj(attrs, PVR_ATTR_PD_QUERY_HANDLE);
	struct pvrdma_alloc_pd_resp resp = { .pdn = to_pvr_pd(ibpd)->handle };

	return uverbs_copy_to(attrs, PVR_ATTR_PD_QUERY_RESP, &resp,
			      sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	PVR_METHOD_PD_QUERY,
	UVERBS_ATTR_IDR(PVR_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(PVR_ATTR_PD_QUERY_RESP,
			    UVERBS_ATTR_TYPE(struct pvrdma_alloc_pd_resp),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(pvr_pd_methods, UVERBS_OBJECT_PD,
		   &UVERBS_METHOD(PVR_METHOD_PD_QUERY));

const struct uapi_definition pvr_pd_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &pvr_pd_methods),
	{},
};
