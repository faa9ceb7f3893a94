// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Destinations of an adapter: the results of its last searches for GIDs. */
#include "gid/dest.h"

#include <stdlib.h>

_Static_assert(PVR_DESTS == 1u << 8, "pvr_dest_place() takes 8 bits");

struct pvr_dest *pvr_dests_create(void)
{
	return calloc(PVR_DESTS, sizeof(struct pvr_dest));
}

/* Reads gid_gen before the GIDs: @gen must never be newer than the GIDs that were used. */
struct pvr_dest *pvr_dest_search(struct pvr_adapter *from, const uint8_t gid[16])
{
	struct pvr_dest *dest = pvr_dest_place(from, gid);

	*dest = (struct pvr_dest){
		.gen = pvr_fabric_gid_gen(from->fabric),
		.state = PVR_GID_UNKNOWN,
	};
	memcpy(dest->gid, gid, sizeof(dest->gid));
	dest->adapter = pvr_fabric_find(from, gid);
	return dest;
}
