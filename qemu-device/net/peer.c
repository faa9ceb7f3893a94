// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One peer: the connections to it that this host dials, and the incoming ones.
 *
 * DOC: dialling
 *
 * While no connection is up, one at a time is dialled, so an unreachable host costs at
 * most one attempt per second in the long run. When it is up, the others follow. After a
 * failure the next attempt waits for 50 ms, doubled each time up to 1 s. A connection
 * that lasted resets it.
 *
 * Attempts to all hosts together have a rate.
 *
 * DOC: traffic classes
 *
 * The first slots are for traffic without a class. A queue pair with a DSCP requests a
 * connection of that DSCP, which gets one of the other slots while there are free ones.
 * Until that is up, or without a free slot, the queue pair uses the connections without a
 * class.
 */
#include <string.h>

#include "net/peer_state.h"

#define BACKOFF_FIRST (50 * PVR_MSEC)
#define BACKOFF_MAX PVR_SEC
#define DIAL_PERIOD (50 * PVR_MSEC)
#define DIALS_PER_PERIOD 32
/* A connection that was up for longer resets the backoff. */
#define GOOD_NS (PVR_SEC / 2)
#define NO_HOST "out of memory, or too many host names since the start of the daemon"
#define SAME_COMPLAINT_NS (60 * PVR_SEC)

static const struct pvr_conn_ops outgoing_ops;

static struct pvr_host *host_of(struct pvr_peer *peer)
{
	if (!peer->host)
		peer->host = pvr_host_get(peer->peers->net->env.engine, peer->name);
	return peer->host;
}

struct pvr_host *pvr_peers_host_of(struct pvr_peers *peers, const char *name)
{
	struct pvr_peer *peer;
	struct pvr_error why;

	if (!strcmp(name, peers->net->settings.name))
		return NULL;
	peer = pvr_peers_find_or_add(peers, name, &why);
	return peer ? host_of(peer) : NULL;
}

/* Spreads simultaneous attempts: returns 3/4 to 5/4 of @ns. */
static uint64_t jitter(struct pvr_peers *peers, uint64_t ns)
{
	peers->random = peers->random * 6364136223846793005ull + 1442695040888963407ull;
	return ns / 4 * 3 + (peers->random >> 33) % (ns / 2);
}

static void set_error(struct pvr_peer *peer, const char *why)
{
	struct pvr_net *net = peer->peers->net;
	char at[PVR_ADDRESS_TEXT];
	uint64_t now = pvr_loop_now();
	bool same = !strcmp(peer->error.text, why) && peer->failing;

	pvr_fail(&peer->error, "%s", why);
	if (same && now - peer->complained < SAME_COMPLAINT_NS)
		return;
	peer->complained = now;
	pvr_net_log_host(net, &peer->ratelimit, peer->name, PVR_LOG_WARN,
			 "cannot connect to host %s at %s: %s; retrying", peer->name,
			 pvr_address_format(&peer->address, at), why);
}

/* -------------------------------------------------------------------- dialling */

static unsigned int connections(const struct pvr_net *net)
{
	if (net->settings.connections)
		return net->settings.connections;
	if (net->env.workers > PVR_REQ_CONN_MAX)
		return PVR_REQ_CONN_MAX;
	return net->env.workers < 2 ? 2 : net->env.workers;
}

unsigned int pvr_peer_slots(const struct pvr_peer *peer)
{
	return connections(peer->peers->net) + peer->classes;
}

/*
 * A hostile guest can exhaust the slots: then all further classes share the common ones.
 */
void pvr_peer_add_class(struct pvr_peer *peer, uint8_t dscp)
{
	unsigned int slot;

	for (slot = connections(peer->peers->net); slot < pvr_peer_slots(peer); slot++) {
		if (peer->dscp[slot] == dscp)
			return;
	}
	if (slot == PVR_REQ_CONN_MAX || peer->slots[slot])
		return;
	peer->dscp[slot] = dscp;
	peer->classes++;
}

/* Delays the next attempt. */
static void back_off(struct pvr_peer *peer)
{
	peer->backoff = peer->backoff ? 2 * peer->backoff : BACKOFF_FIRST;
	if (peer->backoff > BACKOFF_MAX)
		peer->backoff = BACKOFF_MAX;
	pvr_loop_timer_arm(peer->peers->net->env.loop, &peer->retry,
			   jitter(peer->peers, peer->backoff));
}

static void attempt_failed(struct pvr_peer *peer, const char *why)
{
	peer->failures++;
	set_error(peer, why);
	peer->failing = peer->up == 0;
	back_off(peer);
}

static void fill_hello(const struct pvr_peer *peer, struct pvr_hello *hello, unsigned int slot)
{
	const struct pvr_net *net = peer->peers->net;

	*hello = (struct pvr_hello){
		.version_min = PVR_FRAME_VERSION,
		.version_max = PVR_FRAME_VERSION,
		.instance = net->instance,
		.features = pvr_net_features(net),
		.chunk = PVR_HELLO_CHUNK,
		.index = (uint8_t)slot,
		.count = (uint8_t)pvr_peer_slots(peer),
		.dscp = peer->dscp[slot],
		.keepalive_ms = net->settings.keepalive * 1000,
	};
	strcpy(hello->name, net->settings.name);
}

/* Return: false with @err filled; the slot is free then. */
static bool dial_slot(struct pvr_peer *peer, unsigned int slot, struct pvr_error *err)
{
	struct pvr_net *net = peer->peers->net;
	struct pvr_hello hello;
	struct pvr_conn *conn;
	int fd;

	if (net->tls && !pvr_tls_context_knows(net->tls, peer->name, err))
		return false;
	fd = pvr_socket_dial(&peer->address,
			     net->settings.dscp_fixed ? net->settings.dscp : peer->dscp[slot], err);
	if (fd < 0)
		return false;
	conn = pvr_conn_create(net, fd, &peer->address, &outgoing_ops);
	if (!conn)
		return pvr_fail(err, "out of memory");
	fill_hello(peer, &hello, slot);
	conn->peer = peer;
	if (!pvr_conn_begin(conn, peer->name, &hello, err)) {
		pvr_conn_destroy(conn);
		return false;
	}
	peer->slots[slot] = conn;
	peer->dialling++;
	return true;
}

/* No dial request for longer than the idle timeout: attempts can end. */
static bool is_forgotten(const struct pvr_peer *peer)
{
	uint64_t limit = peer->peers->net->settings.idle_timeout * PVR_SEC;

	return !peer->up && pvr_loop_now() - peer->dial_requested_at > limit;
}

/*
 * A TLS handshake takes about a millisecond of the first thread: a host that comes back with
 * connections to a thousand others must not begin them all at once.
 */
static bool may_dial(struct pvr_peers *peers)
{
	uint64_t now = pvr_loop_now();

	if (now - peers->period >= DIAL_PERIOD) {
		peers->period = now;
		peers->attempts = 0;
	}
	return peers->attempts++ < DIALS_PER_PERIOD;
}

static void wait_turn(struct pvr_peer *peer)
{
	struct pvr_peers *peers = peer->peers;

	peer->waits = true;
	TAILQ_INSERT_TAIL(&peers->waiting, peer, turn_link);
	if (!peers->turn.loop)
		pvr_loop_timer_arm(peers->net->env.loop, &peers->turn, DIAL_PERIOD);
}

static void end_wait(struct pvr_peer *peer)
{
	if (!peer->waits)
		return;
	peer->waits = false;
	TAILQ_REMOVE(&peer->peers->waiting, peer, turn_link);
}

/* @has_turn: it has waited; other peers queue behind those that wait. */
static void dial_free_slots(struct pvr_peer *peer, bool has_turn)
{
	unsigned int num = pvr_peer_slots(peer), slot;
	struct pvr_error why;

	if (is_forgotten(peer))
		peer->dial_requested = false;
	if (!peer->dial_requested || !peer->has_address || peer->retry.loop || peer->waits ||
	    peer->peers->net->ending)
		return;
	for (slot = 0; slot < num; slot++) {
		if (peer->slots[slot])
			continue;
		if (!peer->up && peer->dialling)
			break;
		if ((!has_turn && !TAILQ_EMPTY(&peer->peers->waiting)) || !may_dial(peer->peers)) {
			wait_turn(peer);
			break;
		}
		if (!dial_slot(peer, slot, &why)) {
			attempt_failed(peer, why.text);
			break;
		}
	}
}

void pvr_peers_turn(struct pvr_loop_timer *timer)
{
	struct pvr_peers *peers =
		(struct pvr_peers *)((char *)timer - offsetof(struct pvr_peers, turn));
	struct pvr_peer *peer;
	unsigned int i;

	for (i = 0; i < DIALS_PER_PERIOD && (peer = TAILQ_FIRST(&peers->waiting)); i++) {
		end_wait(peer);
		dial_free_slots(peer, true);
	}
	if (!TAILQ_EMPTY(&peers->waiting) && !peers->turn.loop)
		pvr_loop_timer_arm(peers->net->env.loop, &peers->turn, DIAL_PERIOD);
}

void pvr_peer_dial(struct pvr_peer *peer)
{
	dial_free_slots(peer, false);
}

void pvr_peer_retry(struct pvr_loop_timer *timer)
{
	struct pvr_peer *peer =
		(struct pvr_peer *)((char *)timer - offsetof(struct pvr_peer, retry));

	pvr_peer_dial(peer);
}

static void free_slot(struct pvr_peer *peer, struct pvr_conn *conn)
{
	peer->slots[conn->ours.index] = NULL;
	if (conn->up_since)
		peer->up--;
	else
		peer->dialling--;
}

static void dial_failed(struct pvr_conn *conn, const struct pvr_error *why)
{
	struct pvr_peer *peer = conn->peer;

	free_slot(peer, conn);
	pvr_conn_destroy(conn);
	attempt_failed(peer, why->text);
}

bool pvr_peers_check_answer(const struct pvr_conn *conn, struct pvr_error *why)
{
	const struct pvr_hello *ours = &conn->ours, *theirs = &conn->theirs;

	if (theirs->version_min != theirs->version_max || !pvr_hello_has_version(theirs, why))
		return pvr_fail(why,
				"it answers with versions %u to %u of the protocol, expected %u",
				theirs->version_min, theirs->version_max, PVR_FRAME_VERSION);
	if (strcmp(theirs->name, conn->peer->name))
		return pvr_fail(why, "host '%s' has this address: correct the peer's address",
				theirs->name);
	if (theirs->index != ours->index || theirs->count != ours->count ||
	    theirs->dscp != ours->dscp || theirs->features & ~ours->features)
		return pvr_fail(why, "it answers for connection %u of %u, expected %u of %u",
				theirs->index, theirs->count, ours->index, ours->count);
	return (!conn->stream.tls || pvr_tls_is_host(conn->stream.tls, conn->peer->name, why)) &&
	       pvr_peers_trust(conn, conn->peer->name, why);
}

void pvr_peers_agree(struct pvr_conn *conn)
{
	const struct pvr_hello *ours = &conn->ours, *theirs = &conn->theirs;

	conn->limits.chunk = theirs->chunk < ours->chunk ? theirs->chunk : ours->chunk;
	conn->limits.dscp = ours->dscp;
	conn->limits.piggyback_ack = theirs->features & ours->features & PVR_HELLO_F_PIGGYBACK_ACK;
	conn->limits.qp_gone = ours->features & theirs->features & PVR_HELLO_F_QP_GONE;
	conn->limits.atomic_write = ours->features & theirs->features & PVR_HELLO_F_ATOMIC_WRITE;
	conn->limits.xrc = ours->features & theirs->features & PVR_HELLO_F_XRC;
	conn->limits.page = ours->features & theirs->features & PVR_HELLO_F_PAGE;
	conn->limits.fault = ours->features & theirs->features & PVR_HELLO_F_FAULT;
	conn->limits.move = ours->features & theirs->features & PVR_HELLO_F_MOVE;
	conn->limits.load = ours->features & theirs->features & PVR_HELLO_F_LOAD;
	conn->limits.address = ours->features & theirs->features & PVR_HELLO_F_ADDRESS;
	conn->limits.refer = ours->features & theirs->features & PVR_HELLO_F_REFER;
	conn->limits.tail = ours->features & theirs->features & PVR_HELLO_F_TAIL;
	conn->host = host_of(conn->peer);
	conn->worker = ours->index % conn->net->env.workers;
	conn->up_since = pvr_loop_now();
}

static void first_is_up(struct pvr_peer *peer, const struct pvr_conn *conn)
{
	char at[PVR_ADDRESS_TEXT];

	peer->failing = false;
	snprintf(peer->tls, sizeof(peer->tls), "%s",
		 conn->stream.tls ? pvr_tls_describe(conn->stream.tls) : "off");
	pvr_net_log_host(peer->peers->net, &peer->ratelimit, peer->name, PVR_LOG_INFO,
			 "connected to host %s at %s, TLS: %s", peer->name,
			 pvr_address_format(&peer->address, at), peer->tls);
	pvr_peer_notify(peer, true);
}

static void dialled(struct pvr_conn *conn)
{
	struct pvr_peer *peer = conn->peer;
	struct pvr_error why;

	if (!pvr_peers_check_answer(conn, &why) || (!host_of(peer) && !pvr_fail(&why, NO_HOST))) {
		pvr_conn_send_close(conn, PVR_CLOSE_IDENTITY, why.text);
		dial_failed(conn, &why);
		return;
	}
	pvr_conn_release(conn);
	pvr_peers_agree(conn);
	peer->dialling--;
	peer->connects++;
	pvr_req_conn_up(conn->host, PVR_PIPE_TCP, conn->ours.index, pvr_conn_stream_ops(conn), conn,
			&conn->limits);
	pvr_traffic_give(conn);
	if (!peer->up++)
		first_is_up(peer, conn);
	pvr_verbs_peer_request(&peer->verbs, conn->theirs.features);
	pvr_peer_dial(peer);
}

static void outgoing_hello(struct pvr_conn *conn)
{
	/* Only an incoming connection receives a HELLO to answer. */
}

static const struct pvr_conn_ops outgoing_ops = {
	.hello = outgoing_hello,
	.done = dialled,
	.failed = dial_failed,
};

static void outgoing_lost(struct pvr_conn *conn)
{
	struct pvr_peer *peer = conn->peer;
	bool good = pvr_loop_now() - conn->up_since > GOOD_NS;
	uint64_t used = __atomic_load_n(&conn->used, __ATOMIC_RELAXED);

	free_slot(peer, conn);
	if (used > peer->dial_requested_at)
		peer->dial_requested_at = used;
	if (!conn->closing)
		peer->error = conn->why;
	if (!peer->up) {
		pvr_net_log_host(peer->peers->net, &peer->ratelimit, peer->name,
				 conn->closing ? PVR_LOG_INFO : PVR_LOG_WARN,
				 "the connection to host %s has ended: %s", peer->name,
				 conn->why.text);
		pvr_peer_notify(peer, false);
		pvr_verbs_peer_forget(&peer->verbs);
	}
	pvr_conn_destroy(conn);
	if (good)
		peer->backoff = 0;
	else if (!peer->retry.loop)
		back_off(peer);
	pvr_peer_dial(peer);
}

/* -------------------------------------------------------------------- incoming */

/*
 * A daemon is refused while a newer daemon of the same name is connected.
 */
bool pvr_peers_admit(struct pvr_peers *peers, struct pvr_conn *conn, enum pvr_close_reason *reason,
		     struct pvr_error *why)
{
	struct pvr_peer *peer = pvr_peers_find_or_add(peers, conn->theirs.name, why);
	char at[PVR_ADDRESS_TEXT];

	*reason = PVR_CLOSE_LIMIT;
	if (!peer)
		return false;
	if (!host_of(peer))
		return pvr_fail(why, NO_HOST);
	*reason = PVR_CLOSE_IDENTITY;
	if (peer->in && conn->theirs.instance == peer->replaced)
		return pvr_fail(why, "another daemon at %s has the same name, and is newer",
				pvr_address_format(&LIST_FIRST(&peer->incoming)->address, at));
	conn->peer = peer;
	peer->admitted++;
	return true;
}

void pvr_peers_leave(struct pvr_conn *conn)
{
	if (conn->peer)
		conn->peer->admitted--;
	conn->peer = NULL;
}

/*
 * Closes connections that @by replaces: the same one dialled again, or of a daemon that
 * has ended.
 */
static void replace(struct pvr_peer *peer, const struct pvr_conn *by)
{
	struct pvr_conn *conn;

	LIST_FOREACH(conn, &peer->incoming, link) {
		if (conn->theirs.instance != by->theirs.instance ||
		    (conn->kind == by->kind && conn->theirs.index == by->theirs.index))
			pvr_traffic_close(conn, PVR_CLOSE_REPLACED, "a newer connection is there");
	}
	if (peer->instance != by->theirs.instance) {
		peer->replaced = peer->instance;
		peer->instance = by->theirs.instance;
	}
}

void pvr_peers_add_incoming(struct pvr_conn *conn)
{
	struct pvr_net *net = conn->net;
	struct pvr_peer *peer = conn->peer;
	char from[PVR_ADDRESS_TEXT];

	peer->admitted--;
	replace(peer, conn);
	pvr_conn_release(conn);
	pvr_peers_agree(conn);
	LIST_INSERT_HEAD(&peer->incoming, conn, link);
	if (conn->kind == PVR_PIPE_VERBS) {
		peer->in_verbs++;
		/* The peer's NIC works, perhaps since the last attempt. */
		pvr_verbs_peer_changed(&peer->verbs, "");
	} else if (!peer->in++)
		pvr_net_log_host(net, &peer->ratelimit, peer->name, PVR_LOG_INFO,
				 "host %s has connected from %s, TLS: %s", peer->name,
				 pvr_address_format(&conn->address, from),
				 conn->stream.tls ? pvr_tls_describe(conn->stream.tls) : "off");
	pvr_traffic_give(conn);
}

static void incoming_lost(struct pvr_conn *conn)
{
	struct pvr_peer *peer = conn->peer;

	LIST_REMOVE(conn, link);
	if (conn->kind == PVR_PIPE_VERBS)
		peer->in_verbs--;
	else if (!--peer->in)
		pvr_net_log_host(conn->net, &peer->ratelimit, peer->name, PVR_LOG_INFO,
				 "host %s is not connected any more: %s", peer->name,
				 conn->why.text);
	pvr_conn_destroy(conn);
}

void pvr_peer_gone_lost(struct pvr_conn *conn)
{
	if (conn->verbs_peer)
		pvr_verbs_peer_lost(conn);
	else if (conn->outgoing)
		outgoing_lost(conn);
	else
		incoming_lost(conn);
}

/* --------------------------------------------------------------- disconnect */

void pvr_peer_stop_dialling(struct pvr_peer *peer)
{
	unsigned int slot;

	pvr_loop_timer_disarm(&peer->retry);
	end_wait(peer);
	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		struct pvr_conn *conn = peer->slots[slot];

		if (conn && !conn->up_since) {
			free_slot(peer, conn);
			pvr_conn_destroy(conn);
		}
	}
}

void pvr_peer_disconnect(struct pvr_peer *peer, const char *why)
{
	unsigned int slot;

	pvr_peer_stop_dialling(peer);
	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		if (peer->slots[slot])
			pvr_traffic_close(peer->slots[slot], PVR_CLOSE_DONE, why);
	}
	peer->backoff = 0;
	pvr_verbs_peer_close(&peer->verbs, why);
}

void pvr_peer_gone_idle(struct pvr_conn *conn)
{
	struct pvr_peer *peer = conn->peer;
	uint64_t limit = conn->net->settings.idle_timeout * PVR_SEC, now = pvr_loop_now();
	unsigned int slot;

	for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++) {
		conn = peer->slots[slot];
		if (conn && now - __atomic_load_n(&conn->used, __ATOMIC_RELAXED) <= limit)
			return;
	}
	conn = peer->verbs.conn;
	if (conn && now - __atomic_load_n(&conn->used, __ATOMIC_RELAXED) <= limit)
		return;
	if (now - peer->dial_requested_at <= limit)
		return;
	peer->dial_requested = false;
	peer->classes = 0;
	pvr_peer_disconnect(peer, "it was not used for long");
}
