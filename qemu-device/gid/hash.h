/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Hashes of GIDs and names with a seed that guests cannot predict. */
#ifndef PVR_GID_HASH_H
#define PVR_GID_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint64_t pvr_hash_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static inline uint64_t pvr_hash_name(uint64_t seed, const char *name)
{
	while (*name)
		seed = pvr_hash_mix(seed, (unsigned char)*name++);
	return seed;
}

/* @salt: distinguishes GIDs with the same bytes. */
static inline uint64_t pvr_hash_gid(uint64_t seed, const uint8_t gid[16], uint64_t salt)
{
	uint64_t half[2];

	memcpy(half, gid, sizeof(half));
	return pvr_hash_mix(pvr_hash_mix(pvr_hash_mix(seed, half[0]), half[1]), salt);
}

#endif /* PVR_GID_HASH_H */
