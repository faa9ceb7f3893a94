/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One connection to another daemon.
 *
 * DOC: whose it is
 *
 * The first thread's until the handshake is done, and again after its end; in between the
 * worker's, see net.h. A work item passes it on. The first thread keeps it in its lists
 * all the time, and reads what is marked so.
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

/* What becomes of a handshake; the connection may be destroyed by each of them. */
struct pvr_conn_ops {
	/* It has been dialled, and @conn->theirs has come: answer or refuse. */
	void (*hello)(struct pvr_conn *conn);
	void (*done)(struct pvr_conn *conn);
	/* Destroys it. */
	void (*failed)(struct pvr_conn *conn, const struct pvr_error *why);
};

struct pvr_conn {
	struct pvr_source source; /* of the thread that has it */
	struct pvr_loop_timer timer; /* the handshake's patience; the end of a stall */
	struct pvr_net *net;
	uint64_t id;
	bool outgoing;
	enum pvr_pipe_kind kind;
	struct pvr_address address;
	struct pvr_stream stream; /* counters: any thread */
	struct pvr_handshake handshake;
	struct pvr_hello ours, theirs;
	struct pvr_verbs *verbs; /* PVR_PIPE_VERBS: its queue pair */
	const struct pvr_conn_ops *ops;

	/* The first thread's. */
	struct pvr_peer *peer;
	struct pvr_verbs_peer *verbs_peer; /* outgoing PVR_PIPE_VERBS: whose it is */
	uint64_t up_since; /* 0: not up */
	bool closing; /* the worker has been told */
	LIST_ENTRY(pvr_conn) link;

	/* From here on it is up. */
	struct pvr_remote *remote;
	struct pvr_in *in; /* incoming */
	struct pvr_stream_limits limits;
	unsigned int worker;
	struct pvr_work work; /* changes hands */
	struct pvr_work idle_work; /* tells the first thread that nobody uses it */

	/* The worker's. */
	LIST_ENTRY(pvr_conn) traffic_link;
	uint64_t heard, rx_seen, tx_idle, pings, tick_ms;
	unsigned int stalls; /* in a row */
	bool dry; /* nothing to read until the socket says so */

	/* Of any thread. */
	bool watched; /* by the worker's loop */
	bool wants_output;
	bool idle_sent; /* the first thread has idle_work */
	uint64_t used; /* when something but PING was sent */

	/* Why it ended; for the first thread, with the work item. */
	struct pvr_error why;
};

/* A queue pair for this connection, which owns it now: a frame of the handshake tells of it. */
void pvr_conn_add_verbs(struct pvr_conn *conn, struct pvr_verbs *verbs);
/* The handshake is done: frames go by the queue pair, if there is one. */
void pvr_conn_switch(struct pvr_conn *conn);

/* A socket that is dialled or accepted already; taken in any case. NULL: no memory. */
struct pvr_conn *pvr_conn_create(struct pvr_net *net, int fd, const struct pvr_address *address,
				 const struct pvr_conn_ops *ops);
/* Set up TLS, watch the socket, begin. @host: who is dialled; NULL: it dialled us. */
bool pvr_conn_begin(struct pvr_conn *conn, const char *host, const struct pvr_hello *hello,
		    struct pvr_error *err);
/* An answer to HELLO. May end in done() or failed(). */
void pvr_conn_answer(struct pvr_conn *conn, const struct pvr_hello *hello);
/* BYE, as far as it gets. */
void pvr_conn_bye(struct pvr_conn *conn, enum pvr_bye reason, const char *text);
/* No loop watches it any more. */
void pvr_conn_release(struct pvr_conn *conn);
void pvr_conn_destroy(struct pvr_conn *conn);

/* After the handshake: payload may be lent, both ways. */
bool pvr_conn_lends(const struct pvr_conn *conn);
/* The stream as the engine uses it; opaque is the connection. */
const struct pvr_stream_ops *pvr_conn_stream_ops(const struct pvr_conn *conn);

#endif /* PVR_NET_CONN_H */
