/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fabrics: who can meet whom, and who owns which GID.
 *
 * A fabric is a tenant: nothing finds an adapter of another fabric. A GID belongs to
 * one adapter of its fabric.
 */
#ifndef PVR_FABRIC_H
#define PVR_FABRIC_H

#include <stdint.h>
#include <sys/queue.h>

struct pvr_adapter;
struct pvr_engine;
struct pvr_gid_node;
struct pvr_group;
struct pvr_path;

#define PVR_FABRIC_BUCKETS 256

struct pvr_fabric {
	LIST_ENTRY(pvr_fabric) link;
	char name[32];
	LIST_HEAD(, pvr_adapter) adapters;
	LIST_HEAD(, pvr_gid_node) gids[PVR_FABRIC_BUCKETS];
	LIST_HEAD(, pvr_group) groups[PVR_FABRIC_BUCKETS]; /* see fabric/group.h */
};

/* Traffic counters of an ordered pair of adapters; lives as long as both. */
struct pvr_path {
	LIST_ENTRY(pvr_path) link;
	struct pvr_adapter *from, *to;
	uint64_t messages, bytes;
};

struct pvr_fabrics {
	LIST_HEAD(, pvr_fabric) list;
	LIST_HEAD(, pvr_path) paths;
};

/**
 * pvr_fabric_join() - put an adapter into the fabric of this name
 *
 * Makes the fabric if it is the first. Return: 0, -EADDRINUSE (another adapter there
 * has its MAC) or -ENOMEM.
 */
int pvr_fabric_join(struct pvr_engine *engine, const char *name,
		    struct pvr_adapter *adapter);
/* Takes the adapter, its GIDs and its paths out; frees an empty fabric. */
void pvr_fabric_leave(struct pvr_adapter *adapter);

/**
 * pvr_fabric_bind() - make a GID the adapter's
 *
 * Return: 0, -EADDRINUSE (bound by another adapter), -EPERM (made from the MAC of
 * another adapter) or -ENOMEM. One adapter may bind a GID several times. A GID that is
 * made from the adapter's own MAC is its own, also if another one has bound it before.
 */
int pvr_fabric_bind(struct pvr_adapter *adapter, const uint8_t gid[16]);
void pvr_fabric_unbind(struct pvr_adapter *adapter, const uint8_t gid[16]);

/* Where a GID is in the fabric's tables. */
unsigned int pvr_fabric_bucket(const uint8_t gid[16]);

/* Who has @gid in the fabric of @adapter; NULL if nobody has. */
struct pvr_adapter *pvr_fabric_find(const struct pvr_adapter *adapter,
				    const uint8_t gid[16]);

/* The counters of this pair; NULL when there is no memory for them. */
struct pvr_path *pvr_fabric_path(struct pvr_adapter *from, struct pvr_adapter *to);

#endif /* PVR_FABRIC_H */
