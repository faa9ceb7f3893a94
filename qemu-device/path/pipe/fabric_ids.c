/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The fabrics that a connection has names for. */
#include "path/pipe/fabric_ids.h"
#include "gid/fabric.h"

#include <stdlib.h>
#include <string.h>

static unsigned int find_id(const struct pvr_declared *declared, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < declared->count; i++)
		if (declared->fabric[i]->id == id)
			return i + 1;
	return 0;
}

/* A fabric that went and came again has another id, and the same number. */
unsigned int pvr_declared_find(struct pvr_declared *declared, uint64_t id, const char *name)
{
	unsigned int number = id ? find_id(declared, id) : 0, i;

	if (number)
		return number;
	for (i = 0; i < declared->count; i++) {
		if (strcmp(declared->fabric[i]->name, name))
			continue;
		if (id)
			declared->fabric[i]->id = id;
		return i + 1;
	}
	return 0;
}

unsigned int pvr_declared_add(struct pvr_declared *declared, uint64_t id, const char *name)
{
	struct pvr_declared_fabric *fabric;
	uint32_t count = declared->count;

	if (count == PVR_WIRE_FABRICS)
		return 0;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return 0;
	fabric->id = id;
	strncpy(fabric->name, name, sizeof(fabric->name) - 1);
	declared->fabric[count] = fabric;
	__atomic_store_n(&declared->count, count + 1, __ATOMIC_RELEASE);
	return count + 1;
}

const char *pvr_declared_name(const struct pvr_declared *declared, unsigned int number)
{
	if (!number || number > __atomic_load_n(&declared->count, __ATOMIC_ACQUIRE))
		return NULL;
	return declared->fabric[number - 1]->name;
}

void pvr_declared_forget(struct pvr_declared *declared)
{
	while (declared->count)
		free(declared->fabric[--declared->count]);
}
