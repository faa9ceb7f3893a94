// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Send queues that are polled instead of kicked, and guests that make the worst of it. */
#include <pthread.h>
#include <stdlib.h>

#include "common.h"

#define POLLED 64 /* of an adapter, at most */
#define CROWD 80
#define TURNS 1024 /* of others, until a queue pair that is idle is not polled any more */
#define ROUNDS 4000

TEST_INIT
{
	fg_default_ext = PVR_ENGINE_EXT;
}

static bool is_polled(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_quiet(&end->qp)->sq, __ATOMIC_RELAXED) != 0;
}

static bool poll(struct t_env *env)
{
	return pvr_engine_poll(env->host->engine, 0);
}

static bool rest(struct t_env *env)
{
	return pvr_engine_rest(env->host->engine, 0);
}

static void write_to(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &to->mr, 0, 8);
}

/* What is not rung for, whatever the word says. Return: false if there is no room. */
static bool try_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	struct pvrdma_sge sge = fg_sge(&from->mr, 0, 8);
	struct fg_wr wr = { .wr_id = wr_id,
			    .opcode = PVRDMA_WR_RDMA_WRITE,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = to->mr.start,
			    .rkey = to->mr.rkey };

	return fg_put_send(&from->qp, &wr);
}

static void put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	assert_true(try_write(from, to, wr_id));
}

/* a is polled, b is not. */
static void begin(struct t_env *env)
{
	fg_run(env->host);
	poll(env);
	write_to(&env->a, &env->b, 0);
	fg_run(env->host);
	expect_done(&env->a.scq, 0, PVRDMA_WC_RDMA_WRITE);
	assert_true(is_polled(&env->a));
	assert_false(is_polled(&env->b));
}

TEST(rc_connected, test_polled_queue_pair_needs_no_doorbell)
{
	uint64_t rung;

	begin(env);
	rung = env->g[0]->doorbells;
	for (uint32_t i = 0; i < 100; i++) {
		assert_false(poll(env));
		write_to(&env->a, &env->b, i);
		assert_true(poll(env));
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_WRITE);
	}
	assert_int_equal(env->g[0]->doorbells, rung);
}

TEST(rc_connected, test_without_polling_nobody_is_looked_at)
{
	fg_run(env->host);
	write_to(&env->a, &env->b, 0);
	fg_run(env->host);
	assert_false(is_polled(&env->a));
	put_write(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 0, PVRDMA_WC_RDMA_WRITE);
	expect_no_cqe(&env->a.scq);
}

TEST(rc_connected, test_stock_driver_is_not_looked_at)
{
	struct fg_end c, d;

	pvr_adapter_reset(env->g[0]->adapter);
	env->g[0]->config.ext = 0;
	expect_ok(fg_guest_boot(env->g[0]));
	expect_ok(fg_bind_gid(env->g[0], 0, env->a.gid));
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[0], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	poll(env);
	write_to(&c, &d, 0);
	fg_run(env->host);
	put_write(&c, &d, 1);
	assert_false(poll(env));
	fg_run(env->host);
	expect_done(&c.scq, 0, PVRDMA_WC_RDMA_WRITE);
	expect_no_cqe(&c.scq);
}

TEST(rc_connected, test_at_rest_the_doorbell_counts_again)
{
	begin(env);
	assert_true(rest(env));
	assert_false(is_polled(&env->a));
	write_to(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	/* And nobody is kept until the next poll. */
	assert_false(is_polled(&env->a));
	assert_true(rest(env));
}

TEST(rc_connected, test_rest_tells_of_what_came_meanwhile)
{
	begin(env);
	write_to(&env->a, &env->b, 1);
	assert_false(rest(env));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_false(is_polled(&env->a));
	assert_true(rest(env));
}

/* ---------------------------------------------------------------- the set */

struct crowd {
	struct fg_end from[CROWD];
};

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
	for (uint32_t i = 0; i < CROWD; i++) {
		write_to(&crowd->from[i], &crowd->from[i], i);
		fg_run(env->host);
		expect_done(&crowd->from[i].scq, i, PVRDMA_WC_RDMA_WRITE);
	}
}

static uint32_t crowd_polled(const struct crowd *crowd)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CROWD; i++)
		n += is_polled(&crowd->from[i]);
	return n;
}

TEST(rc, test_only_so_many_are_polled_those_that_were_busy_last)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	crowd_begin(crowd, env);
	for (uint32_t i = 0; i < CROWD; i++)
		assert_int_equal(is_polled(&crowd->from[i]), i >= CROWD - POLLED);
	/* Who works again is the last to go. */
	write_to(&crowd->from[CROWD - POLLED], &crowd->from[CROWD - POLLED], 1000);
	poll(env);
	fg_run(env->host);
	write_to(&crowd->from[0], &crowd->from[0], 1001);
	fg_run(env->host);
	assert_true(is_polled(&crowd->from[CROWD - POLLED]));
	assert_false(is_polled(&crowd->from[CROWD - POLLED + 1]));
	assert_int_equal(crowd_polled(crowd), POLLED);
	free(crowd);
}

/* It has posted, and nobody has looked since; then it has to make room. */
TEST(rc, test_who_makes_room_is_looked_at_once_more)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct fg_end *oldest = &crowd->from[CROWD - POLLED];

	crowd_begin(crowd, env);
	put_write(oldest, oldest, 1000);
	write_to(&crowd->from[0], &crowd->from[0], 1001);
	fg_run(env->host);
	expect_done(&oldest->scq, 1000, PVRDMA_WC_RDMA_WRITE);
	expect_done(&crowd->from[0].scq, 1001, PVRDMA_WC_RDMA_WRITE);
	free(crowd);
}

TEST(rc_connected, test_who_is_idle_while_others_work_is_polled_no_more)
{
	struct fg_end c;

	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_connect(&c, &c, NULL);
	begin(env);
	for (uint32_t i = 0; i < 10 * TURNS; i++)
		assert_false(poll(env));
	assert_true(is_polled(&env->a));
	for (uint32_t i = 0; i < TURNS + 10; i++) {
		write_to(&c, &c, i);
		poll(env);
		fg_run(env->host);
		expect_done(&c.scq, i, PVRDMA_WC_RDMA_WRITE);
		if (i < TURNS - 10)
			assert_true(is_polled(&env->a));
	}
	assert_false(is_polled(&env->a));
	assert_true(is_polled(&c));
	write_to(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
}

/* ---------------------------------------------- what happens to the polled */

TEST(rc_connected, test_polled_queue_pair_is_reset)
{
	begin(env);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_false(is_polled(&env->a));
	put_write(&env->a, &env->b, 1);
	assert_false(poll(env));
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	env->host->polls = true;
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_polled_queue_pair_fails)
{
	begin(env);
	put_write(&env->a, &env->b, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_false(is_polled(&env->a));
	assert_false(poll(env));
	write_to(&env->a, &env->b, 2);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc_connected, test_polled_queue_pair_is_drained)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	begin(env);
	put_write(&env->a, &env->b, 1);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	assert_true(fg_run_bounded(env->host, 4));
	assert_false(poll(env));
	expect_no_cqe(&env->a.scq);
	attr.qp_state = PVR_QPS_RTS;
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
}

TEST(rc_connected, test_polled_queue_pair_and_its_adapter_go)
{
	begin(env);
	fg_end_close(&env->a);
	assert_false(poll(env));
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->a, NULL);
	write_to(&env->a, &env->a, 1);
	fg_run(env->host);
	assert_true(is_polled(&env->a));
	pvr_adapter_reset(env->g[0]->adapter);
	assert_false(poll(env));
	fg_guest_unplug(env->g[0]);
	assert_false(poll(env));
	assert_true(rest(env));
}

TEST(rc_connected, test_wild_index_while_polled_fails_the_queue_pair)
{
	begin(env);
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
	struct pvr_quiet *words_shm = fg_qp_quiet(&s->env->a.qp);
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
		fg_qp_to_reset(&ends[i]->qp);
		fg_events_count(env->g[i], 0, 0);
	}
	fg_end_connect(&env->a, &env->b, NULL);
}

/* a and b do what comes of it; every message of vm3 and vm4 arrives at once. */
static void scribble_while_polled(struct t_env *env, struct scribbler *s)
{
	struct fg_end c, d;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	fg_end_open(&c, env->g[2], PVR_QPT_RC);
	fg_end_open(&d, env->g[3], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	env->host->polls = true;
	s->env = env;
	assert_int_equal(pthread_create(&s->thread, NULL, scribble, s), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		write_to(&c, &d, i);
		fg_put_recv(&env->b.qp, i, &(struct pvrdma_sge){ 0 }, 0);
		/* The device consumes what the overwritten index says: so there may be no room. */
		try_write(&env->a, &env->b, i);
		/* What is flushed can be for ever "full" again. */
		for (uint32_t turns = 0; turns < 20 && !fg_cq_pending(&c.scq); turns++)
			fg_run_bounded(env->host, 2);
		expect_done(&c.scq, i, PVRDMA_WC_RDMA_WRITE);
		if (i % 8 == 7)
			revive(env);
		if (i % 64 == 63)
			rest(env);
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
	t_ping_pong(env->host, &c, &d);
	revive(env);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_words_overwritten_at_any_time)
{
	struct scribbler s = { .words = true };

	scribble_while_polled(env, &s);
}

TEST(rc_connected, test_indices_overwritten_while_polled)
{
	struct scribbler s = { .indices = true };

	scribble_while_polled(env, &s);
}

TEST(rc_connected, test_all_overwritten_while_polled)
{
	struct scribbler s = { .words = true, .indices = true };

	scribble_while_polled(env, &s);
}
