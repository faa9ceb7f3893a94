// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Closes descriptors that another process has sent, and unmaps their memory. */
#include "base/closer.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLOSER_FULL 256
#define CLOSER_MEMORY_FULL 1024 /* more than a socket holds by default */
/* Both, two messages of the most descriptors, connections, all mappings of two clients. */
#define CLOSER_MAX 1664
/* About 0.3 ms of the kernel with pages of 4 KiB. */
#define UNMAP_SLICE (32ull << 20)

enum kind { FILE_OTHER, FILE_STREAM, FILE_MEMORY, MAPPING };

struct item {
	enum kind kind;
	int fd; /* -1: none */
	void *va; /* of a MAPPING */
	size_t size; /* 0 of a descriptor */
};

struct pvr_closer {
	pthread_mutex_t lock; /* protects all members; never held during close() */
	struct item items[CLOSER_MAX];
	unsigned int num;
	/* FILE_MEMORY and MAPPING, until they are closed and unmapped. */
	unsigned int memory;
	uint64_t bytes;
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

/*
 * The bounds of slices are aligned, so that they do not split large pages. Pages of more than
 * a slice are few: a mapping of such pages is unmapped in one piece.
 */
static void unmap(char *va, size_t size)
{
	size_t slice;

	while (size) {
		slice = ((uintptr_t)va + size - 1) % UNMAP_SLICE + 1;
		if (slice >= size || munmap(va + size - slice, slice))
			break;
		size -= slice;
	}
	if (size)
		munmap(va, size);
}

static bool is_memory(const struct item *item)
{
	return item->kind == FILE_MEMORY || item->kind == MAPPING;
}

static void close_item(const struct item *item)
{
	if (item->kind == MAPPING)
		unmap(item->va, item->size);
	if (item->kind == FILE_STREAM)
		drain(item->fd);
	if (item->fd >= 0)
		close(item->fd);
}

static void closed(struct pvr_closer *closer, const struct item *item)
{
	pthread_mutex_lock(&closer->lock);
	closer->memory -= is_memory(item);
	closer->bytes -= item->size;
	pthread_mutex_unlock(&closer->lock);
}

static void *run(void *opaque)
{
	struct item item;

	pthread_setname_np(pthread_self(), "pvrdmad/close");
	leave_cpus_of_worker();
	while (take(opaque, &item)) {
		close_item(&item);
		closed(opaque, &item);
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

static void add(struct pvr_closer *closer, struct item item)
{
	pthread_mutex_lock(&closer->lock);
	/* Callers obey pvr_closer_is_full(); else the descriptor stays open, or the memory mapped. */
	if (closer->num < CLOSER_MAX) {
		closer->items[closer->num++] = item;
		closer->memory += is_memory(&item);
		closer->bytes += item.size;
	}
	start(closer);
	pthread_mutex_unlock(&closer->lock);
}

void pvr_closer_close(struct pvr_closer *closer, int fd)
{
	add(closer, (struct item){ FILE_OTHER, .fd = fd });
}

void pvr_closer_close_stream(struct pvr_closer *closer, int fd)
{
	add(closer, (struct item){ FILE_STREAM, .fd = fd });
}

void pvr_closer_close_memory(struct pvr_closer *closer, int fd)
{
	add(closer, (struct item){ FILE_MEMORY, .fd = fd });
}

void pvr_closer_unmap(struct pvr_closer *closer, void *va, size_t size, int fd)
{
	add(closer, (struct item){ MAPPING, .fd = fd, .va = va, .size = size });
}

bool pvr_closer_has_memory(struct pvr_closer *closer, uint64_t max)
{
	bool has;

	pthread_mutex_lock(&closer->lock);
	start(closer);
	has = closer->memory >= PVR_CLOSER_MEMORY || closer->bytes > max;
	pthread_mutex_unlock(&closer->lock);
	return has;
}

bool pvr_closer_is_full(struct pvr_closer *closer)
{
	bool full;

	pthread_mutex_lock(&closer->lock);
	start(closer);
	full = closer->num >= CLOSER_FULL + closer->memory || closer->memory >= CLOSER_MEMORY_FULL;
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
