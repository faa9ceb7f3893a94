// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Async events (IBTA vol. 1, 11.6.3): each when it should be raised, and only then. */
#include "ends.h"

#define WILD 0xabcdef00u

/* The next events are these, in this order, and no more. */
static void expect_events(struct fg_guest *g, const struct pvr_eqe *expected, size_t n)
{
	struct pvr_eqe eqe;

	for (size_t i = 0; i < n; i++) {
		assert_true(fg_event_poll(g, &eqe));
		assert_int_equal(eqe.type, expected[i].type);
		assert_int_equal(eqe.info, expected[i].info);
	}
	expect_no_event(g);
}

TEST(rc, test_comm_est_with_the_first_message_in_rtr)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	await_no_event(env->g[1]);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	expect_one_event(env->g[1], PVR_EVENT_COMM_EST, env->b.qp.handle);
	expect_no_event(env->g[0]);
}

/* Datagrams establish nothing. */
TEST(ud_ready, test_comm_est_not_for_datagrams)
{
	expect_ok(fg_qp_to_reset(&env->b.qp));
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, NULL, 0));
	t_recv(&env->b, 1, 0, 100);
	t_send_ud(&env->a, &env->b, 2, 0, 10);
	await_recv(&env->b.rcq, 1, 50);
	expect_no_event(env->g[1]);
}

static void to_sqd(struct fg_end *end, bool notify, bool named)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD, .en_sqd_async_notify = notify };

	expect_ok(
		fg_qp_modify(&end->qp, PVR_QPA_STATE | (named ? PVR_QPA_EN_SQD_ASYNC : 0), &attr));
}

/* For this transition: the request of an earlier one is over. */
TEST(rc_connected, test_sq_drained_if_this_transition_asked_for_it)
{
	struct pvr_qp_attr attr = { .qp_access_flags = 0 };

	to_sqd(&env->a, true, true);
	fg_run(env->host);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_ACCESS_FLAGS, &attr)); /* SQD to SQD */
	t_qp_set_state(&env->a, PVR_QPS_RTS);
	to_sqd(&env->a, true, false);
	await_no_event(env->g[0]);
	t_qp_set_state(&env->a, PVR_QPS_RTS);
	to_sqd(&env->a, false, true);
	await_no_event(env->g[0]);
}

TEST(rc_connected, test_sq_drained_not_before_the_request_in_progress_is_done)
{
	t_send(&env->a, 1, 0, 8); /* finds no receive request */
	fg_run(env->host);
	to_sqd(&env->a, true, true);
	await_no_event(env->g[0]);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
}

/* An error that a completion reports causes no event. */
TEST(rc_connected, test_no_event_where_a_completion_has_the_error)
{
	struct pvrdma_sge bad = { FG_USER_VA, 8, 0xbad };

	env->a.mr.lkey ^= 0x100;
	t_send(&env->a, 1, 0, 8);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	env->a.mr.lkey ^= 0x100;
	t_reconnect(env);
	assert_true(fg_post_recv(&env->b.qp, 2, &bad, 1));
	t_send(&env->a, 3, 0, 8);
	await_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_REM_OP_ERR);
	expect_ok(fg_qp_to_err(&env->a.qp));
	await_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}

TEST(rc_connected, test_qp_req_err_at_the_responder_of_an_invalid_request)
{
	struct pvr_qp_attr attr = { .qp_access_flags = 0 };

	expect_ok(fg_qp_modify(&env->b.qp, PVR_QPA_ACCESS_FLAGS, &attr));
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 8);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_REQ_ERR, env->b.qp.handle);
	expect_no_event(env->g[0]);
}

TEST(rc_connected, test_qp_access_err_at_the_responder_of_a_forbidden_access)
{
	struct fg_mr bad = env->b.mr;

	bad.rkey ^= 0x100;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &bad, 0, 8);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_ACCESS_ERR, env->b.qp.handle);
	expect_no_event(env->g[0]);
}

/* b receives through an SRQ of @wr requests. */
static void open_srq(struct t_env *env, struct fg_srq *srq, uint32_t wr)
{
	t_srq_use(&env->b, wr, srq);
	t_reconnect(env);
}

TEST(rc_connected, test_srq_err_once_and_its_qps_with_it)
{
	struct fg_srq srq;

	open_srq(env, &srq, 4);
	srq.ring->prod_tail = WILD;
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	/* The QP is in error, and takes no more from the SRQ. */
	expect_events(env->g[1],
		      (struct pvr_eqe[]){ { PVR_EVENT_SRQ_ERR, srq.handle },
					  { PVR_EVENT_QP_FATAL, env->b.qp.handle },
					  { PVR_EVENT_QP_LAST_WQE_REACHED, env->b.qp.handle } },
		      3);
}

TEST(rc_connected, test_srq_limit_once_below_the_limit)
{
	struct fg_srq srq;

	open_srq(env, &srq, 8);
	for (int i = 0; i < 6; i++)
		t_srq_recv(&srq, i, &env->b.mr, 0, 8);
	expect_ok(fg_srq_set_limit(&srq, 5));
	t_send(&env->a, 1, 0, 8);
	await_no_event(env->g[1]); /* 5 are left: not fewer than the limit */
	t_send(&env->a, 2, 0, 8);
	t_send(&env->a, 3, 0, 8);
	fg_run(env->host);
	expect_one_event(env->g[1], PVR_EVENT_SRQ_LIMIT_REACHED, srq.handle);
	expect_ok(fg_srq_set_limit(&srq, 3));
	t_send(&env->a, 4, 0, 8);
	fg_run(env->host);
	expect_one_event(env->g[1], PVR_EVENT_SRQ_LIMIT_REACHED, srq.handle);
}

TEST(rc_connected, test_last_wqe_once_when_a_qp_with_an_srq_is_in_error)
{
	struct fg_srq srq;

	open_srq(env, &srq, 8);
	await_no_event(env->g[1]);
	for (int i = 0; i < 2; i++) {
		expect_ok(fg_qp_to_err(&env->b.qp));
		fg_run(env->host);
		fg_ring_recv(&env->b.qp);
		fg_run(env->host);
		expect_one_event(env->g[1], PVR_EVENT_QP_LAST_WQE_REACHED, env->b.qp.handle);
		/* A new life, a new last one. */
		expect_ok(fg_qp_to_reset(&env->b.qp));
		expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	}
	/* Without an SRQ the flushed requests report it. */
	expect_ok(fg_qp_to_err(&env->a.qp));
	await_no_event(env->g[0]);
}

/* A bind by the driver itself causes no event. */
TEST(guests, test_gid_change_when_the_device_takes_one_away)
{
	struct fg_guest_config config;
	uint8_t gid[16];

	fg_guest_config_init(&config, 3);
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(env->g[0], 4, gid));
	expect_ok(fg_unbind_gid(env->g[0], 4, gid));
	expect_ok(fg_bind_gid(env->g[0], 4, gid));
	expect_no_event(env->g[0]);
	env->g[2] = fg_guest_start(env->host, 3); /* whose GID it is by right */
	fg_run(env->host);
	expect_one_event(env->g[0], PVR_EVENT_GID_CHANGE, 1);
	expect_no_event(env->g[1]);
	expect_no_event(env->g[2]);
}

TEST(guests, test_device_fatal_once_when_the_device_fails)
{
	pvr_adapter_fail(env->g[0]->adapter, "a test");
	pvr_adapter_fail(env->g[0]->adapter, "a test");
	expect_one_event(env->g[0], PVR_EVENT_DEVICE_FATAL, 0);
	expect_no_event(env->g[1]);
}

/* Traffic of all kinds that goes well. */
TEST(rc_connected, test_no_event_without_a_reason)
{
	t_ping_pong(env->host, &env->a, &env->b);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 100);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 100);
	t_send(&env->b, 3, 0, 8);
	fg_run(env->host);
	t_recv(&env->a, 4, 0, 8);
	fg_settle(env->host, FG_SEC);
	fg_end_close(&env->a);
	fg_end_close(&env->b);
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}
