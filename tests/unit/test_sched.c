// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Quanta of a worker, and the end of its run: by their number, and by time if they are long. */
#include "ends.h"

#include "rdma/worker.h"

#define REQUESTS 4096u /* 64 quanta */
#define RUN_QUANTA 32u
#define TICK 100000ull /* ns, the duration of a quantum */
#define LATE_QUANTA 7u /* after 0.5 ms, with the first one and the last one */

static uint64_t ticks;

static uint64_t ticking_clock(void)
{
	return ticks += TICK;
}

static uint64_t quanta(const struct t_env *env)
{
	struct pvr_worker_stats stats;

	pvr_engine_worker_stats(env->host->engine, 0, &stats);
	return stats.quanta;
}

/* Return: the number of quanta. */
static uint64_t run_once(const struct t_env *env)
{
	uint64_t before = quanta(env);

	pvr_engine_run(env->host->engine, 0);
	return quanta(env) - before;
}

T_SETUP(deep, guests)
{
	t_open_connected(env, &(struct fg_qp_spec){ .type = PVR_QPT_RC, .sq_wr = REQUESTS }, 1);
}

/* Without completions: they would not fit in the CQ. */
static void post_all(struct t_env *env)
{
	const struct fg_wr wr = {
		.opcode = PVRDMA_WR_RDMA_WRITE,
		T_SGE(&env->a.mr, 0, 8),
		T_REMOTE(&env->b.mr, 0),
	};

	for (uint32_t i = 0; i < REQUESTS; i++)
		assert_true(fg_put_send(&env->a.qp, &wr));
	fg_ring_send(&env->a.qp);
	ticks = env->host->now;
}

TEST(deep, test_run_has_so_many_quanta)
{
	post_all(env);
	assert_int_equal(run_once(env), RUN_QUANTA);
}

/* The clock advances whenever the device reads it. */
TEST(deep, test_run_with_long_quanta_ends_early)
{
	post_all(env);
	env->host->real_now = ticking_clock;
	assert_in_range(run_once(env), 2, LATE_QUANTA);
	assert_in_range(run_once(env), 2, LATE_QUANTA);
	env->host->real_now = NULL;
}

/* Quanta that do not use up their budget do not read the clock. */
TEST(deep, test_run_with_short_quanta_does_not_end_early)
{
	struct fg_end ends[RUN_QUANTA];

	for (uint32_t i = 0; i < RUN_QUANTA; i++)
		t_open_self(&ends[i], env->g[0]);
	for (uint32_t i = 0; i < RUN_QUANTA; i++)
		t_write(&ends[i], &ends[i], i);
	ticks = env->host->now;
	env->host->real_now = ticking_clock;
	assert_int_equal(run_once(env), RUN_QUANTA);
	env->host->real_now = NULL;
}

#define LARGE (1u << 20)
#define LARGE_PAGES (LARGE / PVR_PAGE_SIZE)

static void post_large(struct fg_end *from, const struct fg_end *to)
{
	const struct fg_wr wr = {
		.opcode = PVRDMA_WR_RDMA_WRITE,
		T_SGE(&from->mr, 0, LARGE),
		T_REMOTE(&to->mr, 0),
	};

	assert_true(fg_put_send(&from->qp, &wr));
	fg_ring_send(&from->qp);
}

static uint64_t quanta_of_all(const struct t_env *env)
{
	uint64_t before = quanta(env);

	fg_run(env->host);
	return quanta(env) - before;
}

/* What the log says of a worker that stands still. */
TEST(deep, test_request_of_a_worker_has_the_adapters_that_it_locks)
{
	struct pvr_engine *engine = env->host->engine;
	struct pvr_adapter *adapter = env->g[0]->adapter, *peer = env->g[1]->adapter;
	const char *name, *peer_name;

	assert_false(pvr_engine_worker_request(engine, 0, &name, &peer_name));
	pvr_adapter_lock(adapter);
	assert_true(pvr_engine_worker_request(engine, 0, &name, &peer_name));
	assert_string_equal(name, pvr_adapter_name(adapter));
	assert_null(peer_name);
	assert_true(pvr_adapter_lock_peer(adapter, peer));
	assert_true(pvr_engine_worker_request(engine, 0, &name, &peer_name));
	assert_string_equal(name, pvr_adapter_name(adapter));
	assert_string_equal(peer_name, pvr_adapter_name(peer));
	pvr_adapter_unlock_peer(adapter);
	pvr_adapter_unlock(adapter);
	assert_false(pvr_engine_worker_request(engine, 0, &name, &peer_name));
}

T_SETUP(large, guests)
{
	t_open_connected(env, &(struct fg_qp_spec){ .type = PVR_QPT_RC, .sq_wr = 4 }, LARGE_PAGES);
}

TEST(large, test_adapter_alone_has_quanta_of_256_kib)
{
	post_large(&env->a, &env->b);
	assert_in_range(quanta_of_all(env), 4, 8);
}

/* A small message of an adapter waits for a quantum of each other one. */
TEST(large, test_adapters_that_share_a_worker_have_quanta_of_64_kib)
{
	post_large(&env->a, &env->b);
	post_large(&env->b, &env->a);
	assert_in_range(quanta_of_all(env), 2 * 16 - 3, 2 * 17);
}
