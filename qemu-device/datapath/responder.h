/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder of a reliable connection. */
#ifndef PVR_RESPONDER_H
#define PVR_RESPONDER_H

#include "datapath/request.h"

/*
 * Execute a piece of a request at @to, its connected peer. The responder's
 * completions, events and state are dealt with here; the answer is the requester's.
 */
struct pvr_answer pvr_responder_execute(struct pvr_qp *to,
					const struct pvr_request *request);

#endif /* PVR_RESPONDER_H */
