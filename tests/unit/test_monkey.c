// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two hostile guests next to two that work. Asserted are invariants only: nothing crashes or
 * hangs, the working pair keeps working, and the hostile guests work after a reset. Half of
 * the seeds acknowledge all extensions.
 */
#include "common.h"
#include "fg_monkey.h"

#define STEPS 20000

static void run_monkey(struct t_env *env, uint64_t seed)
{
	static struct fg_monkey m;
	struct fg_end c, d;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&c, env->g[2], &d, env->g[3]);
	fg_monkey_init(&m, env->host, env->g[0], env->g[1], seed);
	for (int i = 0; i < STEPS; i++) {
		fg_monkey_step(&m);
		if (i % 500 == 0)
			t_ping_pong(env->host, &c, &d);
	}
	fg_monkey_recover(&m);
	t_ping_pong(env->host, &m.end[0], &m.end[1]);
	t_ping_pong(env->host, &c, &d);
}

/* Set before the fixture boots the guests. */
T_SETUP_EXT(extensions, PVR_ENGINE_EXT, guests)

#define SEED(fixture, n)                         \
	TEST(fixture, test_monkey_with_seed_##n) \
	{                                        \
		run_monkey(env, n);              \
	}

SEED(guests, 1)
SEED(extensions, 2)
SEED(guests, 3)
SEED(extensions, 4)
SEED(guests, 5)
SEED(extensions, 6)
SEED(guests, 7)
SEED(extensions, 8)
SEED(guests, 9)
SEED(extensions, 10)
SEED(guests, 11)
SEED(extensions, 12)
