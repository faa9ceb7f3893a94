/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder of a connection. */
#ifndef PVR_RESPONDER_H
#define PVR_RESPONDER_H

#include "rdma/path.h"

/**
 * pvr_responder_execute() - execute a fragment of a request at its responder
 * @to: the queue pair that the requester is connected to, in RTR, RTS, SQD or SQE
 * @request: the fragment; request->local is the requester's memory
 *
 * Also handles the responder's completions, events and state.
 *
 * Return: the syndrome, which the requester handles.
 */
struct pvr_syndrome pvr_responder_execute(struct pvr_qp *to, const struct pvr_request *request);
/* The same for a fragment from another process; @in->ops move payload and replies. */
struct pvr_syndrome pvr_responder_execute_inbound(struct pvr_qp *to, struct pvr_inbound *in);
/* Return: the time of the RNR NAKs that @to sends, in nanoseconds. */
uint64_t pvr_rnr_timer_ns(const struct pvr_qp *to);
/* Reply again to an executed fragment of an RDMA READ. */
struct pvr_syndrome pvr_responder_read_again(struct pvr_qp *to, struct pvr_inbound *in);
/*
 * Execute the tail of a fragment of PVR_PSN_STRADDLES: @in->request becomes the tail. Of an RDMA
 * READ it stays the whole fragment, which is replied to again.
 */
struct pvr_syndrome pvr_responder_execute_tail(struct pvr_qp *to, struct pvr_inbound *in);

/*
 * Complete the receive request that @request needs with the error @status, and fail @to. For the
 * path of faults. Return: the NAK, which is that of a bad SRQ number if an XRC message has one;
 * PVR_SYN_NONE: nothing is done, as no request is posted.
 */
struct pvr_syndrome pvr_responder_fail_recv(struct pvr_qp *to, const struct pvr_request *request,
					    enum pvrdma_wc_status status, const char *why);

/*
 * Fail @to as for a request that it refuses with the NAK @status. For faults of the operator.
 * Return: the NAK.
 */
struct pvr_syndrome pvr_responder_fail(struct pvr_qp *to, enum pvrdma_wc_status status,
				       const char *why);

#endif /* PVR_RESPONDER_H */
