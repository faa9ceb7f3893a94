/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Payload that the other side has exposed, on its way to guest memory.
 *
 * The NIC reads it straight to where it belongs, if that is of few runs; else to the
 * stream's own buffer, from which it is copied. One connection reads one frame's payload at
 * a time, and nobody waits for it: its thread comes back when there is news.
 */
#ifndef PVR_RNDV_RX_H
#define PVR_RNDV_RX_H

#include "pipe.h"
#include "core/ext_dma.h"

struct pvr_rdma_read {
	struct pvr_ext_dma use; /* of the memory that is written to */
	const struct pvr_stream_ops *ops;
	void *opaque;
	/* What the current frame has brought. */
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	unsigned int parts;
	bool busy; /* the NIC reads @len bytes now ... */
	bool own; /* ... to the stream's own buffer */
	uint32_t len;
};

/* @kind: PVR_EXT_DMA_RESP_DST or PVR_EXT_DMA_REQ_DST. */
void pvr_rdma_read_open(struct pvr_rdma_read *rdma_read, const struct pvr_stream_ops *ops,
			void *opaque, enum pvr_ext_dma_kind kind);
/* The NIC writes nothing more. */
void pvr_rdma_read_stop(struct pvr_rdma_read *rdma_read);

/* @rndv: checked by pvr_frame_check_rndv(). */
void pvr_rdma_read_begin(struct pvr_rdma_read *rdma_read, const struct pvr_frame_rndv_seg *rndv,
			 unsigned int parts);
/*
 * Goes on with byte @done of the payload, of which @left are missing, to @to at @offset.
 * @qp: whose memory that is; its adapter's lock is held. Return: how many bytes are there
 * now; 0: not yet, there will be input; -EFAULT: guest memory went away; else -errno of the
 * stream.
 */
int pvr_rdma_read_recv_payload(struct pvr_rdma_read *rdma_read, const struct pvr_qp *qp,
			       const struct pvr_sg *to, uint64_t offset, uint32_t done,
			       uint32_t left);
/* What is left of it is not wanted. Return: 1; 0: not yet, there will be input; or -errno. */
int pvr_rdma_read_drop(struct pvr_rdma_read *rdma_read);

#endif /* PVR_RNDV_RX_H */
