/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The directory of many hosts, in etcd.
 *
 * DOC: what is in etcd
 *
 *	PREFIX hosts/NAME		{"address":"ADDRESS:PORT"}
 *	PREFIX gids/FABRIC/GID		{"host":"NAME","type":"v2"}
 *	PREFIX mcast/FABRIC/GID/NAME	{"host":"NAME","type":"v2"}	a member of a group
 *
 * with GIDs as 32 hexadecimal digits. All keys of a host have its lease, and go when it
 * is not kept alive. A GID's key is made only if there is none, or it is our own already:
 * who comes second is refused as long as the first is there.
 *
 * DOC: what is kept when etcd is gone
 *
 * Everything that is known. What each host has been looked up for is watched, from the
 * revision on at which it was read, and a change is looked up again. A GID whose key has
 * vanished is forgotten if its host is not connected, or does not say itself that it still
 * has it; right after an outage, or after etcd has lost its data, hosts are given time to
 * write their keys again.
 *
 * DOC: steps
 *
 * Lease, own keys, look-ups and watches each have a list of what is to be done, and a step
 * that does as much of it as is possible now. All steps are taken whenever something may
 * have become possible. What fails goes back to its list.
 */
#ifndef PVR_DIRECTORY_ETCD_H
#define PVR_DIRECTORY_ETCD_H

#include "directory/backend.h"
#include "directory/etcd_client.h"

/* What is looked up, and watched: the key of a GID or host, or the keys of a group. */
enum pvr_item_kind {
	PVR_ITEM_GID,
	PVR_ITEM_GROUP,
	PVR_ITEM_HOST,
};

enum pvr_item_lookup {
	PVR_LOOKUP_NONE,
	PVR_LOOKUP_QUEUED,
	PVR_LOOKUP_ASKED,
	PVR_LOOKUP_LATER, /* in a second */
};

struct pvr_lookup_batch;

struct pvr_etcd_item {
	enum pvr_item_kind kind;
	enum pvr_item_lookup lookup;
	bool again; /* ASKED: it has changed since */
	TAILQ_ENTRY(pvr_etcd_item) link; /* QUEUED, LATER */
	uint64_t due; /* LATER */
	struct pvr_lookup_batch *batch; /* ASKED */
	size_t index; /* in there */
	uint64_t revision; /* that it was read at */
	bool pending; /* to be watched */
	uint64_t watch_id, watch_from; /* 0: it is not watched */
	TAILQ_ENTRY(pvr_etcd_item) watch_link; /* pending */
};

TAILQ_HEAD(pvr_item_list, pvr_etcd_item);

struct pvr_etcd_entry {
	struct pvr_etcd_item item; /* first */
	uint64_t key_revision; /* of the key, when it was found last */
	/* The owner has said that it is gone: until its key changes, or some time has passed. */
	uint64_t gone_revision, gone_until;
	bool verifying; /* its key is gone, and the owner was asked */
	bool awaited; /* it was not there, but may be about to come */
};

struct pvr_etcd_host {
	struct pvr_etcd_item item; /* first */
	bool known; /* its address */
};

struct pvr_etcd_lease {
	char id[24]; /* "": none */
	unsigned int number; /* how many there have been */
	bool granting, renewing, due;
	struct pvr_loop_timer timer;
};

struct pvr_own_key;
TAILQ_HEAD(pvr_own_key_list, pvr_own_key);

struct pvr_etcd_publish {
	struct pvr_key_table table;
	struct pvr_own_key *host; /* our own hosts/NAME; NULL: we cannot be reached */
	struct pvr_own_key_list queue, later;
	struct pvr_loop_timer timer; /* of later */
	unsigned int in_flight;
};

struct pvr_etcd_lookup {
	struct pvr_item_list queue, later;
	struct pvr_loop_timer timer; /* of later */
	unsigned int in_flight;
};

struct pvr_etcd_watch {
	struct pvr_http_call *stream;
	struct pvr_item_list pending;
	struct pvr_etcd_item **slots;
	size_t num_slots, num, free_hint;
	uint64_t serial;
	size_t unconfirmed; /* watches that were asked for */
	struct pvr_loop_timer timer; /* of their confirmation */
	uint64_t events;
};

struct pvr_etcd {
	struct pvr_directory *directory;
	struct pvr_etcd_client client;
	const char *prefix;
	unsigned int ttl; /* seconds */
	struct pvr_etcd_lease lease;
	struct pvr_etcd_publish publish;
	struct pvr_etcd_lookup lookup;
	struct pvr_etcd_watch watch;
	uint64_t revision, raft_term; /* the newest seen */
	bool missed; /* it was gone for a while */
	uint64_t grace_until; /* keys that are missing may be written soon */
};

static inline struct pvr_etcd *pvr_etcd_of(struct pvr_directory *directory)
{
	return directory->backend;
}

/* etcd.c */
void pvr_etcd_step(struct pvr_etcd *etcd);
/* Look at everything again: changes may have been missed. */
void pvr_etcd_resync(struct pvr_etcd *etcd);
/* A new answer's header: etcd may have lost its data. */
void pvr_etcd_see_header(struct pvr_etcd *etcd, struct json_object *header);
/* The text of a GID's or group's key; groups': all members' keys begin with it. */
void pvr_etcd_gid_key(const struct pvr_etcd *etcd, const struct pvr_key *key,
		      char text[PVR_ETCD_KEY_MAX]);
void pvr_etcd_host_key(const struct pvr_etcd *etcd, const char *host, char text[PVR_ETCD_KEY_MAX]);
void pvr_etcd_item_key(const struct pvr_etcd *etcd, const struct pvr_etcd_item *item,
		       char text[PVR_ETCD_KEY_MAX]);
/* "key":..., and "range_end":... if it is a group's. */
void pvr_etcd_add_range(struct pvr_text *text, const struct pvr_etcd_item *item, const char *key);

/* etcd_answer.c: what a look-up has found; @kvs may be NULL: nothing */
void pvr_etcd_answer(struct pvr_etcd *etcd, struct pvr_etcd_item *item, struct json_object *kvs);
void pvr_etcd_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
void pvr_etcd_located(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host, uint8_t type);
void pvr_etcd_moved(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host);
/* {"host":NAME,"type":TYPE}. False: it is not that. */
bool pvr_etcd_parse_owner(const char *value, char host[PVR_REMOTE_NAME_MAX], uint8_t *type);

/* etcd_lease.c */
void pvr_etcd_lease_init(struct pvr_etcd *etcd);
void pvr_etcd_lease_exit(struct pvr_etcd *etcd);
void pvr_etcd_lease_step(struct pvr_etcd *etcd);
/* etcd says that there is none of this id. */
void pvr_etcd_lease_lost(struct pvr_etcd *etcd);
void pvr_etcd_lease_revoke(struct pvr_etcd *etcd);

/* etcd_publish.c */
bool pvr_etcd_publish_init(struct pvr_etcd *etcd, struct pvr_error *err);
void pvr_etcd_publish_exit(struct pvr_etcd *etcd);
void pvr_etcd_publish_step(struct pvr_etcd *etcd);
void pvr_etcd_publish_changed(struct pvr_etcd *etcd);
/* All keys are to be written with the new lease. */
void pvr_etcd_publish_all(struct pvr_etcd *etcd);
bool pvr_etcd_is_registered(const struct pvr_etcd *etcd);

/* etcd_lookup.c */
void pvr_etcd_lookup_init(struct pvr_etcd *etcd);
void pvr_etcd_lookup_exit(struct pvr_etcd *etcd);
void pvr_etcd_lookup_step(struct pvr_etcd *etcd);
/* Soon, and once more if that is under way. */
void pvr_etcd_ask(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
void pvr_etcd_ask_later(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
/* The item goes away. */
void pvr_etcd_lookup_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item);

/* etcd_watch.c */
void pvr_etcd_watch_init(struct pvr_etcd *etcd);
void pvr_etcd_watch_exit(struct pvr_etcd *etcd);
void pvr_etcd_watch_step(struct pvr_etcd *etcd);
/* It has been read, at item->revision: whatever comes behind that is asked for. */
void pvr_etcd_watch_add(struct pvr_etcd *etcd, struct pvr_etcd_item *item);
/* What it was told may not be true any more: another stream, when that is possible. */
void pvr_etcd_watch_close(struct pvr_etcd *etcd);
void pvr_etcd_watch_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item);

#endif /* PVR_DIRECTORY_ETCD_H */
