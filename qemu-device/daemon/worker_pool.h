/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The workers: threads with an event loop each, which serve some adapters.
 *
 * DOC: threads of the daemon
 *
 * The first thread has the control socket and the signals, and a loop of its own for
 * them. It never executes what guests ask for, so that it answers whatever they do. Each
 * worker has the sockets and the queues of its own adapters. What the first thread wants
 * of an adapter it does by functions that any thread may call; only when adapters come
 * and go are all workers paused, between two rounds of their loops.
 */
#ifndef PVR_DAEMON_WORKER_POOL_H
#define PVR_DAEMON_WORKER_POOL_H

#include <pthread.h>

#include "attach/attach.h"
#include "daemon/cpu_list.h"
#include "daemon/process.h"
#include "daemon/worker_loop.h"

struct pvr_worker_pool;

struct pvr_pool_thread {
	struct pvr_worker_pool *pool;
	struct pvr_loop *loop;
	struct pvr_worker_loop worker_loop; /* its number is in there */
	struct pvr_attach_env env; /* of its adapters */
	struct pvr_cpu_list cpus; /* where it runs; none: anywhere */
	struct pvr_stall_guard guard;
	pthread_t id;
	bool exists;
};

struct pvr_worker_pool {
	unsigned int num;
	struct pvr_pool_thread *threads;
	bool pause, stop; /* also read without the lock */
	pthread_mutex_t lock; /* protects what follows, and writing the above */
	pthread_cond_t news; /* of all of it */
	unsigned int ready, parked;
	struct pvr_error err; /* why a thread could not start, or "" */
};

/* @num workers, each with a loop, none running. pvr_worker_pool_exit() is needed in any case. */
bool pvr_worker_pool_init(struct pvr_worker_pool *pool, unsigned int num, struct pvr_error *err);
void pvr_worker_pool_exit(struct pvr_worker_pool *pool);

/* All that the workers need has been filled in. False with @err filled. */
bool pvr_worker_pool_start(struct pvr_worker_pool *pool, struct pvr_error *err);
/* Until pvr_worker_pool_resume() the caller may do what only a worker's thread may. */
void pvr_worker_pool_pause(struct pvr_worker_pool *pool);
void pvr_worker_pool_resume(struct pvr_worker_pool *pool);
/* Waits for all of them to end. */
void pvr_worker_pool_stop(struct pvr_worker_pool *pool);

/* It has got work. From any thread; costs nothing if that is the worker itself. */
void pvr_worker_pool_wake(struct pvr_worker_pool *pool, unsigned int worker);

/* ns of CPU time so far. */
uint64_t pvr_pool_thread_cpu_time(const struct pvr_pool_thread *thread);

#endif /* PVR_DAEMON_WORKER_POOL_H */
