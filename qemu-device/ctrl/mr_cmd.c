// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions.
 *
 * A key is index << 8 | generation. Each registration changes the generation, and indices
 * are reused as late as possible: so a stale key matches no region. The consumer chooses
 * the low byte of the key of a fast region (fast_mr.c).
 */
#include <errno.h>

#include "core/demand.h"
#include "core/charge.h"
#include "core/mr.h"
#include "core/ext_dma.h"
#include "ctrl/ctrl.h"

/* ---------------------------------------------------------------- kinds */

/* The rights that a registration may request of this adapter. */
uint32_t pvr_mr_known_access(const struct pvr_adapter *adapter)
{
	return PVR_MR_ACCESS | (adapter->features & PVR_EXT_FLUSH ? PVR_ACCESS_FLUSH_GLOBAL : 0) |
	       (adapter->features & PVR_EXT_FLUSH_PERSISTENT ? PVR_ACCESS_FLUSH_PERSISTENT : 0);
}

static int check_user(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	uint32_t access = cmd->access_flags & ~PVR_ACCESS_OPTIONAL;

	if (access & ~pvr_mr_known_access(adapter))
		return -EOPNOTSUPP;
	if (!pvr_mr_access_ok(access) || !pvr_mr_range_ok(cmd->start, cmd->length, PVR_MAX_MR_SIZE))
		return -EINVAL;
	return cmd->nchunks == pvr_mr_span_pages(cmd->start, cmd->length) ? 0 : -EINVAL;
}

/* ZERO_BASED is ignored: a region is zero-based if its start is 0. */
static int check_layout(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	uint32_t access = cmd->access_flags & ~(PVR_ACCESS_OPTIONAL | PVR_ACCESS_ZERO_BASED);

	if (access & ~pvr_mr_known_access(adapter))
		return -EOPNOTSUPP;
	if (!cmd->length)
		return cmd->nchunks || !pvr_mr_access_ok(access) ? -EINVAL : 0;
	if (!pvr_mr_access_ok(access) ||
	    !pvr_mr_range_ok(cmd->start, cmd->length, PVR_MAX_MR_SIZE_LAYOUT) ||
	    cmd->page_shift < PVR_PAGE_SHIFT || cmd->page_shift > PVR_MAX_MR_PAGE_SHIFT ||
	    (cmd->pdir_levels != 2 && cmd->pdir_levels != 3) || cmd->offset >> cmd->page_shift)
		return -EINVAL;
	return (cmd->offset + cmd->length - 1) >> cmd->page_shift == cmd->nchunks - 1u ? 0
										       : -EINVAL;
}

static int check_on_demand(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	uint32_t access = cmd->access_flags & ~(PVR_ACCESS_OPTIONAL | PVR_ACCESS_ZERO_BASED);

	if (access &
	    (~pvr_mr_known_access(adapter) | PVR_ACCESS_MW_BIND | PVR_ACCESS_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	if (!pvr_mr_access_ok(access) || cmd->nchunks || cmd->page_shift != PVR_PAGE_SHIFT ||
	    cmd->offset >= PVR_PAGE_SIZE ||
	    !pvr_mr_range_ok(cmd->start, cmd->length, PVR_MAX_MR_SIZE_ON_DEMAND))
		return -EINVAL;
	return 0;
}

static int check_dma(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	return cmd->access_flags & ~(PVR_ACCESS_OPTIONAL | PVR_ACCESS_LOCAL_WRITE) ? -EINVAL : 0;
}

static int check_fast(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	uint32_t max = adapter->features & PVR_EXT_LONG_FAST_REG ? PVR_MAX_FAST_REG_PAGES_LONG
								 : PVR_MAX_FAST_REG_PAGES;

	return cmd->nchunks && cmd->nchunks <= max ? 0 : -EINVAL;
}

/* A window has no attributes before its bind. */
static int check_window(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd)
{
	return 0;
}

static int walk_slice(struct pvr_adapter *adapter, const struct pvr_pdir *pdir)
{
	struct pvr_mr *mr = adapter->job.mr;
	int err = pvr_walk_begin(&adapter->job.walk, adapter, pdir,
				 mr->access & PVR_ACCESS_LOCAL_WRITE, &mr->pages);

	adapter->job.walk.persistent = mr->access & PVR_ACCESS_FLUSH_PERSISTENT;
	return err ? err : pvr_walk_run(&adapter->job.walk);
}

static int map_user(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
		    struct pvr_mr *mr)
{
	struct pvr_pdir pdir = pvr_pdir_of_pages(cmd->pdir_dma, cmd->nchunks);

	mr->offset = cmd->start % PVR_PAGE_SIZE;
	return walk_slice(adapter, &pdir);
}

static int map_layout(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
		      struct pvr_mr *mr)
{
	uint64_t pages;
	struct pvr_pdir pdir = {
		.dma = cmd->pdir_dma,
		.levels = cmd->pdir_levels,
		.shift = cmd->page_shift,
		.count = cmd->nchunks,
	};

	if (!cmd->length)
		return 0;
	mr->offset = cmd->offset % PVR_PAGE_SIZE;
	pages = (mr->offset + cmd->length + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE;
	pdir.skip = cmd->offset - mr->offset;
	pdir.size = pages * PVR_PAGE_SIZE;
	return walk_slice(adapter, &pdir);
}

static int map_on_demand(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
			 struct pvr_mr *mr)
{
	uint64_t bytes = cmd->offset + cmd->length;

	mr->offset = cmd->offset;
	return pvr_pages_demand(adapter, (bytes + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE, &mr->pages);
}

/* DMA regions and windows have no pages of their own. */
static int map_nothing(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
		       struct pvr_mr *mr)
{
	return 0;
}

static int map_fast(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
		    struct pvr_mr *mr)
{
	mr->max_pages = cmd->nchunks;
	return pvr_pages_reserve(adapter, mr->max_pages, &mr->pages);
}

/* A kind of memory region, selected by the flags of CREATE_MR. */
struct mr_type {
	uint32_t flags;
	uint32_t ext; /* required PVR_EXT_* */
	enum pvr_mr_kind kind;
	/* Check the parameters of the command. Return: 0 or -errno. */
	int (*check)(const struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd);
	/*
	 * Map the memory of the adapter's job. Return: 0, -errno, or -EINPROGRESS if
	 * steps remain.
	 */
	int (*map)(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
		   struct pvr_mr *mr);
};

static const struct mr_type mr_types[] = {
	{ 0, 0, PVR_MR_USER, check_user, map_user },
	{ PVR_MR_FLAG_DMA, 0, PVR_MR_DMA, check_dma, map_nothing },
	{ PVR_MR_FLAG_FRMR, 0, PVR_MR_FAST, check_fast, map_fast },
	{ PVR_MR_FLAG_LAYOUT, PVR_EXT_MR_LAYOUT, PVR_MR_USER, check_layout, map_layout },
	{ PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_REPLACE, PVR_EXT_MR_LAYOUT, PVR_MR_USER, check_layout,
	  map_layout },
	{ PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_ON_DEMAND, PVR_EXT_MR_LAYOUT | PVR_EXT_ON_DEMAND,
	  PVR_MR_USER, check_on_demand, map_on_demand },
	{ PVR_MR_FLAG_MW1, PVR_EXT_MW, PVR_MR_WINDOW1, check_window, map_nothing },
	{ PVR_MR_FLAG_MW2, PVR_EXT_MW, PVR_MR_WINDOW2, check_window, map_nothing },
};

static const struct mr_type *find_mr_type(const struct pvr_adapter *adapter, uint32_t flags)
{
	size_t i;

	for (i = 0; i < sizeof(mr_types) / sizeof(mr_types[0]); i++)
		if (mr_types[i].flags == flags)
			return (adapter->features & mr_types[i].ext) == mr_types[i].ext
				       ? &mr_types[i]
				       : NULL;
	return NULL;
}

/* ------------------------------------------------------------- life cycle */

static struct pvr_mr *mr_new(struct pvr_adapter *adapter, const struct mr_type *mr_type,
			     const struct pvr_cmd_create_mr *cmd, struct pvr_pd *pd)
{
	struct pvr_mr *mr = pvr_charge_alloc(adapter, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->pd = pd;
	mr->kind = mr_type->kind;
	mr->where = mr_type->map == map_nothing ? NULL : &mr->pages;
	if (pvr_mr_is_window(mr))
		return mr;
	mr->access = cmd->access_flags & pvr_mr_known_access(adapter);
	if (mr->kind != PVR_MR_FAST)
		mr->access |= PVR_MR_VALID;
	mr->start = cmd->start;
	mr->length = cmd->length;
	return mr;
}

/* Find the region that the command replaces; both PDs must have the same context. */
static int find_replaced(struct pvr_adapter *adapter, const struct pvr_cmd_create_mr *cmd,
			 const struct pvr_pd *pd, struct pvr_mr **old)
{
	*old = NULL;
	if (!(cmd->flags & PVR_MR_FLAG_REPLACE))
		return 0;
	*old = pvr_table_get(&adapter->mrs, cmd->mr_handle);
	if (!*old || (*old)->kind != PVR_MR_USER || (*old)->pd->uc != pd->uc)
		return -EINVAL;
	return LIST_EMPTY(&(*old)->windows) ? 0 : -EBUSY;
}

/*
 * @old keeps its key, which peers use, and gets all else of @fresh. That gets the pages of @old,
 * which can be many.
 */
static void replace(struct pvr_adapter *adapter, struct pvr_mr *old, struct pvr_mr *fresh)
{
	struct pvr_pages pages = old->pages;

	pvr_ext_dma_revoke_mr(old);
	old->pd->users--;
	fresh->pd->users++;
	old->pd = fresh->pd;
	old->access = fresh->access;
	old->start = fresh->start;
	old->length = fresh->length;
	old->offset = fresh->offset;
	old->pages = fresh->pages;
	fresh->pages = pages;
	adapter->replaced = fresh;
}

bool pvr_mr_free_replaced(struct pvr_adapter *adapter)
{
	struct pvr_mr *mr = adapter->replaced;

	if (!mr)
		return true;
	if (!pvr_demand_clear_some(adapter, &mr->pages))
		return false;
	pvr_pages_unmap(adapter, &mr->pages);
	pvr_charge_free(adapter, mr, sizeof(*mr));
	adapter->replaced = NULL;
	return true;
}

static int list_mr(struct pvr_adapter *adapter, struct pvr_mr *mr)
{
	int err = pvr_table_add(&adapter->mrs, mr, &mr->handle);

	if (err)
		return err;
	mr->key = mr->handle << 8 | ++adapter->mr_generation;
	mr->pd->users++;
	adapter->mws += pvr_mr_is_window(mr);
	return 0;
}

static int fill_response(const struct pvr_mr *mr, union pvr_cmd_resp *resp)
{
	resp->create_mr.mr_handle = mr->handle;
	resp->create_mr.lkey = mr->key;
	resp->create_mr.rkey = mr->key;
	return 0;
}

/* The region is replaced. A reset frees what remains if it ends the command. */
static int replaced_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	if (!pvr_mr_free_replaced(adapter))
		return -EINPROGRESS;
	return fill_response(pvr_table_get(&adapter->mrs, adapter->job.req.create_mr.mr_handle),
			     resp);
}

static int create_end(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_mr *cmd = &adapter->job.req.create_mr;
	struct pvr_mr *mr = adapter->job.mr, *old;
	int err;

	/*
	 * Checked again: between the steps a request may have bound a window to the
	 * region.
	 */
	err = find_replaced(adapter, cmd, mr->pd, &old);
	if (err)
		return err;
	if (old) {
		replace(adapter, old, mr);
		adapter->job.mr = NULL;
		adapter->job.cancel = NULL;
		adapter->job.run = replaced_step;
		return replaced_step(adapter, resp);
	}
	err = list_mr(adapter, mr);
	if (err)
		return err;
	adapter->job.mr = NULL;
	return fill_response(mr, resp);
}

static void create_cancel(struct pvr_adapter *adapter)
{
	struct pvr_mr *mr = adapter->job.mr;

	pvr_pages_unmap(adapter, &mr->pages);
	pvr_charge_free(adapter, mr, sizeof(*mr));
	adapter->job.mr = NULL;
}

/* @err: the result of the last step of the mapping. */
static int create_go_on(struct pvr_adapter *adapter, union pvr_cmd_resp *resp, int err)
{
	if (err == -EINPROGRESS)
		return err;
	if (!err)
		err = create_end(adapter, resp);
	if (err && err != -EINPROGRESS)
		create_cancel(adapter);
	return err;
}

static int create_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	return create_go_on(adapter, resp, pvr_walk_run(&adapter->job.walk));
}

static int create_first_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_mr *cmd = &adapter->job.req.create_mr;

	adapter->job.run = create_step;
	return create_go_on(adapter, resp,
			    find_mr_type(adapter, cmd->flags)->map(adapter, cmd, adapter->job.mr));
}

int pvr_cmd_create_mr(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_mr *cmd = &req->create_mr;
	struct pvr_pd *pd = pvr_pd_get(adapter, cmd->pd_handle);
	const struct mr_type *mr_type = find_mr_type(adapter, cmd->flags);
	struct pvr_mr *mr, *old;
	int err;

	err = pd && mr_type ? mr_type->check(adapter, cmd) : -EINVAL;
	if (!err)
		err = find_replaced(adapter, cmd, pd, &old);
	if (err)
		return err;
	mr = mr_new(adapter, mr_type, cmd, pd);
	if (!mr)
		return -ENOMEM;
	adapter->job.mr = mr;
	return pvr_cmd_begin(adapter, req, create_first_step, create_cancel, resp);
}

void pvr_mr_destroy(struct pvr_adapter *adapter, struct pvr_mr *mr)
{
	pvr_ext_dma_revoke_mr(mr);
	pvr_table_del(&adapter->mrs, mr->handle);
	adapter->mws -= pvr_mr_is_window(mr);
	pvr_mw_unbind(mr);
	pvr_pages_unmap(adapter, &mr->pages);
	mr->pd->users--;
	pvr_charge_free(adapter, mr, sizeof(*mr));
}

/* Only commands destroy a region, and none runs before this one ends. */
static int destroy_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, adapter->job.req.handle.handle);

	mr->access &= ~PVR_MR_VALID;
	if (!pvr_demand_clear_some(adapter, &mr->pages))
		return -EINPROGRESS;
	pvr_mr_destroy(adapter, mr);
	return 0;
}

int pvr_cmd_destroy_mr(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, req->handle.handle);

	if (!mr)
		return -EINVAL;
	if (!LIST_EMPTY(&mr->windows))
		return -EBUSY;
	return pvr_cmd_begin(adapter, req, destroy_step, NULL, resp);
}
