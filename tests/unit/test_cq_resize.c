// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RESIZE_CQ: what moves, what stays, and what happens when it fails. */
#include "cq_steps.h"
#include "objects.h"
#include "core/adapter.h"

TEST_EXT(PVR_EXT_RESIZE)

static void complete(struct t_env *env, uint64_t wr_id)
{
	t_fill_cq(env, wr_id, 1);
}

static uint32_t notifications(struct t_env *env)
{
	return fg_cq_events_count(env->g[1], env->b.rcq.handle);
}

static const struct {
	const char *label;
	uint32_t polled, unread, cqe;
} moves[] = {
	{ "none", 0, 0, 512 },
	{ "one, to the smallest ring", 0, 1, 1 },
	{ "many, to a ring of the same size", 0, 200, 256 },
	{ "as many as the new ring holds", 10, 64, 64 },
	{ "across the end of the old ring", 200, 100, 128 },
	{ "from the last element", 255, 3, 1024 },
	{ "a full ring in its second round", 256, 256, 256 },
	{ "to the largest ring", 300, 250, 4096 },
	{ "from the last index", 511, 2, 2 },
	{ "none, after two rounds", 512, 0, 1 },
};

TEST_CASES(rc_connected, test_unread_completions_move_in_order, moves)
{
	for (uint32_t k = 0; k < row->polled; k++)
		t_exchange(env, k, 0);
	t_fill_cq(env, row->polled, row->unread);
	expect_ok(fg_cq_resize(&env->b.rcq, row->cqe));
	assert_int_equal(env->b.rcq.ring->prod_tail, row->unread);
	assert_int_equal(env->b.rcq.ring->cons_head, 0);
	t_expect_recvs(env, row->polled, row->unread);
	expect_no_cqe(&env->b.rcq);
	expect_no_event(env->g[1]);
	/* The new ring wraps at its own size. */
	for (uint32_t k = 0; k < 3 * row->cqe && k < 1500; k++)
		t_exchange(env, k, 0);
}

/* A ring of @pages pages of g[1] for @cqe elements, and the command that moves b's CQ there. */
static struct pvr_cmd_resize_cq ring_for(struct t_env *env, struct fg_buf *buf, uint32_t pages,
					 uint32_t cqe)
{
	fg_buf_init(buf, &env->g[1]->ram, pages, FG_SCATTERED);
	return fg_cq_resize_request(&env->b.rcq, buf, cqe);
}

static uint32_t resize(struct t_env *env, const struct pvr_cmd_resize_cq *req)
{
	struct pvr_resp_resize_cq resp;
	uint32_t err = fg_resize_cq(env->g[1], req, &resp);

	if (!err)
		assert_int_equal(resp.cqe, req->cqe);
	return err;
}

TEST(rc_connected, test_completions_between_the_steps_move_too)
{
	enum { MANY = 8000, CQES = 16384 };
	const struct pvrdma_cqe *cqe;
	struct pvr_cmd_resize_cq req;
	struct fg_buf buf;

	t_one_host_only(env, "it runs one engine by hand");
	expect_ok(fg_cq_resize(&env->b.rcq, CQES));
	t_fill_cq(env, 0, MANY);
	t_recv(&env->b, MANY, 0, 0);
	req = ring_for(env, &buf, 1 + CQES / 64, CQES);
	fg_cmd_begin(env->g[1], &req, sizeof(req));
	assert_true(pvr_adapter_busy(env->g[1]->adapter));
	t_send(&env->a, MANY, 0, 0);
	await_sent(&env->a, MANY);
	expect_ok(fg_cmd_end(env->g[1], &req, NULL, 0));
	cqe = (const struct pvrdma_cqe *)(buf.va + PVR_PAGE_SIZE);
	for (uint32_t i = 0; i <= MANY; i++)
		assert_int_equal(cqe[i].wr_id, i);
	assert_int_equal(((struct pvr_ring_state *)buf.va)->rx.prod_tail, MANY + 1);
}

TEST(rc_connected, test_reset_between_the_steps)
{
	enum { MANY = 8000, CQES = 16384 };
	struct pvr_cmd_resize_cq req;
	struct fg_buf buf;

	t_one_host_only(env, "it runs one engine by hand");
	expect_ok(fg_cq_resize(&env->b.rcq, CQES));
	t_fill_cq(env, 0, MANY);
	req = ring_for(env, &buf, 1 + CQES / 64, CQES);
	fg_cmd_begin(env->g[1], &req, sizeof(req));
	assert_true(pvr_adapter_busy(env->g[1]->adapter));
	fg_reg_write(env->g[1], PVR_REG_CTL, PVR_CTL_RESET);
	fg_run(env->host);
	assert_int_equal(((struct pvr_ring_state *)buf.va)->rx.prod_tail, 0);
	expect_ok(fg_guest_boot(env->g[1]));
}

TEST(rc_connected, test_old_ring_is_left_alone_afterwards)
{
	struct fg_cq *cq = &env->b.rcq;
	struct fg_buf buf;
	struct pvr_cmd_resize_cq req = ring_for(env, &buf, 3, 128);

	t_fill_cq(env, 0, 3);
	expect_ok(resize(env, &req));
	fg_fill(cq->buf.va, cq->buf.size, 7);
	fg_cq_arm(cq);
	t_fill_cq(env, 3, 100);
	assert_int_equal(fg_mismatch(cq->buf.va, cq->buf.size, 7), cq->buf.size);
	assert_int_equal(((struct pvr_ring_state *)buf.va)->rx.prod_tail, 103);
}

TEST(rc_connected, test_full_ring_can_move_and_overflows_as_before)
{
	t_fill_cq(env, 0, FG_END_CQE);
	expect_ok(fg_cq_resize(&env->b.rcq, FG_END_CQE));
	assert_int_equal(fg_cq_pending(&env->b.rcq), FG_END_CQE);
	expect_no_event(env->g[1]);
	expect_ok(fg_cq_resize(&env->b.rcq, 2 * FG_END_CQE));
	t_fill_cq(env, FG_END_CQE, FG_END_CQE);
	expect_no_event(env->g[1]);
	t_expect_recvs(env, 0, 2 * FG_END_CQE);
	t_fill_cq(env, 0, 2 * FG_END_CQE);
	expect_no_event(env->g[1]);
	complete(env, 7);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	t_expect_recvs(env, 0, 2 * FG_END_CQE);
	expect_no_cqe(&env->b.rcq);
}

/*
 * The doorbells come before the command, but nothing has run in between. What others send
 * at the same time may come before or after it.
 */
TEST(rc_connected, test_what_was_rung_for_before_is_unread)
{
	for (uint32_t i = 1; i <= 2; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
	}
	assert_int_equal(fg_cq_resize(&env->a.scq, 1), EINVAL);
	expect_sent(&env->a, 1);
	expect_sent(&env->a, 2);
	t_expect_recvs(env, 1, 2);
	expect_no_event(env->g[0]);
}

TEST(rc_connected, test_smaller_than_what_is_unread_is_refused)
{
	t_fill_cq(env, 0, 65);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 64), EINVAL);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 1), EINVAL);
	fg_cq_arm(&env->b.rcq);
	assert_int_equal(notifications(env), 1);
	complete(env, 65);
	t_expect_recvs(env, 0, 66);
	t_fill_cq(env, 0, FG_END_CQE);
	t_expect_recvs(env, 0, FG_END_CQE);
	expect_no_event(env->g[1]);
}

static const struct {
	const char *label;
	uint32_t cqe, nchunks;
} bad_sizes[] = {
	{ "no element", 0, 4 },
	{ "3 elements", 3, 4 },
	{ "100 elements", 100, 4 },
	{ "one above the largest size", PVR_MAX_CQE + 1, 4 },
	{ "twice the largest size", 2 * PVR_MAX_CQE, 2 * PVR_MAX_CQE / 64 + 1 },
	{ "2^31 elements", 0x80000000, 4 },
	{ "UINT32_MAX elements", UINT32_MAX, 4 },
	{ "one page too few", 256, 4 },
	{ "the header page only", 64, 1 },
	{ "no page", 64, 0 },
	{ "more pages than a directory has", 64, PVR_PDIR_MAX_PAGES + 1 },
	{ "UINT32_MAX pages", 64, UINT32_MAX },
};

TEST_CASES(rc_connected, test_bad_sizes_and_page_counts_are_refused, bad_sizes)
{
	struct fg_buf buf;
	struct pvr_cmd_resize_cq req = ring_for(env, &buf, 4, row->cqe);

	t_fill_cq(env, 0, 5);
	req.nchunks = row->nchunks;
	assert_int_equal(resize(env, &req), EINVAL);
	t_expect_recvs(env, 0, 5);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_bad_directories_and_pages_are_refused)
{
	struct fg_buf buf;
	struct pvr_cmd_resize_cq req = ring_for(env, &buf, 3, 128);
	struct t_bad_page bad = { .buf = &buf, .npages = 3, .pdir_dma = &req.pdir_dma };

	t_fill_cq(env, 0, 5);
	while (t_next_bad_page(&bad))
		assert_int_equal(resize(env, &req), EFAULT);
	t_expect_recvs(env, 0, 5);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_unknown_handles_are_refused)
{
	struct pvr_cmd_resize_cq req;
	struct fg_buf buf;
	struct fg_cq cq;

	expect_ok(fg_cq_create(&env->g[1]->kernel, 64, &cq));
	fg_buf_init(&buf, &env->g[1]->ram, 3, FG_SCATTERED);
	req = fg_cq_resize_request(&cq, &buf, 128);
	req.cq_handle = UINT32_MAX;
	assert_int_equal(resize(env, &req), EINVAL);
	req.cq_handle = env->g[1]->dsr->caps.max_cq;
	assert_int_equal(resize(env, &req), EINVAL);
	req.cq_handle = cq.handle;
	expect_ok(fg_cq_destroy(&cq));
	assert_int_equal(resize(env, &req), EINVAL);
}

static const struct t_cq_case armings[] = {
	{ "an armed CQ stays armed", { ARM, RESIZE, MESSAGE, NOTIFIES, MESSAGE } },
	{ "a CQ armed for solicited stays so",
	  { ARM_SOLICITED, MESSAGE, RESIZE, MESSAGE, SOLICITED, NOTIFIES, READ_ALL } },
	{ "a CQ that is not armed stays so", { MESSAGE, RESIZE, SOLICITED } },
	/* Completions that are read come first, or indices from before the move would do. */
	{ "unseen completions are notified by arming after the move",
	  { MANY_READ, MESSAGE, RESIZE, ARM, NOTIFIES, READ_ALL, SOLICITED, RESIZE, ARM_SOLICITED,
	    NOTIFIES } },
	{ "notified completions are not notified again",
	  { MANY_READ, ARM, SOLICITED, NOTIFIES, RESIZE, ARM, ARM_SOLICITED, MESSAGE, NOTIFIES } },
	{ "solicited completions that were read do not count",
	  { SOLICITED, MESSAGE, READ_ONE, RESIZE, ARM_SOLICITED, SOLICITED, NOTIFIES } },
};

TEST_CASES(rc_connected, test_arming_and_resizing, armings)
{
	t_run_cq_case(env, row);
}

TEST(rc_connected, test_notification_that_waits_for_room_still_comes)
{
	struct pvr_ring_state *ring = (void *)env->g[1]->cq_ring.va;

	ring->rx.cons_head = PVR_CQNE_SLOTS; /* to the device the ring is full */
	fg_cq_arm(&env->b.rcq);
	complete(env, 1);
	expect_ok(fg_cq_resize(&env->b.rcq, 8));
	assert_int_equal(fg_cq_events_pending(env->g[1]), 0);
	ring->rx.cons_head = 0;
	fg_advance(env->host, FG_SEC);
	assert_int_equal(notifications(env), 1);
	t_expect_recvs(env, 1, 1);
}

TEST(rc_connected, test_cq_moves_in_the_middle_of_a_message)
{
	const uint32_t len = 1 << 26; /* many runs long */

	t_widen(&env->a, len);
	t_widen(&env->b, len);
	t_recv(&env->b, 1, 0, len);
	t_send(&env->a, 2, 0, len);
	assert_true(pvr_engine_run(env->host->engine, 0));
	expect_ok(fg_cq_resize(&env->b.rcq, 4));
	expect_ok(fg_cq_resize(&env->a.scq, 4));
	await_recv(&env->b.rcq, 1, len);
	expect_sent(&env->a, 2);
}

TEST(rc_connected, test_cq_in_error_is_refused)
{
	t_fill_cq(env, 0, FG_END_CQE + 1);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 1024), EIO);
	t_expect_recvs(env, 0, FG_END_CQE);
	expect_no_cqe(&env->b.rcq);
	fg_end_close(&env->b);
}

/* b's CQ moves to a ring whose second page is not of the guest's usual RAM. */
static void move_to_spare_page(struct t_env *env, struct fg_buf *buf)
{
	struct fg_guest *g = env->g[1];
	struct pvr_cmd_resize_cq req;

	t_plug_spare(g);
	req = ring_for(env, buf, 2, 64);
	fg_buf_table(buf, 0)[1] = T_SPARE_GPA;
	expect_ok(resize(env, &req));
}

TEST(rc_connected, test_cq_whose_memory_was_unplugged_is_refused)
{
	struct fg_buf buf;

	move_to_spare_page(env, &buf);
	t_unplug_spare(env->g[1]);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, env->b.rcq.handle), 1);
	assert_int_equal(fg_cq_resize(&env->b.rcq, 128), EIO);
}

TEST(rc_connected, test_memory_of_the_old_ring_may_go)
{
	struct fg_buf buf;

	move_to_spare_page(env, &buf);
	expect_ok(fg_cq_resize(&env->b.rcq, 128));
	t_unplug_spare(env->g[1]);
	expect_no_event(env->g[1]);
	t_ping_pong(env->host, &env->a, &env->b);
}

static const struct t_case wild_indices[] = {
	{ "5", 5 },
	{ "255", 255 },
	{ "256", 256 },
	{ "257", 257 },
	{ "500", 500 },
	{ "511", 511 },
	{ "512", 512 },
	{ "513", 513 },
	{ "999", 999 },
	{ "2^31", 1u << 31 },
	{ "UINT32_MAX", UINT32_MAX },
};

/* The distance to a wild index is as bounded as any: refused, or what it says is unread. */
TEST_CASES(rc_connected, test_wild_consumer_indices_are_safe, wild_indices)
{
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	complete(env, 1);
	env->b.rcq.ring->cons_head = row->value;
	if (fg_cq_resize(&env->b.rcq, 512) == 0)
		assert_in_range(env->b.rcq.ring->prod_tail, 0, FG_END_CQE);
	else
		expect_cqe(&env->b.rcq, 1, PVRDMA_WC_SUCCESS);
	t_recv(&env->b, 2, 0, 0);
	t_send(&env->a, 2, 0, 0);
	fg_run(env->host);
	t_ping_pong(env->host, &c, &d);
}

TEST(rc_connected, test_index_too_far_behind_is_refused)
{
	complete(env, 1);
	env->b.rcq.ring->cons_head = 2; /* 511 behind, of 256 */
	assert_int_equal(fg_cq_resize(&env->b.rcq, 4096), EINVAL);
	env->b.rcq.ring->cons_head = 0;
	expect_ok(fg_cq_resize(&env->b.rcq, 4096));
	t_expect_recvs(env, 1, 1);
}

TEST(rc_connected, test_both_rings_on_the_same_pages_are_safe)
{
	struct fg_cq *cq = &env->b.rcq;
	struct pvr_cmd_resize_cq req;
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	t_fill_cq(env, 0, 100);
	t_expect_recvs(env, 0, 50);
	req = fg_cq_resize_request(cq, &cq->buf, 64);
	expect_ok(resize(env, &req));
	cq->cqe = 64;
	cq->head = 0;
	cq->ring->cons_head = 0;
	t_expect_recvs(env, 50, 50);
	/* The header page as the first page of entries. */
	fg_buf_table(&cq->buf, 0)[1] = fg_buf_table(&cq->buf, 0)[0];
	expect_ok(resize(env, &req));
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
		fg_run(env->host);
	}
	t_ping_pong(env->host, &c, &d);
}

/* All pages of a ring count against the guest's limit, once. */
TEST(rc_connected, test_memory_is_accounted_for)
{
	const uint32_t many = 110000;
	struct fg_buf buf;
	struct pvr_cmd_resize_cq req = ring_for(env, &buf, 2, 1);
	uint32_t page;

	t_fill_cq(env, 0, 2);
	req.nchunks = many;
	req.pdir_dma = t_wide_pdir(env->g[1], 2 * many, &page);
	t_leave_memory(env->g[1], 2 << 20);
	for (int i = 0; i < 10; i++)
		assert_int_equal(resize(env, &req), EINVAL); /* 1 < 2 */
	req.cqe = 2;
	for (int i = 0; i < 10; i++)
		expect_ok(resize(env, &req));
	/* The pages behind the ring cost neither memory nor time. */
	req.nchunks = 2 * many;
	expect_ok(resize(env, &req));
	req.nchunks = many;
	expect_ok(resize(env, &req));
	expect_ok(fg_cq_resize(&env->b.rcq, 64));
	req.nchunks = 2 * many;
	expect_ok(resize(env, &req));
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
			assert_int_equal(fg_cq_resize(cq, cqe), unread > cqe ? EINVAL : 0);
		} else if (dice % 8 < 4 && unread) {
			expect_recv(cq, oldest++, 0);
		} else if (unread < cq->cqe) {
			/* Armed before it or after it, each is announced once. */
			if (dice & 1024)
				fg_cq_arm(cq);
			assert_int_equal(notifications(env), 0);
			complete(env, next++);
			if (!(dice & 1024))
				fg_cq_arm(cq);
			assert_int_equal(notifications(env), 1);
		}
		assert_int_equal(fg_cq_pending(cq), next - oldest);
	}
	expect_no_event(env->g[1]);
}
