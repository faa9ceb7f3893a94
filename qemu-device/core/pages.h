/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a page directory of the guest names, translated once to pointers. */
#ifndef PVR_PAGES_H
#define PVR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pvr_adapter;
struct pvr_ram;
struct pvr_ram_region;

/* Memory from @offset of the pages on, up to the next extent's. */
struct pvr_extent {
	uint64_t offset;
	uint8_t *va;
};

/*
 * DOC: shapes
 *
 * Pages that are one run here need no table at all; that is common, as guests have
 * huge pages and we map their RAM in few pieces. Otherwise scattered pages of 4 KiB
 * cost one pointer each and are found by index. Where runs have 16 pages and more on
 * average, or pages are larger than 4 KiB, there is one extent a run instead, found by
 * a guess that is right for runs of one length, or else by halving: 13 steps for 16 GiB
 * of 2 MiB pages, against an access that then has up to 2 MiB in one run.
 */
struct pvr_pages {
	uint64_t size; /* bytes, whole pages of 4 KiB */
	/* One of these, or none without pages. */
	uint8_t *base; /* one run */
	uint8_t **page; /* one pointer per 4 KiB */
	struct pvr_extent *extent; /* sorted by offset, the first is 0 */
	uint32_t extents;
	uint64_t charged; /* bytes of the adapter's budget */
	bool broken; /* the guest's RAM went away under us: do not touch */
};

/* A page directory, and which bytes of its pages are asked for. */
struct pvr_pdir {
	uint64_t dma;
	uint32_t levels; /* 2 or 3 */
	uint32_t shift; /* pages have 1 << shift bytes; 12 .. 30 */
	uint32_t count; /* pages; they hold skip + size bytes */
	uint64_t skip; /* bytes before the first that is asked for, in the first page */
	uint64_t size; /* as skip a multiple of 4 KiB */
};

/* Where a walk of a directory has come to. */
struct pvr_pdir_reader {
	struct pvr_ram *ram;
	bool three_levels;
	/* What the guest may change at any time; NULL: no page of RAM. */
	const volatile uint64_t *top_shm, *dir_shm, *table_shm;
};

/* A walk that goes on step by step, as it may be long. */
struct pvr_walk {
	struct pvr_adapter *adapter;
	struct pvr_pages *pages;
	struct pvr_pdir pdir;
	bool write;
	struct pvr_pdir_reader reader;
	uint32_t next; /* entry */
	uint64_t left, skip; /* bytes to come, and not asked for before them */
	uint32_t room; /* extents that there is memory for */
	uint32_t max_extents; /* then it becomes a table */
};

/**
 * pvr_walk_begin() - begin to walk a page directory
 * @write: all memory must be writable
 * @pages: stays where it is until the walk is over
 *
 * Reads each entry once, and looks only at the memory that is asked for: the rest of a
 * large page may be no RAM. Pages must be aligned to their size.
 *
 * What it allocates counts against the adapter's budget, which grows with the guest's
 * RAM, so that no guest can size our memory; and so does the walk, so that none can
 * size our work.
 *
 * Return: 0, -EINVAL (count), -EFAULT (an address is no page of RAM) or -ENOSPC (over
 * budget). Whatever it is, pvr_pages_unmap() must be called in the end.
 */
int pvr_walk_begin(struct pvr_walk *walk, struct pvr_adapter *adapter, const struct pvr_pdir *pdir,
		   bool write, struct pvr_pages *pages);
/*
 * Walk on for at most @entries. RAM must not have been unmapped since it began.
 * Return: 0: that was all, -EINPROGRESS, or an error as above, or -ENOMEM.
 */
int pvr_walk_step(struct pvr_walk *walk, uint32_t entries);

/* The usual directory: two levels, @count whole pages of 4 KiB. */
struct pvr_pdir pvr_pdir_of_pages(uint64_t pdir_dma, uint32_t count);
/* Walk that at once; 1 .. PVR_PDIR_MAX_PAGES. */
int pvr_pages_map(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		  struct pvr_pages *pages);
void pvr_pages_unmap(struct pvr_adapter *adapter, struct pvr_pages *pages);

/*
 * For regions that are registered by work requests: room for @max pages, charged to
 * the budget until pvr_pages_unmap(), and a walk that fills it without allocating;
 * @count must not exceed @max. A walk that fails leaves the pages in no state to be
 * used. pvr_pages_refill() returns 0 or -EFAULT.
 */
int pvr_pages_reserve(struct pvr_adapter *adapter, uint32_t max, struct pvr_pages *pages);
int pvr_pages_refill(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		     struct pvr_pages *pages);

/* Sets broken if any page lies in @region. Return: whether it is broken. */
bool pvr_pages_check(struct pvr_pages *pages, const struct pvr_ram_region *region);

/* The address of @len bytes if they are one run that needs no search, else NULL. */
static inline uint8_t *pvr_pages_flat(const struct pvr_pages *pages, uint64_t offset, uint64_t len)
{
	if (pages->base)
		return pages->base + offset;
	if (pages->page && offset % 4096 + len <= 4096)
		return pages->page[offset / 4096] + offset % 4096;
	return NULL;
}

/* The entries from @offset on, if a page begins there and there is a table; else NULL. */
static inline uint8_t *const *pvr_pages_at(const struct pvr_pages *pages, uint64_t offset)
{
	return pages->page && offset % 4096 == 0 ? pages->page + offset / 4096 : NULL;
}

/**
 * pvr_pages_run() - the longest contiguous run from @offset
 * @len: how much the caller needs, within the pages; at least 1
 * @contig: how much of @len the run has
 */
uint8_t *pvr_pages_run(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
		       uint64_t *contig);

/* The address of byte @offset; valid to the end of its 4 KiB. */
static inline uint8_t *pvr_pages_ptr(const struct pvr_pages *pages, uint64_t offset)
{
	uint64_t contig;

	if (pages->base)
		return pages->base + offset;
	if (pages->page)
		return pages->page[offset >> 12] + (offset & 4095);
	return pvr_pages_run(pages, offset, 1, &contig);
}

#endif /* PVR_PAGES_H */
