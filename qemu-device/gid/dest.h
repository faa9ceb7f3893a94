/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Destinations of an adapter: the results of its last searches for GIDs.
 *
 * DOC: destinations
 *
 * - A destination is valid while gid_gen of the fabric is that of its search. So a datagram
 *   to a known GID takes no lock but those of the two adapters.
 * - Each GID has one place in the table. A guest that uses more GIDs than places, or GIDs
 *   with the same place, searches again, and takes the locks of the search.
 * - The adapter's lock protects the table. A destination is valid until the next call of
 *   pvr_dest_get() with the same adapter.
 */
#ifndef PVR_DEST_H
#define PVR_DEST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/adapter.h"
#include "gid/fabric.h"

#define PVR_DESTS 256

struct pvr_dest {
	uint64_t gen; /* gid_gen before the search; 0: none */
	uint8_t gid[16];
	struct pvr_adapter *adapter; /* that has the GID; NULL: none of this engine */
	struct pvr_flow *flow; /* to @adapter; NULL: not searched yet */
	struct pvr_host *host; /* that has the GID, if @state is AT_HOST */
	enum pvr_gid_state state; /* UNKNOWN: not searched yet, or not found */
};

/* Return: NULL if out of memory. */
struct pvr_dest *pvr_dests_create(void);
/* Search for the GID. The adapter's lock is held. */
struct pvr_dest *pvr_dest_search(struct pvr_adapter *from, const uint8_t gid[16]);

/* GIDs of one subnet, and those of EUI-64s, differ only in their last bytes. */
static inline struct pvr_dest *pvr_dest_place(const struct pvr_adapter *from, const uint8_t gid[16])
{
	uint64_t half[2];

	memcpy(half, gid, sizeof(half));
	return &from->dests[((half[0] ^ half[1]) * 0x9e3779b97f4a7c15ull) >> 56];
}

/* The destination of a GID. The adapter's lock is held. */
static inline struct pvr_dest *pvr_dest_get(struct pvr_adapter *from, const uint8_t gid[16])
{
	struct pvr_dest *dest = pvr_dest_place(from, gid);

	if (dest->gen == pvr_fabric_gid_gen(from->fabric) &&
	    !memcmp(dest->gid, gid, sizeof(dest->gid)))
		return dest;
	return pvr_dest_search(from, gid);
}

#endif /* PVR_DEST_H */
