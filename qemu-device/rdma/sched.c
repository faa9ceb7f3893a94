// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The scheduler: runs queue pairs with work in bounded quanta.
 *
 * DOC: fairness
 *
 * - A worker visits its adapters round robin, and each visit runs one quantum of one
 *   queue pair. So a VM with many queue pairs gets no more than a VM with few.
 * - A run of the worker has a bounded number of quanta, and fewer if they are long.
 * - The lock of an adapter is released after each quantum, for peers on other workers.
 * - A quantum that finds its peer's adapter locked is repeated in a later round.
 * - If all quanta find that, the worker first waits for the peer's lock, for a bounded
 *   time and without a lock of its own, and then tries its own adapter's lock. So two
 *   workers that need each other's adapters both make progress.
 */
#include "rdma/sched.h"

#include <errno.h>

#include "rdma/worker.h"
#include "rdma/path.h"
#include "core/wq.h"
#include "rdma/db_suppress.h"
#include "rdma/requester.h"
#include "core/objects.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/rq.h"
#include "rdma/shaper.h"

#define QUANTA_PER_RUN 32
/*
 * A quantum with all of its requests or bytes can take 0.3 ms, by TLS for example. Doorbells of
 * other adapters arrive at sockets, so a run with such quanta ends after this time.
 */
#define RUN_NS 500000ull
/* So many successive quanta with a locked peer mean that there is no other work. */
#define BLOCKED_IN_A_ROW 8
/*
 * Bounds of the wait for a peer's lock: other adapters must run even if it is never free.
 */
#define WAIT_NOTHING_ELSE_NS 200000
#define WAIT_BETWEEN_NS 10000

void pvr_sched_kick(struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = qp->adapter;

	if (qp->is_ready)
		return;
	qp->is_ready = true;
	pvr_db_disable(qp);
	/* Such a quantum runs while the others wait for a limit. */
	if (adapter->shaper && pvr_shaper_is_free(qp))
		TAILQ_INSERT_HEAD(&adapter->ready, qp, ready);
	else
		TAILQ_INSERT_TAIL(&adapter->ready, qp, ready);
	pvr_worker_queue(adapter);
}

void pvr_sched_kick_unlimited(struct pvr_qp *qp)
{
	if (qp->adapter->shaper)
		pvr_sched_remove(qp);
	pvr_sched_kick(qp);
}

void pvr_sched_remove(struct pvr_qp *qp)
{
	if (!qp->is_ready)
		return;
	qp->is_ready = false;
	TAILQ_REMOVE(&qp->adapter->ready, qp, ready);
}

/* ------------------------------------------------------------- resuming requesters */

/* Return: false if the requester's adapter is locked. */
static bool wake_peer(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path;

	pvr_path_refresh(qp);
	path = qp->adapter->engine->paths[qp->path_target];
	if (path->rnr_resume)
		return path->rnr_resume(qp);
	/*
	 * Requesters of this path retry by timer; the path may have changed since the RNR
	 * NAK.
	 */
	pvr_qp_set_rnr_resume_pending(qp, false);
	pvr_sched_pass_on(qp);
	return true;
}

/* ----------------------------------------------------------------------- quanta */

static void count(struct pvr_worker *worker, const struct pvr_adapter *adapter, uint64_t messages,
		  uint64_t bytes)
{
	struct pvr_worker_stats *stats = &worker->stats;

	pvr_stat_add(&stats->quanta, 1);
	pvr_stat_add(&stats->messages, adapter->stat[PVR_STAT_TX_MSGS] - messages);
	pvr_stat_add(&stats->bytes, adapter->stat[PVR_STAT_TX_BYTES] - bytes);
}

/*
 * Return: whether a quantum that has ended by its limit has ended with the last request. Requests
 * in flight to another host may have more fragments.
 */
static bool has_sent_all(const struct pvr_qp *qp)
{
	return !qp->sq_inflight && !pvr_requester_has_work(qp);
}

/*
 * Run one quantum of @qp, which is ready: pvr_sched_kick() has removed it from the list
 * of polled queue pairs. @worker: counts the quantum; NULL outside of a run. @shaped: its adapter
 * has a shaper; a constant, so that quanta without one execute none of it.
 */
static pvr_always_inline enum pvr_quantum run_quantum(struct pvr_worker *worker, struct pvr_qp *qp,
						      bool shaped)
{
	struct pvr_adapter *adapter = qp->adapter;
	uint64_t messages = adapter->stat[PVR_STAT_TX_MSGS];
	uint64_t bytes = adapter->stat[PVR_STAT_TX_BYTES];
	enum pvr_quantum result = PVR_QUANTUM_DONE;

	adapter->runner = worker;
	/* That of an earlier quantum may be freed. */
	adapter->contended_peer = NULL;
	pvr_sched_remove(qp);
	if (pvr_adapter_may_request(adapter))
		result = qp->rnr_resume_pending && !wake_peer(qp) ? PVR_QUANTUM_BUSY
								  : pvr_requester_run(qp);
	if (shaped && result == PVR_QUANTUM_MORE && has_sent_all(qp))
		result = PVR_QUANTUM_DONE;
	if (result != PVR_QUANTUM_DONE || pvr_db_idle(qp))
		pvr_sched_kick(qp);
	pvr_adapter_unlock_peer(adapter);
	adapter->runner = NULL;
	if (worker)
		count(worker, adapter, messages, bytes);
	return result;
}

static pvr_noinline enum pvr_quantum run_shaped_qp(struct pvr_worker *worker, struct pvr_qp *qp)
{
	struct pvr_shaper *shaper = qp->adapter->shaper;
	enum pvr_quantum result;

	pvr_shaper_start_count(shaper, qp);
	result = run_quantum(worker, qp, true);
	pvr_shaper_end(shaper);
	return result;
}

static enum pvr_quantum run_qp(struct pvr_worker *worker, struct pvr_qp *qp)
{
	return qp->adapter->shaper ? run_shaped_qp(worker, qp) : run_quantum(worker, qp, false);
}

/* Return: false if its adapter waits for a limit. */
static bool may_run(struct pvr_adapter *adapter, const struct pvr_qp *qp)
{
	return !adapter->shaper || pvr_shaper_begin(adapter->shaper, qp);
}

void pvr_sched_last_quantum(struct pvr_qp *qp)
{
	if (qp->wait == PVR_QP_WAIT_RETRY)
		pvr_requester_resume(qp);
	if (!pvr_requester_has_work(qp) || pvr_wq_avail(&qp->sq) <= 0)
		return;
	if (qp->adapter->shaper && !pvr_shaper_may_end_qp(qp->adapter->shaper))
		return;
	pvr_sched_kick(qp);
	run_qp(NULL, qp);
}

void pvr_sched_run_adapter(struct pvr_adapter *adapter)
{
	unsigned int quanta = QUANTA_PER_RUN;
	struct pvr_qp *qp;

	while (quanta-- && (qp = TAILQ_FIRST(&adapter->ready)) && may_run(adapter, qp))
		run_qp(NULL, qp);
}

static void note_contended(struct pvr_worker *worker, struct pvr_qp *qp)
{
	pvr_stat_add(&worker->stats.lock_contended, 1);
	if (worker->contended.peer)
		return;
	worker->contended = (struct pvr_contended){
		.adapter = qp->adapter,
		.peer = qp->adapter->contended_peer,
		.qp = qp,
		.handle = qp->handle,
	};
}

/* Prefetch all cache lines of an object. */
static void prefetch_object(const void *object, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += 64)
		__builtin_prefetch((const char *)object + at);
}

/*
 * Thousands of queue pairs do not fit in the cache: this quantum prefetches data of the
 * next two. A queue pair is prefetched two quanta ahead, the memory that it points to
 * one.
 */
static void prefetch_next(const struct pvr_qp *qp)
{
	const struct pvr_qp *next = TAILQ_NEXT(qp, ready), *second;

	if (!next)
		return;
	second = TAILQ_NEXT(next, ready);
	if (second)
		prefetch_object(second, sizeof(*second));
	__builtin_prefetch(next->sq.shm);
	prefetch_object(pvr_wq_element(&next->sq, next->sq.head), 2 * 64);
	if (next->peer)
		prefetch_object(next->peer, sizeof(*next->peer));
}

static bool has_steps(const struct pvr_adapter *adapter)
{
	return adapter->job.step || pvr_qp_sweep_is_due(adapter);
}

/*
 * A guest that gives one command after the other does not delay its sweeps. Return: whether
 * steps remain.
 */
static bool run_steps(struct pvr_worker *worker, struct pvr_adapter *adapter)
{
	if (adapter->job.step)
		pvr_job_step(adapter);
	if (pvr_qp_sweep_is_due(adapter))
		pvr_qp_sweep_step(adapter);
	worker->stepped = true;
	return has_steps(adapter);
}

/* Run a quantum of an adapter with limits or a weight, if they permit it. */
static pvr_noinline enum pvr_quantum run_shaped(struct pvr_worker *worker,
						struct pvr_adapter *adapter, struct pvr_qp *qp)
{
	struct pvr_shaper *shaper = adapter->shaper;

	if (!qp) {
		pvr_shaper_rest(shaper);
		return PVR_QUANTUM_DONE;
	}
	if (!pvr_shaper_take_turn(shaper) || !pvr_shaper_begin(shaper, qp))
		return PVR_QUANTUM_DONE;
	prefetch_next(qp);
	return run_shaped_qp(worker, qp);
}

/*
 * Put the adapter behind the others, unless its weight gives it another quantum first, or it
 * waits for a limit.
 */
static pvr_noinline void queue_shaped(struct pvr_worker *worker, struct pvr_adapter *adapter,
				      bool steps, bool busy)
{
	const struct pvr_shaper *shaper = adapter->shaper;

	adapter->queued = steps || (!TAILQ_EMPTY(&adapter->ready) && !shaper->is_waiting);
	if (!adapter->queued)
		return;
	if (!busy && pvr_shaper_has_turn(shaper))
		TAILQ_INSERT_HEAD(&worker->active, adapter, busy);
	else
		TAILQ_INSERT_TAIL(&worker->active, adapter, busy);
}

static void queue_again(struct pvr_worker *worker, struct pvr_adapter *adapter, bool steps)
{
	adapter->queued = steps || !TAILQ_EMPTY(&adapter->ready);
	if (adapter->queued)
		TAILQ_INSERT_TAIL(&worker->active, adapter, busy);
}

/* A queued adapter may have no work any more, or only interrupts. */
static enum pvr_quantum run_adapter(struct pvr_worker *worker, struct pvr_adapter *adapter)
{
	enum pvr_quantum result = PVR_QUANTUM_DONE;
	struct pvr_qp *qp;
	bool steps;

	if (pvr_lock_is_wanted(&adapter->lock))
		pvr_lock_yield(&adapter->lock);
	pvr_adapter_lock(adapter);
	qp = TAILQ_FIRST(&adapter->ready);
	if (adapter->shaper) {
		result = run_shaped(worker, adapter, qp);
	} else if (qp) {
		prefetch_next(qp);
		adapter->quantum_bytes = TAILQ_NEXT(adapter, busy) ? PVR_QUANTUM_BYTES_SHARED
								   : PVR_QUANTUM_BYTES;
		result = run_quantum(worker, qp, false);
	}
	if (result == PVR_QUANTUM_BUSY)
		note_contended(worker, qp);
	steps = has_steps(adapter) && run_steps(worker, adapter);
	TAILQ_REMOVE(&worker->active, adapter, busy);
	if (adapter->shaper)
		queue_shaped(worker, adapter, steps, result == PVR_QUANTUM_BUSY);
	else
		queue_again(worker, adapter, steps);
	pvr_adapter_leave(adapter, worker);
	return result;
}

/* --------------------------------------------------------------- contended quanta */

/* Both locks are held. This function passes the peer's lock to the quantum. */
static void contended_quantum(struct pvr_worker *worker, const struct pvr_contended *contended)
{
	struct pvr_adapter *adapter = contended->adapter;
	struct pvr_qp *qp = pvr_qp_get(adapter, contended->handle);

	adapter->locked_peer = contended->peer;
	adapter->runner = worker;
	/* Without the lock the queue pair may have run, or been destroyed. */
	if (qp && qp == contended->qp && qp->is_ready && may_run(adapter, qp))
		run_qp(worker, qp);
	else
		pvr_adapter_unlock_peer(adapter);
	adapter->runner = NULL;
	pvr_adapter_leave(adapter, worker);
}

static void wait_for_peer(struct pvr_worker *worker, uint64_t ns)
{
	struct pvr_contended contended = worker->contended;

	worker->contended.peer = NULL;
	if (!pvr_lock_for(&contended.peer->lock, ns))
		return;
	/* Only a try: its holder may wait for the peer's lock. */
	if (pvr_lock_take(&contended.adapter->lock))
		contended_quantum(worker, &contended);
	else
		pvr_unlock(&contended.peer->lock);
}

/*
 * After a quantum that has used up its budget. The first one of a run reads the clock: short
 * quanta do not.
 */
static bool is_run_over(const struct pvr_worker *worker, uint64_t *since)
{
	uint64_t now = pvr_now(worker->engine);

	if (!*since)
		*since = now;
	return now - *since >= RUN_NS;
}

void pvr_sched_run(struct pvr_worker *worker)
{
	unsigned int quanta = QUANTA_PER_RUN, in_a_row = 0;
	struct pvr_adapter *adapter;
	enum pvr_quantum result;
	uint64_t since = 0;

	/* A step of a command takes as long as many quanta. */
	worker->stepped = false;
	while (quanta-- && !worker->stepped && in_a_row < BLOCKED_IN_A_ROW &&
	       (adapter = pvr_worker_next(worker))) {
		result = run_adapter(worker, adapter);
		in_a_row = result == PVR_QUANTUM_BUSY ? in_a_row + 1 : 0;
		if (result == PVR_QUANTUM_MORE && is_run_over(worker, &since))
			break;
	}
	if (worker->contended.peer)
		wait_for_peer(worker, in_a_row == BLOCKED_IN_A_ROW ? WAIT_NOTHING_ELSE_NS
								   : WAIT_BETWEEN_NS);
}
