/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which other daemon has which GID: what the embedder has said, see pvr_engine_set_gid().
 *
 * Under the fabrics' lock, which the functions take themselves. A change makes the
 * GID generation of the fabric of that name another one, so that queue pairs look again, and
 * wakes those that wait for a peer that was not found, or for a group's members.
 */
#ifndef PVR_GID_RESOLVE_H
#define PVR_GID_RESOLVE_H

#include "gid/mcast_group.h"
#include "engine.h"

/*
 * Who has @gid, of the adapter's own RoCE version, in its fabric; NULL if that is not
 * known, and then the embedder is asked, or if nobody has it. For GIDs that
 * pvr_fabric_find() does not find.
 */
struct pvr_host *pvr_gid_find_host(const struct pvr_adapter *adapter, const uint8_t gid[16]);
/* The same. Return: REMOTE, NOWHERE or UNKNOWN; *remote is NULL but with the first. */
enum pvr_gid_state pvr_gid_resolve(const struct pvr_adapter *adapter, const uint8_t gid[16],
				   struct pvr_host **host);

/*
 * May @host speak for @gid? PVR_GID_AT_HOST: yes; PVR_GID_UNKNOWN: not known yet, the
 * embedder has been asked; else no. A GID of a local adapter is never a host's.
 */
enum pvr_gid_state pvr_gid_check_host(struct pvr_engine *engine, const struct pvr_host *host,
				      const char *fabric, const uint8_t gid[16], uint8_t gid_type);

/* As pvr_engine_set_gid(). @wake: queue pairs may have waited for this. */
int pvr_host_gid_set(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		     uint8_t gid_type, enum pvr_gid_state state, struct pvr_host *host, bool *wake);

/* @host has answered that no adapter there has @gid: the embedder gets to know. */
void pvr_gid_left_host(struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
		       const uint8_t gid[16]);

/* Those with members of a multicast group; no more than the copies that a datagram may make. */
struct pvr_host_group {
	uint32_t count;
	struct pvr_host *hosts[PVR_MCAST_FANOUT];
};

/* Return: REMOTE, NOWHERE or UNKNOWN; with the first there is one at least. */
enum pvr_gid_state pvr_mcast_hosts_find(const struct pvr_adapter *adapter, const uint8_t mgid[16],
					struct pvr_host_group *group);

/* To the embedder: a GID, or membership in a group, has come or gone. The lock is held. */
void pvr_announce(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		  uint8_t gid_type, const uint8_t mac[6], bool present);

#endif /* PVR_GID_RESOLVE_H */
