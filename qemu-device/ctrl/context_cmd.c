// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Contexts, protection domains and XRC domains: their commands. */
#include <errno.h>

#include "core/charge.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "ctrl/uar_poll.h"
void pvr_pd_destroy(struct pvr_adapter *adapter, struct pvr_pd *pd)
{
	pvr_table_del(&adapter->pds, pd->handle);
	pvr_charge_free(adapter, pd, sizeof(*pd));
}

int pvr_cmd_create_pd(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	struct pvr_uc *uc = pvr_uc_get(adapter, req->create_pd.ctx_handle);
	struct pvr_pd *pd;
	int err;

	if (!uc)
		return -EINVAL;
	pd = pvr_charge_alloc(adapter, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->uc = uc;
	err = pvr_table_add(&adapter->pds, pd, &pd->handle);
	if (err) {
		pvr_charge_free(adapter, pd, sizeof(*pd));
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

/* ------------------------------------------------------------------------ XRC domains */

void pvr_xrcd_destroy(struct pvr_adapter *adapter, struct pvr_xrcd *xrcd)
{
	pvr_table_del(&adapter->xrcds, xrcd->handle);
	pvr_charge_free(adapter, xrcd, sizeof(*xrcd));
}

/*
 * A domain belongs to the guest driver: processes share it, and its target queue pairs
 * outlive them.
 */
int pvr_cmd_create_xrcd(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	struct pvr_xrcd *xrcd = pvr_charge_alloc(adapter, sizeof(*xrcd));
	int err;

	if (!xrcd)
		return -ENOMEM;
	xrcd->pd.uc = &adapter->kernel_uc;
	err = pvr_table_add(&adapter->xrcds, xrcd, &xrcd->handle);
	if (err) {
		pvr_charge_free(adapter, xrcd, sizeof(*xrcd));
		return err;
	}
	resp->create_xrcd.xrcd_handle = xrcd->handle;
	return 0;
}

int pvr_cmd_destroy_xrcd(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	struct pvr_xrcd *xrcd = pvr_xrcd_get(adapter, req->handle.handle);

	if (!xrcd)
		return -EINVAL;
	if (xrcd->users)
		return -EBUSY;
	pvr_xrcd_destroy(adapter, xrcd);
	return 0;
}

/* -------------------------------------------------------------------------- contexts */

/* Return: the page with this frame number; 0 if no context can have it. */
static uint32_t uar_index(const struct pvr_adapter *adapter, uint64_t pfn)
{
	uint64_t index;

	if (adapter->version < PVR_VERSION_PPN64)
		pfn = (uint32_t)pfn;
	index = pfn - adapter->uar_pfn;
	return index < PVR_MAX_UAR ? index : 0;
}

int pvr_cmd_create_uc(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	uint32_t index = uar_index(adapter, req->create_uc.pfn);
	struct pvr_uc *uc;
	int err;

	if (!index)
		return -EINVAL;
	if (adapter->uar[index])
		return -EBUSY;
	uc = pvr_charge_alloc(adapter, sizeof(*uc));
	if (!uc)
		return -ENOMEM;
	err = pvr_table_add(&adapter->ucs, uc, &uc->handle);
	if (err) {
		pvr_charge_free(adapter, uc, sizeof(*uc));
		return err;
	}
	pvr_uc_init(adapter, uc, index);
	resp->create_uc.ctx_handle = uc->handle;
	return 0;
}

static void uc_destroy(struct pvr_adapter *adapter, struct pvr_uc *uc)
{
	pvr_uc_exit(uc);
	pvr_table_del(&adapter->ucs, uc->handle);
	pvr_charge_free(adapter, uc, sizeof(*uc));
}

static int uc_destroy_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	struct pvr_uc *uc = adapter->job.uc;

	if (!pvr_adapter_destroy_some(adapter, uc))
		return -EINPROGRESS;
	uc_destroy(adapter, uc);
	return 0;
}

/* Destroys all objects of the context: an interrupted driver may have left some. */
int pvr_cmd_destroy_uc(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	struct pvr_uc *uc = pvr_table_get(&adapter->ucs, req->handle.handle);

	if (!uc)
		return -EINVAL;
	adapter->job.uc = uc;
	adapter->job.table = 0;
	adapter->job.handle = 0;
	return pvr_cmd_begin(adapter, req, uc_destroy_step, NULL, resp);
}

void pvr_uc_destroy_all(struct pvr_adapter *adapter)
{
	struct pvr_uc *uc;
	uint32_t i;

	PVR_TABLE_FOR_EACH(&adapter->ucs, i, uc)
		uc_destroy(adapter, uc);
}
