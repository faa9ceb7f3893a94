/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: executes send queues. */
#ifndef PVR_REQUESTER_H
#define PVR_REQUESTER_H

#include "datapath/queue.h"

/* A turn ends after so many requests or bytes; a piece is never larger than that. */
#define PVR_TURN_REQUESTS 64
#define PVR_TURN_BYTES (256u << 10)

enum pvr_turn {
	PVR_TURN_OVER, /* nothing to do, or it waits */
	PVR_TURN_MORE, /* it could go on at once */
	PVR_TURN_BLOCKED, /* the peer's adapter is busy */
};

/* A turn for the queue pair, whose adapter may do DMA. */
enum pvr_turn pvr_requester_turn(struct pvr_qp *qp);
/* A turn would find a request; the QP's memory must be there. */
bool pvr_requester_has_work(const struct pvr_qp *qp);

/* What an RNR NAK or a missing answer has waited for is worth another try. */
void pvr_requester_resume(struct pvr_qp *qp);
void pvr_requester_timeout(struct pvr_timer *timer);

/* RTS -> SQD: what has begun is finished first. */
void pvr_requester_drain(struct pvr_qp *qp);
/* It is. */
void pvr_requester_drained(struct pvr_qp *qp);

/* What becomes of the request at the head, @wqe: it fails, and the send queue with it. */
void pvr_requester_fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
			enum pvrdma_wc_status status, const char *why);
/* An RNR NAK of @peer, NULL: of another host: it is tried again after @ns, or fails. */
void pvr_requester_not_ready(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, struct pvr_qp *peer,
			     uint64_t ns);
/* Nobody is there; the first time, only the wait begins. */
void pvr_requester_not_answered(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);
/* Something is missing: it is tried again after a while, which costs nothing. */
void pvr_requester_wait(struct pvr_qp *qp);
/* A try has been in vain. Return: false if it was the last one, and it has failed. */
bool pvr_requester_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);

#endif /* PVR_REQUESTER_H */
