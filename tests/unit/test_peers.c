// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The table of peers: its limit, and peers without address and connections. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/loop.h"
#include "net/net.h"
#include "test.h"

struct env {
	struct pvr_engine *engine;
	struct pvr_loop *loop, *worker;
	struct pvr_net *net;
	struct pvr_peers *peers;
};

static uint64_t now(void *opaque)
{
	return 1;
}

static void say(void *opaque, enum pvr_log_level level, const char *adapter, const char *message)
{
}

static const struct pvr_engine_ops engine_ops = { .now = now, .log = say };
static const struct pvr_gid_ops gid_ops = { 0 };
static const struct pvr_host_ops host_ops = { 0 };

static void log_nothing(enum pvr_log_level level, const char *host, const char *line)
{
}

static int setup(void **state)
{
	struct env *env = test_calloc(1, sizeof(*env));
	struct pvr_net_settings settings = { .name = "h", .insecure = true };
	struct pvr_net_env net_env = { .workers = 1, .log = log_nothing };
	struct pvr_error err = { "" };

	strcpy(settings.rdma_device, "none");
	assert_true(pvr_net_settings_check(&settings, &err));
	net_env.engine = env->engine = pvr_engine_create(&engine_ops, env, 1);
	pvr_engine_set_pipe(env->engine, &gid_ops, &host_ops, env);
	net_env.loop = env->loop = pvr_loop_create();
	env->worker = pvr_loop_create();
	net_env.worker_loops = &env->worker;
	env->net = pvr_net_create(&net_env, &settings, &err);
	if (!env->net)
		fail_msg("%s", err.text);
	env->peers = pvr_net_peers(env->net);
	*state = env;
	return 0;
}

static int teardown(void **state)
{
	struct env *env = *state;

	pvr_net_destroy(env->net);
	pvr_loop_destroy(env->worker);
	pvr_loop_destroy(env->loop);
	pvr_engine_destroy(env->engine);
	test_free(env);
	return 0;
}

#define TEST_PEERS(name) TEST_WITH(struct env *env, setup, teardown, name)

static bool set(struct env *env, unsigned int number, struct pvr_error *err)
{
	char name[32];

	snprintf(name, sizeof(name), "host%u", number);
	return pvr_peers_set(env->peers, name, "127.0.0.1", err);
}

static void count(void *opaque, const struct pvr_peer_info *info)
{
	++*(unsigned int *)opaque;
}

static unsigned int num_peers(struct env *env)
{
	unsigned int num = 0;

	pvr_peers_for_each(env->peers, count, &num);
	return num;
}

TEST_PEERS(test_idle_peers_make_room_for_new_ones)
{
	struct pvr_error err = { "" };
	char name[32];

	/* host0 is in use, all others are not. */
	assert_true(set(env, 0, &err));
	for (unsigned int i = 1; i <= PVR_PEERS_MAX + 10; i++) {
		if (!set(env, i, &err))
			fail_msg("host%u: %s", i, err.text);
		snprintf(name, sizeof(name), "host%u", i);
		pvr_peer_gone_unwatch(env->peers, name);
	}
	assert_in_range(num_peers(env), 2, PVR_PEERS_MAX);
	assert_true(pvr_peers_dial(env->peers, "host0"));
	assert_false(pvr_peers_dial(env->peers, "host1"));
}

TEST_PEERS(test_full_table_takes_no_more)
{
	struct pvr_error err = { "" };

	for (unsigned int i = 0; i < PVR_PEERS_MAX; i++)
		assert_true(set(env, i, &err));
	assert_false(set(env, PVR_PEERS_MAX, &err));
	assert_string_equal(err.text, "too many hosts");
	pvr_peer_gone_unwatch(env->peers, "host7");
	assert_true(set(env, PVR_PEERS_MAX, &err));
	assert_int_equal(num_peers(env), PVR_PEERS_MAX);
}

static void note(void *opaque, const struct pvr_peer_info *info)
{
	unsigned char *seen = opaque;

	seen[atoi(info->name + strlen("host"))]++;
}

/* Reads all pages of @max peers. @between is called after the first one. Return: their number. */
static unsigned int read_pages(struct env *env, unsigned int max, unsigned char *seen,
			       void (*between)(struct env *env))
{
	unsigned int pages = 1;
	uint32_t cursor = 0;

	while (pvr_peers_page(env->peers, &cursor, max, note, seen)) {
		if (between && pages == 1)
			between(env);
		pages++;
	}
	return pages;
}

#define PAGED 5000 /* several in each bucket */

TEST_PEERS(test_pages_have_each_peer_once)
{
	unsigned char seen[PAGED] = { 0 };
	struct pvr_error err = { "" };

	for (unsigned int i = 0; i < PAGED; i++)
		assert_true(set(env, i, &err));
	assert_int_equal(read_pages(env, 7, seen, NULL), (PAGED + 6) / 7);
	for (unsigned int i = 0; i < PAGED; i++)
		assert_int_equal(seen[i], 1);
}

static void add_more(struct env *env)
{
	struct pvr_error err = { "" };

	for (unsigned int i = PAGED / 2; i < PAGED; i++)
		assert_true(set(env, i, &err));
}

TEST_PEERS(test_peers_that_are_added_between_pages_repeat_none)
{
	unsigned char seen[PAGED] = { 0 };
	struct pvr_error err = { "" };

	for (unsigned int i = 0; i < PAGED / 2; i++)
		assert_true(set(env, i, &err));
	read_pages(env, PAGED / 4 + 1, seen, add_more);
	for (unsigned int i = 0; i < PAGED; i++)
		assert_in_range(seen[i], i < PAGED / 2, 1);
}

/* ------------------------------------------------------------------------ dialling */

#define MANY 1000

static void count_requested(void *opaque, const struct pvr_peer_info *info)
{
	*(unsigned int *)opaque += info->state != PVR_PEER_IDLE;
}

/* Each queue pair without a timeout asks once: a request that is lost is not repeated. */
TEST_PEERS(test_no_dial_request_is_lost)
{
	struct pvr_error err = { "" };
	unsigned int requested = 0;
	char name[32];

	for (unsigned int i = 0; i < MANY; i++) {
		assert_true(set(env, i, &err));
		snprintf(name, sizeof(name), "host%u", i);
		pvr_net_request_dial(env->net, pvr_peers_host_of(env->peers, name), 0);
		pvr_net_request_dial(env->net, pvr_peers_host_of(env->peers, name), 5);
	}
	pvr_loop_wait(env->loop, pvr_loop_now());
	pvr_loop_dispatch(env->loop);
	pvr_peers_for_each(env->peers, count_requested, &requested);
	assert_int_equal(requested, MANY);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int num = 0;

	assert_non_null(dir);
	while (readdir(dir))
		num++;
	closedir(dir);
	return num;
}

/* Each handshake costs the first thread about a millisecond. */
TEST_PEERS(test_many_hosts_are_dialled_one_after_another)
{
	unsigned int before = count_fds();
	struct pvr_error err = { "" };
	char name[32];

	for (unsigned int i = 0; i < MANY; i++) {
		assert_true(set(env, i, &err));
		snprintf(name, sizeof(name), "host%u", i);
		assert_true(pvr_peers_dial(env->peers, name));
	}
	/* A slow machine needs several of the periods. */
	assert_in_range(count_fds() - before, 1, MANY / 2);
}
