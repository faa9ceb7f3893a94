// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A log of the pages of guest RAM that the device has written. */
#include "core/dirty.h"

#define PAGE_SHIFT 12
#define WORD_BITS 64u

_Static_assert(PVR_PAGE_SIZE == 1u << PAGE_SHIFT, "a bit per page");

/* ------------------------------------------------------------------ marks */

/* Bits @first to @last of a bitmap, by words. */
static void set_bits(uint64_t *bitmap, uint64_t first, uint64_t last)
{
	uint64_t *word = &bitmap[first / WORD_BITS], *end = &bitmap[last / WORD_BITS];
	uint64_t from = ~0ull << first % WORD_BITS,
		 to = ~0ull >> (WORD_BITS - 1 - last % WORD_BITS);

	if (word == end) {
		*word |= from & to;
		return;
	}
	*word++ |= from;
	while (word < end)
		*word++ = ~0ull;
	*end |= to;
}

static const struct pvr_ram_region *find_region(struct pvr_ram *ram, const uint8_t *va)
{
	unsigned int i;

	if (ram->dirty_last < ram->count && pvr_ram_contains(&ram->region[ram->dirty_last], va))
		return &ram->region[ram->dirty_last];
	for (i = 0; i < ram->count; i++) {
		if (!pvr_ram_contains(&ram->region[i], va))
			continue;
		ram->dirty_last = i;
		return &ram->region[i];
	}
	/* The steps of an unmap may still write to it. */
	for (i = 0; i < ram->gone_count; i++)
		if (pvr_ram_contains(&ram->gone[i], va))
			return &ram->gone[i];
	return NULL;
}

/* A run may go on in a region that is mapped behind the first one. */
void pvr_dirty_mark(struct pvr_adapter *adapter, const void *va, uint64_t len)
{
	const struct pvr_ram_region *region;
	const uint8_t *at = va;
	uint64_t offset, n;

	for (; len; len -= n, at += n) {
		region = find_region(&adapter->ram, at);
		if (!region)
			return;
		offset = at - region->va;
		n = len < region->size - offset ? len : region->size - offset;
		set_bits(region->dirty, offset >> PAGE_SHIFT, (offset + n - 1) >> PAGE_SHIFT);
	}
}

/* ----------------------------------------------------------------- report */

/* Set bits @at and following of the caller's bitmap. */
static void put_bits(uint64_t *bitmap, uint64_t at, uint64_t bits)
{
	uint64_t shift = at % WORD_BITS;

	bitmap[at / WORD_BITS] |= bits << shift;
	if (shift && bits >> (WORD_BITS - shift))
		bitmap[at / WORD_BITS + 1] |= bits >> (WORD_BITS - shift);
}

/* Move bits @first to @last to bits @at and following of @bitmap. */
static void take_bits(uint64_t *dirty, uint64_t first, uint64_t last, uint64_t *bitmap, uint64_t at)
{
	uint64_t word, mask, bits;

	for (word = first / WORD_BITS; word <= last / WORD_BITS; word++) {
		mask = ~0ull;
		if (word == first / WORD_BITS)
			mask &= ~0ull << first % WORD_BITS;
		if (word == last / WORD_BITS)
			mask &= ~0ull >> (WORD_BITS - 1 - last % WORD_BITS);
		bits = dirty[word] & mask;
		if (!bits)
			continue;
		dirty[word] &= ~mask;
		if (word == first / WORD_BITS)
			put_bits(bitmap, at, bits >> first % WORD_BITS);
		else
			put_bits(bitmap, at + word * WORD_BITS - first, bits);
	}
}

static void take_region(const struct pvr_ram_region *region, uint64_t gpa, uint64_t len,
			uint64_t *bitmap)
{
	uint64_t begin = gpa > region->gpa ? gpa : region->gpa;
	uint64_t last = gpa + len - 1, region_last = region->gpa + region->size - 1;

	if (region_last < last)
		last = region_last;
	if (begin > last)
		return;
	take_bits(region->dirty, (begin - region->gpa) >> PAGE_SHIFT,
		  (last - region->gpa) >> PAGE_SHIFT, bitmap, (begin - gpa) >> PAGE_SHIFT);
}

void pvr_dirty_take(struct pvr_ram *ram, uint64_t gpa, uint64_t len, uint64_t *bitmap)
{
	unsigned int i;

	for (i = 0; i < ram->count; i++)
		take_region(&ram->region[i], gpa, len, bitmap);
	for (i = 0; i < ram->gone_count; i++)
		take_region(&ram->gone[i], gpa, len, bitmap);
}
