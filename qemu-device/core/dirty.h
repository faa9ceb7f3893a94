/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A log of the pages of guest RAM that the device has written.
 *
 * DOC: dirty pages
 *
 * - While the log is on, each region of RAM has a bitmap, one bit per page.
 * - Each store to guest RAM is followed by pvr_dirty() or another mark, before the adapter's
 *   lock is released or at the latest in pvr_publish(). All of them, and the report, run with
 *   the lock held. So a page that is written after a report has its bit again.
 * - RDMA NICs do not write to guest RAM while the log is on, see core/ext_dma.h.
 * - The log of removed RAM stays until the log is off, because QEMU may map the same pages again in
 *   other ranges. If there are too many such logs, all further reports fail.
 */
#ifndef PVR_DIRTY_H
#define PVR_DIRTY_H

#include "core/adapter.h"

/*
 * While the log is on: set the bits of @len bytes at @va. Memory that is no RAM is skipped. Return:
 * the region of the last byte; NULL: it is no RAM.
 */
const struct pvr_ram_region *pvr_dirty_mark(struct pvr_adapter *adapter, const void *va,
					    uint64_t len);

/* The same for bytes of one page. Return: false if they are not all in @region. */
static inline bool pvr_dirty_mark_page(const struct pvr_ram_region *region, const uint8_t *va,
				       uint64_t len)
{
	uint64_t offset = (uint64_t)(va - region->va), page = offset / PVR_PAGE_SIZE;

	if (offset >= region->size || len > PVR_PAGE_SIZE - offset % PVR_PAGE_SIZE)
		return false;
	region->dirty[page / 64] |= 1ull << page % 64;
	return true;
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
