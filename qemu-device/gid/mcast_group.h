/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups of a fabric: the queue pairs that receive datagrams to a group's GID.
 *
 * DOC: membership and limits
 *
 * - A group is a list of adapters, each with a list of its attached queue pairs.
 * - Membership changes with both the adapter's lock and the fabric's lock (gid/fabric.h)
 *   held. Either lock is enough to read it.
 * - An adapter attaches at most PVR_MAX_MCAST_QP_ATTACH queue pairs to a group. The limit
 *   is per adapter, so a guest cannot exhaust a group for others.
 * - One datagram makes at most PVR_MCAST_FANOUT copies, or one per adapter if the group
 *   has more adapters. Adapters have equal shares of the copies. An adapter's share goes
 *   to the queue pairs that were attached first.
 */
#ifndef PVR_MCAST_GROUP_H
#define PVR_MCAST_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/gid.h"

struct pvr_adapter;
struct pvr_engine;
struct pvr_qp;

#define PVR_MAX_MCAST_GRP 256 /* of an adapter */
#define PVR_MAX_MCAST_QP_ATTACH 64 /* of an adapter, to a group */
#define PVR_MAX_MCAST_TOTAL 4096 /* of an adapter, to all groups */
#define PVR_MCAST_FANOUT 1024

struct pvr_mcast_adapter;

/* A queue pair in a group. */
struct pvr_mcast_qp {
	TAILQ_ENTRY(pvr_mcast_qp) of_mcast_adapter;
	LIST_ENTRY(pvr_mcast_qp) of_qp;
	struct pvr_mcast_adapter *mcast_adapter;
	struct pvr_qp *qp;
};

/* An adapter in a group. */
struct pvr_mcast_adapter {
	LIST_ENTRY(pvr_mcast_adapter) link;
	uint64_t number; /* unique in the engine; increases with each new member */
	struct pvr_group *group;
	struct pvr_adapter *adapter;
	uint32_t count;
	TAILQ_HEAD(, pvr_mcast_qp) mcast_qps;
};

struct pvr_group {
	LIST_ENTRY(pvr_group) link;
	uint8_t mgid[16];
	uint8_t gid_type; /* PVR_GID_TYPE_*: v1 and v2 are separate groups */
	uint32_t count;
	LIST_HEAD(, pvr_mcast_adapter) mcast_adapters; /* the newest first */
};

/**
 * pvr_group_attach() - attach a queue pair to a group of its fabric
 *
 * Return: 0, also if it is attached already (IBTA 11.3.1 defines no error for that), or
 * -ENOMEM, also if a limit is reached.
 */
int pvr_group_attach(struct pvr_qp *qp, const uint8_t mgid[16]);
/* Return: 0, or -EINVAL if the queue pair is not attached. */
int pvr_group_detach(struct pvr_qp *qp, const uint8_t mgid[16]);
/* Detach a queue pair from all groups, before its destruction. */
void pvr_group_detach_all(struct pvr_qp *qp);

/*
 * Return: whether an adapter of this engine is in a group with this GID, and its RoCE
 * version in *gid_type. The fabric need not exist. Takes the fabric's lock.
 */
bool pvr_group_exists(struct pvr_engine *engine, const char *fabric, const uint8_t mgid[16],
		      uint8_t *gid_type);

/* One adapter in an iteration over a group. */
struct pvr_mcast_iter {
	uint64_t number;
	struct pvr_adapter *adapter;
	struct pvr_mcast_qp *first; /* valid only with the lock of @adapter held */
	uint32_t share; /* number of queue pairs, from @first, that get a copy */
};

/*
 * Get the next adapter of the group in the fabric of @adapter, after number @after; 0:
 * the first. The adapter need not be locked, and may leave the group meanwhile. Return:
 * false if there is none.
 */
bool pvr_group_next(const struct pvr_adapter *adapter, const uint8_t mgid[16], uint64_t after,
		    struct pvr_mcast_iter *iter);
/* The name of a group, for callers without an adapter. */
struct pvr_group_name {
	const char *fabric; /* need not exist */
	const uint8_t *mgid;
	uint8_t gid_type;
};

/* pvr_group_next() by the name of the group. */
bool pvr_group_next_of(struct pvr_engine *engine, const struct pvr_group_name *name, uint64_t after,
		       struct pvr_mcast_iter *iter);
/*
 * The queue pairs of @adapter in a group. Its lock is held, so they stay as they are. Return:
 * false if it has none.
 */
bool pvr_group_member(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		      struct pvr_mcast_iter *iter);
/* Get the same adapter again. Return: false if it has left the group. */
bool pvr_group_at(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		  struct pvr_mcast_iter *iter);

#endif /* PVR_MCAST_GROUP_H */
