// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fabric IDs of a connection. */
#include "path/pipe/fabric_ids.h"
#include "gid/fabric.h"

#include <stdlib.h>
#include <string.h>

static unsigned int find_id(const struct pvr_fabric_ids *fabric_ids, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < fabric_ids->count; i++)
		if (fabric_ids->fabric[i]->id == id)
			return i + 1;
	return 0;
}

/* A fabric that was removed and created again has another id and the same number. */
unsigned int pvr_fabric_ids_find(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name)
{
	unsigned int number = id ? find_id(fabric_ids, id) : 0, i;

	if (number)
		return number;
	for (i = 0; i < fabric_ids->count; i++) {
		if (strcmp(fabric_ids->fabric[i]->name, name))
			continue;
		if (id)
			fabric_ids->fabric[i]->id = id;
		return i + 1;
	}
	return 0;
}

unsigned int pvr_fabric_ids_add(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name)
{
	struct pvr_fabric_id *fabric;
	uint32_t count = fabric_ids->count;

	if (count == PVR_FRAME_FABRICS)
		return 0;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return 0;
	fabric->id = id;
	strncpy(fabric->name, name, sizeof(fabric->name) - 1);
	fabric_ids->fabric[count] = fabric;
	__atomic_store_n(&fabric_ids->count, count + 1, __ATOMIC_RELEASE);
	return count + 1;
}

const char *pvr_fabric_ids_name(const struct pvr_fabric_ids *fabric_ids, unsigned int number)
{
	if (!number || number > __atomic_load_n(&fabric_ids->count, __ATOMIC_ACQUIRE))
		return NULL;
	return fabric_ids->fabric[number - 1]->name;
}

void pvr_fabric_ids_forget(struct pvr_fabric_ids *fabric_ids)
{
	while (fabric_ids->count)
		free(fabric_ids->fabric[--fabric_ids->count]);
}
