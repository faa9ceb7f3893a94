/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a page directory of the guest names, translated once to pointers. */
#ifndef PVR_PAGES_H
#define PVR_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_adapter;
struct pvr_ram_piece;

struct pvr_pages {
	uint8_t **page; /* one pointer a page; NULL if they are one run */
	uint8_t *base; /* the run */
	uint32_t count;
	bool broken; /* the guest's RAM went away under us: do not touch */
};

/**
 * pvr_pages_map() - walk a page directory
 * @pdir_dma: the directory
 * @count: pages; 1 .. PVR_PDIR_MAX_PAGES
 * @write: all pages must be writable
 *
 * Reads each entry once. What it allocates counts against the adapter's budget,
 * which grows with the guest's RAM, so that no guest can size our memory.
 *
 * Return: 0, -EINVAL (count), -EFAULT (an address is no page of RAM), -ENOSPC (over
 * budget) or -ENOMEM. After success, pvr_pages_unmap() must be called.
 */
int pvr_pages_map(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count,
		  bool write, struct pvr_pages *pages);
void pvr_pages_unmap(struct pvr_adapter *adapter, struct pvr_pages *pages);

/*
 * For regions that are registered by work requests: room for @max pages, charged to
 * the budget until pvr_pages_unmap(), and a walk that fills it without allocating. A
 * walk that fails leaves the pages in no state to be used. pvr_pages_refill() returns
 * 0, -EINVAL or -EFAULT.
 */
int pvr_pages_reserve(struct pvr_adapter *adapter, uint32_t max, struct pvr_pages *pages);
int pvr_pages_refill(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count,
		     bool write, struct pvr_pages *pages);

/* Sets broken if any page lies in @piece. Return: whether it is broken. */
bool pvr_pages_check(struct pvr_pages *pages, const struct pvr_ram_piece *piece);

/* The address of byte @offset; valid to the end of its page. */
static inline uint8_t *pvr_pages_ptr(const struct pvr_pages *pages, uint64_t offset)
{
	if (pages->base)
		return pages->base + offset;
	return pages->page[offset >> 12] + (offset & 4095);
}

/**
 * pvr_pages_run() - the longest contiguous run from @offset
 * @len: how much the caller needs, within the pages; at least 1
 * @contig: how much of @len the run has
 */
uint8_t *pvr_pages_run(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
		       uint64_t *contig);

#endif /* PVR_PAGES_H */
