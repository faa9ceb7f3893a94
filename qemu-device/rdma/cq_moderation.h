/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion event moderation: fewer notifications of a CQ. */
#ifndef PVR_CQ_MODERATION_H
#define PVR_CQ_MODERATION_H

#include "core/objects.h"

/*
 * DOC: moderation
 *
 * - The guest sets a number of completions and a period, PVR_EXT_CQ_MODERATION.
 * - The notification of an armed CQ waits until so many completions have come since the
 *   last one, or until the period since the first of them has passed. The period always
 *   bounds the wait: without one there is no moderation.
 * - The CQ stays armed meanwhile.
 */

/* Return: 0, or -ENOMEM: the moderation is unchanged. @count 0: only the period ends the wait. */
int pvr_cq_moderation_set(struct pvr_cq *cq, uint16_t count, uint16_t period_us);
void pvr_cq_moderation_exit(struct pvr_cq *cq);

/* pvr_cq_moderation_holds() of a CQ with moderation. */
bool pvr_cq_moderation_holds_back(struct pvr_cq *cq);

/*
 * The CQ is armed, and has completions that it was armed for. Return: true if the
 * notification waits; the moderation then notifies.
 */
static inline bool pvr_cq_moderation_holds(struct pvr_cq *cq)
{
	return cq->moderation.period_us && pvr_cq_moderation_holds_back(cq);
}

#endif /* PVR_CQ_MODERATION_H */
