/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Peers: other hosts, their addresses and connections.
 *
 * DOC: sources of addresses and requests
 *
 * A directory sets the address of each host (pvr_peers_set()) and requests connections
 * (pvr_peers_dial()). After a request the host is dialled, with pauses of up to one
 * second, until it is up. It stays up until only keep-alive frames have been sent for the
 * idle timeout. A broken connection is dialled again at once. The --peer options act as a
 * directory whose hosts are dialled from the start.
 *
 * Incoming connections are accepted from any authenticated host: the engine queries the
 * directory for the rights of a host to a GID.
 *
 * Context: the first thread (daemon/worker_pool.h), callbacks included. Other threads use
 * its work queue (base/workq.h), as resolve() of pvr_host_ops must.
 */
#ifndef PVR_NET_PEER_H
#define PVR_NET_PEER_H

#include "base/error.h"
#include "pipe.h"

#define PVR_PEERS_MAX 16384
#define PVR_PEER_TEXT 160

struct pvr_peers;

/* Events of peers. */
struct pvr_peers_ops {
	/* The first connection to the host is up, or the last one is down. */
	void (*changed)(void *opaque, const char *name, struct pvr_host *host, bool up);
};

/* Registers a listener, at most four. Return: false if there are four already. */
bool pvr_peers_listen(struct pvr_peers *peers, const struct pvr_peers_ops *ops, void *opaque);

/*
 * Sets the address of @name: "192.0.2.1", "192.0.2.1:7471" or "[2001:db8::1]:7471". Host
 * names are refused, because their resolution blocks. If the address differs from the
 * earlier one, all connections are dialled again. Return: false with @err filled if the
 * name or address is invalid or this host's own, there are PVR_PEERS_MAX peers, or no TLS
 * key for the host.
 */
bool pvr_peers_set(struct pvr_peers *peers, const char *name, const char *address,
		   struct pvr_error *err);
/* Checks the arguments as pvr_peers_set() does; changes nothing. */
bool pvr_peers_check(struct pvr_peers *peers, const char *name, const char *address,
		     struct pvr_error *err);
/*
 * The address is unknown from now on: existing connections stay up, but are not dialled
 * again.
 */
void pvr_peer_gone_unwatch(struct pvr_peers *peers, const char *name);

/* Requests a connection. Return: false if the address was never set or is forgotten. */
bool pvr_peers_dial(struct pvr_peers *peers, const char *name);

/*
 * Return: the engine's object, also for a host that is no peer yet; NULL without memory or
 * for an invalid name.
 */
struct pvr_host *pvr_peers_host_of(struct pvr_peers *peers, const char *name);

/*
 * Sends GID_QUERY to the host: whether it has the GID; the answer arrives by located() of
 * pvr_host_ops. Return: false if no connection is up. Then one is requested, and changed()
 * reports when it is.
 */
bool pvr_peer_gone_where(struct pvr_peers *peers, const char *name, const char *fabric,
			 const uint8_t gid[16]);

enum pvr_peer_state {
	PVR_PEER_IDLE, /* no connection is requested */
	PVR_PEER_CONNECTING,
	PVR_PEER_UP, /* at least one outgoing connection is up */
	PVR_PEER_UNREACHABLE, /* the last attempt has failed; another follows */
};

/* For pvrdmactl. Strings are valid during the callback only. */
struct pvr_peer_info {
	const char *name;
	const char *address; /* "": unknown */
	enum pvr_peer_state state;
	struct pvr_host *host;
	unsigned int conns_out, conns_in; /* connections that are up: outgoing, incoming */
	const char *device; /* RDMA NIC of the outgoing queue pair; NULL: none */
	unsigned int verbs_in; /* incoming queue pairs */
	const char *verbs_error; /* why there is no outgoing queue pair */
	bool zerocopy; /* payload is exposed to the peer's NIC */
	const char *zerocopy_error; /* why not, or why some payload was copied */
	unsigned int wanted; /* number of outgoing connections to have */
	const char *tls; /* "off", or version, cipher and proof */
	const char *error; /* of the last failed attempt; "": none */
	uint64_t connects, failures; /* outgoing connections made; failed attempts */
};

bool pvr_peers_is_up(struct pvr_peers *peers, const char *name);
const char *pvr_peer_state_name(enum pvr_peer_state state);
/*
 * Call @fn for up to @max peers, from *@cursor on. *@cursor is 0 in the first call.
 * No peer is reported twice; one that is added or removed between two calls may make others
 * missing. Return: false if there are no more.
 */
bool pvr_peers_page(struct pvr_peers *peers, uint32_t *cursor, unsigned int max,
		    void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque);
void pvr_peers_for_each(struct pvr_peers *peers,
			void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque);

#endif /* PVR_NET_PEER_H */
