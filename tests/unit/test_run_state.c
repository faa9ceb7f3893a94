// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Stopped adapters: no DMA, their peers wait, and nothing is lost at the start. */
#include "ends.h"

/* Far more than the retries of fg_conn_default take. */
#define LONG (30 * FG_SEC)

static void stop(struct fg_guest *guest)
{
	assert_int_equal(pvr_adapter_stop(guest->adapter), 0);
	assert_int_equal(pvr_adapter_run_state(guest->adapter), PVR_RUN_STOPPED);
}

/* A peer at another host learns of it when it sends again. */
static void start(struct t_env *env, unsigned int i)
{
	struct fg_guest *guest = env->g[i];

	assert_int_equal(pvr_adapter_start(guest->adapter), 0);
	assert_int_equal(pvr_adapter_run_state(guest->adapter), PVR_RUN_RUNNING);
	fg_settle(guest->host, env->wire ? 100 * FG_MS : 0);
}

TEST(rc_connected, test_stopped_adapter_sends_nothing_until_its_start)
{
	t_recv(&env->b, 2, 0, 8);
	stop(env->g[0]);
	t_send(&env->a, 1, 0, 8);
	fg_advance(env->host, LONG);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
	start(env, 0);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

/* One retry only: it is not used up. */
TEST(rc, test_peer_of_a_stopped_adapter_waits_and_counts_no_retry)
{
	const struct fg_conn conn = t_conn_ack(1, 0);

	fg_end_connect(&env->a, &env->b, &conn);
	t_recv(&env->b, 2, 0, 8);
	stop(env->g[1]);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, LONG);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
	start(env, 1);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

TEST(rc, test_peer_of_an_adapter_that_stays_stopped_fails_after_the_hold_time)
{
	const struct fg_conn conn = t_conn_ack(1, 0);

	fg_end_connect(&env->a, &env->b, &conn);
	stop(env->g[1]);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, PVR_HOLD_NS - FG_SEC);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, 2 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* UC has no retries: without the wait the message is lost, as it is on the way to another host. */
TEST(uc_connected, test_uc_peer_of_a_stopped_adapter_waits)
{
	t_one_host_only(env, "for other hosts see test_pipe_held");
	t_recv(&env->b, 2, 0, 8);
	stop(env->g[1]);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, LONG);
	expect_no_cqe(&env->a.scq);
	start(env, 1);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST(rc_connected, test_arm_while_stopped_is_remembered)
{
	t_recv(&env->b, 2, 0, 8);
	stop(env->g[1]);
	fg_cq_arm(&env->b.rcq);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	start(env, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 1);
}

/* The completion was there before the arm. */
TEST(rc_connected, test_arm_while_stopped_for_an_earlier_completion_notifies_at_the_start)
{
	t_recv(&env->b, 2, 0, 8);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	stop(env->g[1]);
	fg_cq_arm(&env->b.rcq);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	start(env, 1);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 1);
}

/* The requester waits for a receive; its timer is the longest. */
TEST(rc, test_receive_posted_while_stopped_resumes_the_requester)
{
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST);

	fg_end_connect(&env->a, &env->b, &conn);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, FG_MS);
	stop(env->g[1]);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_no_cqe(&env->b.rcq);
	start(env, 1);
	/* No frame reports the receive. */
	fg_settle(env->host, env->wire ? FG_SEC : 0);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST(rc, test_receive_posted_while_the_requester_is_stopped_resumes_it)
{
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST);

	fg_end_connect(&env->a, &env->b, &conn);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, FG_MS);
	stop(env->g[0]);
	t_recv(&env->b, 2, 0, 8);
	fg_run(env->host);
	expect_no_cqe(&env->b.rcq);
	start(env, 0);
	/* No frame reports the receive. */
	fg_settle(env->host, env->wire ? FG_SEC : 0);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

/* It tries again at its start, with the same number of retries. */
TEST(rc, test_start_of_a_requester_that_waits_for_a_receive_costs_no_retry)
{
	const struct fg_conn conn = t_conn_rnr(2, T_RNR_LONGEST);

	fg_end_connect(&env->a, &env->b, &conn);
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, FG_MS);
	for (int i = 0; i < 10; i++) {
		stop(env->g[0]);
		fg_run(env->host);
		start(env, 0);
		fg_run(env->host);
	}
	expect_no_cqe(&env->a.scq);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, env->wire ? FG_SEC : 0);
	expect_sent(&env->a, 1);
}

/* One ACK timeout of 1.07 s, without retries, to a queue pair that does not respond. */
TEST(rc, test_timers_stand_still_while_stopped)
{
	const struct fg_conn conn = t_conn_ack(18, 0);

	fg_end_connect(&env->a, &env->b, &conn);
	expect_ok(fg_qp_to_reset(&env->b.qp));
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, 500 * FG_MS);
	stop(env->g[0]);
	fg_advance(env->host, LONG);
	start(env, 0);
	fg_settle(env->host, 400 * FG_MS);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, 300 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

TEST(rc_connected, test_stopped_adapter_refuses_commands)
{
	struct pvr_qp_attr attr;

	stop(env->g[0]);
	assert_int_equal(fg_qp_query(&env->a.qp, &attr), EIO);
	start(env, 0);
	expect_ok(fg_qp_query(&env->a.qp, &attr));
}

TEST(rc_connected, test_reset_ends_the_stop)
{
	stop(env->g[1]);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	assert_int_equal(pvr_adapter_run_state(env->g[1]->adapter), PVR_RUN_RUNNING);
	expect_ok(fg_guest_boot(env->g[1]));
}

/* Of a registration with a page directory of three steps. */
TEST(guest, test_stop_waits_for_the_end_of_a_long_command)
{
	struct fg_guest *g = env->g[0];
	struct pvr_cmd_create_mr *req = g->cmd_slot;
	const uint32_t npages = 3 * PVR_PDIR_ENTRIES * PVR_PDIR_ENTRIES / 8;
	struct fg_pd pd;
	uint32_t page;

	expect_ok(fg_pd_create(&g->kernel, &pd));
	*req = (struct pvr_cmd_create_mr){
		.hdr.cmd = PVR_CMD_CREATE_MR,
		.pd_handle = pd.handle,
		.length = (uint64_t)npages * PVR_PAGE_SIZE,
		.nchunks = npages,
		.pdir_dma = t_wide_pdir(g, npages, &page),
	};
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	assert_true(pvr_adapter_busy(g->adapter));
	assert_int_equal(pvr_adapter_stop(g->adapter), -EINPROGRESS);
	fg_run(env->host);
	stop(g);
}

TEST(rc_connected, test_stop_and_start_are_idempotent)
{
	stop(env->g[0]);
	stop(env->g[0]);
	start(env, 0);
	start(env, 0);
	t_exchange(env, 1, 8);
}

TEST_PLAIN(test_run_states_have_names)
{
	assert_string_equal(pvr_run_state_name(PVR_RUN_STOPPED), "stopped");
	assert_string_equal(pvr_run_state_name((enum pvr_run_state)99), "?");
}
