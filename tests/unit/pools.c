// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two hosts whose workers and connections have threads of their own. */
#include "pools.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define HANG_SECONDS 60

struct talk {
	bool (*turn)(void *pair);
	void *pair;
	pthread_t thread;
};

static void init(struct t_pools *pools, const struct fg_wire_config *config)
{
	*pools = (struct t_pools){ .wire = fg_wire_create(config), .nics = config->exposes };
	for (uint32_t i = 0; i < 4; i++)
		pools->guest[i % 2][i / 2] =
			fg_guest_start_on(fg_wire_host(pools->wire, i / 2), i + 1, i % 2);
}

void t_pools_init(struct t_pools *pools)
{
	const struct fg_wire_config config = { .workers = 2, .buffer = 65536 };

	init(pools, &config);
}

void t_pools_init_nics(struct t_pools *pools)
{
	const struct fg_wire_config config = {
		.workers = 2, .chunk = 256u << 10, .buffer = 1u << 20, .exposes = true
	};

	init(pools, &config);
	fg_wire_verbs(pools->wire, 0, 1, true);
	fg_wire_verbs(pools->wire, 1, 0, true);
}

void t_pools_start(struct t_pools *pools)
{
	fg_wire_run(pools->wire);
	/*
	 * Starting a pool changes the clock, which the wire's threads read: start pools
	 * first.
	 */
	for (unsigned int i = 0; i < 2; i++)
		pools->pool[i] = fg_worker_pool_start(fg_wire_host(pools->wire, i));
	fg_wire_start(pools->wire);
}

static void stop(struct t_pools *pools)
{
	fg_wire_stop(pools->wire);
	for (unsigned int i = 0; i < 2; i++) {
		if (pools->pool[i])
			fg_worker_pool_stop(pools->pool[i]);
		pools->pool[i] = NULL;
	}
}

int t_pools_teardown(void **state)
{
	struct t_pools *pools = *state;

	stop(pools);
	for (unsigned int i = 0; i < 4; i++)
		fg_guest_destroy(pools->guest[i % 2][i / 2]);
	fg_wire_destroy(pools->wire);
	test_free(pools);
	return 0;
}

static void *talk(void *opaque)
{
	uint64_t end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;
	struct talk *talk = opaque;

	while (!talk->turn(talk->pair)) {
		sched_yield();
		if (fg_worker_pool_now() > end)
			fg_die("no end within %d s", HANG_SECONDS);
	}
	return NULL;
}

static void cut_one(struct t_pools *pools, unsigned int from)
{
	if (pools->nics) {
		fg_wire_verbs(pools->wire, from, !from, false);
		fg_wire_verbs(pools->wire, from, !from, true);
	} else {
		fg_wire_cut(pools->wire, from, !from, 0);
		fg_wire_mend(pools->wire, from, !from, 0);
	}
}

static void cut(struct t_pools *pools, unsigned int cuts)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (unsigned int i = 0; i < cuts; i++) {
		nanosleep(&pause, NULL);
		cut_one(pools, i % 2);
	}
}

void t_pools_talk(struct t_pools *pools, bool (*turn)(void *pair), void *const pair[2],
		  unsigned int cuts)
{
	struct talk talks[2];

	for (unsigned int i = 0; i < 2; i++) {
		talks[i] = (struct talk){ .turn = turn, .pair = pair[i] };
		assert_int_equal(pthread_create(&talks[i].thread, NULL, talk, &talks[i]), 0);
	}
	cut(pools, cuts);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(talks[i].thread, NULL);
	stop(pools);
	fg_wire_run(pools->wire);
	assert_int_equal(fg_wire_refused(pools->wire), 0);
}
