/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What comes in on a connection: frames, one after the other.
 *
 * Bytes are read ahead into a staging area, where small frames are whole. Of a large
 * payload what was not read ahead goes from the stream straight to where it belongs; the
 * frame stays the current one until all of that has come, and whoever handles it is
 * called again each time that more has. A payload that was exposed is read by the NIC instead,
 * and the stream goes on behind it when that is done.
 */
#ifndef PVR_INBOX_H
#define PVR_INBOX_H

#include "path/pipe/internal.h"
#include "path/pipe/rndv_rx.h"
#include "path/pipe/host.h"

struct pvr_pipe_rx;

/* What a connection does with what comes. */
struct pvr_pipe_rx_ops {
	/* Whether a frame may be handled now: its answer can be sent. May be NULL. */
	bool (*ready)(void *owner);
	/*
	 * @payload: if it is there as a whole. A frame that makes no sense here: sets
	 * *why, and the return does not matter.
	 */
	enum pvr_handled (*frame)(void *owner, const union pvr_any_frame *any, uint8_t *payload,
				  const char **why);
	/* There may be nothing more for a while. May be NULL. */
	void (*rest)(void *owner);
	/*
	 * One more rendezvous has been read, or will not be: the other side is to know before
	 * anything that comes of it.
	 */
	void (*rndv_over)(void *owner);
	/* RNDV_DONE. Return: NULL, or what is wrong. */
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
	char said[176]; /* why the other side has said good-bye */
};

/* Return: 0 or -ENOMEM. */
int pvr_pipe_rx_open(struct pvr_pipe_rx *box, const struct pvr_stream_ops *ops, void *opaque,
		     enum pvr_frame_role role, uint32_t chunk, struct pvr_link_count *count);
void pvr_pipe_rx_close(struct pvr_pipe_rx *box);

/* Handles what has come; a bounded amount of work. Never PVR_INPUT_OUTPUT without ready(). */
enum pvr_input pvr_pipe_rx_run(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops,
			       void *owner, struct pvr_input_error *err);

/* Payload of the current frame: see pvr_rsp_conn_recv_payload(). */
int pvr_pipe_rx_recv_payload(struct pvr_pipe_rx *box, const struct pvr_qp *qp,
			     const struct pvr_sg *to, uint64_t offset, uint32_t len);

#endif /* PVR_INBOX_H */
