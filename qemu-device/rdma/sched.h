/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Whose turn it is: queue pairs with work, in bounded turns. */
#ifndef PVR_SCHED_H
#define PVR_SCHED_H

#include <stdbool.h>

struct pvr_adapter;
struct pvr_qp;
struct pvr_srq;
struct pvr_worker;

/* The lock of the adapter is held in all but pvr_sched_run(). */

/* @qp may have something to do: it gets a quantum. Cheap, may be called at any time. */
void pvr_sched_kick(struct pvr_qp *qp);
/* @qp must get no more turns. */
void pvr_sched_remove(struct pvr_qp *qp);

/* Some turns of the worker's adapters. No lock is held. */
void pvr_sched_run(struct pvr_worker *worker);
/* A quantum of @qp, here and now, if it has something to do. */
void pvr_sched_last_quantum(struct pvr_qp *qp);
/* Some turns of one adapter's queue pairs, here and now. */
void pvr_sched_run_adapter(struct pvr_adapter *adapter);

#endif /* PVR_SCHED_H */
