// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions and windows: the operations of work requests. */
#include "core/mr.h"

#include <errno.h>

#include "core/ext_dma.h"

/* The region of PVR_LOCAL_DMA_LKEY: index 0, which no other region has. */
const struct pvr_mr pvr_mr_local_dma = {
	.kind = PVR_MR_DMA,
	.access = PVR_ACCESS_LOCAL_WRITE | PVR_MR_VALID,
};

/* ------------------------------------------------------------ fast registration */

#define FAST_ACCESS (PVR_MR_ACCESS & ~PVR_ACCESS_MW_BIND)

static int fast_check(const struct pvr_mr *mr, const struct pvrdma_sq_wqe_hdr *wqe)
{
	uint32_t access = wqe->wr.fast_reg.access_flags & ~PVR_ACCESS_OPTIONAL;
	uint64_t start = wqe->wr.fast_reg.iova_start, length = wqe->wr.fast_reg.length;

	if (pvr_mr_is_valid(mr) || wqe->wr.fast_reg.page_shift != PVR_PAGE_SHIFT ||
	    wqe->wr.fast_reg.page_list_len > mr->max_pages)
		return -EINVAL;
	if (!pvr_mr_range_ok(start, length, UINT32_MAX) ||
	    pvr_mr_span_pages(start, length) > wqe->wr.fast_reg.page_list_len)
		return -EINVAL;
	return access & ~FAST_ACCESS || !pvr_mr_access_ok(access) ? -EINVAL : 0;
}

int pvr_mr_fast_register(struct pvr_adapter *adapter, const struct pvr_pd *pd,
			 const struct pvrdma_sq_wqe_hdr *wqe)
{
	/* The low byte of the key belongs to the consumer, and may be new. */
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, wqe->wr.fast_reg.rkey >> 8);
	uint32_t access = wqe->wr.fast_reg.access_flags & FAST_ACCESS;
	int err;

	if (!mr || mr->kind != PVR_MR_FAST || mr->pd != pd)
		return -EINVAL;
	err = fast_check(mr, wqe);
	if (!err)
		err = pvr_pages_refill(adapter, wqe->wr.fast_reg.pl_pdir_dma,
				       wqe->wr.fast_reg.page_list_len,
				       access & PVR_ACCESS_LOCAL_WRITE, &mr->pages);
	if (err)
		return err;
	mr->key = wqe->wr.fast_reg.rkey;
	mr->start = wqe->wr.fast_reg.iova_start;
	mr->offset = mr->start % PVR_PAGE_SIZE;
	mr->length = wqe->wr.fast_reg.length;
	mr->access = access | PVR_MR_VALID;
	return 0;
}

/* ----------------------------------------------------------------- invalidation */

struct pvr_mr *pvr_mr_find_invalidable(const struct pvr_qp *qp, uint32_t key, bool host)
{
	struct pvr_mr *mr = pvr_mr_by_key(qp->adapter, qp->pd, key);

	if (!mr || !pvr_mr_is_valid(mr))
		return NULL;
	if (mr->kind == PVR_MR_WINDOW2)
		return mr->qp == qp ? mr : NULL;
	if (mr->kind != PVR_MR_FAST || (host && !(mr->access & PVR_MR_REMOTE)))
		return NULL;
	return mr;
}

void pvr_mr_invalidate(struct pvr_mr *mr)
{
	pvr_ext_dma_revoke_mr(mr);
	if (pvr_mr_is_window(mr))
		pvr_mw_unbind(mr);
	mr->access &= ~PVR_MR_VALID;
}

/* ---------------------------------------------------------------------- windows */

#define KEY_INDEX(key) ((key) >> 8)

void pvr_mw_unbind(struct pvr_mr *window)
{
	if (!pvr_mr_is_window(window) || !window->where)
		return;
	pvr_ext_dma_revoke_mr(window);
	LIST_REMOVE(window, region_link);
	if (window->qp)
		LIST_REMOVE(window, qp_link);
	window->where = NULL;
	window->qp = NULL;
	window->access &= ~PVR_MR_VALID;
}

bool pvr_mw_unbind_some(struct pvr_adapter *adapter, const struct pvr_windows *windows)
{
	while (!LIST_EMPTY(windows)) {
		if (!pvr_job_may_go_on(adapter))
			return false;
		pvr_mw_unbind(LIST_FIRST(windows));
		pvr_job_spend(adapter, PVR_WORK_WINDOW);
	}
	return true;
}

static int check_window(const struct pvr_mr *window, const struct pvr_wqe_bind_mw *bind)
{
	if (!window || !pvr_mr_is_window(window) ||
	    KEY_INDEX(bind->new_rkey) != KEY_INDEX(bind->mw_rkey))
		return -EINVAL;
	if (window->kind == PVR_MR_WINDOW2 && (pvr_mr_is_valid(window) || !bind->length))
		return -EINVAL;
	return 0;
}

static int check_region(const struct pvr_mr *region, const struct pvr_wqe_bind_mw *bind)
{
	if (!region || region->kind != PVR_MR_USER || region->pages.broken ||
	    !(region->access & PVR_ACCESS_MW_BIND))
		return -EINVAL;
	if (bind->addr < region->start || bind->length > region->length ||
	    bind->addr - region->start > region->length - bind->length)
		return -EINVAL;
	return 0;
}

/* Check the window's own rights. Of the region's rights it needs only local write. */
static int check_access(const struct pvr_mr *region, uint32_t access)
{
	if (access & ~(PVR_MR_REMOTE | PVR_ACCESS_ZERO_BASED | PVR_ACCESS_OPTIONAL))
		return -EINVAL;
	return pvr_mr_access_ok((access & PVR_MR_REMOTE) |
				(region->access & PVR_ACCESS_LOCAL_WRITE))
		       ? 0
		       : -EINVAL;
}

void pvr_mw_attach(struct pvr_mr *window, struct pvr_mr *region, struct pvr_qp *qp)
{
	window->where = &region->pages;
	LIST_INSERT_HEAD(&region->windows, window, region_link);
	if (window->kind == PVR_MR_WINDOW1)
		return;
	window->qp = qp;
	LIST_INSERT_HEAD(&qp->windows, window, qp_link);
}

/*
 * The low byte of a type 2 window's key belongs to the consumer. The work request may
 * name the window by an older low byte, so for type 2 only the index is compared.
 */
static struct pvr_mr *find_window(const struct pvr_qp *qp, uint32_t key)
{
	struct pvr_mr *window = pvr_table_get(&qp->adapter->mrs, KEY_INDEX(key));

	if (!window || window->pd != qp->pd)
		return NULL;
	return window->key == key || window->kind == PVR_MR_WINDOW2 ? window : NULL;
}

int pvr_mw_bind(struct pvr_qp *qp, const struct pvr_wqe_bind_mw *bind)
{
	struct pvr_mr *window = find_window(qp, bind->mw_rkey);
	struct pvr_mr *region = pvr_mr_by_key(qp->adapter, qp->pd, bind->mr_lkey);
	int err;

	err = check_window(window, bind);
	if (!err && bind->length)
		err = check_region(region, bind);
	if (!err && bind->length)
		err = check_access(region, bind->access_flags);
	if (err)
		return err;
	pvr_mw_unbind(window);
	window->key = bind->new_rkey;
	if (!bind->length)
		return 0;
	window->start = bind->access_flags & PVR_ACCESS_ZERO_BASED ? 0 : bind->addr;
	window->length = bind->length;
	window->offset = region->offset + (bind->addr - region->start);
	window->access = (bind->access_flags & PVR_MR_REMOTE) | PVR_MR_VALID;
	pvr_mw_attach(window, region, qp);
	return 0;
}
