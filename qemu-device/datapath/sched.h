/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Whose turn it is: queue pairs with work, in bounded turns. */
#ifndef PVR_SCHED_H
#define PVR_SCHED_H

#include <stdbool.h>

struct pvr_engine;
struct pvr_qp;
struct pvr_srq;

/* @qp may have something to do: it gets a turn. Cheap, may be called at any time. */
void pvr_sched_kick(struct pvr_qp *qp);
/* @qp must get no more turns. */
void pvr_sched_remove(struct pvr_qp *qp);

/* The guest has posted receives: who waits for them need not wait longer. */
void pvr_sched_posted_recv(struct pvr_qp *qp);
void pvr_sched_posted_srq(struct pvr_srq *srq);

/* Some turns. Return: true if somebody waits for another. */
bool pvr_sched_run(struct pvr_engine *engine);

#endif /* PVR_SCHED_H */
