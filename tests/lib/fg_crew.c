// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Threads that run a host's workers. */
#include "fg_crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fg_ram.h"

#define WINDOW_ROUNDS 100

struct fg_member {
	struct fg_crew *crew;
	unsigned int worker;
	pthread_t thread;
	pthread_cond_t news;
	uint32_t in_vain; /* runs in a row */
	bool awake; /* somebody called wake() since the last run began */
};

struct fg_crew {
	struct fg_host *host;
	pthread_mutex_t lock; /* protects what follows, and the members' news */
	pthread_cond_t parked_news;
	unsigned int parked;
	bool pause, stop;
	struct fg_member member[PVR_MAX_WORKERS];
};

uint64_t fg_crew_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FG_SEC + (uint64_t)ts.tv_nsec;
}

static void wake(void *opaque, unsigned int worker)
{
	struct fg_crew *crew = opaque;

	pthread_mutex_lock(&crew->lock);
	crew->member[worker].awake = true;
	pthread_cond_signal(&crew->member[worker].news);
	pthread_mutex_unlock(&crew->lock);
}

/* The lock is held. */
static void park(struct fg_member *member)
{
	struct fg_crew *crew = member->crew;

	crew->parked++;
	pthread_cond_signal(&crew->parked_news);
	while (crew->pause)
		pthread_cond_wait(&member->news, &crew->lock);
	crew->parked--;
}

static void sleep_until(struct fg_member *member, uint64_t deadline)
{
	struct timespec ts = { .tv_sec = (time_t)(deadline / FG_SEC),
			       .tv_nsec = (long)(deadline % FG_SEC) };
	struct fg_crew *crew = member->crew;
	int err = 0;

	while (!member->awake && !crew->pause && !crew->stop && err != ETIMEDOUT)
		err = deadline == UINT64_MAX
			      ? pthread_cond_wait(&member->news, &crew->lock)
			      : pthread_cond_timedwait(&member->news, &crew->lock, &ts);
	member->awake = false;
}

/* Return: when to run again; 0: at once. Who polls sleeps only after a window in vain. */
static uint64_t run(struct fg_member *member)
{
	struct fg_host *host = member->crew->host;
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
	struct fg_crew *crew = member->crew;
	uint64_t deadline = 0;
	bool stop = false;

	while (!stop) {
		deadline = run(member);
		pthread_mutex_lock(&crew->lock);
		if (deadline)
			sleep_until(member, deadline);
		if (crew->pause)
			park(member);
		stop = crew->stop;
		pthread_mutex_unlock(&crew->lock);
	}
	return NULL;
}

static void member_start(struct fg_crew *crew, unsigned int worker)
{
	struct fg_member *member = &crew->member[worker];
	pthread_condattr_t attr;

	member->crew = crew;
	member->worker = worker;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&member->news, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&member->thread, NULL, work, member))
		fg_die("cannot make a thread");
}

struct fg_crew *fg_crew_start(struct fg_host *host)
{
	struct fg_crew *crew = calloc(1, sizeof(*crew));

	if (!crew)
		fg_die("no memory for a crew");
	crew->host = host;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->parked_news, NULL);
	host->real_now = fg_crew_now;
	host->wake = wake;
	host->wake_opaque = crew;
	for (unsigned int i = 0; i < host->workers; i++)
		member_start(crew, i);
	return crew;
}

static void wake_all(struct fg_crew *crew)
{
	for (unsigned int i = 0; i < crew->host->workers; i++)
		pthread_cond_signal(&crew->member[i].news);
}

void fg_crew_pause(struct fg_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->pause = true;
	wake_all(crew);
	while (crew->parked < crew->host->workers)
		pthread_cond_wait(&crew->parked_news, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

/* All of them have left before the next pause. */
void fg_crew_resume(struct fg_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->pause = false;
	wake_all(crew);
	pthread_mutex_unlock(&crew->lock);
}

void fg_crew_stop(struct fg_crew *crew)
{
	struct fg_host *host = crew->host;

	pthread_mutex_lock(&crew->lock);
	crew->stop = true;
	wake_all(crew);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned int i = 0; i < host->workers; i++) {
		pthread_join(crew->member[i].thread, NULL);
		pthread_cond_destroy(&crew->member[i].news);
	}
	host->now = fg_crew_now();
	host->real_now = NULL;
	host->wake = NULL;
	pthread_mutex_destroy(&crew->lock);
	pthread_cond_destroy(&crew->parked_news);
	free(crew);
}
