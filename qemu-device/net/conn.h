/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One connection to another daemon.
 *
 * DOC: owner of a connection
 *
 * The first thread owns a connection until its handshake is done, and again after its
 * end. In between a worker owns it, see net.h. A work item passes it on. It stays in the
 * lists of the first thread, which always reads the members marked so.
 */
#ifndef PVR_NET_CONN_H
#define PVR_NET_CONN_H

#include <sys/queue.h>

#include "base/address.h"
#include "base/loop.h"
#include "base/workq.h"
#include "net/handshake.h"
#include "net/stream.h"
#include "pipe.h"

struct pvr_net;
struct pvr_peer;
struct pvr_verbs;
struct pvr_verbs_peer;
struct pvr_conn;

/* Results of a handshake. Each may destroy the connection. */
struct pvr_conn_ops {
	/* Incoming: @conn->theirs has arrived. Answer or refuse it. */
	void (*hello)(struct pvr_conn *conn);
	void (*done)(struct pvr_conn *conn);
	/* Must destroy the connection. */
	void (*failed)(struct pvr_conn *conn, const struct pvr_error *why);
};

struct pvr_conn {
	struct pvr_source source; /* in the loop of the owning thread */
	struct pvr_loop_timer timer; /* timeout of the handshake; end of a stall */
	struct pvr_net *net;
	uint64_t id;
	bool outgoing;
	enum pvr_pipe_kind kind;
	struct pvr_address address;
	struct pvr_stream stream; /* its counters are read by any thread */
	struct pvr_handshake handshake;
	struct pvr_hello ours, theirs;
	struct pvr_verbs *verbs; /* PVR_PIPE_VERBS: the queue pair */
	const struct pvr_conn_ops *ops;

	/* Owned by the first thread. */
	struct pvr_peer *peer;
	struct pvr_verbs_peer *verbs_peer; /* outgoing PVR_PIPE_VERBS: the owner */
	uint64_t up_since; /* 0: not up */
	bool closing; /* pvr_traffic_close() was called */
	LIST_ENTRY(pvr_conn) link;

	/* Set when the connection comes up. */
	struct pvr_host *host;
	struct pvr_rsp_conn *in; /* incoming */
	struct pvr_stream_limits limits;
	unsigned int worker;
	struct pvr_work work; /* passes the connection on */
	struct pvr_work idle_work; /* reports the connection as unused to the first thread */

	/* Owned by the worker. */
	LIST_ENTRY(pvr_conn) traffic_link;
	uint64_t heard, rx_seen, tx_idle, pings, tick_ms;
	unsigned int stalls; /* consecutive */
	bool dry; /* nothing to read until the next event */

	/* Read and written by any thread. */
	bool watched; /* in the worker's loop */
	bool wants_output;
	bool idle_sent; /* idle_work is queued */
	uint64_t used; /* when a frame other than PING was last sent */

	/* Reason of the end; written before the work item passes the connection back. */
	struct pvr_error why;
};

/*
 * Adds a queue pair, which the connection owns from now on and the handshake announces.
 */
void pvr_conn_add_verbs(struct pvr_conn *conn, struct pvr_verbs *verbs);
/* After the handshake: sends frames through the queue pair, if there is one. */
void pvr_conn_switch(struct pvr_conn *conn);

/*
 * Takes ownership of @fd, a connecting or accepted socket, also on failure. NULL without
 * memory.
 */
struct pvr_conn *pvr_conn_create(struct pvr_net *net, int fd, const struct pvr_address *address,
				 const struct pvr_conn_ops *ops);
/* Sets up TLS and starts the handshake. @host: the dialled host; NULL: incoming. */
bool pvr_conn_begin(struct pvr_conn *conn, const char *host, const struct pvr_hello *hello,
		    struct pvr_error *err);
/* Answers HELLO. May call done() or failed(). */
void pvr_conn_answer(struct pvr_conn *conn, const struct pvr_hello *hello);
/* Sends CLOSE, as many bytes as the socket takes without blocking. */
void pvr_conn_send_close(struct pvr_conn *conn, enum pvr_close_reason reason, const char *text);
/* Removes it from its loop. */
void pvr_conn_release(struct pvr_conn *conn);
void pvr_conn_destroy(struct pvr_conn *conn);

/* After the handshake: whether both sides can expose payload to each other's NIC. */
bool pvr_conn_has_rndv(const struct pvr_conn *conn);
/* The ops for the engine; their opaque is the connection. */
const struct pvr_stream_ops *pvr_conn_stream_ops(const struct pvr_conn *conn);

#endif /* PVR_NET_CONN_H */
