// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The timer of the pipe path's requesters.
 *
 * DOC: timeout
 *
 * * An attempt takes four times the queue pair's timeout, while a request is in flight or
 *   waits for a connection.
 * * An attempt that ends without progress costs a retry. Nothing is resent by that: a
 *   connection that is up loses nothing, and after a broken connection the requests are
 *   resent on the next one.
 * * Progress starts a new attempt. The timer is not set again then: its handler compares
 *   the time of the last progress.
 */
#include "core/timer.h"
#include "rdma/cq.h"
#include "path/pipe/internal.h"
#include "path/pipe/sq.h"
#include "rdma/completer.h"
#include "rdma/qp.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

/* IBTA 9.7.6.1.3: from one to four times the timeout. */
#define TRY_FACTOR 4

static uint64_t try_ns(const struct pvr_qp *qp)
{
	return TRY_FACTOR * (4096ull << qp->attr.timeout);
}

static bool is_timed(const struct pvr_pipe_sq *sq)
{
	const struct pvr_qp *qp = sq->qp;

	return qp->attr.timeout && qp->type == PVR_QPT_RC &&
	       (qp->sq_inflight || (sq->down && qp->wait == PVR_QP_WAIT_CONN));
}

/* No host is known to have the peer's GID. */
static bool is_lost(const struct pvr_pipe_sq *sq)
{
	const struct pvr_qp *qp = sq->qp;

	return sq->down && !qp->path_host && qp->type == PVR_QPT_RC && qp->wait == PVR_QP_WAIT_CONN;
}

/*
 * Without the directory no event tells where the peer is. So the hosts that it has left are asked
 * again, each time after twice the time. That costs no retry.
 */
static void look_again_later(struct pvr_pipe_sq *sq)
{
	struct pvr_timers *timers = &sq->qp->adapter->timers;
	struct pvr_timer *timer = &sq->qp->timer;
	uint64_t now = pvr_now(sq->qp->adapter->engine), ns = PVR_NO_TIMEOUT_POLL_NS;

	if (sq->qp->attr.timeout) {
		ns = now - sq->progress;
		ns = ns > PVR_ASK_AGAIN_NS ? ns : PVR_ASK_AGAIN_NS;
	}
	if (!pvr_timer_is_set(timer) || pvr_timer_deadline(timers, timer) > now + ns)
		pvr_timer_set(timers, timer, now + ns);
}

void pvr_pipe_start_timer(struct pvr_pipe_sq *sq)
{
	struct pvr_qp *qp = sq->qp;

	if (is_timed(sq) && !pvr_timer_is_set(&qp->timer)) {
		sq->progress = pvr_now(qp->adapter->engine);
		pvr_timer_set(&qp->adapter->timers, &qp->timer, sq->progress + try_ns(qp));
	}
	if (is_lost(sq))
		look_again_later(sq);
}

static void look_again(struct pvr_qp *qp)
{
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

static void try_is_over(struct pvr_pipe_sq *sq, uint64_t now)
{
	struct pvr_qp *qp = sq->qp;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	/* The guest has lowered its producer index, so no request waits. */
	if (pvr_wq_avail(&qp->sq) <= 0)
		return;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	if (!pvr_requester_retry(qp, &wqe))
		return;
	sq->progress = now;
	pvr_timer_set(&qp->adapter->timers, &qp->timer, now + try_ns(qp));
	if (!sq->down && !sq->gap)
		return;
	/*
	 * Request a connection again, or resend to get the response that was not
	 * accepted.
	 */
	look_again(qp);
}

/* A start of the adapter begins the wait again: the time before it counts as no wait. */
static uint64_t wait_since(const struct pvr_pipe_sq *sq)
{
	uint64_t started_at = sq->qp->adapter->started_at;

	return sq->progress > started_at ? sq->progress : started_at;
}

void pvr_pipe_timeout(struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = qp->pipe_sq;
	uint64_t now, deadline;

	if (!sq || !pvr_pipe_is_sending(qp))
		return;
	if (!is_timed(sq)) {
		if (is_lost(sq))
			look_again(qp);
		return;
	}
	now = pvr_now(qp->adapter->engine);
	deadline = wait_since(sq) + try_ns(qp);
	if (!pvr_adapter_dma_ok(qp->adapter))
		deadline = now + try_ns(qp);
	if (now >= deadline) {
		try_is_over(sq, now);
	} else {
		pvr_timer_set(&qp->adapter->timers, &qp->timer, deadline);
		if (is_lost(sq))
			look_again(qp);
	}
	pvr_publish(qp->adapter);
}
