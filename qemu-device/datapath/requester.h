/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: executes send queues. */
#ifndef PVR_REQUESTER_H
#define PVR_REQUESTER_H

#include "model/objects.h"

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

/* RTS -> SQD: the request in progress is finished first. */
void pvr_requester_drain(struct pvr_qp *qp);

#endif /* PVR_REQUESTER_H */
