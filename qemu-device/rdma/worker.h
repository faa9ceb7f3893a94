/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A worker: a thread that executes the queues of some adapters.
 *
 * DOC: lists of adapters
 *
 * An adapter with work (a ready queue pair, an interrupt to raise) is on one of two lists
 * of its worker:
 *
 * - @incoming: any thread that holds the adapter's lock adds to it;
 * - @active: only the worker uses it.
 *
 * - pvr_adapter.queued means that the adapter is on one of the lists. The adapter's lock
 *   alone protects it.
 * - While it is set, the worker will lock the adapter once more and see all its work.
 * - Only the worker clears it, with that lock held, after it has found no further work.
 * - So no work is lost, and an adapter that always has work needs no shared list
 *   operation.
 *
 * DOC: deadlines
 *
 * - Each adapter has its own timers.
 * - A thread that changes the first timer stores its time in pvr_adapter.deadline when it
 *   unlocks the adapter. An earlier time is also stored in the worker's deadline.
 *
 * DOC: wake-ups
 *
 * pvr_worker_idle() sets @idle. The first thread that adds work after that clears @idle
 * and calls wake().
 */
#ifndef PVR_WORKER_H
#define PVR_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/adapter.h"
#include "rdma/event.h"

struct pvr_qp;

/*
 * A quantum that did not run because another thread held the lock of the peer's adapter.
 */
struct pvr_contended {
	struct pvr_adapter *adapter, *peer; /* NULL: none */
	struct pvr_qp *qp; /* of @adapter; may be gone */
	uint32_t handle;
};

struct pvr_worker {
	/* The worker's own. */
	struct pvr_engine *engine;
	unsigned int index;
	TAILQ_HEAD(pvr_busy, pvr_adapter) active;
	/* Adapters of this worker with vectors to raise at the end of this run. */
	SLIST_HEAD(, pvr_adapter) interrupting;
	struct pvr_contended contended; /* the first of this run */
	bool has_losses; /* adapters have lost GIDs or peers, see pvr_engine_run() */
	bool stepped; /* a step of a long command was done in this run */
	bool polls; /* from pvr_engine_poll() to pvr_engine_enable_doorbells(); shared */
	struct pvr_worker_stats stats; /* read by others */
	/* All adapters of this worker; changes only while no worker runs. */
	LIST_HEAD(, pvr_adapter) adapters;
	unsigned int num_uar_polled; /* of these, with doorbells in memory */

	/*
	 * Protects the members below. Innermost lock: taken with an adapter's lock held.
	 */
	struct pvr_lock lock;
	struct pvr_busy incoming;
	bool news; /* incoming or look; also read without the lock */
	bool look; /* an adapter may have lost a GID or peers */
	bool idle; /* the worker also reads it without the lock */
	uint64_t deadline; /* ns, the first of all adapters; also read without the lock */
	char pad[64]; /* keeps other workers out of these cache lines */
};

void pvr_worker_init(struct pvr_worker *worker, struct pvr_engine *engine, unsigned int index);

/* Context: no worker runs. */
void pvr_worker_add(struct pvr_worker *worker, struct pvr_adapter *adapter);
void pvr_worker_remove(struct pvr_adapter *adapter);
/* Gives the adapter and its queued work to another worker. Other threads may use the adapter. */
void pvr_worker_move(struct pvr_adapter *adapter, struct pvr_worker *to);

/* Queue the adapter, whose lock is held: it has work. Cheap. */
void pvr_worker_queue(struct pvr_adapter *adapter);
/*
 * Report that an adapter of the worker may have lost a GID or peers. Takes no adapter's
 * lock.
 */
void pvr_worker_check(struct pvr_worker *worker);
/* The same for all workers. */
void pvr_workers_check(struct pvr_engine *engine);
/* Store the deadline of the adapter: its first timer has changed. Its lock is held. */
void pvr_worker_set_deadline(struct pvr_adapter *adapter);

/* Called by the worker: take over incoming adapters, then run expired timers. */
void pvr_worker_begin(struct pvr_worker *worker);
void pvr_worker_take_in(struct pvr_worker *worker);
/* Return: the next adapter with work, or NULL. */
static inline struct pvr_adapter *pvr_worker_next(struct pvr_worker *worker)
{
	if (__atomic_load_n(&worker->news, __ATOMIC_RELAXED))
		pvr_worker_take_in(worker);
	return TAILQ_FIRST(&worker->active);
}

/* Return: the time of the next work in ns, 0: now. Unless 0, new work calls wake(). */
uint64_t pvr_worker_idle(struct pvr_worker *worker);
bool pvr_worker_has_work(const struct pvr_worker *worker);

/* ------------------------------------------------------------- locks of adapters */

/*
 * Each use of an adapter is between these calls. @runner: the worker that calls, which
 * raises interrupts at the end of its run; NULL in other threads.
 */
static inline void pvr_adapter_lock(struct pvr_adapter *adapter)
{
	pvr_lock(&adapter->lock);
}

static inline void pvr_adapter_leave(struct pvr_adapter *adapter, struct pvr_worker *runner)
{
	if (adapter->has_interrupts)
		pvr_interrupt_hand_over(adapter, runner);
	if (pvr_timers_next(&adapter->timers) != adapter->deadline)
		pvr_worker_set_deadline(adapter);
	pvr_unlock(&adapter->lock);
}

static inline void pvr_adapter_unlock(struct pvr_adapter *adapter)
{
	pvr_adapter_leave(adapter, NULL);
}

/**
 * pvr_adapter_lock_other_peer() - release the locked peer's adapter and try to lock @peer
 *
 * Return: false if another thread holds the lock of @peer: the quantum must end and be
 * repeated.
 */
bool pvr_adapter_lock_other_peer(struct pvr_adapter *adapter, struct pvr_adapter *peer);
/* Release the locked peer's adapter: the quantum of a queue pair of @adapter is over. */
void pvr_adapter_unlock_peer(struct pvr_adapter *adapter);

/* During a quantum of @adapter: lock @peer too, unless it is locked already. */
static inline bool pvr_adapter_lock_peer(struct pvr_adapter *adapter, struct pvr_adapter *peer)
{
	return peer == adapter->locked_peer || peer == adapter ||
	       pvr_adapter_lock_other_peer(adapter, peer);
}

#endif /* PVR_WORKER_H */
