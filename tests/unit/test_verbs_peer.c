// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The queue pair of an RDMA NIC to a peer: a host that breaks it again and again cannot fill the log. */
#include <stdio.h>

#include "net/state.h"
#include "net/verbs_peer.h"
#include "test.h"

#define LINES_MAX 20 /* per period; more than this is no limit */

/* In the place of the clock, and of the end of a connection that these tests do not have. */
uint64_t __wrap_pvr_loop_now(void);
void __wrap_pvr_conn_destroy(struct pvr_conn *conn);

static uint64_t now;

uint64_t __wrap_pvr_loop_now(void)
{
	return now;
}

void __wrap_pvr_conn_destroy(struct pvr_conn *conn)
{
}

struct env {
	struct pvr_loop *loop, *worker;
	struct pvr_net *net;
	struct pvr_address address;
	struct pvr_verbs_peer verbs;
	struct pvr_conn conn;
};

static unsigned int lines, suppressed;

static void count_line(enum pvr_log_level level, const char *host, const char *line)
{
	unsigned int number;

	if (sscanf(line, "%u more messages of this kind were suppressed", &number) == 1)
		suppressed += number;
	else if (strstr(line, "by the RDMA NIC has ended"))
		lines++;
}

static int setup(void **state)
{
	struct env *env = test_calloc(1, sizeof(*env));
	struct pvr_net_settings settings = { .name = "h", .insecure = true };
	struct pvr_net_env net_env = { .workers = 1, .log = count_line };
	struct pvr_error err = { "" };

	now = 100 * PVR_SEC;
	lines = suppressed = 0;
	strcpy(settings.rdma_device, "none");
	assert_true(pvr_net_settings_check(&settings, &err));
	net_env.loop = env->loop = pvr_loop_create();
	env->worker = pvr_loop_create();
	net_env.worker_loops = &env->worker;
	env->net = pvr_net_create(&net_env, &settings, &err);
	if (!env->net)
		fail_msg("%s", err.text);
	pvr_verbs_peer_init(&env->verbs, env->net, NULL, "other", &env->address);
	env->conn.verbs_peer = &env->verbs;
	pvr_fail(&env->conn.why, "it was closed");
	*state = env;
	return 0;
}

static int teardown(void **state)
{
	struct env *env = *state;

	pvr_net_destroy(env->net);
	pvr_loop_destroy(env->worker);
	pvr_loop_destroy(env->loop);
	test_free(env);
	return 0;
}

#define TEST_VERBS(name) TEST_WITH(struct env *env, setup, teardown, name)

static void lose(struct env *env, unsigned int times)
{
	while (times--)
		pvr_verbs_peer_lost(&env->conn);
}

TEST_VERBS(test_lost_queue_pair_is_logged)
{
	lose(env, 1);
	assert_int_equal(lines, 1);
	assert_string_equal(env->verbs.error.text, "it was closed");
}

TEST_VERBS(test_queue_pair_lost_again_and_again_is_logged_at_a_rate)
{
	unsigned int first;

	lose(env, 1000);
	assert_in_range(lines, 1, LINES_MAX);
	assert_int_equal(suppressed, 0);
	first = lines;
	now += PVR_RATELIMIT_NS;
	lose(env, 1);
	assert_int_equal(lines, first + 1);
	assert_int_equal(suppressed, 1000 - first);
}
