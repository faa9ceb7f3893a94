/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Page directories of the guest, translated once to pointers. */
#ifndef PVR_PAGES_H
#define PVR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/compiler.h"

struct pvr_adapter;
struct pvr_ram;
struct pvr_ram_region;

/* Memory of the pages from @offset to the offset of the next extent. */
struct pvr_extent {
	uint64_t offset;
	uint8_t *va;
};

struct pvr_demand;

/*
 * DOC: representations
 *
 * - One run: a base address and no table. This is common, because guests have huge pages
 *   and their RAM is mapped as few regions.
 * - Table: one pointer per page of 4 KiB, found by index. Used for scattered pages.
 * - Extents: one per run. Used if runs have 16 pages or more on average, or if pages are
 *   larger than 4 KiB. An extent is found by a guess, which is right for runs of equal
 *   length, or else by binary search: 13 steps for 16 GiB of 2 MiB pages.
 * - On demand: a tree of its own (core/demand.c), so that accesses to other pages do not check
 *   for absent ones. An access to an absent page fails like one to removed RAM.
 */
struct pvr_pages {
	uint64_t size; /* bytes, whole pages of 4 KiB */
	/* At most one of these is set; none without pages. */
	uint8_t *base; /* one run */
	uint8_t **page; /* one pointer per 4 KiB */
	union {
		struct pvr_extent *extent; /* sorted by offset, the first is 0 */
		struct pvr_demand *demand; /* if on_demand is set, see core/demand.h */
	};
	uint32_t extents;
	uint64_t charged; /* bytes charged to the adapter, see core/charge.h */
	bool on_demand;
	bool broken; /* guest RAM was removed: the pointers must not be used */
};

/* A page directory, and the requested bytes of its pages. */
struct pvr_pdir {
	uint64_t dma;
	uint32_t levels; /* 2 or 3 */
	uint32_t shift; /* pages have 1 << shift bytes; 12 .. 30 */
	uint32_t count; /* pages; they hold skip + size bytes */
	uint64_t skip; /* bytes of the first page before the first requested byte */
	uint64_t size; /* requested bytes; skip and size are multiples of 4 KiB */
};

/* The position of a walk of a page directory. */
struct pvr_pdir_reader {
	struct pvr_ram *ram;
	bool three_levels;
	/* The guest may change these at any time. NULL: not a page of RAM. */
	const volatile uint64_t *top_shm, *dir_shm, *table_shm;
};

/* A walk of a page directory in bounded steps. */
struct pvr_walk {
	struct pvr_adapter *adapter;
	struct pvr_pages *pages;
	struct pvr_pdir pdir;
	bool write;
	bool persistent; /* all memory must be; set it after pvr_walk_begin() */
	struct pvr_pdir_reader reader;
	uint32_t next; /* index of the next entry */
	uint64_t left, skip; /* remaining bytes, and bytes to skip before them */
	uint32_t room; /* allocated extents */
	uint32_t max_extents; /* with more, the extents become a table */
	/* The extents that become a table: bytes entered, and bytes to enter. */
	uint64_t entered, to_enter;
	uint32_t extent; /* with the next byte to enter */
	uint32_t budget; /* entries left in this step */
};

/**
 * pvr_walk_begin() - begin a walk of a page directory
 * @write: all memory must be writable
 * @pages: the result; must stay at this address until the end of the walk
 *
 * The walk reads each entry once and checks only the requested bytes: the rest of a large
 * page need not be RAM. Pages must be aligned to their size.
 *
 * Memory of the translation is charged to the adapter. The guest's RAM limits the length of
 * the walk, too. So a guest can exhaust neither memory nor CPU time of the host.
 *
 * Return: 0, -EINVAL (@pdir is inconsistent), -EFAULT (an address is not a page of RAM)
 * or -ENOSPC (too many pages). In all cases pvr_pages_unmap() must follow in the end.
 */
int pvr_walk_begin(struct pvr_walk *walk, struct pvr_adapter *adapter, const struct pvr_pdir *pdir,
		   bool write, struct pvr_pages *pages);
/*
 * Walk as many more entries as the step of the adapter's job may. No RAM may be unmapped
 * since pvr_walk_begin(). Return: 0: complete, -EINPROGRESS, an error of
 * pvr_walk_begin(), -EOPNOTSUPP (not persistent) or -ENOMEM.
 */
int pvr_walk_run(struct pvr_walk *walk);

/*
 * The same without a directory: pvr_walk_begin_runs() for @size bytes, pvr_walk_add() for each run of
 * whole pages, pvr_walk_end_runs(). @pages may be reserved by pvr_pages_reserve(). Return: 0,
 * -EINVAL (more than @size bytes), -EFAULT, -ENOSPC or -ENOMEM; then pvr_pages_unmap() must follow.
 */
int pvr_walk_begin_runs(struct pvr_walk *walk, struct pvr_adapter *adapter, uint64_t size,
			bool write, struct pvr_pages *pages);
int pvr_walk_add(struct pvr_walk *walk, uint64_t gpa, uint64_t len);
int pvr_walk_end_runs(struct pvr_walk *walk);

/* The usual directory: two levels, @count whole pages of 4 KiB. */
struct pvr_pdir pvr_pdir_of_pages(uint64_t pdir_dma, uint32_t count);
/* Walk that at once; 1 .. PVR_PDIR_MAX_PAGES. For counts that a limit of the device bounds. */
int pvr_pages_map(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		  struct pvr_pages *pages);
void pvr_pages_unmap(struct pvr_adapter *adapter, struct pvr_pages *pages);

/*
 * For regions that are registered by work requests. pvr_pages_reserve() allocates a table
 * of @max pages, charged to the adapter until pvr_pages_unmap(). pvr_pages_refill() fills
 * the table without allocation; @count must not exceed @max. After a failure the pages
 * are broken. pvr_pages_refill() returns 0 or -EFAULT.
 */
int pvr_pages_reserve(struct pvr_adapter *adapter, uint32_t max, struct pvr_pages *pages);
int pvr_pages_refill(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		     struct pvr_pages *pages);

/* @count pages that are all absent, until pvr_pages_unmap(). Return: 0 or -ENOMEM. */
int pvr_pages_demand(struct pvr_adapter *adapter, uint64_t count, struct pvr_pages *pages);

/*
 * Set @pages->broken if any page lies in @region. Each entry of a table costs 1 of @budget.
 * @at is the position, initially 0, and 0 at the end. Return: false if the budget is used
 * up before the end.
 */
bool pvr_pages_check(struct pvr_pages *pages, const struct pvr_ram_region *region, uint64_t *at,
		     uint32_t *budget);

/*
 * Return: the address of @len bytes if they are one run that needs no search, else NULL.
 */
static inline uint8_t *pvr_pages_flat(const struct pvr_pages *pages, uint64_t offset, uint64_t len)
{
	if (pages->base)
		return pages->base + offset;
	if (pages->page && offset % 4096 + len <= 4096)
		return pages->page[offset / 4096] + offset % 4096;
	return NULL;
}

/*
 * Return: the table entries from @offset on, or NULL: no page begins there, or no table.
 */
static inline uint8_t *const *pvr_pages_at(const struct pvr_pages *pages, uint64_t offset)
{
	return pages->page && offset % 4096 == 0 ? pages->page + offset / 4096 : NULL;
}

/**
 * pvr_pages_run() - get the longest contiguous run from @offset
 * @len: bytes that the caller needs, inside the pages; at least 1
 * @contig: set to the length of the run, at most @len
 *
 * Return: the address of the run; NULL, and *contig is 0: the page is absent.
 */
uint8_t *pvr_pages_run(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
		       uint64_t *contig);

/* Return: the address of byte @offset, valid to the end of its 4 KiB page. */
static inline uint8_t *pvr_pages_ptr(const struct pvr_pages *pages, uint64_t offset)
{
	uint64_t contig PVR_UNINITIALIZED;

	if (pages->base)
		return pages->base + offset;
	if (pages->page)
		return pages->page[offset >> 12] + (offset & 4095);
	return pvr_pages_run(pages, offset, 1, &contig);
}

#endif /* PVR_PAGES_H */
