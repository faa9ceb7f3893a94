// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Contexts, protection domains and XRC domains: their commands. */
#include <errno.h>
#include <string.h>

#include "core/charge.h"
#include "core/state.h"
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

/* --------------------------------------------------------------------------- state */

void *pvr_state_alloc(struct pvr_codec *codec, size_t size)
{
	void *object = codec->err ? NULL : pvr_charge_alloc(codec->adapter, size);

	if (!object)
		pvr_codec_fault(codec, -ENOMEM, "the guest needs more memory than its limit");
	return object;
}

void pvr_state_enter(struct pvr_codec *codec, struct pvr_table *table, void *object,
		     uint32_t handle)
{
	int err = handle < table->min ? -EINVAL : pvr_table_add_at(table, object, handle);

	if (err)
		pvr_codec_fault(codec, err, "handle %u %s", handle,
				err == -EBUSY	 ? "exists already"
				: err == -ENOMEM ? "needs more memory than there is"
						 : "is out of range");
}

struct pvr_uc *pvr_state_get_uc(struct pvr_codec *codec, uint32_t handle)
{
	struct pvr_uc *uc = codec->err ? NULL : pvr_uc_get(codec->adapter, handle);

	if (!uc)
		pvr_codec_fault(codec, -EINVAL, "context %u does not exist", handle);
	return uc;
}

/* Enter a copy of an object that needs no more than its fields. Return: the copy; NULL: a fault. */
static void *enter_copy(struct pvr_codec *codec, struct pvr_table *table, const void *fields,
			size_t size, uint32_t handle)
{
	void *object = pvr_state_alloc(codec, size);

	if (!object)
		return NULL;
	memcpy(object, fields, size);
	pvr_state_enter(codec, table, object, handle);
	if (!codec->err)
		return object;
	pvr_charge_free(codec->adapter, object, size);
	return NULL;
}

static void uc_fields(struct pvr_codec *codec, struct pvr_uc *uc)
{
	pvr_codec_u32_max(codec, "handle", &uc->handle, PVR_MAX_UAR - 1);
	pvr_codec_u32_max(codec, "doorbell page", &uc->uar, PVR_MAX_UAR - 1);
	pvr_codec_u64(codec, "doorbells", &uc->cq_doorbells);
}

void pvr_uc_save(struct pvr_codec *codec, void *object)
{
	uc_fields(codec, object);
}

/* Handle 0: the context of the guest driver, which exists. */
static void load_kernel_uc(struct pvr_codec *codec, const struct pvr_uc *from)
{
	codec->adapter->kernel_uc.cq_doorbells = from->cq_doorbells;
}

void pvr_uc_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_uc fields = { 0 }, *uc;

	uc_fields(codec, &fields);
	if (!codec->err && !fields.handle) {
		load_kernel_uc(codec, &fields);
		return;
	}
	if (!codec->err && (!fields.uar || adapter->uar[fields.uar]))
		pvr_codec_fault(codec, -EINVAL, "doorbell page %u has an owner", fields.uar);
	uc = enter_copy(codec, &adapter->ucs, &fields, sizeof(fields), fields.handle);
	if (uc)
		pvr_uc_init(adapter, uc, uc->uar);
}

static void pd_fields(struct pvr_codec *codec, struct pvr_pd *pd, uint32_t *context)
{
	pvr_codec_u32(codec, "handle", &pd->handle);
	pvr_codec_u32(codec, "context", context);
}

void pvr_pd_save(struct pvr_codec *codec, void *object)
{
	struct pvr_pd *pd = object;
	uint32_t context = pd->uc->handle;

	pd_fields(codec, pd, &context);
}

void pvr_pd_load(struct pvr_codec *codec)
{
	struct pvr_pd fields = { 0 };
	uint32_t context = 0;

	pd_fields(codec, &fields, &context);
	fields.uc = pvr_state_get_uc(codec, context);
	enter_copy(codec, &codec->adapter->pds, &fields, sizeof(fields), fields.handle);
}

void pvr_xrcd_save(struct pvr_codec *codec, void *object)
{
	struct pvr_xrcd *xrcd = object;

	pvr_codec_u32(codec, "handle", &xrcd->handle);
}

void pvr_xrcd_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_xrcd fields = { .pd.uc = &adapter->kernel_uc };

	pvr_codec_u32(codec, "handle", &fields.handle);
	if (!(adapter->features & PVR_EXT_XRC))
		pvr_codec_fault(codec, -EINVAL, "the driver does not use XRC");
	enter_copy(codec, &adapter->xrcds, &fields, sizeof(fields), fields.handle);
}
