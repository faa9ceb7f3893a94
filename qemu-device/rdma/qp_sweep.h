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
 * - Reasons that need no DMA have a sweep of their own, which goes on while the adapter is stopped.
 */
#ifndef PVR_QP_SWEEP_H
#define PVR_QP_SWEEP_H

#include "core/adapter.h"

enum pvr_qp_sweep_for {
	PVR_SWEEP_ERRORS = 1 << 0, /* fail those with a CQ or SRQ in error */
	PVR_SWEEP_PEERS = 1 << 1, /* fail those whose peer is gone; needs DMA */
	PVR_SWEEP_KICK = 1 << 2, /* all may have work, and CQs may be armed */
	PVR_SWEEP_WATCH = 1 << 3, /* find the peers of those that have none */
	PVR_SWEEP_FORGET = 1 << 4, /* forget peers that have moved to another host */
	PVR_SWEEP_RESUME = 1 << 6, /* other hosts may be reachable now; needs DMA */
	PVR_SWEEP_STALE = 1 << 5, /* end the connections, see pvr_qp_end_connections() */
};

#define PVR_SWEEP_WITHOUT_DMA (PVR_SWEEP_WATCH | PVR_SWEEP_FORGET | PVR_SWEEP_STALE)

/* The lock of the adapter is held, for all functions. */
void pvr_qp_sweep_begin(struct pvr_adapter *adapter, enum pvr_qp_sweep_for reason);
/* All queue pairs are about to be destroyed. */
void pvr_qp_sweep_cancel(struct pvr_adapter *adapter);
void pvr_qp_sweep_step(struct pvr_adapter *adapter);

/*
 * The peers of the adapter have gone on since its state was read. They would take new requests for
 * old ones, which they acknowledge and do not execute. So all connections end, except those that
 * the guest makes from now on. Until the sweep ends the adapter neither sends requests nor executes
 * them, and its peers wait. The first step is made at once.
 */
void pvr_qp_end_connections(struct pvr_adapter *adapter);
/* End that of a queue pair that is being saved, if the sweep has not come to it. */
void pvr_qp_end_connection(struct pvr_qp *qp);
/* The guest connects the queue pair. */
void pvr_qp_note_connection(struct pvr_qp *qp);

/*
 * Return: whether a step has work now. A removal of RAM suspends sweeps together with DMA. A stop
 * suspends those that need DMA.
 */
static inline bool pvr_qp_sweep_is_due(const struct pvr_adapter *adapter)
{
	return __builtin_expect(adapter->qp_sweep.reasons | adapter->watch_sweep.reasons, 0) &&
	       !adapter->suspended &&
	       (adapter->run_state == PVR_RUN_RUNNING ||
		(adapter->run_state == PVR_RUN_STOPPED && adapter->watch_sweep.reasons));
}

#endif /* PVR_QP_SWEEP_H */
