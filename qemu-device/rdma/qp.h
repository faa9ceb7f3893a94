/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state of a queue pair, and its waits. */
#ifndef PVR_QP_H
#define PVR_QP_H

#include "core/objects.h"

/*
 * Move the queue pair to ERR, and queue @event unless it is PVR_EVENT_NUM. Its next
 * quantum flushes posted requests. Return: false if it was in ERR or RESET.
 */
bool pvr_qp_fail(struct pvr_qp *qp, enum pvr_eqe_type event, const char *why);
/* Set the reason for which the send queue waits, or PVR_QP_RUNNING. */
void pvr_qp_set_wait(struct pvr_qp *qp, enum pvr_qp_wait wait);
/* Change the state. Only pvr_requester_drain() changes it otherwise. */
void pvr_qp_set_state(struct pvr_qp *qp, enum pvr_qp_state state);
/* @waits: the requester got an RNR NAK, and the next receive request resumes it. */
void pvr_qp_set_rnr_nak_sent(struct pvr_qp *qp, bool waits);
/* @wakes: the next quantum resumes the requester. */
void pvr_qp_set_rnr_resume_pending(struct pvr_qp *qp, bool wakes);
/*
 * The end of a wait for receives: no requester of @qp waits any more. A request of an SRQ
 * that is reserved for it goes to the next requester that waits there.
 */
void pvr_qp_drop_requester(struct pvr_qp *qp);
/*
 * RESET: initialize all state but the number and the multicast groups. Its windows must be
 * unbound.
 */
void pvr_qp_reset_queues(struct pvr_qp *qp);
/* Keep the reason of a failure, for display. @why: lives as long as the process. */
void pvr_qp_note_error(struct pvr_qp *qp, const char *why);
const char *pvr_qp_state_name(enum pvr_qp_state state);

#endif /* PVR_QP_H */
