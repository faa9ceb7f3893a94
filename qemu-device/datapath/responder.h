/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder of a connection. */
#ifndef PVR_RESPONDER_H
#define PVR_RESPONDER_H

#include "datapath/request.h"

struct pvr_remote_piece;

/*
 * Execute a piece of a request at @to, its connected peer. The responder's
 * completions, events and state are dealt with here; the answer is the requester's.
 */
struct pvr_answer pvr_responder_execute(struct pvr_qp *to, const struct pvr_request *request);

/*
 * The same for a request from another host. Its payload is brought, and what it asks for
 * is sent, by way of @piece; request.local is not used.
 */
struct pvr_answer pvr_responder_execute_remote(struct pvr_qp *to, struct pvr_remote_piece *piece);
/* An RDMA READ that has been executed, or the first pieces of it: data only. */
struct pvr_answer pvr_responder_read_again(struct pvr_qp *to, struct pvr_remote_piece *piece);

#endif /* PVR_RESPONDER_H */
