/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder of a connection. */
#ifndef PVR_RESPONDER_H
#define PVR_RESPONDER_H

#include "rdma/path.h"

/*
 * Execute a fragment of a request at @to, its connected peer. The responder's
 * completions, events and state are dealt with here; the answer is the requester's.
 */
struct pvr_syndrome pvr_responder_execute(struct pvr_qp *to, const struct pvr_request *request);

/*
 * The same for a fragment from outside of this process: its payload arrives, and replies
 * leave, by way of @in->ops.
 */
struct pvr_syndrome pvr_responder_execute_inbound(struct pvr_qp *to, struct pvr_inbound *in);
/* Replies to an RDMA READ that was executed before, or to its first fragments. */
struct pvr_syndrome pvr_responder_read_again(struct pvr_qp *to, struct pvr_inbound *in);

#endif /* PVR_RESPONDER_H */
