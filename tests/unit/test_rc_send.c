// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RC SEND and SEND_WITH_IMM. */
#include "transfer.h"

TEST_CASES(rc_big, test_send_of_all_shapes, t_transfer_shapes)
{
	row->run(env, PVRDMA_WR_SEND);
}

TEST(rc_connected, test_send_with_imm_carries_data_and_imm)
{
	struct pvrdma_cqe cqe;

	fg_fill(env->a.mr.va, 200, 4);
	t_recv(&env->b, 6, 0, 100);
	t_post(&env->a, .wr_id = 5, .opcode = PVRDMA_WR_SEND_WITH_IMM, T_SGE(&env->a.mr, 100, 50),
	       .imm = 0xdeadbeef);
	await_sent(&env->a, 5);
	cqe = expect_recv(&env->b.rcq, 6, 50);
	assert_int_equal(cqe.imm_data, 0xdeadbeef);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_WITH_IMM, PVRDMA_WC_WITH_IMM);
	assert_memory_equal(env->b.mr.va, env->a.mr.va + 100, 50);
}

TEST(rc_connected, test_send_without_imm_sets_no_flag)
{
	t_recv(&env->b, 1, 0, 10);
	t_send(&env->a, 2, 0, 10);
	fg_run(env->host);
	assert_int_equal(expect_recv(&env->b.rcq, 1, 10).wc_flags & PVRDMA_WC_WITH_IMM, 0);
}

TEST(rc_connected, test_receive_buffer_may_be_larger_than_the_message)
{
	fg_fill(env->a.mr.va, 100, 1);
	memset(env->b.mr.va, 0xcc, 1000);
	t_recv(&env->b, 1, 0, 1000);
	t_send(&env->a, 2, 0, 100);
	await_recv(&env->b.rcq, 1, 100);
	assert_int_equal(fg_mismatch(env->b.mr.va, 100, 1), 100);
	for (int i = 100; i < 1000; i++)
		assert_int_equal(env->b.mr.va[i], 0xcc);
}

/* Completions 0 to @num - 1 of messages of @len bytes. */
static void expect_messages(struct fg_end *from, struct fg_end *to, uint32_t num, uint32_t len)
{
	for (uint32_t i = 0; i < num; i++) {
		expect_sent(from, i);
		expect_recv(&to->rcq, i, len);
	}
}

TEST(rc_connected, test_messages_arrive_in_order)
{
	for (uint32_t i = 0; i < 60; i++)
		t_recv(&env->b, i, i * 64, 64);
	for (uint32_t i = 0; i < 60; i++) {
		memset(env->a.mr.va + i * 64, (int)i, 64);
		t_send(&env->a, 100 + i, i * 64, i + 1);
	}
	fg_run(env->host);
	for (uint32_t i = 0; i < 60; i++) {
		expect_sent(&env->a, 100 + i);
		expect_recv(&env->b.rcq, i, i + 1);
		assert_int_equal(env->b.mr.va[i * 64], i);
	}
}

TEST(rc_connected, test_one_doorbell_for_many_requests)
{
	struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 10);

	for (uint32_t i = 0; i < 30; i++) {
		struct pvrdma_sge rsge = fg_sge(&env->b.mr, i * 64, 64);
		struct fg_wr wr = { .wr_id = i,
				    .opcode = PVRDMA_WR_SEND,
				    .flags = PVR_SEND_SIGNALED,
				    .sge = &sge,
				    .num_sge = 1 };

		assert_true(fg_put_recv(&env->b.qp, i, &rsge, 1));
		assert_true(fg_put_send(&env->a.qp, &wr));
	}
	fg_ring_recv(&env->b.qp);
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
	expect_messages(&env->a, &env->b, 30, 10);
}

/* The stock driver rings no doorbell after a partial failure; the next one covers it. */
TEST(rc_connected, test_receives_posted_without_a_doorbell_are_found)
{
	struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, 64);

	assert_true(fg_put_recv(&env->b.qp, 1, &sge, 1));
	t_send(&env->a, 2, 0, 10);
	await_recv(&env->b.rcq, 1, 10);
}

TEST(rc, test_receives_posted_in_init_are_used)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	t_recv(&env->b, 1, 0, 64);
	fg_run(env->host);
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	t_send(&env->a, 2, 0, 10);
	await_recv(&env->b.rcq, 1, 10);
	expect_sent(&env->a, 2);
}

TEST(rc_connected, test_unsignaled_sends_complete_silently)
{
	for (uint32_t i = 0; i < 200; i++) {
		t_message(env, 0);
		expect_recv(&env->b.rcq, 7, 0);
	}
	expect_no_cqe(&env->a.scq);
}

TEST(guests, test_sq_sig_all_signals_every_send)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sig_all = true };

	fg_end_open_spec(&env->a, &env->g[0]->kernel, &spec, 2);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->b, NULL);
	t_message(env, 0);
	expect_sent(&env->a, 7);
}

TEST(rc_connected, test_consumer_index_advances_so_that_the_ring_can_be_reused)
{
	for (uint32_t i = 0; i < 64 * 5; i++)
		t_exchange(env, i, 16);
	assert_int_equal(fg_sq_space(&env->a.qp), 64);
	assert_int_equal(fg_rq_space(&env->b.qp), 64);
}

TEST(rc_connected, test_full_queues_are_processed)
{
	for (uint32_t i = 0; i < 64; i++) {
		t_recv(&env->b, i, 0, 16);
		t_send(&env->a, i, 0, 16);
	}
	assert_int_equal(fg_sq_space(&env->a.qp) + fg_rq_space(&env->b.qp), 0);
	fg_run(env->host);
	expect_messages(&env->a, &env->b, 64, 16);
}

TEST(guests, test_queues_of_one_element_work)
{
	const struct fg_qp_spec spec = {
		.type = PVR_QPT_RC, .sq_wr = 1, .rq_wr = 1, .sq_sge = 1, .rq_sge = 1
	};

	t_open_connected(env, &spec, 2);
	for (int i = 0; i < 10; i++)
		t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_both_directions_at_once)
{
	for (uint32_t i = 0; i < 50; i++) {
		t_recv(&env->a, i, 4096, 100);
		t_recv(&env->b, i, 4096, 100);
	}
	for (uint32_t i = 0; i < 50; i++) {
		t_send(&env->a, i, 0, 100);
		t_send(&env->b, i, 0, 100);
	}
	fg_run(env->host);
	expect_messages(&env->a, &env->b, 50, 100);
	expect_messages(&env->b, &env->a, 50, 100);
}

TEST(rc_loopback, test_loopback_within_one_adapter)
{
	for (int i = 0; i < 10; i++)
		t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_self, test_qp_connected_to_itself)
{
	for (int i = 0; i < 10; i++)
		t_ping_pong(env->host, &env->a, &env->a);
}

TEST(rc_self, test_overlapping_source_and_target)
{
	uint8_t want[9000];

	fg_fill(env->a.mr.va, 20000, 1);
	memcpy(want, env->a.mr.va, sizeof(want));
	t_recv(&env->a, 1, 100, sizeof(want));
	t_send(&env->a, 2, 0, sizeof(want));
	fg_run(env->host);
	/* What arrives is undefined where they overlap, but nothing else may change. */
	expect_recv(&env->a.rcq, 1, sizeof(want));
	assert_memory_equal(env->a.mr.va, want, 100);
	t_recv(&env->a, 3, 0, sizeof(want));
	t_send(&env->a, 4, 0, sizeof(want));
	await_recv(&env->a.rcq, 3, sizeof(want));
}

TEST(guests, test_user_contexts_send_through_their_own_pages)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_ctx a, b;

	t_open_user(&env->a, &a, env->g[0], &spec);
	t_open_user(&env->b, &b, env->g[1], &spec);
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST_GUEST(guests, test_driver_of_version_19_can_talk)
{
	struct fg_end *end = &env->a;
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvr_resp_create_qp_v1 v1;
	struct pvr_cmd_create_qp req;

	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	g->config.driver_version = 19;
	expect_ok(fg_guest_boot(g));
	fg_gid_from_mac(end->gid, g->config.mac);
	expect_ok(fg_bind_gid(g, 0, end->gid));
	fg_end_open(end, g, PVR_QPT_RC);
	/* The library reads the long response; take the number from the short one. */
	spec.pd = &end->pd;
	spec.scq = &end->scq;
	spec.rcq = &end->rcq;
	req = fg_qp_request(&spec);
	req.pdir_dma = end->qp.buf.pdir;
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_QP, end->qp.qpn));
	expect_ok(fg_cmd(g, &req, sizeof(req), &v1, sizeof(v1)));
	end->qp.handle = end->qp.qpn = v1.qpn;
	fg_end_connect(end, &env->b, NULL);
	t_ping_pong(env->host, end, &env->b);
	assert_int_equal(fg_qp_state(&end->qp), PVR_QPS_RTS);
}

/* A message from @from to b fails, and b receives nothing. */
static void expect_not_answered(struct t_env *env, struct fg_end *from)
{
	t_recv(&env->b, 1, 0, 10);
	t_send(from, 2, 0, 10);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&from->scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
}

TEST(guest, test_adapters_of_different_fabrics_never_meet)
{
	t_open_pair(&env->a, env->g[0], &env->b, t_guest_in_fabric(env, 2, "tenant2"));
	expect_not_answered(env, &env->a);
}

/* A QP that is connected to another QP does not accept messages of @c. */
static void expect_no_peer(struct t_env *env, struct fg_end *c)
{
	expect_ok(fg_qp_connect(&c->qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_not_answered(env, c);
	t_send(&env->a, 3, 0, 10);
	await_recv(&env->b.rcq, 1, 10);
}

TEST(rc_connected, test_responder_takes_messages_from_its_peer_only)
{
	struct fg_end c;

	t_not_on_segment(env, "packets of RC and UC do not have the number of their sender");
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	expect_no_peer(env, &c);
}

TEST(rc_big, test_one_queue_does_not_starve_another)
{
	struct fg_end c, d;
	bool done = false;

	t_not_on_segment(env, "the window ends a run");
	t_one_host_only(env, "it runs one engine by hand");
	t_open_pair(&c, env->g[0], &d, env->g[1]);
	for (uint32_t i = 0; i < 60; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 1 << 20);
	t_recv(&d, 1, 0, 8);
	t_send(&c, 2, 0, 8);
	for (int i = 0; i < 100000 && !done; i++) {
		pvr_engine_run(env->host->engine, 0);
		done = fg_cq_pending(&c.scq);
	}
	assert_true(done);
	assert_true(fg_cq_pending(&env->a.scq) < 30);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&env->a.scq), 60);
}

TEST(rc_big, test_one_run_does_a_bounded_amount_of_work)
{
	t_not_on_segment(env, "the window ends a run");
	t_one_host_only(env, "it runs one engine by hand");
	for (uint32_t i = 0; i < 60; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 1 << 20);
	assert_true(pvr_engine_run(env->host->engine, 0));
	assert_true(fg_cq_pending(&env->a.scq) < 60);
	fg_run(env->host);
	assert_int_equal(fg_cq_drain(&env->a.scq), 60);
}

/* QP numbers of different guests are often the same: the GID identifies the peer. */
TEST(rc_connected, test_another_guests_qp_of_the_same_number_is_not_the_peer)
{
	struct fg_end c;

	env->g[2] = fg_guest_start(env->host, 3);
	fg_end_open(&c, env->g[2], PVR_QPT_RC);
	assert_int_equal(c.qp.qpn, env->a.qp.qpn);
	expect_no_peer(env, &c);
}

/* Of what a connection takes nothing may stay behind, or there would soon be none left. */
TEST(guests, test_thousands_of_connections_in_a_row)
{
	for (unsigned int i = 0; i < 2000; i++) {
		t_open_pair(&env->a, env->g[0], &env->b, env->g[1]);
		t_exchange(env, i, 8);
		fg_end_close(&env->a);
		fg_end_close(&env->b);
	}
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}
