/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Referrals: locations of GIDs that other hosts know and the directory does not.
 *
 * DOC: referrals
 *
 * A guide is a host that is asked for a GID by GID_QUERY. It has the GID, or refers to the host
 * that has it.
 *
 *	guide				to					for
 *	a host that has lost a GID	this GID				all adapters
 *	the source of an adapter	GIDs of unknown location, of its peers	this adapter
 *
 * - A guide is believed only for the adapters of the table, and only if the rules of the
 *   directory let the other host have the GID. So a host can give away what it has, and mislead an
 *   adapter that it has had itself.
 * - A guide that knows no location stays the guide: the adapter can be between two hosts.
 * - A referral is used while the directory does not know the location. Each location or absence
 *   that the directory reports ends it, and so does the reset of the adapter.
 * - An adapter that binds the GID ends the referral of its host. New rules end all referrals.
 * - The source is the guide until the directory responds to the first query in the fabric.
 * - The host of a referral is the guide from then on: an adapter can move repeatedly.
 * - A guide that knows a guide only, refers to that one.
 * - The lock of the fabric's shard protects them.
 */
#ifndef PVR_REFERRAL_H
#define PVR_REFERRAL_H

#include "gid/gid_cache.h"
#include "gid/resolve.h"

#define PVR_REFERRALS_MAX 8192 /* of an adapter, and of all fabrics of a shard */

struct pvr_adapter;
struct pvr_gid_shard;

struct pvr_referrals {
	struct pvr_gid_cache
		*cache; /* gid_type 0: the host does not have the GID, but is its guide */
	uint32_t count;
	struct pvr_host *source; /* of the adapter; NULL: none */
	struct pvr_gid_quota queries; /* of the adapter */
};

/* ---------------------------------------- with the shard's lock; @adapter: may be NULL */

/* Return: the host with the GID and RoCE version of @key, or NULL. */
struct pvr_host *pvr_referral_find(const struct pvr_gid_shard *shard,
				   const struct pvr_adapter *adapter,
				   const struct pvr_gid_key *key);
/* Return: the guide to @key, or NULL. */
struct pvr_host *pvr_referral_guide(const struct pvr_gid_shard *shard,
				    const struct pvr_adapter *adapter,
				    const struct pvr_gid_key *key);
/* As pvr_gid_cache_query(), for a query to a guide of an adapter. */
bool pvr_referral_query(struct pvr_engine *engine, struct pvr_referrals *referrals,
			const struct pvr_gid_key *key, uint64_t now, uint64_t ns);
/*
 * @host has lost the GID. @known: the directory had located it there. Return: whether a location
 * has changed.
 */
bool pvr_referral_lost(struct pvr_engine *engine, struct pvr_gid_shard *shard,
		       const struct pvr_gid_key *key, struct pvr_host *host, bool known);
/*
 * The directory has reported the GID. @asked: in response to a query, so sources are not needed any
 * more. Return: whether there was a referral.
 */
bool pvr_referral_drop(struct pvr_engine *engine, struct pvr_gid_shard *shard,
		       const struct pvr_gid_key *key, bool asked);

/* -------------------------------------------------------- these take the lock themselves */

/* @host has taken the GID from an adapter here. */
void pvr_referral_set(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		      uint8_t gid_type, struct pvr_host *host);
/*
 * No effect if the directory has responded to a query after @since, ns. The adapter's lock is held,
 * in the next three, too.
 */
void pvr_referral_set_source(struct pvr_adapter *adapter, struct pvr_host *source, uint64_t since);
/* The adapter has bound the GID, so no other host has it, even if the directory has said so. */
void pvr_referral_bound(struct pvr_adapter *adapter, const uint8_t gid[16]);
void pvr_referrals_forget(struct pvr_adapter *adapter);
/* The same for all adapters and fabrics. Context: that of pvr_engine_set_gid(). */
void pvr_referrals_forget_all(struct pvr_engine *engine);
/*
 * @from responds that @to has the GID. @to: @from itself; NULL: @from has no such GID, and refers to
 * no other host. Return: whether a location has changed.
 */
bool pvr_referral_answered(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			   uint8_t gid_type, struct pvr_host *from, struct pvr_host *to);
/* Return: whether pvr_referral_answered() would believe @from. */
bool pvr_referral_believes(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			   const struct pvr_host *from);
/*
 * Find the host that another one is referred to, by the directory or by a referral.
 * *gid_type is set; 0: the host is a guide. Return: NULL: unknown.
 */
struct pvr_host *pvr_referral_to(struct pvr_engine *engine, const char *fabric,
				 const uint8_t gid[16], uint8_t *gid_type);

void pvr_referrals_free(struct pvr_referrals *referrals); /* NULL is allowed */

#endif /* PVR_REFERRAL_H */
