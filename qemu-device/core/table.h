/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Handle tables: small integers for guests, pointers for us. */
#ifndef PVR_TABLE_H
#define PVR_TABLE_H

#include <stdint.h>
#include <stddef.h>

/*
 * Handles min .. max - 1. Slots are allocated as the table fills, and reused as late
 * as possible, so that a stale handle of a guest hits nothing for as long as we can.
 */
struct pvr_table {
	void **slot;
	uint32_t size; /* slots allocated */
	uint32_t min, max;
	uint32_t used;
	uint32_t next; /* where the search for a free slot begins */
};

void pvr_table_init(struct pvr_table *table, uint32_t min, uint32_t max);
/* Frees the table; the objects must be gone. */
void pvr_table_exit(struct pvr_table *table);

/* Return: 0, -ENOSPC (all handles are in use) or -ENOMEM. */
int pvr_table_add(struct pvr_table *table, void *object, uint32_t *handle);
/* Takes a certain handle. Return: 0, -EINVAL (no such handle), -EBUSY or -ENOMEM. */
int pvr_table_add_at(struct pvr_table *table, void *object, uint32_t handle);
void pvr_table_del(struct pvr_table *table, uint32_t handle);

/* Any @handle is allowed; NULL if nothing has it. */
static inline void *pvr_table_get(const struct pvr_table *table, uint32_t handle)
{
	return handle < table->size ? table->slot[handle] : NULL;
}

/* The body runs for each object; it may delete that object. */
#define PVR_TABLE_FOR_EACH(table, index, object)              \
	for ((index) = 0; (index) < (table)->size; (index)++) \
		if (((object) = (table)->slot[(index)]) != NULL)

#endif /* PVR_TABLE_H */
