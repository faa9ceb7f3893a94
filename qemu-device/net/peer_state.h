/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What peers.c, which knows all peers, and peer.c, which has the connections of each, share. */
#ifndef PVR_NET_PEER_STATE_H
#define PVR_NET_PEER_STATE_H

#include "net/state.h"
#include "net/verbs_peer.h"

#define PVR_PEER_BUCKETS 1024
#define PVR_PEER_LISTENERS 4

struct pvr_peer {
	struct pvr_peers *peers;
	LIST_ENTRY(pvr_peer) link;
	char name[PVR_REMOTE_NAME_MAX];
	struct pvr_address address;
	bool has_address;
	struct pvr_remote *remote; /* NULL: never connected */
	/* Outgoing. */
	bool dial_requested;
	uint64_t dial_requested_at; /* the last time */
	struct pvr_conn *slots[PVR_OUT_MAX]; /* dialling or up */
	uint8_t dscp[PVR_OUT_MAX]; /* of each slot */
	unsigned int classes; /* slots with a DSCP, behind the others */
	unsigned int up, dialling;
	uint64_t backoff;
	struct pvr_loop_timer retry;
	uint64_t connects, failures;
	bool failing; /* since a connection was up */
	char tls[PVR_PEER_TEXT];
	struct pvr_error error; /* of the last attempt, or of the end of a connection */
	uint64_t complained; /* when, about error */
	struct pvr_ratelimit ratelimit;
	struct pvr_verbs_peer verbs;
	/* Incoming. */
	LIST_HEAD(, pvr_conn) incoming;
	unsigned int in, in_verbs; /* connections: TCP's, queue pairs' */
	uint64_t instance, replaced; /* of its daemon; of the one before */
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
};

/* ------------------------------------------------------------------------ peers.c */

struct pvr_peer *pvr_peers_find(struct pvr_peers *peers, const char *name);
/* NULL with @err. */
struct pvr_peer *pvr_peers_find_or_add(struct pvr_peers *peers, const char *name,
				       struct pvr_error *err);
/* The first connection to it has come up, or the last one has gone: those hear it that listen. */
void pvr_peer_tell(struct pvr_peer *peer, bool up);

/* ------------------------------------------------------------------------- peer.c */

/* How many connections it is to have. */
unsigned int pvr_peer_slots(const struct pvr_peer *peer);
/* One more, for this class of traffic, if there is room for one. */
void pvr_peer_add_class(struct pvr_peer *peer, uint8_t dscp);
/* Connect to it as far as it is wanted, known where it is, and time to try. */
void pvr_peer_dial(struct pvr_peer *peer);
void pvr_peer_retry(struct pvr_loop_timer *timer);
/* What is not up is not tried any more. */
void pvr_peer_stop_dialling(struct pvr_peer *peer);
/* All that we have dialled ends. */
void pvr_peer_disconnect(struct pvr_peer *peer, const char *why);

#endif /* PVR_NET_PEER_STATE_H */
