// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion vectors: their rings, and which interrupt and ring a CQ's notification takes. */
#include "fg_migrate.h"
#include "objects.h"

#define LAST (PVR_CQ_VECTORS_MAX - 1)

TEST_EXT(PVR_EXT_CQ_VECTORS | PVR_EXT_RESIZE)

/* A pair whose receiving CQ is on a completion vector of g[1]. */
struct pair {
	struct t_env *env;
	uint32_t vector;
	struct fg_end a, b;
};

static void pair_open(struct pair *p, struct t_env *env, uint32_t vector)
{
	struct fg_cq cq;

	p->env = env;
	p->vector = vector;
	fg_end_open(&p->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&p->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_cq_create_on(&env->g[1]->kernel, vector, FG_END_CQE, &cq));
	t_qp_replace(&p->b, (struct fg_qp_spec){ .rcq = &cq });
	expect_ok(fg_cq_destroy(&p->b.rcq));
	p->b.rcq = cq;
	fg_end_connect(&p->a, &p->b, NULL);
}

/* A completion on an armed CQ; nothing runs. */
static void post_message(struct pair *p)
{
	fg_cq_arm(&p->b.rcq);
	t_recv(&p->b, 1, 0, 0);
	t_send(&p->a, 1, 0, 0);
}

static void message(struct pair *p)
{
	post_message(p);
	fg_run(p->env->host);
	fg_cq_drain(&p->a.scq);
	fg_cq_drain(&p->b.rcq);
}

/* All completion vectors of the second guest have rings. */
T_SETUP(vectors, guests)
{
	for (uint32_t v = 1; v <= LAST; v++)
		expect_ok(fg_vector_open(env->g[1], v));
}

/* A pair on each of them. */
struct pairs {
	struct pair on[PVR_CQ_VECTORS_MAX];
};

static void pairs_open(struct pairs *pairs, struct t_env *env)
{
	for (uint32_t v = 0; v <= LAST; v++)
		pair_open(&pairs->on[v], env, v);
}

#define TEST_PAIRS(name) TEST_OBJECT(vectors, struct pairs, pairs, pairs_open, name)

/* The CQ of @p has caused so many notifications, and its ring is drained. */
static void expect_notified(struct pair *p, uint32_t n)
{
	assert_int_equal(fg_vector_count(p->env->g[1], p->vector, p->b.rcq.handle), n);
}

static struct pvr_ring_state *ring_of(struct t_env *env, uint32_t vector)
{
	struct fg_guest *g = env->g[1];

	return (void *)(vector ? g->vector[vector].buf.va : g->cq_ring.va);
}

/* To the device the ring is full, or empty again. */
static void fill_ring(struct t_env *env, uint32_t vector)
{
	ring_of(env, vector)->rx.cons_head = PVR_CQNE_SLOTS;
}

static void empty_ring(struct t_env *env, uint32_t vector)
{
	ring_of(env, vector)->rx.cons_head = 0;
}

/* Interrupts of a vector since the last call. */
static uint32_t irqs(struct t_env *env, uint32_t vector)
{
	uint32_t n = env->g[1]->irq[PVR_VEC_CQ + vector];

	env->g[1]->irq[PVR_VEC_CQ + vector] = 0;
	return n;
}

/* SET_CQ_RING with four pages. */
static struct pvr_cmd_set_cq_ring ring_request(struct fg_guest *g, uint32_t vector,
					       struct fg_buf *buf)
{
	fg_buf_init(buf, &g->ram, 4, FG_SCATTERED);
	return fg_cq_ring_request(vector, buf);
}

static uint32_t create_cq_on(struct fg_guest *g, uint32_t vector)
{
	struct fg_cq cq;
	uint32_t err = fg_cq_create_on(&g->kernel, vector, 64, &cq);

	if (!err)
		expect_ok(fg_cq_destroy(&cq));
	return err;
}

TEST(guest, test_register_has_their_number)
{
	assert_int_equal(fg_reg_read(env->g[0], PVR_REG_EXT_CQ_VECTORS), PVR_CQ_VECTORS_MAX);
	fg_reg_write(env->g[0], PVR_REG_EXT_CQ_VECTORS, 1);
	assert_int_equal(fg_reg_read(env->g[0], PVR_REG_EXT_CQ_VECTORS), PVR_CQ_VECTORS_MAX);
}

TEST_PAIRS(test_each_cq_notifies_on_its_vector)
{
	struct fg_guest *g = env->g[1];

	for (uint32_t v = 0; v <= LAST; v++) {
		memset(g->irq, 0, sizeof(g->irq));
		fg_reg_read(g, PVR_REG_ICR);
		message(&pairs->on[v]);
		for (uint32_t irq = 0; irq < PVR_VEC_MAX; irq++)
			assert_int_equal(g->irq[irq], irq == PVR_VEC_CQ + v);
		assert_int_equal(fg_reg_read(g, PVR_REG_ICR), v + PVR_VEC_CQ < PVR_ICR_LAST
								      ? PVR_ICR_CQ << v
								      : 1u << PVR_ICR_LAST);
		for (uint32_t other = 0; other <= LAST; other++)
			assert_int_equal(fg_vector_pending(g, other), other == v);
		expect_notified(&pairs->on[v], 1);
	}
}

/* ICR and IMR have 32 bits. */
TEST_PAIRS(test_vectors_from_31_on_share_a_bit_of_the_mask)
{
	const uint32_t last = 1u << PVR_ICR_LAST;
	struct fg_guest *g = env->g[1];

	memset(g->irq, 0, sizeof(g->irq));
	fg_reg_write(g, PVR_REG_IMR, last);
	message(&pairs->on[PVR_ICR_LAST - PVR_VEC_CQ - 1]);
	message(&pairs->on[PVR_ICR_LAST - PVR_VEC_CQ]);
	message(&pairs->on[LAST]);
	assert_int_equal(irqs(env, PVR_ICR_LAST - PVR_VEC_CQ - 1), 1);
	assert_int_equal(irqs(env, PVR_ICR_LAST - PVR_VEC_CQ), 0);
	assert_int_equal(irqs(env, LAST), 0);
	fg_reg_write(g, PVR_REG_IMR, PVR_IMR_ALL_ENABLED);
	assert_int_equal(irqs(env, PVR_ICR_LAST - PVR_VEC_CQ), 1);
	assert_int_equal(irqs(env, LAST), 1);
	fg_reg_write(g, PVR_REG_IMR, PVR_IMR_ALL_ENABLED);
	assert_int_equal(irqs(env, LAST), 0);
}

TEST(vectors, test_one_interrupt_per_vector_and_run)
{
	struct pair p[4];

	for (uint32_t i = 0; i < 4; i++)
		pair_open(&p[i], env, 1 + i / 2);
	for (uint32_t i = 0; i < 4; i++)
		post_message(&p[i]);
	fg_run(env->host);
	for (uint32_t v = 0; v <= 2; v++) {
		assert_int_equal(fg_vector_pending(env->g[1], v), v ? 2 : 0);
		assert_int_equal(irqs(env, v), v ? 1 : 0);
	}
}

TEST_GUEST(guest, test_vector_that_is_not_there_is_refused)
{
	static const uint32_t bad[] = { 1, 3, PVR_CQ_VECTORS_MAX, 0x80000000, UINT32_MAX };

	expect_ok(fg_vector_open(g, 2));
	expect_ok(create_cq_on(g, 0));
	expect_ok(create_cq_on(g, 2));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(create_cq_on(g, bad[i]), EINVAL);
	assert_int_equal(fg_stats(g).cqs, 0);
}

static const struct {
	const char *label;
	uint32_t vector, pages;
} bad_rings[] = {
	{ "vector 0", 0, 4 },
	{ "one vector too many", PVR_CQ_VECTORS_MAX, 4 },
	{ "vector 2^31", 1u << 31, 4 },
	{ "vector UINT32_MAX", UINT32_MAX, 4 },
	{ "no page", 1, 0 },
	{ "the header page only", 1, 1 },
	{ "513 pages", 1, 513 },
	{ "2^31 pages", 1, 1u << 31 },
	{ "UINT32_MAX pages", 1, UINT32_MAX },
};

TEST_CASES(guest, test_bad_vectors_and_page_counts_are_refused, bad_rings)
{
	struct fg_guest *g = env->g[0];
	struct fg_buf buf;
	struct pvr_cmd_set_cq_ring req = ring_request(g, row->vector, &buf);

	req.ring.num_pages = row->pages;
	assert_int_equal(fg_set_cq_ring(g, &req), EINVAL);
	assert_int_equal(create_cq_on(g, 1), EINVAL);
	expect_ok(fg_vector_open(g, 1));
}

TEST_PAIRS(test_ring_is_set_once)
{
	struct pvr_cmd_set_cq_ring req;
	struct fg_buf buf;

	req = ring_request(env->g[1], 1, &buf);
	assert_int_equal(fg_set_cq_ring(env->g[1], &req), EBUSY);
	message(&pairs->on[1]);
	expect_notified(&pairs->on[1], 1);
}

TEST_GUEST(guest, test_bad_directories_and_pages_are_refused)
{
	struct fg_buf buf;
	struct pvr_cmd_set_cq_ring req = ring_request(g, 1, &buf);
	struct t_bad_page bad = { .buf = &buf, .npages = 4, .pdir_dma = &req.ring.pdir_dma };

	while (t_next_bad_page(&bad)) {
		assert_int_equal(fg_set_cq_ring(g, &req), EFAULT);
		assert_int_equal(create_cq_on(g, 1), EINVAL);
	}
	expect_ok(fg_vector_open(g, 1));
	expect_ok(create_cq_on(g, 1));
}

static void boot_as_stock(struct fg_guest *g)
{
	fg_ctl(g, PVR_CTL_RESET);
	g->config.ext = 0;
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_stock_drivers_have_one_vector)
{
	struct pvr_cmd_set_cq_ring req;
	struct fg_buf buf;

	boot_as_stock(g);
	req = ring_request(g, 1, &buf);
	assert_int_equal(fg_set_cq_ring(g, &req), ENOSYS);
}

static const struct t_case garbage[] = {
	{ "1", 1 },
	{ "the last", LAST },
	{ "one too many", PVR_CQ_VECTORS_MAX },
	{ "UINT32_MAX", UINT32_MAX },
};

/* Such drivers put garbage where the vector is. */
TEST_CASES(guests, test_vector_of_a_stock_driver_is_ignored, garbage)
{
	struct fg_guest *g = env->g[1];
	uint8_t gid[16];
	struct pair p;

	boot_as_stock(g);
	fg_gid_from_mac(gid, g->config.mac);
	expect_ok(fg_bind_gid(g, 0, gid));
	pair_open(&p, env, row->value);
	irqs(env, 0);
	message(&p);
	assert_int_equal(irqs(env, 0), 1);
	assert_int_equal(fg_cq_events_count(g, p.b.rcq.handle), 1);
}

/* Each vector has a backlog of its own. */
TEST_PAIRS(test_full_ring_holds_up_no_other_vector)
{
	fill_ring(env, 1);
	message(&pairs->on[1]);
	message(&pairs->on[2]);
	assert_int_equal(fg_vector_pending(env->g[1], 1), 0);
	expect_notified(&pairs->on[2], 1);
	message(&pairs->on[2]);
	expect_notified(&pairs->on[2], 1);
	empty_ring(env, 1);
	fg_advance(env->host, FG_SEC);
	expect_notified(&pairs->on[1], 1);
	fg_advance(env->host, FG_SEC);
	expect_no_timer(env->host);
}

/* Its driver has not read for a while: the delay until the next try is at its maximum. */
TEST_PAIRS(test_adapter_with_a_full_ring_migrates)
{
	fill_ring(env, 1);
	message(&pairs->on[1]);
	fg_settle(env->host, 5 * FG_SEC);
	fg_migrate(env->g[1]);
	empty_ring(env, 1);
	fg_advance(env->host, FG_SEC);
	expect_notified(&pairs->on[1], 1);
}

TEST_PAIRS(test_all_vectors_full_at_once)
{
	for (uint32_t v = 0; v <= LAST; v++) {
		fill_ring(env, v);
		message(&pairs->on[v]);
		assert_int_equal(fg_vector_pending(env->g[1], v), 0);
		irqs(env, v);
	}
	for (uint32_t v = 0; v <= LAST; v++)
		empty_ring(env, v);
	fg_advance(env->host, FG_SEC);
	for (uint32_t v = 0; v <= LAST; v++) {
		expect_notified(&pairs->on[v], 1);
		assert_int_equal(irqs(env, v), 1);
	}
}

TEST_PAIRS(test_cq_destroyed_while_it_waits_for_room)
{
	struct pair q;

	pair_open(&q, env, LAST);
	fill_ring(env, LAST);
	message(&pairs->on[LAST]);
	message(&q);
	fg_end_close(&pairs->on[LAST].b);
	empty_ring(env, LAST);
	fg_advance(env->host, FG_SEC);
	assert_int_equal(fg_vector_pending(env->g[1], LAST), 1);
	expect_notified(&q, 1);
	fg_advance(env->host, FG_SEC);
	expect_no_timer(env->host);
}

TEST_PAIRS(test_ring_wraps_at_2048)
{
	for (uint32_t i = 1; i <= 4200; i++) {
		message(&pairs->on[3]);
		assert_int_equal(ring_of(env, 3)->rx.prod_tail, i % 2048);
		expect_notified(&pairs->on[3], 1);
	}
}

TEST_PAIRS(test_wild_indices_are_safe)
{
	static const uint32_t bad[] = { 1, 1023, 1024, 1025, 2048, 1u << 31, UINT32_MAX };
	struct pvr_ring_state *ring = ring_of(env, 1);

	for (size_t i = 0; i < COUNT(bad); i++) {
		ring->rx.cons_head = bad[i];
		ring->rx.prod_tail = bad[i];
		message(&pairs->on[1]);
		fg_advance(env->host, FG_SEC);
	}
	empty_ring(env, 1);
	fg_advance(env->host, FG_SEC);
	message(&pairs->on[1]);
	assert_in_range(ring->rx.prod_tail, 1, COUNT(bad) + 1);
}

/* As the register says: bit n is of vector n. */
TEST_PAIRS(test_masked_vector_is_raised_when_unmasked)
{
	fg_reg_write(env->g[1], PVR_REG_IMR, 1u << (PVR_VEC_CQ + 4));
	message(&pairs->on[4]);
	message(&pairs->on[4]);
	message(&pairs->on[5]);
	assert_int_equal(irqs(env, 4), 0);
	assert_int_equal(irqs(env, 5), 1);
	fg_reg_write(env->g[1], PVR_REG_IMR, PVR_IMR_ALL_ENABLED);
	assert_int_equal(irqs(env, 4), 1);
	expect_notified(&pairs->on[4], 2);
}

TEST_PAIRS(test_reset_forgets_the_rings)
{
	struct fg_guest *g = env->g[1];
	struct pvr_ring_state *ring = ring_of(env, 1);

	ring->rx.cons_head = PVR_CQNE_SLOTS;
	message(&pairs->on[1]);
	fg_ctl(g, PVR_CTL_RESET);
	ring->rx.cons_head = 0;
	fg_advance(env->host, FG_SEC);
	assert_int_equal(ring->rx.prod_tail, 0);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(create_cq_on(g, 1), EINVAL);
	expect_ok(fg_vector_open(g, 1));
	expect_ok(create_cq_on(g, 1));
	/* A new driver that finds no reset done. */
	expect_ok(fg_guest_boot(g));
	assert_int_equal(create_cq_on(g, 1), EINVAL);
}

TEST_GUEST(guest, test_ring_whose_memory_goes_fails_the_device)
{
	for (uint32_t page = 0; page < 2; page++) {
		struct pvr_cmd_set_cq_ring req;
		struct fg_buf buf;

		t_plug_spare(g);
		fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
		fg_buf_table(&buf, 0)[page] = T_SPARE_GPA;
		req = fg_cq_ring_request(LAST, &buf);
		expect_ok(fg_set_cq_ring(g, &req));
		t_unplug_spare(g);
		assert_int_equal(fg_stats(g).state, PVR_ADAPTER_FAILED);
		expect_ok(fg_guest_boot(g));
	}
}

TEST(guests, test_two_rings_on_the_same_pages_are_safe)
{
	struct fg_guest *g = env->g[1];
	struct pvr_cmd_set_cq_ring req;
	struct pair p, q;

	expect_ok(fg_vector_open(g, 1));
	req = fg_cq_ring_request(2, &g->vector[1].buf);
	expect_ok(fg_set_cq_ring(g, &req));
	req = fg_cq_ring_request(3, &g->async_ring);
	expect_ok(fg_set_cq_ring(g, &req));
	pair_open(&p, env, 2);
	pair_open(&q, env, 3);
	for (int i = 0; i < 2100; i++) {
		message(&p);
		message(&q);
	}
	expect_ok(fg_guest_boot(g));
}

TEST_PAIRS(test_resized_cq_keeps_its_vector)
{
	expect_ok(fg_cq_resize(&pairs->on[6].b.rcq, 1024));
	message(&pairs->on[6]);
	expect_notified(&pairs->on[6], 1);
}
