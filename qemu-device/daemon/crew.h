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
#ifndef PVR_CREW_H
#define PVR_CREW_H

#include <pthread.h>

#include "attach/attach.h"
#include "daemon/cpu_list.h"
#include "daemon/pace.h"
#include "daemon/process.h"

struct pvr_crew;

struct pvr_thread {
	struct pvr_crew *crew;
	struct pvr_loop *loop;
	struct pvr_pace pace; /* its number is in there */
	struct pvr_attach_env env; /* of its adapters */
	struct pvr_cpu_list cpus; /* where it runs; none: anywhere */
	struct pvr_stall_guard guard;
	pthread_t id;
	bool exists;
};

struct pvr_crew {
	unsigned int num;
	struct pvr_thread *threads;
	bool pause, stop; /* also read without the lock */
	pthread_mutex_t lock; /* protects what follows, and writing the above */
	pthread_cond_t news; /* of all of it */
	unsigned int ready, parked;
	struct pvr_error err; /* why a thread could not start, or "" */
};

/* @num workers, each with a loop, none running. pvr_crew_exit() is needed in any case. */
bool pvr_crew_init(struct pvr_crew *crew, unsigned int num, struct pvr_error *err);
void pvr_crew_exit(struct pvr_crew *crew);

/* All that the workers need has been filled in. False with @err filled. */
bool pvr_crew_start(struct pvr_crew *crew, struct pvr_error *err);
/* Until pvr_crew_resume() the caller may do what only a worker's thread may. */
void pvr_crew_pause(struct pvr_crew *crew);
void pvr_crew_resume(struct pvr_crew *crew);
/* Waits for all of them to end. */
void pvr_crew_stop(struct pvr_crew *crew);

/* It has got work. From any thread; costs nothing if that is the worker itself. */
void pvr_crew_wake(struct pvr_crew *crew, unsigned int worker);

/* ns of CPU time so far. */
uint64_t pvr_thread_cpu_time(const struct pvr_thread *thread);

#endif /* PVR_CREW_H */
