/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Resolution of GIDs to other hosts. The embedder sets the locations by
 * pvr_engine_set_gid().
 *
 * DOC: changes of locations
 *
 * - The lock of the fabric's shard protects the locations (gid/fabric.h). The functions take
 *   the lock themselves.
 * - A change of a unicast GID increments gid_gen of the fabric, so queue pairs find their
 *   path again.
 * - A change resumes queue pairs that wait for an unresolved peer or for a group's
 *   members.
 */
#ifndef PVR_GID_RESOLVE_H
#define PVR_GID_RESOLVE_H

#include "gid/mcast_group.h"
#include "engine.h"

/*
 * Find the host that has @gid in the adapter's fabric, with the adapter's RoCE version.
 * Call it for GIDs that no adapter of this engine has, with the adapter's lock held. Return:
 * NULL if no host has it, or if its location is unknown; then the embedder's resolve() is
 * called.
 */
struct pvr_host *pvr_gid_find_host(struct pvr_adapter *adapter, const uint8_t gid[16]);

/*
 * Lookups that the frames of a connection may cause: PVR_GID_QUOTA at once, and one more per
 * PVR_GID_QUOTA_NS. The embedder's own limit is common to all connections and local guests.
 */
#define PVR_GID_QUOTA 64
#define PVR_GID_QUOTA_NS 10000000ull

struct pvr_gid_quota {
	uint32_t used;
	uint64_t counted; /* when @used was last reduced, ns */
};

/*
 * As pvr_gid_find_host(). @quota: as below, used under the adapter's lock. Return: AT_HOST, ABSENT
 * or UNKNOWN; *host is NULL unless AT_HOST.
 */
enum pvr_gid_state pvr_gid_resolve(struct pvr_adapter *adapter, const uint8_t gid[16],
				   struct pvr_gid_quota *quota, struct pvr_host **host);

/*
 * Check whether @host may send as @gid to the adapter with @dgid, or to a group. @quota: charged
 * for a lookup; used by one thread; initially all zero; NULL: no limit. Return: PVR_GID_AT_HOST: yes; PVR_GID_UNKNOWN: not
 * known yet, resolve() was called unless the quota is used up; else no. The GID of a local
 * adapter never belongs to a host.
 */
enum pvr_gid_state pvr_gid_check_host(struct pvr_engine *engine, const struct pvr_host *host,
				      const char *fabric, const uint8_t gid[16], uint8_t gid_type,
				      const uint8_t dgid[16], struct pvr_gid_quota *quota);

/* Return: whether the rules of the directory let @host have @gid. */
bool pvr_gid_may_have(const struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
		      const uint8_t gid[16]);
/* The same for a name, of which there may be no host. */
bool pvr_gid_name_may_have(const struct pvr_engine *engine, const char *host, const char *fabric,
			   const uint8_t gid[16]);

/*
 * @host sends as @gid, which pvr_gid_check_host() denies. Return: the other host that has it, by the
 * directory, which is told of this; NULL: none.
 */
struct pvr_host *pvr_gid_doubt(struct pvr_engine *engine, const struct pvr_host *host,
			       const char *fabric, const uint8_t gid[16],
			       struct pvr_gid_quota *quota);

/* As pvr_engine_set_gid(). *wake: set if queue pairs may wait for this location. */
int pvr_host_gid_set(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		     uint8_t gid_type, enum pvr_gid_state state, struct pvr_host *host, bool *wake);

/*
 * @host has replied that none of its adapters has @gid. Calls the embedder's moved(). Return:
 * whether a location has changed.
 */
bool pvr_gid_forget_host(struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
			 const uint8_t gid[16]);
/* The same, and asks @host for the location if it has changed. */
void pvr_gid_left_host(struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
		       const uint8_t gid[16]);

/*
 * The hosts with members of a multicast group, at most as many as copies of a datagram.
 */
struct pvr_host_group {
	uint32_t count;
	struct pvr_host *hosts[PVR_MCAST_FANOUT];
};

/* Find the hosts of a group. Return: AT_HOST (at least one host), ABSENT or UNKNOWN. */
enum pvr_gid_state pvr_mcast_hosts_find(const struct pvr_adapter *adapter, const uint8_t mgid[16],
					struct pvr_host_group *group);

/* Call the embedder's announce(), see pvr_gid_ops. The fabric's lock is held. */
void pvr_announce(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		  uint8_t gid_type, const uint8_t mac[6], bool present);

#endif /* PVR_GID_RESOLVE_H */
