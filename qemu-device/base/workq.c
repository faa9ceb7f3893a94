// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work queues: callbacks for another thread, which an eventfd wakes. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/workq.h"

static void workq_ready(struct pvr_source *source, uint32_t events)
{
	uint64_t count;

	/*
	 * Clear the eventfd first: an item that is added after the drain signals it
	 * again.
	 */
	if (read(source->fd, &count, sizeof(count)) > 0)
		pvr_workq_drain((struct pvr_workq *)source);
}

int pvr_workq_init(struct pvr_workq *workq, struct pvr_loop *loop)
{
	pthread_mutex_init(&workq->lock, NULL);
	STAILQ_INIT(&workq->list);
	workq->source = (struct pvr_source){ .ready = workq_ready };
	workq->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (workq->source.fd < 0)
		return -errno;
	return pvr_loop_add(loop, &workq->source, EPOLLIN);
}

void pvr_workq_exit(struct pvr_workq *workq)
{
	pvr_loop_remove(&workq->source);
	if (workq->source.fd >= 0)
		close(workq->source.fd);
	pthread_mutex_destroy(&workq->lock);
}

void pvr_workq_queue(struct pvr_workq *workq, struct pvr_work *work)
{
	const uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&workq->lock);
	first = STAILQ_EMPTY(&workq->list);
	STAILQ_INSERT_TAIL(&workq->list, work, link);
	pthread_mutex_unlock(&workq->lock);
	if (first && write(workq->source.fd, &one, sizeof(one)) < 0)
		return; /* the counter is at its limit: a wakeup is pending */
}

static struct pvr_work *take(struct pvr_workq *workq)
{
	struct pvr_work *work;

	pthread_mutex_lock(&workq->lock);
	work = STAILQ_FIRST(&workq->list);
	if (work)
		STAILQ_REMOVE_HEAD(&workq->list, link);
	pthread_mutex_unlock(&workq->lock);
	return work;
}

void pvr_workq_drain(struct pvr_workq *workq)
{
	struct pvr_work *work;

	while ((work = take(workq)))
		work->run(work);
}
