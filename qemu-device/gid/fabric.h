/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fabrics: isolated sets of adapters, and the owners of their GIDs.
 *
 * A fabric is a tenant: no function finds an adapter of another fabric. A GID belongs to
 * one adapter of its fabric.
 *
 * DOC: locks of GIDs
 *
 * - The lock of a fabric protects the owners of its GIDs and its multicast groups
 *   (gid/mcast_group.h). The lock of a shard protects the GIDs at other hosts
 *   (gid/resolve.c); the hash of a fabric's name chooses the shard. So a guest delays
 *   lookups of its own fabric, and at most those of the fabrics with the same shard.
 * - The functions take the locks themselves, one at a time, for a short time, inside
 *   adapters' locks.
 * - Most lookups need none of them, see gid/dest.h.
 * - Fabrics and their adapters change only while no other thread uses the engine, so no lock
 *   protects them.
 * - No function takes another adapter's lock. An adapter that loses a GID gets the GID in
 *   its list of lost GIDs, and its own worker handles the list.
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
struct pvr_group;
struct pvr_gid_shard;
struct pvr_referrals;

#define PVR_FABRIC_BUCKETS 256
#define PVR_FABRIC_NAMES 256
#define PVR_GID_SHARDS 64
/* Moves in the time of a sweep, see rdma/qp_sweep.h: more than a host has adapters. */
#define PVR_FABRIC_MOVED 512

/* A GID that an adapter has bound. */
struct pvr_gid_node {
	LIST_ENTRY(pvr_gid_node) link;
	struct pvr_adapter *adapter;
	uint32_t bindings;
	uint8_t gid[16];
};

struct pvr_fabric {
	LIST_ENTRY(pvr_fabric) link;
	uint64_t id; /* unique in the engine, never reused */
	/*
	 * Generation of the GIDs: incremented when the location of a GID may have
	 * changed, with the lock of the location held. Read without it.
	 */
	uint64_t gid_gen;
	char name[32];
	uint64_t seed; /* of hashes */
	struct pvr_gid_shard *shard; /* has its GIDs at other hosts */
	LIST_HEAD(, pvr_adapter) adapters;
	struct pvr_lock lock; /* protects the members below */
	uint64_t moved[PVR_FABRIC_MOVED]; /* incarnations: a ring, see pvr_fabric_move_incarnation() */
	uint32_t num_moved;
	LIST_HEAD(, pvr_gid_node) gids[PVR_FABRIC_BUCKETS];
	LIST_HEAD(, pvr_group) groups[PVR_FABRIC_BUCKETS]; /* see gid/mcast_group.h */
};

/* The GIDs at other hosts, of some fabrics. */
struct pvr_gid_shard {
	struct pvr_lock lock;
	struct pvr_gid_cache *cache; /* NULL: not used yet */
	struct pvr_referrals *referrals; /* see gid/referral.h; NULL: none yet */
	uint32_t num_referring; /* adapters with referrals of their own */
	uint64_t answered_at; /* when the directory last responded to a query, ns; 0: never */
	char pad[64]; /* against false sharing with the next shard */
};

struct pvr_fabrics {
	uint64_t seed; /* of hashes; guests cannot predict it */
	/* Incremented by any thread. */
	uint64_t incarnations; /* number of the last incarnation */
	uint64_t mcast_adapters; /* number of the last pvr_mcast_adapter */
	uint64_t ids; /* id of the last fabric */
	/* Constant after the first adapter is created. NULL: no other hosts. */
	const struct pvr_gid_ops *gid_ops;
	void *gid_opaque;
	/* By the hash of the name. */
	LIST_HEAD(, pvr_fabric) names[PVR_FABRIC_NAMES];
	struct pvr_gid_shard shards[PVR_GID_SHARDS];
	uint32_t cached; /* entries of all shards */
};

static inline uint64_t pvr_fabric_gid_gen(const struct pvr_fabric *fabric)
{
	return __atomic_load_n(&fabric->gid_gen, __ATOMIC_ACQUIRE);
}

/* Return: NULL if out of memory. */
struct pvr_fabrics *pvr_fabrics_create(void);
/* All adapters must be destroyed before. @fabrics may be NULL. */
void pvr_fabrics_destroy(struct pvr_fabrics *fabrics);

/**
 * pvr_fabric_join() - add an adapter to the fabric of this name
 *
 * Creates the fabric for its first adapter.
 *
 * Return: 0, -EADDRINUSE (another adapter of the fabric has the MAC) or -ENOMEM.
 */
int pvr_fabric_join(struct pvr_engine *engine, const char *name, struct pvr_adapter *adapter);
/* Remove the adapter and its flows from its fabric; free the fabric if it is empty. */
void pvr_fabric_leave(struct pvr_adapter *adapter);

/**
 * pvr_fabric_bind() - bind a GID to an adapter
 * @loser: set to the adapter that has lost the GID to this one, or NULL; also on failure.
 *	   The caller makes that adapter's worker call pvr_gid_forget_lost()
 *
 * One adapter may bind a GID several times. An adapter takes the GID of its own MAC even
 * if another adapter has bound it.
 *
 * Return: 0, -EADDRINUSE (bound by another adapter), -EPERM (contains the MAC of another
 * adapter) or -ENOMEM.
 */
int pvr_fabric_bind(struct pvr_adapter *adapter, const uint8_t gid[16], struct pvr_adapter **loser);
void pvr_fabric_unbind(struct pvr_adapter *adapter, const uint8_t gid[16]);

/*
 * Remove one GID from the adapter's list of lost GIDs. The adapter's lock is held.
 * Return: false if the list is empty.
 */
bool pvr_fabric_take_lost(struct pvr_adapter *adapter, uint8_t gid[16]);

/*
 * An adapter begins a new incarnation at each reset: objects of the previous one never
 * come back. Return: the incarnation of the adapter that has @gid in the fabric of
 * @adapter, or 0 if none has it. Its end sets has_lost_peers of @adapter, see
 * pvr_peer_gone_check_later().
 */
uint64_t pvr_fabric_incarnation(const struct pvr_adapter *adapter, const uint8_t gid[16]);
/* Return: whether an adapter of the fabric is still in this incarnation, here or elsewhere. */
bool pvr_fabric_is_alive(const struct pvr_adapter *adapter, uint64_t incarnation);
/*
 * The incarnation of the adapter goes on at another host, and another one begins here. Return:
 * whether queue pairs of other adapters may have it as that of their peer. They forget it before
 * PVR_FABRIC_MOVED other adapters have moved.
 */
bool pvr_fabric_move_incarnation(struct pvr_adapter *adapter);
bool pvr_fabric_has_moved(const struct pvr_adapter *adapter, uint64_t incarnation);
/*
 * Begin a new incarnation of the adapter. Return: whether other adapters of the fabric
 * may have lost a peer. Then the caller notifies all workers.
 */
bool pvr_fabric_new_incarnation(struct pvr_adapter *adapter);

/* Return: the bucket of a GID in the fabric's tables. */
unsigned int pvr_fabric_bucket(const struct pvr_fabric *fabric, const uint8_t gid[16]);

/*
 * Return: the adapter that has @gid in the fabric of @adapter, or NULL. pvr_dest_get() remembers
 * the result.
 */
struct pvr_adapter *pvr_fabric_find(const struct pvr_adapter *adapter, const uint8_t gid[16]);

/*
 * The same by the name of the fabric, which need not exist, and by RoCE version;
 * @gid_type 0: any. The adapter stays valid while workers run.
 */
struct pvr_adapter *pvr_fabric_look_up(struct pvr_engine *engine, const char *fabric,
				       const uint8_t gid[16], uint8_t gid_type);

/* Return: the fabric of this name, or NULL: it has no adapter of this engine. Takes no lock. */
struct pvr_fabric *pvr_fabric_by_name(const struct pvr_engine *engine, const char *name);
/* Return: the shard of a fabric, which need not exist. */
struct pvr_gid_shard *pvr_fabric_shard(const struct pvr_engine *engine, const char *name);
/*
 * The location of a GID may have changed: increment gid_gen. The lock of the location is
 * held. The fabric need not exist.
 */
void pvr_fabric_changed(struct pvr_engine *engine, const char *fabric);

#endif /* PVR_FABRIC_H */
