// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* MODIFY_SRQ with PVR_SRQ_MAX_WR: what moves, what stays, and what happens when it fails. */
#include "objects.h"

TEST_EXT(PVR_EXT_RESIZE)

/* A request of three SGEs with unique values. */
static void post(struct srq_pair *s, uint64_t wr_id)
{
	struct pvrdma_sge sge[3];

	for (uint32_t i = 0; i < 3; i++)
		sge[i] = fg_sge(&s->b->mr, (wr_id % 100) * 600 + i * 200, 100);
	assert_true(fg_post_srq_recv(&s->srq, wr_id, sge, 3));
}

/* A message of 300 bytes that must land in the request @wr_id. */
static void receive(struct srq_pair *s, uint64_t wr_id)
{
	const uint8_t *to = s->b->mr.va + (wr_id % 100) * 600, *from = s->a->mr.va;

	fg_fill(s->a->mr.va, 300, (uint32_t)wr_id);
	t_send(s->a, wr_id, 0, 300);
	await_sent(s->a, wr_id);
	expect_recv(&s->b->rcq, wr_id, 300);
	for (uint32_t i = 0; i < 3; i++)
		assert_memory_equal(to + i * 200, from + i * 100, 100);
}

static uint32_t modify(struct srq_pair *s, const struct pvr_cmd_modify_srq *req)
{
	return fg_cmd(s->env->g[1], req, sizeof(*req), NULL, 0);
}

static const struct {
	const char *label;
	uint32_t used, waiting, wr;
} moves[] = {
	{ "none, to a larger ring", 0, 0, 64 },
	{ "one, to a ring of one", 0, 1, 1 },
	{ "16, to a ring that they fill", 5, 16, 16 },
	{ "a full ring that wraps", 20, 32, 32 },
	{ "across the end of the ring", 31, 4, 8 },
	{ "in the second round", 40, 30, 256 },
	{ "across the end of the second round", 63, 2, 2 },
	{ "a full ring, to the largest", 64, 32, 16384 },
};

TEST_SRQ_CASES(test_waiting_requests_move_in_order, moves)
{
	struct pvr_srq_attr attr;

	for (uint32_t k = 0; k < row->used; k++) {
		post(s, k);
		receive(s, k);
	}
	for (uint32_t k = 0; k < row->waiting; k++)
		post(s, row->used + k);
	expect_ok(fg_srq_resize(&s->srq, row->wr));
	assert_int_equal(s->srq.ring->prod_tail, row->waiting);
	assert_int_equal(s->srq.ring->cons_head, 0);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.max_wr, row->wr);
	assert_int_equal(attr.max_sge, 4);
	for (uint32_t k = 0; k < row->waiting; k++)
		receive(s, row->used + k);
	/* The new ring wraps at its own size. */
	for (uint32_t k = 0; k < 3 * row->wr && k < 100; k++) {
		post(s, k);
		receive(s, k);
	}
	expect_no_event(env->g[1]);
}

TEST_SRQ(test_requests_are_taken_between_the_steps)
{
	enum { MANY = 8000, WR = 8192 };
	struct pvr_cmd_modify_srq req;
	const struct pvr_ring *ring;
	struct fg_buf buf;

	t_one_host_only(s->env, "it runs one engine by hand");
	expect_ok(fg_srq_resize(&s->srq, WR));
	for (uint32_t i = 0; i < MANY; i++)
		post(s, i);
	fg_buf_init(&buf, &s->env->g[1]->ram, fg_srq_pages(WR, s->srq.sge), FG_SCATTERED);
	req = fg_srq_resize_request(&s->srq, &buf, WR);
	fg_cmd_begin(s->env->g[1], &req, sizeof(req));
	assert_true(pvr_adapter_busy(s->env->g[1]->adapter));
	t_send(s->a, 1, 0, 300);
	pvr_engine_run(s->env->host->engine, 0);
	expect_recv(&s->b->rcq, 0, 300);
	expect_ok(fg_cmd_end(s->env->g[1], &req, NULL, 0));
	ring = &((const struct pvr_ring_state *)buf.va)->rx;
	assert_int_equal(ring->cons_head, 1);
	assert_int_equal(ring->prod_tail, MANY);
	for (uint32_t i = 1; i < 100; i++) {
		t_send(s->a, i, 0, 300);
		await_recv(&s->b->rcq, i, 300);
	}
}

TEST_SRQ(test_old_ring_is_left_alone_afterwards)
{
	struct fg_buf old;

	post(s, 1);
	old = s->srq.buf;
	memset(&s->srq.buf, 0, sizeof(s->srq.buf)); /* or it would be given back */
	expect_ok(fg_srq_resize(&s->srq, 16));
	fg_fill(old.va, old.size, 7);
	receive(s, 1);
	post(s, 2);
	receive(s, 2);
	assert_int_equal(fg_mismatch(old.va, old.size, 7), old.size);
	fg_buf_exit(&old);
}

TEST_SRQ(test_smaller_than_what_waits_is_refused)
{
	struct pvr_srq_attr attr;

	for (uint32_t i = 0; i < 17; i++)
		post(s, i);
	assert_int_equal(fg_srq_resize(&s->srq, 16), EINVAL);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.max_wr, SRQ_WR);
	for (uint32_t i = 0; i < 17; i++)
		receive(s, i);
	expect_ok(fg_srq_resize(&s->srq, 16));
}

static const struct {
	const char *label;
	uint32_t wr, nchunks;
} bad_sizes[] = {
	{ "size 0", 0, 4 },
	{ "no power of two", 3, 4 },
	{ "above the maximum", 32768, 32768 / 32 + 1 },
	{ "size 2^31", 0x80000000, 4 },
	{ "size 2^32 - 1", UINT32_MAX, 4 },
	{ "too few pages", 256, 4 },
	{ "header page only", 64, 1 },
	{ "no page", 64, 0 },
	{ "more pages than a directory has", 64, PVR_PDIR_MAX_PAGES + 1 },
	{ "2^32 - 1 pages", 64, UINT32_MAX },
};

TEST_SRQ_CASES(test_bad_sizes_and_page_counts_are_refused, bad_sizes)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(&s->srq, &s->buf, row->wr);

	post(s, 1);
	req.nchunks = row->nchunks;
	assert_int_equal(modify(s, &req), EINVAL);
	receive(s, 1);
}

TEST_SRQ(test_bad_directories_and_pages_are_refused)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(&s->srq, &s->buf, 64);
	struct t_bad_page bad = { .buf = &s->buf, .npages = 3, .pdir_dma = &req.pdir_dma };

	post(s, 1);
	while (t_next_bad_page(&bad))
		assert_int_equal(modify(s, &req), EFAULT);
	receive(s, 1);
}

TEST_SRQ(test_unknown_handles_and_bits_are_refused)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(&s->srq, &s->buf, 64);

	req.srq_handle++;
	assert_int_equal(modify(s, &req), EINVAL);
	req = fg_srq_resize_request(&s->srq, &s->buf, 64);
	req.attr_mask |= 4;
	assert_int_equal(modify(s, &req), EINVAL);
}

/* IBTA vol. 1, 10.2.9.3: the limit cannot be above the size, whichever of them changes. */
TEST_SRQ(test_limit_and_size_must_agree)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(&s->srq, &s->buf, 16);
	struct pvr_srq_attr attr;

	expect_ok(fg_srq_set_limit(&s->srq, 17));
	assert_int_equal(fg_srq_resize(&s->srq, 16), EINVAL);
	req.attr_mask |= PVR_SRQ_LIMIT;
	req.attrs.srq_limit = 18;
	assert_int_equal(modify(s, &req), EINVAL);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.max_wr, SRQ_WR);
	assert_int_equal(attr.srq_limit, 17);
	/* A size that fails takes the limit with it. */
	req.attrs.srq_limit = 5;
	req.pdir_dma = FG_NOWHERE;
	assert_int_equal(modify(s, &req), EFAULT);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.srq_limit, 17);
	req.attrs.srq_limit = 16;
	req.pdir_dma = s->buf.pdir;
	expect_ok(modify(s, &req));
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.max_wr, 16);
	assert_int_equal(attr.srq_limit, 16);
}

TEST_SRQ(test_limit_stays_armed)
{
	for (uint32_t i = 0; i < 6; i++)
		post(s, i);
	expect_ok(fg_srq_set_limit(&s->srq, 5));
	expect_ok(fg_srq_resize(&s->srq, 8));
	receive(s, 0);
	expect_no_event(env->g[1]);
	receive(s, 1);
	expect_one_event(env->g[1], PVR_EVENT_SRQ_LIMIT_REACHED, s->srq.handle);
}

TEST_SRQ(test_sender_that_waits_for_a_request_is_served_from_the_new_ring)
{
	t_send(s->a, 1, 0, 64);
	fg_run(env->host);
	expect_ok(fg_srq_resize(&s->srq, 64));
	expect_no_cqe(&s->a->scq);
	post(s, 2);
	fg_settle(env->host, FG_SEC);
	expect_sent(s->a, 1);
	expect_recv(&s->b->rcq, 2, 64);
}

TEST_SRQ(test_request_that_a_qp_holds_is_not_touched)
{
	const uint32_t len = 1 << 26; /* many runs long */
	struct fg_mr from, to;
	struct pvrdma_sge sge;

	t_wide_mr(s->a, len / PVR_PAGE_SIZE, &from);
	t_wide_mr(s->b, len / PVR_PAGE_SIZE, &to);
	sge = fg_sge(&to, 0, len);
	assert_true(fg_post_srq_recv(&s->srq, 1, &sge, 1));
	post(s, 2);
	t_post(s->a, .wr_id = 3, .opcode = PVRDMA_WR_SEND, T_SGE(&from, 0, len));
	assert_true(pvr_engine_run(env->host->engine, 0));
	expect_ok(fg_srq_resize(&s->srq, 1));
	assert_int_equal(s->srq.ring->prod_tail, 1); /* only 2 waits */
	await_sent(s->a, 3);
	expect_recv(&s->b->rcq, 1, len);
	receive(s, 2);
}

TEST_SRQ(test_wild_producer_index_is_refused)
{
	static const uint32_t bad[] = { SRQ_WR + 1, 2 * SRQ_WR, 1u << 31, UINT32_MAX };

	post(s, 1);
	for (size_t i = 0; i < COUNT(bad); i++) {
		s->srq.ring->prod_tail = bad[i];
		assert_int_equal(fg_srq_resize(&s->srq, 64), EINVAL);
	}
	s->srq.ring->prod_tail = 1;
	expect_ok(fg_srq_resize(&s->srq, 64));
	receive(s, 1);
	expect_no_event(env->g[1]);
}

TEST_SRQ(test_srq_in_error_is_refused)
{
	s->srq.ring->prod_tail = UINT32_MAX;
	t_send(s->a, 1, 0, 8);
	fg_run(env->host);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_SRQ_ERR, s->srq.handle), 1);
	s->srq.ring->prod_tail = 0;
	assert_int_equal(fg_srq_resize(&s->srq, 64), EIO);
}

static void move_to_spare_page(struct srq_pair *s)
{
	struct fg_guest *g = s->env->g[1];
	struct pvr_cmd_modify_srq req;

	t_plug_spare(g);
	fg_buf_table(&s->buf, 0)[1] = T_SPARE_GPA;
	req = fg_srq_resize_request(&s->srq, &s->buf, SRQ_WR);
	expect_ok(modify(s, &req));
}

TEST_SRQ(test_srq_whose_memory_was_unplugged_is_refused)
{
	move_to_spare_page(s);
	t_unplug_spare(env->g[1]);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_SRQ_ERR, s->srq.handle), 1);
	assert_int_equal(fg_srq_resize(&s->srq, 64), EIO);
}

TEST_SRQ(test_memory_of_the_old_ring_may_go)
{
	move_to_spare_page(s);
	expect_ok(fg_srq_resize(&s->srq, 64));
	t_unplug_spare(env->g[1]);
	expect_no_event(env->g[1]);
	post(s, 1);
	receive(s, 1);
}

TEST_SRQ(test_both_rings_on_the_same_pages_are_safe)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(&s->srq, &s->srq.buf, SRQ_WR);
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	for (uint32_t i = 0; i < 20; i++)
		post(s, i);
	receive(s, 0);
	expect_ok(modify(s, &req));
	receive(s, 1);
	/* The header page as the page of requests. */
	fg_buf_table(&s->srq.buf, 0)[1] = fg_buf_table(&s->srq.buf, 0)[0];
	modify(s, &req);
	for (uint32_t i = 0; i < 10; i++)
		t_send(s->a, i, 0, 8);
	fg_settle(env->host, FG_SEC);
	t_ping_pong(env->host, &c, &d);
}

TEST_SRQ(test_memory_is_accounted_for)
{
	const uint32_t many = 110000;
	struct pvr_cmd_modify_srq req;
	uint32_t page;

	post(s, 1);
	post(s, 2);
	req = fg_srq_resize_request(&s->srq, &s->buf, 1);
	req.nchunks = many;
	req.pdir_dma = t_wide_pdir(env->g[1], 2 * many, &page);
	t_leave_memory(env->g[1], 2 << 20);
	for (int i = 0; i < 10; i++)
		assert_int_equal(modify(s, &req), EINVAL); /* 1 < 2 */
	req.attrs.max_wr = 2;
	for (int i = 0; i < 10; i++)
		expect_ok(modify(s, &req));
	/* The pages behind the ring cost neither memory nor time. */
	req.nchunks = 2 * many;
	expect_ok(modify(s, &req));
	expect_ok(fg_srq_resize(&s->srq, 64));
	expect_ok(modify(s, &req));
}

TEST_SRQ(test_random_walk_loses_and_invents_nothing)
{
	uint64_t rnd = 42, next = 0, oldest = 0;

	for (int step = 0; step < 3000; step++) {
		uint32_t dice, wr, waiting = (uint32_t)(next - oldest);

		rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
		dice = (uint32_t)(rnd >> 33);
		if (dice % 8 == 0) {
			wr = 1u << (dice >> 3) % 8;
			if (waiting > wr)
				assert_int_equal(fg_srq_resize(&s->srq, wr), EINVAL);
			else
				expect_ok(fg_srq_resize(&s->srq, wr));
		} else if (dice % 8 < 4 && waiting) {
			receive(s, oldest++);
		} else if (waiting < s->srq.wr) {
			post(s, next++);
		}
	}
	expect_no_event(env->g[1]);
}
