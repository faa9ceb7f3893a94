/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * CQs that may have been armed without our knowing.
 *
 * DOC: late arms
 *
 * Where doorbells are words in memory (ctrl/uar_poll.h), one that arms a CQ may be
 * overwritten by the next one for a CQ of the same context, such as that of the empty
 * poll that follows. That next one is seen. So from then on a CQ of that context counts
 * as possibly armed, until it has been notified: if completions are neither consumed nor
 * notified within LOST_ARM_NS, they are notified. An arm can be late, but not lost.
 *
 * A guest that polls, and is just busy, is bothered in vain; if it has a completion
 * channel, the event lies there until somebody looks. How soon an announcement is
 * answered tells the two apart: who had been waiting consumes at once. Each one that is
 * not answered within ANSWER_NS doubles the patience with that CQ, up to LOST_ARM_NS <<
 * BACKOFF_MAX; each one that is takes it back, in bigger steps.
 */
#ifndef PVR_CQ_LOST_ARM_H
#define PVR_CQ_LOST_ARM_H

#include "core/objects.h"

int pvr_cq_lost_arm_init(struct pvr_cq *cq);
void pvr_cq_lost_arm_exit(struct pvr_cq *cq);

/* @cq got a completion that it has not notified. */
void pvr_cq_lost_arm_pushed(struct pvr_cq *cq);
/* A doorbell of a CQ was seen: those that were overwritten may have been @cq's. */
void pvr_cq_lost_arm_rung(struct pvr_cq *cq);

#endif /* PVR_CQ_LOST_ARM_H */
