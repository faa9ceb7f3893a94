/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The etcd backend, for many hosts.
 *
 * DOC: keys in etcd
 *
 *	PREFIX hosts/NAME/address		{"address":"ADDRESS:PORT"}
 *	PREFIX hosts/NAME/gids/FABRIC/GID	{"type":"v2"}	the claim of host NAME
 *	PREFIX gids/FABRIC/GID/NAME		{"type":"v2"}	index: NAME may have a claim
 *	PREFIX mcast/FABRIC/GID/NAME		{"type":"v2"}	a member of a group
 *	PREFIX moves/FABRIC/HASH		{"host":"NAME","load":"N"}	NAME has started a state
 *
 * GIDs are 32 hexadecimal digits. All keys of a host but the last kind are attached to its lease
 * and disappear when the lease expires.
 *
 * DOC: claims of states
 *
 * A host that starts an adapter with the state of another host puts a key unless it exists. The
 * host in its value has won, with the load of this number: another load of the same host comes after
 * the adapter has run. A source whose VM runs on puts the key, too. HASH is the SHA-256 of the state's token, 64 hexadecimal digits: the
 * key does not disclose the token, and no one without it can put the key before. Each key has a
 * lease of its own, which no one renews. It must outlive the host: a second host that starts the
 * state of a source and of a destination which both are dead would repeat what the destination has
 * done.
 *
 * DOC: the owner of a GID
 *
 * etcd grants rights for prefixes. So each host can have a role for its own prefix
 * hosts/NAME/, and only the host itself can write or delete its claims. The index makes a
 * look-up independent of the number of hosts, but all hosts of the fabric can write it.
 * So an entry of the index is only a hint: the claims that it leads to are read, too. The
 * GID belongs to the host with the oldest claim. A younger claim is refused and logged at
 * both ends, until the older one is withdrawn: so an adapter can move. The known owner's
 * claim is read even if the index does not have it. So a host that deletes index entries
 * cannot move a GID that is in use.
 *
 * DOC: outage of etcd
 *
 * The whole cache stays in use. Each key that was read is watched from its revision on, and read again
 * after a change. A GID whose key has disappeared is dropped if its owner is not
 * connected, or does not confirm that it still has it. After an outage or a data loss of
 * etcd, hosts get time to write their keys again.
 *
 * During the outage adapters can move: the engine asks the hosts that they have left, see
 * gid/referral.h. What they say ends with the result of the look-up. So a GID that was unknown
 * when etcd responds again is not reported as absent while its host may still write the key. The
 * addresses that such hosts tell are used for hosts without an address. They are forgotten when
 * etcd responds, as are those of hosts that no GID needs any more.
 *
 * DOC: steps
 *
 * Lease, own keys, claims, look-ups and watches each have a list of pending work and a step
 * function that does as much of it as is possible. All steps run whenever more may have
 * become possible. Failed work returns to its list.
 */
#ifndef PVR_DIRECTORY_ETCD_H
#define PVR_DIRECTORY_ETCD_H

#include "directory/backend.h"
#include "directory/etcd_client.h"

/*
 * An item that is looked up and watched: the key of a GID or host, or the keys of a
 * group.
 */
/* Claims that are compared; others are younger, or later in the index. */
#define PVR_ETCD_CLAIMS_MAX 8

enum pvr_item_kind {
	PVR_ITEM_GID,
	PVR_ITEM_GROUP,
	PVR_ITEM_HOST,
};

enum pvr_item_lookup {
	PVR_LOOKUP_NONE,
	PVR_LOOKUP_QUEUED,
	PVR_LOOKUP_ASKED,
	PVR_LOOKUP_LATER, /* retried in one second */
};

struct pvr_lookup_batch;

struct pvr_etcd_item {
	enum pvr_item_kind kind;
	enum pvr_item_lookup lookup;
	bool again; /* it has changed since it was read */
	bool confirming; /* a GID: the index was read, and the next look-up reads claims */
	TAILQ_ENTRY(pvr_etcd_item) link; /* QUEUED, LATER */
	uint64_t due; /* LATER */
	struct pvr_lookup_batch *batch; /* ASKED */
	size_t index; /* in batch */
	uint64_t revision; /* revision of the last read */
	bool pending; /* waits for a watch */
	uint64_t watch_id, watch_from; /* 0: no watch */
	TAILQ_ENTRY(pvr_etcd_item) watch_link; /* pending */
};

TAILQ_HEAD(pvr_item_list, pvr_etcd_item);

struct pvr_etcd_entry {
	struct pvr_etcd_item item; /* first */
	/* Hosts whose claims are read; each holds a reference. */
	struct pvr_dir_host *claimants[PVR_ETCD_CLAIMS_MAX + 1];
	size_t num_claimants;
	uint64_t key_revision; /* mod_revision of the owner's claim when it was last read */
	/*
	 * The owner reported the GID as lost: ignore its claim until it changes or the time
	 * has passed.
	 */
	uint64_t gone_revision, gone_until;
	bool verifying; /* its key is gone, and the owner was queried */
	bool awaited; /* no key yet, but one may follow soon */
	bool uncertain; /* it was unknown when etcd responded again: see grace_until */
};

struct pvr_etcd_host {
	struct pvr_etcd_item item; /* first */
	bool known; /* whether its address is known */
};

struct pvr_etcd_lease {
	char id[24]; /* "": none */
	unsigned int number; /* number of leases so far */
	bool granting, renewing, due;
	struct pvr_loop_timer timer;
};

struct pvr_own_key;
TAILQ_HEAD(pvr_own_key_list, pvr_own_key);

/* GIDs of a transaction: three operations each, of the 128 that etcd takes by default. */
#define PVR_ETCD_PUTS_MAX 32u

struct pvr_etcd_publish {
	struct pvr_key_table table;
	struct pvr_own_key *host; /* this host's hosts/NAME; NULL: not reachable */
	struct pvr_own_key_list queue, later;
	struct pvr_loop_timer timer; /* for LATER */
	unsigned int in_flight; /* keys in transactions */
	struct pvr_own_key *puts[PVR_ETCD_PUTS_MAX]; /* GIDs that one transaction writes now */
	size_t num_puts; /* 0: none does */
	size_t max_puts; /* of the next one */
};

struct pvr_etcd_audit {
	struct pvr_loop_timer timer;
	bool due, busy;
	size_t bucket, skip; /* position in the table of own keys */
	size_t left; /* keys to be checked without a pause */
	unsigned int sent; /* audits so far, modulo 2^32 */
};

struct pvr_etcd_claim;

struct pvr_etcd_claims {
	TAILQ_HEAD(, pvr_etcd_claim) list; /* without a result, one per adapter */
	struct pvr_loop_timer timer;
};

struct pvr_etcd_lookup {
	struct pvr_item_list queue, later;
	struct pvr_loop_timer timer; /* for LATER */
	unsigned int in_flight;
};

struct pvr_etcd_watch {
	struct pvr_http_call *stream;
	struct pvr_item_list pending;
	struct pvr_etcd_item **slots;
	size_t num_slots, num, free_hint;
	uint64_t serial;
	size_t unconfirmed; /* watches requested and not confirmed */
	struct pvr_loop_timer timer; /* for their confirmation */
	struct pvr_loop_timer retry; /* after a refusal; armed: no stream is opened */
	uint64_t refused_at, pause;
	uint64_t events;
};

#define PVR_ETCD_KEPT 256

/*
 * Hosts whose addresses stay in use although no look-up needs them: a ring. A host that nothing
 * needs any more stays until etcd has responded to a renewal of the lease that was sent since. Until
 * then it may be needed again, while etcd does not respond.
 */
struct pvr_etcd_kept {
	struct pvr_etcd_kept_host {
		char name[PVR_HOST_NAME_MAX]; /* "": none */
		bool gone; /* nothing needs it */
	} hosts[PVR_ETCD_KEPT];
	size_t next, renewed; /* renewed: next, when the lease was renewed last */
	struct pvr_ratelimit refusals; /* of log lines about addresses that hosts tell */
};

struct pvr_etcd {
	struct pvr_directory *directory;
	struct pvr_etcd_client client;
	const char *prefix;
	unsigned int ttl; /* in seconds */
	struct pvr_etcd_lease lease;
	struct pvr_etcd_publish publish;
	struct pvr_etcd_audit audit;
	struct pvr_etcd_claims claims;
	struct pvr_etcd_lookup lookup;
	struct pvr_etcd_watch watch;
	uint64_t revision, raft_term, cluster_id; /* newest seen */
	struct pvr_etcd_kept kept;
	bool missed; /* etcd was unreachable for a while */
	uint64_t grace_until; /* until then, missing keys may still be written */
};

static inline struct pvr_etcd *pvr_etcd_of(struct pvr_directory *directory)
{
	return directory->backend;
}

/* ------------------------------------------------------------------- etcd.c */
void pvr_etcd_step(struct pvr_etcd *etcd);
/* Reads all keys again: changes may have been missed. */
void pvr_etcd_resync(struct pvr_etcd *etcd);
/* Forgets each host that nothing needs, and that was kept when etcd->kept.next was @before. */
void pvr_etcd_forget_gone(struct pvr_etcd *etcd, size_t before);
/*
 * Checks the header of a response for a loss of etcd's data. @sent: etcd->revision when
 * the call was sent.
 */
void pvr_etcd_see_header(struct pvr_etcd *etcd, struct json_object *header, uint64_t sent);
/* Formats the prefix of a GID's index entries, or of a group's member keys. */
void pvr_etcd_index_prefix(const struct pvr_etcd *etcd, const struct pvr_key *key,
			   char text[PVR_ETCD_KEY_MAX]);
void pvr_etcd_claim_key(const struct pvr_etcd *etcd, const char *host, const struct pvr_key *key,
			char text[PVR_ETCD_KEY_MAX]);
void pvr_etcd_host_key(const struct pvr_etcd *etcd, const char *host, char text[PVR_ETCD_KEY_MAX]);
void pvr_etcd_item_key(const struct pvr_etcd *etcd, const struct pvr_etcd_item *item,
		       char text[PVR_ETCD_KEY_MAX]);
/* Adds "key":..., and "range_end":... if @key is a prefix, which ends with '/'. */
void pvr_etcd_add_range(struct pvr_text *text, const char *key);
/* Return: the keys of the @i-th response of a transaction, or NULL without any. */
struct json_object *pvr_etcd_kvs(struct json_object *responses, size_t i);
/* Reads the name of the host behind the last '/' of the key. Return: false without one. */
bool pvr_etcd_key_host(struct json_object *kv, char host[PVR_HOST_NAME_MAX]);

/* etcd_answer.c: result of a look-up, in the responses from @first on. */
void pvr_etcd_answer(struct pvr_etcd *etcd, struct pvr_etcd_item *item,
		     struct json_object *responses, size_t first);
/* Adds the read operations of a look-up behind @num others. Return: their number. */
size_t pvr_etcd_add_reads(const struct pvr_etcd *etcd, const struct pvr_etcd_item *item,
			  struct pvr_text *body, size_t num);
size_t pvr_etcd_num_reads(const struct pvr_etcd_item *item);
/* The entry is about to be freed. */
void pvr_etcd_drop_claimants(struct pvr_etcd *etcd, struct pvr_entry *entry);
void pvr_etcd_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
void pvr_etcd_located(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host, uint8_t type);
/* Its address is looked up, as that of an owner. */
void pvr_etcd_host_needed(struct pvr_directory *directory, struct pvr_dir_host *host);
void pvr_etcd_moved(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host);

/* ------------------------------------------------------------- etcd_lease.c */
void pvr_etcd_lease_init(struct pvr_etcd *etcd);
void pvr_etcd_lease_exit(struct pvr_etcd *etcd);
void pvr_etcd_lease_step(struct pvr_etcd *etcd);
/* Takes a new lease in the next step, and writes all keys with it. What has the old one ends with it. */
void pvr_etcd_lease_leave(struct pvr_etcd *etcd);
/* etcd reports that the lease does not exist. */
void pvr_etcd_lease_lost(struct pvr_etcd *etcd);
void pvr_etcd_lease_revoke(struct pvr_etcd *etcd);

/* ----------------------------------------------------------- etcd_publish.c */
bool pvr_etcd_publish_init(struct pvr_etcd *etcd, struct pvr_error *err);
void pvr_etcd_publish_exit(struct pvr_etcd *etcd);
void pvr_etcd_publish_step(struct pvr_etcd *etcd);
void pvr_etcd_publish_changed(struct pvr_etcd *etcd);
/* Writes all keys again with the new lease. */
void pvr_etcd_publish_all(struct pvr_etcd *etcd);
bool pvr_etcd_is_registered(const struct pvr_etcd *etcd);

/* ------------------------------------------------------------- etcd_audit.c */
void pvr_etcd_audit_init(struct pvr_etcd *etcd);
void pvr_etcd_audit_exit(struct pvr_etcd *etcd);
void pvr_etcd_audit_step(struct pvr_etcd *etcd);
/* Checks all keys in the next steps. */
void pvr_etcd_audit_all(struct pvr_etcd *etcd);

/* ------------------------------------------------------------- etcd_claim.c */
void pvr_etcd_claim_init(struct pvr_etcd *etcd);
/* Call it after the end of the client. */
void pvr_etcd_claim_exit(struct pvr_etcd *etcd);
void pvr_etcd_claim_step(struct pvr_etcd *etcd);
/* Takes new claims from the queue. */
void pvr_etcd_claims_changed(struct pvr_directory *directory);

/* ------------------------------------------------------------ etcd_lookup.c */
void pvr_etcd_lookup_init(struct pvr_etcd *etcd);
void pvr_etcd_lookup_exit(struct pvr_etcd *etcd);
void pvr_etcd_lookup_step(struct pvr_etcd *etcd);
/* Queues a look-up; if one is in progress, it is repeated afterwards. */
void pvr_etcd_request(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
void pvr_etcd_request_later(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
/* The item is about to be freed. */
void pvr_etcd_lookup_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item);

/* ------------------------------------------------------------- etcd_watch.c */
void pvr_etcd_watch_init(struct pvr_etcd *etcd);
void pvr_etcd_watch_exit(struct pvr_etcd *etcd);
void pvr_etcd_watch_step(struct pvr_etcd *etcd);
/* The item was read at item->revision: watch it from the next revision on. */
void pvr_etcd_watch_add(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
/* Closes the stream, whose events may be wrong; a new one is opened when possible. */
void pvr_etcd_watch_close(struct pvr_etcd *etcd);
void pvr_etcd_watch_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item);

#endif /* PVR_DIRECTORY_ETCD_H */
