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
#include "path/pipe/rndv.h"
#include "path/pipe/host.h"

struct pvr_pipe_rx;

/* Handlers of a connection. */
struct pvr_pipe_rx_ops {
	/* Return: true if the response of a frame has space. NULL: it always has. */
	bool (*ready)(void *owner);
	/*
	 * Handles a frame. @payload: the whole payload, or NULL if it has not arrived.
	 * For an unexpected frame *why is set, and the return is ignored.
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
	const struct pvr_stream_ops *ops; /* NULL: closed */
	void *opaque;
	struct pvr_link_count *count;
	enum pvr_frame_role role;
	uint32_t chunk;
	uint8_t *data; /* staging area; valid bytes are from head to tail */
	size_t head, tail;
	union pvr_any_frame frame; /* current frame */
	size_t header; /* bytes of its header; 0: no current frame */
	size_t payload, taken; /* bytes of its payload; bytes that were read */
	bool drop; /* the rest of its payload is discarded */
	bool exposed; /* its payload is read by the NIC */
	struct pvr_rdma_read rdma_read;
	/* Valid during pvr_pipe_rx_run(). */
	const struct pvr_pipe_rx_ops *handler;
	void *owner;
	bool was_large; /* the previous frame had a large payload */
	bool dry; /* the last read returned no bytes */
	bool short_read; /* the last read returned less than requested */
	bool fault; /* the last read could not write guest memory */
	int error; /* of the stream: -errno */
	char close_text[176]; /* reason in the peer's CLOSE; empty: no CLOSE */
};

/* Return: 0 or -ENOMEM. */
int pvr_pipe_rx_open(struct pvr_pipe_rx *box, const struct pvr_stream_ops *ops, void *opaque,
		     enum pvr_frame_role role, uint32_t chunk, struct pvr_link_count *count);
void pvr_pipe_rx_close(struct pvr_pipe_rx *box);

/*
 * Handles frames that have arrived, up to a limit. PVR_INPUT_OUTPUT is returned only with
 * ready().
 */
enum pvr_input pvr_pipe_rx_run(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops,
			       void *owner, struct pvr_input_error *err);

/*
 * Whether a frame ends the connection: CLOSE, or one that belongs to its begin. Return: NULL, or the
 * reason, which may be stored in @box; no more frames are read.
 */
const char *pvr_pipe_rx_end(struct pvr_pipe_rx *box, const union pvr_any_frame *any);

/* Payload of the current frame, see pvr_rsp_conn_recv_payload(). */
int pvr_pipe_rx_recv_payload(struct pvr_pipe_rx *box, const struct pvr_qp *qp,
			     const struct pvr_sg *to, uint64_t offset, uint32_t len, uint32_t skip);

#endif /* PVR_PIPE_RX_H */
