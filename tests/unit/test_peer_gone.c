// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_PEER_GONE: events and completions of an RC QP if its peer's guest is gone. */
#include "deaths.h"
#include "ends.h"

/* Far less than the retries of fg_conn_default take. */
#define SOON (20 * FG_MS)

TEST_EXT(PVR_EXT_PEER_GONE)

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

TEST(rc_idle, test_receives_are_flushed_when_the_peer_is_gone)
{
	t_recv(&env->a, 1, 0, 8);
	t_recv(&env->a, 2, 0, 8);
	end_peer(env);
	expect_cqe(&env->a.rcq, 1, PVRDMA_WC_GENERAL_ERR);
	expect_cqe(&env->a.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_gone(env);
}

/* The send queue was empty when the peer's guest ended. */
TEST(rc_idle, test_request_that_is_posted_later_fails_like_one_without_answer)
{
	end_peer(env);
	expect_gone(env);
	t_send(&env->a, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	t_recv(&env->a, 3, 0, 8);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_cqe(&env->a.rcq, 3, PVRDMA_WC_WR_FLUSH_ERR);
}

static const struct t_death ends[] = {
	{ "reset by its driver", t_reset_peer },
	{ "removal of its adapter", t_unplug_peer },
};

TEST_CASES(rc_idle, test_end_of_the_peer_is_an_event, ends)
{
	row->kill(env);
	fg_settle(env->host, SOON);
	expect_gone(env);
}

/* As after the last retry, which is where a stock device would come to. */
TEST(rc_idle, test_request_that_waits_fails_like_one_without_answer)
{
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

TEST(rc, test_timeout_0_ends_when_the_peer_is_gone)
{
	const struct fg_conn conn = t_conn_ack(0, 7);

	fg_end_connect(&env->a, &env->b, &conn);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	end_peer(env);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(rc, test_half_a_connection_fails)
{
	t_one_host_only(env, "another host has no record of half a connection");
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	end_peer(env);
	expect_gone(env);
}

TEST(rc_idle, test_drained_connection_fails)
{
	t_qp_set_state(&env->a, PVR_QPS_SQD);
	t_send(&env->a, 1, 0, 8);
	end_peer(env);
	expect_gone(env);
}

T_SETUP_EXT(stock, 0, rc_idle)

TEST(stock, test_without_the_extension_no_qp_gets_an_event)
{
	t_recv(&env->a, 1, 0, 8);
	end_peer(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_no_cqe(&env->a.rcq);
	expect_no_event(env->g[0]);
	expect_state(&env->a, PVR_QPS_RTS);
}

static void take_gid_away(struct t_env *env)
{
	expect_ok(fg_unbind_gid(env->g[1], 0, env->b.gid));
}

static void destroy_qp(struct t_env *env)
{
	expect_ok(fg_qp_destroy(&env->b.qp));
}

static const struct t_death no_ends[] = {
	{ "address that is taken away and may move to another guest", take_gid_away },
	{ "queue pair that is destroyed", destroy_qp },
};

TEST_CASES(rc_idle, test_guest_that_stays_is_no_end, no_ends)
{
	row->kill(env);
	fg_settle(env->host, SOON);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_no_event(env->g[0]);
}

TEST(rc_idle, test_connections_with_others_go_on)
{
	struct fg_end c, d;

	env->g[2] = fg_guest_start(env->host, 3);
	t_open_pair(&c, env->g[0], &d, env->g[2]);
	end_peer(env);
	expect_gone(env);
	expect_state(&c, PVR_QPS_RTS);
	t_ping_pong(env->host, &c, &d);
}

/* A new connection is with the present owner of the address. */
TEST(rc_idle, test_new_guest_in_its_place_gets_new_connections)
{
	end_peer(env);
	expect_gone(env);
	t_unplug_peer(env);
	env->g[1] = fg_guest_start(env->host, 2);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->b, NULL);
	fg_settle(env->host, SOON);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_idle, test_notice_without_bus_master_is_delivered_later)
{
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	end_peer(env);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_settle(env->host, SOON);
	expect_gone(env);
}

/* One check serves all of them, and later ends do not delay it. */
TEST(rc_idle, test_many_ending_guests_cost_few_checks)
{
	uint64_t deadline;
	struct fg_end c;

	t_one_host_only(env, "another host sends QP_GONE without a check");
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
