// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of peers: addresses and requests of the directory, reload of keys,
 * information.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/peer_state.h"

/* ------------------------------------------------------------------- the table */

static struct peer_bucket *bucket_of(struct pvr_peers *peers, const char *name)
{
	uint32_t hash = 2166136261u;

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * 16777619u;
	return &peers->buckets[hash % PVR_PEER_BUCKETS];
}

struct pvr_peer *pvr_peers_find(struct pvr_peers *peers, const char *name)
{
	struct pvr_peer *peer;

	LIST_FOREACH(peer, bucket_of(peers, name), link) {
		if (!strcmp(peer->name, name))
			return peer;
	}
	return NULL;
}

/* No address and no connection: the directory and the workers hold no reference. */
static bool is_idle(const struct pvr_peer *peer)
{
	unsigned int slot;

	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		if (peer->slots[slot])
			return false;
	}
	return !peer->has_address && !peer->admitted && !peer->verbs.conn &&
	       LIST_EMPTY(&peer->incoming);
}

static void destroy_peer(struct pvr_peer *peer);

/*
 * Frees all idle peers. Done only when the table is full: a peer has the rate limit of its
 * log lines. Hosts with a common key or without TLS can use any number of names.
 */
static void free_idle(struct pvr_peers *peers)
{
	struct pvr_peer *peer, *next;
	size_t i;

	for (i = 0; i < PVR_PEER_BUCKETS; i++) {
		for (peer = LIST_FIRST(&peers->buckets[i]); peer; peer = next) {
			next = LIST_NEXT(peer, link);
			if (is_idle(peer))
				destroy_peer(peer);
		}
	}
}

/* At the end: pvr_peers_page() counts the peers of a bucket from its beginning. */
static void link_peer(struct peer_bucket *bucket, struct pvr_peer *peer)
{
	struct pvr_peer *last = LIST_FIRST(bucket);

	while (last && LIST_NEXT(last, link))
		last = LIST_NEXT(last, link);
	if (last)
		LIST_INSERT_AFTER(last, peer, link);
	else
		LIST_INSERT_HEAD(bucket, peer, link);
}

static struct pvr_peer *add(struct pvr_peers *peers, const char *name, struct pvr_error *err)
{
	struct pvr_peer *peer;

	if (!pvr_host_name_check(name, err))
		return NULL;
	if (peers->num == PVR_PEERS_MAX)
		free_idle(peers);
	peer = peers->num < PVR_PEERS_MAX ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer) {
		pvr_fail(err, "%s",
			 peers->num < PVR_PEERS_MAX ? "out of memory" : "too many hosts");
		return NULL;
	}
	peer->peers = peers;
	strcpy(peer->name, name);
	peer->retry.expired = pvr_peer_retry;
	pvr_verbs_peer_init(&peer->verbs, peers->net, peer, peer->name, &peer->address);
	LIST_INIT(&peer->incoming);
	link_peer(bucket_of(peers, name), peer);
	peers->num++;
	return peer;
}

struct pvr_peer *pvr_peers_find_or_add(struct pvr_peers *peers, const char *name,
				       struct pvr_error *err)
{
	struct pvr_peer *peer = pvr_peers_find(peers, name);

	return peer ? peer : add(peers, name, err);
}

/* ------------------------------------------------------------------- listeners */

void pvr_peer_notify(struct pvr_peer *peer, bool up)
{
	struct pvr_peers *peers = peer->peers;
	size_t i;

	for (i = 0; i < peers->num_listeners; i++)
		peers->listeners[i].ops->changed(peers->listeners[i].opaque, peer->name, peer->host,
						 up);
}

bool pvr_peers_listen(struct pvr_peers *peers, const struct pvr_peers_ops *ops, void *opaque)
{
	if (peers->num_listeners == PVR_PEER_LISTENERS)
		return false;
	peers->listeners[peers->num_listeners].ops = ops;
	peers->listeners[peers->num_listeners++].opaque = opaque;
	return true;
}

/* --------------------------------------------------- calls of the directory */

static bool check_reachable(const struct pvr_net *net, const char *name,
			    const struct pvr_address *address, struct pvr_error *err)
{
	if (!strcmp(name, net->settings.name))
		return pvr_fail(err, "host '%s' is this one", name);
	if (net->tls)
		return pvr_tls_context_knows(net->tls, name, err);
	if (net->settings.insecure || pvr_address_is_loopback(address))
		return true;
	return pvr_fail(err,
			"host '%s' needs TLS, and pvrdmad has no keys: see --tls-psk-file, "
			"--tls-cert and --insecure",
			name);
}

static bool parse(struct pvr_peers *peers, const char *name, const char *text,
		  struct pvr_address *address, struct pvr_error *err)
{
	return pvr_address_parse(address, text, err) &&
	       check_reachable(peers->net, name, address, err);
}

bool pvr_peers_check(struct pvr_peers *peers, const char *name, const char *text,
		     struct pvr_error *err)
{
	struct pvr_address address;

	return parse(peers, name, text, &address, err);
}

bool pvr_peers_set(struct pvr_peers *peers, const char *name, const char *text,
		   struct pvr_error *err)
{
	char formatted[PVR_ADDRESS_TEXT];
	struct pvr_address address;
	struct pvr_peer *peer;
	struct pvr_host *host;

	if (!parse(peers, name, text, &address, err))
		return false;
	peer = pvr_peers_find_or_add(peers, name, err);
	if (!peer)
		return false;
	host = pvr_peers_host_of(peers, name);
	if (host)
		pvr_host_set_address(host, pvr_address_format(&address, formatted));
	if (peer->has_address && !pvr_address_equal(&peer->address, &address))
		pvr_peer_disconnect(peer, "it has another address now");
	peer->address = address;
	peer->has_address = true;
	pvr_peer_dial(peer);
	return true;
}

void pvr_peer_gone_unwatch(struct pvr_peers *peers, const char *name)
{
	struct pvr_peer *peer = pvr_peers_find(peers, name);

	if (!peer)
		return;
	peer->has_address = peer->dial_requested = false;
	pvr_verbs_peer_forget(&peer->verbs);
	pvr_peer_stop_dialling(peer);
}

static bool request_dial(struct pvr_peer *peer)
{
	peer->dial_requested = true;
	peer->dial_requested_at = pvr_loop_now();
	pvr_peer_dial(peer);
	return true;
}

bool pvr_peers_dial_class(struct pvr_peers *peers, const char *name, uint8_t dscp)
{
	struct pvr_peer *peer = pvr_peers_find(peers, name);

	if (!peer || !peer->has_address)
		return false;
	if (dscp && !peers->net->settings.dscp_fixed)
		pvr_peer_add_class(peer, dscp);
	return request_dial(peer);
}

bool pvr_peers_dial(struct pvr_peers *peers, const char *name)
{
	struct pvr_peer *peer = pvr_peers_find(peers, name);

	return peer && peer->has_address && request_dial(peer);
}

bool pvr_peer_gone_where(struct pvr_peers *peers, const char *name, const char *fabric,
			 const uint8_t gid[16])
{
	struct pvr_peer *peer = pvr_peers_find(peers, name);
	unsigned int slot;

	if (!peer || !peer->has_address)
		return false;
	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		if (peer->slots[slot] && peer->slots[slot]->up_since &&
		    pvr_req_conn_gid_query(peer->host, PVR_PIPE_TCP, slot, fabric, gid))
			return true;
	}
	request_dial(peer);
	return false;
}

/* --------------------------------------------------- RDMA NICs of this host */

struct pvr_verbs_peer *pvr_peers_verbs(struct pvr_peers *peers, const char *name)
{
	return &pvr_peers_find(peers, name)->verbs;
}

void pvr_peers_nics_changed(struct pvr_peers *peers, const char *what)
{
	struct pvr_peer *peer;
	struct pvr_conn *conn;
	size_t i;

	for (i = 0; i < PVR_PEER_BUCKETS; i++) {
		LIST_FOREACH(peer, &peers->buckets[i], link) {
			LIST_FOREACH(conn, &peer->incoming, link) {
				if (conn->verbs && !pvr_verbs_works(conn->verbs))
					pvr_traffic_close(conn, PVR_CLOSE_DEVICE, what);
			}
			pvr_verbs_peer_changed(&peer->verbs, what);
		}
	}
}

/* --------------------------------------------------------------------- new keys */

bool pvr_peers_trust(const struct pvr_conn *conn, const char *host, struct pvr_error *why)
{
	return !conn->stream.tls || pvr_tls_is_trusted(conn->stream.tls, conn->net->tls, host, why);
}

/* Connections in a handshake are checked at its end. */
static bool review_conn(struct pvr_conn *conn, const struct pvr_peer *peer, struct pvr_error *why)
{
	if (!conn || !conn->up_since || conn->closing || pvr_peers_trust(conn, peer->name, why))
		return false;
	pvr_traffic_close(conn, PVR_CLOSE_IDENTITY, "a key or certificate is no longer valid");
	if (!conn->closing) /* no memory for the reason: close it without */
		shutdown(conn->stream.fd, SHUT_RDWR);
	return true;
}

static bool review(struct pvr_peer *peer, struct pvr_error *why)
{
	bool closed = review_conn(peer->verbs.conn, peer, why);
	struct pvr_conn *conn;
	unsigned int slot;

	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++)
		closed |= review_conn(peer->slots[slot], peer, why);
	LIST_FOREACH(conn, &peer->incoming, link)
		closed |= review_conn(conn, peer, why);
	return closed;
}

void pvr_peer_gone_review(struct pvr_peers *peers, const struct pvr_reload_ops *ops, void *opaque)
{
	struct pvr_peer *peer;
	struct pvr_error why;
	size_t i;

	for (i = 0; i < PVR_PEER_BUCKETS; i++) {
		LIST_FOREACH(peer, &peers->buckets[i], link) {
			if (review(peer, &why))
				ops->disconnected(opaque, peer->name, why.text);
			if (peer->has_address &&
			    !pvr_tls_context_knows(peers->net->tls, peer->name, &why))
				ops->warn(opaque, why.text);
		}
	}
}

/* -------------------------------------------------------------- information */

static enum pvr_peer_state state_of(const struct pvr_peer *peer)
{
	if (peer->up)
		return PVR_PEER_UP;
	if (!peer->dial_requested)
		return PVR_PEER_IDLE;
	return peer->failing ? PVR_PEER_UNREACHABLE : PVR_PEER_CONNECTING;
}

bool pvr_peers_is_up(struct pvr_peers *peers, const char *name)
{
	const struct pvr_peer *peer = pvr_peers_find(peers, name);

	return peer && peer->up;
}

const char *pvr_peer_state_name(enum pvr_peer_state state)
{
	static const char *const names[] = {
		[PVR_PEER_IDLE] = "idle",
		[PVR_PEER_CONNECTING] = "connecting",
		[PVR_PEER_UP] = "up",
		[PVR_PEER_UNREACHABLE] = "unreachable",
	};

	return names[state];
}

static void describe(const struct pvr_peer *peer, struct pvr_peer_info *info,
		     char address[PVR_ADDRESS_TEXT], struct pvr_error *no_rndv)
{
	const struct pvr_conn *conn = LIST_FIRST(&peer->incoming);

	*info = (struct pvr_peer_info){
		.name = peer->name,
		.address = peer->has_address ? pvr_address_format(&peer->address, address) : "",
		.state = state_of(peer),
		.host = peer->host,
		.conns_out = peer->up,
		.conns_in = peer->in,
		.device = pvr_verbs_peer_device(&peer->verbs),
		.verbs_in = peer->in_verbs,
		.verbs_error = peer->verbs.error.text,
		.zerocopy = pvr_verbs_peer_has_rndv(&peer->verbs, no_rndv),
		.zerocopy_error = no_rndv->text,
		.wanted = peer->dial_requested ? pvr_peer_slots(peer) : 0,
		.tls = peer->tls[0]		  ? peer->tls
		       : conn && conn->stream.tls ? pvr_tls_describe(conn->stream.tls)
						  : "off",
		.error = peer->error.text,
		.connects = peer->connects,
		.failures = peer->failures,
	};
}

static void report(const struct pvr_peer *peer,
		   void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque)
{
	char address[PVR_ADDRESS_TEXT];
	struct pvr_peer_info info;
	struct pvr_error no_rndv;

	describe(peer, &info, address, &no_rndv);
	fn(opaque, &info);
}

bool pvr_peers_page(struct pvr_peers *peers, uint32_t *cursor, unsigned int max,
		    void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque)
{
	uint32_t bucket = *cursor / PVR_PEERS_MAX, skip = *cursor % PVR_PEERS_MAX, i;
	const struct pvr_peer *peer;

	for (; bucket < PVR_PEER_BUCKETS; bucket++, skip = 0) {
		i = 0;
		LIST_FOREACH(peer, &peers->buckets[bucket], link) {
			if (i++ < skip)
				continue;
			if (!max--) {
				*cursor = bucket * PVR_PEERS_MAX + i - 1;
				return true;
			}
			report(peer, fn, opaque);
		}
	}
	return false;
}

void pvr_peers_for_each(struct pvr_peers *peers,
			void (*fn)(void *opaque, const struct pvr_peer_info *info), void *opaque)
{
	uint32_t cursor = 0;

	pvr_peers_page(peers, &cursor, UINT_MAX, fn, opaque);
}

/* ------------------------------------------------------------------ life cycle */

struct pvr_peers *pvr_peers_create(struct pvr_net *net)
{
	struct pvr_peers *peers = calloc(1, sizeof(*peers));
	size_t i;

	if (!peers)
		return NULL;
	peers->net = net;
	peers->random = net->instance;
	peers->turn.expired = pvr_peers_turn;
	TAILQ_INIT(&peers->waiting);
	for (i = 0; i < PVR_PEER_BUCKETS; i++)
		LIST_INIT(&peers->buckets[i]);
	return peers;
}

static void destroy_peer(struct pvr_peer *peer)
{
	unsigned int slot;

	/* Connections that were up have been passed back by their workers. */
	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		if (peer->slots[slot])
			pvr_conn_destroy(peer->slots[slot]);
	}
	pvr_verbs_peer_forget(&peer->verbs);
	pvr_loop_timer_disarm(&peer->retry);
	if (peer->waits)
		TAILQ_REMOVE(&peer->peers->waiting, peer, turn_link);
	LIST_REMOVE(peer, link);
	peer->peers->num--;
	free(peer);
}

void pvr_peers_destroy(struct pvr_peers *peers)
{
	struct pvr_peer *peer;
	size_t i;

	if (!peers)
		return;
	for (i = 0; i < PVR_PEER_BUCKETS; i++) {
		while ((peer = LIST_FIRST(&peers->buckets[i])))
			destroy_peer(peer);
	}
	pvr_loop_timer_disarm(&peers->turn);
	free(peers);
}
