/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The workers: threads with an event loop each, which serve their adapters.
 *
 * DOC: threads of the daemon
 *
 * The first thread serves the control socket and the signals in a loop of its own. It
 * never executes requests of guests, so it always answers. Each worker serves the sockets
 * and the queues of its own adapters. The first thread accesses an adapter only by
 * functions that any thread may call. To add or remove an adapter it pauses all workers
 * between two iterations of their loops.
 */
#ifndef PVR_DAEMON_WORKER_POOL_H
#define PVR_DAEMON_WORKER_POOL_H

#include <pthread.h>

#include "attach/attach.h"
#include "daemon/cpu_list.h"
#include "daemon/worker_loop.h"

struct pvr_worker_pool;

struct pvr_pool_thread {
	struct pvr_worker_pool *pool;
	struct pvr_loop *loop;
	struct pvr_worker_loop worker_loop; /* has the worker's number */
	struct pvr_attach_env env; /* of its adapters */
	struct pvr_cpu_list cpus; /* where the worker runs; empty: anywhere */
	pthread_t id;
	bool exists;
};

struct pvr_worker_pool {
	unsigned int num;
	struct pvr_pool_thread *threads;
	bool pause, stop; /* written under the lock, read without it */
	pthread_mutex_t lock; /* protects the members below, pause and stop */
	pthread_cond_t news; /* signals any change of them */
	unsigned int ready, parked;
	struct pvr_error err; /* why a thread failed to start, or "" */
};

/*
 * Creates @num workers with a loop each; no thread runs yet. Call pvr_worker_pool_exit()
 * also after a failure.
 */
bool pvr_worker_pool_init(struct pvr_worker_pool *pool, unsigned int num, struct pvr_error *err);
void pvr_worker_pool_exit(struct pvr_worker_pool *pool);

/*
 * Starts the threads. Fill in all of struct pvr_pool_thread before. @paused: they are as after
 * pvr_worker_pool_pause(). False with @err filled.
 */
bool pvr_worker_pool_start(struct pvr_worker_pool *pool, bool paused, struct pvr_error *err);
/* Until pvr_worker_pool_resume() the caller may call functions of any worker's thread. */
void pvr_worker_pool_pause(struct pvr_worker_pool *pool);
void pvr_worker_pool_resume(struct pvr_worker_pool *pool);
/* Waits until all threads have ended. */
void pvr_worker_pool_stop(struct pvr_worker_pool *pool);

/*
 * Wakes a worker that has work. Any thread; no system call if the caller is that worker.
 */
void pvr_worker_pool_wake(struct pvr_worker_pool *pool, unsigned int worker);

/* Return: CPU time of the thread in ns. */
uint64_t pvr_pool_thread_cpu_time(const struct pvr_pool_thread *thread);

#endif /* PVR_DAEMON_WORKER_POOL_H */
