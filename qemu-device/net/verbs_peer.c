// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The outgoing queue pair to a peer: creation, loss, retry. */
#include <endian.h>
#include <string.h>

#include "net/state.h"
#include "net/verbs_peer.h"

#define BACKOFF_FIRST (100 * PVR_MSEC)
#define BACKOFF_MAX (10 * PVR_SEC)
/* The retries of the NIC end earlier. */
#define PROBE_NS (5 * PVR_SEC)
/* A queue pair that was up for longer resets the backoff. */
#define GOOD_NS PVR_SEC
/*
 * A peer that takes longer to connect must wait for a multiple of that before it may
 * retry.
 */
#define SLOW_NS (100 * PVR_MSEC)
#define SLOW_PAUSE 9

static const struct pvr_conn_ops verbs_ops;

static void retry(struct pvr_loop_timer *timer);

void pvr_verbs_peer_init(struct pvr_verbs_peer *verbs, struct pvr_net *net, struct pvr_peer *peer,
			 const char *name, const struct pvr_address *address)
{
	*verbs = (struct pvr_verbs_peer){
		.net = net,
		.peer = peer,
		.name = name,
		.address = address,
	};
	verbs->retry.expired = retry;
	pvr_fail(&verbs->error, "not connected yet");
}

static void back_off(struct pvr_verbs_peer *verbs)
{
	verbs->backoff = verbs->backoff ? 2 * verbs->backoff : BACKOFF_FIRST;
	if (verbs->backoff > BACKOFF_MAX)
		verbs->backoff = BACKOFF_MAX;
	if (verbs->wanted && !verbs->net->ending)
		pvr_loop_timer_arm(verbs->net->env.loop, &verbs->retry, verbs->backoff);
}

static void fill_hello(const struct pvr_verbs_peer *verbs, const struct pvr_verbs *qp,
		       struct pvr_hello *hello)
{
	const struct pvr_net *net = verbs->net;

	*hello = (struct pvr_hello){
		.version_min = PVR_FRAME_VERSION,
		.version_max = PVR_FRAME_VERSION,
		.instance = net->instance,
		.features = PVR_HELLO_F_RDMA | PVR_HELLO_F_VERBS | pvr_net_frame_features(net) |
			    (pvr_verbs_has_rndv(qp) ? PVR_HELLO_F_RNDV : 0),
		.chunk = PVR_HELLO_CHUNK,
		.count = 1,
		.keepalive_ms = net->settings.keepalive * 1000,
	};
	strcpy(hello->name, net->settings.name);
}

/* Takes ownership of the queue pair. */
static bool start_conn(struct pvr_verbs_peer *verbs, struct pvr_conn *conn, struct pvr_verbs *qp,
		       struct pvr_error *err)
{
	struct pvr_hello hello;
	bool ok;

	fill_hello(verbs, qp, &hello);
	conn->peer = verbs->peer;
	conn->verbs_peer = verbs;
	ok = pvr_conn_begin(conn, verbs->name, &hello, err);
	pvr_conn_add_verbs(conn, qp);
	if (ok)
		verbs->conn = conn;
	else
		pvr_conn_destroy(conn);
	return ok;
}

/* Creates the queue pair first: without one, the peer need not be contacted. */
static bool start(struct pvr_verbs_peer *verbs, struct pvr_error *err)
{
	struct pvr_address local;
	struct pvr_conn *conn = NULL;
	struct pvr_verbs *qp;
	int fd;

	if (!pvr_socket_local(verbs->address, &local, err))
		return false;
	qp = pvr_verbs_create(verbs->net->nics, &local, verbs->expose, err);
	if (!qp)
		return false;
	fd = pvr_socket_dial(verbs->address, 0, err);
	if (fd >= 0) {
		conn = pvr_conn_create(verbs->net, fd, verbs->address, &verbs_ops);
		if (!conn)
			pvr_fail(err, "out of memory");
	}
	if (conn)
		return start_conn(verbs, conn, qp, err);
	pvr_verbs_destroy(qp);
	return false;
}

static void dial(struct pvr_verbs_peer *verbs)
{
	if (!verbs->wanted || verbs->conn || verbs->retry.loop || verbs->net->ending)
		return;
	if (!start(verbs, &verbs->error))
		back_off(verbs);
}

static void retry(struct pvr_loop_timer *timer)
{
	dial((struct pvr_verbs_peer *)((char *)timer - offsetof(struct pvr_verbs_peer, retry)));
}

/* ----------------------------------------------------------------- the handshake */

static void failed(struct pvr_conn *conn, const struct pvr_error *why)
{
	struct pvr_verbs_peer *verbs = conn->verbs_peer;

	verbs->error = *why;
	verbs->conn = NULL;
	pvr_conn_destroy(conn);
	back_off(verbs);
}

bool pvr_verbs_peer_connect(struct pvr_verbs_peer *verbs, struct pvr_verbs *qp,
			    const union pvr_any_frame *theirs, struct pvr_error *err)
{
	uint64_t begin = pvr_loop_now(), end;
	bool ok;

	if (begin < verbs->not_before)
		return pvr_fail(
			err,
			"the last queue pair took long to connect: the next attempt is delayed");
	ok = pvr_verbs_connect(qp, theirs, err);
	end = pvr_loop_now();
	if (end - begin > SLOW_NS)
		verbs->not_before = end + SLOW_PAUSE * (end - begin);
	return ok;
}

static bool connect_qp(struct pvr_conn *conn, struct pvr_error *why)
{
	const union pvr_any_frame *theirs = pvr_handshake_queue_pair(&conn->handshake);

	if (!pvr_peers_check_answer(conn, why))
		return false;
	if (!theirs)
		return pvr_fail(why, "it does not use RDMA NICs");
	return pvr_verbs_peer_connect(conn->verbs_peer, conn->verbs, theirs, why);
}

static void use(struct pvr_conn *conn)
{
	struct pvr_verbs_peer *verbs = conn->verbs_peer;
	struct pvr_error why;

	if (!pvr_peers_trust(conn, verbs->name, &why)) {
		failed(conn, &why);
		return;
	}
	pvr_conn_release(conn);
	pvr_conn_switch(conn);
	pvr_peers_agree(conn);
	pvr_net_log_host(verbs->net, &verbs->ratelimit, verbs->name, PVR_LOG_INFO,
			 "connected to host %s by the RDMA NIC %s, which does not encrypt",
			 verbs->name, pvr_verbs_device(conn->verbs));
	pvr_req_conn_up(conn->host, PVR_PIPE_VERBS, conn->ours.index, pvr_conn_stream_ops(conn),
			conn, &conn->limits);
	pvr_traffic_give(conn);
}

/* Checks whether the probe has arrived. */
static void poll_peer(void *opaque)
{
	struct pvr_conn *conn = opaque;
	int proved = pvr_verbs_is_proved(conn->verbs);
	struct pvr_error why;

	if (proved > 0) {
		use(conn);
	} else if (proved < 0) {
		pvr_fail(&why, "the RDMA network does not reach it: %s",
			 pvr_verbs_error(conn->verbs)[0] ? pvr_verbs_error(conn->verbs)
							 : strerror(-proved));
		failed(conn, &why);
	}
}

/*
 * Guest traffic must not wait for a NIC that does not reach the peer. So the queue pair
 * is used only after a PING has arrived. The reply to PING comes later.
 */
static bool probe(struct pvr_conn *conn, struct pvr_error *why)
{
	struct pvr_loop *loop = conn->net->env.loop;
	const struct pvr_frame_ping ping = {
		.frame = { .size = htole32(sizeof(ping)), .type = PVR_FRAME_PING },
	};
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)&ping, .iov_len = sizeof(ping) };

	pvr_conn_release(conn);
	if (pvr_verbs_watch(conn->verbs, loop, poll_peer, conn) < 0)
		return pvr_fail(why, "out of memory");
	pvr_loop_timer_arm(loop, &conn->timer, PROBE_NS);
	if (pvr_verbs_send(conn->verbs, &iov, 1) != sizeof(ping))
		return pvr_fail(why, "the RDMA NIC sends nothing");
	return true;
}

static void done(struct pvr_conn *conn)
{
	struct pvr_error why;

	if (connect_qp(conn, &why) && probe(conn, &why))
		poll_peer(conn);
	else
		failed(conn, &why);
}

static void hello(struct pvr_conn *conn)
{
	/* Only an incoming connection receives a HELLO to answer. */
}

static const struct pvr_conn_ops verbs_ops = {
	.hello = hello,
	.done = done,
	.failed = failed,
};

/* ----------------------------------------------------------- calls of peers */

void pvr_verbs_peer_request(struct pvr_verbs_peer *verbs, uint32_t features)
{
	if (!verbs->net->nics)
		verbs->error = verbs->net->no_nics;
	else if (!(features & PVR_HELLO_F_RDMA))
		pvr_fail(&verbs->error, "it does not use RDMA NICs");
	verbs->wanted = verbs->net->nics && features & PVR_HELLO_F_RDMA;
	verbs->expose = features & PVR_HELLO_F_RNDV;
	dial(verbs);
}

void pvr_verbs_peer_forget(struct pvr_verbs_peer *verbs)
{
	struct pvr_conn *conn = verbs->conn;

	verbs->wanted = false;
	verbs->backoff = 0;
	pvr_loop_timer_disarm(&verbs->retry);
	if (!conn || conn->up_since)
		return;
	verbs->conn = NULL;
	pvr_conn_destroy(conn);
}

void pvr_verbs_peer_close(struct pvr_verbs_peer *verbs, const char *why)
{
	pvr_verbs_peer_forget(verbs);
	if (verbs->conn)
		pvr_traffic_close(verbs->conn, PVR_CLOSE_DONE, why);
}

void pvr_verbs_peer_changed(struct pvr_verbs_peer *verbs, const char *what)
{
	struct pvr_conn *conn = verbs->conn;

	verbs->backoff = 0;
	if (conn && conn->up_since && !pvr_verbs_works(conn->verbs))
		pvr_traffic_close(conn, PVR_CLOSE_DEVICE, what);
	if (conn)
		return;
	pvr_loop_timer_disarm(&verbs->retry);
	dial(verbs);
}

void pvr_verbs_peer_lost(struct pvr_conn *conn)
{
	struct pvr_verbs_peer *verbs = conn->verbs_peer;
	bool good = pvr_loop_now() - conn->up_since > GOOD_NS;

	verbs->conn = NULL;
	verbs->error = conn->why;
	pvr_net_log_host(verbs->net, &verbs->ratelimit, verbs->name, PVR_LOG_INFO,
			 "the connection to host %s by the RDMA NIC has ended: %s; TCP is used now",
			 verbs->name, conn->why.text);
	pvr_conn_destroy(conn);
	if (good)
		verbs->backoff = 0;
	back_off(verbs);
}

const char *pvr_verbs_peer_device(const struct pvr_verbs_peer *verbs)
{
	return verbs->conn && verbs->conn->up_since ? pvr_verbs_device(verbs->conn->verbs) : NULL;
}

bool pvr_verbs_peer_has_rndv(const struct pvr_verbs_peer *verbs, struct pvr_error *why)
{
	const struct pvr_conn *conn = verbs->conn;

	pvr_fail(why, "%s", "");
	if (!conn || !conn->up_since)
		return false;
	if (pvr_conn_has_rndv(conn)) {
		pvr_verbs_zerocopy_error(conn->verbs, why);
		return true;
	}
	if (!verbs->net->settings.rdma_zerocopy)
		return pvr_fail(why, "--rdma-zerocopy is off");
	if (!verbs->expose)
		return pvr_fail(why, "the other host does not expose memory to NICs");
	if (!(conn->ours.features & PVR_HELLO_F_RNDV))
		return pvr_fail(why, "the RDMA NIC does no RDMA READ");
	return pvr_fail(why, "the other host's RDMA NIC does no RDMA READ");
}
