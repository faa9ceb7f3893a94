/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared by peers.c, the table of peers, and peer.c, the connections of one peer. */
#ifndef PVR_NET_PEER_STATE_H
#define PVR_NET_PEER_STATE_H

#include "net/state.h"
#include "net/verbs_peer.h"

#define PVR_PEER_BUCKETS 1024
#define PVR_PEER_LISTENERS 4

struct pvr_peer {
	struct pvr_peers *peers;
	LIST_ENTRY(pvr_peer) link;
	char name[PVR_HOST_NAME_MAX];
	struct pvr_address address;
	bool has_address;
	struct pvr_host *host; /* NULL: never connected */
	/* Outgoing connections. */
	bool dial_requested;
	uint64_t dial_requested_at; /* time of the last request */
	struct pvr_conn *slots[PVR_REQ_CONN_MAX]; /* dialling or up */
	uint8_t dscp[PVR_REQ_CONN_MAX]; /* of each slot */
	unsigned int classes; /* slots with a DSCP, behind the slots without */
	unsigned int up, dialling;
	uint64_t backoff;
	struct pvr_loop_timer retry;
	bool waits; /* for its turn */
	TAILQ_ENTRY(pvr_peer) turn_link;
	uint64_t connects, failures;
	bool failing; /* no attempt has succeeded since the last connection */
	char tls[PVR_PEER_TEXT];
	struct pvr_error error; /* of the last attempt, or why the last connection ended */
	uint64_t complained; /* when error was last logged */
	struct pvr_ratelimit ratelimit;
	struct pvr_verbs_peer verbs;
	/* Incoming connections. */
	LIST_HEAD(, pvr_conn) incoming;
	unsigned int in, in_verbs; /* connections that are up: TCP, queue pairs */
	uint64_t instance, replaced; /* of the peer's daemon; of the daemon before */
	unsigned int admitted; /* incoming connections that await the answer to HELLO */
};

struct pvr_peers {
	struct pvr_net *net;
	LIST_HEAD(peer_bucket, pvr_peer) buckets[PVR_PEER_BUCKETS];
	size_t num;
	struct {
		const struct pvr_peers_ops *ops;
		void *opaque;
	} listeners[PVR_PEER_LISTENERS];
	size_t num_listeners;
	uint64_t random;
	/* The rate of attempts, see may_dial(). */
	unsigned int attempts; /* of this period */
	uint64_t period; /* its begin */
	TAILQ_HEAD(, pvr_peer) waiting; /* for the next period */
	struct pvr_loop_timer turn; /* armed while there are any */
};

/* ------------------------------------------------------------------------ peers.c */

struct pvr_peer *pvr_peers_find(struct pvr_peers *peers, const char *name);
/* Return: NULL with @err filled. */
struct pvr_peer *pvr_peers_find_or_add(struct pvr_peers *peers, const char *name,
				       struct pvr_error *err);
/* Reports the first connection or the end of the last one to all listeners. */
void pvr_peer_notify(struct pvr_peer *peer, bool up);

/* ------------------------------------------------------------------------- peer.c */

/* Return: the number of outgoing connections to have. */
unsigned int pvr_peer_slots(const struct pvr_peer *peer);
/* Adds a slot for this DSCP if there is a free one. */
void pvr_peer_add_class(struct pvr_peer *peer, uint8_t dscp);
/*
 * Dials free slots if a connection is requested, the address is set, and no backoff is
 * active.
 */
void pvr_peer_dial(struct pvr_peer *peer);
void pvr_peer_retry(struct pvr_loop_timer *timer);
void pvr_peers_turn(struct pvr_loop_timer *timer);
/* Destroys connections whose handshake is not done. */
void pvr_peer_stop_dialling(struct pvr_peer *peer);
/* Closes all outgoing connections. */
void pvr_peer_disconnect(struct pvr_peer *peer, const char *why);

#endif /* PVR_NET_PEER_STATE_H */
