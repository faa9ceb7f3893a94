/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The transmit buffer of a connection.
 *
 * * Small frames are gathered until a flush.
 * * A large payload goes to the stream directly from its memory, behind all gathered
 *   frames and its header.
 * * The part that the stream does not accept is copied, so the buffer is bounded. The box
 *   is then @blocked: only frames that cannot wait are accepted until a flush has sent
 *   all.
 * * If the stream supports rendezvous, a large payload stays in its memory, and the
 *   peer's NIC reads it.
 */
#ifndef PVR_PIPE_TX_H
#define PVR_PIPE_TX_H

#include "path/pipe/rndv.h"
#include "path/pipe/host.h"

/* Maximum of gathered bytes. A frame beyond it flushes the box first. */
#define PVR_PIPE_TX_GATHER (32u << 10)
/* Space for responses, control frames and datagrams while the box is blocked. */
#define PVR_PIPE_TX_RESERVE (64u << 10)
/* A payload up to this size is copied and gathered. */
#define PVR_PIPE_TX_SMALL 4096u
/* Minimum payload to expose: each rendezvous costs a registration and an RNDV_DONE. */
#define PVR_PIPE_TX_RNDV_MIN (64u << 10)

struct pvr_pipe_tx {
	const struct pvr_stream_ops *ops; /* NULL: closed */
	void *opaque;
	struct pvr_link_count *count;
	uint8_t *data; /* gathered bytes are from head to tail */
	size_t size, head, tail;
	bool blocked; /* the stream is full; want_output() was called */
	bool broken; /* the stream is broken */
	struct pvr_rndv_tx *rndvs; /* NULL: no rendezvous */
};

/* A frame to send. Its size is filled in by send or put. */
struct pvr_tx_frame {
	union pvr_any_frame *header;
	size_t header_size;
	const struct pvr_sg *payload; /* or NULL */
	uint64_t offset; /* of the frame's payload in @payload, in bytes */
	uint32_t len;
	const struct pvr_qp *expose_qp; /* queue pair that owns the payload; NULL: do not expose */
};

/* @chunk: maximum payload of a frame in bytes. Return: 0 or -ENOMEM. */
int pvr_pipe_tx_open(struct pvr_pipe_tx *box, const struct pvr_stream_ops *ops, void *opaque,
		     uint32_t chunk, struct pvr_link_count *count);
void pvr_pipe_tx_close(struct pvr_pipe_tx *box);

/* Sends or gathers a frame. Return: false if the box is blocked or broken. */
bool pvr_pipe_tx_send(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out);
/* Appends a frame, even if the box is blocked. Return: false if there is no space. */
bool pvr_pipe_tx_put(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out);
/* Sends gathered bytes, as far as the stream accepts them. */
void pvr_pipe_tx_flush(struct pvr_pipe_tx *box);

#endif /* PVR_PIPE_TX_H */
