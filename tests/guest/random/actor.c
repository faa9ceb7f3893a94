// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A process: its context, its objects, and its threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

#define THREADS 3

_Thread_local struct worker *me;

/* ------------------------------------------------------------------------------- slots */

/* Objects meet mostly in the first protection domain: objects of two domains refuse each other. */
static struct slot *some_slot(struct worker *worker, enum kind kind)
{
	if (kind == KIND_PD && !one_in(&worker->chance, 5))
		return &worker->actor->slots[kind][0];
	return &worker->actor->slots[kind][below(&worker->chance, SLOTS)];
}

struct slot *slot_use(struct worker *worker, enum kind kind)
{
	for (int tries = 0; tries < 4; tries++) {
		struct slot *slot = some_slot(worker, kind);

		if (pthread_rwlock_tryrdlock(&slot->lock))
			continue;
		if (slot->object)
			return slot;
		slot_put(slot);
	}
	return NULL;
}

struct slot *slot_change(struct worker *worker, enum kind kind)
{
	struct slot *slot = some_slot(worker, kind);

	return pthread_rwlock_trywrlock(&slot->lock) ? NULL : slot;
}

void slot_put(struct slot *slot)
{
	if (slot)
		pthread_rwlock_unlock(&slot->lock);
}

static void init_slots(struct actor *actor)
{
	for (int kind = 0; kind < KIND_NUM; kind++)
		for (int i = 0; i < SLOTS; i++)
			MUST(pthread_rwlock_init(&actor->slots[kind][i].lock, NULL));
}

/* ----------------------------------------------------------------------------- context */

struct ibv_device *device_find(void)
{
	struct ibv_device **list = MUST_HAVE(ibv_get_device_list(NULL));
	const char *name = getenv("RDMA_DEV");
	int i = 0;

	while (list[i] && name && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	if (!list[i])
		die("there is no RDMA device %s", name ? name : "");
	return list[i];
}

static void set_nonblocking(int fd)
{
	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

static struct ibv_context *get_context(struct worker *worker)
{
	struct ibv_context *ctx = NULL;

	if (worker->actor->is_hostile && one_in(&worker->chance, 2))
		ctx = context_receive(worker);
	return ctx ? ctx : count_made(VERB_open_device, ibv_open_device(worker->actor->device));
}

/* Without a device, for example while others have all contexts, the process has no purpose. */
static void open_context(struct worker *worker)
{
	struct actor *actor = worker->actor;
	const char *index = getenv("GID_INDEX");

	actor->ctx = get_context(worker);
	if (!actor->ctx)
		exit(0);
	actor->gid_index = index ? atoi(index) : 0;
	MUST(ibv_query_device(actor->ctx, &actor->dev));
	MUST(ibv_query_gid(actor->ctx, 1, actor->gid_index, &actor->gid));
	set_nonblocking(actor->ctx->async_fd);
}

/* ----------------------------------------------------------------------------- threads */

static void *work(void *opaque)
{
	static const struct {
		uint32_t weight;
		deed *run;
	} deeds[] = {
		{ 8, deed_domain },  { 14, deed_queue },  { 24, deed_pair }, { 40, deed_post },
		{ 20, deed_region }, { 12, deed_memory }, { 2, deed_share }, { 4, deed_raw },
	};
	const uint32_t num = sizeof(deeds) / sizeof(deeds[0]);
	struct worker *worker = opaque;
	uint32_t total = 0, at, i;

	me = worker;
	for (i = 0; i < num; i++)
		total += deeds[i].weight;
	while (!__atomic_load_n(&worker->actor->is_over, __ATOMIC_RELAXED)) {
		at = below(&worker->chance, total);
		for (i = 0; at >= deeds[i].weight; i++)
			at -= deeds[i].weight;
		deeds[i].run(worker);
	}
	return NULL;
}

/* A process that ends by itself leaves some of its objects to the kernel, or all. */
void actor_run(struct ibv_device *device, uint64_t seed, uint64_t number, double seconds, int mail)
{
	static struct actor actor;
	static struct worker workers[THREADS];
	double end = now() + seconds;

	actor.device = device;
	actor.mail = mail;
	actor.is_hostile = number % 2;
	init_slots(&actor);
	for (int i = 0; i < THREADS; i++) {
		workers[i].actor = &actor;
		workers[i].chance = chance_of(seed, number * THREADS + i);
	}
	memory_init(&workers[0]);
	open_context(&workers[0]);
	if (actor.is_hostile)
		raw_fd = actor.ctx->cmd_fd;
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	while (now() < end)
		usleep(20000);
	__atomic_store_n(&actor.is_over, true, __ATOMIC_RELAXED);
	if (actor.is_hostile)
		_exit(0);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(workers[i].thread, NULL));
	_exit(0);
}
