// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How much memory a client's files hold, as far as it maps them. */
#include "attach/ram_use.h"

#include <stdbool.h>
#include <string.h>

static bool is_same_file(const struct pvr_file_range *a, const struct pvr_file_range *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

static bool is_before(const struct pvr_file_range *a, const struct pvr_file_range *b)
{
	if (a->dev != b->dev)
		return a->dev < b->dev;
	if (a->ino != b->ino)
		return a->ino < b->ino;
	return a->offset < b->offset;
}

uint64_t pvr_ram_use_bytes(const struct pvr_ram_use *use)
{
	uint64_t bytes = 0, begin, end, counted = 0;
	const struct pvr_file_range *range;
	unsigned int i;

	for (i = 0; i < use->num; i++) {
		range = &use->ranges[i];
		if (!i || !is_same_file(range, range - 1))
			counted = 0;
		/* The file is counted up to @counted. */
		begin = range->offset > counted ? range->offset : counted;
		end = range->offset + range->size;
		if (end <= begin)
			continue;
		bytes += end - begin;
		counted = end;
	}
	return bytes;
}

void pvr_ram_use_add(struct pvr_ram_use *use, const struct pvr_file_range *range)
{
	unsigned int at = use->num++;

	for (; at && is_before(range, &use->ranges[at - 1]); at--)
		use->ranges[at] = use->ranges[at - 1];
	use->ranges[at] = *range;
}

void pvr_ram_use_remove(struct pvr_ram_use *use, const struct pvr_file_range *range)
{
	struct pvr_file_range *at = use->ranges, *end = use->ranges + use->num;

	while (at < end &&
	       (!is_same_file(at, range) || at->offset != range->offset || at->size != range->size))
		at++;
	if (at == end)
		return;
	memmove(at, at + 1, (size_t)(end - at - 1) * sizeof(*at));
	use->num--;
}
