// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two hosts whose workers and connections have threads of their own. */
#include "crews.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define HANG_SECONDS 60

struct talk {
	bool (*turn)(void *pair);
	void *pair;
	pthread_t thread;
};

static void init(struct t_crews *crews, const struct fg_wire_config *config)
{
	*crews = (struct t_crews){ .wire = fg_wire_create(config), .nics = config->exposes };
	for (uint32_t i = 0; i < 4; i++)
		crews->guest[i % 2][i / 2] =
			fg_guest_start_on(fg_wire_host(crews->wire, i / 2), i + 1, i % 2);
}

void t_crews_init(struct t_crews *crews)
{
	const struct fg_wire_config config = { .workers = 2, .buffer = 65536 };

	init(crews, &config);
}

void t_crews_init_nics(struct t_crews *crews)
{
	const struct fg_wire_config config = {
		.workers = 2, .chunk = 256u << 10, .buffer = 1u << 20, .exposes = true
	};

	init(crews, &config);
	fg_wire_verbs(crews->wire, 0, 1, true);
	fg_wire_verbs(crews->wire, 1, 0, true);
}

void t_crews_start(struct t_crews *crews)
{
	fg_wire_run(crews->wire);
	/* Crews change what the clock is, which the wire's threads look at. */
	for (unsigned int i = 0; i < 2; i++)
		crews->crew[i] = fg_crew_start(fg_wire_host(crews->wire, i));
	fg_wire_start(crews->wire);
}

static void stop(struct t_crews *crews)
{
	fg_wire_stop(crews->wire);
	for (unsigned int i = 0; i < 2; i++) {
		if (crews->crew[i])
			fg_crew_stop(crews->crew[i]);
		crews->crew[i] = NULL;
	}
}

int t_crews_teardown(void **state)
{
	struct t_crews *crews = *state;

	stop(crews);
	for (unsigned int i = 0; i < 4; i++)
		fg_guest_destroy(crews->guest[i % 2][i / 2]);
	fg_wire_destroy(crews->wire);
	test_free(crews);
	return 0;
}

static void *talk(void *opaque)
{
	uint64_t end = fg_crew_now() + HANG_SECONDS * FG_SEC;
	struct talk *talk = opaque;

	while (!talk->turn(talk->pair)) {
		sched_yield();
		if (fg_crew_now() > end)
			fg_die("no end within %d s", HANG_SECONDS);
	}
	return NULL;
}

static void cut_one(struct t_crews *crews, unsigned int from)
{
	if (crews->nics) {
		fg_wire_verbs(crews->wire, from, !from, false);
		fg_wire_verbs(crews->wire, from, !from, true);
	} else {
		fg_wire_cut(crews->wire, from, !from, 0);
		fg_wire_mend(crews->wire, from, !from, 0);
	}
}

static void cut(struct t_crews *crews, unsigned int cuts)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (unsigned int i = 0; i < cuts; i++) {
		nanosleep(&pause, NULL);
		cut_one(crews, i % 2);
	}
}

void t_crews_talk(struct t_crews *crews, bool (*turn)(void *pair), void *const pair[2],
		  unsigned int cuts)
{
	struct talk talks[2];

	for (unsigned int i = 0; i < 2; i++) {
		talks[i] = (struct talk){ .turn = turn, .pair = pair[i] };
		assert_int_equal(pthread_create(&talks[i].thread, NULL, talk, &talks[i]), 0);
	}
	cut(crews, cuts);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(talks[i].thread, NULL);
	stop(crews);
	fg_wire_run(crews->wire);
	assert_int_equal(fg_wire_refused(crews->wire), 0);
}
