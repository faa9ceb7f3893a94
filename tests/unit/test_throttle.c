// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Peers that wait for a part of the time, while the pages that they write are logged. */
#include "ends.h"

#include "fg_dirty.h"

#include <limits.h>

/* The second half of each period is closed. */
#define HALF 50
#define OPEN (PVR_THROTTLE_NS / 2)

static void throttle(struct fg_guest *guest, unsigned int percent)
{
	assert_int_equal(pvr_adapter_throttle(guest->adapter, percent), 0);
}

/* The adapter of env->b is closed, for nearly OPEN. */
static void close_b(struct t_env *env)
{
	fg_dirty_start(env->g[1]);
	throttle(env->g[1], HALF);
	fg_settle(env->host, OPEN + FG_MS);
}

static void expect_wait(struct t_env *env)
{
	fg_settle(env->host, FG_MS);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
}

TEST(rc_connected, test_peer_waits_until_the_adapter_is_open)
{
	t_recv(&env->b, 2, 0, 8);
	close_b(env);
	t_send(&env->a, 1, 0, 8);
	expect_wait(env);
	fg_settle(env->host, OPEN - 5 * FG_MS);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, 5 * FG_MS);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

TEST(rc_connected, test_adapter_is_open_at_first_and_again_in_each_period)
{
	fg_dirty_start(env->g[1]);
	throttle(env->g[1], HALF);
	for (uint32_t i = 0; i < 4; i++) {
		t_recv(&env->b, 2, 0, 8);
		t_send(&env->a, 1, 0, 8);
		fg_settle(env->host, FG_MS);
		expect_sent(&env->a, 1);
		expect_recv(&env->b.rcq, 2, 8);
		fg_settle(env->host, PVR_THROTTLE_NS - FG_MS);
	}
}

/* One retry only: it is not used up in many periods. */
TEST(rc, test_wait_for_an_open_adapter_counts_no_retry)
{
	const struct fg_conn conn = t_conn_ack(1, 0);

	fg_end_connect(&env->a, &env->b, &conn);
	close_b(env);
	throttle(env->g[1], PVR_THROTTLE_MAX);
	for (uint32_t i = 0; i < 20; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
		fg_settle(env->host, 2 * PVR_THROTTLE_NS);
		expect_written(&env->a, 1);
	}
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

TEST(rc_connected, test_closed_adapter_sends)
{
	t_recv(&env->a, 2, 0, 8);
	close_b(env);
	t_send(&env->b, 1, 0, 8);
	fg_settle(env->host, FG_MS);
	expect_sent(&env->b, 1);
	expect_recv(&env->a.rcq, 2, 8);
}

TEST(rc_connected, test_closed_adapter_executes_commands)
{
	struct fg_pd pd;

	close_b(env);
	expect_ok(fg_pd_create(&env->g[1]->kernel, &pd));
}

TEST(rc_connected, test_end_of_the_log_opens_the_adapter)
{
	close_b(env);
	pvr_adapter_stop_dirty_log(env->g[1]->adapter);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_MS);
	expect_written(&env->a, 1);
	fg_settle(env->host, OPEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_MS);
	expect_written(&env->a, 1);
}

TEST(rc_connected, test_throttle_of_zero_opens_the_adapter)
{
	close_b(env);
	throttle(env->g[1], 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_MS);
	expect_written(&env->a, 1);
}

TEST(rc_connected, test_closed_adapter_stops_and_starts)
{
	close_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	expect_wait(env);
	assert_int_equal(pvr_adapter_stop(env->g[1]->adapter), 0);
	fg_settle(env->host, 2 * PVR_THROTTLE_NS);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), 0);
	fg_settle(env->host, 2 * PVR_THROTTLE_NS);
	expect_written(&env->a, 1);
}

TEST(rc_connected, test_reset_of_a_closed_adapter_ends_the_wait_of_its_peer)
{
	close_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	expect_wait(env);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* On the way to another host it would be lost instead. */
TEST(uc_connected, test_uc_message_waits_on_one_host_only)
{
	t_recv(&env->b, 2, 0, 8);
	close_b(env);
	t_send(&env->a, 1, 0, 8);
	if (!env->wire) {
		expect_wait(env);
		fg_settle(env->host, OPEN);
	}
	fg_settle(env->host, FG_MS);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST_GUEST(guest, test_throttle_needs_the_log_and_a_percentage)
{
	assert_int_equal(pvr_adapter_throttle(g->adapter, 1), -ENOENT);
	assert_int_equal(pvr_adapter_throttle(g->adapter, 0), 0);
	fg_dirty_start(g);
	assert_int_equal(pvr_adapter_throttle(g->adapter, PVR_THROTTLE_MAX), 0);
	assert_int_equal(pvr_adapter_throttle(g->adapter, PVR_THROTTLE_MAX + 1), -EINVAL);
	assert_int_equal(pvr_adapter_throttle(g->adapter, UINT_MAX), -EINVAL);
}
