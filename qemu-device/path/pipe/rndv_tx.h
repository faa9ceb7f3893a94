/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Payload that a connection has exposed to the peer, whose NIC reads it. */
#ifndef PVR_RNDV_TX_H
#define PVR_RNDV_TX_H

#include "pipe.h"
#include "core/ext_dma.h"

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

#endif /* PVR_RNDV_TX_H */
