// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections between hosts: routes, WHERE and PING, the directory, and forged frames. */
#include "common.h"
#include "fabric/remote_gid.h"
#include "fg_wire.h"
#include "model/adapter.h"
#include "transport/link.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Two hosts and a guest on each, called vm1 and vm2. */
struct hosts {
	struct fg_wire *wire;
	struct fg_host *host[2];
	struct fg_guest *g[2];
	uint8_t gid[2][16];
	struct pvr_remote *other[2]; /* what each host knows the other one as */
};

static int setup(void **state, const struct fg_wire_config *config)
{
	struct hosts *env = calloc(1, sizeof(*env));

	assert_non_null(env);
	env->wire = fg_wire_create(config);
	for (unsigned int i = 0; i < 2; i++) {
		env->host[i] = fg_wire_host(env->wire, i);
		env->other[i] = fg_wire_remote(env->wire, i, !i);
		env->g[i] = fg_guest_start(env->host[i], i + 1);
		fg_gid_from_mac(env->gid[i], env->g[i]->config.mac);
	}
	fg_wire_run(env->wire);
	*state = env;
	return 0;
}

static int setup_hosts(void **state)
{
	return setup(state, NULL);
}


static int teardown_hosts(void **state)
{
	struct hosts *env = *state;

	for (unsigned int i = 0; i < 2; i++)
		fg_guest_destroy(env->g[i]);
	fg_wire_destroy(env->wire);
	free(env);
	return 0;
}

static struct pvr_remote_stats stats_of(struct hosts *env, unsigned int host)
{
	struct pvr_remote_stats stats;

	pvr_remote_get_stats(env->other[host], &stats);
	return stats;
}

/* ------------------------------------------------------------- asking each other */

static void where(struct hosts *env, const char *fabric, const uint8_t gid[16])
{
	assert_true(pvr_out_where(env->other[0], PVR_PIPE_TCP, 0, fabric, gid));
	fg_wire_run(env->wire);
}

static void test_where_is_answered_by_who_has_it(void **state)
{
	struct hosts *env = *state;
	const struct fg_located *here = fg_wire_located(env->wire, 0);

	where(env, "default", env->gid[1]);
	assert_int_equal(here->count, 1);
	assert_ptr_equal(here->remote, env->other[0]);
	assert_string_equal(here->fabric, "default");
	assert_memory_equal(here->gid, env->gid[1], 16);
	assert_int_equal(here->gid_type, PVR_GID_TYPE_ROCE_V2);
}

static void test_where_is_answered_by_nobody(void **state)
{
	struct hosts *env = *state;
	const struct fg_located *here = fg_wire_located(env->wire, 0);

	/* Not there, and there but in another fabric. */
	where(env, "default", env->gid[0]);
	assert_int_equal(here->count, 1);
	assert_int_equal(here->gid_type, 0);
	where(env, "tenant2", env->gid[1]);
	assert_int_equal(here->count, 2);
	assert_string_equal(here->fabric, "tenant2");
	assert_int_equal(here->gid_type, 0);
}

static void test_where_needs_a_connection(void **state)
{
	struct hosts *env = *state;

	assert_false(pvr_out_where(env->other[0], PVR_PIPE_TCP, 1, "default", env->gid[1]));
	fg_wire_cut(env->wire, 0, 1, 0);
	assert_false(pvr_out_where(env->other[0], PVR_PIPE_TCP, 0, "default", env->gid[1]));
	fg_wire_mend(env->wire, 0, 1, 0);
	where(env, "default", env->gid[1]);
	assert_int_equal(fg_wire_located(env->wire, 0)->count, 1);
}

static void test_ping_measures_the_way(void **state)
{
	struct hosts *env = *state;

	assert_int_equal(stats_of(env, 0).rtt_ns, 0);
	fg_wire_delay(env->wire, FG_MS);
	pvr_out_ping(env->other[0], PVR_PIPE_TCP, 0);
	fg_wire_settle(env->wire, FG_SEC);
	assert_int_equal(stats_of(env, 0).rtt_ns, 2 * FG_MS);
	assert_int_equal(stats_of(env, 1).rtt_ns, 0);
}

static void test_statistics_count_both_ways(void **state)
{
	struct hosts *env = *state;
	struct pvr_remote_stats before = stats_of(env, 0), stats;
	uint64_t now = env->host[0]->now;

	fg_wire_advance(env->wire, 5 * FG_SEC);
	where(env, "default", env->gid[1]);
	stats = stats_of(env, 0);
	assert_string_equal(stats.name, "host2");
	assert_true(stats.up[PVR_PIPE_TCP]);
	assert_false(stats.up[PVR_PIPE_VERBS]);
	assert_int_equal(stats.heard, now + 5 * FG_SEC);
	/* FABRIC and WHERE; HERE. */
	assert_int_equal(stats.tx_frames - before.tx_frames, 2);
	assert_int_equal(stats.tx_bytes - before.tx_bytes, 40 + 32);
	assert_int_equal(stats.rx_frames - before.rx_frames, 1);
	assert_int_equal(stats.rx_bytes - before.rx_bytes, 32);
	/* The connection goes, its counters stay. */
	fg_wire_cut(env->wire, 0, 1, 0);
	assert_int_equal(stats_of(env, 0).tx_bytes, stats.tx_bytes);
	assert_int_equal(stats_of(env, 1).rx_bytes, stats.tx_bytes);
	assert_false(stats_of(env, 0).up[PVR_PIPE_TCP]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define H(test) cmocka_unit_test_setup_teardown(test, setup_hosts, teardown_hosts)
		H(test_where_is_answered_by_who_has_it),
		H(test_where_is_answered_by_nobody),
		H(test_where_needs_a_connection),
		H(test_ping_measures_the_way),
		H(test_statistics_count_both_ways),
	};

	return T_MAIN(tests);
}
