/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fabrics: who can meet whom, and who owns which GID.
 *
 * A fabric is a tenant: nothing finds an adapter of another fabric. A GID belongs to
 * one adapter of its fabric.
 *
 * DOC: the fabrics' lock
 *
 * One lock protects all that is here, and all of gid/mcast_group.h: who is in which fabric
 * and group, who has which GID, and the list of paths. It is taken for short, inside
 * adapters' locks, by the functions themselves. None of them takes another adapter's
 * lock: an adapter that loses a GID is told, and its own worker does the rest.
 */
#ifndef PVR_FABRIC_H
#define PVR_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/lock.h"

struct pvr_adapter;
struct pvr_engine;
struct pvr_gid_cache;
struct pvr_gid_node;
struct pvr_group;
struct pvr_flow;
struct pvr_host;

#define PVR_FABRIC_BUCKETS 256

struct pvr_fabric {
	LIST_ENTRY(pvr_fabric) link;
	uint64_t id; /* no other one in the life of the engine has it */
	/*
	 * Grows whenever a GID may have stopped being where somebody found it, or has
	 * come. Written under the lock, read without it.
	 */
	uint64_t gid_gen;
	char name[32];
	LIST_HEAD(, pvr_adapter) adapters;
	LIST_HEAD(, pvr_gid_node) gids[PVR_FABRIC_BUCKETS];
	LIST_HEAD(, pvr_group) groups[PVR_FABRIC_BUCKETS]; /* see gid/mcast_group.h */
};

/*
 * Traffic counters of an ordered pair of adapters, or of an adapter and another host; lives
 * as long as both. @from counts.
 */
struct pvr_flow {
	LIST_ENTRY(pvr_flow) link;
	struct pvr_adapter *from, *to;
	struct pvr_host *host; /* if @to is NULL */
	uint8_t kind; /* enum pvr_pipe_kind, used last */
	uint64_t messages, bytes;
	char pad[64]; /* other workers write to the next one */
};

struct pvr_fabrics {
	struct pvr_lock lock;
	uint64_t incarnations; /* that there ever were */
	uint64_t mcast_adapters; /* of multicast groups that there ever were */
	uint64_t ids; /* fabrics that there ever were */
	/* Never change once there are adapters. NULL: this host is by itself. */
	const struct pvr_gid_ops *gid_ops;
	void *gid_opaque;
	struct pvr_gid_cache *gids; /* gid/resolve.c: GIDs at other hosts */
	LIST_HEAD(, pvr_fabric) list;
	LIST_HEAD(, pvr_flow) flows;
};

/* NULL: no memory. */
struct pvr_fabrics *pvr_fabrics_create(void);
/* No adapter is there any more. NULL is allowed. */
void pvr_fabrics_destroy(struct pvr_fabrics *fabrics);

/**
 * pvr_fabric_join() - put an adapter into the fabric of this name
 *
 * Makes the fabric if it is the first. Return: 0, -EADDRINUSE (another adapter there
 * has its MAC) or -ENOMEM.
 */
int pvr_fabric_join(struct pvr_engine *engine, const char *name, struct pvr_adapter *adapter);
/* Takes the adapter, its GIDs and its paths out; frees an empty fabric. */
void pvr_fabric_leave(struct pvr_adapter *adapter);

/**
 * pvr_fabric_bind() - make a GID the adapter's
 * @loser: the adapter that has lost the GID to this one, or NULL; also set on failure. The
 *	   caller has that adapter's worker call pvr_gid_forget_lost() for it
 *
 * Return: 0, -EADDRINUSE (bound by another adapter), -EPERM (made from the MAC of
 * another adapter) or -ENOMEM. One adapter may bind a GID several times. A GID that is
 * made from the adapter's own MAC is its own, also if another one has bound it before.
 */
int pvr_fabric_bind(struct pvr_adapter *adapter, const uint8_t gid[16], struct pvr_adapter **loser);
void pvr_fabric_unbind(struct pvr_adapter *adapter, const uint8_t gid[16]);

/*
 * A GID that the adapter has lost since it was asked last: true, until there is none. Its
 * lock is held.
 */
bool pvr_fabric_take_lost(struct pvr_adapter *adapter, uint8_t gid[16]);

/*
 * An adapter has a life from one reset to the next: what a guest had before does not come
 * back. The life of who has @gid in the fabric of @adapter, which is told when it ends (see
 * pvr_peer_gone_check_later()); 0: nobody has it.
 */
uint64_t pvr_fabric_incarnation(const struct pvr_adapter *adapter, const uint8_t gid[16]);
/* Some adapter of the fabric still has that life. */
bool pvr_fabric_is_alive(const struct pvr_adapter *adapter, uint64_t incarnation);
/* Return: whether adapters of the fabric have lost a peer; then each worker looks after its own. */
bool pvr_fabric_new_incarnation(struct pvr_adapter *adapter);

/* Where a GID is in the fabric's tables. */
unsigned int pvr_fabric_bucket(const uint8_t gid[16]);

/* Who has @gid in the fabric of @adapter; NULL if nobody has. */
struct pvr_adapter *pvr_fabric_find(const struct pvr_adapter *adapter, const uint8_t gid[16]);

/*
 * The same for somebody who has no adapter: the fabric by its name, which need not exist,
 * and the version of RoCE, 0: any. Adapters stay while workers run.
 */
struct pvr_adapter *pvr_fabric_look_up(struct pvr_engine *engine, const char *fabric,
				       const uint8_t gid[16], uint8_t gid_type);

/* Whether an adapter here is in it. */
bool pvr_fabric_exists(struct pvr_engine *engine, const char *fabric);
/* A GID may have moved; the lock is held. The fabric need not exist. */
void pvr_fabric_changed(struct pvr_engine *engine, const char *fabric);

/* The counters of this pair; NULL when there is no memory for them. */
struct pvr_flow *pvr_flow_get(struct pvr_adapter *from, struct pvr_adapter *to);
struct pvr_flow *pvr_flow_get_host(struct pvr_adapter *from, struct pvr_host *to);

#endif /* PVR_FABRIC_H */
