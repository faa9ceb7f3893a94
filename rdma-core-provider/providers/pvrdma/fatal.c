// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Detection of dead devices (removed, failed, or without a driver) and of CQs in error,
 * for programs that only poll. Nothing changes in such a ring.
 *
 * The kernel reports both by an asynchronous event, which stays in the async file until
 * it is read. A program that reads its events lets the provider see them. For other
 * programs an empty poll checks the file at intervals. Only if the file is readable, it
 * queries the kernel.
 *
 * All QPs of a dead device are in the error state. So polling continues as for those:
 * outstanding requests complete as flushed, by CQEs that the provider writes. A poll that
 * finds nothing to flush is an error instead of an empty poll: no completion will follow.
 *
 * The device may be alive nevertheless, for a short time or by mistake. So a CQ then has a
 * ring of its own, and the provider writes no index that the device writes. A completion
 * that the device writes later is not seen: its request is flushed, once.
 */
#include <errno.h>
#include <poll.h>

#include "cq.h"

/* Interval of the checks of the async file, in ms. */
#define LOOK_MSEC 100

/*
 * Runs a command that every live device supports. It fails with EIO if driver or device
 * is gone.
 */
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

/*
 * Returns whether a check is due: after an interval, or after a notification without a
 * CQE.
 */
static bool is_due(struct pvr_cq *cq)
{
	uint64_t now;

	if (atomic_load_explicit(&cq->notified, memory_order_relaxed)) {
		atomic_store_explicit(&cq->notified, false, memory_order_relaxed);
		return true;
	}
	if (cq->empty_polls % PVR_CLOCK_POLLS)
		return false;
	now = pvr_now_msec();
	if (now - cq->looked < LOOK_MSEC)
		return false;
	cq->looked = now;
	return true;
}

static bool cq_full(const struct pvr_cq *cq)
{
	uint32_t tail = pvr_shm_load(&cq->ring_shm->prod_tail, memory_order_relaxed);

	return pvr_ring_used(tail, cq->head & (2 * cq->num - 1), cq->num) >= cq->num;
}

/* wr_id: as the device would return it */
static void push_flushed(struct pvr_cq *cq, const struct pvr_qp *qp, uint64_t wr_id,
			 uint32_t opcode)
{
	uint32_t tail = pvr_shm_load(&cq->ring_shm->prod_tail, memory_order_relaxed);

	*pvr_cqe_at(cq, tail) = (struct pvr_cqe){
		.wr_id = htole64(wr_id),
		.qp = htole64(qp->handle),
		.opcode = htole32(opcode),
		.status = htole32(PVRDMA_WC_WR_FLUSH_ERR),
	};
	pvr_shm_store(&cq->ring_shm->prod_tail, pvr_ring_next(tail, cq->num), memory_order_relaxed);
}

/*
 * Returns the number of outstanding requests that are published, 0 if the index is
 * impossible. More may follow between ibv_wr_start() and ibv_wr_complete().
 */
static uint32_t published(const struct pvr_wq *wq)
{
	uint32_t tail = pvr_shm_load(&wq->ring_shm->prod_tail, memory_order_acquire), used;

	used = (tail - atomic_load_explicit(&wq->polled, memory_order_relaxed)) & wq->idx_mask;
	return tail < 2 * wq->num && used <= wq->num ? used : 0;
}

/*
 * Flushes a queue as far as the CQ has room; a later poll continues. Posting may run
 * concurrently: the queue's lock excludes only other posters, and cq->lock other pollers.
 * Returns EBUSY if the lock is held, maybe by this thread between ibv_wr_start() and
 * ibv_wr_complete(): more elements may follow.
 */
static int flush_queue(struct pvr_cq *cq, const struct pvr_qp *qp, struct pvr_wq *wq,
		       uint32_t opcode)
{
	const struct pvr_rq_wqe *wqe;
	uint32_t number, n;

	if (!wq->num)
		return 0;
	number = atomic_load_explicit(&wq->polled, memory_order_relaxed);
	for (n = published(wq); n && !cq_full(cq); n--, number++) {
		wqe = pvr_wq_slot(wq, number);
		push_flushed(cq, qp, wq->wr_ids ? number : le64toh(wqe->wr_id), opcode);
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
 * Returns 0 if there are CQEs, ENOENT if there may be some later, EIO if not. The mutex
 * keeps the QPs of other CQs during the search.
 */
static int flush_cq(struct pvr_context *ctx, struct pvr_cq *cq)
{
	struct pvr_qp *qp;
	int busy = 0;
	uint32_t i;

	if (pvr_cq_leave_device(cq))
		return ENOENT; /* later, maybe */
	pthread_mutex_lock(&ctx->qp_mutex);
	for (i = 0; i < ctx->qp_tbl_size; i++) {
		qp = ctx->qp_tbl[i];
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

/* The driver of a dead device notifies all CQs. */
void pvr_cq_event(struct ibv_cq *ibcq)
{
	atomic_store_explicit(&to_pvr_cq(ibcq)->notified, true, memory_order_relaxed);
}
