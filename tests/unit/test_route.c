// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A queue pair's choice among the connections to a host: spread, traffic classes, down ones. */
#include "common.h"
#include "path/pipe/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct env {
	struct pvr_engine *engine;
	struct pvr_host *host;
	unsigned int wants;
	uint8_t wanted; /* the last DSCP */
};

static uint64_t now(void *opaque)
{
	return 1;
}

static void say(void *opaque, enum pvr_log_level level, const char *adapter, const char *message)
{
}

static const struct pvr_engine_ops engine_ops = { .now = now, .log = say };

static void want(void *opaque, struct pvr_host *host, uint8_t dscp)
{
	struct env *env = opaque;

	assert_ptr_equal(host, env->host);
	env->wants++;
	env->wanted = dscp;
}

static const struct pvr_gid_ops gid_ops = { 0 };
static const struct pvr_host_ops host_ops = { .want = want };

static ssize_t take(void *opaque, const struct iovec *iov, int count)
{
	return 0;
}

static void want_output(void *opaque)
{
}

static const struct pvr_stream_ops stream_ops = {
	.send = take,
	.recv = take,
	.want_output = want_output,
};

static int setup(void **state)
{
	struct env *env = calloc(1, sizeof(*env));

	assert_non_null(env);
	env->engine = pvr_engine_create(&engine_ops, env, 1);
	pvr_engine_set_pipe(env->engine, &gid_ops, &host_ops, env);
	env->host = pvr_host_get(env->engine, "other");
	assert_non_null(env->host);
	*state = env;
	return 0;
}

static int teardown(void **state)
{
	struct env *env = *state;

	pvr_engine_destroy(env->engine);
	free(env);
	return 0;
}

#define TEST_ROUTE(name) TEST_WITH(struct env *env, setup, teardown, name)

static void up(struct env *env, unsigned int slot, uint8_t dscp)
{
	const struct pvr_stream_limits limits = { .chunk = 65536, .dscp = dscp };

	pvr_req_conn_up(env->host, PVR_PIPE_TCP, slot, &stream_ops, env, &limits);
}

static void down(struct env *env, unsigned int slot)
{
	pvr_req_conn_down(env->host, PVR_PIPE_TCP, slot);
}

/* The slot for a queue pair; -1: none. */
static int slot_of(struct env *env, uint32_t qpn, uint8_t dscp)
{
	struct pvr_route route;

	if (!pvr_link_route(env->host, qpn, dscp, &route))
		return -1;
	assert_false(pvr_link_route_changed(&route, qpn));
	return route.slot;
}

TEST_ROUTE(test_hosts_are_bounded)
{
	char name[16];

	for (unsigned int i = 1; i < PVR_HOSTS_MAX; i++) { /* setup() has made one */
		snprintf(name, sizeof(name), "host%u", i);
		assert_non_null(pvr_host_get(env->engine, name));
	}
	assert_null(pvr_host_get(env->engine, "one-more"));
	assert_ptr_equal(pvr_host_get(env->engine, "other"), env->host);
}

TEST_ROUTE(test_without_connection_one_is_wanted)
{
	assert_int_equal(slot_of(env, 1, 0), -1);
	assert_int_equal(env->wants, 1);
	assert_int_equal(slot_of(env, 1, 46), -1);
	assert_int_equal(env->wants, 2);
	assert_int_equal(env->wanted, 46);
}

TEST_ROUTE(test_queue_pairs_are_spread)
{
	for (unsigned int slot = 0; slot < 3; slot++)
		up(env, slot, 0);
	for (uint32_t qpn = 0; qpn < 9; qpn++)
		assert_int_equal(slot_of(env, qpn, 0), qpn % 3);
	down(env, 1);
	assert_int_equal(slot_of(env, 0, 0), 0);
	assert_int_equal(slot_of(env, 1, 0), 2);
	assert_int_equal(slot_of(env, 2, 0), 2);
	down(env, 2);
	assert_int_equal(slot_of(env, 1, 0), 0);
	assert_int_equal(env->wants, 0);
}

TEST_ROUTE(test_classes_have_connections_of_their_own)
{
	up(env, 0, 0);
	up(env, 1, 0);
	up(env, 2, 46);
	up(env, 3, 10);
	for (uint32_t qpn = 0; qpn < 8; qpn++) {
		assert_int_equal(slot_of(env, qpn, 0), qpn % 2);
		assert_int_equal(slot_of(env, qpn, 46), 2);
		assert_int_equal(slot_of(env, qpn, 10), 3);
	}
	assert_int_equal(env->wants, 0);
}

TEST_ROUTE(test_class_without_connection_uses_another)
{
	struct pvr_route route;

	up(env, 0, 0);
	assert_int_equal(slot_of(env, 7, 46), 0);
	assert_int_equal(env->wants, 1);
	assert_int_equal(env->wanted, 46);
	assert_true(pvr_link_route(env->host, 7, 46, &route));
	up(env, 1, 46);
	assert_true(pvr_link_route_changed(&route, 7));
	assert_int_equal(slot_of(env, 7, 46), 1);
	assert_int_equal(slot_of(env, 7, 0), 0);
	down(env, 1);
	assert_int_equal(slot_of(env, 7, 46), 0);
	down(env, 0);
	up(env, 1, 46);
	assert_int_equal(slot_of(env, 7, 0), 1);
	assert_int_equal(slot_of(env, 7, 10), 1);
}

TEST_ROUTE(test_slot_changes_its_class)
{
	up(env, 0, 46);
	assert_int_equal(slot_of(env, 5, 46), 0);
	down(env, 0);
	up(env, 0, 0);
	up(env, 1, 0);
	assert_int_equal(slot_of(env, 4, 0), 0);
	assert_int_equal(slot_of(env, 5, 0), 1);
	env->wants = 0;
	assert_int_equal(slot_of(env, 4, 46), 0);
	assert_int_equal(env->wants, 1);
}
