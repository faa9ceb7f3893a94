// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Page directories. */
#include "core/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/adapter.h"
#include "core/charge.h"
#include "core/demand.h"

/*
 * The pages of one walk: a multiple of the guest's pages, because a directory may name a page
 * several times, and a floor.
 */
#define WALK_PER_RAM_PAGE 8
#define WALK_FLOOR (1u << 18)

/* Runs of fewer pages on average cost less as a table. */
#define PAGES_PER_EXTENT 16
#define FIRST_EXTENTS 4u

static int check_length(struct pvr_adapter *adapter, uint64_t total)
{
	uint64_t ram = pvr_charge_ram(adapter);
	uint64_t max = ram / PVR_PAGE_SIZE * WALK_PER_RAM_PAGE + WALK_FLOOR;

	if (total <= max)
		return 0;
	pvr_log_guest(adapter,
		      "the guest registers memory of %" PRIu64 " pages; with %" PRIu64
		      " MiB of RAM the limit is %" PRIu64 " pages",
		      total, ram >> 20, max);
	return -ENOSPC;
}

/* Charge @bytes to @pages instead of the previous charge. Return: 0 or -ENOMEM. */
static int charge(struct pvr_adapter *adapter, struct pvr_pages *pages, uint64_t bytes)
{
	int err = 0;

	if (bytes > pages->charged)
		err = pvr_charge(adapter, bytes - pages->charged);
	else
		pvr_uncharge(adapter, pages->charged - bytes);
	if (!err)
		pages->charged = bytes;
	return err;
}

/* -------------------------------------------------------- reading entries */

static int reader_init(struct pvr_pdir_reader *reader, struct pvr_ram *ram,
		       const struct pvr_pdir *pdir)
{
	const volatile uint64_t *root_shm = pvr_ram_page(ram, pdir->dma, false);

	*reader = (struct pvr_pdir_reader){ .ram = ram, .three_levels = pdir->levels == 3 };
	if (reader->three_levels)
		reader->top_shm = root_shm;
	else
		reader->dir_shm = root_shm;
	return root_shm ? 0 : -EFAULT;
}

/* Read entry @i. Callers read entries in order, from 0. */
static int read_entry(struct pvr_pdir_reader *reader, uint32_t i, uint64_t *gpa)
{
	if (reader->three_levels && i % PVR_PDIR_MAX_PAGES == 0)
		reader->dir_shm =
			pvr_ram_page(reader->ram, reader->top_shm[i / PVR_PDIR_MAX_PAGES], false);
	if (!reader->dir_shm)
		return -EFAULT;
	if (i % PVR_PDIR_ENTRIES == 0)
		reader->table_shm = pvr_ram_page(
			reader->ram, reader->dir_shm[i / PVR_PDIR_ENTRIES % PVR_PDIR_ENTRIES],
			false);
	if (!reader->table_shm)
		return -EFAULT;
	*gpa = reader->table_shm[i % PVR_PDIR_ENTRIES];
	return 0;
}

/* ----------------------------------------------------------- translations */

/* The end of extent @i, as an offset. */
static uint64_t extent_end(const struct pvr_pages *pages, uint32_t i)
{
	return i + 1 < pages->extents ? pages->extent[i + 1].offset : pages->size;
}

static void table_fill(struct pvr_pages *pages, uint64_t offset, uint8_t *va, uint64_t len)
{
	uint64_t done;

	for (done = 0; done < len; done += PVR_PAGE_SIZE)
		pages->page[(offset + done) / PVR_PAGE_SIZE] = va + done;
}

/* Return: whether the extents are in the table as far as @pages->size was then. */
static bool is_entered(const struct pvr_walk *walk)
{
	return walk->entered == walk->to_enter;
}

/*
 * Begin to make a table of the extents. The next steps enter their pages; until then the
 * table has only pages that were added later.
 */
static int become_table(struct pvr_walk *walk)
{
	uint64_t bytes = walk->pdir.size / PVR_PAGE_SIZE * sizeof(uint8_t *);
	struct pvr_pages *pages = walk->pages;
	int err;

	err = charge(walk->adapter, pages, bytes);
	if (err)
		return err;
	pages->page = malloc(bytes);
	if (!pages->page)
		return -ENOMEM;
	walk->to_enter = pages->size;
	return 0;
}

/* The run of pages that become_table() has left at offset walk->entered. */
static uint8_t *run_to_enter(const struct pvr_walk *walk, uint64_t *len)
{
	const struct pvr_pages *pages = walk->pages;
	const struct pvr_extent *extent;
	uint64_t end = walk->to_enter;

	*len = end - walk->entered;
	if (pages->base)
		return pages->base + walk->entered;
	extent = &pages->extent[walk->extent];
	if (walk->extent + 1 < pages->extents)
		end = extent[1].offset;
	*len = end - walk->entered;
	return extent->va + (walk->entered - extent->offset);
}

/* Enter pages of the extents, as many as the budget allows. */
static void enter_some(struct pvr_walk *walk)
{
	struct pvr_pages *pages = walk->pages;
	uint64_t len, max;
	uint8_t *va;

	while (!is_entered(walk) && walk->budget) {
		va = run_to_enter(walk, &len);
		max = (uint64_t)walk->budget * PVR_PAGE_SIZE;
		walk->extent += len <= max;
		len = len < max ? len : max;
		table_fill(pages, walk->entered, va, len);
		walk->entered += len;
		walk->budget -= len / PVR_PAGE_SIZE;
	}
	if (!is_entered(walk))
		return;
	free(pages->extent);
	pages->extent = NULL;
	pages->extents = 0;
	pages->base = NULL;
}

static int resize_extents(struct pvr_walk *walk, uint32_t room)
{
	struct pvr_pages *pages = walk->pages;
	struct pvr_extent *extent;
	int err;

	err = charge(walk->adapter, pages, (uint64_t)room * sizeof(*extent));
	if (err)
		return err;
	extent = realloc(pages->extent, room * sizeof(*extent));
	if (!extent)
		return -ENOMEM;
	pages->extent = extent;
	walk->room = room;
	return 0;
}

static int add_extent(struct pvr_walk *walk, uint8_t *va)
{
	struct pvr_pages *pages = walk->pages;
	int err;

	if (pages->extents >= walk->room) {
		err = resize_extents(walk, walk->room ? 2 * walk->room : FIRST_EXTENTS);
		if (err)
			return err;
	}
	if (pages->base)
		pages->extent[pages->extents++] = (struct pvr_extent){ 0, pages->base };
	pages->base = NULL;
	pages->extent[pages->extents++] = (struct pvr_extent){ pages->size, va };
	return 0;
}

/* The end of the memory that was added last. */
static uint8_t *end_of(const struct pvr_pages *pages)
{
	const struct pvr_extent *last;

	if (pages->base)
		return pages->base + pages->size;
	last = &pages->extent[pages->extents - 1];
	return last->va + (pages->size - last->offset);
}

static int add_run(struct pvr_walk *walk, uint8_t *va, uint64_t len)
{
	struct pvr_pages *pages = walk->pages;
	int err = 0;

	if (!pages->page && pages->size && va != end_of(pages)) {
		if (pages->extents >= walk->max_extents)
			err = become_table(walk);
		else
			err = add_extent(walk, va);
	}
	if (err)
		return err;
	if (pages->page)
		table_fill(pages, pages->size, va, len);
	else if (!pages->size)
		pages->base = va;
	pages->size += len;
	return 0;
}

/* Add one page of the guest, which may lie in several regions of its RAM. */
static int add_page(struct pvr_walk *walk, uint64_t gpa, uint64_t len, bool write)
{
	uint64_t contig;
	uint8_t *va;
	int err;

	for (; len; len -= contig, gpa += contig) {
		va = pvr_ram_ptr(&walk->adapter->ram, gpa, len, write, &contig);
		if (!va || contig % PVR_PAGE_SIZE)
			return -EFAULT;
		if (walk->persistent && !pvr_ram_is_persistent(&walk->adapter->ram, gpa))
			return -EOPNOTSUPP;
		err = add_run(walk, va, contig);
		if (err)
			return err;
	}
	return 0;
}

static bool pdir_ok(const struct pvr_pdir *pdir)
{
	uint32_t max = pdir->levels == 3 ? PVR_PDIR3_MAX_PAGES : PVR_PDIR_MAX_PAGES;
	uint64_t end = pdir->skip + pdir->size;

	return pdir->count && pdir->count <= max && pdir->size && pdir->skip >> pdir->shift == 0 &&
	       end > pdir->skip && (end - 1) >> pdir->shift == pdir->count - 1;
}

static void walk_init(struct pvr_walk *walk, struct pvr_adapter *adapter,
		      const struct pvr_pdir *pdir, bool write, struct pvr_pages *pages)
{
	*walk = (struct pvr_walk){
		.adapter = adapter,
		.pages = pages,
		.pdir = *pdir,
		.write = write,
		.left = pdir->size,
		.skip = pdir->skip,
	};
}

int pvr_walk_begin(struct pvr_walk *walk, struct pvr_adapter *adapter, const struct pvr_pdir *pdir,
		   bool write, struct pvr_pages *pages)
{
	uint64_t total = pdir->size / PVR_PAGE_SIZE;
	int err;

	*pages = (struct pvr_pages){ 0 };
	if (!pdir_ok(pdir))
		return -EINVAL;
	err = check_length(adapter, total);
	if (err)
		return err;
	walk_init(walk, adapter, pdir, write, pages);
	walk->max_extents = pdir->shift == PVR_PAGE_SHIFT ? total / PAGES_PER_EXTENT : UINT32_MAX;
	return reader_init(&walk->reader, &adapter->ram, pdir);
}

static int walk_entry(struct pvr_walk *walk)
{
	uint64_t size = 1ull << walk->pdir.shift, gpa, len;
	int err;

	len = walk->left < size - walk->skip ? walk->left : size - walk->skip;
	err = read_entry(&walk->reader, walk->next, &gpa);
	if (!err && gpa & (size - 1))
		err = -EFAULT;
	/* The page is aligned, so its end does not wrap. */
	if (!err)
		err = add_page(walk, gpa + walk->skip, len, walk->write);
	walk->left -= len;
	walk->skip = 0;
	walk->next++;
	return err;
}

/* Return: 0: complete, or -errno; -EINPROGRESS: the budget is used up. */
static int walk_some(struct pvr_walk *walk)
{
	int err;

	while (walk->next < walk->pdir.count) {
		if (!is_entered(walk))
			enter_some(walk);
		if (!walk->budget)
			return -EINPROGRESS;
		walk->budget--;
		err = walk_entry(walk);
		if (err)
			return err;
	}
	if (!is_entered(walk))
		enter_some(walk);
	return is_entered(walk) ? 0 : -EINPROGRESS;
}

/* Walk @budget entries. The entry of a page in a table counts, too. */
static int walk_step(struct pvr_walk *walk, uint32_t budget)
{
	struct pvr_pages *pages = walk->pages;
	int err;

	walk->budget = budget;
	err = walk_some(walk);
	/* Free the unused extents. */
	if (!err && pages->extents)
		err = resize_extents(walk, pages->extents);
	return err;
}

int pvr_walk_run(struct pvr_walk *walk)
{
	struct pvr_adapter *adapter = walk->adapter;
	uint32_t budget = PVR_STEP_WORK - adapter->job.work;
	int err = walk_step(walk, budget);

	pvr_job_spend(adapter, budget - walk->budget);
	return err;
}

int pvr_walk_begin_runs(struct pvr_walk *walk, struct pvr_adapter *adapter, uint64_t size,
			bool write, struct pvr_pages *pages)
{
	const struct pvr_pdir pdir = { .size = size };
	uint64_t total = size / PVR_PAGE_SIZE;

	if (!pages->page)
		*pages = (struct pvr_pages){ 0 };
	pages->size = 0;
	walk_init(walk, adapter, &pdir, write, pages);
	walk->max_extents = total / PAGES_PER_EXTENT;
	walk->budget = UINT32_MAX;
	return check_length(adapter, total);
}

int pvr_walk_add(struct pvr_walk *walk, uint64_t gpa, uint64_t len)
{
	int err;

	if (len > walk->left || gpa + len < gpa)
		return -EINVAL;
	walk->left -= len;
	err = add_page(walk, gpa, len, walk->write);
	walk->budget = UINT32_MAX;
	if (!err && !is_entered(walk))
		enter_some(walk);
	return err;
}

int pvr_walk_end_runs(struct pvr_walk *walk)
{
	struct pvr_pages *pages = walk->pages;

	return pages->extents ? resize_extents(walk, pages->extents) : 0;
}

struct pvr_pdir pvr_pdir_of_pages(uint64_t pdir_dma, uint32_t count)
{
	return (struct pvr_pdir){
		.dma = pdir_dma,
		.levels = 2,
		.shift = PVR_PAGE_SHIFT,
		.count = count,
		.size = (uint64_t)count * PVR_PAGE_SIZE,
	};
}

int pvr_pages_map(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		  struct pvr_pages *pages)
{
	struct pvr_pdir pdir = pvr_pdir_of_pages(pdir_dma, count);
	struct pvr_walk walk;
	int err;

	err = pvr_walk_begin(&walk, adapter, &pdir, write, pages);
	if (!err)
		err = walk_step(&walk, UINT32_MAX);
	pvr_job_spend(adapter, count);
	if (err)
		pvr_pages_unmap(adapter, pages);
	return err;
}

void pvr_pages_unmap(struct pvr_adapter *adapter, struct pvr_pages *pages)
{
	charge(adapter, pages, 0);
	free(pages->page);
	if (pages->on_demand)
		pvr_demand_destroy(adapter, pages->demand);
	else
		free(pages->extent);
	*pages = (struct pvr_pages){ 0 };
}

/* ----------------------------------------------------------- fast regions */

int pvr_pages_reserve(struct pvr_adapter *adapter, uint32_t max, struct pvr_pages *pages)
{
	int err;

	*pages = (struct pvr_pages){ 0 };
	err = charge(adapter, pages, (uint64_t)max * sizeof(*pages->page));
	if (err)
		return err;
	pages->page = malloc(max * sizeof(*pages->page));
	if (pages->page)
		return 0;
	charge(adapter, pages, 0);
	return -ENOMEM;
}

int pvr_pages_refill(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		     struct pvr_pages *pages)
{
	struct pvr_pdir pdir = pvr_pdir_of_pages(pdir_dma, count);
	struct pvr_walk walk;
	int err;

	pages->size = 0;
	walk_init(&walk, adapter, &pdir, write, pages);
	err = reader_init(&walk.reader, &adapter->ram, &pdir);
	if (!err)
		err = walk_step(&walk, UINT32_MAX);
	pages->broken = err != 0;
	return err;
}

int pvr_pages_demand(struct pvr_adapter *adapter, uint64_t count, struct pvr_pages *pages)
{
	*pages = (struct pvr_pages){ .demand = pvr_demand_create(adapter, count) };
	if (!pages->demand)
		return -ENOMEM;
	pages->on_demand = true;
	pages->size = count * PVR_PAGE_SIZE;
	return 0;
}

/* -------------------------------------------------------------------- use */

static bool overlap(const uint8_t *va, uint64_t len, const struct pvr_ram_region *region)
{
	return va < region->va + region->size && va + len > region->va;
}

/* @i: the index of an entry of the table, or of an extent if there is no table. */
static bool part_overlaps(const struct pvr_pages *pages, uint64_t i,
			  const struct pvr_ram_region *region)
{
	if (pages->page)
		return overlap(pages->page[i], PVR_PAGE_SIZE, region);
	return overlap(pages->extent[i].va, extent_end(pages, i) - pages->extent[i].offset, region);
}

bool pvr_pages_check(struct pvr_pages *pages, const struct pvr_ram_region *region, uint64_t *at,
		     uint32_t *budget)
{
	uint64_t parts = pages->page ? pages->size / PVR_PAGE_SIZE : pages->extents;

	if (pages->on_demand)
		return pvr_demand_check(pages, region, at, budget);

	/* A run may span several RAM regions that are adjacent in this process. */
	if (pages->base && overlap(pages->base, pages->size, region))
		pages->broken = true;
	for (; *at < parts && !pages->broken; ++*at) {
		if (!*budget)
			return false;
		--*budget;
		pages->broken = part_overlaps(pages, *at, region);
	}
	*at = 0;
	return true;
}

static bool in_extent(const struct pvr_pages *pages, uint32_t i, uint64_t offset)
{
	return pages->extent[i].offset <= offset && offset < extent_end(pages, i);
}

static uint32_t find_extent(const struct pvr_pages *pages, uint64_t offset)
{
	uint64_t mean = (pages->size + pages->extents - 1) / pages->extents;
	uint32_t lo = 0, hi = pages->extents, mid = offset / mean;

	if (in_extent(pages, mid, offset))
		return mid;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (pages->extent[mid].offset <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static uint8_t *run_of_extent(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
			      uint64_t *contig)
{
	uint32_t i = find_extent(pages, offset);
	uint64_t run = extent_end(pages, i) - offset;

	*contig = len < run ? len : run;
	return pages->extent[i].va + (offset - pages->extent[i].offset);
}

uint8_t *pvr_pages_run(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
		       uint64_t *contig)
{
	uint64_t i = offset / PVR_PAGE_SIZE;
	uint64_t run = PVR_PAGE_SIZE - offset % PVR_PAGE_SIZE;

	if (pages->base) {
		*contig = len;
		return pages->base + offset;
	}
	if (!pages->page)
		return pages->on_demand ? pvr_demand_run(pages->demand, offset, len, contig)
					: run_of_extent(pages, offset, len, contig);
	for (; run < len; run += PVR_PAGE_SIZE, i++)
		if (pages->page[i + 1] != pages->page[i] + PVR_PAGE_SIZE)
			break;
	*contig = run < len ? run : len;
	return pages->page[offset / PVR_PAGE_SIZE] + offset % PVR_PAGE_SIZE;
}
