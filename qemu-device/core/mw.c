/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows (IBTA vol. 1, 10.6.7).
 *
 * A window lends part of a region to peers, with rights of its own. It lives in the
 * table of regions, as it has a key of that space. One of type 1 belongs to its PD, is
 * bound anew at will and unbound by a length of 0. One of type 2B belongs to the QP that
 * bound it, which alone can reach it, and has to be invalidated before it is bound again.
 * A region cannot go while a window is bound to it.
 */
#include <errno.h>

#include "core/mr.h"
#include "core/ext_dma.h"

#define KEY_INDEX(key) ((key) >> 8)

void pvr_mw_unbind(struct pvr_mr *window)
{
	if (!pvr_mr_is_window(window) || !window->where)
		return;
	pvr_nic_revoke_mr(window);
	LIST_REMOVE(window, region_link);
	if (window->qp)
		LIST_REMOVE(window, qp_link);
	window->where = NULL;
	window->qp = NULL;
	window->access &= ~PVR_MR_VALID;
}

void pvr_mw_unbind_all(struct pvr_qp *qp)
{
	while (!LIST_EMPTY(&qp->windows))
		pvr_mw_unbind(LIST_FIRST(&qp->windows));
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

/* The window's own rights; all it needs of the region's is local write. */
static int check_access(const struct pvr_mr *region, uint32_t access)
{
	if (access & ~(PVR_MR_REMOTE | PVR_ACCESS_ZERO_BASED | PVR_ACCESS_OPTIONAL))
		return -EINVAL;
	return pvr_mr_access_ok((access & PVR_MR_REMOTE) |
				(region->access & PVR_ACCESS_LOCAL_WRITE))
		       ? 0
		       : -EINVAL;
}

static void attach(struct pvr_mr *window, struct pvr_mr *region, struct pvr_qp *qp)
{
	window->where = &region->pages;
	LIST_INSERT_HEAD(&region->windows, window, region_link);
	if (window->kind == PVR_MR_WINDOW1)
		return;
	window->qp = qp;
	LIST_INSERT_HEAD(&qp->windows, window, qp_link);
}

/*
 * The low byte of a type 2 window's key is its consumer's, who need not keep it in the
 * handle that the work request names: so there the index is enough.
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
	attach(window, region, qp);
	return 0;
}
