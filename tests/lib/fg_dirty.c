// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The log of dirty pages of a guest's adapter, and the pages that the adapter has written. */
#include "fg_dirty.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fg_trap.h"

#define WORD_BITS 64u

void fg_dirty_start(struct fg_guest *guest)
{
	int err = pvr_adapter_start_dirty_log(guest->adapter);

	if (err)
		fg_die("%s: no log of dirty pages: %s", guest->name, strerror(-err));
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		if (guest->ram.region[i].trap)
			fg_trap_reset(guest->ram.region[i].trap);
}

/* The log of a region; freed by the caller. */
static uint64_t *take(struct fg_guest *guest, const struct fg_ram_region *region)
{
	uint64_t *bitmap = calloc(region->size / PVR_PAGE_SIZE / WORD_BITS + 1, sizeof(*bitmap));
	int err;

	if (!bitmap)
		fg_die("out of memory");
	err = pvr_adapter_take_dirty_log(guest->adapter, region->gpa, region->size, bitmap);
	if (err)
		fg_die("%s: dirty pages are unknown: %s", guest->name, strerror(-err));
	return bitmap;
}

static bool has(const uint64_t *bitmap, uint64_t offset)
{
	uint64_t page = offset / PVR_PAGE_SIZE;

	return bitmap[page / WORD_BITS] >> page % WORD_BITS & 1;
}

bool fg_dirty_take(struct fg_guest *guest, uint64_t gpa)
{
	const struct fg_ram_region *region;
	bool found = false;
	uint64_t *bitmap;

	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		region = &guest->ram.region[i];
		if (!region->size)
			continue;
		bitmap = take(guest, region);
		if (gpa >= region->gpa && gpa - region->gpa < region->size)
			found = has(bitmap, gpa - region->gpa);
		free(bitmap);
	}
	return found;
}

static void check_region(struct fg_guest *guest, const struct fg_ram_region *region)
{
	uint64_t *bitmap = take(guest, region), offset, gpa;

	for (offset = 0; offset < region->size; offset += PVR_PAGE_SIZE) {
		gpa = region->gpa + offset;
		if (fg_trap_was_written(region->trap, offset) && !has(bitmap, offset))
			fg_die("%s: the page at 0x%llx was written, but is not in the log",
			       guest->name, (unsigned long long)gpa);
	}
	free(bitmap);
	fg_trap_reset(region->trap);
}

void fg_dirty_check(struct fg_guest *guest)
{
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		if (guest->ram.region[i].trap)
			check_region(guest, &guest->ram.region[i]);
}

void fg_dirty_unmap(struct fg_guest *guest, const struct fg_ram_region *region)
{
	pvr_adapter_unmap_ram(guest->adapter, region->gpa, region->size);
	if (region->trap)
		fg_trap_reset(region->trap);
}
