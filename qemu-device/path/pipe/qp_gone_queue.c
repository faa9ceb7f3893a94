// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QP_GONE frames that wait for a connection to their host. */
#include "path/pipe/qp_gone_queue.h"

#include <stdlib.h>
#include <string.h>

#include "path/pipe/host.h"

void pvr_qp_gone_kept_free(struct pvr_qp_gone_kept *kept, struct pvr_pipe *pipe)
{
	__atomic_fetch_sub(&pipe->qps_gone, 1, __ATOMIC_RELAXED);
	free(kept);
}

static struct pvr_qp_gone_kept *take_first(struct pvr_qp_gone_queue *queue)
{
	struct pvr_qp_gone_kept *kept = STAILQ_FIRST(&queue->kept);

	if (kept) {
		STAILQ_REMOVE_HEAD(&queue->kept, link);
		queue->num--;
	}
	return kept;
}

void pvr_qp_gone_queue_init(struct pvr_qp_gone_queue *queue)
{
	STAILQ_INIT(&queue->kept);
	queue->num = 0;
}

void pvr_qp_gone_queue_exit(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe)
{
	struct pvr_qp_gone_kept *kept;

	while ((kept = take_first(queue)))
		pvr_qp_gone_kept_free(kept, pipe);
}

static bool is_old(const struct pvr_qp_gone_kept *kept, uint64_t now)
{
	return now - kept->since > PVR_QP_GONE_KEPT_NS;
}

static void drop_old(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe, uint64_t now)
{
	while (queue->num && is_old(STAILQ_FIRST(&queue->kept), now))
		pvr_qp_gone_kept_free(take_first(queue), pipe);
}

struct pvr_qp_gone_kept *pvr_qp_gone_queue_take(struct pvr_qp_gone_queue *queue,
						struct pvr_pipe *pipe, uint64_t now)
{
	drop_old(queue, pipe, now);
	return take_first(queue);
}

void pvr_qp_gone_queue_put_back(struct pvr_qp_gone_queue *queue, struct pvr_qp_gone_kept *kept)
{
	STAILQ_INSERT_HEAD(&queue->kept, kept, link);
	queue->num++;
}

/* Return: NULL if one more is too many, or memory is short. */
static struct pvr_qp_gone_kept *new_kept(const struct pvr_qp_gone_queue *queue,
					 struct pvr_pipe *pipe)
{
	struct pvr_qp_gone_kept *kept = NULL;

	if (queue->num >= PVR_QP_GONE_PER_HOST)
		return NULL;
	if (__atomic_add_fetch(&pipe->qps_gone, 1, __ATOMIC_RELAXED) <= PVR_QP_GONE_PER_PIPE)
		kept = calloc(1, sizeof(*kept));
	if (!kept)
		__atomic_fetch_sub(&pipe->qps_gone, 1, __ATOMIC_RELAXED);
	return kept;
}

bool pvr_qp_gone_queue_add(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe, uint64_t now,
			   const char *fabric, const struct pvr_frame_qp_gone *frame)
{
	struct pvr_qp_gone_kept *kept;

	drop_old(queue, pipe, now);
	kept = new_kept(queue, pipe);
	if (!kept)
		return false;
	kept->since = now;
	kept->frame = *frame;
	strncpy(kept->fabric, fabric, sizeof(kept->fabric) - 1);
	STAILQ_INSERT_TAIL(&queue->kept, kept, link);
	queue->num++;
	return true;
}
