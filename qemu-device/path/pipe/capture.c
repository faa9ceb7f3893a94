// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Capture of the pipe path: responses as RoCE packets. */
#include "path/pipe/capture.h"

#include "rdma/capture.h"

/* The guest may have changed the WQE; the in-flight WR is what was sent. */
void pvr_pipe_capture_answer(struct pvr_pipe_sq *sq, const struct pvr_pipe_answer *answer)
{
	const struct pvr_inflight *inflight = pvr_inflight(sq, 0);
	const struct pvr_opcode *op = pvr_opcode(answer->wqe->hdr.opcode);
	struct pvr_req_src from = { .qpn = sq->qp->qpn, .psn = inflight->psn };
	struct pvr_request request = {
		.from = &from,
		.wqe = answer->wqe,
		.op = op,
		.local = answer->target,
		.length = inflight->length,
		.offset = answer->offset,
		.chunk = answer->chunk,
		.psns = inflight->psns,
		.last = answer->offset + answer->chunk == inflight->length ||
			op->kind != PVR_OP_READ,
	};

	if (inflight->kind != PVR_OP_LOCAL && op->kind == inflight->kind)
		pvr_capture_response(sq->qp, true, &request, answer->syndrome);
}
