// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The connections of one worker that are up: input, output, keep-alive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "net/state.h"

/*
 * Edge-triggered: no input is read while responses cannot be sent or a GID is unknown,
 * and EPOLLOUT is rarely needed. To request EPOLLOUT, the socket is modified, which
 * reports earlier events again.
 */
#define TRAFFIC_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
/* Retry delay of a stall; doubled each time. */
#define STALL_FIRST_NS (PVR_MSEC / 8)
#define STALL_MAX_NS (10 * PVR_MSEC)
/* PINGs per keep-alive time, so that one or two may be late. */
#define PINGS_PER_PATIENCE 3

struct close_request {
	struct pvr_work work;
	struct pvr_traffic *traffic;
	struct pvr_conn *conn; /* may be freed: compare the id */
	uint64_t id;
	enum pvr_close_reason reason;
	char text[120];
};

static struct pvr_traffic *traffic_of(const struct pvr_conn *conn)
{
	return &conn->net->traffic[conn->worker];
}

static struct pvr_conn *conn_of_work(struct pvr_work *work)
{
	return (struct pvr_conn *)((char *)work - offsetof(struct pvr_conn, work));
}

/* ------------------------------------------------------------------------- end */

static void run_lost(struct pvr_work *work)
{
	pvr_peer_gone_lost(conn_of_work(work));
}

static void send_close(struct pvr_conn *conn, enum pvr_close_reason reason, const char *why)
{
	if (conn->outgoing)
		pvr_req_conn_send_close(conn->host, conn->kind, conn->ours.index, reason, why);
	else if (conn->in)
		pvr_rsp_conn_send_close(conn->in, reason, why);
}

/* The connection must not be used afterwards. */
static void end(struct pvr_conn *conn, const char *why)
{
	if (conn->outgoing)
		pvr_req_conn_down(conn->host, conn->kind, conn->ours.index);
	else if (conn->in)
		pvr_rsp_conn_destroy(conn->in);
	conn->in = NULL;
	__atomic_store_n(&conn->watched, false, __ATOMIC_RELAXED);
	pvr_conn_release(conn);
	LIST_REMOVE(conn, traffic_link);
	pvr_fail(&conn->why, "%s", why);
	conn->work.run = run_lost;
	pvr_workq_queue(&conn->net->workq, &conn->work);
}

/* The stream failed: the socket may have an errno. */
static void end_broken(struct pvr_conn *conn)
{
	int error = pvr_socket_error(conn->stream.fd);

	if (conn->verbs && pvr_verbs_error(conn->verbs)[0])
		end(conn, pvr_verbs_error(conn->verbs));
	else
		end(conn, error ? strerror(error) : "it has closed the connection");
}

/* --------------------------------------------------------------- input, output */

static void stall_over(struct pvr_loop_timer *timer)
{
	struct pvr_conn *conn =
		(struct pvr_conn *)((char *)timer - offsetof(struct pvr_conn, timer));

	conn->source.ready(&conn->source, 0);
}

static void stall(struct pvr_conn *conn)
{
	uint64_t ns = STALL_FIRST_NS << (conn->stalls < 8 ? conn->stalls : 8);

	conn->stalls++;
	pvr_loop_timer_arm(traffic_of(conn)->loop, &conn->timer,
			   ns < STALL_MAX_NS ? ns : STALL_MAX_NS);
}

static void input(struct pvr_conn *conn)
{
	uint64_t before = conn->stream.rx_bytes;
	struct pvr_input_error err = { .reason = -1 };
	enum pvr_input input;

	if (conn->outgoing)
		input = pvr_req_conn_input(conn->host, conn->kind, conn->ours.index, &err);
	else
		input = pvr_rsp_conn_input(conn->in, &err);
	if (conn->stream.rx_bytes != before)
		pvr_loop_worked(traffic_of(conn)->loop);
	switch (input) {
	case PVR_INPUT_IDLE:
	case PVR_INPUT_OUTPUT:
		break;
	case PVR_INPUT_MORE:
		pvr_loop_again(&conn->source);
		break;
	case PVR_INPUT_STALLED:
		stall(conn);
		return;
	case PVR_INPUT_BROKEN:
		if (conn->verbs && pvr_verbs_error(conn->verbs)[0])
			end_broken(conn);
		else if (conn->stream.tls && pvr_tls_error(conn->stream.tls)[0])
			end(conn, pvr_tls_error(conn->stream.tls));
		else
			end(conn, err.why);
		return;
	}
	conn->stalls = 0;
}

/* Return: false if the connection has ended. */
static bool output(struct pvr_conn *conn)
{
	bool ok = pvr_stream_flush(&conn->stream);

	if (ok && !pvr_stream_is_flushed(&conn->stream)) {
		pvr_traffic_want_output(conn);
		return true;
	}
	if (ok && conn->outgoing)
		ok = pvr_req_conn_output(conn->host, conn->kind, conn->ours.index);
	else if (ok)
		ok = pvr_rsp_conn_output(conn->in);
	if (!ok)
		end_broken(conn);
	else
		pvr_loop_worked(traffic_of(conn)->loop);
	return ok;
}

/*
 * To request EPOLLOUT reports pending input again. A connection that cannot send its
 * responses leaves input unread: then output is not retried.
 */
static bool may_output(struct pvr_conn *conn, uint32_t events)
{
	bool only_input = events == EPOLLIN && !conn->verbs; /* a NIC raises no other events */

	return !only_input && __atomic_exchange_n(&conn->wants_output, false, __ATOMIC_SEQ_CST);
}

static void traffic_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_conn *conn = (struct pvr_conn *)source;

	if (events & ~(uint32_t)EPOLLOUT)
		conn->dry = false;
	if (events && conn->verbs && !pvr_stream_check(&conn->stream)) {
		end_broken(conn);
		return;
	}
	if (may_output(conn, events) && !output(conn))
		return;
	input(conn);
}

void pvr_traffic_want_output(struct pvr_conn *conn)
{
	__atomic_store_n(&conn->wants_output, true, __ATOMIC_SEQ_CST);
	if (conn->verbs) {
		pvr_verbs_want_output(conn->verbs);
		return;
	}
	/* Otherwise adopt() checks the flag. */
	if (__atomic_load_n(&conn->watched, __ATOMIC_SEQ_CST))
		pvr_loop_modify(&conn->source, TRAFFIC_EVENTS);
}

/* ------------------------------------------------------------------ keep-alive */

static void run_idle(struct pvr_work *work)
{
	struct pvr_conn *conn =
		(struct pvr_conn *)((char *)work - offsetof(struct pvr_conn, idle_work));

	__atomic_store_n(&conn->idle_sent, false, __ATOMIC_RELEASE);
	pvr_peer_gone_idle(conn);
}

/* Notifies the first thread if only PINGs were sent. */
static void check_use(struct pvr_conn *conn, uint64_t now)
{
	uint64_t sent = __atomic_load_n(&conn->stream.tx_bytes, __ATOMIC_RELAXED);
	uint64_t pings = conn->pings * sizeof(struct pvr_frame_ping);

	if (sent > conn->tx_idle + pings) {
		conn->tx_idle = sent;
		conn->pings = 0;
		__atomic_store_n(&conn->used, now, __ATOMIC_RELAXED);
	} else if (now - conn->used > conn->net->settings.idle_timeout * PVR_SEC &&
		   !__atomic_exchange_n(&conn->idle_sent, true, __ATOMIC_ACQUIRE)) {
		conn->idle_work.run = run_idle;
		pvr_workq_queue(&conn->net->workq, &conn->idle_work);
	}
}

static void ping(struct pvr_conn *conn)
{
	conn->pings++;
	pvr_req_conn_ping(conn->host, conn->kind, conn->ours.index);
}

static void tick_conn(struct pvr_conn *conn, uint64_t now)
{
	uint64_t received = __atomic_load_n(&conn->stream.rx_bytes, __ATOMIC_RELAXED);
	char why[64];

	if (received != conn->rx_seen) {
		conn->rx_seen = received;
		conn->heard = now;
	} else if (now - conn->heard > conn->net->settings.keepalive * PVR_SEC) {
		snprintf(why, sizeof(why), "it was silent for %u s", conn->net->settings.keepalive);
		end(conn, why);
		return;
	}
	if (conn->stream.tls && pvr_tls_is_expired(conn->stream.tls)) {
		send_close(conn, PVR_CLOSE_IDENTITY, "the certificate has expired");
		end(conn, "its certificate has expired");
		return;
	}
	if (conn->stream.tls)
		pvr_tls_rest(conn->stream.tls);
	if (conn->outgoing) {
		check_use(conn, now);
		ping(conn);
	}
}

static void arm_tick(struct pvr_traffic *traffic)
{
	const struct pvr_conn *conn;
	uint64_t ms = UINT64_MAX;

	LIST_FOREACH(conn, &traffic->conns, traffic_link)
		ms = conn->tick_ms < ms ? conn->tick_ms : ms;
	if (ms != UINT64_MAX)
		pvr_loop_timer_arm(traffic->loop, &traffic->tick, ms * PVR_MSEC);
}

static void tick(struct pvr_loop_timer *timer)
{
	struct pvr_traffic *traffic =
		(struct pvr_traffic *)((char *)timer - offsetof(struct pvr_traffic, tick));
	uint64_t now = pvr_loop_now();
	struct pvr_conn *conn, *next;

	for (conn = LIST_FIRST(&traffic->conns); conn; conn = next) {
		next = LIST_NEXT(conn, traffic_link);
		tick_conn(conn, now);
	}
	arm_tick(traffic);
}

static void start_keepalive(struct pvr_conn *conn)
{
	uint64_t ours = conn->net->settings.keepalive * 1000ull, theirs = conn->theirs.keepalive_ms;

	if (theirs < PVR_KEEPALIVE_MIN_MS)
		theirs = PVR_KEEPALIVE_MIN_MS;
	conn->tick_ms = (theirs < ours ? theirs : ours) / PINGS_PER_PATIENCE;
	conn->heard = pvr_loop_now();
	__atomic_store_n(&conn->used, conn->heard, __ATOMIC_RELAXED);
	if (conn->outgoing)
		ping(conn);
	arm_tick(traffic_of(conn));
}

/* ----------------------------------------------------------------- handover */

static void verbs_ready(void *opaque)
{
	struct pvr_conn *conn = opaque;

	conn->source.ready(&conn->source, 0);
}

static bool watch(struct pvr_conn *conn)
{
	struct pvr_loop *loop = traffic_of(conn)->loop;

	return pvr_loop_add(loop, &conn->source, TRAFFIC_EVENTS) >= 0 &&
	       (!conn->verbs || pvr_verbs_watch(conn->verbs, loop, verbs_ready, conn) >= 0);
}

static void run_adopt(struct pvr_work *work)
{
	struct pvr_conn *conn = conn_of_work(work);
	struct pvr_traffic *traffic = traffic_of(conn);

	LIST_INSERT_HEAD(&traffic->conns, conn, traffic_link);
	conn->source.ready = traffic_ready;
	conn->timer.expired = stall_over;
	if (!conn->outgoing)
		conn->in = pvr_rsp_conn_create(conn->host, conn->kind, conn->worker,
					       pvr_conn_stream_ops(conn), conn, &conn->limits);
	if ((!conn->outgoing && !conn->in) || !watch(conn)) {
		send_close(conn, PVR_CLOSE_LIMIT, "out of memory");
		end(conn, "out of memory");
		return;
	}
	__atomic_store_n(&conn->watched, true, __ATOMIC_SEQ_CST);
	/* TLS may have read data already, and output may have been requested before. */
	pvr_loop_again(&conn->source);
	start_keepalive(conn);
}

void pvr_traffic_give(struct pvr_conn *conn)
{
	conn->work.run = run_adopt;
	pvr_workq_queue(&traffic_of(conn)->workq, &conn->work);
}

static bool has(const struct pvr_traffic *traffic, const struct close_request *request)
{
	const struct pvr_conn *conn;

	LIST_FOREACH(conn, &traffic->conns, traffic_link) {
		if (conn == request->conn && conn->id == request->id)
			return true;
	}
	return false;
}

static void run_close(struct pvr_work *work)
{
	struct close_request *request = (struct close_request *)work;

	if (has(request->traffic, request)) {
		send_close(request->conn, request->reason, request->text);
		end(request->conn, request->text);
	}
	free(request);
}

void pvr_traffic_close(struct pvr_conn *conn, enum pvr_close_reason reason, const char *text)
{
	struct close_request *request;

	if (conn->closing)
		return;
	request = calloc(1, sizeof(*request));
	if (!request)
		return; /* keep-alive or the peer will end it */
	conn->closing = true;
	request->work.run = run_close;
	request->traffic = traffic_of(conn);
	request->conn = conn;
	request->id = conn->id;
	request->reason = reason;
	snprintf(request->text, sizeof(request->text), "%s", text);
	pvr_workq_queue(&request->traffic->workq, &request->work);
}

/* ------------------------------------------------------------------ life cycle */

int pvr_traffic_init(struct pvr_traffic *traffic, struct pvr_net *net, struct pvr_loop *loop)
{
	traffic->net = net;
	traffic->loop = loop;
	traffic->tick.expired = tick;
	LIST_INIT(&traffic->conns);
	return pvr_workq_init(&traffic->workq, loop);
}

void pvr_traffic_stop(struct pvr_traffic *traffic)
{
	struct pvr_conn *conn;

	pvr_workq_drain(&traffic->workq);
	while ((conn = LIST_FIRST(&traffic->conns))) {
		send_close(conn, PVR_CLOSE_DONE, "this daemon ends");
		end(conn, "this daemon ends");
	}
}

void pvr_traffic_exit(struct pvr_traffic *traffic)
{
	pvr_loop_timer_disarm(&traffic->tick);
	pvr_workq_exit(&traffic->workq);
}
