// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_PEER_GONE: what a reliable connection is told when the guest at its other end is gone. */
#include "common.h"

/* Far less than the retries of fg_conn_default take. */
#define SOON (20 * FG_MS)

static void connect(struct t_env *env)
{
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
}

static void end_peer(struct t_env *env)
{
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, SOON);
}

static void expect_gone(struct t_env *env)
{
	expect_state(&env->a, PVR_QPS_ERR);
	expect_one_event(env->g[0], PVR_EVENT_QP_FATAL, env->a.qp.handle);
}

static void test_who_waits_for_messages_is_told(void **state)
{
	struct t_env *env = *state;

	connect(env);
	t_recv(&env->a, 1, 0, 8);
	t_recv(&env->a, 2, 0, 8);
	end_peer(env);
	expect_cqe(&env->a.rcq, 1, PVRDMA_WC_GENERAL_ERR);
	expect_cqe(&env->a.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_gone(env);
}

static void test_reset_by_the_peers_driver_is_such_an_end(void **state)
{
	struct t_env *env = *state;

	connect(env);
	fg_reg_write(env->g[1], PVR_REG_CTL, PVR_CTL_RESET);
	fg_settle(env->host, SOON);
	expect_gone(env);
}

static void test_removal_of_the_peers_adapter_is_such_an_end(void **state)
{
	struct t_env *env = *state;

	connect(env);
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
	fg_settle(env->host, SOON);
	expect_gone(env);
}

/* As after the last retry, which is where a stock device would come to. */
static void test_request_that_waits_fails_like_one_without_answer(void **state)
{
	struct t_env *env = *state;

	connect(env);
	t_recv(&env->a, 3, 0, 8);
	t_send(&env->a, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	end_peer(env);
	expect_cqe(&env->a.rcq, 3, PVRDMA_WC_WR_FLUSH_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_no_event(env->g[0]);
	assert_int_equal(fg_stats(env->g[0]).retries_exceeded, 1);
}

static void test_timeout_0_does_not_wait_for_ever_for_nobody(void **state)
{
	struct t_env *env = *state;
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 0;
	fg_end_connect(&env->a, &env->b, &conn);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	end_peer(env);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

static void test_half_a_connection_is_told(void **state)
{
	struct t_env *env = *state;

	t_one_host_only(env, "another host knows nothing of half a connection");
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	end_peer(env);
	expect_gone(env);
}

static void test_drained_connection_is_told(void **state)
{
	struct t_env *env = *state;
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	connect(env);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	t_send(&env->a, 1, 0, 8);
	end_peer(env);
	expect_gone(env);
}

static void test_without_the_extension_nobody_is_told(void **state)
{
	struct t_env *env = *state;

	connect(env);
	t_recv(&env->a, 1, 0, 8);
	end_peer(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_no_cqe(&env->a.rcq);
	expect_no_event(env->g[0]);
	expect_state(&env->a, PVR_QPS_RTS);
}

/* What dies is a guest, not an address: that may move. */
static void test_address_that_is_taken_away_is_no_end(void **state)
{
	struct t_env *env = *state;

	connect(env);
	expect_ok(fg_unbind_gid(env->g[1], 0, env->b.gid));
	fg_settle(env->host, SOON);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_no_event(env->g[0]);
}

static void test_peers_queue_pair_that_is_destroyed_is_no_end(void **state)
{
	struct t_env *env = *state;

	connect(env);
	expect_ok(fg_qp_destroy(&env->b.qp));
	fg_settle(env->host, SOON);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_no_event(env->g[0]);
}

static void test_connections_with_others_go_on(void **state)
{
	struct t_env *env = *state;
	struct fg_end c, d;

	connect(env);
	env->g[2] = fg_guest_start(env->host, 3);
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[2], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	end_peer(env);
	expect_gone(env);
	expect_state(&c, PVR_QPS_RTS);
	t_ping_pong(env->host, &c, &d);
}

/* A connection that has been made anew is with whoever has the address now. */
static void test_new_guest_in_its_place_gets_new_connections(void **state)
{
	struct t_env *env = *state;

	connect(env);
	end_peer(env);
	expect_gone(env);
	fg_guest_destroy(env->g[1]);
	env->g[1] = fg_guest_start(env->host, 2);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	connect(env);
	fg_settle(env->host, SOON);
	t_ping_pong(env->host, &env->a, &env->b);
}

static void test_who_cannot_be_told_now_is_told_later(void **state)
{
	struct t_env *env = *state;

	connect(env);
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	end_peer(env);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_settle(env->host, SOON);
	expect_gone(env);
}

/* One look is enough for all of them, and nobody puts it off. */
static void test_guests_that_end_all_the_time_cost_few_looks(void **state)
{
	struct t_env *env = *state;
	uint64_t deadline;
	struct fg_end c;

	t_one_host_only(env, "who is on another host is told without a look");
	connect(env);
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	deadline = pvr_engine_deadline(env->host->engine, 0);
	assert_true(deadline != UINT64_MAX);
	for (int i = 0; i < 20; i++) {
		fg_guest_destroy(env->g[1]);
		env->g[1] = fg_guest_start(env->host, 2);
		expect_ok(fg_qp_to_reset(&c.qp));
		expect_ok(fg_qp_to_init(&c.qp, NULL));
		expect_ok(fg_qp_to_rtr(&c.qp, NULL, env->b.gid, 7));
		env->host->now += 1;
		pvr_adapter_reset(env->g[1]->adapter);
		fg_run(env->host);
		assert_true(pvr_engine_deadline(env->host->engine, 0) == deadline);
		expect_state(&env->a, PVR_QPS_RTS);
	}
	fg_settle(env->host, SOON);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&c, PVR_QPS_ERR);
}

static int setup_stock(void **state)
{
	uint32_t ext = fg_default_ext;
	int err;

	fg_default_ext = 0;
	err = t_setup_rc(state);
	fg_default_ext = ext;
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_who_waits_for_messages_is_told, rc),
		T(test_reset_by_the_peers_driver_is_such_an_end, rc),
		T(test_removal_of_the_peers_adapter_is_such_an_end, rc),
		T(test_request_that_waits_fails_like_one_without_answer, rc),
		T(test_timeout_0_does_not_wait_for_ever_for_nobody, rc),
		T(test_half_a_connection_is_told, rc),
		T(test_drained_connection_is_told, rc),
		cmocka_unit_test_setup_teardown(test_without_the_extension_nobody_is_told,
						setup_stock, t_teardown),
		T(test_address_that_is_taken_away_is_no_end, rc),
		T(test_peers_queue_pair_that_is_destroyed_is_no_end, rc),
		T(test_connections_with_others_go_on, rc),
		T(test_new_guest_in_its_place_gets_new_connections, rc),
		T(test_who_cannot_be_told_now_is_told_later, rc),
		T(test_guests_that_end_all_the_time_cost_few_looks, rc),
	};

	fg_default_ext = PVR_EXT_PEER_GONE;
	return T_MAIN(tests);
}
