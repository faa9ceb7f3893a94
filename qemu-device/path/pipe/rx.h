/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The receive buffer of a connection: parses the stream into frames.
 *
 * * Bytes are read ahead into a staging area. Small frames are complete there.
 * * A large payload goes from the stream directly to its destination, except the bytes
 *   that were read ahead.
 * * The frame stays the current one until its whole payload has arrived. Its handler is
 *   called again each time more has arrived.
 * * An exposed payload is read by the NIC. The stream continues behind the frame after
 *   that read.
 */
#ifndef PVR_PIPE_RX_H
#define PVR_PIPE_RX_H

#include "path/pipe/internal.h"
#include "path/pipe/rndv_rx.h"
#include "path/pipe/host.h"

struct pvr_pipe_rx;

/* Handlers of a connection. */
struct pvr_pipe_rx_ops {
	/* Whether a frame may be handled now: its answer can be sent. May be NULL. */
	bool (*ready)(void *owner);
	/*
	 * @payload: if it is there as a whole. A frame that makes no sense here: sets
	 * *why, and the return does not matter.
	 */
	enum pvr_handled (*frame)(void *owner, const union pvr_any_frame *any, uint8_t *payload,
				  const char **why);
	/* Called before the thread may stop reading for a while. May be NULL. */
	void (*rest)(void *owner);
	/*
	 * A rendezvous was read or discarded. RNDV_DONE precedes the response to the
	 * frame.
	 */
	void (*rndv_over)(void *owner);
	/* Handles RNDV_DONE. Return: NULL, or the reason of an error. */
	const char *(*rndv_done)(void *owner, const struct pvr_frame_rndv_done *frame);
};

struct pvr_pipe_rx {
	const struct pvr_stream_ops *ops; /* NULL: it is closed */
	void *opaque;
	struct pvr_link_count *count;
	enum pvr_frame_role role;
	uint32_t chunk;
	uint8_t *data; /* the staging area; what was read is from head to tail */
	size_t head, tail;
	union pvr_any_frame frame; /* the current one */
	size_t header; /* its bytes; 0: there is none yet */
	size_t payload, taken; /* bytes that belong to it; of them, those that were pulled */
	bool drop; /* what is left of its payload is thrown away */
	bool exposed; /* its payload is read from where it is */
	struct pvr_rdma_read rdma_read;
	/* Of this run. */
	const struct pvr_pipe_rx_ops *handler;
	void *owner;
	bool was_large; /* the one before had a large payload */
	bool dry; /* the stream had no more when it was asked last */
	bool short_read; /* the last read did not fill what it was given */
	bool fault; /* guest memory could not be written by the last read */
	int error; /* of the stream: -errno */
	char said[176]; /* reason in the peer's CLOSE; empty: no CLOSE */
};

/* Return: 0 or -ENOMEM. */
int pvr_pipe_rx_open(struct pvr_pipe_rx *box, const struct pvr_stream_ops *ops, void *opaque,
		     enum pvr_frame_role role, uint32_t chunk, struct pvr_link_count *count);
void pvr_pipe_rx_close(struct pvr_pipe_rx *box);

/* Handles what has come; a bounded amount of work. Never PVR_INPUT_OUTPUT without ready(). */
enum pvr_input pvr_pipe_rx_run(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops,
			       void *owner, struct pvr_input_error *err);

/* Payload of the current frame, see pvr_rsp_conn_recv_payload(). */
int pvr_pipe_rx_recv_payload(struct pvr_pipe_rx *box, const struct pvr_qp *qp,
			     const struct pvr_sg *to, uint64_t offset, uint32_t len);

#endif /* PVR_PIPE_RX_H */
