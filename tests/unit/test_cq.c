// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: commands, the ring, arming, overflow. */
#include "common.h"

TEST(guest, test_create_cq_returns_the_size_asked_for)
{
	struct fg_guest *g = env->g[0];

	for (uint32_t cqe = 1; cqe <= 4096; cqe *= 2) {
		struct fg_buf buf;
		struct pvr_cmd_create_cq req;
		struct pvr_resp_create_cq resp;

		fg_buf_init(&buf, &g->ram, 1 + (cqe + 63) / 64, FG_SCATTERED);
		req = fg_cq_request(&g->kernel, &buf, cqe);
		expect_ok(fg_create_cq(g, &req, &resp));
		assert_int_equal(resp.cqe, cqe);
		assert_true(resp.cq_handle < g->dsr->caps.max_cq);
		expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, resp.cq_handle));
		fg_buf_exit(&buf);
	}
	assert_int_equal(fg_stats(g).cqs, 0);
}

TEST(guest, test_create_cq_of_the_largest_size)
{
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	uint32_t page, max = g->dsr->caps.max_cqe;

	fg_buf_init(&buf, &g->ram, 1, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, max);
	req.nchunks = 1 + max / 64;
	req.pdir_dma = t_wide_pdir(g, req.nchunks, &page);
	expect_ok(fg_create_cq(g, &req, &resp));
	assert_int_equal(resp.cqe, max);
}

TEST(guest, test_create_cq_rejects_bad_sizes)
{
	struct fg_guest *g = env->g[0];
	const uint32_t max = g->dsr->caps.max_cqe;
	const uint32_t bad[] = { 0,	  3,	   65,	       100,	   max - 1,
				 max + 1, 2 * max, 0x7fffffff, 0x80000000, UINT32_MAX };
	struct fg_buf buf;
	struct pvr_resp_create_cq resp;

	fg_buf_init(&buf, &g->ram, 64, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_create_cq req = fg_cq_request(&g->kernel, &buf, bad[i]);

		assert_int_equal(fg_create_cq(g, &req, &resp), EINVAL);
	}
	assert_int_equal(fg_stats(g).cqs, 0);
}

TEST(guest, test_create_cq_rejects_too_few_pages)
{
	static const uint32_t bad[] = { 0, 1, 4 };
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_resp_create_cq resp;

	fg_buf_init(&buf, &g->ram, 5, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_create_cq req = fg_cq_request(&g->kernel, &buf, 256);

		req.nchunks = bad[i];
		assert_int_equal(fg_create_cq(g, &req, &resp), EINVAL);
	}
}

TEST(guest, test_create_cq_rejects_huge_page_counts)
{
	static const uint32_t bad[] = { PVR_PDIR_MAX_PAGES + 1, 1u << 20, 1u << 31, UINT32_MAX };
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_resp_create_cq resp;

	fg_buf_init(&buf, &g->ram, 5, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_create_cq req = fg_cq_request(&g->kernel, &buf, 64);

		req.nchunks = bad[i];
		expect_refused(fg_create_cq(g, &req, &resp));
	}
}

TEST(guest, test_create_cq_rejects_unknown_contexts)
{
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;

	fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, 64);
	req.ctx_handle = 77;
	assert_int_equal(fg_create_cq(g, &req, &resp), EINVAL);
	req.ctx_handle = UINT32_MAX;
	assert_int_equal(fg_create_cq(g, &req, &resp), EINVAL);
}

TEST(guest, test_create_cq_rejects_bad_directories_and_pages)
{
	static const uint64_t bad[] = { 0, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_resp_create_cq resp;

	fg_buf_init(&buf, &g->ram, 3, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_create_cq req = fg_cq_request(&g->kernel, &buf, 128);

		req.pdir_dma = bad[i];
		expect_refused(fg_create_cq(g, &req, &resp));
		req.pdir_dma = buf.pdir;
		for (uint32_t page = 0; page < 3; page++) {
			const uint64_t good = fg_buf_table(&buf, 0)[page];

			fg_buf_table(&buf, 0)[page] = bad[i];
			expect_refused(fg_create_cq(g, &req, &resp));
			fg_buf_table(&buf, 0)[page] = good;
		}
	}
	assert_int_equal(fg_stats(g).cqs, 0);
}

TEST(guest, test_destroy_cq_rejects_unknown_handles)
{
	struct fg_cq cq;

	expect_ok(fg_cq_create(&env->g[0]->kernel, 64, &cq));
	assert_int_equal(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_CQ, cq.handle + 1), EINVAL);
	assert_int_equal(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_CQ, UINT32_MAX), EINVAL);
	expect_ok(fg_cq_destroy(&cq));
	assert_int_equal(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_CQ, cq.handle), EINVAL);
}

TEST(rc_connected, test_destroy_cq_in_use_is_rejected)
{
	assert_int_equal(fg_cq_destroy(&env->a.scq), EBUSY);
	assert_int_equal(fg_cq_destroy(&env->a.rcq), EBUSY);
	fg_end_close(&env->a);
	assert_int_equal(fg_stats(env->g[0]).cqs, 0);
}

TEST(rc_connected, test_resize_cq_is_not_supported_and_harmless)
{
	struct pvr_cmd_resize_cq req = {
		.hdr = FG_CMD_HDR(PVR_CMD_RESIZE_CQ),
		.cq_handle = env->a.scq.handle,
		.cqe = 512,
	};

	assert_int_equal(fg_cmd(env->g[0], &req, sizeof(req), NULL, 0), EOPNOTSUPP);
	/* Nor does it run what was rung for, as it does with the extension. */
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	assert_int_equal(fg_cmd(env->g[0], &req, sizeof(req), NULL, 0), EOPNOTSUPP);
	expect_no_cqe(&env->a.scq);
	fg_run(env->host);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 1, 8);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(guest, test_all_cqs_can_be_used_up_and_used_again)
{
	struct fg_guest *g = env->g[0];
	uint32_t n = 0, max = g->dsr->caps.max_cq;
	uint32_t *handle = test_calloc(max + 1, sizeof(*handle));
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, 64);
	while (n <= max && !fg_create_cq(g, &req, &resp)) {
		assert_true(resp.cq_handle < max);
		handle[n++] = resp.cq_handle;
	}
	assert_in_range(n, 1, max);
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, handle[n / 2]));
	expect_ok(fg_create_cq(g, &req, &resp));
	handle[n / 2] = resp.cq_handle;
	while (n--)
		expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, handle[n]));
	assert_int_equal(fg_stats(g).cqs, 0);
	test_free(handle);
}

TEST(rc_connected, test_ring_wraps_many_times)
{
	for (uint32_t i = 0; i < 5 * FG_END_CQE; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
		expect_recv(&env->b.rcq, i, 0);
	}
}

TEST(rc_connected, test_cqe_names_the_qp_by_handle)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	cqe = expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
	assert_int_equal(cqe.qp & 0xffff, env->a.qp.handle);
	assert_int_equal(cqe.wc_flags, 0);
	cqe = expect_recv(&env->b.rcq, 1, 8);
	assert_int_equal(cqe.qp & 0xffff, env->b.qp.handle);
	assert_int_equal(cqe.wc_flags & ~(uint32_t)(PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM), 0);
}

TEST(guest, test_cqes_of_one_cq_for_both_queues)
{
	struct fg_guest *g = env->g[0];
	struct fg_end *end = &env->a;
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvrdma_cqe cqe;
	bool sent = false, received = false;

	fg_end_open(end, g, PVR_QPT_RC);
	expect_ok(fg_qp_destroy(&end->qp));
	spec.pd = &end->pd;
	spec.scq = spec.rcq = &end->scq;
	expect_ok(fg_qp_create(&spec, &end->qp));
	fg_end_connect(end, end, NULL);
	t_recv(end, 1, 1000, 10);
	t_send(end, 2, 0, 10);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&end->scq), 2);
	while (fg_cq_poll(&end->scq, &cqe)) {
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		sent |= cqe.wr_id == 2 && cqe.opcode == PVRDMA_WC_SEND;
		received |= cqe.wr_id == 1 && cqe.opcode == PVRDMA_WC_RECV;
	}
	assert_true(sent && received);
}

/* One completion on a's send CQ and one on b's receive CQ. */
static void message(struct t_env *env, uint32_t flags)
{
	t_message(env, PVR_SEND_SIGNALED | flags);
}

TEST(rc_connected, test_no_notification_unless_armed)
{
	message(env, 0);
	message(env, PVR_SEND_SOLICITED);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	assert_int_equal(env->g[0]->irq[PVR_VEC_CQ], 0);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 0);
}

TEST(rc_connected, test_arming_notifies_once)
{
	fg_cq_arm(&env->b.rcq);
	message(env, 0);
	message(env, 0);
	message(env, 0);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 1);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 1);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
}

TEST(rc_connected, test_arming_again_notifies_again)
{
	for (uint32_t i = 1; i <= 5; i++) {
		fg_cq_arm(&env->b.rcq);
		message(env, 0);
		fg_cq_drain(&env->b.rcq);
		assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
		assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], i);
	}
}

TEST(rc_connected, test_arming_a_cq_with_unseen_completions_notifies_at_once)
{
	message(env, 0);
	fg_cq_arm(&env->b.rcq);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
	assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], 1);
}

TEST(rc_connected, test_arming_an_empty_cq_does_not_notify)
{
	fg_cq_arm(&env->b.rcq);
	fg_cq_arm_solicited(&env->a.scq);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
}

TEST(rc_connected, test_arming_for_solicited_ignores_other_completions)
{
	fg_cq_arm_solicited(&env->b.rcq);
	message(env, 0);
	message(env, 0);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	message(env, PVR_SEND_SOLICITED);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

TEST(rc_connected, test_arming_for_solicited_sees_errors)
{
	fg_cq_arm_solicited(&env->b.rcq);
	t_recv(&env->b, 1, 0, 0);
	expect_ok(fg_qp_to_err(&env->b.qp));
	fg_run(env->host);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

TEST(rc_connected, test_solicited_flag_does_not_concern_the_senders_cq)
{
	fg_cq_arm_solicited(&env->a.scq);
	message(env, PVR_SEND_SOLICITED);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
}

TEST(rc_connected, test_arming_for_all_wins_over_solicited)
{
	fg_cq_arm(&env->b.rcq);
	fg_cq_arm_solicited(&env->b.rcq);
	message(env, 0);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
	fg_cq_drain(&env->b.rcq);
	fg_cq_ring(&env->b.rcq, PVR_DB_CQ_ARM | PVR_DB_CQ_ARM_SOL | PVR_DB_CQ_POLL);
	message(env, 0);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}

TEST(rc_connected, test_poll_doorbell_does_not_arm)
{
	fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
	message(env, 0);
	fg_cq_ring(&env->b.rcq, PVR_DB_CQ_POLL);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
}

/* Sends @n messages, polling a's side only. */
static void fill_receive_cq(struct t_env *env, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
		fg_run(env->host);
		fg_cq_drain(&env->a.scq);
	}
}

TEST(rc_connected, test_full_cq_is_not_an_error)
{
	fill_receive_cq(env, FG_END_CQE);
	assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
	expect_no_event(env->g[1]);
	for (uint32_t i = 0; i < FG_END_CQE; i++)
		expect_recv(&env->b.rcq, i, 0);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_overflow_raises_cq_err_and_stops_the_cq)
{
	fill_receive_cq(env, FG_END_CQE + 1);
	assert_true(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle) == 1);
	assert_int_equal(fg_stats(env->g[1]).cq_overflows, 1);
	for (uint32_t i = 0; i < FG_END_CQE; i++)
		expect_recv(&env->b.rcq, i, 0);
	expect_no_cqe(&env->b.rcq);
	t_recv(&env->b, 1, 0, 0);
	t_send(&env->a, 1, 0, 0);
	fg_run(env->host);
	expect_no_cqe(&env->b.rcq);
	fg_events_count(env->g[1], 0, 0);
}

/* The completions of a quantum become visible together, as far as the CQ has room. */
TEST(rc_connected, test_run_that_overflows_shows_what_fitted)
{
	fill_receive_cq(env, FG_END_CQE - 3);
	fg_cq_arm(&env->b.rcq);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->b, 1000 + i, 0, 0);
		t_send(&env->a, i, 0, 0);
	}
	fg_cq_arm(&env->b.rcq);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	for (uint32_t i = 0; i < FG_END_CQE - 3; i++)
		expect_recv(&env->b.rcq, i, 0);
	for (uint32_t i = 0; i < 3; i++)
		expect_recv(&env->b.rcq, 1000 + i, 0);
}

TEST(rc_connected, test_run_that_fits_exactly_does_not_overflow)
{
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t done = 0; done < FG_END_CQE; done += 64) {
			for (uint32_t i = 0; i < 64; i++) {
				t_recv(&env->b, done + i, 0, 0);
				t_send(&env->a, done + i, 0, 0);
			}
			fg_run(env->host);
		}
		assert_int_equal(fg_cq_pending(&env->a.scq), FG_END_CQE);
		assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
		assert_int_equal(env->a.qp.ring->tx.cons_head, env->a.qp.ring->tx.prod_tail);
		assert_int_equal(env->b.qp.ring->rx.cons_head, env->b.qp.ring->rx.prod_tail);
		for (uint32_t i = 0; i < FG_END_CQE; i++) {
			expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
			expect_recv(&env->b.rcq, i, 0);
		}
	}
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}

/* Of a run, the last solicited completion may be any. */
TEST(rc_connected, test_run_with_a_solicited_completion_is_announced)
{
	struct fg_wr wr = { .opcode = PVRDMA_WR_SEND };

	for (uint32_t at = 0; at < 5; at++) {
		fg_cq_arm_solicited(&env->b.rcq);
		for (uint32_t i = 0; i < 5; i++) {
			wr.flags = i == at ? PVR_SEND_SOLICITED : 0;
			t_recv(&env->b, i, 0, 0);
			assert_true(fg_post_send(&env->a.qp, &wr));
		}
		fg_run(env->host);
		assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
		fg_cq_arm_solicited(&env->b.rcq);
		for (uint32_t i = 0; i < 5; i++)
			message(env, 0);
		assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
		assert_int_equal(fg_cq_drain(&env->b.rcq), 10);
		fg_cq_drain(&env->a.scq);
	}
}

TEST(rc_connected, test_overflow_does_not_hurt_other_cqs)
{
	struct fg_end c, d;

	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[1], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	fill_receive_cq(env, FG_END_CQE + 1);
	t_ping_pong(env->host, &c, &d);
}

TEST(rc_connected, test_overflowed_cq_can_be_destroyed)
{
	fill_receive_cq(env, FG_END_CQE + 1);
	fg_end_close(&env->b);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->b, NULL);
	fg_cq_drain(&env->a.scq);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_bad_consumer_indices_are_safe)
{
	static const uint32_t bad[] = { 2 * FG_END_CQE, 2 * FG_END_CQE + 1, 0x7fffffff, 0x80000000,
					UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fg_end c, d;

		if (i)
			env = t_renew(t_setup_rc_connected);
		fg_end_open(&c, env->g[0], PVR_QPT_RC);
		fg_end_open(&d, env->g[1], PVR_QPT_RC);
		fg_end_connect(&c, &d, NULL);
		env->b.rcq.ring->cons_head = bad[i];
		message(env, 0);
		message(env, 0);
		assert_true(env->b.rcq.ring->prod_tail < 2 * FG_END_CQE);
		t_ping_pong(env->host, &c, &d);
	}
}

TEST(rc_connected, test_consumer_index_ahead_of_the_producer_is_safe)
{
	message(env, 0);
	env->b.rcq.ring->cons_head = 5;
	/* The distance is that of an overrun: the CQ fails, and with it b's QP. */
	for (int i = 0; i < 20; i++)
		message(env, 0);
	assert_int_equal(env->b.rcq.ring->prod_tail, 1);
	expect_state(&env->b, PVR_QPS_ERR);
	fg_settle(env->host, 10 * FG_SEC);
	expect_state(&env->a, PVR_QPS_ERR);
}

TEST(rc_connected, test_device_keeps_its_own_producer_index)
{
	message(env, 0);
	expect_recv(&env->b.rcq, 7, 0);
	env->b.rcq.ring->prod_tail = 0xdeadbeef;
	message(env, 0);
	assert_int_equal(env->b.rcq.ring->prod_tail, 2);
	expect_recv(&env->b.rcq, 7, 0);
}

TEST(rc_connected, test_device_never_reads_its_cqes_back)
{
	message(env, 0);
	memset(env->b.rcq.cqes, 0xff, FG_END_CQE * sizeof(struct pvrdma_cqe));
	message(env, 0);
	assert_int_equal(env->b.rcq.cqes[0].status, 0xffffffff);
	assert_int_equal(env->b.rcq.cqes[1].status, PVRDMA_WC_SUCCESS);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(rc_connected, test_tx_half_of_the_ring_state_is_not_written)
{
	struct pvr_ring_state *ring = (void *)env->b.rcq.buf.va;
	size_t rest = PVR_PAGE_SIZE - sizeof(*ring);

	ring->tx.prod_tail = 0x1234;
	ring->tx.cons_head = 0x5678;
	fg_fill(ring + 1, rest, 3);
	message(env, 0);
	assert_int_equal(ring->tx.prod_tail, 0x1234);
	assert_int_equal(ring->tx.cons_head, 0x5678);
	assert_int_equal(ring->rx.cons_head, 0);
	assert_int_equal(fg_mismatch(ring + 1, rest, 3), rest);
}

TEST(rc_connected, test_arming_after_all_completions_were_read_does_not_notify)
{
	message(env, PVR_SEND_SOLICITED);
	message(env, PVR_SEND_SOLICITED);
	fg_cq_drain(&env->b.rcq);
	fg_cq_arm(&env->b.rcq);
	fg_cq_arm_solicited(&env->b.rcq);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	message(env, 0);
	assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), 1);
}
