// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The async event ring and the CQ notification ring: how they are set up and wrap. */
#include "objects.h"

static void toggle_link(struct t_env *env, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		t_set_link(env->g[0], i % 2);
}

/* a sends an empty message; the CQ of the sends is armed. */
static void send_armed(struct t_env *env, uint64_t wr_id)
{
	fg_cq_arm(&env->a.scq);
	t_send(&env->a, wr_id, 0, 0);
	t_recv(&env->b, wr_id, 0, 0);
	fg_run(env->host);
}

/* The device must refuse the guest's DSR as it is. */
static void expect_refusal(struct fg_guest *g)
{
	fg_dsr_write(g, g->dsr_gpa);
	assert_false(fg_dsr_accepted(g));
}

TEST_GUEST(unprobed, test_bad_page_counts_are_refused)
{
	static const uint32_t bad[] = { 0, 1, PVR_PDIR_MAX_PAGES + 1, 1u << 31, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		fg_dsr_fill(g);
		g->dsr->async_ring.num_pages = bad[i];
		t_dsr_refused(g, g->dsr_gpa);
		g->dsr->cq_ring.num_pages = bad[i];
		t_dsr_refused(g, g->dsr_gpa);
	}
}

/* 513 pages need a second table, which is not there: no out-of-bounds read, no scribble. */
TEST_GUEST(unprobed, test_more_pages_than_the_directory_has_are_safe)
{
	fg_dsr_fill(g);
	g->dsr->async_ring.num_pages = 513;
	g->dsr->cq_ring.num_pages = 513;
	fg_dsr_write(g, g->dsr_gpa);
	toggle_link(env, 4);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(unprobed, test_rings_of_two_pages_work)
{
	fg_buf_exit(&g->async_ring);
	fg_buf_exit(&g->cq_ring);
	g->config.ring_pages = 2;
	fg_buf_init(&g->async_ring, &g->ram, 2, FG_SCATTERED);
	fg_buf_init(&g->cq_ring, &g->ram, 2, FG_SCATTERED);
	expect_ok(fg_guest_boot(g));
	toggle_link(env, 1);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(unprobed, test_bad_directories_are_refused)
{
	fg_dsr_fill(g);
	for (size_t i = 0; i < T_BAD_GPAS; i++) {
		g->dsr->async_ring.pdir_dma = t_bad_gpa[i].gpa;
		t_dsr_refused(g, g->dsr_gpa);
		g->dsr->cq_ring.pdir_dma = t_bad_gpa[i].gpa;
		t_dsr_refused(g, g->dsr_gpa);
	}
	/* Unaligned. */
	g->dsr->async_ring.pdir_dma += 8;
	t_dsr_refused(g, g->dsr_gpa);
	g->dsr->cq_ring.pdir_dma += 8;
	t_dsr_refused(g, g->dsr_gpa);
}

TEST_GUEST(unprobed, test_bad_table_addresses_are_refused)
{
	uint64_t *dir = fg_buf_dir(&g->cq_ring);
	const uint64_t good = dir[0];

	fg_dsr_fill(g);
	for (size_t i = 0; i < T_BAD_GPAS; i++) {
		dir[0] = t_bad_gpa[i].gpa;
		expect_refusal(g);
	}
	dir[0] = good;
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(unprobed, test_bad_ring_pages_are_refused)
{
	struct t_bad_page bad = { .buf = &g->async_ring,
				  .npages = 2,
				  .pdir_dma = &g->dsr->async_ring.pdir_dma };

	fg_dsr_fill(g);
	while (t_next_bad_page(&bad))
		expect_refusal(g);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(unprobed, test_failure_half_way_leaves_nothing_behind)
{
	uint64_t *table = fg_buf_table(&g->cq_ring, 0);
	const uint64_t good = table[1];

	for (int i = 0; i < 3; i++) {
		fg_dsr_fill(g);
		table[1] = FG_NOWHERE;
		expect_refusal(g);
		toggle_link(env, 2);
		table[1] = good;
		expect_ok(fg_guest_boot(g));
	}
}

TEST_GUEST(unprobed, test_directory_that_points_to_itself_is_safe)
{
	for (int i = 0; i < PVR_PDIR_ENTRIES; i++)
		fg_buf_dir(&g->async_ring)[i] = g->async_ring.pdir;
	fg_dsr_fill(g);
	fg_dsr_write(g, g->dsr_gpa);
	fg_ctl(g, PVR_CTL_ACTIVATE);
	toggle_link(env, 1200);
	fg_buf_exit(&g->async_ring);
	fg_buf_init(&g->async_ring, &g->ram, 4, FG_SCATTERED);
	expect_ok(fg_guest_boot(g));
	toggle_link(env, 1);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(unprobed, test_two_rings_on_the_same_pages_are_safe)
{
	struct fg_end end;

	fg_dsr_fill(g);
	g->dsr->cq_ring.pdir_dma = g->dsr->async_ring.pdir_dma;
	fg_dsr_write(g, g->dsr_gpa);
	if (fg_dsr_accepted(g)) {
		uint8_t gid[16];

		expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
		fg_gid_from_mac(gid, g->config.mac);
		expect_ok(fg_bind_gid(g, 0, gid));
		t_open_self(&end, g);
		for (int i = 0; i < 20; i++) {
			fg_cq_arm(&end.scq);
			t_ping_pong(env->host, &end, &end);
			toggle_link(env, 2);
		}
	}
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(unprobed, test_ring_pages_in_the_dsr_are_safe)
{
	fg_buf_table(&g->async_ring, 0)[1] = g->dsr_gpa;
	fg_dsr_fill(g);
	fg_dsr_write(g, g->dsr_gpa);
	toggle_link(env, 1100);
	fg_buf_table(&g->async_ring, 0)[1] = fg_buf_gpa(&g->async_ring, PVR_PAGE_SIZE);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_async_ring_wraps_at_1024)
{
	const struct pvr_ring_state *ring = (void *)g->async_ring.va;

	for (uint32_t i = 1; i <= 2100; i++) {
		struct pvr_eqe eqe;

		t_set_link(g, !(i % 2));
		assert_int_equal(ring->rx.prod_tail, i % 1024);
		assert_true(fg_event_poll(g, &eqe));
		assert_int_equal(eqe.type, i % 2 ? PVR_EVENT_PORT_ERR : PVR_EVENT_PORT_ACTIVE);
		assert_int_equal(eqe.info, 1);
	}
	expect_no_event(g);
}

TEST_GUEST(rc_connected, test_cq_notification_ring_wraps_at_2048)
{
	const struct pvr_ring_state *ring = (void *)g->cq_ring.va;

	for (uint32_t i = 1; i <= 4200; i++) {
		uint32_t handle;

		send_armed(env, i);
		fg_cq_drain(&env->a.scq);
		fg_cq_drain(&env->b.rcq);
		assert_int_equal(ring->rx.prod_tail, i % 2048);
		assert_true(fg_cq_event_poll(g, &handle));
		assert_int_equal(handle, env->a.scq.handle);
	}
}

/* The guest does not report that it has drained the ring: the device polls the ring. */
TEST_GUEST(guest, test_full_async_ring_holds_events_back)
{
	struct pvr_eqe eqe;

	toggle_link(env, PVR_EQE_SLOTS + 20);
	for (uint32_t i = 0; i < PVR_EQE_SLOTS + 20; i++) {
		if (i % PVR_EQE_SLOTS == 0) {
			assert_int_equal(fg_events_pending(g), i ? 0 : PVR_EQE_SLOTS);
			fg_advance(env->host, i ? 10 * FG_MS : 0);
		}
		assert_true(fg_event_poll(g, &eqe));
		assert_int_equal(eqe.type, i % 2 ? PVR_EVENT_PORT_ACTIVE : PVR_EVENT_PORT_ERR);
	}
	expect_no_event(g);
	fg_advance(env->host, FG_SEC);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

TEST_GUEST(guest, test_guest_that_never_reads_its_events_costs_nothing)
{
	struct pvr_eqe eqe;

	toggle_link(env, 100000);
	assert_int_equal(fg_events_pending(g), PVR_EQE_SLOTS);
	while (fg_events_pending(g)) {
		while (fg_event_poll(g, &eqe))
			;
		fg_advance(env->host, 10 * FG_MS);
	}
	toggle_link(env, 1);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(rc_connected, test_full_cq_notification_ring_holds_entries_back)
{
	const uint32_t n = PVR_CQNE_SLOTS + 3;
	uint32_t handle, seen = 0;

	/* One CQ more than the ring has room for can wait; the ring must be full first. */
	for (uint32_t i = 0; i < PVR_CQNE_SLOTS; i++) {
		send_armed(env, i);
		fg_cq_drain(&env->a.scq);
		fg_cq_drain(&env->b.rcq);
	}
	assert_int_equal(fg_cq_events_pending(g), PVR_CQNE_SLOTS);
	fg_cq_arm(&env->a.rcq);
	t_recv(&env->a, 1, 0, 0);
	t_send(&env->b, 1, 0, 0);
	fg_run(env->host);
	assert_int_equal(fg_cq_events_pending(g), PVR_CQNE_SLOTS);
	for (uint32_t i = 0; i < n && fg_cq_event_poll(g, &handle); i++)
		assert_int_equal(handle, env->a.scq.handle);
	fg_advance(env->host, 10 * FG_MS);
	while (fg_cq_event_poll(g, &handle))
		seen += handle == env->a.rcq.handle;
	assert_int_equal(seen, 1);
}

TEST_GUEST(rc_connected, test_cq_destroyed_while_its_notification_is_held_back)
{
	struct pvr_ring_state *ring = (void *)g->cq_ring.va;
	uint32_t handle;

	/* To the device the ring is full. */
	ring->rx.cons_head = PVR_CQNE_SLOTS;
	send_armed(env, 1);
	fg_end_close(&env->a);
	ring->rx.cons_head = 0;
	fg_advance(env->host, FG_SEC);
	while (fg_cq_event_poll(g, &handle))
		fail();
}

TEST_GUEST(guest, test_only_the_first_two_pages_of_a_ring_are_written)
{
	fg_fill(g->async_ring.va + 2 * PVR_PAGE_SIZE, 2 * PVR_PAGE_SIZE, 5);
	for (int i = 0; i < 1300; i++) {
		toggle_link(env, 1 + i % 2);
		fg_events_count(g, 0, 0);
	}
	assert_int_equal(fg_mismatch(g->async_ring.va + 2 * PVR_PAGE_SIZE, 2 * PVR_PAGE_SIZE, 5),
			 2 * PVR_PAGE_SIZE);
}

TEST_GUEST(guest, test_device_keeps_its_own_producer_index)
{
	static const uint32_t bad[] = { 5, 1023, 1024, 0x7fffffff, UINT32_MAX };
	struct pvr_ring_state *ring = (void *)g->async_ring.va;

	for (uint32_t i = 0; i < COUNT(bad); i++) {
		ring->rx.prod_tail = bad[i];
		t_set_link(g, i % 2);
		assert_int_equal(ring->rx.prod_tail, i + 1);
	}
}

TEST_GUEST(rc_connected, test_bad_consumer_indices_are_safe)
{
	static const uint32_t bad[] = { 1, 511, 512, 513, 1023, 1024, 2048, 1u << 31, UINT32_MAX };
	struct pvr_ring_state *async = (void *)g->async_ring.va;
	struct pvr_ring_state *cq = (void *)g->cq_ring.va;

	for (size_t i = 0; i < COUNT(bad); i++) {
		async->rx.cons_head = bad[i];
		cq->rx.cons_head = bad[i];
		send_armed(env, i);
		toggle_link(env, 2);
		assert_in_range(async->rx.prod_tail, 0, 1023);
		assert_in_range(cq->rx.prod_tail, 0, 2047);
	}
	expect_ok(fg_guest_boot(g));
	toggle_link(env, 1);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(guest, test_tx_half_of_the_ring_state_is_not_written)
{
	struct pvr_ring_state *ring = (void *)g->async_ring.va;

	ring->tx.prod_tail = 0x1234;
	ring->tx.cons_head = 0x5678;
	toggle_link(env, 10);
	assert_int_equal(ring->tx.prod_tail, 0x1234);
	assert_int_equal(ring->tx.cons_head, 0x5678);
	assert_int_equal(ring->rx.cons_head, 0);
}

TEST_GUEST(rc_connected, test_reset_while_events_are_held_back)
{
	struct pvr_ring_state *cq = (void *)g->cq_ring.va;
	struct pvr_ring_state *async = (void *)g->async_ring.va;

	cq->rx.cons_head = PVR_CQNE_SLOTS;
	async->rx.cons_head = PVR_EQE_SLOTS;
	send_armed(env, 1);
	toggle_link(env, 3);
	pvr_adapter_fail(g->adapter, "a test");
	pvr_adapter_fail(g->adapter, "a test, again");
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	fg_advance(env->host, FG_SEC);
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
	expect_ok(fg_guest_boot(g));
	fg_advance(env->host, FG_SEC);
	expect_no_event(g);
	assert_int_equal(fg_cq_events_pending(g), 0);
}

TEST_GUEST(guest, test_failure_of_the_device_is_an_event)
{
	pvr_adapter_fail(g->adapter, "a test");
	fg_run(env->host);
	assert_int_equal(fg_events_count(g, PVR_EVENT_DEVICE_FATAL, 0), 1);
	assert_int_equal(g->irq[PVR_VEC_ASYNC], 1);
	assert_int_equal(env->host->logged[PVR_LOG_ERR], 1);
}
