/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A log of the pages of guest RAM that the device has written.
 *
 * DOC: dirty pages
 *
 * - While the log is on, each region of RAM has a bitmap, one bit per page.
 * - Each store to guest RAM has a mark, by pvr_dirty() or another function: before the store, or
 *   after it and before the adapter's lock is released, at the latest in pvr_publish(). Stores,
 *   marks and the report run with the lock held. So a page that is written after a report has its bit again.
 * - RDMA NICs do not write to guest RAM while the log is on, see core/ext_dma.h.
 * - The log of removed RAM stays until the log is off, because QEMU may map the same pages again in
 *   other ranges. If there are too many such logs, all further reports fail.
 */
#ifndef PVR_DIRTY_H
#define PVR_DIRTY_H

#include "core/adapter.h"

/* While the log is on: set the bits of @len bytes at @va. Memory that is no RAM is skipped. */
void pvr_dirty_mark(struct pvr_adapter *adapter, const void *va, uint64_t len);

/* With at most so many regions, a search has no branch: a guest's pages may be of any in turn. */
#define PVR_DIRTY_FEW 8

/* Return: the region of @va if there are few regions, else NULL. */
static pvr_always_inline const struct pvr_ram_region *
pvr_dirty_region_of_few(const struct pvr_ram *ram, const uint8_t *va)
{
	uint64_t offset, index = 0;
	unsigned int i;

	if (ram->count > PVR_DIRTY_FEW)
		return NULL;
	for (i = 0; i < ram->count; i++) {
		offset = (uintptr_t)va - (uintptr_t)ram->region[i].va;
		index |= -(uint64_t)(offset < ram->region[i].size) & (i + 1);
	}
	return index ? &ram->region[index - 1] : NULL;
}

/* The same as pvr_dirty_mark(), fast for bytes of one page: a run of a large message. */
static pvr_always_inline void pvr_dirty_mark_run(struct pvr_adapter *adapter, const uint8_t *va,
						 uint64_t len)
{
	const struct pvr_ram_region *region = pvr_dirty_region_of_few(&adapter->ram, va);
	uint64_t offset, page;

	if (!region || len > PVR_PAGE_SIZE - (uintptr_t)va % PVR_PAGE_SIZE) {
		pvr_dirty_mark(adapter, va, len);
		return;
	}
	offset = (uintptr_t)va - (uintptr_t)region->va;
	page = offset / PVR_PAGE_SIZE;
	region->dirty[page / 64] |= 1ull << page % 64;
}

/*
 * While the log is on: move the bits of @len bytes of RAM from @gpa on to @bitmap, whose first
 * bit is the page of @gpa. Bits of @bitmap that are set stay so.
 */
void pvr_dirty_take(struct pvr_ram *ram, uint64_t gpa, uint64_t len, uint64_t *bitmap);

static inline bool pvr_dirty_is_on(const struct pvr_adapter *adapter)
{
	return __builtin_expect(adapter->ram.dirty_on, false);
}

/* @len bytes at @va were stored. */
static inline void pvr_dirty(struct pvr_adapter *adapter, const void *va, uint64_t len)
{
	if (pvr_dirty_is_on(adapter))
		pvr_dirty_mark(adapter, va, len);
}

#endif /* PVR_DIRTY_H */
