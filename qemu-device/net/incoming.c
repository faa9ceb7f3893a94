// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Incoming connections, from accept() to the answer to HELLO.
 *
 * Connections that are not authenticated yet are bounded: in total, where a new one
 * replaces the oldest; per address; and in time by conn.c. A regular peer finishes its
 * handshake quickly. With TLS, an address has a rate of handshakes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net/state.h"
#include "net/verbs_peer.h"

#define HANDSHAKES_MAX 256
#define HANDSHAKES_PER_HOST 64
/* TLS handshakes of an address at once, and the time after which there may be one more. */
#define TLS_BURST 256
#define TLS_RETURN_NS (PVR_SEC / 64)

static void forget(struct pvr_conn *conn)
{
	LIST_REMOVE(conn, link);
	conn->net->num_handshakes--;
}

static void refuse(struct pvr_conn *conn, const struct pvr_error *why)
{
	struct pvr_net *net = conn->net;
	char from[PVR_ADDRESS_TEXT];

	net->refused++;
	pvr_net_log_limited(net, &net->unauthenticated, PVR_LOG_WARN,
			    "a connection from %s is refused: %s%s%s%s",
			    pvr_address_format(&conn->address, from),
			    conn->theirs.name[0] ? "host " : "", conn->theirs.name,
			    conn->theirs.name[0] ? ": " : "", why->text);
	forget(conn);
	pvr_peers_leave(conn);
	pvr_conn_destroy(conn);
}

/* TCP still works: CLOSE reports the reason to the host, and nothing is logged here. */
static void decline(struct pvr_conn *conn, const struct pvr_error *why)
{
	pvr_conn_send_close(conn, PVR_CLOSE_DEVICE, why->text);
	forget(conn);
	pvr_peers_leave(conn);
	pvr_conn_destroy(conn);
}

/* Refuses the connection and sends the reason to the host. */
static void dismiss(struct pvr_conn *conn, enum pvr_close_reason reason,
		    const struct pvr_error *why)
{
	pvr_conn_send_close(conn, reason, why->text);
	refuse(conn, why);
}

/* ----------------------------------------------------------------- identity */

static bool check_name(const struct pvr_conn *conn, struct pvr_error *why)
{
	const struct pvr_net *net = conn->net;

	if (strcmp(conn->theirs.name, net->settings.name))
		return true;
	if (conn->theirs.instance == net->instance)
		return pvr_fail(why, "that is this daemon itself");
	return pvr_fail(why, "this host has the same name: each needs one of its own, see --name");
}

static bool check_identity(const struct pvr_conn *conn, struct pvr_error *why)
{
	return check_name(conn, why) &&
	       (!conn->stream.tls || pvr_tls_is_host(conn->stream.tls, conn->theirs.name, why)) &&
	       pvr_peers_trust(conn, conn->theirs.name, why);
}

/* Creates the queue pair if the handshake has a VERBS_QP. */
static bool make_verbs(struct pvr_conn *conn, struct pvr_hello *answer, struct pvr_error *why)
{
	const union pvr_any_frame *theirs = pvr_handshake_queue_pair(&conn->handshake);
	struct pvr_address local = { .len = sizeof(local.storage) };
	struct pvr_verbs *verbs;

	if (!theirs)
		return true;
	if (!conn->net->nics)
		return pvr_fail(why, "%s", conn->net->no_nics.text);
	if (conn->theirs.count != 1)
		return pvr_fail(
			why, "a queue pair needs a connection of its own: expected a count of 1");
	answer->features |= PVR_HELLO_F_VERBS;
	if (getsockname(conn->stream.fd, &local.any, &local.len) < 0)
		return pvr_fail(why, "%s", strerror(errno));
	verbs = pvr_verbs_create(conn->net->nics, &local, answer->features & PVR_HELLO_F_RNDV, why);
	if (!verbs)
		return false;
	if (!pvr_verbs_has_rndv(verbs))
		answer->features &= ~PVR_HELLO_F_RNDV;
	pvr_conn_add_verbs(conn, verbs);
	return pvr_verbs_peer_connect(pvr_peers_verbs(conn->net->peers, conn->theirs.name), verbs,
				      theirs, why);
}

/* Frames to this host, responses and READ data, get its DSCP unless the DSCP is fixed. */
static void agree(struct pvr_conn *conn, const struct pvr_hello *answer)
{
	const struct pvr_net_settings *settings = &conn->net->settings;
	uint8_t dscp = settings->dscp_fixed ? settings->dscp : answer->dscp;

	if (dscp)
		pvr_socket_set_dscp(conn->stream.fd, &conn->address, dscp);
	pvr_conn_answer(conn, answer);
}

static void take_hello(struct pvr_conn *conn)
{
	struct pvr_net *net = conn->net;
	enum pvr_close_reason reason;
	struct pvr_error why;
	struct pvr_hello answer = {
		.version_min = PVR_FRAME_VERSION,
		.version_max = PVR_FRAME_VERSION,
		.instance = net->instance,
		.features = conn->theirs.features & pvr_net_features(net),
		.chunk = PVR_HELLO_CHUNK,
		.index = conn->theirs.index,
		.count = conn->theirs.count,
		.dscp = conn->theirs.dscp,
		.keepalive_ms = net->settings.keepalive * 1000,
	};

	strcpy(answer.name, net->settings.name);
	if (!pvr_hello_has_version(&conn->theirs, &why))
		dismiss(conn, PVR_CLOSE_VERSION, &why);
	else if (!check_identity(conn, &why))
		dismiss(conn, PVR_CLOSE_IDENTITY, &why);
	else if (!pvr_peers_admit(net->peers, conn, &reason, &why))
		dismiss(conn, reason, &why);
	else if (!make_verbs(conn, &answer, &why))
		decline(conn, &why);
	else
		agree(conn, &answer);
}

static void take_over(struct pvr_conn *conn)
{
	struct pvr_error why;

	/* The keys may have been reloaded during the handshake. */
	if (!pvr_peers_trust(conn, conn->theirs.name, &why)) {
		dismiss(conn, PVR_CLOSE_IDENTITY, &why);
		return;
	}
	forget(conn);
	conn->net->accepted++;
	pvr_conn_switch(conn);
	pvr_peers_add_incoming(conn);
}

static const struct pvr_conn_ops incoming_ops = {
	.hello = take_hello,
	.done = take_over,
	.failed = refuse,
};

/* ------------------------------------------------------------------- bounds */

static unsigned int count_from(const struct pvr_net *net, const struct pvr_address *address)
{
	const struct pvr_conn *conn;
	unsigned int num = 0;

	LIST_FOREACH(conn, &net->handshakes, link)
		num += pvr_address_same_host(&conn->address, address);
	return num;
}

/* Return: NULL if there is no handshake. */
static struct pvr_conn *oldest_handshake(const struct pvr_net *net)
{
	struct pvr_conn *conn, *oldest = NULL;

	LIST_FOREACH(conn, &net->handshakes, link)
		oldest = conn;
	return oldest;
}

static void drop_oldest(struct pvr_net *net)
{
	struct pvr_conn *oldest = oldest_handshake(net);
	struct pvr_error why;

	if (!oldest)
		return;
	pvr_fail(&why, "its handshake is slow, and %u newer ones are in progress", HANDSHAKES_MAX);
	refuse(oldest, &why);
}

/* The owner of an IPv6 network has all of its addresses, so only the first 64 bits count. */
static struct pvr_tls_rate *rate_of(struct pvr_net *net, const struct pvr_address *address)
{
	uint64_t bits = 0;

	if (address->any.sa_family == AF_INET)
		bits = address->v4.sin_addr.s_addr;
	else
		memcpy(&bits, &address->v6.sin6_addr, sizeof(bits));
	bits = (bits ^ net->instance) * 0x9e3779b97f4a7c15ull;
	bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9ull;
	return &net->tls_rates[(bits >> 32) % PVR_TLS_RATES];
}

/* Counts a handshake unless the rate of the address is used up. */
static bool has_rate(struct pvr_net *net, const struct pvr_address *address)
{
	struct pvr_tls_rate *rate = rate_of(net, address);
	uint64_t returned = (pvr_loop_now() - rate->counted) / TLS_RETURN_NS;

	rate->counted += returned * TLS_RETURN_NS;
	rate->used -= returned < rate->used ? (uint32_t)returned : rate->used;
	if (rate->used == TLS_BURST)
		return false;
	rate->used++;
	return true;
}

static bool has_room(struct pvr_net *net, const struct pvr_address *address)
{
	char from[PVR_ADDRESS_TEXT];

	if (net->tls && !has_rate(net, address)) {
		net->refused++;
		pvr_net_log_limited(net, &net->too_many, PVR_LOG_WARN,
				    "a connection from %s is refused: more than %d TLS handshakes "
				    "of that address, and %llu per second",
				    pvr_address_format(address, from), TLS_BURST,
				    PVR_SEC / TLS_RETURN_NS);
		return false;
	}
	if (count_from(net, address) >= HANDSHAKES_PER_HOST) {
		net->refused++;
		pvr_net_log_limited(net, &net->unauthenticated, PVR_LOG_WARN,
				    "a connection from %s is refused: %d of that address have not "
				    "finished their handshake",
				    pvr_address_format(address, from), HANDSHAKES_PER_HOST);
		return false;
	}
	if (net->num_handshakes >= HANDSHAKES_MAX)
		drop_oldest(net);
	return true;
}

void pvr_incoming_accept(struct pvr_net *net, int fd, const struct pvr_address *address)
{
	struct pvr_conn *conn;
	struct pvr_error why;

	if (!has_room(net, address)) {
		close(fd);
		return;
	}
	conn = pvr_conn_create(net, fd, address, &incoming_ops);
	if (!conn)
		return;
	LIST_INSERT_HEAD(&net->handshakes, conn, link);
	net->num_handshakes++;
	if (!pvr_conn_begin(conn, NULL, NULL, &why))
		refuse(conn, &why);
}
