/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Peers: other hosts, where they are, and whether we are connected.
 *
 * DOC: who tells what
 *
 * A directory says at which address a host of a name is (pvr_peers_set()), and when
 * somebody wants to talk to it (pvr_peers_dial()). From then on it is dialled, again and
 * again with pauses of up to a second, until it is up; once up it stays so until nothing
 * but keep-alive has travelled for a while. A connection that breaks is made anew at
 * once. The --peer options are a directory of their own, whose hosts are wanted from the
 * beginning.
 *
 * Hosts that dial us need not be known here: what they may do with which GID is asked
 * from the directory by the engine.
 *
 * Context: all of this, and the callbacks, belong to the first thread (daemon/worker_pool.h).
 * Others ask it by its work queue (base/workq.h), as resolve() of pvr_net_ops must.
 */
#ifndef PVR_NET_PEER_H
#define PVR_NET_PEER_H

#include "base/error.h"
#include "pipe.h"

#define PVR_PEERS_MAX 16384
#define PVR_PEER_TEXT 160

struct pvr_peers;

/* What somebody else wants to hear of. */
struct pvr_peers_ops {
	/* The first connection to it has come up, or the last one has gone. */
	void (*changed)(void *opaque, const char *name, struct pvr_remote *remote, bool up);
};

/* One that listens; up to four do. False: there is no more room. */
bool pvr_peers_listen(struct pvr_peers *peers, const struct pvr_peers_ops *ops, void *opaque);

/*
 * The host @name is at @address: "192.0.2.1", "192.0.2.1:7471", "[2001:db8::1]:7471";
 * numbers only, as looking names up would take time. If it was elsewhere before, its
 * connections are made anew. False with @err filled: bad name or address, our own name,
 * more than PVR_PEERS_MAX, or no TLS key for a host that needs one.
 */
bool pvr_peers_set(struct pvr_peers *peers, const char *name, const char *address,
		   struct pvr_error *err);
/* Would pvr_peers_set() do? It is not done. */
bool pvr_peers_check(struct pvr_peers *peers, const char *name, const char *address,
		     struct pvr_error *err);
/* Nobody knows where it is: its connections stay as long as they last, and no more. */
void pvr_peers_forget(struct pvr_peers *peers, const char *name);

/* Connect to it unless that is so. False: it was never set, or has been forgotten. */
bool pvr_peers_dial(struct pvr_peers *peers, const char *name);

/* Its name in the engine, known to be a peer or not. NULL: no memory, or a bad name. */
struct pvr_remote *pvr_peers_remote(struct pvr_peers *peers, const char *name);

/*
 * Ask it by a connection that is up whether it has the GID: located() of pvr_net_ops
 * brings the answer. False: there is none; then it is wanted from now on, and changed()
 * tells when to ask again.
 */
bool pvr_peers_where(struct pvr_peers *peers, const char *name, const char *fabric,
		     const uint8_t gid[16]);

enum pvr_peer_state {
	PVR_PEER_IDLE, /* nobody wants it */
	PVR_PEER_CONNECTING,
	PVR_PEER_UP, /* at least one outgoing connection is */
	PVR_PEER_UNREACHABLE, /* the last attempt has failed; another will be made */
};

/* For people. Strings are valid during the callback only. */
struct pvr_peer_info {
	const char *name;
	const char *address; /* "": it has dialled us, or was forgotten */
	enum pvr_peer_state state;
	struct pvr_remote *remote;
	unsigned int out, in; /* connections that are up: that we, that it has dialled */
	const char *device; /* the RDMA NIC by which we reach it; NULL: none */
	unsigned int verbs_in; /* queue pairs by which it reaches us */
	const char *verbs_error; /* why there is no such NIC */
	bool lends; /* payload to it, by that NIC */
	const char *lend_error; /* why not; or why some was copied all the same */
	unsigned int wanted; /* how many there are to be */
	const char *tls; /* "off", or how it is protected and proved */
	const char *error; /* of the last attempt that failed, "": none */
	uint64_t connects, failures; /* outgoing connections made, attempts that failed */
};

bool pvr_peers_is_up(struct pvr_peers *peers, const char *name);
const char *pvr_peer_state_name(enum pvr_peer_state state);
void pvr_peers_for_each(struct pvr_peers *peers,
			void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque);

#endif /* PVR_NET_PEER_H */
