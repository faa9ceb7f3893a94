/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: executes send queues. */
#ifndef PVR_REQUESTER_H
#define PVR_REQUESTER_H

#include "model/objects.h"

/* A turn for the queue pair. Return: true if it could go on at once. */
bool pvr_requester_turn(struct pvr_qp *qp);
/* A turn would find a request; the QP's memory must be there. */
bool pvr_requester_has_work(const struct pvr_qp *qp);

/* What an RNR NAK or a missing answer has waited for is worth another try. */
void pvr_requester_resume(struct pvr_qp *qp);
void pvr_requester_timeout(struct pvr_timer *timer);

/* RTS -> SQD: the request in progress is finished first. */
void pvr_requester_drain(struct pvr_qp *qp);

#endif /* PVR_REQUESTER_H */
