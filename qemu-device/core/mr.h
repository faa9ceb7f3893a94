/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions and windows: checks, and lookup by key for every message. */
#ifndef PVR_MR_H
#define PVR_MR_H

#include "core/compiler.h"
#include "core/objects.h"

/* The rights that a registration may request. */
#define PVR_MR_ACCESS                                                                \
	(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | \
	 PVR_ACCESS_REMOTE_ATOMIC | PVR_ACCESS_MW_BIND)

#define PVR_MR_REMOTE (PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC)

/* IBTA 10.6.3.1: remote write and remote atomic require local write. */
static inline bool pvr_mr_access_ok(uint32_t access)
{
	return !(access & (PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_ATOMIC)) ||
	       (access & PVR_ACCESS_LOCAL_WRITE);
}

/* Return: whether the range is not empty, is at most @max bytes and does not wrap. */
static inline bool pvr_mr_range_ok(uint64_t start, uint64_t length, uint64_t max)
{
	return length && length <= max && start + length - 1 >= start;
}

/* Number of pages that the range touches; UINT32_MAX: too many for a page directory. */
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

/* Return: the region or window with this key, valid or not, or NULL. */
static inline struct pvr_mr *pvr_mr_by_key(struct pvr_adapter *adapter, const struct pvr_pd *pd,
					   uint32_t key)
{
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, key >> 8);

	return mr && mr->key == key && mr->pd == pd ? mr : NULL;
}

/* Bind an unbound window to @region, and one of type 2 to @qp. Its range and rights are set. */
void pvr_mw_attach(struct pvr_mr *window, struct pvr_mr *region, struct pvr_qp *qp);
/* Unbind a window. No effect on a region or an unbound window. */
void pvr_mw_unbind(struct pvr_mr *window);

/* ------------------------------------------------------------- lookup by key */

/* The region of PVR_LOCAL_DMA_LKEY. */
extern const struct pvr_mr pvr_mr_local_dma;

/* Return: whether @mr has the rights of @access and contains the range. */
static inline bool pvr_mr_permits(struct pvr_adapter *adapter, const struct pvr_mr *mr,
				  uint64_t addr, uint64_t len, uint32_t access)
{
	const uint32_t needed = access | PVR_MR_VALID;
	uint64_t offset;

	if ((mr->access & needed) != needed)
		return false;
	/* No pages: a region of all RAM. An unbound window is not valid. */
	if (!mr->where)
		return pvr_ram_covers(&adapter->ram, addr, len, access & PVR_ACCESS_LOCAL_WRITE);
	/* An address below the start wraps to an offset beyond the end. */
	offset = addr - mr->start;
	pvr_keep(offset);
	return !mr->where->broken && offset <= mr->length && len <= mr->length - offset;
}

static inline const struct pvr_mr *pvr_mr_by_lkey(struct pvr_adapter *adapter,
						  const struct pvr_pd *pd, uint32_t key)
{
	if (key == PVR_LOCAL_DMA_LKEY && adapter->features & PVR_EXT_LOCAL_DMA_LKEY)
		return pd->uc == &adapter->kernel_uc ? &pvr_mr_local_dma : NULL;
	return pvr_mr_by_key(adapter, pd, key);
}

/**
 * pvr_mr_find_local() - find the region of an lkey, if it permits an access
 * @pd: of the queue that holds the work request
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 for a read
 *
 * Return: the region, or NULL if the key is stale or of another PD, the range is not
 * inside, or the right is missing. The pointer is valid until the next command or
 * work request.
 */
static inline const struct pvr_mr *pvr_mr_find_local(struct pvr_adapter *adapter,
						     const struct pvr_pd *pd, uint32_t key,
						     uint64_t addr, uint64_t len, uint32_t access)
{
	const struct pvr_mr *mr = pvr_mr_by_lkey(adapter, pd, key);

	/* IBTA 10.6.7: a window has no lkey. */
	if (!mr || pvr_mr_is_window(mr) || !pvr_mr_permits(adapter, mr, addr, len, access))
		return NULL;
	return mr;
}

/* The same for the rkey of a request to @qp. @access: PVR_ACCESS_REMOTE_*. */
static inline const struct pvr_mr *pvr_mr_find_remote(const struct pvr_qp *qp, uint32_t key,
						      uint64_t addr, uint64_t len, uint32_t access)
{
	const struct pvr_mr *mr = pvr_mr_by_key(qp->adapter, qp->pd, key);

	if (!mr || (mr->kind == PVR_MR_WINDOW2 && mr->qp != qp))
		return NULL;
	return pvr_mr_permits(qp->adapter, mr, addr, len, access) ? mr : NULL;
}

/*
 * Return: the longest run at @addr, *contig bytes of @len; NULL if RAM was removed, or the
 * page is absent. The
 * access was permitted by pvr_mr_find_local() or pvr_mr_find_remote().
 */
static inline uint8_t *pvr_mr_run(struct pvr_adapter *adapter, const struct pvr_mr *mr,
				  uint64_t addr, uint64_t len, uint64_t *contig)
{
	/* pvr_mr_permits() has checked that the memory is writable. */
	if (!mr->where)
		return pvr_ram_ptr(&adapter->ram, addr, len, false, contig);
	return pvr_pages_run(mr->where, mr->offset + (addr - mr->start), len, contig);
}

/*
 * Return: the table entry of the page that begins at @addr, followed by those of the next
 * pages; NULL: no page begins there, or the region has no table. @addr may be the
 * end of the region; then the entry must not be read.
 */
static inline uint8_t *const *pvr_mr_page(const struct pvr_mr *mr, uint64_t addr)
{
	return mr->where ? pvr_pages_at(mr->where, mr->offset + (addr - mr->start)) : NULL;
}

/*
 * Return: the address of a permitted range, if it is one run that needs no search; else
 * NULL.
 */
static inline uint8_t *pvr_mr_flat(const struct pvr_mr *mr, uint64_t addr, uint64_t len)
{
	return mr->where ? pvr_pages_flat(mr->where, mr->offset + (addr - mr->start), len) : NULL;
}

#endif /* PVR_MR_H */
