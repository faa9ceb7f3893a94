// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* User contexts and protection domains. */
#include "fg_pd.h"

#include "fg_cmd.h"

uint32_t fg_create_uc(struct fg_guest *guest, uint64_t pfn, uint32_t *handle)
{
	struct pvr_cmd_create_uc req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_UC),
		.pfn = pfn,
	};
	struct pvr_resp_create_uc resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*handle = resp.ctx_handle;
	return err;
}

uint32_t fg_ctx_create(struct fg_guest *guest, struct fg_ctx *ctx)
{
	uint32_t uar = guest->uar_next;
	uint32_t err = fg_create_uc(guest, (FG_BAR2_GPA >> PVR_PAGE_SHIFT) + uar, &ctx->handle);

	if (err)
		return err;
	ctx->guest = guest;
	ctx->uar = uar;
	guest->uar_next++;
	return 0;
}

uint32_t fg_ctx_destroy(struct fg_ctx *ctx)
{
	return fg_cmd_destroy(ctx->guest, PVR_CMD_DESTROY_UC, ctx->handle);
}

uint32_t fg_create_pd(struct fg_guest *guest, uint32_t ctx_handle, uint32_t *handle)
{
	struct pvr_cmd_create_pd req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD),
		.ctx_handle = ctx_handle,
	};
	struct pvr_resp_create_pd resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*handle = resp.pd_handle;
	return err;
}

uint32_t fg_pd_create(struct fg_ctx *ctx, struct fg_pd *pd)
{
	pd->ctx = ctx;
	return fg_create_pd(ctx->guest, ctx->handle, &pd->handle);
}

uint32_t fg_pd_destroy(struct fg_pd *pd)
{
	return fg_cmd_destroy(pd->ctx->guest, PVR_CMD_DESTROY_PD, pd->handle);
}
