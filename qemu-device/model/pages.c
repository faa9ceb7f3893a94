/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Page directories. */
#include "model/pages.h"

#include <errno.h>
#include <stdlib.h>

#include "model/adapter.h"

/*
 * A guest may register the same memory many times over (that is normal), but not
 * without end: we spend at most this many pointers per page of its RAM, plus a floor.
 */
#define BUDGET_PER_RAM_PAGE 8
#define BUDGET_FLOOR (1u << 18)

static uint64_t budget(const struct pvr_adapter *adapter)
{
	return pvr_ram_size(&adapter->ram) / PVR_PAGE_SIZE * BUDGET_PER_RAM_PAGE +
	       BUDGET_FLOOR;
}

static int walk(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count, bool write,
		struct pvr_pages *pages)
{
	const volatile uint64_t *dir_shm, *table_shm = NULL;
	uint32_t i;

	dir_shm = pvr_ram_page(&adapter->ram, pdir_dma, false);
	if (!dir_shm)
		return -EFAULT;
	for (i = 0; i < count; i++) {
		if (i % PVR_PDIR_ENTRIES == 0)
			table_shm = pvr_ram_page(&adapter->ram,
						 dir_shm[i / PVR_PDIR_ENTRIES], false);
		if (!table_shm)
			return -EFAULT;
		pages->page[i] = pvr_ram_page(&adapter->ram,
					      table_shm[i % PVR_PDIR_ENTRIES], write);
		if (!pages->page[i])
			return -EFAULT;
	}
	return 0;
}

/* Contiguous pages need no table. */
static void collapse(struct pvr_pages *pages)
{
	uint32_t i;

	for (i = 1; i < pages->count; i++)
		if (pages->page[i] != pages->page[i - 1] + PVR_PAGE_SIZE)
			return;
	pages->base = pages->page[0];
	free(pages->page);
	pages->page = NULL;
}

int pvr_pages_reserve(struct pvr_adapter *adapter, uint32_t max, struct pvr_pages *pages)
{
	*pages = (struct pvr_pages){ 0 };
	if (!max || max > PVR_PDIR_MAX_PAGES)
		return -EINVAL;
	if (adapter->pages_used + max > budget(adapter))
		return -ENOSPC;
	pages->page = calloc(max, sizeof(*pages->page));
	if (!pages->page)
		return -ENOMEM;
	pages->count = max;
	adapter->pages_used += max;
	return 0;
}

int pvr_pages_refill(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count,
		     bool write, struct pvr_pages *pages)
{
	int err;

	if (!count || count > pages->count)
		return -EINVAL;
	err = walk(adapter, pdir_dma, count, write, pages);
	pages->broken = err != 0;
	return err;
}

int pvr_pages_map(struct pvr_adapter *adapter, uint64_t pdir_dma, uint32_t count,
		  bool write, struct pvr_pages *pages)
{
	int err;

	err = pvr_pages_reserve(adapter, count, pages);
	if (err)
		return err;
	err = walk(adapter, pdir_dma, count, write, pages);
	if (err) {
		pvr_pages_unmap(adapter, pages);
		return err;
	}
	collapse(pages);
	return 0;
}

void pvr_pages_unmap(struct pvr_adapter *adapter, struct pvr_pages *pages)
{
	adapter->pages_used -= pages->count;
	free(pages->page);
	*pages = (struct pvr_pages){ 0 };
}

static bool in_piece(const uint8_t *ptr, const struct pvr_ram_piece *piece)
{
	return ptr >= piece->va && ptr < piece->va + piece->size;
}

bool pvr_pages_check(struct pvr_pages *pages, const struct pvr_ram_piece *piece)
{
	uint32_t i;

	if (pages->base) {
		/* Adjacent pieces may be one run here: look at both ends and across. */
		const uint8_t *end = pages->base + (uint64_t)pages->count * PVR_PAGE_SIZE;

		if (pages->base < piece->va + piece->size && end > piece->va)
			pages->broken = true;
		return pages->broken;
	}
	for (i = 0; i < pages->count && !pages->broken; i++)
		pages->broken = in_piece(pages->page[i], piece);
	return pages->broken;
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
	for (; run < len; run += PVR_PAGE_SIZE, i++)
		if (pages->page[i + 1] != pages->page[i] + PVR_PAGE_SIZE)
			break;
	*contig = run < len ? run : len;
	return pages->page[offset / PVR_PAGE_SIZE] + offset % PVR_PAGE_SIZE;
}
