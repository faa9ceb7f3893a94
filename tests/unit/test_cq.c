// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: commands, the ring, arming, overflow. */
#include "cq_steps.h"
#include "objects.h"
#include "core/adapter.h"

TEST_GUEST(guest, test_create_cq_returns_the_size_asked_for)
{
	const uint32_t max = g->dsr->caps.max_cqe;
	struct fg_buf buf;
	uint32_t page;
	uint64_t pdir = t_wide_pdir(g, 1 + max / 64, &page);

	fg_buf_init(&buf, &g->ram, 1, FG_SCATTERED);
	for (uint32_t cqe = 1; cqe <= max; cqe *= 2) {
		struct pvr_cmd_create_cq req = fg_cq_request(&g->kernel, &buf, cqe);
		struct pvr_resp_create_cq resp;

		req.nchunks = 1 + (cqe + 63) / 64;
		req.pdir_dma = pdir;
		expect_ok(fg_create_cq(g, &req, &resp));
		assert_int_equal(resp.cqe, cqe);
		assert_true(resp.cq_handle < g->dsr->caps.max_cq);
		expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, resp.cq_handle));
	}
	assert_int_equal(fg_stats(g).cqs, 0);
}

#define OTHER_PAGES 0xaaaa /* as many as the size needs */

static const struct {
	const char *label;
	uint32_t cqe, nchunks;
} bad_requests[] = {
	{ "no element", 0, OTHER_PAGES },
	{ "3 elements", 3, OTHER_PAGES },
	{ "65 elements", 65, OTHER_PAGES },
	{ "100 elements", 100, OTHER_PAGES },
	{ "one below the largest size", PVR_MAX_CQE - 1, OTHER_PAGES },
	{ "one above the largest size", PVR_MAX_CQE + 1, OTHER_PAGES },
	{ "twice the largest size", 2 * PVR_MAX_CQE, OTHER_PAGES },
	{ "INT32_MAX elements", 0x7fffffff, OTHER_PAGES },
	{ "2^31 elements", 0x80000000, OTHER_PAGES },
	{ "UINT32_MAX elements", UINT32_MAX, OTHER_PAGES },
	{ "no page", 256, 0 },
	{ "the header page only", 256, 1 },
	{ "one page too few", 256, 4 },
	{ "more pages than a directory has", 64, PVR_PDIR_MAX_PAGES + 1 },
	{ "2^20 pages", 64, 1u << 20 },
	{ "2^31 pages", 64, 1u << 31 },
	{ "UINT32_MAX pages", 64, UINT32_MAX },
};

TEST_CASES(guest, test_create_cq_rejects_bad_requests, bad_requests)
{
	struct fg_guest *g = env->g[0];
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 64, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, row->cqe);
	if (row->nchunks != OTHER_PAGES)
		req.nchunks = row->nchunks;
	assert_int_equal(fg_create_cq(g, &req, &resp), EINVAL);
	assert_int_equal(fg_stats(g).cqs, 0);
}

TEST_GUEST(guest, test_create_cq_rejects_unknown_contexts)
{
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

TEST_GUEST(guest, test_create_cq_rejects_bad_directories_and_pages)
{
	struct fg_buf buf;
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct t_bad_page bad = { .buf = &buf, .npages = 3, .pdir_dma = &req.pdir_dma };

	fg_buf_init(&buf, &g->ram, 3, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, 128);
	while (t_next_bad_page(&bad))
		expect_refused(fg_create_cq(g, &req, &resp));
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
	await_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 8);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST_GUEST(guest, test_all_cqs_can_be_used_up_and_used_again)
{
	struct t_use_up use = { .guest = g,
				.max = g->dsr->caps.max_cq,
				.destroy = PVR_CMD_DESTROY_CQ };
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, 64);
	while (t_use_up(&use, fg_create_cq(g, &req, &resp), &resp.cq_handle))
		assert_true(resp.cq_handle < use.max);
	assert_int_equal(fg_stats(g).cqs, 0);
}

TEST(rc_connected, test_ring_wraps_many_times)
{
	for (uint32_t i = 0; i < 5 * FG_END_CQE; i++)
		t_exchange(env, i, 0);
}

TEST(rc_connected, test_cqe_names_the_qp_by_handle)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	cqe = await_sent(&env->a, 2);
	assert_int_equal(cqe.qp & 0xffff, env->a.qp.handle);
	assert_int_equal(cqe.wc_flags, 0);
	cqe = expect_recv(&env->b.rcq, 1, 8);
	assert_int_equal(cqe.qp & 0xffff, env->b.qp.handle);
	assert_int_equal(cqe.wc_flags & ~(uint32_t)(PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM), 0);
}

TEST(guest, test_cqes_of_one_cq_for_both_queues)
{
	struct fg_end *end = &env->a;
	struct pvrdma_cqe cqe;
	bool sent = false, received = false;

	fg_end_open(end, env->g[0], PVR_QPT_RC);
	t_qp_replace(end, (struct fg_qp_spec){ .rcq = &end->scq });
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

static const struct t_cq_case armings[] = {
	{ "no notification unless armed", { MESSAGE, SOLICITED } },
	{ "arming notifies once", { ARM, MESSAGE, NOTIFIES, MESSAGE, MESSAGE } },
	{ "arming again notifies again",
	  { ARM, MESSAGE, NOTIFIES, READ_ALL, ARM, MESSAGE, NOTIFIES, READ_ALL, ARM, MESSAGE,
	    NOTIFIES } },
	{ "unseen completions notify at once", { MESSAGE, ARM, NOTIFIES } },
	{ "an empty CQ does not notify", { ARM_SOLICITED, ARM } },
	{ "completions that were read do not notify",
	  { SOLICITED, SOLICITED, READ_ALL, ARM, ARM_SOLICITED, MESSAGE, NOTIFIES } },
	{ "solicited ignores other completions",
	  { ARM_SOLICITED, MESSAGE, MESSAGE, SOLICITED, NOTIFIES } },
	{ "solicited sees errors", { ARM_SOLICITED, FLUSHED, NOTIFIES } },
	{ "arming for all wins over solicited",
	  { ARM, ARM_SOLICITED, MESSAGE, NOTIFIES, READ_ALL, ARM_BOTH, MESSAGE, NOTIFIES } },
	{ "a poll doorbell does not arm", { POLL_BELL, MESSAGE, POLL_BELL } },
};

TEST_CASES(rc_connected, test_arming, armings)
{
	t_run_cq_case(env, row);
}

TEST(rc_connected, test_solicited_flag_does_not_concern_the_senders_cq)
{
	fg_cq_arm_solicited(&env->a.scq);
	message(env, PVR_SEND_SOLICITED);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
}

TEST(rc_connected, test_full_cq_is_not_an_error)
{
	t_fill_cq(env, 0, FG_END_CQE);
	assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
	expect_no_event(env->g[1]);
	t_expect_recvs(env, 0, FG_END_CQE);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_overflow_raises_cq_err_and_stops_the_cq)
{
	t_fill_cq(env, 0, FG_END_CQE + 1);
	assert_true(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle) == 1);
	assert_int_equal(fg_stats(env->g[1]).cq_overflows, 1);
	t_expect_recvs(env, 0, FG_END_CQE);
	expect_no_cqe(&env->b.rcq);
	t_recv(&env->b, 1, 0, 0);
	t_send(&env->a, 1, 0, 0);
	await_no_cqe(&env->b.rcq);
}

/* The completions of a quantum become visible together, as far as the CQ has room. */
TEST(rc_connected, test_run_that_overflows_shows_what_fitted)
{
	t_fill_cq(env, 0, FG_END_CQE - 3);
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
	t_expect_recvs(env, 0, FG_END_CQE - 3);
	t_expect_recvs(env, 1000, 3);
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
			expect_sent(&env->a, i);
			expect_recv(&env->b.rcq, i, 0);
		}
	}
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}

/* Of a run, the last solicited completion may be any. */
TEST(rc_connected, test_run_with_a_solicited_completion_is_announced)
{
	for (uint32_t at = 0; at < 5; at++) {
		fg_cq_arm_solicited(&env->b.rcq);
		for (uint32_t i = 0; i < 5; i++) {
			t_recv(&env->b, i, 0, 0);
			t_post(&env->a, .opcode = PVRDMA_WR_SEND,
			       .flags = i == at ? PVR_SEND_SOLICITED : 0);
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

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	t_fill_cq(env, 0, FG_END_CQE + 1);
	t_ping_pong(env->host, &c, &d);
}

TEST(rc_connected, test_overflowed_cq_can_be_destroyed)
{
	t_fill_cq(env, 0, FG_END_CQE + 1);
	fg_end_close(&env->b);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	t_reconnect(env);
	fg_cq_drain(&env->a.scq);
	t_ping_pong(env->host, &env->a, &env->b);
}

static const struct t_case bad_indices[] = {
	{ "twice the size", 2 * FG_END_CQE }, { "above it", 2 * FG_END_CQE + 1 },
	{ "INT32_MAX", 0x7fffffff },	      { "2^31", 0x80000000 },
	{ "UINT32_MAX", UINT32_MAX },
};

TEST_CASES(rc_connected, test_bad_consumer_indices_are_safe, bad_indices)
{
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	env->b.rcq.ring->cons_head = row->value;
	message(env, 0);
	message(env, 0);
	assert_true(env->b.rcq.ring->prod_tail < 2 * FG_END_CQE);
	t_ping_pong(env->host, &c, &d);
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
