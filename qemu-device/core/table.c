// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Handle tables. */
#include "core/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 16u

void pvr_table_init(struct pvr_table *table, uint32_t min, uint32_t max)
{
	*table = (struct pvr_table){ .min = min, .max = max, .next = min };
}

void pvr_table_exit(struct pvr_table *table)
{
	free(table->slot);
	pvr_table_init(table, table->min, table->max);
}

static int table_grow(struct pvr_table *table, uint32_t want)
{
	uint32_t size = table->size ? table->size : FIRST_SIZE;
	void **slot;

	while (size < want)
		size *= 2;
	if (size > table->max)
		size = table->max;
	slot = realloc(table->slot, size * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot + table->size, 0, (size - table->size) * sizeof(*slot));
	table->slot = slot;
	table->size = size;
	return 0;
}

/*
 * Keep the table at most half full, so that searches stay short. A failure to grow is no
 * error: the table may have free slots.
 */
static void table_make_room(struct pvr_table *table)
{
	uint32_t want = 2 * (table->used + 1) + table->min;

	if (table->size < table->max && table->size < want)
		(void)table_grow(table, want);
}

int pvr_table_add(struct pvr_table *table, void *object, uint32_t *handle)
{
	uint32_t i, h;

	if (table->used >= table->max - table->min)
		return -ENOSPC;
	table_make_room(table);
	for (i = 0, h = table->next; i < table->size; i++, h++) {
		if (h >= table->size)
			h = table->min;
		if (h < table->size && !table->slot[h]) {
			table->slot[h] = object;
			table->used++;
			table->next = h + 1;
			*handle = h;
			return 0;
		}
	}
	return -ENOMEM;
}

int pvr_table_add_at(struct pvr_table *table, void *object, uint32_t handle)
{
	if (handle >= table->max)
		return -EINVAL;
	if (handle >= table->size && table_grow(table, handle + 1))
		return -ENOMEM;
	if (table->slot[handle])
		return -EBUSY;
	table->slot[handle] = object;
	/* Handles below min do not count against the limit of max - min. */
	table->used += handle >= table->min;
	return 0;
}

void pvr_table_del(struct pvr_table *table, uint32_t handle)
{
	table->slot[handle] = NULL;
	table->used -= handle >= table->min;
}
