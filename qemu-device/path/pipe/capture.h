/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Capture of the pipe path: requests and responses as RoCE packets, see rdma/capture.h. */
#ifndef PVR_PIPE_CAPTURE_H
#define PVR_PIPE_CAPTURE_H

#include "path/pipe/sq.h"

/* A response to the oldest in-flight WR, or to a fragment of it. */
struct pvr_pipe_answer {
	const struct pvr_send_wqe *wqe; /* its header is valid */
	const struct pvr_sg *target; /* of READ data or of an atomic's value; else NULL */
	uint64_t offset, chunk; /* of READ data */
	struct pvr_syndrome syndrome;
};

/* Call it only with pvr_captures(). */
void pvr_pipe_capture_answer(struct pvr_pipe_sq *sq, const struct pvr_pipe_answer *answer);

static inline struct pvr_syndrome pvr_pipe_acked(void)
{
	return (struct pvr_syndrome){ .kind = PVR_SYN_ACK };
}

#endif /* PVR_PIPE_CAPTURE_H */
