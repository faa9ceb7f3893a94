/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What all kinds of memory regions share. */
#ifndef PVR_MR_H
#define PVR_MR_H

#include "core/objects.h"

/* What registrations may ask for. */
#define PVR_MR_ACCESS                                                                \
	(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | \
	 PVR_ACCESS_REMOTE_ATOMIC | PVR_ACCESS_MW_BIND)

#define PVR_MR_REMOTE (PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC)

/* IBTA vol. 1, 10.6.3.1: remote write and atomic need local write. */
static inline bool pvr_mr_access_ok(uint32_t access)
{
	return !(access & (PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_ATOMIC)) ||
	       (access & PVR_ACCESS_LOCAL_WRITE);
}

/* There is a last byte, and it does not lie before the first. */
static inline bool pvr_mr_range_ok(uint64_t start, uint64_t length, uint64_t max)
{
	return length && length <= max && start + length - 1 >= start;
}

/* Pages from the first byte's to the last one's; UINT32_MAX if no directory has as many. */
static inline uint32_t pvr_mr_span_pages(uint64_t start, uint64_t length)
{
	uint64_t first = start / PVR_PAGE_SIZE, last = (start + length - 1) / PVR_PAGE_SIZE;

	return last - first < PVR_PDIR_MAX_PAGES ? last - first + 1 : UINT32_MAX;
}

static inline bool pvr_mr_is_valid(const struct pvr_mr *mr)
{
	return mr->access & PVR_MR_VALID;
}

static inline bool pvr_mr_is_window(const struct pvr_mr *mr)
{
	return mr->kind == PVR_MR_WINDOW1 || mr->kind == PVR_MR_WINDOW2;
}

/* What has this key now, valid or not, or NULL. */
static inline struct pvr_mr *pvr_mr_by_key(struct pvr_adapter *adapter, const struct pvr_pd *pd,
					   uint32_t key)
{
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, key >> 8);

	return mr && mr->key == key && mr->pd == pd ? mr : NULL;
}

/* core/mw.c: a window that is not bound is left alone. */
void pvr_mw_unbind(struct pvr_mr *window);

/*
 * Go on with the CREATE_MR that is the adapter's job. Return: as pvr_cmd_fn, and
 * -EINPROGRESS if that was not all.
 */
int pvr_mr_create_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp);
void pvr_mr_create_cancel(struct pvr_adapter *adapter);

#endif /* PVR_MR_H */
