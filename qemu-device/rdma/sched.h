/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The scheduler: runs queue pairs with work in bounded quanta. */
#ifndef PVR_SCHED_H
#define PVR_SCHED_H

#include <stdbool.h>

struct pvr_adapter;
struct pvr_qp;
struct pvr_srq;
struct pvr_worker;

/* Context: the lock of the adapter is held, except in pvr_sched_run(). */

/* Give @qp a quantum: it may have work. Cheap; further calls have no effect. */
void pvr_sched_kick(struct pvr_qp *qp);
/* The same for a quantum that sends nothing: no limit delays it, see pvr_shaper_is_free(). */
void pvr_sched_kick_unlimited(struct pvr_qp *qp);
/* Cancel the quantum of @qp. */
void pvr_sched_remove(struct pvr_qp *qp);

/* Run some quanta of the worker's adapters. No lock is held. */
void pvr_sched_run(struct pvr_worker *worker);
/* Run a quantum of @qp now, if it has work. */
void pvr_sched_last_quantum(struct pvr_qp *qp);
/* Run some quanta of one adapter's queue pairs now. */
void pvr_sched_run_adapter(struct pvr_adapter *adapter);

#endif /* PVR_SCHED_H */
