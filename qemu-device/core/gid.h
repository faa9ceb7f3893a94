/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Kinds of GIDs, for engine and directory. */
#ifndef PVR_GID_H
#define PVR_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ::ffff:0.0.0.0/96: an IPv4 address. */
static inline bool pvr_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* ff00::/8 and ::ffff:224.0.0.0/4: a GID with members instead of an owner. */
static inline bool pvr_gid_is_multicast(const uint8_t gid[16])
{
	return pvr_gid_is_ipv4(gid) ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff;
}

#endif /* PVR_GID_H */
