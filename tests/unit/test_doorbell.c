// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Doorbells: whose they are, and what a wild ring index behind them does. */
#include "ends.h"

static uint64_t ignored(const struct fg_guest *g)
{
	return fg_stats(g).doorbells_ignored;
}

TEST(rc_connected, test_doorbells_are_counted)
{
	struct pvr_adapter_stats before = fg_stats(env->g[0]), after;

	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	fg_cq_arm(&env->a.scq);
	after = fg_stats(env->g[0]);
	assert_int_equal(after.doorbells - before.doorbells, 3);
	assert_int_equal(after.doorbells_ignored - before.doorbells_ignored, 0);
}

TEST(rc_connected, test_doorbells_without_work_are_harmless)
{
	for (int i = 0; i < 10000; i++) {
		fg_ring_send(&env->a.qp);
		fg_ring_recv(&env->b.qp);
	}
	await_no_cqe(&env->a.scq);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_doorbells_for_unknown_objects_are_ignored)
{
	static const uint32_t offsets[] = { PVRDMA_UAR_QP_OFFSET, PVRDMA_UAR_CQ_OFFSET,
					    PVRDMA_UAR_SRQ_OFFSET };
	static const uint32_t handles[] = { 77, 0xffff, 0x10000, 0xffffff };
	uint64_t before = ignored(env->g[0]);

	for (size_t i = 0; i < COUNT(offsets); i++)
		for (size_t k = 0; k < COUNT(handles); k++)
			fg_uar_write(env->g[0], 0, offsets[i],
				     handles[k] | PVR_DB_QP_SEND | PVR_DB_QP_RECV);
	fg_run(env->host);
	assert_int_equal(ignored(env->g[0]) - before, COUNT(offsets) * COUNT(handles));
}

TEST(rc_idle, test_doorbells_at_unused_offsets_are_ignored)
{
	uint64_t before = ignored(env->g[0]);

	t_put_send(&env->a, 1, 0, 8);
	t_recv(&env->b, 1, 0, 8);
	for (uint32_t offset = 12; offset < PVR_PAGE_SIZE; offset += 4)
		fg_uar_write(env->g[0], 0, offset, PVR_DB_QP_SEND | env->a.qp.handle);
	await_no_cqe(&env->b.rcq);
	assert_int_equal(ignored(env->g[0]) - before, (PVR_PAGE_SIZE - 12) / 4);
}

static const struct t_case other_bits[] = {
	{ "receive bit", PVR_DB_QP_RECV },
	{ "reserved bits", 0x3f000000 },
};

TEST_CASES(rc_connected, test_send_bit_counts_beside_other_bits, other_bits)
{
	t_recv(&env->b, 2, 0, 8);
	t_put_send(&env->a, 1, 0, 8);
	fg_uar_write(env->g[0], 0, PVRDMA_UAR_QP_OFFSET,
		     PVR_DB_QP_SEND | row->value | env->a.qp.handle);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

enum page {
	PAGE_OF_KERNEL,
	PAGE_OF_OTHER_USER,
	PAGE_OF_DESTROYED,
	PAGE_UNUSED,
};

static const struct {
	const char *label;
	bool user; /* owns the objects; else the kernel does */
	enum page page;
} foreign_pages[] = {
	{ "a user for another user", true, PAGE_OF_OTHER_USER },
	{ "a user for the kernel", false, PAGE_OF_OTHER_USER },
	{ "the kernel for a user", true, PAGE_OF_KERNEL },
	{ "a page without a context", false, PAGE_UNUSED },
	{ "the page of a destroyed context", false, PAGE_OF_DESTROYED },
};

TEST_CASES(guests, test_doorbell_for_another_contexts_object_is_ignored, foreign_pages)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_ctx user, other;
	struct fg_end end, peer;
	struct fg_srq srq;
	uint64_t before;
	uint32_t page;

	expect_ok(fg_ctx_create(env->g[0], &user));
	expect_ok(fg_ctx_create(env->g[0], &other));
	page = row->page == PAGE_OF_KERNEL ? 0 : row->page == PAGE_UNUSED ? 100 : other.uar;
	if (row->page == PAGE_OF_DESTROYED)
		expect_ok(fg_ctx_destroy(&other));
	fg_end_open_spec(&end, row->user ? &user : &env->g[0]->kernel, &spec, 2);
	expect_ok(fg_srq_create(&end.pd, 16, 1, &srq));
	fg_end_open(&peer, env->g[1], PVR_QPT_RC);
	fg_end_connect(&end, &peer, NULL);
	fg_run(env->host); /* the transition to RTS polls the queue once */
	t_recv(&peer, 1, 0, 8);
	t_put_send(&end, 1, 0, 8);
	before = ignored(env->g[0]);
	fg_uar_write(env->g[0], page, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | end.qp.handle);
	fg_uar_write(env->g[0], page, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM | end.scq.handle);
	fg_uar_write(env->g[0], page, PVRDMA_UAR_SRQ_OFFSET, PVR_DB_SRQ_RECV | srq.handle);
	await_no_cqe(&peer.rcq);
	assert_int_equal(ignored(env->g[0]) - before, 3);
	fg_ring_srq(&srq);
	assert_int_equal(ignored(env->g[0]) - before, 3);
	fg_ring_send(&end.qp);
	await_recv(&peer.rcq, 1, 8);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
}

TEST(unprobed, test_doorbells_before_the_driver_comes_are_ignored)
{
	fg_uar_write(env->g[0], 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | 1);
	fg_uar_write(env->g[0], 0, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM | 0);
	fg_run(env->host);
	assert_int_equal(ignored(env->g[0]), 2);
	expect_ok(fg_guest_boot(env->g[0]));
}

TEST(rc_connected, test_doorbells_after_reset_are_ignored)
{
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	fg_cq_arm(&env->a.scq);
	fg_run(env->host);
	assert_int_equal(ignored(env->g[0]), 3);
}

TEST(rc_connected, test_doorbells_without_bus_master_do_no_dma)
{
	struct pvr_ring_state before;

	t_recv(&env->b, 1, 0, 8);
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	t_send(&env->a, 2, 0, 8);
	before = *env->a.qp.ring;
	fg_settle(env->host, FG_SEC);
	assert_memory_equal(&before, env->a.qp.ring, sizeof(before));
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_ring_send(&env->a.qp);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 8);
}

TEST(rc, test_sends_posted_in_reset_and_init_do_not_run)
{
	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->a.scq);
	assert_int_equal(env->a.qp.ring->tx.cons_head, 0);
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	fg_ring_send(&env->a.qp);
	await_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_INIT);
}

/* Of a queue of 64 elements. */
static const struct {
	const char *label;
	uint32_t tail;
	uint32_t advance; /* messages before */
} indices[] = {
	{ "minus one", UINT32_MAX, 0 },	     { "of twice the size", 128, 0 },
	{ "with high bits", 0x80000001, 0 }, { "beyond the queue", 65, 0 },
	{ "moving backwards", 2, 3 },
};

/* a must fail alone, and c and d go on. */
TEST_CASES(rc_connected, test_wild_send_index_fails_the_qp, indices)
{
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	for (uint32_t i = 0; i < row->advance; i++)
		t_ping_pong(env->host, &env->a, &env->b);
	env->a.qp.ring->tx.prod_tail = row->tail;
	fg_ring_send(&env->a.qp);
	await_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_one_event(env->g[0], PVR_EVENT_QP_FATAL, env->a.qp.handle);
	t_ping_pong(env->host, &c, &d);
	fg_ring_send(&env->a.qp);
	await_no_event(env->g[0]);
	/* It can be used again. */
	t_reconnect(env);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* A quantum without a link executes nothing, and must see the index all the same. */
TEST_CASES(rc_connected, test_wild_send_index_fails_the_qp_without_link, indices)
{
	for (uint32_t i = 0; i < row->advance; i++)
		t_ping_pong(env->host, &env->a, &env->b);
	pvr_adapter_set_link(env->g[0]->adapter, false);
	env->a.qp.ring->tx.prod_tail = row->tail;
	fg_ring_send(&env->a.qp);
	assert_true(fg_run_bounded(env->host, 1000));
	expect_state(&env->a, PVR_QPS_ERR);
}

/* The requests in flight are more than the guest's index says. */
TEST(rc_connected, test_index_before_the_requests_in_flight_fails_the_qp_without_link)
{
	if (env->wire)
		fg_wire_hold(env->wire, 1, 0, true);
	t_write(&env->a, &env->b, 1);
	fg_run(env->host);
	pvr_adapter_set_link(env->g[0]->adapter, false);
	env->a.qp.ring->tx.prod_tail = 0;
	fg_ring_send(&env->a.qp);
	assert_true(fg_run_bounded(env->host, 1000));
	expect_state(&env->a, PVR_QPS_ERR);
}

TEST_CASES(rc_connected, test_wild_recv_index_fails_the_qp, indices)
{
	struct fg_end c, d;

	t_open_pair(&c, env->g[0], &d, env->g[1]);
	for (uint32_t i = 0; i < row->advance; i++)
		t_ping_pong(env->host, &env->a, &env->b);
	env->b.qp.ring->rx.prod_tail = row->tail;
	fg_ring_recv(&env->b.qp);
	t_send(&env->a, 1, 0, 8);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_OP_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
	expect_no_cqe(&env->b.rcq);
	t_ping_pong(env->host, &c, &d);
}

/* A jump from empty to full runs what lies in the ring: bounded, and not our memory. */
TEST(rc_connected, test_flip_from_empty_to_full_is_bounded)
{
	for (uint32_t i = 0; i < 64; i++) {
		struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&env->a.qp, i);

		memset(wqe, 0xff, env->a.qp.sq_stride);
	}
	env->a.qp.ring->tx.prod_tail = 64;
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
	assert_int_equal(fg_cq_pending(&env->a.scq), 64);
	expect_cqe(&env->a.scq, UINT64_MAX, PVRDMA_WC_LOC_QP_OP_ERR);
	for (int i = 1; i < 64; i++)
		expect_cqe(&env->a.scq, UINT64_MAX, PVRDMA_WC_WR_FLUSH_ERR);
	env->a.qp.ring->tx.prod_tail = 0;
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
	assert_true(fg_cq_pending(&env->a.scq) <= 64);
}

TEST(rc_connected, test_consumer_index_written_by_the_guest_is_not_used)
{
	t_ping_pong(env->host, &env->a, &env->b);
	env->a.qp.ring->tx.cons_head = 0xdeadbeef;
	env->b.qp.ring->rx.cons_head = 0xdeadbeef;
	/* The library computes free space from it: write the elements by hand. */
	for (uint32_t i = 1; i < 5; i++) {
		struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, 64);
		struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&env->a.qp, i);
		struct pvrdma_rq_wqe_hdr *rqe = fg_rq_wqe(&env->b.qp, i);

		memset(wqe, 0, sizeof(*wqe));
		wqe->wr_id = i;
		wqe->opcode = PVRDMA_WR_SEND;
		wqe->send_flags = PVR_SEND_SIGNALED;
		rqe->wr_id = i;
		rqe->num_sge = 1;
		memcpy(rqe + 1, &sge, sizeof(sge));
		env->b.qp.ring->rx.prod_tail = i + 1;
		env->a.qp.ring->tx.prod_tail = i + 1;
		fg_ring_send(&env->a.qp);
		await_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 0);
		assert_int_equal(env->a.qp.ring->tx.cons_head, i + 1);
		assert_int_equal(env->b.qp.ring->rx.cons_head, i + 1);
	}
}

TEST(rc_connected, test_unused_bytes_of_the_header_page_are_not_written)
{
	const size_t rest = PVR_PAGE_SIZE - sizeof(struct pvr_ring_state);

	fg_fill(env->a.qp.ring + 1, rest, 3);
	t_ping_pong(env->host, &env->a, &env->b);
	assert_int_equal(fg_mismatch(env->a.qp.ring + 1, rest, 3), rest);
}
