// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guest RAM: translation of bus addresses to pointers. */
#include "core/ram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pvrdma_abi.h"

void pvr_ram_init(struct pvr_ram *ram)
{
	*ram = (struct pvr_ram){ 0 };
}

static int alloc_dirty(struct pvr_ram_region *region)
{
	const uint64_t bits = 8 * sizeof(*region->dirty);
	uint64_t pages = (region->size - 1) / PVR_PAGE_SIZE + 1;

	region->dirty = calloc((pages - 1) / bits + 1, sizeof(*region->dirty));
	return region->dirty ? 0 : -ENOMEM;
}

static void free_dirty(struct pvr_ram_region *region)
{
	free(region->dirty);
	region->dirty = NULL;
}

static bool has_dirty(const struct pvr_ram_region *region)
{
	uint64_t words = ((region->size - 1) / PVR_PAGE_SIZE) / 64 + 1, i;

	for (i = 0; i < words; i++)
		if (region->dirty[i])
			return true;
	return false;
}

static struct pvr_ram_region *find_gone(struct pvr_ram *ram, const struct pvr_ram_region *region)
{
	unsigned int i;

	for (i = 0; i < ram->gone_count; i++)
		if (ram->gone[i].gpa == region->gpa && ram->gone[i].size == region->size)
			return &ram->gone[i];
	return NULL;
}

/*
 * Its last writes are not reported yet: QEMU splits a range of RAM by removing it and adding its
 * parts, and all pages are still those of the guest.
 */
static void keep_dirty(struct pvr_ram *ram, struct pvr_ram_region *region)
{
	uint64_t words = ((region->size - 1) / PVR_PAGE_SIZE) / 64 + 1, i;
	struct pvr_ram_region *gone = find_gone(ram, region);

	if (!ram->dirty_on || !has_dirty(region)) {
		free_dirty(region);
		return;
	}
	if (gone) {
		for (i = 0; i < words; i++)
			gone->dirty[i] |= region->dirty[i];
		free_dirty(region);
	} else if (ram->gone_count < PVR_RAM_GONE_MAX) {
		ram->gone[ram->gone_count++] = *region;
		region->dirty = NULL;
	} else {
		ram->dirty_lost = true;
		free_dirty(region);
	}
}

int pvr_ram_start_dirty(struct pvr_ram *ram)
{
	unsigned int i;

	if (ram->dirty_on)
		return -EALREADY;
	ram->dirty_on = true;
	for (i = 0; i < ram->count; i++) {
		if (!alloc_dirty(&ram->region[i]))
			continue;
		pvr_ram_stop_dirty(ram);
		return -ENOMEM;
	}
	return 0;
}

void pvr_ram_stop_dirty(struct pvr_ram *ram)
{
	unsigned int i;

	ram->dirty_on = false;
	ram->dirty_lost = false;
	for (i = 0; i < ram->count; i++)
		free_dirty(&ram->region[i]);
	while (ram->gone_count)
		free_dirty(&ram->gone[--ram->gone_count]);
}

void pvr_ram_exit(struct pvr_ram *ram)
{
	pvr_ram_stop_dirty(ram);
	free(ram->region);
	pvr_ram_init(ram);
}

/*
 * Return: the index of the first region that ends after @gpa, or count if there is none.
 */
static unsigned int ram_find(const struct pvr_ram *ram, uint64_t gpa)
{
	unsigned int lo = 0, hi = ram->count, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (ram->region[mid].gpa + ram->region[mid].size - 1 < gpa)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int pvr_ram_add(struct pvr_ram *ram, uint64_t gpa, uint64_t size, void *va, bool writable)
{
	struct pvr_ram_region new = { .gpa = gpa, .size = size, .va = va, .writable = writable };
	struct pvr_ram_region *region;
	unsigned int at;

	if (!size || !va || gpa + size - 1 < gpa)
		return -EINVAL;
	at = ram_find(ram, gpa);
	if (at < ram->count && ram->region[at].gpa <= gpa + size - 1)
		return -EINVAL;
	if (ram->count == PVR_RAM_MAX_REGIONS)
		return -ENOSPC;
	region = realloc(ram->region, (ram->count + 1) * sizeof(*region));
	if (!region)
		return -ENOMEM;
	ram->region = region;
	if (ram->dirty_on && alloc_dirty(&new))
		return -ENOMEM;
	memmove(&region[at + 1], &region[at], (ram->count - at) * sizeof(*region));
	region[at] = new;
	ram->count++;
	ram->last = at;
	return 0;
}

/* Return: the index of the region, or -ENOENT. */
static int find_exactly(const struct pvr_ram *ram, uint64_t gpa, uint64_t size)
{
	unsigned int at = ram_find(ram, gpa);

	if (at == ram->count || ram->region[at].gpa != gpa || ram->region[at].size != size)
		return -ENOENT;
	return (int)at;
}

int pvr_ram_del(struct pvr_ram *ram, uint64_t gpa, uint64_t size, struct pvr_ram_region *region)
{
	int at = find_exactly(ram, gpa, size);

	if (at < 0)
		return at;
	keep_dirty(ram, &ram->region[at]);
	*region = ram->region[at];
	ram->count--;
	memmove(&ram->region[at], &ram->region[at + 1],
		(ram->count - (unsigned int)at) * sizeof(*ram->region));
	ram->last = 0;
	return 0;
}

int pvr_ram_persist(struct pvr_ram *ram, uint64_t gpa, uint64_t size)
{
	int at = find_exactly(ram, gpa, size);

	if (at < 0)
		return at;
	ram->region[at].persistent = true;
	return 0;
}

bool pvr_ram_is_persistent(struct pvr_ram *ram, uint64_t gpa)
{
	uint64_t contig;

	return pvr_ram_ptr(ram, gpa, 1, false, &contig) && ram->region[ram->last].persistent;
}

uint64_t pvr_ram_size(const struct pvr_ram *ram)
{
	uint64_t size = 0;
	unsigned int i;

	for (i = 0; i < ram->count; i++)
		size += ram->region[i].size;
	return size;
}

static bool region_has(const struct pvr_ram_region *region, uint64_t gpa)
{
	return gpa - region->gpa < region->size;
}

uint8_t *pvr_ram_ptr(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write, uint64_t *contig)
{
	const struct pvr_ram_region *region;
	unsigned int at = ram->last;
	uint64_t room;

	if (at >= ram->count || !region_has(&ram->region[at], gpa)) {
		at = ram_find(ram, gpa);
		if (at == ram->count || !region_has(&ram->region[at], gpa))
			return NULL;
		ram->last = at;
	}
	region = &ram->region[at];
	if (write && !region->writable)
		return NULL;
	room = region->size - (gpa - region->gpa);
	*contig = len < room ? len : room;
	return region->va + (gpa - region->gpa);
}

bool pvr_ram_gpa(const struct pvr_ram *ram, const void *va, uint64_t *gpa, uint64_t *contig)
{
	const struct pvr_ram_region *region;
	unsigned int i;
	uint64_t offset;

	for (i = 0; i < ram->count; i++) {
		region = &ram->region[i];
		if (!pvr_ram_contains(region, va))
			continue;
		offset = (const uint8_t *)va - region->va;
		*gpa = region->gpa + offset;
		*contig = region->size - offset;
		return true;
	}
	return false;
}

bool pvr_ram_covers(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write)
{
	uint64_t contig;

	if (len && gpa + len - 1 < gpa)
		return false;
	for (; len; len -= contig, gpa += contig)
		if (!pvr_ram_ptr(ram, gpa, len, write, &contig))
			return false;
	return true;
}

void *pvr_ram_page(struct pvr_ram *ram, uint64_t gpa, bool write)
{
	uint64_t contig;
	void *page;

	if (gpa % PVR_PAGE_SIZE)
		return NULL;
	page = pvr_ram_ptr(ram, gpa, PVR_PAGE_SIZE, write, &contig);
	return page && contig == PVR_PAGE_SIZE ? page : NULL;
}
