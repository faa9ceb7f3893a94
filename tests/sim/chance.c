// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Replaces getrandom() and clock_gettime() of the C library for the engines. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "sim.h"

#define WALL_CLOCK 1800000000ull /* s since 1970, when the virtual clock is 0 */

static struct sim_rng chance;
static const uint64_t *clock_now;

void sim_chance_init(uint64_t seed, const uint64_t *now)
{
	chance = sim_rng_of(seed, UINT64_MAX);
	clock_now = now;
}

__attribute__((visibility("default"))) ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	uint8_t *at = buf;

	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)sim_draw(&chance);
	return (ssize_t)len;
}

/* Threads that wait for a time use another function. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now = clock_now ? *clock_now : 0;

	(void)clock;
	ts->tv_sec = (time_t)(WALL_CLOCK + now / FG_SEC);
	ts->tv_nsec = (long)(now % FG_SEC);
	return 0;
}
