/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Devices that are gone (removed, failed, or without a driver) and CQs in error, for programs
 * that do nothing but poll: a ring in memory stays as it is, whoever is no longer there to fill
 * it.
 *
 * The kernel tells both by an asynchronous event, and what it tells it also leaves in the async
 * file until somebody reads it. A program that reads its events lets us see them on the way; for
 * one that does not, an empty poll looks at the file now and then. It asks the kernel only if
 * something is there.
 *
 * On a dead device all QPs are in the error state, so polling goes on as with those: what is
 * posted completes as flushed, in the ring, where the device will not write any more. Requests
 * that the device had taken can no longer be told. So a poll that finds nothing to flush is an
 * error, not an empty one: there is nothing to wait for.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "cq.h"

/* How often an empty poll looks at the file. */
#define LOOK_MSEC 100

static uint64_t now_msec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* A command that every live device answers; it fails with EIO when driver or device is gone. */
static bool kernel_has_device(struct pvr_context *ctx)
{
	struct ibv_port_attr attr;
	struct ibv_query_port cmd;
	int err;

	err = ibv_cmd_query_port(&ctx->ibv_ctx.context, 1, &attr, &cmd, sizeof(cmd));
	return err != EIO && err != ENODEV;
}

static bool is_alive(struct pvr_context *ctx)
{
	struct pollfd async = { .fd = ctx->ibv_ctx.context.async_fd, .events = POLLIN };

	if (poll(&async, 1, 0) < 1)
		return true;
	if (async.revents & (POLLERR | POLLHUP))
		return false;
	return !(async.revents & POLLIN) || kernel_has_device(ctx);
}

/* Is it time to look? At once after a notification that announced nothing. */
static bool is_due(struct pvr_cq *cq)
{
	uint64_t now;

	if (atomic_load_explicit(&cq->notified, memory_order_relaxed)) {
		atomic_store_explicit(&cq->notified, false, memory_order_relaxed);
		return true;
	}
	if (cq->empty_polls % PVR_CLOCK_POLLS)
		return false;
	now = now_msec();
	if (now - cq->looked < LOOK_MSEC)
		return false;
	cq->looked = now;
	return true;
}

static bool cq_full(const struct pvr_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->ring_shm->prod_tail, memory_order_relaxed);

	return pvr_ring_used(tail, cq->head, cq->num) >= cq->num;
}

static void push_flushed(struct pvr_cq *cq, const struct pvr_qp *qp, uint64_t wr_id,
			 uint32_t opcode)
{
	uint32_t tail = atomic_load_explicit(&cq->ring_shm->prod_tail, memory_order_relaxed);

	*pvr_cqe_at(cq, tail) = (struct pvrdma_cqe){
		.wr_id = wr_id,
		.qp = qp->handle,
		.opcode = opcode,
		.status = PVRDMA_WC_WR_FLUSH_ERR,
	};
	atomic_store_explicit(&cq->ring_shm->prod_tail, pvr_ring_next(tail, cq->num),
			      memory_order_relaxed);
}

/*
 * What the device can still see of the queue, or could: nothing is taken from it any more, and it
 * takes nothing. An index that cannot be means that there is nothing to be found.
 */
static uint32_t waiting(const struct pvr_wq *wq, uint32_t *head)
{
	uint32_t tail = atomic_load_explicit(&wq->ring_shm->prod_tail, memory_order_acquire), used;

	*head = atomic_load_explicit(&wq->ring_shm->cons_head, memory_order_relaxed);
	used = pvr_ring_used(tail, *head, wq->num);
	return used <= wq->num ? used : 0;
}

/*
 * Both kinds of element begin with wr_id. What does not fit comes with a later poll. Posters go
 * on: they hold the queue's lock only for each other, and we have that of the CQ. Returns EBUSY if
 * there is one, maybe this thread, between ibv_wr_start() and _complete(): more will come.
 */
static int flush_queue(struct pvr_cq *cq, const struct pvr_qp *qp, struct pvr_wq *wq,
		       uint32_t opcode)
{
	uint32_t head, n;

	if (!wq->num)
		return 0;
	for (n = waiting(wq, &head); n && !cq_full(cq); n--) {
		const uint64_t *wr_id = (const void *)(wq->wqes + ((size_t)(head & (wq->num - 1))
								   << wq->stride_shift));

		push_flushed(cq, qp, *wr_id, opcode);
		head = pvr_ring_next(head, wq->num);
		/* The release pairs with the acquire before the slot is written over. */
		atomic_store_explicit(&wq->ring_shm->cons_head, head, memory_order_release);
	}
	return pvr_lock_is_held(&wq->lock) ? EBUSY : 0;
}

static int flush_qp(struct pvr_cq *cq, struct pvr_qp *qp)
{
	int err = 0;

	if (to_pvr_cq(qp->verbs_qp.qp.send_cq) == cq)
		err |= flush_queue(cq, qp, &qp->sq, PVRDMA_WC_SEND);
	if (to_pvr_cq(qp->verbs_qp.qp.recv_cq) == cq)
		err |= flush_queue(cq, qp, &qp->rq, PVRDMA_WC_RECV);
	return err;
}

/*
 * Returns 0 if there are CQEs now, ENOENT if there may be later. The mutex keeps QPs of
 * other CQs from vanishing while we find ours; who holds it may wait for our lock, so we
 * only try, and the next poll tries again.
 */
static int flush_cq(struct pvr_context *ctx, struct pvr_cq *cq)
{
	struct pvr_qp *qp;
	int busy = 0;
	uint32_t i;

	if (pthread_mutex_trylock(&ctx->qp_mutex))
		return ENOENT;
	for (i = 0; i < ctx->qp_tbl_size; i++) {
		qp = atomic_load_explicit(&ctx->qp_tbl[i], memory_order_relaxed);
		if (qp)
			busy |= flush_qp(cq, qp);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (pvr_cq_fill(cq))
		return 0;
	return busy ? ENOENT : EIO;
}

int pvr_cq_ask_locked(struct pvr_cq *cq)
{
	struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);

	if (is_due(cq) && !is_alive(ctx))
		atomic_store(&ctx->dead, true);
	if (atomic_load_explicit(&ctx->dead, memory_order_relaxed))
		return flush_cq(ctx, cq);
	return atomic_load_explicit(&cq->broken, memory_order_relaxed) ? EIO : ENOENT;
}

void pvr_async_event(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		atomic_store(&to_pvr_context(ibctx)->dead, true);
	if (event->event_type == IBV_EVENT_CQ_ERR)
		atomic_store(&to_pvr_cq(event->element.cq)->broken, true);
}

/* A dead device's driver notifies all CQs. */
void pvr_cq_event(struct ibv_cq *ibcq)
{
	atomic_store_explicit(&to_pvr_cq(ibcq)->notified, true, memory_order_relaxed);
}
