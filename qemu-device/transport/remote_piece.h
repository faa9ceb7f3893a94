/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A piece of a message from another host, and how its responder gets and sends data. */
#ifndef PVR_REMOTE_PIECE_H
#define PVR_REMOTE_PIECE_H

#include "datapath/request.h"
#include "transport/link.h"

struct pvr_remote_piece {
	struct pvr_request request; /* points to what follows */
	struct pvr_origin origin;
	struct pvr_send_wqe wqe; /* its header only */
	struct pvr_in *in;
	const struct pvr_frame_request *frame;
	uint8_t *payload; /* all of it, or NULL: it is still to come */
	struct pvr_qp *to;
};

/* Its payload to its place in the message. Return: 0, -EAGAIN (some is missing) or -EFAULT. */
int pvr_remote_bring(struct pvr_remote_piece *piece, const struct pvr_sg *to);
/* Answers of RDMA READ, from the message's memory, and of atomics. Return: 0 or -EFAULT. */
int pvr_remote_read(struct pvr_remote_piece *piece, const struct pvr_sg *from);
void pvr_remote_atomic(struct pvr_remote_piece *piece, uint64_t old);

#endif /* PVR_REMOTE_PIECE_H */
