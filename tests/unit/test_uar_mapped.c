// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Doorbells that the guest stores to memory: found, found when overwritten, and bounded. */
#include <pthread.h>
#include <sched.h>

#include "ends.h"

#define CROWD 200

TEST_INIT
{
	fg_default_uar_mapped = true;
}

static uint32_t *word(const struct fg_guest *g, uint32_t page, uint32_t offset)
{
	return g->uar_shm + (page * PVR_PAGE_SIZE + offset) / sizeof(uint32_t);
}

static void put_send(struct fg_end *end, uint64_t wr_id)
{
	t_put_send(end, wr_id, 0, 8);
}

static void put_recv(struct fg_end *end, uint64_t wr_id)
{
	t_put_recv(end, wr_id, 4096, 8);
}

/* As the worker does it: once around. */
static bool turn(struct t_env *env)
{
	bool found = pvr_engine_poll(env->host->engine, 0);

	return pvr_engine_run(env->host->engine, 0) || found;
}

TEST(rc_idle, test_stores_are_doorbells)
{
	uint64_t before = fg_stats(env->g[0]).doorbells;

	t_recv(&env->b, 1, 0, 8);
	put_send(&env->a, 2);
	await_no_cqe(&env->b.rcq);
	fg_ring_send(&env->a.qp);
	assert_int_not_equal(*word(env->g[0], 0, PVRDMA_UAR_QP_OFFSET), 0);
	assert_true(turn(env));
	assert_int_equal(*word(env->g[0], 0, PVRDMA_UAR_QP_OFFSET), 0);
	expect_recv(&env->b.rcq, 1, 8);
	expect_sent(&env->a, 2);
	assert_int_equal(fg_stats(env->g[0]).doorbells - before, 1);
	assert_int_equal(fg_stats(env->g[0]).doorbells_ignored, 0);
}

TEST(rc_idle, test_nothing_stored_is_nothing_to_do)
{
	put_send(&env->a, 2);
	for (int i = 0; i < 100; i++)
		assert_false(pvr_engine_poll(env->host->engine, 0));
}

/* Without a mapped page, trapped doorbells work as before. */
TEST(rc_idle, test_trapped_writes_work_too)
{
	uint32_t value = PVR_DB_QP_SEND | env->a.qp.handle;

	t_recv(&env->b, 1, 0, 8);
	put_send(&env->a, 2);
	pvr_adapter_uar_write(env->g[0]->adapter, PVRDMA_UAR_QP_OFFSET, &value, sizeof(value));
	await_recv(&env->b.rcq, 1, 8);
}

/* Connections that share the CQs and the doorbell page of a, and those of b. */
struct crowd {
	struct fg_end far[CROWD], near[CROWD];
};

static void crowd_open(struct crowd *crowd, struct t_env *env)
{
	const struct fg_qp_spec spec = { .sq_wr = 4, .rq_wr = 4 };

	for (uint32_t i = 0; i < CROWD; i++) {
		crowd->far[i] = env->a;
		crowd->far[i].qp = t_qp_create(&env->a, spec);
		crowd->near[i] = env->b;
		crowd->near[i].qp = t_qp_create(&env->b, spec);
		fg_end_connect(&crowd->far[i], &crowd->near[i], NULL);
	}
	fg_run(env->host);
}

#define TEST_CROWD(name) TEST_OBJECT(rc_connected, struct crowd, crowd, crowd_open, name)

/* A message each, without doorbells. */
static void crowd_put(struct crowd *crowd)
{
	for (uint32_t i = 0; i < CROWD; i++) {
		put_recv(&crowd->near[i], i);
		put_send(&crowd->far[i], i);
	}
}

TEST_CROWD(test_overwritten_send_doorbells_are_made_good)
{
	crowd_put(crowd);
	fg_ring_send(&crowd->far[CROWD / 2].qp);
	turn(env);
	assert_int_equal(fg_cq_pending(&env->a.scq), 1);
	fg_run(env->host);
	assert_int_equal(fg_cq_drain(&env->a.scq), CROWD);
	assert_int_equal(fg_cq_drain(&env->b.rcq), CROWD);
}

TEST_CROWD(test_one_poll_covers_few_objects)
{
	uint32_t polls = 0;

	fg_ring_send(&crowd->far[0].qp);
	while (pvr_engine_poll(env->host->engine, 0))
		polls++;
	/* One that finds the word, and then at most 64 objects a poll. */
	assert_true(polls >= 1 + CROWD / 64);
	assert_true(polls <= 3 + CROWD / 16);
}

TEST_CROWD(test_overwritten_receive_doorbells_wake_waiting_senders)
{
	for (uint32_t i = 0; i < 10; i++) {
		put_send(&crowd->far[i], i);
		fg_ring_send(&crowd->far[i].qp);
		fg_run(env->host);
	}
	assert_int_equal(fg_cq_pending(&env->a.scq), 0);
	for (uint32_t i = 0; i < 10; i++)
		put_recv(&crowd->near[i], i);
	fg_ring_recv(&crowd->near[9].qp);
	fg_run(env->host);
	assert_int_equal(fg_cq_drain(&env->a.scq), 10);
	assert_int_equal(fg_cq_drain(&env->b.rcq), 10);
}

TEST(rc_connected, test_overwritten_doorbell_of_an_srq_wakes_waiting_senders)
{
	struct fg_srq srq, other;
	struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, 8);
	struct fg_end far, near = env->b;

	fg_end_open(&far, env->g[0], PVR_QPT_RC);
	expect_ok(fg_srq_create(&env->b.pd, 16, 1, &srq));
	expect_ok(fg_srq_create(&env->b.pd, 16, 1, &other));
	near.qp = t_qp_create(&env->b, (struct fg_qp_spec){ .srq = &srq });
	fg_end_connect(&far, &near, NULL);
	put_send(&far, 1);
	fg_ring_send(&far.qp);
	await_no_cqe(&far.scq);
	assert_true(fg_put_srq_recv(&srq, 2, &sge, 1));
	fg_ring_srq(&srq);
	fg_ring_srq(&other);
	await_sent(&far, 1);
	expect_recv(&env->b.rcq, 2, 8);
}

TEST(rc_connected, test_overwritten_receive_doorbell_in_error_flushes)
{
	expect_ok(fg_qp_to_err(&env->b.qp));
	fg_run(env->host);
	put_recv(&env->b, 5);
	fg_ring_recv(&env->b.qp);
	fg_uar_write(env->g[1], 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | 9999);
	await_cqe(&env->b.rcq, 5, PVRDMA_WC_WR_FLUSH_ERR);
}

/* Doorbells of a context have no effect on another context's objects. */
TEST(rc_connected, test_other_contexts_are_not_swept)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_end user;
	struct fg_ctx ctx;

	t_open_user(&user, &ctx, env->g[0], &spec);
	fg_run(env->host);
	put_send(&env->a, 1);
	t_recv(&env->b, 1, 0, 8);
	fg_ring_send(&user.qp);
	fg_uar_write(env->g[0], ctx.uar, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | env->a.qp.handle);
	await_no_cqe(&env->a.scq);
	assert_int_equal(fg_stats(env->g[0]).doorbells_ignored, 1);
	fg_ring_send(&env->a.qp);
	await_sent(&env->a, 1);
}

TEST(rc_idle, test_other_offsets_and_pages_are_no_doorbells)
{
	uint32_t offset, page;

	t_recv(&env->b, 1, 0, 8);
	fg_run(env->host);
	put_send(&env->a, 1);
	for (offset = 12; offset < PVR_PAGE_SIZE; offset += 4)
		*word(env->g[0], 0, offset) = PVR_DB_QP_SEND | env->a.qp.handle;
	for (page = 1; page < PVR_MAX_UAR; page++)
		*word(env->g[0], page, PVRDMA_UAR_QP_OFFSET) = PVR_DB_QP_SEND | env->a.qp.handle;
	await_no_cqe(&env->a.scq);
}

/* A value from before the context's creation is not its doorbell. */
TEST(guest, test_new_context_begins_with_an_empty_page)
{
	struct fg_ctx ctx;

	*word(env->g[0], env->g[0]->uar_next, PVRDMA_UAR_QP_OFFSET) = PVR_DB_QP_SEND | 2;
	expect_ok(fg_ctx_create(env->g[0], &ctx));
	fg_run(env->host);
	assert_int_equal(fg_stats(env->g[0]).doorbells, 0);
	*word(env->g[0], ctx.uar, PVRDMA_UAR_CQ_OFFSET) = PVR_DB_CQ_ARM | 9999;
	fg_run(env->host);
	assert_int_equal(fg_stats(env->g[0]).doorbells, 1);
	expect_ok(fg_ctx_destroy(&ctx));
	*word(env->g[0], ctx.uar, PVRDMA_UAR_SRQ_OFFSET) = PVR_DB_SRQ_RECV | 2;
	env->g[0]->uar_next = ctx.uar;
	expect_ok(fg_ctx_create(env->g[0], &ctx));
	fg_run(env->host);
	assert_int_equal(fg_stats(env->g[0]).doorbells, 1);
}

TEST(rc_idle, test_reset_forgets_doorbells)
{
	fg_ring_send(&env->a.qp);
	pvr_adapter_reset(env->g[0]->adapter);
	assert_int_equal(*word(env->g[0], 0, PVRDMA_UAR_QP_OFFSET), 0);
	fg_ring_send(&env->a.qp);
	fg_cq_arm(&env->a.scq);
	assert_false(pvr_engine_poll(env->host->engine, 0));
	assert_true(pvr_engine_is_uar_mapped(env->host->engine, 0)); /* the other guest */
	expect_ok(fg_guest_boot(env->g[0]));
	assert_false(pvr_engine_poll(env->host->engine, 0));
}

TEST(unprobed, test_only_adapters_with_a_driver_are_polled)
{
	assert_false(pvr_engine_is_uar_mapped(env->host->engine, 0));
	expect_ok(fg_guest_boot(env->g[0]));
	assert_true(pvr_engine_is_uar_mapped(env->host->engine, 0));
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	assert_false(pvr_engine_is_uar_mapped(env->host->engine, 0));
	*word(env->g[0], 0, PVRDMA_UAR_QP_OFFSET) = PVR_DB_QP_SEND | 2;
	assert_false(pvr_engine_poll(env->host->engine, 0));
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	assert_true(pvr_engine_poll(env->host->engine, 0));
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
	assert_false(pvr_engine_is_uar_mapped(env->host->engine, 0));
}

/* Doorbells before a command take effect before the command. */
TEST(rc_idle, test_doorbells_come_before_commands)
{
	struct pvr_qp_attr attr;

	t_recv(&env->b, 1, 0, 8);
	put_send(&env->a, 2);
	fg_ring_send(&env->a.qp);
	expect_ok(fg_qp_query(&env->a.qp, &attr));
	assert_int_equal(*word(env->g[0], 0, PVRDMA_UAR_QP_OFFSET), 0);
	assert_true(pvr_engine_run(env->host->engine, 0) || fg_cq_pending(&env->a.scq));
	expect_sent(&env->a, 2);
}

/* Objects that are destroyed while their poll is pending. */
TEST_CROWD(test_objects_go_in_the_middle_of_a_sweep)
{
	crowd_put(crowd);
	fg_uar_write(env->g[0], 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | 9999);
	for (uint32_t i = 0; i < CROWD; i += 2) {
		expect_ok(fg_qp_destroy(&crowd->far[i].qp));
		if (!(i % 8))
			turn(env);
	}
	fg_run(env->host);
	/* Those that are left have sent, and some of the others before they went. */
	assert_true(fg_cq_pending(&env->b.rcq) >= CROWD / 2);
	for (uint32_t i = 1; i < CROWD; i += 2)
		expect_ok(fg_qp_destroy(&crowd->far[i].qp));
	fg_cq_drain(&env->a.scq);
	fg_cq_drain(&env->b.rcq);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_contexts_go_in_the_middle_of_a_sweep)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_end ends[8];
	struct fg_ctx ctx[8];

	for (uint32_t i = 0; i < 8; i++)
		t_open_user(&ends[i], &ctx[i], env->g[0], &spec);
	fg_run(env->host);
	for (uint32_t i = 0; i < 8; i++)
		fg_ring_send(&ends[i].qp);
	pvr_engine_poll(env->host->engine, 0);
	for (uint32_t i = 0; i < 8; i += 2) {
		fg_end_close(&ends[i]);
		expect_ok(fg_ctx_destroy(&ctx[i]));
	}
	fg_run(env->host);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* More contexts than one poll covers, each with a doorbell. */
struct contexts {
	struct fg_ctx ctx[150];
};

static void contexts_ring(struct contexts *c, struct t_env *env)
{
	for (uint32_t i = 0; i < COUNT(c->ctx); i++)
		expect_ok(fg_ctx_create(env->g[0], &c->ctx[i]));
	for (uint32_t i = 0; i < COUNT(c->ctx); i++)
		*word(env->g[0], c->ctx[i].uar, PVRDMA_UAR_CQ_OFFSET) = PVR_DB_CQ_ARM | 9999;
	assert_true(pvr_engine_poll(env->host->engine, 0));
}

TEST_OBJECT(guest, struct contexts, c, contexts_ring, test_many_contexts_all_get_their_turn)
{
	assert_in_range(fg_stats(env->g[0]).doorbells, 63, 64); /* one page is the kernel's */
	pvr_engine_poll(env->host->engine, 0);
	pvr_engine_poll(env->host->engine, 0);
	assert_int_equal(fg_stats(env->g[0]).doorbells, COUNT(c->ctx));
	expect_ok(fg_ctx_destroy(&c->ctx[40]));
	fg_run(env->host);
}

/* Contexts that the next poll would read, and whose objects it would, go before it. */
TEST_OBJECT(guest, struct contexts, c, contexts_ring, test_reset_in_the_middle_of_everything)
{
	struct fg_guest *g = env->g[0];

	pvr_adapter_reset(g->adapter);
	expect_ok(fg_guest_boot(g));
	fg_run(env->host);
	*word(g, 0, PVRDMA_UAR_CQ_OFFSET) = PVR_DB_CQ_ARM | 9999;
	fg_run(env->host);
	assert_int_equal(*word(g, 0, PVRDMA_UAR_CQ_OFFSET), 0);
}

static uint32_t random_number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Any value, anywhere, at any time: the neighbour is served, and the books are right. */
TEST(rc_connected, test_random_stores_do_no_harm)
{
	struct fg_end c, d;
	uint32_t seed = 1;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&c, env->g[2], &d, env->g[3]);
	for (int i = 0; i < 20000; i++) {
		uint32_t page = random_number(&seed) % 4;
		uint32_t offset = 4 * (random_number(&seed) % 4);
		uint32_t value = random_number(&seed) << 8 | random_number(&seed) % 256;

		if (!(i % 3))
			value = (value & 0xe0000000) | (value & 7);
		*word(env->g[0], page, offset) = value;
		if (!(i % 7))
			env->a.qp.ring->tx.prod_tail = random_number(&seed) % 80;
		if (!(i % 11))
			env->a.scq.ring->cons_head = random_number(&seed);
		turn(env);
		if (!(i % 1000))
			t_ping_pong(env->host, &c, &d);
		env->host->now += FG_US;
	}
}

/* ------------------------------------------------------- a guest with a vCPU of its own */

#define MESSAGES 20000u
#define PAIRS 8

struct vcpu {
	struct t_env *env;
	struct fg_end far[PAIRS], near[PAIRS];
	uint32_t done; /* the device's side may stop */
};

/* Posts everywhere and rings at once, so that doorbells overwrite each other. */
static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;
	struct pvrdma_cqe cqe;

	for (uint32_t i = 0; i < MESSAGES / PAIRS; i++) {
		for (uint32_t k = 0; k < PAIRS; k++) {
			put_send(&v->far[k], i);
			fg_ring_send(&v->far[k].qp);
		}
		for (uint32_t k = 0; k < PAIRS; k++)
			while (!fg_cq_poll(&v->far[k].scq, &cqe))
				sched_yield();
	}
	__atomic_store_n(&v->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(rc_connected, test_no_doorbell_is_lost_in_a_race)
{
	struct vcpu v = { .env = env };
	pthread_t thread;

	for (uint32_t k = 0; k < PAIRS; k++) {
		t_open_pair(&v.far[k], env->g[0], &v.near[k], env->g[1]);
		for (int i = 0; i < 32; i++)
			t_put_recv(&v.near[k], 0, 0, 8);
	}
	fg_run(env->host);
	assert_int_equal(pthread_create(&thread, NULL, run_vcpu, &v), 0);
	while (!__atomic_load_n(&v.done, __ATOMIC_ACQUIRE)) {
		turn(env);
		for (uint32_t k = 0; k < PAIRS; k++) {
			struct pvrdma_cqe cqe;

			while (fg_cq_poll(&v.near[k].rcq, &cqe))
				t_recv(&v.near[k], 0, 0, 8);
		}
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

#define ROUNDS 300

/* One of two that play ping-pong as stock programs do: each empty poll rings, too. */
struct player {
	struct fg_end *end;
	bool first;
	uint32_t done;
};

static void poll_until_one(struct fg_end *end, struct fg_cq *cq)
{
	struct pvrdma_cqe cqe;

	while (!fg_cq_poll(cq, &cqe)) {
		fg_cq_ring(cq, PVR_DB_CQ_POLL);
		sched_yield();
	}
	if (cqe.status != PVRDMA_WC_SUCCESS)
		fg_die("qp %u: status %u", end->qp.handle, cqe.status);
}

static void *play(void *arg)
{
	struct player *p = arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (!p->first)
			poll_until_one(p->end, &p->end->rcq);
		put_recv(p->end, i);
		fg_ring_recv(&p->end->qp);
		put_send(p->end, i);
		fg_ring_send(&p->end->qp);
		poll_until_one(p->end, &p->end->scq);
		if (p->first)
			poll_until_one(p->end, &p->end->rcq);
	}
	__atomic_store_n(&p->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(rc_connected, test_ping_pong_of_two_that_ring_all_the_time)
{
	struct player players[2] = { { .end = &env->a, .first = true }, { .end = &env->b } };
	pthread_t threads[2];
	uint32_t i;

	t_recv(&env->b, 0, 0, 8);
	fg_run(env->host);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
	for (i = 0; i < 2; i++) {
		while (!__atomic_load_n(&players[i].done, __ATOMIC_ACQUIRE)) {
			if (!turn(env))
				sched_yield();
			env->host->now += FG_US;
		}
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
}
