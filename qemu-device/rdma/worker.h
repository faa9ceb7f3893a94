/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A worker: the thread that executes the queues of some adapters.
 *
 * DOC: how work finds its worker
 *
 * An adapter with something to do (a queue pair that is ready, an interrupt to raise) is
 * on one of two lists of its worker: @incoming, where any thread puts it that holds the
 * adapter's lock, or @active, which is the worker's own. pvr_adapter.queued says that it
 * is on either, and is protected by the adapter's lock alone: who finds it set knows that
 * the worker will lock the adapter once more, and see what is there then; the worker
 * clears it only while it holds that lock and has seen that there is nothing. So nothing
 * gets lost, and an adapter that is always busy costs no list operation that others see.
 *
 * An adapter's timers are its own. Who has changed the first of them says so in
 * pvr_adapter.deadline when it unlocks the adapter, and in the worker's if it is earlier.
 *
 * A worker that has asked for its deadline is @idle: whoever gives it something first
 * after that calls wake().
 */
#ifndef PVR_WORKER_H
#define PVR_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/adapter.h"
#include "rdma/event.h"

struct pvr_qp;

/* A quantum that could not be, because somebody else held the peer's adapter. */
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
	struct pvr_contended contended; /* in this run, the first */
	bool has_losses; /* adapters have lost GIDs or peers: pvr_engine_run() looks after them */
	bool stepped; /* in this run: a long command went on */
	bool polls; /* between pvr_engine_poll() and pvr_engine_enable_doorbells(); read by others */
	struct pvr_worker_stats stats; /* read by others */
	/* Those that it executes; changes only while no worker runs. */
	LIST_HEAD(, pvr_adapter) adapters;

	/* Protects what follows; taken inside adapters' locks, and nothing inside it. */
	struct pvr_lock lock;
	struct pvr_busy incoming;
	bool news; /* incoming or look; read without the lock, too */
	bool look; /* an adapter has lost a GID, or perhaps peers */
	bool idle; /* read by the worker without the lock, too */
	uint64_t deadline; /* no later than that of any adapter; ditto */
	char pad[64]; /* others' cache lines are not in here */
};

void pvr_worker_init(struct pvr_worker *worker, struct pvr_engine *engine, unsigned int index);

/* No worker runs meanwhile. */
void pvr_worker_add(struct pvr_worker *worker, struct pvr_adapter *adapter);
void pvr_worker_remove(struct pvr_adapter *adapter);

/* The adapter, whose lock is held, has something to do. Cheap. */
void pvr_worker_queue(struct pvr_adapter *adapter);
/* An adapter of the worker has lost a GID or peers. Takes no adapter's lock. */
void pvr_worker_look(struct pvr_worker *worker);
/* The same of all workers. */
void pvr_workers_look(struct pvr_engine *engine);
/* The adapter's first timer has changed; its lock is held. */
void pvr_worker_set_deadline(struct pvr_adapter *adapter);

/* The worker's own calls: takes in what others gave it, then expired timers. */
void pvr_worker_begin(struct pvr_worker *worker);
void pvr_worker_take_in(struct pvr_worker *worker);
/* The adapter whose turn it is; NULL: none has anything to do. */
static inline struct pvr_adapter *pvr_worker_next(struct pvr_worker *worker)
{
	if (__atomic_load_n(&worker->news, __ATOMIC_RELAXED))
		pvr_worker_take_in(worker);
	return TAILQ_FIRST(&worker->active);
}

/* When there will be something to do; 0: now. From here on wake() is called. */
uint64_t pvr_worker_idle(struct pvr_worker *worker);
bool pvr_worker_has_work(const struct pvr_worker *worker);

/* ------------------------------------------------------------- locks of adapters */

/*
 * Around everything that uses an adapter. @runner: the worker that does so, or NULL if it
 * is somebody else; it raises interrupts at the end of its run.
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
 * pvr_adapter_lock_other_peer() - get hold of another peer's adapter than the one held
 *
 * Return: false if somebody else has it: the quantum cannot go on now, and has to be taken
 * again.
 */
bool pvr_adapter_lock_other_peer(struct pvr_adapter *adapter, struct pvr_adapter *peer);
/* The quantum of a queue pair of @adapter is over. */
void pvr_adapter_unlock_peer(struct pvr_adapter *adapter);

/* During a quantum of @adapter: makes sure that all of @peer may be used. */
static inline bool pvr_adapter_lock_peer(struct pvr_adapter *adapter, struct pvr_adapter *peer)
{
	return peer == adapter->locked_peer || peer == adapter ||
	       pvr_adapter_lock_other_peer(adapter, peer);
}

#endif /* PVR_WORKER_H */
