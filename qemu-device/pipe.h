/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface to adapters at other hosts: connections that the embedder makes for the
 * engine.
 *
 * DOC: division of work
 *
 * The engine handles the guests' queues and the frames (docs/pipe-protocol.md); it has no
 * socket. The embedder:
 *
 *	- finds the host of a GID by its directory;
 *	- makes connections, authenticates the peer and exchanges HELLOs;
 *	- gives the engine functions that send and receive bytes.
 *
 * Without pvr_engine_set_pipe() an engine reaches only its own adapters.
 *
 * A host is another daemon. A host has connections of two kinds:
 *
 *	outgoing	Made by this daemon. Carries requests of its own guests, and the
 *			responses. A host has a fixed number of slots, each up or down; a
 *			queue pair uses one slot while its connection is up.
 *	incoming	Made by the other daemon. Carries requests of that host's guests.
 *			The embedder limits the number.
 *
 * After an outgoing connection has broken, the embedder makes another one and calls
 * pvr_req_conn_up(). The engine then retransmits unacknowledged requests. No queue pair
 * fails before its own timeout and retries are exhausted.
 *
 * DOC: threads
 *
 * A connection belongs to one thread, usually that of a worker. Only that thread calls
 * these functions for it: pvr_req_conn_up(), pvr_req_conn_down(), pvr_req_conn_input(),
 * pvr_req_conn_output() and pvr_rsp_conn_*().
 *
 * pvr_engine_set_pipe() comes before the first adapter. Any thread may call all other
 * functions at any time.
 *
 * Callbacks must not block and must not call back into the engine. Any thread calls the
 * pvr_host_ops, and send() and want_output() of an outgoing connection.
 */
#ifndef PVR_PIPE_H
#define PVR_PIPE_H

#include <sys/types.h>
#include <sys/uio.h>

#include "engine.h"
#include "path/pipe/frame.h"

#define PVR_REQ_CONN_MAX 16 /* slots of outgoing connections per host and kind */
#define PVR_HOST_NAME_MAX 64
#define PVR_DSCP_MAX 63

struct pvr_host;
struct pvr_rsp_conn;

/* Kinds of connections to a host; the greatest kind that is up is preferred. */
enum pvr_pipe_kind {
	PVR_PIPE_TCP,
	PVR_PIPE_VERBS,
	PVR_PIPE_KINDS,
};

struct pvr_host_ops {
	/*
	 * The reply to pvr_req_conn_gid_query(). @gid_type 0: @host does not have @gid.
	 */
	void (*located)(void *opaque, struct pvr_host *host, const char *fabric,
			const uint8_t gid[16], uint8_t gid_type);
	/*
	 * Connections to @host will be needed, and the directory may not know it. @address: where it
	 * can be dialed, as it or another host says; "": unknown. Any thread. May be NULL.
	 */
	void (*referred)(void *opaque, struct pvr_host *host, const char *address);
	/*
	 * The engine has requests for @host and needs a new outgoing connection, because
	 * no connection is up, or none with @dscp. In the second case requests use
	 * another connection meanwhile. Called repeatedly until the connection is up, by
	 * any thread, at most about once in 10 ms for a DSCP.
	 */
	void (*want)(void *opaque, struct pvr_host *host, uint8_t dscp);
};

/*
 * Call it before the first adapter is created. The tables stay valid as long as the
 * engine.
 */
void pvr_engine_set_pipe(struct pvr_engine *engine, const struct pvr_gid_ops *gid_ops,
			 const struct pvr_host_ops *host_ops, void *opaque);

/*
 * Set the address where this host can be dialed, which the sources of its adapters are told. Before
 * the first adapter; as for pvr_host_set_address(). Needed if a host may not know all others.
 */
void pvr_engine_set_address(struct pvr_engine *engine, const char *address);

/* -------------------------------------------------------------------- hosts */

/* Twice the peers at a time: hosts that share a key can use any number of names. */
#define PVR_HOSTS_MAX 32768

/*
 * Find the host of this name, or create it; it lives until the engine ends. NULL: no
 * memory, or there are PVR_HOSTS_MAX hosts.
 */
struct pvr_host *pvr_host_get(struct pvr_engine *engine, const char *name);
const char *pvr_host_name(const struct pvr_host *host);
/*
 * Return: whether frames of ended queue pairs wait for a connection or for space in one. Reads all
 * hosts: for a daemon that stops.
 */
bool pvr_engine_has_unsent(struct pvr_engine *engine);
/*
 * Set the address where the host can be dialed, which other hosts are told. Initially "", as one
 * that a REFERRAL cannot have: with PVR_FRAME_ADDRESS_MAX bytes or more, or a zone. Any thread.
 */
void pvr_host_set_address(struct pvr_host *host, const char *address);

/*
 * Memory that the receiver may read by RDMA READ over the connection of this descriptor.
 */
struct pvr_rndv_seg {
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
};

#define PVR_READ_BUFFER (256u << 10)

/*
 * DOC: rendezvous
 *
 * Over RDMA NICs a large payload moves from guest memory to guest memory by RDMA READ:
 *
 *	sender of the payload			receiver
 *	check the keys of its own guest
 *	expose() exactly the payload,
 *	for RDMA READ by the receiver alone
 *	frame with pvr_rndv_seg	------->
 *						check the keys of its own guest
 *						read(): its NIC reads the payload
 *				<-------	RNDV_DONE
 *	revoke()
 *
 * - No daemon grants another one the right to write.
 * - If a guest frees the memory before RNDV_DONE, the connection breaks. Nothing else
 *   stops a NIC reliably, see core/ext_dma.h.
 */

/*
 * The functions of a byte stream. send() and recv() return the number of bytes moved, 0
 * if none can be moved now, or -errno if the connection is broken. At the end of the
 * stream the error is -ECONNRESET. A broken connection stays broken.
 */
struct pvr_stream_ops {
	/* May accept a part. Accepted bytes are copied or sent when this returns. */
	ssize_t (*send)(void *opaque, const struct iovec *iov, int count);
	ssize_t (*recv)(void *opaque, const struct iovec *iov, int count);
	/*
	 * send() has accepted only a part. The embedder calls pvr_req_conn_output() or
	 * pvr_rsp_conn_output() when the stream accepts more.
	 */
	void (*want_output)(void *opaque);

	/*
	 * Rendezvous, see above. All of the following functions are set, or all are NULL.
	 * Any thread calls them. Their buffers are guest memory, which may be unmapped as
	 * soon as revoke() or rdma_read_cancel() has returned.
	 */

	/*
	 * Register memory for RDMA READ by the peer. @count: at most PVR_FRAME_RNDV_SEGS.
	 * @part: set to one descriptor for each element of @iov. Return: the argument of
	 * revoke(), or NULL if the memory cannot be exposed.
	 */
	void *(*expose)(void *opaque, const struct iovec *iov, int count,
			struct pvr_rndv_seg *part);
	/* End and free @rndv. A later RDMA READ of its memory breaks the connection. */
	void (*revoke)(void *opaque, void *rndv);
	/*
	 * Begin an RDMA READ of memory that the peer has exposed, from @part to @iov.
	 * Both have the same total length and at most PVR_FRAME_RNDV_SEGS elements. If
	 * @count is 0, the stream's own buffer receives up to PVR_READ_BUFFER bytes. A
	 * stream has at most one read in progress. Return: 0, -ENOMEM (the NIC cannot
	 * write to @iov), or another -errno (the connection is broken).
	 */
	int (*read)(void *opaque, const struct pvr_rndv_seg *part, int parts,
		    const struct iovec *iov, int count);
	/*
	 * Return: 1 if the read is complete, with *data set to the stream's own buffer; 0
	 * if not, and the stream signals input when it is; -errno if the connection is
	 * broken. Never 0 after rdma_read_cancel().
	 */
	int (*rdma_read_poll)(void *opaque, uint8_t **data);
	/*
	 * End a read() with @count above 0, complete or not: the NIC no longer writes to
	 * @iov. Must follow each such read(). An incomplete read breaks the connection.
	 */
	void (*rdma_read_cancel)(void *opaque);
};

struct pvr_stream_limits {
	uint32_t chunk; /* maximum payload of a sent frame in bytes, as negotiated by HELLO */
	uint8_t dscp; /* outgoing connections: the DSCP of their traffic; 0: no traffic class */
	bool piggyback_ack; /* PVR_HELLO_F_PIGGYBACK_ACK is negotiated */
	bool qp_gone; /* QP_GONE frames are negotiated */
	bool atomic_write; /* ATOMIC_WRITE and FLUSH are negotiated */
	bool xrc; /* XRC is negotiated */
	bool page; /* the requester accepts that a page of the responder is absent */
	bool fault; /* FAULT frames are negotiated */
	bool move; /* the requester accepts that the responder's adapter is stopped */
	bool load; /* numbers of loads behind TAKE are negotiated */
	bool address; /* ADDRESS frames are negotiated */
	bool refer; /* GID_QUERY may be answered by REFERRAL */
	bool tail; /* the responder executes the tail of a fragment that it has executed in part */
};

/*
 * An outgoing connection is up. @slot: below PVR_REQ_CONN_MAX. Queue pairs may now use
 * it.
 */
void pvr_req_conn_up(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
		     const struct pvr_stream_ops *ops, void *opaque,
		     const struct pvr_stream_limits *limits);
/* The connection is down. The engine does not use its ops after this returns. */
void pvr_req_conn_down(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);

enum pvr_input {
	PVR_INPUT_IDLE, /* all input has been read */
	PVR_INPUT_MORE, /* call again soon, after other connections */
	PVR_INPUT_OUTPUT, /* unsent responses: call again after pvr_rsp_conn_output() */
	PVR_INPUT_STALLED, /* unknown GID: call again after pvr_engine_set_gid() or 10 ms */
	PVR_INPUT_BROKEN, /* close the connection; the reason is in pvr_input_error */
};

struct pvr_input_error {
	int reason; /* enum pvr_close_reason; -1: the stream is broken, or the peer sent CLOSE */
	char why[176];
};

/* Read and handle input of the stream, a bounded amount. */
enum pvr_input pvr_req_conn_input(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
				  struct pvr_input_error *err);
/* Send more, as the stream accepts it. Return: false if the connection is broken. */
bool pvr_req_conn_output(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);
/* Send PING. The round-trip time is in pvr_host_stats. */
void pvr_req_conn_ping(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot);
/*
 * Send CLOSE as the last frame, if the stream accepts it at once. Before the engine
 * returns PVR_INPUT_BROKEN for an error of the peer, it has sent CLOSE itself.
 */
void pvr_req_conn_send_close(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			     enum pvr_close_reason reason, const char *text);
/* Send GID_QUERY; located() gets the reply. Return: false if the connection is down. */
bool pvr_req_conn_gid_query(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			    const char *fabric, const uint8_t gid[16]);

/* Create an incoming connection after the HELLOs. @worker: index of its worker. */
struct pvr_rsp_conn *pvr_rsp_conn_create(struct pvr_host *host, enum pvr_pipe_kind kind,
					 unsigned int worker, const struct pvr_stream_ops *ops,
					 void *opaque, const struct pvr_stream_limits *limits);
void pvr_rsp_conn_destroy(struct pvr_rsp_conn *in);
enum pvr_input pvr_rsp_conn_input(struct pvr_rsp_conn *in, struct pvr_input_error *err);
bool pvr_rsp_conn_output(struct pvr_rsp_conn *in);
/* See pvr_req_conn_send_close(). */
void pvr_rsp_conn_send_close(struct pvr_rsp_conn *in, enum pvr_close_reason reason,
			     const char *text);

/* ----------------------------------------------------------------- statistics */

struct pvr_host_stats {
	const char *name;
	bool up[PVR_PIPE_KINDS]; /* an outgoing connection of this kind is up */
	uint64_t rtt_ns; /* of the last PING; 0: no reply yet */
	uint64_t heard; /* time of the last frame from it, in ns of now() */
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t zerocopy_tx_bytes,
		zerocopy_rx_bytes; /* of these, payload that NICs have moved by RDMA READ */
	uint64_t retransmits; /* requests sent again after a connection broke */
};

void pvr_host_get_stats(struct pvr_host *host, struct pvr_host_stats *stats);

#endif /* PVR_PIPE_H */
