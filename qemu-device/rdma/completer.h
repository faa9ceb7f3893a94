/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion of send requests, flushes, and the requester's retries and failures. */
#ifndef PVR_COMPLETER_H
#define PVR_COMPLETER_H

#include "core/wq.h"

void pvr_send_push_cqe(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		       enum pvrdma_wc_status status, uint64_t length);

/*
 * Complete the send request at the head. A CQE is written for an error or a signaled
 * request.
 */
static inline void pvr_send_complete(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
				     enum pvrdma_wc_status status, uint64_t length)
{
	qp->sq_offset = 0;
	pvr_wq_advance(qp->adapter, &qp->sq);
	if (status != PVRDMA_WC_SUCCESS || qp->sq_sig_all ||
	    (wqe->hdr.send_flags & PVR_SEND_SIGNALED))
		pvr_send_push_cqe(qp, wqe, status, length);
}

/*
 * Complete at most @budget requests with WR_FLUSH_ERR (IBTA 10.3.1).
 * Return: true if requests are left.
 */
bool pvr_flush_send(struct pvr_qp *qp, unsigned int *budget);
bool pvr_flush_recv(struct pvr_qp *qp, unsigned int *budget);
/*
 * The QP is reset or destroyed. The request that it has taken from its SRQ completes with
 * WR_FLUSH_ERR, if the CQ has room: the guest may count the SRQ's requests.
 */
void pvr_flush_held(struct pvr_qp *qp);

/* Complete @wqe, the request at the head, with @status, and move the QP to ERR or SQE. */
void pvr_requester_fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
			enum pvrdma_wc_status status, const char *why);
/* Retry the request at the head after @ns. */
void pvr_requester_await(struct pvr_qp *qp, uint64_t ns);
/*
 * DOC: grace of the first RNR NAK
 *
 * * A NIC needs a round trip per message, in which the peer posts its next receive. Here
 *   the next message arrives at once, so a sender without RNR retries would fail where it
 *   works with NICs.
 * * So a request fails at the earliest one grace after its first RNR NAK: the responder's
 *   RNR timer, at least 1 ms. To the requester the responder is slow. The timer states how
 *   late the responder's guest may post; that of Linux's CM is the longest, 655.36 ms.
 * * If a receive is posted within the grace, the message is delivered. The next request
 *   has a grace of its own.
 * * On one host, the posted receive resumes the requester at once. To another host, a
 *   request without RNR retries is sent again within the grace: after 100 us, and each
 *   time after twice the time.
 */

/**
 * pvr_requester_rnr_nak() - handle an RNR NAK
 * @ns: the responder's RNR timer in nanoseconds
 *
 * Return: nanoseconds that the caller waits before it sends the request again, or 0: the
 * RNR retries and the grace are used up, and the request has failed.
 */
uint64_t pvr_requester_rnr_nak(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t ns);
/* Retry the request at the head after the RNR timer, @ns from now. */
void pvr_requester_wait_rnr(struct pvr_qp *qp, uint64_t ns);
/* Retry the request at the head after @ns: a page is absent. No retry is counted. */
void pvr_requester_wait_page(struct pvr_qp *qp, uint64_t ns);
/* Interval of retries with a local ACK timeout of 0: such a requester retries without end. */
#define PVR_NO_TIMEOUT_POLL_NS 100000000ull
/* Retry the request at the head after that time. The retry count does not change. */
void pvr_requester_wait(struct pvr_qp *qp);
/*
 * Count a timeout. Return: false if the retry count is exhausted and the request has
 * failed.
 */
bool pvr_requester_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);
/*
 * Count a retry for a NAK for a sequence error; the caller sends the request again at once.
 * Return: false if the retry count is exhausted and the request has failed.
 */
bool pvr_requester_seq_nak(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);
/*
 * Handle a missing response: the first call starts the ACK timeout, later calls count
 * retries.
 */
void pvr_requester_no_response(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);

/*
 * While it waits for a response, within the ACK timeout: the peer may be found, or be ready, long before its end. So
 * it is asked again, each time after twice the time. That costs no retry.
 */
#define PVR_ASK_AGAIN_NS 10000000u
void pvr_requester_ask_again(struct pvr_qp *qp);

#endif /* PVR_COMPLETER_H */
