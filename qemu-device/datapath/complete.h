/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completions and their notification. */
#ifndef PVR_COMPLETE_H
#define PVR_COMPLETE_H

#include "model/objects.h"

/**
 * pvr_cq_push() - write a completion and notify the guest if the CQ is armed for it
 * @cqe: complete but for qp, which names @qp
 * @solicited: it ends a wait for solicited completions; errors always do
 *
 * A CQ without room goes to its error state (IBTA vol. 1, 10.10.2.3 and 11.6.3.2).
 */
void pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
		 bool solicited);

/*
 * The guest asks for one notification. Completions that it has not consumed and was
 * not told of count at once, as they may have come between its last look and this.
 */
void pvr_cq_arm(struct pvr_adapter *adapter, struct pvr_cq *cq, enum pvr_cq_arm arm);

#endif /* PVR_COMPLETE_H */
