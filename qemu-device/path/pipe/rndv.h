/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rendezvous: payload that a connection exposes to the peer, whose NIC reads it, and payload
 * that the peer has exposed, on its way to guest memory.
 *
 * The NIC reads directly into guest memory if that has few runs, else into the stream's own
 * buffer, from which it is copied. A connection reads the payload of one frame at a time.
 * Its thread does not wait for the NIC: an event reports the end.
 */
#ifndef PVR_RNDV_H
#define PVR_RNDV_H

#include "pipe.h"
#include "core/ext_dma.h"

/* ------------------------------------------------------------------ exposed: rndv_tx.c */

struct pvr_rndv_tx;

struct pvr_rndv {
	struct pvr_ext_dma use;
	struct pvr_rndv_tx *of;
	void *handle; /* the stream's */
};

struct pvr_rndv_tx {
	const struct pvr_stream_ops *ops;
	void *opaque;
	uint32_t exposed, rndv_done; /* numbers of rendezvous since the connection started */
	struct pvr_rndv rndv[PVR_FRAME_RNDV_MAX];
};

/* NULL: no memory. */
struct pvr_rndv_tx *pvr_rndv_tx_create(const struct pvr_stream_ops *ops, void *opaque);
/* Revokes all. NULL is allowed. */
void pvr_rndv_tx_destroy(struct pvr_rndv_tx *rndvs);

/*
 * Exposes payload of a frame.
 * @qp: the queue pair that owns the payload; its adapter's lock is held
 * @header: of the REQUEST or READ_DATA
 * Return: number of segments in @wire; 0: copy the payload.
 */
unsigned int pvr_rndv_tx_expose(struct pvr_rndv_tx *rndvs, const struct pvr_qp *qp,
				const union pvr_any_frame *header, const struct pvr_sg *payload,
				uint64_t offset, uint32_t len,
				struct pvr_frame_rndv_seg wire[PVR_FRAME_RNDV_SEGS]);
/* Handles RNDV_DONE. Return: NULL, or the reason of an error. */
const char *pvr_rndv_tx_done(struct pvr_rndv_tx *rndvs, const struct pvr_frame_rndv_done *frame);

/* -------------------------------------------------------------------- read: rndv_rx.c */

struct pvr_rdma_read {
	struct pvr_ext_dma use; /* of the memory that is written to */
	const struct pvr_stream_ops *ops;
	void *opaque;
	/* Segments of the current frame. */
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	unsigned int parts;
	bool busy; /* the NIC reads @len bytes now ... */
	bool own; /* ... to the stream's own buffer */
	uint32_t len;
};

/* @kind: PVR_EXT_DMA_RESP_DST or PVR_EXT_DMA_REQ_DST. */
void pvr_rdma_read_open(struct pvr_rdma_read *rdma_read, const struct pvr_stream_ops *ops,
			void *opaque, enum pvr_ext_dma_kind kind);
/* Cancels a read. Afterwards the NIC does not write. */
void pvr_rdma_read_stop(struct pvr_rdma_read *rdma_read);

/* @rndv: checked by pvr_frame_check_rndv(). */
void pvr_rdma_read_begin(struct pvr_rdma_read *rdma_read, const struct pvr_frame_rndv_seg *rndv,
			 unsigned int parts);
/*
 * Continues with byte @done of the payload. @left bytes are missing; they go to @to at
 * @offset.
 * @qp: the queue pair whose memory @to is; its adapter's lock is held
 * Return: bytes that have arrived; 0: none yet, an input event follows; -EFAULT: guest
 * memory was removed; else -errno of the stream.
 */
int pvr_rdma_read_recv_payload(struct pvr_rdma_read *rdma_read, const struct pvr_qp *qp,
			       const struct pvr_sg *to, uint64_t offset, uint32_t done,
			       uint32_t left);
/*
 * Discards the rest of the payload. Return: 1; 0: the NIC still reads, an input event
 * follows; or -errno.
 */
int pvr_rdma_read_drop(struct pvr_rdma_read *rdma_read);

#endif /* PVR_RNDV_H */
