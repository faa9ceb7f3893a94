/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Visits of all queue pairs of an adapter, in steps of bounded work.
 *
 * DOC: sweeps
 *
 * - One event can concern all queue pairs of an adapter: a CQ or SRQ goes to its error state,
 *   the guest of a peer ends, or DMA begins: bus mastering, the start of the adapter.
 * - The worker visits the table of queue pairs in steps, and runs other adapters between two
 *   steps. Quanta and commands run between them, too.
 * - The position is a handle: queue pairs may be created and destroyed between the steps.
 * - What begins during a sweep gets the next sweep. So each sweep ends.
 */
#ifndef PVR_QP_SWEEP_H
#define PVR_QP_SWEEP_H

#include "core/adapter.h"

enum pvr_qp_sweep_for {
	PVR_SWEEP_ERRORS = 1 << 0, /* fail those with a CQ or SRQ in error */
	PVR_SWEEP_PEERS = 1 << 1, /* fail those whose peer is gone; needs DMA */
	PVR_SWEEP_KICK = 1 << 2, /* all may have work, and CQs may be armed */
};

/* The lock of the adapter is held, for all functions. */
void pvr_qp_sweep_begin(struct pvr_adapter *adapter, enum pvr_qp_sweep_for reason);
/* All queue pairs are about to be destroyed. */
void pvr_qp_sweep_cancel(struct pvr_adapter *adapter);
void pvr_qp_sweep_step(struct pvr_adapter *adapter);

/*
 * Return: whether a step has work now. A removal of RAM suspends sweeps together with DMA, and so
 * does a stop.
 */
static inline bool pvr_qp_sweep_is_due(const struct pvr_adapter *adapter)
{
	return __builtin_expect(adapter->qp_sweep.reasons, 0) && !adapter->suspended &&
	       adapter->run_state == PVR_RUN_RUNNING;
}

#endif /* PVR_QP_SWEEP_H */
