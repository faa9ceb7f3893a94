/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work queues: callbacks for another thread, which an eventfd wakes. */
#ifndef PVR_BASE_WORKQ_H
#define PVR_BASE_WORKQ_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/loop.h"

/*
 * A work item, embedded in the caller's struct. The caller must not touch it until run()
 * is called.
 */
struct pvr_work {
	/*
	 * Called in the thread of the queue's loop. May free the item or queue it again.
	 */
	void (*run)(struct pvr_work *work);
	STAILQ_ENTRY(pvr_work) link;
};

struct pvr_workq {
	struct pvr_source source;
	pthread_mutex_t lock; /* protects the list; innermost */
	STAILQ_HEAD(pvr_work_list, pvr_work) list;
};

/* The items run in @loop's thread. Return: 0 or -errno. */
int pvr_workq_init(struct pvr_workq *workq, struct pvr_loop *loop);
/* The queue must be empty, see pvr_workq_drain(). */
void pvr_workq_exit(struct pvr_workq *workq);

/* Adds an item. Any thread; never fails. */
void pvr_workq_queue(struct pvr_workq *workq, struct pvr_work *work);
/* Runs all items, from the loop's thread or while that does not run. */
void pvr_workq_drain(struct pvr_workq *workq);

#endif /* PVR_BASE_WORKQ_H */
