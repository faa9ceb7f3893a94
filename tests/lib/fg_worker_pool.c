// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Threads that run a host's workers. */
#include "fg_worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fg_lock.h"
#include "fg_ram.h"

#define WINDOW_ROUNDS 100

struct fg_member {
	struct fg_worker_pool *pool;
	unsigned int worker;
	pthread_t thread;
	pthread_cond_t news;
	uint32_t in_vain; /* runs in a row */
	bool awake; /* wake() was called since the last run began */
};

struct fg_worker_pool {
	struct fg_host *host;
	pthread_mutex_t lock; /* protects what follows, and the members' news */
	pthread_cond_t parked_news;
	unsigned int parked;
	bool pause, stop;
	struct fg_member member[PVR_MAX_WORKERS];
};

uint64_t fg_worker_pool_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FG_SEC + (uint64_t)ts.tv_nsec;
}

static void wake(void *opaque, unsigned int worker)
{
	struct fg_worker_pool *pool = opaque;
	FG_GUARD(&pool->lock);

	pool->member[worker].awake = true;
	pthread_cond_signal(&pool->member[worker].news);
}

/* The lock is held. */
static void park(struct fg_member *member)
{
	struct fg_worker_pool *pool = member->pool;

	pool->parked++;
	pthread_cond_signal(&pool->parked_news);
	while (pool->pause)
		pthread_cond_wait(&member->news, &pool->lock);
	pool->parked--;
}

static void sleep_until(struct fg_member *member, uint64_t deadline)
{
	struct timespec ts = { .tv_sec = (time_t)(deadline / FG_SEC),
			       .tv_nsec = (long)(deadline % FG_SEC) };
	struct fg_worker_pool *pool = member->pool;
	int err = 0;

	while (!member->awake && !pool->pause && !pool->stop && err != ETIMEDOUT)
		err = deadline == UINT64_MAX
			      ? pthread_cond_wait(&member->news, &pool->lock)
			      : pthread_cond_timedwait(&member->news, &pool->lock, &ts);
	member->awake = false;
}

/*
 * Return: when to run again; 0: at once. A polling worker sleeps only after an idle
 * window.
 */
static uint64_t run(struct fg_member *member)
{
	struct fg_host *host = member->pool->host;
	bool found = host->polls && pvr_engine_poll(host->engine, member->worker);

	if (pvr_engine_run(host->engine, member->worker) || found) {
		member->in_vain = 0;
		return 0;
	}
	if (host->polls && ++member->in_vain % WINDOW_ROUNDS)
		return 0;
	if (host->polls && !pvr_engine_enable_doorbells(host->engine, member->worker))
		return 0;
	return pvr_engine_deadline(host->engine, member->worker);
}

static void *work(void *opaque)
{
	struct fg_member *member = opaque;
	struct fg_worker_pool *pool = member->pool;
	uint64_t deadline = 0;
	bool stop = false;

	while (!stop) {
		deadline = run(member);
		pthread_mutex_lock(&pool->lock);
		if (deadline)
			sleep_until(member, deadline);
		if (pool->pause)
			park(member);
		stop = pool->stop;
		pthread_mutex_unlock(&pool->lock);
	}
	return NULL;
}

static void member_start(struct fg_worker_pool *pool, unsigned int worker)
{
	struct fg_member *member = &pool->member[worker];
	pthread_condattr_t attr;

	member->pool = pool;
	member->worker = worker;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&member->news, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&member->thread, NULL, work, member))
		fg_die("cannot make a thread");
}

struct fg_worker_pool *fg_worker_pool_start(struct fg_host *host)
{
	struct fg_worker_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		fg_die("no memory for a worker pool");
	pool->host = host;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->parked_news, NULL);
	host->real_now = fg_worker_pool_now;
	host->wake = wake;
	host->wake_opaque = pool;
	for (unsigned int i = 0; i < host->workers; i++)
		member_start(pool, i);
	return pool;
}

static void wake_all(struct fg_worker_pool *pool)
{
	for (unsigned int i = 0; i < pool->host->workers; i++)
		pthread_cond_signal(&pool->member[i].news);
}

void fg_worker_pool_pause(struct fg_worker_pool *pool)
{
	FG_GUARD(&pool->lock);

	pool->pause = true;
	wake_all(pool);
	while (pool->parked < pool->host->workers)
		pthread_cond_wait(&pool->parked_news, &pool->lock);
}

/* All of them have left before the next pause. */
void fg_worker_pool_resume(struct fg_worker_pool *pool)
{
	FG_GUARD(&pool->lock);

	pool->pause = false;
	wake_all(pool);
}

void fg_worker_pool_stop(struct fg_worker_pool *pool)
{
	struct fg_host *host = pool->host;

	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	wake_all(pool);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned int i = 0; i < host->workers; i++) {
		pthread_join(pool->member[i].thread, NULL);
		pthread_cond_destroy(&pool->member[i].news);
	}
	host->now = fg_worker_pool_now();
	host->real_now = NULL;
	host->wake = NULL;
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->parked_news);
	free(pool);
}
