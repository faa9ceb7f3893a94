/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A key that this host writes: its address, a GID, or a membership of a group. */
#ifndef PVR_DIRECTORY_ETCD_OWN_KEY_H
#define PVR_DIRECTORY_ETCD_OWN_KEY_H

#include "directory/etcd.h"

/* Entries of the index that lead to no claim, as parts of a transaction. */
struct pvr_strays {
	struct pvr_text claims, entries;
};

struct pvr_own_key {
	struct pvr_key_node node; /* unused for hosts/NAME/address */
	struct pvr_etcd *etcd;
	bool is_host;
	uint8_t type; /* wanted type; 0: to be deleted */
	uint8_t put_type; /* type that was or may have been written; 0: none */
	bool busy; /* a transaction is in progress */
	bool written; /* as far as is known */
	unsigned int put_after; /* the audit that was sent last before the put was answered */
	uint64_t sent; /* busy: the newest revision before */
	unsigned int lease; /* number of the lease that it was written with */
	uint64_t expect; /* hosts/NAME/address: mod_revision; 0: no key */
	bool changed; /* busy: check it again afterwards */
	bool refused; /* another host has it */
	char (*rivals)[PVR_HOST_NAME_MAX]; /* other hosts in the index, to be checked */
	size_t num_rivals;
	size_t num_older; /* of these, before this host's in the index */
	struct pvr_strays strays;
	bool unread; /* the index has to be read again */
	enum { OWN_NOWHERE, OWN_QUEUED, OWN_LATER } list;
	uint64_t due; /* LATER */
	TAILQ_ENTRY(pvr_own_key) link;
};

/* Return: whether the key is as it should be, with the current lease. */
bool pvr_own_key_is_written(const struct pvr_own_key *own);
/* Formats the key of the address, or of the entry in the index or in the group. */
void pvr_own_key_text(const struct pvr_own_key *own, char text[PVR_ETCD_KEY_MAX]);
/* Formats the key of the claim. Return: false if there is none besides. */
bool pvr_own_key_claim(const struct pvr_own_key *own, char text[PVR_ETCD_KEY_MAX]);
/* etcd does not have it any more: it is written again. */
void pvr_own_key_lost(struct pvr_own_key *own);

/* --------------------------------------------------- etcd_publish.c, for etcd_rivals.c */

/* Return: whether nothing is left to do. */
bool pvr_own_key_is_done(const struct pvr_own_key *own);
/* Queues it, or after the transaction in progress; in a second. */
void pvr_own_key_enqueue(struct pvr_own_key *own);
void pvr_own_key_later(struct pvr_own_key *own);
/* The transaction in progress has ended. */
void pvr_own_key_finish(struct pvr_own_key *own, enum pvr_etcd_result result,
			struct json_object *reply);
void pvr_own_key_log_refusal(struct pvr_own_key *own, struct json_object *reply);
/* @owner has it; no other host has it. */
void pvr_own_key_refuse(struct pvr_own_key *own, const char *owner);
void pvr_own_key_is_ours(struct pvr_own_key *own);
/* Adds a read of a key or prefix. */
void pvr_own_key_add_read(struct pvr_text *body, const char *key);

/* ------------------------------------------------------------------- etcd_rivals.c */

#define PVR_RIVALS_MAX 32 /* entries of the index that are read and checked at a time */

static inline bool pvr_rivals_any(const struct pvr_own_key *own)
{
	return own->num_rivals || own->strays.entries.len;
}

/* Takes them from the index, the oldest first, as far as it was read. */
void pvr_rivals_find(struct pvr_own_key *own, struct json_object *kvs);
/* Begins the next transaction; there are any. Return: false if no call is possible now. */
bool pvr_rivals_check(struct pvr_own_key *own);
void pvr_rivals_drop(struct pvr_own_key *own);

#endif /* PVR_DIRECTORY_ETCD_OWN_KEY_H */
