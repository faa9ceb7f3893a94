// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Closes descriptors that another process has sent. */
#include "base/closer.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLOSER_FULL 256
#define CLOSER_MAX 1024 /* CLOSER_FULL, two messages of the most descriptors, connections */

struct item {
	int fd;
	bool stream;
};

struct pvr_closer {
	pthread_mutex_t lock; /* protects all members; never held during close() */
	struct item items[CLOSER_MAX];
	unsigned int num;
	bool runs; /* the thread exists */
	bool orphan; /* destroyed: the thread frees it */
};

struct pvr_closer *pvr_closer_create(void)
{
	struct pvr_closer *closer = calloc(1, sizeof(*closer));

	if (closer)
		pthread_mutex_init(&closer->lock, NULL);
	return closer;
}

static void closer_free(struct pvr_closer *closer)
{
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

static void drain(int fd)
{
	char dropped[4096];

	while (recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT) > 0)
		;
}

/* Return: false if there is none; then the thread ends. */
static bool take(struct pvr_closer *closer, struct item *item)
{
	bool any, orphan;

	pthread_mutex_lock(&closer->lock);
	any = closer->num;
	if (any)
		*item = closer->items[--closer->num];
	else
		closer->runs = false;
	orphan = closer->orphan;
	pthread_mutex_unlock(&closer->lock);
	if (!any && orphan)
		closer_free(closer);
	return any;
}

/*
 * The worker that creates this thread can be pinned to a CPU of its own, which it polls on.
 * The first thread has the CPUs that the process was started with.
 */
static void leave_cpus_of_worker(void)
{
	cpu_set_t set;

	if (sched_getaffinity(getpid(), sizeof(set), &set) == 0)
		sched_setaffinity(0, sizeof(set), &set);
}

static void *run(void *opaque)
{
	struct item item;

	pthread_setname_np(pthread_self(), "pvrdmad/close");
	leave_cpus_of_worker();
	while (take(opaque, &item)) {
		if (item.stream)
			drain(item.fd);
		close(item.fd);
	}
	return NULL;
}

/* Called with the lock held. Without a thread the next call tries again. */
static void start(struct pvr_closer *closer)
{
	pthread_attr_t attr;
	pthread_t id;

	if (closer->runs || !closer->num)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	closer->runs = pthread_create(&id, &attr, run, closer) == 0;
	pthread_attr_destroy(&attr);
}

static void add(struct pvr_closer *closer, int fd, bool stream)
{
	pthread_mutex_lock(&closer->lock);
	/* Callers obey pvr_closer_is_full(); else the descriptor stays open. */
	if (closer->num < CLOSER_MAX)
		closer->items[closer->num++] = (struct item){ fd, stream };
	start(closer);
	pthread_mutex_unlock(&closer->lock);
}

void pvr_closer_close(struct pvr_closer *closer, int fd)
{
	add(closer, fd, false);
}

void pvr_closer_close_stream(struct pvr_closer *closer, int fd)
{
	add(closer, fd, true);
}

bool pvr_closer_is_full(struct pvr_closer *closer)
{
	bool full;

	pthread_mutex_lock(&closer->lock);
	start(closer);
	full = closer->num >= CLOSER_FULL;
	pthread_mutex_unlock(&closer->lock);
	return full;
}

void pvr_closer_destroy(struct pvr_closer *closer)
{
	bool runs;

	pthread_mutex_lock(&closer->lock);
	start(closer);
	closer->orphan = true;
	runs = closer->runs;
	pthread_mutex_unlock(&closer->lock);
	/* Without a thread, descriptors that remain stay open until the process ends. */
	if (!runs)
		closer_free(closer);
}
