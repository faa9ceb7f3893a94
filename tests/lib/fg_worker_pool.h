/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Threads that run a host's workers, as the daemon has them.
 *
 * While a worker pool runs, any thread may use a guest, one thread per guest at a time, but
 * not fg_run() or its callers. Adapters are created and destroyed only while the pool is
 * paused. The clock goes as the machine's does.
 */
#ifndef FG_WORKER_POOL_H
#define FG_WORKER_POOL_H

#include "fg_host.h"

struct fg_worker_pool;

/* The machine's clock, in nanoseconds. */
uint64_t fg_worker_pool_now(void);

struct fg_worker_pool *fg_worker_pool_start(struct fg_host *host);
/* Between two runs of each worker. */
void fg_worker_pool_pause(struct fg_worker_pool *pool);
void fg_worker_pool_resume(struct fg_worker_pool *pool);
/* Waits for the threads; the clock stands still from then on. */
void fg_worker_pool_stop(struct fg_worker_pool *pool);

#endif /* FG_WORKER_POOL_H */
