// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_DB_SUPPRESS: send queues that the worker polls, and guests that overwrite them. */
#include <pthread.h>
#include <stdlib.h>

#include "db_suppress.h"

#define POLLED 64 /* of an adapter, at most */
#define CROWD 80
#define TURNS 1024 /* of others, until a queue pair that is idle is not polled any more */
#define ROUNDS 4000

TEST_EXT(PVR_ENGINE_EXT)

static bool is_polled(const struct fg_end *end)
{
	return sq_word(end) != 0;
}

/* a is polled, b is not. */
T_SETUP(polled, rc_idle)
{
	poll(env);
	t_write(&env->a, &env->b, 0);
	await_written(&env->a, 0);
	assert_true(is_polled(&env->a));
	assert_false(is_polled(&env->b));
}

TEST(polled, test_polled_queue_pair_needs_no_doorbell)
{
	uint64_t rung = env->g[0]->doorbells;

	for (uint32_t i = 0; i < 100; i++) {
		assert_false(poll(env));
		t_write(&env->a, &env->b, i);
		assert_true(poll(env));
		await_written(&env->a, i);
	}
	assert_int_equal(env->g[0]->doorbells, rung);
}

TEST(rc_idle, test_without_polling_no_qp_is_polled)
{
	t_write(&env->a, &env->b, 0);
	fg_run(env->host);
	assert_false(is_polled(&env->a));
	t_put_write(&env->a, &env->b, 1);
	await_written(&env->a, 0);
	expect_no_cqe(&env->a.scq);
}

TEST(rc_connected, test_queue_of_a_stock_driver_is_not_polled)
{
	struct fg_end c, d;

	pvr_adapter_reset(env->g[0]->adapter);
	env->g[0]->config.ext = 0;
	expect_ok(fg_guest_boot(env->g[0]));
	expect_ok(fg_bind_gid(env->g[0], 0, env->a.gid));
	t_open_pair(&c, env->g[0], &d, env->g[0]);
	poll(env);
	t_write(&c, &d, 0);
	fg_run(env->host);
	t_put_write(&c, &d, 1);
	assert_false(poll(env));
	await_written(&c, 0);
	expect_no_cqe(&c.scq);
}

TEST(polled, test_enabled_doorbell_is_needed_again)
{
	assert_true(enable_doorbells(env));
	assert_false(is_polled(&env->a));
	t_write(&env->a, &env->b, 1);
	await_written(&env->a, 1);
	/* The QP is not polled until the next pvr_engine_poll(). */
	assert_false(is_polled(&env->a));
	assert_true(enable_doorbells(env));
}

TEST(polled, test_enable_doorbells_reports_new_posts)
{
	t_write(&env->a, &env->b, 1);
	assert_false(enable_doorbells(env));
	await_written(&env->a, 1);
	assert_false(is_polled(&env->a));
	assert_true(enable_doorbells(env));
}

/* ---------------------------------------------------------------- the set */

/* Queue pairs that are connected to themselves; all have worked, one after the other. */
struct crowd {
	struct fg_end from[CROWD];
};

static void crowd_write(struct t_env *env, struct fg_end *end, uint64_t wr_id)
{
	t_write(end, end, wr_id);
	await_written(end, wr_id);
}

static void crowd_begin(struct crowd *crowd, struct t_env *env)
{
	struct fg_qp_spec spec = {
		.type = PVR_QPT_RC, .sq_wr = 4, .rq_wr = 4, .sq_sge = 1, .rq_sge = 1
	};

	for (uint32_t i = 0; i < CROWD; i++) {
		fg_end_open_spec(&crowd->from[i], &env->g[0]->kernel, &spec, 1);
		fg_end_connect(&crowd->from[i], &crowd->from[i], NULL);
	}
	fg_run(env->host);
	poll(env);
	for (uint32_t i = 0; i < CROWD; i++)
		crowd_write(env, &crowd->from[i], i);
}

#define TEST_CROWD(name) TEST_OBJECT(rc, struct crowd, crowd, crowd_begin, name)

TEST_CROWD(test_only_so_many_are_polled_those_that_were_busy_last)
{
	struct fg_end *oldest = &crowd->from[CROWD - POLLED];
	uint32_t polled = 0;

	for (uint32_t i = 0; i < CROWD; i++)
		assert_int_equal(is_polled(&crowd->from[i]), i >= CROWD - POLLED);
	/* The QP that worked last is evicted last. */
	t_write(oldest, oldest, 1000);
	poll(env);
	fg_run(env->host);
	crowd_write(env, &crowd->from[0], 1001);
	assert_true(is_polled(oldest));
	assert_false(is_polled(oldest + 1));
	for (uint32_t i = 0; i < CROWD; i++)
		polled += is_polled(&crowd->from[i]);
	assert_int_equal(polled, POLLED);
}

/* Before eviction the send queue is checked once more: a write posted meanwhile is sent. */
TEST_CROWD(test_evicted_qp_is_polled_once_more)
{
	struct fg_end *oldest = &crowd->from[CROWD - POLLED];

	t_put_write(oldest, oldest, 1000);
	crowd_write(env, &crowd->from[0], 1001);
	expect_written(oldest, 1000);
}

TEST(polled, test_idle_qp_among_busy_ones_is_not_polled)
{
	struct fg_end c;

	t_open_self(&c, env->g[0]);
	for (uint32_t i = 0; i < 10 * TURNS; i++)
		assert_false(poll(env));
	assert_true(is_polled(&env->a));
	for (uint32_t i = 0; i < TURNS + 10; i++) {
		t_write(&c, &c, i);
		poll(env);
		await_written(&c, i);
		if (i < TURNS - 10)
			assert_true(is_polled(&env->a));
	}
	assert_false(is_polled(&env->a));
	assert_true(is_polled(&c));
	t_write(&env->a, &env->b, 1);
	await_written(&env->a, 1);
}

/* ---------------------------------------------- what happens to the polled */

TEST(polled, test_polled_queue_pair_is_reset)
{
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_false(is_polled(&env->a));
	t_put_write(&env->a, &env->b, 1);
	assert_false(poll(env));
	env->host->polls = true;
	t_reconnect(env);
	t_ping_pong(env->host, &env->a, &env->b);
}

/*
 * DESTROY_QP of a UD queue pair sends what was posted without a doorbell. The turn for it must take
 * the queue pair off the list of polled ones, which otherwise keeps a pointer to freed memory.
 */
TEST(ud_ready, test_polled_ud_queue_pair_is_destroyed_with_a_datagram_posted)
{
	struct fg_end c;

	fg_end_open(&c, env->g[0], PVR_QPT_UD);
	fg_end_ready(&c);
	fg_run(env->host);
	poll(env);
	for (uint32_t i = 1; i <= 3; i++)
		t_recv(&env->b, i, 0, 200);
	t_send_ud(&env->a, &env->b, 1, 0, 100);
	await_recv(&env->b.rcq, 1, 140);
	assert_true(is_polled(&env->a));
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	expect_ok(fg_qp_destroy(&env->a.qp));
	expect_recv(&env->b.rcq, 2, 140);
	poll(env);
	assert_true(enable_doorbells(env));
	poll(env);
	t_send_ud(&c, &env->b, 3, 0, 100);
	await_recv(&env->b.rcq, 3, 140);
	assert_true(enable_doorbells(env));
}

TEST(polled, test_polled_queue_pair_fails)
{
	t_put_write(&env->a, &env->b, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	await_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_false(is_polled(&env->a));
	assert_false(poll(env));
	t_write(&env->a, &env->b, 2);
	await_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(polled, test_polled_queue_pair_is_drained)
{
	t_put_write(&env->a, &env->b, 1);
	t_qp_set_state(&env->a, PVR_QPS_SQD);
	assert_true(fg_run_bounded(env->host, 4));
	assert_false(poll(env));
	expect_no_cqe(&env->a.scq);
	t_qp_set_state(&env->a, PVR_QPS_RTS);
	await_written(&env->a, 1);
}

TEST(polled, test_polled_queue_pair_and_its_adapter_go)
{
	fg_end_close(&env->a);
	assert_false(poll(env));
	t_open_self(&env->a, env->g[0]);
	t_write(&env->a, &env->a, 1);
	fg_run(env->host);
	assert_true(is_polled(&env->a));
	pvr_adapter_reset(env->g[0]->adapter);
	assert_false(poll(env));
	fg_guest_unplug(env->g[0]);
	assert_false(poll(env));
	assert_true(enable_doorbells(env));
}

TEST(polled, test_wild_index_while_polled_fails_the_queue_pair)
{
	env->a.qp.ring->tx.prod_tail = 5000;
	assert_true(poll(env));
	fg_run(env->host);
	expect_state(&env->a, PVR_QPS_ERR);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_QP_FATAL, env->a.qp.handle), 1);
	assert_false(poll(env));
}

/* -------------------------------------------------------- hostile guests */

struct scribbler {
	pthread_t thread;
	struct t_env *env;
	bool indices, words; /* what it writes to */
	bool stop;
};

static void *scribble(void *opaque)
{
	struct scribbler *s = opaque;
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&s->env->a.qp);
	struct pvr_ring_state *ring_shm = s->env->a.qp.ring;
	uint32_t rnd = 12345;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		rnd = rnd * 1664525u + 1013904223u;
		if (s->words) {
			__atomic_store_n(&words_shm->sq, rnd >> 30, __ATOMIC_RELAXED);
			__atomic_store_n(&words_shm->rq, rnd >> 8, __ATOMIC_RELAXED);
		}
		if (s->indices) {
			__atomic_store_n(&ring_shm->tx.prod_tail, rnd >> 25, __ATOMIC_RELAXED);
			__atomic_store_n(&ring_shm->rx.prod_tail, rnd >> 25, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void revive(struct t_env *env)
{
	struct fg_end *ends[2] = { &env->a, &env->b };

	for (uint32_t i = 0; i < 2; i++) {
		fg_cq_drain(&ends[i]->scq);
		fg_cq_drain(&ends[i]->rcq);
		fg_events_count(env->g[i], 0, 0);
	}
	t_reconnect(env);
}

static const struct {
	const char *label;
	bool indices, words;
} targets[] = {
	{ "words", .words = true },
	{ "ring indices", .indices = true },
	{ "words and ring indices", .words = true, .indices = true },
};

/* a and b may fail at any time; every message of vm3 and vm4 arrives at once. */
TEST_CASES(rc_connected, test_memory_overwritten_while_polled, targets)
{
	struct scribbler s = { .env = env, .indices = row->indices, .words = row->words };
	struct fg_end c, d;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&c, env->g[2], &d, env->g[3]);
	env->host->polls = true;
	assert_int_equal(pthread_create(&s.thread, NULL, scribble, &s), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		t_write(&c, &d, i);
		fg_put_recv(&env->b.qp, i, NULL, 0);
		/* The device consumes what the overwritten index says: so there may be no room. */
		t_try_put_write(&env->a, &env->b, i);
		/* What is flushed can be for ever "full" again. */
		for (uint32_t turns = 0; turns < 20 && !fg_cq_pending(&c.scq); turns++)
			fg_run_bounded(env->host, 2);
		expect_written(&c, i);
		if (i % 8 == 7)
			revive(env);
		if (i % 64 == 63)
			enable_doorbells(env);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	t_ping_pong(env->host, &c, &d);
	revive(env);
	t_ping_pong(env->host, &env->a, &env->b);
}
