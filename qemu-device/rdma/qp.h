/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state of a queue pair, and what it waits for. */
#ifndef PVR_QP_H
#define PVR_QP_H

#include "core/objects.h"

/*
 * To ERR, with an event if @event is not PVR_EVENT_NUM; what is posted gets flushed
 * from pvr_engine_run().
 */
void pvr_qp_fail(struct pvr_qp *qp, enum pvr_eqe_type event, const char *why);
/* What it waits for. */
void pvr_qp_set_wait(struct pvr_qp *qp, enum pvr_qp_wait wait);
/* The one place that changes the state. */
void pvr_qp_set_state(struct pvr_qp *qp, enum pvr_qp_state state);
/* The requester got an RNR NAK: the next receive request wakes it, or has. */
void pvr_qp_set_rnr_nak_sent(struct pvr_qp *qp, bool waits);
/* It is to be woken in the next quantum, or has been. */
void pvr_qp_set_rnr_resume_pending(struct pvr_qp *qp, bool wakes);
/* Back to what it was when created, but for the number. */
void pvr_qp_reset_queues(struct pvr_qp *qp);
const char *pvr_qp_state_name(enum pvr_qp_state state);

#endif /* PVR_QP_H */
