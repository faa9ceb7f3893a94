/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * CQs whose arm doorbell may have been overwritten.
 *
 * DOC: lost arms
 *
 * With mapped doorbell pages (ctrl/uar_poll.h) a later CQ doorbell of the same context,
 * such as that of an empty poll, can overwrite an arm that the device has not read.
 *
 * - The device always sees the later doorbell. From then on each CQ of the context counts
 *   as possibly armed, until its next notification.
 * - If the guest does not consume the completions of such a CQ within LOST_ARM_NS, the
 *   device notifies it. So an arm can be delayed, but not lost.
 *
 * A guest that polls may just be slow: then the notification is spurious. A guest that
 * sleeps consumes soon after it. So the time to the guest's answer controls the timeout
 * of the CQ:
 *
 * - no consumption within ANSWER_NS: the timeout doubles, up to LOST_ARM_NS <<
 *   BACKOFF_MAX;
 * - consumption within ANSWER_NS: the timeout is divided by 1 << BACKOFF_STEP, down to
 *   LOST_ARM_NS.
 */
#ifndef PVR_CQ_LOST_ARM_H
#define PVR_CQ_LOST_ARM_H

#include "core/objects.h"

int pvr_cq_lost_arm_init(struct pvr_cq *cq);
void pvr_cq_lost_arm_exit(struct pvr_cq *cq);

/* @cq has a completion that the guest was not notified of. */
void pvr_cq_lost_arm_pushed(struct pvr_cq *cq);
/* A CQ doorbell of the context was read: it may have overwritten an arm of @cq. */
void pvr_cq_lost_arm_rung(struct pvr_cq *cq);

#endif /* PVR_CQ_LOST_ARM_H */
