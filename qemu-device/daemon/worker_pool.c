// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The workers: start, pause and end.
 *
 * DOC: time slices
 *
 * A worker that has slept takes a core at once if its time slice is shorter than that of the program
 * there; else it waits for the end of that program's slice, some milliseconds (Linux's EEVDF
 * scheduler, sched_setattr(2)). The shares of programs do not change, and a worker that computes for
 * long leaves the core earlier, too.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker_pool.h"

#define SLICE_NS 100000u /* the shortest that Linux permits */

/* As sched_setattr(2) has it; not all C libraries do. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t slice, deadline, period;
};

static __thread const struct pvr_pool_thread *self; /* NULL: not a worker */

static bool init_thread(struct pvr_worker_pool *pool, unsigned int i, struct pvr_error *err)
{
	struct pvr_pool_thread *thread = &pool->threads[i];

	thread->pool = pool;
	thread->worker_loop.worker = i;
	thread->loop = pvr_loop_create();
	if (!thread->loop)
		return pvr_fail(err, "cannot make an event loop: %s", strerror(errno));
	return true;
}

/*
 * For threads that are started from now on. Kernels before 6.12 ignore the slice. A policy that the
 * operator has chosen stays.
 */
static void request_short_slice(void)
{
	struct scheduling attr = { 0 };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 || attr.policy != SCHED_OTHER)
		return;
	attr.slice = SLICE_NS;
	/* For speed only: where it is refused, the default is used. */
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

bool pvr_worker_pool_init(struct pvr_worker_pool *pool, unsigned int num, struct pvr_error *err)
{
	unsigned int i;

	*pool = (struct pvr_worker_pool){ .num = num };
	request_short_slice();
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->news, NULL);
	pool->threads = calloc(num, sizeof(*pool->threads));
	if (!pool->threads)
		return pvr_fail(err, "out of memory");
	for (i = 0; i < num; i++) {
		if (!init_thread(pool, i, err))
			return false;
	}
	return true;
}

void pvr_worker_pool_exit(struct pvr_worker_pool *pool)
{
	unsigned int i;

	for (i = 0; pool->threads && i < pool->num; i++)
		pvr_loop_destroy(pool->threads[i].loop);
	free(pool->threads);
	pthread_cond_destroy(&pool->news);
	pthread_mutex_destroy(&pool->lock);
}

/* ----------------------------------------------------------- worker threads */

static void park(struct pvr_pool_thread *thread)
{
	struct pvr_worker_pool *pool = thread->pool;

	pthread_mutex_lock(&pool->lock);
	pool->parked++;
	pthread_cond_broadcast(&pool->news);
	while (pool->pause)
		pthread_cond_wait(&pool->news, &pool->lock);
	pool->parked--;
	pthread_mutex_unlock(&pool->lock);
	thread->worker_loop.now = pvr_loop_now(); /* the pause is no turn */
}

static bool report(struct pvr_pool_thread *thread, bool ok, const struct pvr_error *err)
{
	struct pvr_worker_pool *pool = thread->pool;

	pthread_mutex_lock(&pool->lock);
	pool->ready++;
	if (!ok)
		pool->err = *err;
	pthread_cond_broadcast(&pool->news);
	pthread_mutex_unlock(&pool->lock);
	return ok;
}

static void *work(void *opaque)
{
	struct pvr_pool_thread *thread = opaque;
	struct pvr_worker_pool *pool = thread->pool;
	struct pvr_error err;

	self = thread;
	if (!report(thread, pvr_worker_loop_init(&thread->worker_loop, &err), &err))
		return NULL;
	while (!__atomic_load_n(&pool->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&pool->pause, __ATOMIC_RELAXED))
			park(thread);
		else
			pvr_worker_loop_round(&thread->worker_loop);
	}
	pvr_worker_loop_exit(&thread->worker_loop);
	return NULL;
}

/* ------------------------------------------------------------- first thread */

static bool start_thread(struct pvr_pool_thread *thread, struct pvr_error *err)
{
	pthread_attr_t attr;
	cpu_set_t set;
	char name[16];
	int ret;

	pthread_attr_init(&attr);
	if (thread->cpus.num) {
		pvr_cpu_list_to_set(&thread->cpus, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	ret = pthread_create(&thread->id, &attr, work, thread);
	pthread_attr_destroy(&attr);
	if (ret)
		return pvr_fail(err, "cannot start worker %u: %s", thread->worker_loop.worker,
				strerror(ret));
	thread->exists = true;
	snprintf(name, sizeof(name), "pvrdmad/%u", thread->worker_loop.worker);
	pthread_setname_np(thread->id, name);
	return true;
}

bool pvr_worker_pool_start(struct pvr_worker_pool *pool, bool paused, struct pvr_error *err)
{
	unsigned int i;

	pool->pause = paused;
	for (i = 0; i < pool->num; i++) {
		if (!start_thread(&pool->threads[i], err))
			return false;
	}
	pthread_mutex_lock(&pool->lock);
	while (pool->ready < pool->num)
		pthread_cond_wait(&pool->news, &pool->lock);
	*err = pool->err;
	pthread_mutex_unlock(&pool->lock);
	if (err->text[0])
		return false;
	if (paused)
		pvr_worker_pool_pause(pool);
	return true;
}

static void set_flag(struct pvr_worker_pool *pool, bool *flag, bool value)
{
	unsigned int i;

	pthread_mutex_lock(&pool->lock);
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&pool->news);
	pthread_mutex_unlock(&pool->lock);
	for (i = 0; i < pool->num; i++)
		pvr_loop_wake(pool->threads[i].loop);
}

void pvr_worker_pool_pause(struct pvr_worker_pool *pool)
{
	set_flag(pool, &pool->pause, true);
	pthread_mutex_lock(&pool->lock);
	while (pool->parked < pool->ready)
		pthread_cond_wait(&pool->news, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

void pvr_worker_pool_resume(struct pvr_worker_pool *pool)
{
	set_flag(pool, &pool->pause, false);
}

void pvr_worker_pool_stop(struct pvr_worker_pool *pool)
{
	unsigned int i;

	if (!pool->threads)
		return;
	set_flag(pool, &pool->stop, true);
	for (i = 0; i < pool->num; i++) {
		if (pool->threads[i].exists)
			pthread_join(pool->threads[i].id, NULL);
		pool->threads[i].exists = false;
	}
	pool->ready = 0;
}

void pvr_worker_pool_wake(struct pvr_worker_pool *pool, unsigned int worker)
{
	if (self != &pool->threads[worker])
		pvr_loop_wake(pool->threads[worker].loop);
}

uint64_t pvr_pool_thread_cpu_time(const struct pvr_pool_thread *thread)
{
	struct timespec ts;
	clockid_t clock;

	if (!thread->exists || pthread_getcpuclockid(thread->id, &clock) ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * PVR_SEC + (uint64_t)ts.tv_nsec;
}
