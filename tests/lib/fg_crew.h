/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Threads that run a host's workers, as the daemon has them.
 *
 * While a crew is at work, guests may be used by any threads, one at a time each, but
 * fg_run() and whatever calls it may not, and adapters come and go only while it is
 * paused. The clock goes as the machine's does.
 */
#ifndef FG_CREW_H
#define FG_CREW_H

#include "fg_host.h"

struct fg_crew;

/* The machine's clock, in nanoseconds. */
uint64_t fg_crew_now(void);

struct fg_crew *fg_crew_start(struct fg_host *host);
/* Between two runs of each worker. */
void fg_crew_pause(struct fg_crew *crew);
void fg_crew_resume(struct fg_crew *crew);
/* Waits for the threads; the clock stands still from then on. */
void fg_crew_stop(struct fg_crew *crew);

#endif /* FG_CREW_H */
