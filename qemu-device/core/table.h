/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Handle tables: they map the small integers of guests to objects. */
#ifndef PVR_TABLE_H
#define PVR_TABLE_H

#include <stdint.h>
#include <stddef.h>

/*
 * Handles min .. max - 1. Slots are allocated as the table fills. A free slot is reused
 * as late as possible, so a guest's stale handle finds no object for a long time.
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
/*
 * Add an object by a given handle. Return: 0, -EINVAL (out of range), -EBUSY or -ENOMEM.
 */
int pvr_table_add_at(struct pvr_table *table, void *object, uint32_t handle);
void pvr_table_del(struct pvr_table *table, uint32_t handle);

/* Return: the object of @handle, or NULL. Any value of @handle is valid. */
static inline void *pvr_table_get(const struct pvr_table *table, uint32_t handle)
{
	return handle < table->size ? table->slot[handle] : NULL;
}

/* Run the body for each object. The body may delete this object. */
#define PVR_TABLE_FOR_EACH(table, index, object)              \
	for ((index) = 0; (index) < (table)->size; (index)++) \
		if (((object) = (table)->slot[(index)]) != NULL)

#endif /* PVR_TABLE_H */
