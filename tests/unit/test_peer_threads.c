// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two workers in threads of their own: a sender of one uses the state of a peer of the other,
 * while that peer loses its memory or is removed.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ends.h"
#include "fg_worker_pool.h"

#define SLOTS 128u /* pages that are a region of RAM each */
#define RECVS 128 /* the shortest receive queue that is polled */
#define ROUNDS 24
#define HANG_SECONDS 30
#define TRY_NS (20 * FG_MS)

TEST_EXT(PVR_ENGINE_EXT)

struct pool_env {
	struct t_env env; /* first, for t_teardown() */
	struct fg_worker_pool *pool;
};

/* The first pages of what must be contiguous become a region each. */
static void split_ram(struct fg_guest *g)
{
	const struct fg_ram_region *last = &g->ram.region[FG_RAM_REGIONS - 1];
	uint32_t page = last->page0, end = g->ram.npages, n;

	pvr_adapter_unmap_ram(g->adapter, last->gpa, last->size);
	for (; page < end; page += n) {
		n = 1;
		if (page < g->ram.linear0)
			n = g->ram.linear0 - page;
		else if (page >= g->ram.linear0 + SLOTS)
			n = end - page;
		expect_ok(pvr_adapter_map_ram(g->adapter, fg_page_gpa(&g->ram, page),
					      (uint64_t)n << PVR_PAGE_SHIFT,
					      fg_page_va(&g->ram, page), true));
	}
}

static struct fg_guest *guest_on(struct fg_host *host, uint32_t number, unsigned int worker)
{
	struct fg_guest_config config;
	struct fg_guest *g;
	uint8_t gid[16];

	fg_guest_config_init(&config, number);
	config.worker = worker;
	g = fg_guest_create(host, &config);
	split_ram(g);
	expect_ok(fg_guest_boot(g));
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(g, 0, gid));
	return g;
}

/* vm1 on the first worker, vm2 and vm3 on the second. */
static int setup(void **state)
{
	struct pool_env *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	*state = c;
	c->env.host = fg_host_create_workers(2);
	for (uint32_t i = 0; i < 3; i++)
		c->env.g[i] = guest_on(c->env.host, i + 1, i > 0);
	return 0;
}

static int teardown(void **state)
{
	struct pool_env *c = *state;

	fg_worker_pool_stop(c->pool);
	return t_teardown(state);
}

#define TEST_POOL(name) TEST_WITH(struct t_env *env, setup, teardown, name)
#define TEST_POOL_CASES(name, rows) TEST_CASES_WITH(struct t_env *env, setup, teardown, name, rows)

/* From here on nothing may call fg_run(). */
static void go(struct t_env *env)
{
	((struct pool_env *)env)->pool = fg_worker_pool_start(env->host);
}

static void stop_the_world(struct t_env *env)
{
	fg_worker_pool_pause(((struct pool_env *)env)->pool);
}

static void start_the_world(struct t_env *env)
{
	fg_worker_pool_resume(((struct pool_env *)env)->pool);
}

#define wait_until(condition)                                                    \
	do {                                                                     \
		uint64_t hang_at = fg_worker_pool_now() + HANG_SECONDS * FG_SEC; \
		while (!(condition) && fg_worker_pool_now() < hang_at)           \
			sched_yield();                                           \
		assert_true(condition);                                          \
	} while (0)

/* ---------------------------------------------------------------- memory goes away */

/* The guest keeps its own view of the buffer. Any later access of the device is a fault. */
static void unplug(struct fg_guest *g, const struct fg_buf *buf)
{
	for (uint32_t i = 0; i < buf->npages; i++) {
		void *va = fg_page_va(&g->ram, buf->page[i]);

		assert_in_range(buf->page[i], g->ram.linear0, g->ram.linear0 + SLOTS - 1);
		pvr_adapter_unmap_ram(g->adapter, fg_buf_gpa(buf, (size_t)i * PVR_PAGE_SIZE),
				      PVR_PAGE_SIZE);
		assert_int_equal(mprotect(va, PVR_PAGE_SIZE, PROT_NONE), 0);
	}
}

static const struct wait {
	const char *label;
	uint8_t min_rnr_timer;
} waits[] = {
	{ "by retries", 1 }, /* 10 us: too short for polls */
	{ "by polls", 14 }, /* 1 ms */
	{ "by a doorbell", T_RNR_LONGEST },
};

/* A sender without a receive request looks at its peer's receive ring again and again. */
TEST_POOL_CASES(test_receive_ring_goes_under_a_waiting_sender, waits)
{
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, row->min_rnr_timer);
	const struct fg_qp_spec spec = {
		.kind = FG_LINEAR, .sq_wr = 16, .rq_wr = RECVS, .sq_sge = 1, .rq_sge = 1
	};

	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	go(env);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct fg_qp near = t_qp_create(&env->b, spec);
		uint64_t naks = fg_stats(env->g[1]).rnr_naks;

		expect_ok(fg_qp_connect(&near, &conn, env->a.gid, env->a.qp.qpn));
		expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, near.qpn));
		t_send(&env->a, n, 0, 64);
		wait_until(fg_stats(env->g[1]).rnr_naks > naks);
		for (volatile uint32_t delay = n * 2000; delay; delay--)
			;
		unplug(env->g[1], &near.buf);
		for (volatile uint32_t delay = 20000; delay; delay--)
			;
		expect_ok(fg_qp_to_err(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->a.qp));
		fg_cq_drain(&env->a.scq);
		expect_ok(fg_qp_destroy(&near));
	}
}

/* ------------------------------------------------------------- a peer is removed */

/* Gives up after a few microseconds. */
static const struct fg_conn hasty = {
	.mtu = PVR_MTU_1024,
	.access = FG_ACCESS_ALL,
	.timeout = 1,
	.retry_cnt = 1,
	.rnr_retry = 1,
	.min_rnr_timer = 1,
	.max_rd_atomic = 16,
	.max_dest_rd_atomic = 16,
};

static void write_all(struct fg_end *from, const struct fg_end *to, uint32_t *n)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&from->scq, &cqe))
		;
	while (t_try_put_write(from, to, ++*n))
		;
	fg_ring_send(&from->qp);
}

static uint64_t contended(const struct t_env *env)
{
	struct pvr_worker_stats stats;

	pvr_engine_worker_stats(env->host->engine, 0, &stats);
	return stats.lock_contended;
}

/*
 * Both workers use the lock of vm4 until the first one has found it locked, if that happens in
 * time. vm1 still sends when vm4 is removed.
 */
TEST_POOL(test_contended_peer_is_removed_under_load)
{
	struct fg_end near, far;
	uint32_t n = 0;

	go(env);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t before = contended(env), end = fg_worker_pool_now() + TRY_NS;

		stop_the_world(env);
		env->g[3] = guest_on(env->host, 4, 1);
		start_the_world(env);
		fg_end_open(&near, env->g[0], PVR_QPT_RC);
		fg_end_open(&far, env->g[3], PVR_QPT_RC);
		expect_ok(fg_qp_connect(&near.qp, &hasty, far.gid, far.qp.qpn));
		expect_ok(fg_qp_connect(&far.qp, &hasty, near.gid, near.qp.qpn));
		do {
			write_all(&near, &far, &n);
			write_all(&far, &near, &n);
		} while (contended(env) == before && fg_worker_pool_now() < end);
		stop_the_world(env);
		fg_guest_destroy(env->g[3]);
		env->g[3] = NULL;
		start_the_world(env);
		write_all(&near, &far, &n);
		for (volatile uint32_t delay = i * 2000; delay; delay--)
			;
		fg_end_close(&near);
	}
}

/* ------------------------------------------------------------ destinations change */

static const uint8_t moving[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

struct mover {
	struct t_env *env;
	pthread_t thread;
	bool done;
	unsigned int flows;
};

static void count_flow(void *opaque, const struct pvr_flow_stats *stats)
{
	struct mover *mover = opaque;

	mover->flows += stats->messages > 0;
}

/* The GID is at vm2 and at vm3 in turn, and meanwhile nowhere; all paths are listed. */
static void *move(void *opaque)
{
	struct mover *mover = opaque;

	for (uint32_t i = 0; i < 10 * ROUNDS; i++) {
		struct fg_guest *to = mover->env->g[1 + i % 2];

		expect_ok(fg_bind_gid(to, 1, moving));
		pvr_engine_for_each_flow(mover->env->host->engine, count_flow, mover);
		sched_yield();
		expect_ok(fg_unbind_gid(to, 1, moving));
	}
	__atomic_store_n(&mover->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void await_ok(struct fg_cq *cq)
{
	struct pvrdma_cqe cqe;

	wait_until(fg_cq_pending(cq));
	assert_true(fg_cq_poll(cq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
}

static void send_moving(struct t_env *env, uint64_t wr_id)
{
	struct pvrdma_av av = fg_av(&env->a.pd, moving, 0);

	t_post(&env->a, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, T_UD(&av, &env->b),
	       T_SGE(&env->a.mr, 0, 64));
	await_ok(&env->a.scq);
}

TEST_POOL(test_gid_moves_under_datagrams)
{
	struct mover mover = { .env = env };
	uint64_t n = 0;

	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
	for (uint32_t i = 0; i < 32; i++)
		t_recv(&env->b, i, 0, 400);
	go(env);
	assert_int_equal(pthread_create(&mover.thread, NULL, move, &mover), 0);
	while (!__atomic_load_n(&mover.done, __ATOMIC_ACQUIRE))
		send_moving(env, n++);
	pthread_join(mover.thread, NULL);
	fg_cq_drain(&env->b.rcq);
	expect_ok(fg_bind_gid(env->g[1], 1, moving));
	t_recv(&env->b, 99, 0, 400);
	send_moving(env, n);
	await_ok(&env->b.rcq);
}
