/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work for another thread: a list, and an eventfd that its loop watches. */
#ifndef PVR_BASE_WORKQ_H
#define PVR_BASE_WORKQ_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/loop.h"

/* Part of what is sent; the sender leaves it alone until run() has been called. */
struct pvr_work {
	/* In the thread that reads. May free the work, and send it on. */
	void (*run)(struct pvr_work *work);
	STAILQ_ENTRY(pvr_work) link;
};

struct pvr_workq {
	struct pvr_source source;
	pthread_mutex_t lock; /* protects the list; nothing is taken inside it */
	STAILQ_HEAD(pvr_work_list, pvr_work) list;
};

/* Reads in @loop's thread. 0 or -errno. */
int pvr_workq_init(struct pvr_workq *workq, struct pvr_loop *loop);
/* It is empty, see pvr_workq_drain(). */
void pvr_workq_exit(struct pvr_workq *workq);

/* From any thread. Never fails. */
void pvr_workq_queue(struct pvr_workq *workq, struct pvr_work *work);
/* Run what there is, while the reader's loop does not run or from it. */
void pvr_workq_drain(struct pvr_workq *workq);

#endif /* PVR_BASE_WORKQ_H */
