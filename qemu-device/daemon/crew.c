// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The workers: how they start, pause and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/crew.h"

static __thread const struct pvr_thread *self; /* NULL: no worker */

static bool init_thread(struct pvr_crew *crew, unsigned int i, struct pvr_error *err)
{
	struct pvr_thread *thread = &crew->threads[i];

	thread->crew = crew;
	thread->pace.worker = i;
	thread->loop = pvr_loop_create();
	if (!thread->loop)
		return pvr_fail(err, "cannot make an event loop: %s", strerror(errno));
	return true;
}

bool pvr_crew_init(struct pvr_crew *crew, unsigned int num, struct pvr_error *err)
{
	unsigned int i;

	*crew = (struct pvr_crew){ .num = num };
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->news, NULL);
	crew->threads = calloc(num, sizeof(*crew->threads));
	if (!crew->threads)
		return pvr_fail(err, "out of memory");
	for (i = 0; i < num; i++) {
		if (!init_thread(crew, i, err))
			return false;
	}
	return true;
}

void pvr_crew_exit(struct pvr_crew *crew)
{
	unsigned int i;

	for (i = 0; crew->threads && i < crew->num; i++)
		pvr_loop_destroy(crew->threads[i].loop);
	free(crew->threads);
	pthread_cond_destroy(&crew->news);
	pthread_mutex_destroy(&crew->lock);
}

/* ------------------------------------------------------------- a worker's thread */

static void one_round(struct pvr_thread *thread)
{
	switch (pvr_pace_round(&thread->pace)) {
	case PVR_PACE_RAN:
		break;
	case PVR_PACE_LOOKED:
		pvr_stall_guard_busy(&thread->guard);
		break;
	case PVR_PACE_INTERRUPTED:
		/* The guard's own signal, while there was nothing to do. */
		pvr_stall_guard_idle(&thread->guard);
		break;
	}
}

static void park(struct pvr_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->parked++;
	pthread_cond_broadcast(&crew->news);
	while (crew->pause)
		pthread_cond_wait(&crew->news, &crew->lock);
	crew->parked--;
	pthread_mutex_unlock(&crew->lock);
}

static bool report(struct pvr_thread *thread, bool ok, const struct pvr_error *err)
{
	struct pvr_crew *crew = thread->crew;

	pthread_mutex_lock(&crew->lock);
	crew->ready++;
	if (!ok)
		crew->err = *err;
	pthread_cond_broadcast(&crew->news);
	pthread_mutex_unlock(&crew->lock);
	return ok;
}

static void *work(void *opaque)
{
	struct pvr_thread *thread = opaque;
	struct pvr_crew *crew = thread->crew;
	struct pvr_error err;

	self = thread;
	if (!report(thread, pvr_stall_guard_init(&thread->guard, &err), &err))
		return NULL;
	while (!__atomic_load_n(&crew->stop, __ATOMIC_RELAXED)) {
		one_round(thread);
		if (__atomic_load_n(&crew->pause, __ATOMIC_RELAXED))
			park(crew);
	}
	pvr_stall_guard_exit(&thread->guard);
	return NULL;
}

/* -------------------------------------------------------------- the first thread's */

static bool start_thread(struct pvr_thread *thread, struct pvr_error *err)
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
		return pvr_fail(err, "cannot start worker %u: %s", thread->pace.worker,
				strerror(ret));
	thread->exists = true;
	snprintf(name, sizeof(name), "pvrdmad/%u", thread->pace.worker);
	pthread_setname_np(thread->id, name);
	return true;
}

bool pvr_crew_start(struct pvr_crew *crew, struct pvr_error *err)
{
	unsigned int i;

	for (i = 0; i < crew->num; i++) {
		if (!start_thread(&crew->threads[i], err))
			return false;
	}
	pthread_mutex_lock(&crew->lock);
	while (crew->ready < crew->num)
		pthread_cond_wait(&crew->news, &crew->lock);
	*err = crew->err;
	pthread_mutex_unlock(&crew->lock);
	return !err->text[0];
}

static void set_flag(struct pvr_crew *crew, bool *flag, bool value)
{
	unsigned int i;

	pthread_mutex_lock(&crew->lock);
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&crew->news);
	pthread_mutex_unlock(&crew->lock);
	for (i = 0; i < crew->num; i++)
		pvr_loop_wake(crew->threads[i].loop);
}

void pvr_crew_pause(struct pvr_crew *crew)
{
	set_flag(crew, &crew->pause, true);
	pthread_mutex_lock(&crew->lock);
	while (crew->parked < crew->ready)
		pthread_cond_wait(&crew->news, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

void pvr_crew_resume(struct pvr_crew *crew)
{
	set_flag(crew, &crew->pause, false);
}

void pvr_crew_stop(struct pvr_crew *crew)
{
	unsigned int i;

	if (!crew->threads)
		return;
	set_flag(crew, &crew->stop, true);
	for (i = 0; i < crew->num; i++) {
		if (crew->threads[i].exists)
			pthread_join(crew->threads[i].id, NULL);
		crew->threads[i].exists = false;
	}
	crew->ready = 0;
}

void pvr_crew_wake(struct pvr_crew *crew, unsigned int worker)
{
	if (self != &crew->threads[worker])
		pvr_loop_wake(crew->threads[worker].loop);
}

uint64_t pvr_thread_cpu_time(const struct pvr_thread *thread)
{
	struct timespec ts;
	clockid_t clock;

	if (!thread->exists || pthread_getcpuclockid(thread->id, &clock) ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * PVR_SEC + (uint64_t)ts.tv_nsec;
}
