/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Protection domains. */
#include <errno.h>
#include <stdlib.h>

#include "core/objects.h"
#include "ctrl/ctrl.h"
void pvr_pd_destroy(struct pvr_adapter *adapter, struct pvr_pd *pd)
{
	pvr_table_del(&adapter->pds, pd->handle);
	free(pd);
}

int pvr_cmd_create_pd(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	struct pvr_uc *uc = pvr_uc_get(adapter, req->create_pd.ctx_handle);
	struct pvr_pd *pd;
	int err;

	if (!uc)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->uc = uc;
	err = pvr_table_add(&adapter->pds, pd, &pd->handle);
	if (err) {
		free(pd);
		return err;
	}
	resp->create_pd.pd_handle = pd->handle;
	return 0;
}

int pvr_cmd_destroy_pd(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	struct pvr_pd *pd = pvr_pd_get(adapter, req->handle.handle);

	if (!pd)
		return -EINVAL;
	if (pd->users)
		return -EBUSY;
	pvr_pd_destroy(adapter, pd);
	return 0;
}
