/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A request on its way from requester to responder, and the answer. */
#ifndef PVR_REQUEST_H
#define PVR_REQUEST_H

#include "core/sg.h"
#include "rdma/opcode.h"
#include "core/wq.h"

/* Messages that a turn has completed, to be counted at its end. */
struct pvr_tally {
	uint64_t msgs, bytes, reads, atomics;
	uint64_t lost_msgs, lost_bytes; /* of them, messages of UC that nobody took */
};

/*
 * One piece of a message. A message comes in pieces, in order, so that a large one
 * does not keep others waiting; most have just one.
 */
struct pvr_request {
	const struct pvr_origin *from;
	const struct pvr_send_wqe *wqe; /* checked, but for what the responder checks */
	const struct pvr_opcode *op; /* the wqe's */
	const struct pvr_sg *local; /* the requester's memory */
	uint64_t length; /* of the message */
	uint64_t offset, chunk; /* the piece */
	uint32_t psns; /* of the message */
	bool last; /* it is the last, or only, piece */
};

enum pvr_verdict {
	PVR_ACK, /* the piece is done */
	PVR_RNR, /* no receive request: try again after wait_ns */
	PVR_NAK, /* complete in error with status */
	PVR_LOST, /* nobody answers */
	PVR_PARTLY, /* from another host: payload is missing, try again when it has come */
};

/* Small enough for a register, as every message gets one. */
struct pvr_answer {
	uint16_t verdict; /* enum pvr_verdict */
	uint16_t status; /* enum pvrdma_wc_status */
	uint32_t wait_ns;
};

/*
 * How many PSNs the message takes: one per packet of the requester's path MTU. Both
 * sides count by it, so that ends with different MTUs stay in step.
 */
static inline uint32_t pvr_psns(const struct pvr_qp *from, uint64_t length)
{
	/* 128 << path_mtu bytes each, and one for none at all; divisions are slow. */
	return ((length - (length != 0)) >> (7 + from->attr.path_mtu)) + 1;
}

#endif /* PVR_REQUEST_H */
