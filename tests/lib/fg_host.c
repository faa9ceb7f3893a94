// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The fake daemon: owns the engine, the clock and the log. */
#include "fg_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fg_lock.h"
#include "fg_ram.h"

#define MAX_ROUNDS 10000000u
#define START_TIME (1000 * FG_SEC) /* not zero, as on a real machine */

static uint64_t host_now(void *opaque)
{
	const struct fg_host *host = opaque;

	return host->real_now ? host->real_now() : host->now;
}

static void host_wake(void *opaque, unsigned int worker)
{
	struct fg_host *host = opaque;

	if (host->wake)
		host->wake(host->wake_opaque, worker);
}

static void host_log(void *opaque, enum pvr_log_level level, const char *adapter,
		     const char *message)
{
	struct fg_host *host = opaque;
	FG_GUARD(&host->log_lock);
	struct fg_log_line *line;

	if ((unsigned)level >= FG_LOG_LEVELS)
		fg_die("log level %d", level);
	line = &host->line[host->nlines++ % FG_LOG_LINES];
	host->logged[level]++;
	line->level = level;
	snprintf(line->adapter, sizeof(line->adapter), "%s", adapter ? adapter : "");
	snprintf(line->text, sizeof(line->text), "%s", message);
	if (getenv("FG_LOG"))
		fprintf(stderr, "log %d %s: %s\n", level, line->adapter, line->text);
}

static const struct pvr_engine_ops engine_ops = {
	.now = host_now,
	.log = host_log,
	.wake = host_wake,
};

struct fg_host *fg_host_create_workers(unsigned int workers)
{
	struct fg_host *host = calloc(1, sizeof(*host));

	if (!host)
		fg_die("no memory for a host");
	host->now = START_TIME;
	host->workers = workers;
	pthread_mutex_init(&host->log_lock, NULL);
	host->polls = getenv("FG_POLL");
	LIST_INIT(&host->guests);
	host->engine = pvr_engine_create(&engine_ops, host, workers);
	if (!host->engine)
		fg_die("cannot make an engine");
	return host;
}

struct fg_host *fg_host_create(void)
{
	return fg_host_create_workers(1);
}

void fg_host_renew(struct fg_host *host)
{
	pvr_engine_destroy(host->engine);
	host->engine = pvr_engine_create(&engine_ops, host, host->workers);
	if (!host->engine)
		fg_die("cannot make an engine");
}

void fg_host_destroy(struct fg_host *host)
{
	if (!host)
		return;
	pvr_engine_destroy(host->engine);
	free(host);
}

/* Each worker once. */
static bool run_workers(struct fg_host *host)
{
	bool more = false;

	for (unsigned int i = 0; i < host->workers; i++) {
		if (host->polls)
			pvr_engine_poll(host->engine, i);
		more |= pvr_engine_run(host->engine, i);
	}
	return more;
}

/* Doorbells of guests that are async. */
static bool poll_workers(struct fg_host *host)
{
	bool found = false;

	for (unsigned int i = 0; i < host->workers; i++)
		found |= pvr_engine_is_uar_mapped(host->engine, i) &&
			 pvr_engine_poll(host->engine, i);
	return found;
}

/* The work of one worker may cause work for an earlier, idle worker. */
bool fg_host_step(struct fg_host *host)
{
	bool found = poll_workers(host);

	return run_workers(host) || found || (host->workers > 1 && run_workers(host));
}

static bool has_more(struct fg_host *host)
{
	if (host->neighbours)
		return host->neighbours->step(host->neighbours_opaque);
	return fg_host_step(host);
}

uint64_t fg_host_deadline(struct fg_host *host)
{
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < host->workers; i++)
		first = fg_sooner(first, pvr_engine_deadline(host->engine, i));
	return first;
}

static uint64_t next_deadline(struct fg_host *host)
{
	if (host->neighbours)
		return host->neighbours->deadline(host->neighbours_opaque);
	return fg_host_deadline(host);
}

static void set_clock(struct fg_host *host, uint64_t now)
{
	host->now = now;
	if (host->neighbours)
		host->neighbours->set_clock(host->neighbours_opaque, now);
}

static uint32_t run(struct fg_host *host, uint32_t max)
{
	uint32_t rounds = 1;

	while (has_more(host) && rounds < max)
		rounds++;
	return rounds;
}

uint32_t fg_migrate_every;
void (*fg_migrate_hook)(struct fg_host *host);

static uint32_t rest(struct fg_host *host)
{
	uint32_t rounds = run(host, MAX_ROUNDS);

	if (rounds >= MAX_ROUNDS)
		fg_die("the engine does not come to rest");
	return rounds;
}

uint32_t fg_run(struct fg_host *host)
{
	uint32_t rounds = rest(host);

	if (!fg_migrate_every || host->real_now || ++host->runs % fg_migrate_every)
		return rounds;
	fg_migrate_hook(host);
	return rounds + rest(host);
}

bool fg_run_bounded(struct fg_host *host, uint32_t max)
{
	return run(host, max) < max;
}

void fg_advance(struct fg_host *host, uint64_t ns)
{
	set_clock(host, host->now + ns);
	fg_run(host);
}

uint64_t fg_settle(struct fg_host *host, uint64_t ns)
{
	uint64_t start = host->now;

	for (;;) {
		uint64_t deadline;

		fg_run(host);
		deadline = next_deadline(host);
		if (deadline == UINT64_MAX)
			break;
		if (deadline - start > ns && deadline > start) {
			set_clock(host, start + ns);
			fg_run(host);
			break;
		}
		/* A deadline in the past may stay after a run. */
		set_clock(host, deadline > host->now ? deadline : host->now + 1);
	}
	return host->now - start;
}

bool fg_logged(const struct fg_host *host, const char *text)
{
	uint32_t n = host->nlines < FG_LOG_LINES ? host->nlines : FG_LOG_LINES;

	for (uint32_t i = 0; i < n; i++)
		if (strstr(host->line[i].text, text))
			return true;
	return false;
}
