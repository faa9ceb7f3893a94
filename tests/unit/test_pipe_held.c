// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests to a stopped adapter of another host: they wait for its start, and none is repeated. */
#include "hosts.h"

#include "core/objects.h"

TEST_EXT(PVR_EXT_UC)

#define PAGES 16
#define LEN 40000u

T_SETUP_HOSTS(hosts, 2, .chunk = 4096)
{
	hosts_connect(env, &env->a, &env->b, PAGES);
}

/* Hosts of the version before HELD. */
T_SETUP_HOSTS(old, 2, .old = true)
{
	hosts_connect(env, &env->a, &env->b, PAGES);
}

T_SETUP_HOSTS(unreliable, 2)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_UC, PAGES);
	fg_end_connect(&env->a, &env->b, &fg_conn_default);
}

static void set_timeout(struct t_env *env, uint8_t timeout)
{
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	t_connect_with(env, timeout, timeout);
}

static void stop_b(struct t_env *env)
{
	assert_int_equal(pvr_adapter_stop(env->g[1]->adapter), 0);
}

static void start_b(struct t_env *env)
{
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), 0);
}

/* The steps of the wire before the stop: all parts of a message. */
static const struct moment {
	const char *label;
	uint32_t steps;
} moments[] = {
	{ "before the first fragment", 0 },
	{ "after one step", 1 },
	{ "after two", 2 },
	{ "after three", 3 },
	{ "after five", 5 },
	{ "after eight", 8 },
	{ "after thirteen", 13 },
	{ "after twenty", 20 },
	{ "after forty", 40 },
};

static void post_all(struct t_env *env)
{
	fg_fill(env->a.buf.va, LEN, 7);
	memset(env->b.buf.va, 0, PAGES * PVR_PAGE_SIZE);
	t_recv(&env->b, 9, PVR_PAGE_SIZE, LEN);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, 60000, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
	t_send(&env->a, 2, 0, LEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, PVR_PAGE_SIZE, LEN);
	t_post(&env->a, .wr_id = 4, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, 60000, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
}

static void expect_all(struct t_env *env)
{
	uint64_t value;
	uint32_t i;

	for (i = 1; i <= 4; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_SUCCESS);
	expect_no_cqe(&env->a.scq);
	expect_recv(&env->b.rcq, 9, LEN);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(fg_mismatch(env->b.buf.va + PVR_PAGE_SIZE, LEN, 7), LEN);
	assert_int_equal(fg_mismatch(env->a.buf.va, LEN, 7), LEN);
	memcpy(&value, env->b.buf.va, sizeof(value));
	assert_int_equal(value, 2);
	memcpy(&value, env->a.buf.va + 60000, sizeof(value));
	assert_int_equal(value, 1);
}

TEST_CASES(hosts, test_requests_are_executed_once_around_a_stop, moments)
{
	fg_wire_limit(env->wire, 3000, 1000);
	post_all(env);
	fg_wire_steps(env->wire, row->steps);
	stop_b(env);
	fg_settle(env->host, 30 * FG_SEC);
	start_b(env);
	fg_settle(env->host, FG_SEC);
	expect_all(env);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

/* Each start executes a part. */
TEST(hosts, test_requests_are_executed_once_around_many_stops)
{
	uint32_t i;

	fg_wire_limit(env->wire, 3000, 1000);
	post_all(env);
	for (i = 0; i < 60; i++) {
		fg_wire_steps(env->wire, 2 + i % 5);
		stop_b(env);
		fg_settle(env->host, 10 * FG_MS * (i % 3));
		start_b(env);
	}
	fg_settle(env->host, FG_SEC);
	expect_all(env);
}

/* The connection breaks while the requester waits. */
TEST(hosts, test_new_connection_to_a_stopped_adapter)
{
	post_all(env);
	stop_b(env);
	fg_settle(env->host, FG_SEC);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_settle(env->host, 10 * FG_MS);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->a.scq);
	start_b(env);
	fg_settle(env->host, FG_SEC);
	expect_all(env);
}

/* The answer to the READ is lost: the requester asks for it again while the adapter is stopped. */
TEST(hosts, test_read_that_was_executed_is_answered_after_the_start)
{
	fg_fill(env->b.buf.va, LEN, 3);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, LEN);
	fg_wire_hold(env->wire, 1, 0, true);
	fg_wire_steps(env->wire, 100);
	stop_b(env);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_settle(env->host, 10 * FG_SEC);
	expect_no_cqe(&env->a.scq);
	start_b(env);
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.buf.va, LEN, 3), LEN);
}

/* A wait is a quarter of the time since the stop at most, but not below 2 ms. */
TEST(hosts, test_peer_learns_of_a_start_soon)
{
	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 40 * FG_MS);
	start_b(env);
	fg_settle(env->host, 10 * FG_MS);
	expect_written(&env->a, 1);
}

/* One fragment at a time asks whether the adapter has started. */
TEST(hosts, test_peer_sends_few_bytes_to_a_stopped_adapter)
{
	struct pvr_host_stats before, after;

	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LEN);
	fg_settle(env->host, FG_SEC);
	pvr_host_get_stats(fg_wire_remote_host(env->wire, 0, 1), &before);
	fg_settle(env->host, 10 * FG_SEC);
	pvr_host_get_stats(fg_wire_remote_host(env->wire, 0, 1), &after);
	assert_in_range(after.tx_frames - before.tx_frames, 90, 130);
	assert_in_range(after.tx_bytes - before.tx_bytes, 1, 130 * 4300);
	start_b(env);
	fg_settle(env->host, 200 * FG_MS);
	expect_written(&env->a, 1);
}

TEST(hosts, test_queue_pair_without_peer_at_a_stopped_adapter_gets_no_response)
{
	set_timeout(env, 10);
	expect_ok(fg_qp_to_reset(&env->b.qp));
	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* The other host's timers run, as if the adapter were gone. */
TEST(old, test_host_without_move_uses_its_retries)
{
	set_timeout(env, 10);
	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(old, test_host_without_move_sends_again_within_its_retries)
{
	set_timeout(env, 18);
	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_SEC);
	start_b(env);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 1);
}

TEST(unreliable, test_uc_message_to_a_stopped_adapter_of_another_host_is_lost)
{
	t_recv(&env->b, 2, 0, 8);
	stop_b(env);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	start_b(env);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
	t_send(&env->a, 3, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 3);
	expect_recv(&env->b.rcq, 2, 8);
}

/* The time of the operator, in place of PVR_HOLD_NS. */
TEST(hosts, test_wait_has_the_time_of_the_engine)
{
	set_timeout(env, 10);
	pvr_engine_set_hold(fg_wire_host(env->wire, 1)->engine, 3 * FG_SEC);
	stop_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 2900 * FG_MS);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* --------------------------------------------------------- peers of a closed adapter */

static void close_b(struct t_env *env)
{
	struct pvr_adapter *b = env->g[1]->adapter;

	assert_int_equal(pvr_adapter_start_dirty_log(b), 0);
	assert_int_equal(pvr_adapter_throttle(b, 50), 0);
	fg_settle(env->host, PVR_THROTTLE_NS / 2 + FG_MS);
}

TEST_CASES(hosts, test_requests_are_executed_once_while_the_adapter_closes_and_opens, moments)
{
	struct pvr_adapter *b = env->g[1]->adapter;

	fg_wire_limit(env->wire, 3000, 1000);
	assert_int_equal(pvr_adapter_start_dirty_log(b), 0);
	assert_int_equal(pvr_adapter_throttle(b, PVR_THROTTLE_MAX), 0);
	post_all(env);
	fg_wire_steps(env->wire, row->steps);
	fg_settle(env->host, PVR_THROTTLE_NS / 100 + FG_MS);
	fg_settle(env->host, 30 * FG_SEC);
	expect_all(env);
}

/* It would count its retries, so it does not wait. */
TEST(old, test_host_without_move_does_not_wait_for_a_closed_adapter)
{
	close_b(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_MS);
	expect_written(&env->a, 1);
}

/* Then the requester has nothing to do but wait for that response. */
TEST(hosts, test_response_to_a_stopped_adapter_that_waits_for_it)
{
	set_timeout(env, 0);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, 60000, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, 8),
	       T_REMOTE(&env->b.mr, 8), .flags = PVR_SEND_SIGNALED | PVR_SEND_FENCE);
	fg_wire_steps(env->wire, 1);
	assert_int_equal(pvr_adapter_stop(env->g[0]->adapter), 0);
	fg_settle(env->host, 100 * FG_MS);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	fg_settle(env->host, 100 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_SUCCESS);
}
