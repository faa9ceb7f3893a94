// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* One connection to another daemon: its handshake, and its stream for the engine. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/state.h"

/* From connect() or accept() to the end of the handshake. */
#define CONN_PATIENCE (5 * PVR_SEC)
#define HANDSHAKE_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static_assert(offsetof(struct pvr_conn, source) == 0, "handshake_ready() casts");

static void run(struct pvr_conn *conn)
{
	struct pvr_error why;

	switch (pvr_handshake_run(&conn->handshake, &conn->stream, &why)) {
	case PVR_HANDSHAKE_HELLO:
		pvr_hello_read(&conn->handshake.in[0], &conn->theirs);
		conn->ops->hello(conn);
		break;
	case PVR_HANDSHAKE_DONE:
		pvr_hello_read(&conn->handshake.in[0], &conn->theirs);
		pvr_loop_timer_disarm(&conn->timer);
		conn->ops->done(conn);
		break;
	case PVR_HANDSHAKE_FAILED:
		conn->ops->failed(conn, &why);
		break;
	default:
		if (pvr_stream_has_more(&conn->stream))
			pvr_loop_again(&conn->source);
		break;
	}
}

static void handshake_ready(struct pvr_source *source, uint32_t events)
{
	run((struct pvr_conn *)source);
}

static void handshake_expired(struct pvr_loop_timer *timer)
{
	struct pvr_conn *conn =
		(struct pvr_conn *)((char *)timer - offsetof(struct pvr_conn, timer));
	struct pvr_error why;

	pvr_fail(&why, "no %s within %llu s", pvr_handshake_step_name(conn->handshake.step),
		 CONN_PATIENCE / PVR_SEC);
	conn->ops->failed(conn, &why);
}

struct pvr_conn *pvr_conn_create(struct pvr_net *net, int fd, const struct pvr_address *address,
				 const struct pvr_conn_ops *ops)
{
	struct pvr_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->net = net;
	conn->id = ++net->last_id;
	conn->ops = ops;
	conn->address = *address;
	conn->stream.fd = conn->source.fd = fd;
	conn->source.ready = handshake_ready;
	conn->timer.expired = handshake_expired;
	return conn;
}

bool pvr_conn_begin(struct pvr_conn *conn, const char *host, const struct pvr_hello *hello,
		    struct pvr_error *err)
{
	struct pvr_net *net = conn->net;

	conn->outgoing = hello != NULL;
	if (hello)
		conn->ours = *hello;
	pvr_handshake_init(&conn->handshake, hello);
	pvr_socket_tune(conn->stream.fd, net->settings.keepalive * 1000, net->settings.congestion);
	if (net->tls) {
		conn->stream.tls = pvr_tls_create(net->tls, conn->stream.fd, host);
		if (!conn->stream.tls)
			return pvr_fail(err, "out of memory");
	}
	if (pvr_loop_add(net->env.loop, &conn->source, HANDSHAKE_EVENTS) < 0)
		return pvr_fail(err, "cannot watch a socket: %s", strerror(errno));
	pvr_loop_timer_arm(net->env.loop, &conn->timer, CONN_PATIENCE);
	return true;
}

void pvr_conn_answer(struct pvr_conn *conn, const struct pvr_hello *hello)
{
	conn->ours = *hello;
	pvr_handshake_answer(&conn->handshake, hello);
	run(conn);
}

void pvr_conn_send_close(struct pvr_conn *conn, enum pvr_close_reason reason, const char *text)
{
	union pvr_any_frame frame;
	struct iovec iov = { .iov_base = &frame, .iov_len = sizeof(frame.close) };

	pvr_frame_fill_close(&frame, reason, text);
	if (pvr_stream_send(&conn->stream, &iov, 1) > 0)
		pvr_stream_flush(&conn->stream);
}

void pvr_conn_add_verbs(struct pvr_conn *conn, struct pvr_verbs *verbs)
{
	union pvr_any_frame frame;

	conn->verbs = verbs;
	conn->kind = PVR_PIPE_VERBS;
	pvr_verbs_fill(verbs, &frame);
	pvr_handshake_add(&conn->handshake, &frame);
}

void pvr_conn_switch(struct pvr_conn *conn)
{
	conn->stream.verbs = conn->verbs;
}

void pvr_conn_release(struct pvr_conn *conn)
{
	if (conn->verbs)
		pvr_verbs_unwatch(conn->verbs);
	pvr_loop_timer_disarm(&conn->timer);
	pvr_loop_remove(&conn->source);
}

void pvr_conn_destroy(struct pvr_conn *conn)
{
	pvr_conn_release(conn);
	conn->stream.verbs = NULL;
	if (conn->verbs)
		pvr_verbs_destroy(conn->verbs);
	pvr_stream_close(&conn->stream);
	free(conn);
}

/* --------------------------------------------------------------- stream ops */

static ssize_t conn_send(void *opaque, const struct iovec *iov, int count)
{
	struct pvr_conn *conn = opaque;
	ssize_t n = pvr_stream_send(&conn->stream, iov, count);

	/* Success for the engine, but TLS records are still buffered here. */
	if (n >= 0 && !pvr_stream_is_flushed(&conn->stream))
		pvr_traffic_want_output(conn);
	return n;
}

static ssize_t conn_recv(void *opaque, const struct iovec *iov, int count)
{
	struct pvr_conn *conn = opaque;
	ssize_t n;

	if (conn->dry)
		return 0;
	n = pvr_stream_recv(&conn->stream, iov, count);
	if (pvr_stream_has_more(&conn->stream))
		pvr_loop_again(&conn->source);
	/*
	 * A short read has emptied the socket, and later data raises an event: no further
	 * system call is needed. Exceptions: several iovecs are guest memory and can end a
	 * call early; TLS reads from the socket itself; a NIC raises an event only after an
	 * empty poll.
	 */
	conn->dry = !conn->stream.tls && !conn->stream.verbs && count == 1 && n > 0 &&
		    (size_t)n < iov->iov_len;
	return n;
}

static void conn_want_output(void *opaque)
{
	pvr_traffic_want_output(opaque);
}

static void *conn_expose(void *opaque, const struct iovec *iov, int count,
			 struct pvr_rndv_seg *part)
{
	const struct pvr_conn *conn = opaque;

	return pvr_verbs_expose(conn->verbs, iov, count, part);
}

static void conn_revoke(void *opaque, void *rndv)
{
	const struct pvr_conn *conn = opaque;

	pvr_verbs_revoke(conn->verbs, rndv);
}

static int conn_read(void *opaque, const struct pvr_rndv_seg *part, int parts,
		     const struct iovec *iov, int count)
{
	const struct pvr_conn *conn = opaque;

	return pvr_verbs_read(conn->verbs, part, parts, iov, count);
}

static int conn_rdma_read_poll(void *opaque, uint8_t **data)
{
	const struct pvr_conn *conn = opaque;

	return pvr_verbs_rdma_read_poll(conn->verbs, data);
}

static void conn_rdma_read_cancel(void *opaque)
{
	const struct pvr_conn *conn = opaque;

	pvr_verbs_rdma_read_cancel(conn->verbs);
}

static const struct pvr_stream_ops stream_ops = {
	.send = conn_send,
	.recv = conn_recv,
	.want_output = conn_want_output,
};

static const struct pvr_stream_ops rndv_ops = {
	.send = conn_send,
	.recv = conn_recv,
	.want_output = conn_want_output,
	.expose = conn_expose,
	.revoke = conn_revoke,
	.read = conn_read,
	.rdma_read_poll = conn_rdma_read_poll,
	.rdma_read_cancel = conn_rdma_read_cancel,
};

bool pvr_conn_has_rndv(const struct pvr_conn *conn)
{
	return conn->verbs && conn->ours.features & conn->theirs.features & PVR_HELLO_F_RNDV &&
	       pvr_verbs_has_rndv(conn->verbs);
}

const struct pvr_stream_ops *pvr_conn_stream_ops(const struct pvr_conn *conn)
{
	return pvr_conn_has_rndv(conn) ? &rndv_ops : &stream_ops;
}
