/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * FAULT frames: the operator of a requester's host makes a message fail at its responder. Both
 * hosts allow that (PVR_HELLO_F_FAULT).
 */
#ifndef PVR_PIPE_FAULT_H
#define PVR_PIPE_FAULT_H

#include "path/pipe/frame.h"
#include "rdma/responder.h"

/* Return: whether the error is that of a receive request, not of a NAK. */
bool pvr_pipe_fault_is_of_recv(uint16_t status);

/* Make @frame, a REQUEST, the FAULT of its message. @status: enum pvrdma_wc_status */
void pvr_pipe_fault_fill(struct pvr_frame_request *frame, uint16_t status);

/* Return: the status of the fault, enum pvrdma_wc_status. @frame: checked */
uint16_t pvr_pipe_fault_status(const struct pvr_frame_request *frame);

/*
 * Fail @to as @frame, which is checked, says. @request: the message of @frame, with the expected
 * PSN. Return: the syndrome; RNR if no receive request is posted.
 */
struct pvr_syndrome pvr_pipe_fault_execute(struct pvr_qp *to, const struct pvr_request *request,
					   const struct pvr_frame_request *frame);

#endif /* PVR_PIPE_FAULT_H */
