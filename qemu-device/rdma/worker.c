// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Workers: their queues of adapters and their deadlines. */
#include "rdma/worker.h"

#include "core/adapter.h"
#include "rdma/db_suppress.h"

#define TIMERS_PER_RUN 64 /* of each adapter */

void pvr_worker_init(struct pvr_worker *worker, struct pvr_engine *engine, unsigned int index)
{
	*worker = (struct pvr_worker){
		.engine = engine,
		.index = index,
		.deadline = UINT64_MAX,
	};
	TAILQ_INIT(&worker->active);
	TAILQ_INIT(&worker->incoming);
	SLIST_INIT(&worker->interrupting);
	LIST_INIT(&worker->adapters);
}

void pvr_worker_add(struct pvr_worker *worker, struct pvr_adapter *adapter)
{
	adapter->worker = worker;
	worker->num_uar_polled += adapter->uar_poll.on;
	LIST_INSERT_HEAD(&worker->adapters, adapter, of_worker);
}

static void take_in(struct pvr_worker *worker)
{
	struct pvr_adapter *adapter;

	while ((adapter = TAILQ_FIRST(&worker->incoming))) {
		TAILQ_REMOVE(&worker->incoming, adapter, busy);
		TAILQ_INSERT_TAIL(&worker->active, adapter, busy);
	}
}

/* The adapter is on no list of incoming adapters. */
static void leave(struct pvr_adapter *adapter)
{
	struct pvr_worker *worker = adapter->worker;

	if (adapter->queued)
		TAILQ_REMOVE(&worker->active, adapter, busy);
	if (adapter->is_interrupting)
		SLIST_REMOVE(&worker->interrupting, adapter, pvr_adapter, interrupting);
	LIST_REMOVE(adapter, of_worker);
	worker->num_uar_polled -= adapter->uar_poll.on;
}

void pvr_worker_remove(struct pvr_adapter *adapter)
{
	take_in(adapter->worker);
	leave(adapter);
}

/*
 * The old worker may have polled the rings of the adapter. The new one may sleep: the guest must
 * ring again, and what it posted without a doorbell is work.
 */
void pvr_worker_move(struct pvr_adapter *adapter, struct pvr_worker *to)
{
	bool queued;

	pvr_adapter_lock(adapter);
	pvr_db_enable_all(adapter);
	pvr_lock(&adapter->worker->lock);
	take_in(adapter->worker);
	pvr_unlock(&adapter->worker->lock);
	leave(adapter);
	pvr_worker_add(to, adapter);
	queued = adapter->queued;
	adapter->queued = false;
	if (queued)
		pvr_worker_queue(adapter);
	if (adapter->is_interrupting)
		SLIST_INSERT_HEAD(&to->interrupting, adapter, interrupting);
	__atomic_store_n(&adapter->deadline, UINT64_MAX, __ATOMIC_RELAXED);
	pvr_worker_set_deadline(adapter);
	pvr_adapter_leave(adapter, to);
}

/* ---------------------------------------------------------- any thread's part */

/*
 * Called by any thread with the worker's lock held: release it, and wake an idle worker.
 */
static void unlock_and_wake(struct pvr_worker *worker)
{
	struct pvr_engine *engine = worker->engine;
	bool idle = worker->idle;

	__atomic_store_n(&worker->idle, false, __ATOMIC_RELAXED);
	pvr_unlock(&worker->lock);
	if (idle && engine->ops->wake)
		engine->ops->wake(engine->opaque, worker->index);
}

void pvr_worker_queue(struct pvr_adapter *adapter)
{
	struct pvr_worker *worker = adapter->worker;

	if (adapter->queued)
		return;
	adapter->queued = true;
	pvr_lock(&worker->lock);
	TAILQ_INSERT_TAIL(&worker->incoming, adapter, busy);
	__atomic_store_n(&worker->news, true, __ATOMIC_RELAXED);
	unlock_and_wake(worker);
}

void pvr_worker_check(struct pvr_worker *worker)
{
	pvr_lock(&worker->lock);
	worker->look = true;
	__atomic_store_n(&worker->news, true, __ATOMIC_RELAXED);
	unlock_and_wake(worker);
}

void pvr_workers_check(struct pvr_engine *engine)
{
	unsigned int i;

	for (i = 0; i < engine->num_workers; i++)
		pvr_worker_check(&engine->workers[i]);
}

/* A later deadline stays private: the worker wakes too early and finds it then. */
void pvr_worker_set_deadline(struct pvr_adapter *adapter)
{
	struct pvr_worker *worker = adapter->worker;
	uint64_t deadline = adapter->run_state == PVR_RUN_RUNNING
				    ? pvr_timers_next(&adapter->timers)
				    : UINT64_MAX;
	bool earlier = deadline < adapter->deadline;

	__atomic_store_n(&adapter->deadline, deadline, __ATOMIC_RELAXED);
	if (!earlier)
		return;
	/* The lock: find_deadline() may run, and may have passed this adapter already. */
	pvr_lock(&worker->lock);
	if (deadline >= worker->deadline) {
		pvr_unlock(&worker->lock);
		return;
	}
	__atomic_store_n(&worker->deadline, deadline, __ATOMIC_RELAXED);
	unlock_and_wake(worker);
}

/* ------------------------------------------------------------ the worker's part */

/*
 * The worker's lock is held: an earlier deadline is compared with this result afterwards.
 */
static void find_deadline(struct pvr_worker *worker)
{
	uint64_t deadline, first = UINT64_MAX;
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &worker->adapters, of_worker) {
		deadline = __atomic_load_n(&adapter->deadline, __ATOMIC_RELAXED);
		if (deadline < first)
			first = deadline;
	}
	__atomic_store_n(&worker->deadline, first, __ATOMIC_RELAXED);
}

static void run_timers(struct pvr_worker *worker)
{
	struct pvr_adapter *adapter;
	uint64_t now;

	if (__atomic_load_n(&worker->deadline, __ATOMIC_RELAXED) == UINT64_MAX)
		return;
	now = pvr_now(worker->engine);
	if (now < __atomic_load_n(&worker->deadline, __ATOMIC_RELAXED))
		return;
	LIST_FOREACH(adapter, &worker->adapters, of_worker) {
		if (now < __atomic_load_n(&adapter->deadline, __ATOMIC_RELAXED))
			continue;
		pvr_adapter_lock(adapter);
		pvr_timers_run(&adapter->timers, now, TIMERS_PER_RUN);
		pvr_adapter_leave(adapter, worker);
	}
	pvr_lock(&worker->lock);
	find_deadline(worker);
	pvr_unlock(&worker->lock);
}

void pvr_worker_take_in(struct pvr_worker *worker)
{
	pvr_lock(&worker->lock);
	take_in(worker);
	worker->has_losses |= worker->look;
	worker->look = false;
	__atomic_store_n(&worker->news, false, __ATOMIC_RELAXED);
	__atomic_store_n(&worker->idle, false, __ATOMIC_RELAXED);
	pvr_unlock(&worker->lock);
}

void pvr_worker_begin(struct pvr_worker *worker)
{
	if (__atomic_load_n(&worker->news, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&worker->idle, __ATOMIC_RELAXED))
		pvr_worker_take_in(worker);
	run_timers(worker);
}

bool pvr_worker_has_work(const struct pvr_worker *worker)
{
	return !TAILQ_EMPTY(&worker->active) || __atomic_load_n(&worker->news, __ATOMIC_RELAXED);
}

uint64_t pvr_worker_idle(struct pvr_worker *worker)
{
	bool work;
	uint64_t deadline;

	pvr_lock(&worker->lock);
	work = pvr_worker_has_work(worker);
	__atomic_store_n(&worker->idle, !work, __ATOMIC_RELAXED);
	find_deadline(worker);
	deadline = worker->deadline;
	pvr_unlock(&worker->lock);
	return work ? 0 : deadline;
}

/* -------------------------------------------------------- locks of peers' adapters */

bool pvr_adapter_lock_other_peer(struct pvr_adapter *adapter, struct pvr_adapter *peer)
{
	pvr_adapter_unlock_peer(adapter);
	if (!pvr_trylock(&peer->lock)) {
		adapter->contended_peer = peer;
		return false;
	}
	adapter->locked_peer = peer;
	return true;
}

void pvr_adapter_unlock_peer(struct pvr_adapter *adapter)
{
	if (!adapter->locked_peer)
		return;
	pvr_adapter_leave(adapter->locked_peer, adapter->runner);
	adapter->locked_peer = NULL;
}
