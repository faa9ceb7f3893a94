/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A host in place of the daemon: an engine, a clock under the test's control, a log. */
#ifndef FG_HOST_H
#define FG_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine.h"

#define FG_LOG_LINES 128
#define FG_LOG_LEN 200
#define FG_LOG_LEVELS 4

#define FG_US 1000ull
#define FG_MS 1000000ull
#define FG_SEC 1000000000ull

/* Of two deadlines. */
static inline uint64_t fg_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct fg_log_line {
	enum pvr_log_level level;
	char adapter[PVR_NAME_MAX];
	char text[FG_LOG_LEN];
};

/* The other hosts of a wire or segment (fg_wire.h, fg_segment.h): running one host runs all of them. */
struct fg_neighbours {
	/* Runs all hosts once, this one too. Return: whether there is more to do. */
	bool (*step)(void *opaque);
	/* Return: the earliest deadline of all hosts. */
	uint64_t (*deadline)(void *opaque);
	void (*set_clock)(void *opaque, uint64_t now);
	/* Called after each command: other hosts may have work. */
	void (*tell)(void *opaque);
};

struct fg_guest;

struct fg_host {
	struct pvr_engine *engine;
	unsigned int workers;
	uint64_t now; /* ns; moves only by fg_advance() and fg_settle() */
	struct pvr_port *port; /* of its adapters; or NULL, see fg_segment.h */
	const struct fg_neighbours *neighbours; /* NULL: a single host */
	void *neighbours_opaque;
	LIST_HEAD(, fg_guest) guests; /* with an adapter on it */
	uint32_t runs; /* for FG_MIGRATE, see fg_migrate.h */
	bool polls; /* fg_run() polls the engine and never enables doorbells */
	/*
	 * While a worker pool runs (fg_worker_pool.h): its clock, and the target of
	 * wake().
	 */
	uint64_t (*real_now)(void);
	void (*wake)(void *opaque, unsigned int worker);
	void *wake_opaque;
	pthread_mutex_t log_lock; /* protects what follows */
	uint64_t logged[FG_LOG_LEVELS]; /* lines by level */
	uint32_t nlines; /* all; the last FG_LOG_LINES are in line[] */
	struct fg_log_line line[FG_LOG_LINES];
};

/* Set by fg_migrate_init(): called after each so many fg_run(). */
extern uint32_t fg_migrate_every;
extern void (*fg_migrate_hook)(struct fg_host *host);

/*
 * With FG_LOG set in the environment the log is also printed, with FG_POLL the workers
 * poll and all guests acknowledge PVR_EXT_DB_SUPPRESS.
 */
struct fg_host *fg_host_create(void);
struct fg_host *fg_host_create_workers(unsigned int workers);
void fg_host_destroy(struct fg_host *host);
/* Another process takes the place of this one: a new engine, without adapters and other hosts. */
void fg_host_renew(struct fg_host *host);

/*
 * Runs all workers, in this one thread, until there is nothing to do now; returns the
 * rounds. Never moves the clock.
 */
uint32_t fg_run(struct fg_host *host);
/* As fg_run(), but gives up after @max rounds: true if the engine came to rest. */
bool fg_run_bounded(struct fg_host *host, uint32_t max);

/* Of this host alone: a round of its workers, and when they have something to do next. */
bool fg_host_step(struct fg_host *host);
uint64_t fg_host_deadline(struct fg_host *host);

/* Moves the clock on and runs. */
void fg_advance(struct fg_host *host, uint64_t ns);
/*
 * Moves the clock from deadline to deadline, running each time, until no timer is
 * left or @ns have passed. Returns the time that passed.
 */
uint64_t fg_settle(struct fg_host *host, uint64_t ns);

/* True if a line that contains @text is still in the log. */
bool fg_logged(const struct fg_host *host, const char *text);

#endif /* FG_HOST_H */
