/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups of a fabric: which queue pairs get what is sent to a group's GID.
 *
 * DOC: bounds
 *
 * Who is in a group changes under the adapter's lock and the fabrics' (gid/fabric.h): so
 * who holds either can look.
 *
 * A group is a list of parties, one for each adapter with queue pairs in it, and a party
 * a list of these queue pairs. An adapter has at most PVR_MAX_MCAST_QP_ATTACH queue pairs
 * in a group, whatever other adapters do: one tenant's guests cannot use up a group for
 * others. One datagram makes at most PVR_MCAST_FANOUT copies, or one for each party where
 * there are more of these; when a group has more queue pairs than that, its parties get
 * equal shares, and each party's share goes to those that were attached first.
 */
#ifndef PVR_GROUP_H
#define PVR_GROUP_H

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
	uint64_t number; /* a newer one has a higher one */
	struct pvr_group *group;
	struct pvr_adapter *adapter;
	uint32_t count;
	TAILQ_HEAD(, pvr_mcast_qp) mcast_qps;
};

struct pvr_group {
	LIST_ENTRY(pvr_group) link;
	uint8_t mgid[16];
	uint8_t gid_type; /* RoCE v1 and v2 do not meet, as in pvr_fabric_find() */
	uint32_t count;
	LIST_HEAD(, pvr_mcast_adapter) mcast_adapters; /* the newest first */
};

/**
 * pvr_group_attach() - put a queue pair into a group of its fabric
 *
 * Return: 0, also if it is there already (IBTA vol. 1, 11.3.1 knows no error for that),
 * or -ENOMEM: also if one of the limits is reached.
 */
int pvr_group_attach(struct pvr_qp *qp, const uint8_t mgid[16]);
/* Return: 0, or -EINVAL if it is not there. */
int pvr_group_detach(struct pvr_qp *qp, const uint8_t mgid[16]);
/* The queue pair is about to go. */
void pvr_group_detach_all(struct pvr_qp *qp);

/*
 * Whether an adapter here is in the group: in the fabric of that name, which need not
 * exist, and of which version of RoCE. Takes the lock.
 */
bool pvr_group_exists(struct pvr_engine *engine, const char *fabric, const uint8_t mgid[16],
		      uint8_t *gid_type);

/* One party on the way through a group. */
struct pvr_mcast_iter {
	uint64_t number;
	struct pvr_adapter *adapter;
	struct pvr_mcast_qp *first; /* only if @adapter is held */
	uint32_t share; /* how many queue pairs, from the first, get a copy of a datagram */
};

/*
 * The next party of the group in the fabric of @adapter, behind number @after (0: the
 * first). Its adapter need not be held, and may leave the group meanwhile. Return: false
 * if there is none.
 */
bool pvr_group_next(const struct pvr_adapter *adapter, const uint8_t mgid[16], uint64_t after,
		    struct pvr_mcast_iter *iter);
/* A group by its name, for somebody who has no adapter. */
struct pvr_group_name {
	const char *fabric; /* need not exist */
	const uint8_t *mgid;
	uint8_t gid_type;
};

bool pvr_group_next_of(struct pvr_engine *engine, const struct pvr_group_name *name, uint64_t after,
		       struct pvr_mcast_iter *iter);
/* The same party once more. Return: false if it has left. */
bool pvr_group_at(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		  struct pvr_mcast_iter *iter);

#endif /* PVR_GROUP_H */
