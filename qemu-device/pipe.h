/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Adapters of other hosts: what an embedder that can reach them does for the engine.
 *
 * DOC: who does what
 *
 * The engine knows the guests' queues and the frames (docs/pipe-protocol.md); it has no
 * socket. The embedder finds out which host has a GID (its directory), makes connections,
 * proves who is at the other end, exchanges HELLOs, and gives the engine a way to send and
 * receive bytes. An engine without any of this is one host by itself.
 *
 * A host is another daemon. It has connections of two kinds:
 *
 *	outgoing	we have dialled; carries what our guests ask for, and the answers.
 *			A fixed set of slots, each up or down; a queue pair stays with one.
 *	incoming	it has dialled; carries what its guests ask for. Any number that the
 *			embedder admits.
 *
 * When an outgoing connection breaks, the embedder makes another one and says so: what was
 * not acknowledged is sent once more, and no queue pair fails before its own timeout and
 * retries are spent.
 *
 * DOC: threads
 *
 * A connection belongs to one thread, a worker's as a rule: only that calls
 * pvr_req_conn_up(), pvr_req_conn_down(), pvr_req_conn_input() and pvr_req_conn_output(), or pvr_rsp_conn_*(), for
 * it. Everything else here may be called by any thread at any time, but pvr_engine_set_pipe(), which comes before
 * the first adapter. Callbacks must not block, nor call back into the engine; send() and
 * want_output() of an outgoing connection and the pvr_host_ops are called by any thread.
 */
#ifndef PVR_PIPE_H
#define PVR_PIPE_H

#include <sys/types.h>
#include <sys/uio.h>

#include "engine.h"
#include "path/pipe/frame.h"

#define PVR_REQ_CONN_MAX 16 /* outgoing connections per remote and path */
#define PVR_HOST_NAME_MAX 64
#define PVR_DSCP_MAX 63

struct pvr_host;
struct pvr_rsp_conn;

/* How connections get to a host; the greater one is preferred. */
enum pvr_pipe_kind {
	PVR_PIPE_TCP,
	PVR_PIPE_VERBS,
	PVR_PIPE_KINDS,
};

struct pvr_host_ops {
	/* The answer to pvr_req_conn_gid_query(). @gid_type 0: it is not there. */
	void (*located)(void *opaque, struct pvr_host *host, const char *fabric,
			const uint8_t gid[16], uint8_t gid_type);
	/*
	 * Something is to be sent to @host, and no outgoing connection of it is up, perhaps
	 * because it was not used for long, or none of this DSCP, and another one is used
	 * until there is one: make one. Called again and again, by any thread.
	 */
	void (*want)(void *opaque, struct pvr_host *host, uint8_t dscp);
};

/* Before the first adapter is made. The tables stay valid as long as the engine. */
void pvr_engine_set_pipe(struct pvr_engine *engine, const struct pvr_gid_ops *gid_ops,
			 const struct pvr_host_ops *host_ops, void *opaque);

/* -------------------------------------------------------------------- hosts */

/* That of this name; made if it is new, and kept until the engine ends. NULL: no memory. */
struct pvr_host *pvr_host_get(struct pvr_engine *engine, const char *name);
const char *pvr_host_name(const struct pvr_host *host);

/* Memory that can be read by RDMA READ over the connection that has brought this. */
struct pvr_rndv_seg {
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
};

#define PVR_READ_BUFFER (256u << 10)

/*
 * DOC: rendezvous
 *
 * Streams over RDMA NICs can have large payloads read from guest memory to guest memory,
 * by the NICs: the sender's daemon registers what a request may have by its keys, and
 * only that, for RDMA READ by the receiver alone; the receiver checks its own guest's keys,
 * and has its NIC read. Nobody gets a right to write. Who is done says so (RNDV_DONE).
 * A guest that takes memory back before ends the connection, since nothing else stops a
 * NIC for sure (core/ext_dma.h).
 *
 * A way to move bytes. Functions return how many have moved; 0 when none can now; -errno
 * when the connection is broken (-ECONNRESET also at its end), which stays so.
 */
struct pvr_stream_ops {
	/* May take a part. What is taken is copied, or on its way, when this returns. */
	ssize_t (*send)(void *opaque, const struct iovec *iov, int count);
	ssize_t (*recv)(void *opaque, const struct iovec *iov, int count);
	/* Not all was taken: call pvr_req_conn_output() or pvr_rsp_conn_output() when more can be. */
	void (*want_output)(void *opaque);

	/*
	 * All that follows, or NULL: see DOC: rendezvous. Any thread; what is exposed or read into is
	 * guest memory, and may go as soon as revoke() or rdma_read_cancel() has returned.
	 */

	/*
	 * The other side may read this memory; @part, one for each of @count (at most
	 * PVR_FRAME_RNDV_SEGS), says how. NULL: it cannot be.
	 */
	void *(*expose)(void *opaque, const struct iovec *iov, int count,
			struct pvr_rndv_seg *part);
	/* It may not any more, and if it tries, the connection breaks. @rndv is gone then. */
	void (*revoke)(void *opaque, void *rndv);
	/*
	 * Begins to read what the other side has exposed: @parts into @iov, of the same length
	 * together, at most PVR_FRAME_RNDV_SEGS each; or with @count 0 into the stream's own
	 * buffer, PVR_READ_BUFFER bytes at most. One at a time. Return: 0, -ENOMEM if it cannot
	 * be into this memory, or that the connection is broken.
	 */
	int (*read)(void *opaque, const struct pvr_rndv_seg *part, int parts,
		    const struct iovec *iov, int count);
	/*
	 * Return: 1 when it is done, with the stream's own buffer in *data; 0 if not, and there
	 * will be input when it is; -errno: the connection is broken. Once it was stopped, not 0.
	 */
	int (*rdma_read_poll)(void *opaque, uint8_t **data);
	/*
	 * After each read() of @count above 0, when it is done or not to go on: nothing is
	 * written from now on. If it was not done the connection breaks.
	 */
	void (*rdma_read_cancel)(void *opaque);
};

struct pvr_stream_limits {
	uint32_t chunk; /* of the frames that we send: what the HELLOs agreed upon */
	uint8_t dscp; /* outgoing: whose traffic it is for; 0: that of no class */
	bool piggyback_ack; /* both have agreed on PVR_HELLO_F_PIGGYBACK_ACK */
	bool qp_gone; /* the HELLOs agreed upon QP_GONE frames */
};

/* Outgoing connections: @slot below PVR_REQ_CONN_MAX. A host's queue pairs use those that are up. */
void pvr_req_conn_up(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
		     const struct pvr_stream_ops *ops, void *opaque,
		     const struct pvr_stream_limits *limits);
/* Afterwards the ops are not used any more. */
void pvr_req_conn_down(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);

enum pvr_input {
	PVR_INPUT_IDLE, /* all that was there has been taken */
	PVR_INPUT_MORE, /* call again soon; others first */
	PVR_INPUT_OUTPUT, /* nothing is taken before answers get away: after pvr_rsp_conn_output() */
	PVR_INPUT_STALLED, /* an unknown GID: after pvr_engine_set_gid(), or in 10 ms */
	PVR_INPUT_BROKEN, /* close it; why[] says why */
};

struct pvr_input_error {
	int reason; /* enum pvr_close_reason; or -1: the stream is broken, or the other side said CLOSE */
	char why[176];
};

/* The stream has something to read. Bounded work. */
enum pvr_input pvr_req_conn_input(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
				  struct pvr_input_error *err);
/* The stream takes more. Return: false if it is broken. */
bool pvr_req_conn_output(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);
/* PING; the answer shows in pvr_host_stats. */
void pvr_req_conn_ping(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);
/*
 * The last thing that is said there, as far as it can be said at once. When input is
 * PVR_INPUT_BROKEN by what the other side did, that has been done.
 */
void pvr_req_conn_send_close(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			     enum pvr_close_reason reason, const char *text);
/* GID_QUERY; the answer comes by located(). Return: false if the connection is down. */
bool pvr_req_conn_gid_query(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			    const char *fabric, const uint8_t gid[16]);

/* An incoming connection, after the HELLOs; @worker: whose thread it belongs to. */
struct pvr_rsp_conn *pvr_rsp_conn_create(struct pvr_host *host, enum pvr_pipe_kind kind,
					 unsigned int worker, const struct pvr_stream_ops *ops,
					 void *opaque, const struct pvr_stream_limits *limits);
void pvr_rsp_conn_destroy(struct pvr_rsp_conn *in);
enum pvr_input pvr_rsp_conn_input(struct pvr_rsp_conn *in, struct pvr_input_error *err);
bool pvr_rsp_conn_output(struct pvr_rsp_conn *in);
/* As pvr_req_conn_send_close(). */
void pvr_rsp_conn_send_close(struct pvr_rsp_conn *in, enum pvr_close_reason reason,
			     const char *text);

/* ----------------------------------------------------------------- statistics */

struct pvr_host_stats {
	const char *name;
	bool up[PVR_PIPE_KINDS]; /* an outgoing connection of this kind is */
	uint64_t rtt_ns; /* of the last PING; 0: none yet */
	uint64_t heard; /* when anything came from it last, as now() */
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t zerocopy_tx_bytes,
		zerocopy_rx_bytes; /* of these, payload that NICs have read by themselves */
	uint64_t retransmits; /* requests that were sent again after a connection broke */
};

void pvr_host_get_stats(struct pvr_host *host, struct pvr_host_stats *stats);

#endif /* PVR_PIPE_H */
