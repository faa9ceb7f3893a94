// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RESIZE_CQ: what moves, what stays, and what happens when it fails. */
#include "common.h"

#define SPARE_GPA 0x4000000000ull

TEST_INIT
{
	fg_default_ext = PVR_EXT_RESIZE;
}

static uint8_t spare[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));

/* One completion, named @wr_id, on b's receive CQ. */
static void complete(struct t_env *env, uint64_t wr_id, uint32_t flags)
{
	struct fg_wr wr = { .wr_id = wr_id,
			    .opcode = PVRDMA_WR_SEND,
			    .flags = PVR_SEND_SIGNALED | flags };

	t_recv(&env->b, wr_id, 0, 0);
	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
	expect_done(&env->a.scq, wr_id, PVRDMA_WC_SEND);
}

static void complete_many(struct t_env *env, uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		complete(env, first + i, 0);
}

static void poll_many(struct t_env *env, uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_recv(&env->b.rcq, first + i, 0);
}

static uint32_t notifications(struct t_env *env)
{
	return fg_cq_events_count(env->g[1], env->b.rcq.handle);
}

TEST(rc_connected, test_unread_completions_move_in_order)
{
	static const struct {
		uint32_t polled, unread, cqe;
	} cases[] = {
		{ 0, 0, 512 },	   { 0, 1, 1 },	     { 0, 200, 256 },	{ 10, 64, 64 },
		{ 200, 100, 128 }, { 255, 3, 1024 }, { 256, 256, 256 }, { 300, 250, 4096 },
		{ 511, 2, 2 },	   { 512, 0, 1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint32_t polled = cases[i].polled, unread = cases[i].unread;

		if (i)
			env = t_renew(t_setup_rc_connected);
		for (uint32_t k = 0; k < polled; k++) {
			complete(env, k, 0);
			expect_recv(&env->b.rcq, k, 0);
		}
		complete_many(env, polled, unread);
		expect_ok(fg_cq_resize(&env->b.rcq, cases[i].cqe));
		assert_int_equal(env->b.rcq.ring->prod_tail, unread);
		assert_int_equal(env->b.rcq.ring->cons_head, 0);
		poll_many(env, polled, unread);
		expect_no_cqe(&env->b.rcq);
		expect_no_event(env->g[1]);
		/* The new ring wraps at its own size. */
		for (uint32_t k = 0; k < 3 * cases[i].cqe && k < 1500; k++) {
			complete(env, k, 0);
			expect_recv(&env->b.rcq, k, 0);
		}
	}
}

TEST(rc_connected, test_answer_is_the_size_asked_for)
{
	struct fg_cq *cq = &env->b.rcq;
	struct pvr_cmd_resize_cq req;
	struct pvr_resp_resize_cq resp;
	struct fg_buf buf;

	fg_buf_init(&buf, &env->g[1]->ram, 9, FG_SCATTERED);
	req = fg_cq_resize_request(cq, &buf, 512);
	expect_ok(fg_resize_cq(env->g[1], &req, &resp));
	assert_int_equal(resp.cqe, 512);
}

TEST(rc_connected, test_old_ring_is_left_alone_afterwards)
{
	struct fg_cq *cq = &env->b.rcq;
	struct pvr_cmd_resize_cq req;
	struct pvr_resp_resize_cq resp;
	struct fg_buf buf;

	complete_many(env, 0, 3);
	fg_buf_init(&buf, &env->g[1]->ram, 3, FG_SCATTERED);
	req = fg_cq_resize_request(cq, &buf, 128);
	expect_ok(fg_resize_cq(env->g[1], &req, &resp));
	fg_fill(cq->buf.va, cq->buf.size, 7);
	fg_cq_arm(cq);
	complete_many(env, 3, 100);
	assert_int_equal(fg_mismatch(cq->buf.va, cq->buf.size, 7), cq->buf.size);
	assert_int_equal(((struct pvr_ring_state *)buf.va)->rx.prod_tail, 103);
}

TEST(rc_connected, test_full_ring_can_move_and_overflows_as_before)
{
	complete_many(env, 0, FG_END_CQE);
	expect_ok(fg_cq_resize(&env->b.rcq, FG_END_CQE));
	assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
	expect_no_event(env->g[1]);
	expect_ok(fg_cq_resize(&env->b.rcq, 2 * FG_END_CQE));
	complete_many(env, FG_END_CQE, FG_END_CQE);
	expect_no_event(env->g[1]);
	poll_many(env, 0, 2 * FG_END_CQE);
	complete_many(env, 0, 2 * FG_END_CQE);
	expect_no_event(env->g[1]);
	complete(env, 7, 0);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	poll_many(env, 0, 2 * FG_END_CQE);
	expect_no_cqe(&env->b.rcq);
}

/*
 * The doorbells come before the command, but nothing has run in between. What others send
 * at the same time may come before or after it.
 */
TEST(rc_connected, test_what_was_rung_for_before_is_unread)
{
	struct fg_wr wr = { .wr_id = 1, .opcode = PVRDMA_WR_SEND, .flags = PVR_SEND_SIGNALED };

	t_recv(&env->b, 1, 0, 0);
	t_recv(&env->b, 2, 0, 0);
	assert_true(fg_post_send(&env->a.qp, &wr));
	wr.wr_id = 2;
	assert_true(fg_post_send(&env->a.qp, &wr));
	assert_int_equal(fg_cq_resize(&env->a.scq, 1), EINVAL);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
	poll_many(env, 1, 2);
	expect_no_event(env->g[0]);
}

TEST(rc_connected, test_smaller_than_what_is_unread_is_refused)
{
	complete_many(env, 0, 65);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 64), EINVAL);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 1), EINVAL);
	fg_cq_arm(&env->b.rcq);
	assert_int_equal(notifications(env), 1);
	complete(env, 65, 0);
	poll_many(env, 0, 66);
	complete_many(env, 0, FG_END_CQE);
	poll_many(env, 0, FG_END_CQE);
	expect_no_event(env->g[1]);
}

TEST(rc_connected, test_bad_sizes_and_page_counts_are_refused)
{
	const uint32_t max = env->g[1]->dsr->caps.max_cqe;
	const struct {
		uint32_t cqe, nchunks;
	} bad[] = {
		{ 0, 4 },
		{ 3, 4 },
		{ 100, 4 },
		{ max + 1, 4 },
		{ 2 * max, 2 * max / 64 + 1 },
		{ 0x80000000, 4 },
		{ UINT32_MAX, 4 },
		{ 256, 4 },
		{ 64, 1 },
		{ 64, 0 },
		{ 64, PVR_PDIR_MAX_PAGES + 1 },
		{ 64, UINT32_MAX },
	};
	struct pvr_resp_resize_cq resp;
	struct fg_buf buf;

	complete_many(env, 0, 5);
	fg_buf_init(&buf, &env->g[1]->ram, 4, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_resize_cq req = fg_cq_resize_request(&env->b.rcq, &buf, bad[i].cqe);

		req.nchunks = bad[i].nchunks;
		assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EINVAL);
	}
	poll_many(env, 0, 5);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_bad_directories_and_pages_are_refused)
{
	static const uint64_t bad[] = { 0, 1, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };
	struct pvr_resp_resize_cq resp;
	struct fg_buf buf;

	complete_many(env, 0, 5);
	fg_buf_init(&buf, &env->g[1]->ram, 3, FG_SCATTERED);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_cmd_resize_cq req = fg_cq_resize_request(&env->b.rcq, &buf, 128);

		req.pdir_dma = bad[i];
		assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EFAULT);
		req.pdir_dma = buf.pdir;
		for (uint32_t page = 0; page < 3; page++) {
			const uint64_t good = fg_buf_table(&buf, 0)[page];

			fg_buf_table(&buf, 0)[page] = bad[i];
			assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EFAULT);
			fg_buf_table(&buf, 0)[page] = good;
		}
	}
	poll_many(env, 0, 5);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_unknown_handles_are_refused)
{
	struct pvr_resp_resize_cq resp;
	struct pvr_cmd_resize_cq req;
	struct fg_buf buf;
	struct fg_cq cq;

	expect_ok(fg_cq_create(&env->g[1]->kernel, 64, &cq));
	fg_buf_init(&buf, &env->g[1]->ram, 3, FG_SCATTERED);
	req = fg_cq_resize_request(&cq, &buf, 128);
	req.cq_handle = UINT32_MAX;
	assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EINVAL);
	req.cq_handle = env->g[1]->dsr->caps.max_cq;
	assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EINVAL);
	req.cq_handle = cq.handle;
	expect_ok(fg_cq_destroy(&cq));
	assert_int_equal(fg_resize_cq(env->g[1], &req, &resp), EINVAL);
}

TEST(rc_connected, test_armed_cq_stays_armed)
{
	fg_cq_arm(&env->b.rcq);
	expect_ok(fg_cq_resize(&env->b.rcq, 16));
	assert_int_equal(notifications(env), 0);
	complete(env, 1, 0);
	assert_int_equal(notifications(env), 1);
	complete(env, 2, 0);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_cq_armed_for_solicited_stays_so)
{
	fg_cq_arm_solicited(&env->b.rcq);
	complete(env, 1, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 16));
	complete(env, 2, 0);
	assert_int_equal(notifications(env), 0);
	complete(env, 3, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
	poll_many(env, 1, 3);
}

TEST(rc_connected, test_cq_that_is_not_armed_stays_so)
{
	complete(env, 1, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 16));
	complete(env, 2, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 0);
}

TEST(rc_connected, test_unseen_completions_are_announced_by_arming_after_the_move)
{
	/* Consumed ones first, or numbers from before the move would do. */
	complete_many(env, 0, 40);
	poll_many(env, 0, 40);
	complete(env, 40, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	fg_cq_arm(&env->b.rcq);
	assert_int_equal(notifications(env), 1);
	poll_many(env, 40, 1);

	complete(env, 41, PVR_SEND_SOLICITED);
	expect_ok(fg_cq_resize(&env->b.rcq, 64));
	fg_cq_arm_solicited(&env->b.rcq);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_announced_completions_are_not_announced_again)
{
	complete_many(env, 0, 40);
	poll_many(env, 0, 40);
	fg_cq_arm(&env->b.rcq);
	complete(env, 40, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	fg_cq_arm(&env->b.rcq);
	fg_cq_arm_solicited(&env->b.rcq);
	assert_int_equal(notifications(env), 0);
	complete(env, 41, 0);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_solicited_completions_that_were_read_do_not_count)
{
	complete(env, 0, PVR_SEND_SOLICITED);
	complete(env, 1, 0);
	poll_many(env, 0, 1);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	fg_cq_arm_solicited(&env->b.rcq);
	assert_int_equal(notifications(env), 0);
	complete(env, 2, PVR_SEND_SOLICITED);
	assert_int_equal(notifications(env), 1);
}

TEST(rc_connected, test_notification_that_waits_for_room_still_comes)
{
	struct pvr_ring_state *ring = (void *)env->g[1]->cq_ring.va;

	ring->rx.cons_head = PVR_CQNE_SLOTS; /* to the device the ring is full */
	fg_cq_arm(&env->b.rcq);
	complete(env, 1, 0);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	ring->rx.cons_head = 0;
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 1);
	poll_many(env, 1, 1);
}

TEST(rc_connected, test_cq_moves_in_the_middle_of_a_message)
{
	const uint32_t len = 1 << 26; /* many runs long */
	struct fg_mr from, to;

	t_wide_mr(&env->a, len / PVR_PAGE_SIZE, &from);
	t_wide_mr(&env->b, len / PVR_PAGE_SIZE, &to);
	env->a.mr = from;
	env->b.mr = to;
	t_recv(&env->b, 1, 0, len);
	t_send(&env->a, 2, 0, len);
	assert_true(pvr_engine_run(env->host->engine, 0));
	expect_ok(fg_cq_resize(&env->b.rcq, 4));
	expect_ok(fg_cq_resize(&env->a.scq, 4));
	fg_run(env->host);
	expect_recv(&env->b.rcq, 1, len);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
}

TEST(rc_connected, test_cq_in_error_is_refused)
{
	complete_many(env, 0, FG_END_CQE + 1);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 1024), EIO);
	poll_many(env, 0, FG_END_CQE);
	expect_no_cqe(&env->b.rcq);
	fg_end_close(&env->b);
}

/* b's CQ moves to a ring whose second page is not of the guest's usual RAM. */
static void move_to_spare_page(struct t_env *env, struct fg_buf *buf)
{
	struct fg_guest *g = env->g[1];
	struct pvr_cmd_resize_cq req;
	struct pvr_resp_resize_cq resp;

	assert_int_equal(pvr_adapter_map_ram(g->adapter, SPARE_GPA, sizeof(spare), spare, true), 0);
	fg_buf_init(buf, &g->ram, 2, FG_SCATTERED);
	fg_buf_table(buf, 0)[1] = SPARE_GPA;
	req = fg_cq_resize_request(&env->b.rcq, buf, 64);
	expect_ok(fg_resize_cq(g, &req, &resp));
}

TEST(rc_connected, test_cq_whose_memory_was_unplugged_is_refused)
{
	struct fg_buf buf;

	move_to_spare_page(env, &buf);
	pvr_adapter_unmap_ram(env->g[1]->adapter, SPARE_GPA, sizeof(spare));
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 128), EIO);
}

TEST(rc_connected, test_memory_of_the_old_ring_may_go)
{
	struct fg_buf buf;

	move_to_spare_page(env, &buf);
	expect_ok(fg_cq_resize(&env->b.rcq, 128));
	pvr_adapter_unmap_ram(env->g[1]->adapter, SPARE_GPA, sizeof(spare));
	expect_no_event(env->g[1]);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* The distance to a wild index is as bounded as any: refused, or what it says is unread. */
TEST(rc_connected, test_wild_consumer_indices_are_safe)
{
	static const uint32_t bad[] = { 5,   255, 256, 257,	 500,	    511,
					512, 513, 999, 1u << 31, UINT32_MAX };
	struct fg_end c, d;

	for (size_t i = 0; i < COUNT(bad); i++) {
		if (i)
			env = t_renew(t_setup_rc_connected);
		fg_end_open(&c, env->g[0], PVR_QPT_RC);
		fg_end_open(&d, env->g[1], PVR_QPT_RC);
		fg_end_connect(&c, &d, NULL);
		complete(env, 1, 0);
		env->b.rcq.ring->cons_head = bad[i];
		if (fg_cq_resize(&env->b.rcq, 512) == 0)
			assert_in_range(env->b.rcq.ring->prod_tail, 0, FG_END_CQE);
		else
			expect_cqe(&env->b.rcq, 1, PVRDMA_WC_SUCCESS);
		t_recv(&env->b, 2, 0, 0);
		t_send(&env->a, 2, 0, 0);
		fg_run(env->host);
		t_ping_pong(env->host, &c, &d);
	}
}

TEST(rc_connected, test_index_too_far_behind_is_refused)
{
	complete(env, 1, 0);
	env->b.rcq.ring->cons_head = 2; /* 511 behind, of 256 */
	assert_int_equal(fg_cq_resize(&env->b.rcq, 4096), EINVAL);
	env->b.rcq.ring->cons_head = 0;
	expect_ok(fg_cq_resize(&env->b.rcq, 4096));
	poll_many(env, 1, 1);
}

TEST(rc_connected, test_both_rings_on_the_same_pages_are_safe)
{
	struct fg_cq *cq = &env->b.rcq;
	struct pvr_resp_resize_cq resp;
	struct pvr_cmd_resize_cq req;
	struct fg_end c, d;

	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[1], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	complete_many(env, 0, 100);
	poll_many(env, 0, 50);
	req = fg_cq_resize_request(cq, &cq->buf, 64);
	expect_ok(fg_resize_cq(env->g[1], &req, &resp));
	cq->cqe = 64;
	cq->head = 0;
	cq->ring->cons_head = 0;
	poll_many(env, 50, 50);
	/* The header page as the first page of entries. */
	fg_buf_table(&cq->buf, 0)[1] = fg_buf_table(&cq->buf, 0)[0];
	expect_ok(fg_resize_cq(env->g[1], &req, &resp));
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
		fg_run(env->host);
	}
	t_ping_pong(env->host, &c, &d);
}

/* All pages of a ring count against the guest's budget, once. */
TEST(rc_connected, test_memory_is_accounted_for)
{
	const uint32_t many = 110000;
	struct fg_guest *g = env->g[1];
	struct pvr_resp_resize_cq resp;
	struct pvr_cmd_resize_cq req;
	struct fg_buf buf;
	uint32_t page;

	complete_many(env, 0, 2);
	fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
	req = fg_cq_resize_request(&env->b.rcq, &buf, 1);
	req.nchunks = many;
	req.pdir_dma = t_wide_pdir(g, 2 * many, &page);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fg_resize_cq(g, &req, &resp), EINVAL); /* 1 < 2 */
	req.cqe = 2;
	for (int i = 0; i < 10; i++)
		expect_ok(fg_resize_cq(g, &req, &resp));
	/* Both rings exist for a moment, and that is too much. */
	req.nchunks = 2 * many;
	assert_int_equal(fg_resize_cq(g, &req, &resp), ENOSPC);
	req.nchunks = many;
	expect_ok(fg_resize_cq(g, &req, &resp));
	expect_ok(fg_cq_resize(&env->b.rcq, 64));
	req.nchunks = 2 * many;
	expect_ok(fg_resize_cq(g, &req, &resp));
}

/* A long random walk, against a queue of numbers. */
TEST(rc_connected, test_random_walk_loses_and_invents_nothing)
{
	struct fg_cq *cq = &env->b.rcq;
	uint64_t rnd = 42, next = 0, oldest = 0;

	for (int step = 0; step < 4000; step++) {
		uint32_t dice, cqe, unread = (uint32_t)(next - oldest);

		rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
		dice = (uint32_t)(rnd >> 33);
		if (dice % 8 == 0) {
			cqe = 1u << (dice >> 3) % 10;
			if (unread > cqe) {
				assert_int_equal(fg_cq_resize(cq, cqe), EINVAL);
			} else {
				expect_ok(fg_cq_resize(cq, cqe));
			}
		} else if (dice % 8 < 4 && unread) {
			expect_recv(cq, oldest++, 0);
		} else if (unread < cq->cqe) {
			/* Armed before it or after it, each is announced once. */
			if (dice & 1024)
				fg_cq_arm(cq);
			assert_int_equal(notifications(env), 0);
			complete(env, next++, 0);
			if (!(dice & 1024))
				fg_cq_arm(cq);
			assert_int_equal(notifications(env), 1);
		}
		assert_int_equal(fg_cq_pending(cq), next - oldest);
	}
	expect_no_event(env->g[1]);
}
