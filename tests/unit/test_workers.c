// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two workers in threads of their own, guests in others: nothing is lost, nothing hangs. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "ends.h"

#define MESSAGES 4000
#define SLOTS 16 /* of SLOT bytes, for each direction */
#define SLOT 512
#define HANG_SECONDS 30
#define SPINS 200 /* until others get the CPU */
#define GRH 40u

static const uint8_t group[16] = { 0xff, 0x12, [15] = 9 };

TEST_EXT(PVR_EXT_MCAST | PVR_EXT_PEER_GONE)

/* vm1 on the first worker, vm2 and vm3 on the second. */
struct pool_env {
	struct t_env env; /* first, for t_teardown() */
	struct fg_worker_pool *pool;
};

static struct fg_worker_pool *pool_of(struct t_env *env)
{
	return ((struct pool_env *)env)->pool;
}

static int t_setup_pool(void **state)
{
	struct pool_env *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	*state = c;
	c->env.host = fg_host_create_workers(2);
	for (uint32_t i = 0; i < 3; i++)
		c->env.g[i] = fg_guest_start_on(c->env.host, i + 1, i > 0);
	return 0;
}

static int t_teardown_pool(void **state)
{
	struct pool_env *c = *state;

	if (c->pool)
		fg_worker_pool_stop(c->pool);
	return t_teardown(state);
}

#define TEST_POOL(name) TEST_WITH(struct t_env *env, t_setup_pool, t_teardown_pool, name)
#define TEST_POOL_CASES(name, rows) \
	TEST_CASES_WITH(struct t_env *env, t_setup_pool, t_teardown_pool, name, rows)

/* From here on nothing may call fg_run(). */
static void go(struct t_env *env)
{
	struct pool_env *c = (struct pool_env *)env;

	c->pool = fg_worker_pool_start(c->env.host);
}

/* The next completion; a hang ends the test. */
static struct pvrdma_cqe await(struct fg_cq *cq)
{
	uint64_t end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;
	struct pvrdma_cqe cqe;
	uint32_t spins = 0;

	while (!fg_cq_poll(cq, &cqe)) {
		if (++spins % SPINS)
			continue;
		sched_yield();
		if (fg_worker_pool_now() > end)
			fg_die("no completion within %d s", HANG_SECONDS);
	}
	return cqe;
}

static void await_ok(struct fg_cq *cq)
{
	struct pvrdma_cqe cqe = await(cq);

	if (cqe.status != PVRDMA_WC_SUCCESS)
		fg_die("completion with status %u", cqe.status);
}

/* A success of each of these CQs. */
#define await_each(...)                                      \
	do {                                                 \
		struct fg_cq *const cqs[] = { __VA_ARGS__ }; \
		for (size_t cq = 0; cq < COUNT(cqs); cq++)   \
			await_ok(cqs[cq]);                   \
	} while (0)

static void connect(struct t_env *env, const struct fg_conn *conn)
{
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->b, conn);
}

/* -------------------------------------------------- messages that are checked */

/* The seed for fg_fill() of message @n; @side: of its sender. */
static uint32_t seed_of(uint32_t side, uint32_t n)
{
	return side << 16 | n;
}

/* One side of a conversation in both directions; slots are first the own, then the other's. */
struct talker {
	struct fg_end *end;
	uint32_t side; /* 0 or 1 */
	uint32_t sent, done, received;
};

static void post_recv(struct talker *t, uint32_t n)
{
	t_recv(t->end, n, (SLOTS + n % SLOTS) * SLOT, SLOT);
}

static bool send_next(struct talker *t)
{
	uint32_t slot = t->sent % SLOTS;

	if (t->sent == MESSAGES || t->sent - t->done == SLOTS)
		return false;
	fg_fill(t->end->mr.va + slot * SLOT, SLOT, seed_of(t->side, t->sent));
	t_send(t->end, t->sent++, slot * SLOT, SLOT);
	return true;
}

static bool take_sent(struct talker *t)
{
	struct pvrdma_cqe cqe;

	if (!fg_cq_poll(&t->end->scq, &cqe))
		return false;
	if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != t->done++)
		fg_die("send %u: status %u", (uint32_t)cqe.wr_id, cqe.status);
	return true;
}

static bool take_received(struct talker *t)
{
	struct pvrdma_cqe cqe;
	uint32_t n = t->received;

	if (!fg_cq_poll(&t->end->rcq, &cqe))
		return false;
	if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != n)
		fg_die("receive %u: status %u", (uint32_t)cqe.wr_id, cqe.status);
	if (fg_mismatch(t->end->mr.va + (SLOTS + n % SLOTS) * SLOT, SLOT, seed_of(!t->side, n)) !=
	    SLOT)
		fg_die("receive %u: its bytes are not those of the message", n);
	t->received++;
	post_recv(t, n + SLOTS);
	return true;
}

static void *talk(void *opaque)
{
	struct talker *t = opaque;
	uint64_t end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;

	while (t->done < MESSAGES || t->received < MESSAGES) {
		bool busy = send_next(t);

		busy |= take_sent(t);
		busy |= take_received(t);
		if (busy)
			continue;
		sched_yield();
		if (fg_worker_pool_now() > end)
			fg_die("%u sent, %u done, %u received", t->sent, t->done, t->received);
	}
	return NULL;
}

static void converse(struct talker *a, struct talker *b)
{
	pthread_t thread;

	for (uint32_t n = 0; n < SLOTS; n++) {
		post_recv(a, n);
		post_recv(b, n);
	}
	assert_int_equal(pthread_create(&thread, NULL, talk, a), 0);
	talk(b);
	pthread_join(thread, NULL);
}

TEST_POOL(test_both_ways_at_once)
{
	struct talker a = { .end = &env->a, .side = 0 };
	struct talker b = { .end = &env->b, .side = 1 };

	connect(env, NULL);
	go(env);
	converse(&a, &b);
}

/* The test sets no limit for the scheduling of a thread, but a hang ends it. */
#define wait_until(condition)                                                    \
	do {                                                                     \
		uint64_t hang_at = fg_worker_pool_now() + HANG_SECONDS * FG_SEC; \
		while (!(condition) && fg_worker_pool_now() < hang_at)           \
			sched_yield();                                           \
		assert_true(condition);                                          \
	} while (0)

/* ------------------------------------------------------------------ other workers */

/* Moves the adapters to the other worker again and again, until @done. */
struct mover {
	struct t_env *env;
	bool done;
	uint32_t moves;
};

static void *move_adapters(void *opaque)
{
	struct mover *mover = opaque;
	struct fg_worker_pool *pool = pool_of(mover->env);

	while (!__atomic_load_n(&mover->done, __ATOMIC_RELAXED)) {
		struct pvr_adapter *adapter = mover->env->g[mover->moves % 2]->adapter;

		fg_worker_pool_pause(pool);
		pvr_adapter_set_worker(adapter, !pvr_adapter_worker(adapter));
		fg_worker_pool_resume(pool);
		mover->moves++;
		sched_yield();
	}
	return NULL;
}

static void converse_while_adapters_move(struct t_env *env)
{
	struct talker a = { .end = &env->a, .side = 0 };
	struct talker b = { .end = &env->b, .side = 1 };
	struct mover mover = { .env = env };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, move_adapters, &mover), 0);
	converse(&a, &b);
	__atomic_store_n(&mover.done, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(mover.moves > 1);
}

TEST_POOL(test_adapters_move_between_workers_in_a_conversation)
{
	connect(env, NULL);
	go(env);
	converse_while_adapters_move(env);
}

/* Without doorbells: the new worker must not wait for one that the guest does not ring. */
TEST_POOL(test_adapters_without_doorbells_move)
{
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, 1);

	for (uint32_t i = 0; i < 2; i++) {
		env->g[i]->config.ext = PVR_ENGINE_EXT;
		expect_ok(fg_guest_boot(env->g[i]));
	}
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_bind_gid(env->g[0], 0, env->a.gid));
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
	fg_end_connect(&env->a, &env->b, &conn);
	go(env);
	converse_while_adapters_move(env);
}

TEST_POOL(test_waiting_sender_moves_with_its_timer)
{
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, 1);

	connect(env, &conn);
	go(env);
	t_send(&env->a, 1, 0, 64);
	wait_until(fg_stats(env->g[1]).rnr_naks >= 1);
	fg_worker_pool_pause(pool_of(env));
	pvr_adapter_set_worker(env->g[0]->adapter, 1);
	fg_worker_pool_resume(pool_of(env));
	t_recv(&env->b, 1, 0, 64);
	await_each(&env->a.scq, &env->b.rcq);
}

/* Messages larger than a quantum: each fragment locks both adapters again. */
TEST_POOL(test_large_messages_both_ways_at_once)
{
	const uint32_t len = 1 << 20;

	connect(env, NULL);
	t_widen(&env->a, len);
	t_widen(&env->b, len);
	go(env);
	for (uint32_t n = 0; n < 50; n++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, n, 0, &env->b.mr, 0, len);
		t_rdma(&env->b, PVRDMA_WR_RDMA_READ, n, 0, &env->a.mr, 0, len);
		await_each(&env->a.scq, &env->b.scq);
	}
}

/* Next to them a queue pair of the third VM, whose messages must not wait for long. */
TEST_POOL(test_three_talk_to_each_other)
{
	struct fg_end c, d;

	connect(env, NULL);
	t_open_pair(&c, env->g[2], &d, env->g[0]);
	go(env);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, n, 0, &env->b.mr, 0, 64);
		t_rdma(&env->b, PVRDMA_WR_RDMA_READ, n, 64, &env->a.mr, 64, 64);
		t_rdma(&c, PVRDMA_WR_RDMA_WRITE, n, 0, &d.mr, 0, 64);
		t_rdma(&d, PVRDMA_WR_RDMA_WRITE, n, 64, &c.mr, 64, 64);
		await_each(&env->a.scq, &env->b.scq, &c.scq, &d.scq);
	}
}

/* ------------------------------------------------------------------- waking up */

/* The RNR timer takes 655 ms: so many messages come in time only if each is woken. */
static struct fg_conn patient(void)
{
	return t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST);
}

/* Sends 500 messages; the receive comes some time after each. @write: while b writes, too. */
static void send_before_receive(struct t_env *env, bool write)
{
	uint64_t begin = fg_worker_pool_now();

	for (uint32_t n = 0; n < 500; n++) {
		t_send(&env->a, n, 0, 64);
		if (write)
			t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, n, 0, &env->a.mr, 0, 4096);
		/* On a busy machine the receive may come first, time and again: not this once. */
		if (!n)
			wait_until(fg_stats(env->g[1]).rnr_naks == 1);
		if (n % 2 && !write)
			sched_yield();
		for (volatile uint32_t delay = n % 64 * 100; delay; delay--)
			;
		t_recv(&env->b, n, 0, 64);
		await_each(&env->b.rcq, &env->a.scq);
		if (write)
			await_ok(&env->b.scq);
	}
	/* Were every tenth one slept out, it would take longer. */
	assert_true(fg_worker_pool_now() - begin < HANG_SECONDS * FG_SEC);
	assert_in_range(fg_stats(env->g[1]).rnr_naks, 1, 1000);
}

TEST_POOL(test_receive_wakes_waiting_sender)
{
	const struct fg_conn conn = patient();

	connect(env, &conn);
	go(env);
	send_before_receive(env, false);
}

/* Its guest rings no doorbell: the sender's worker polls, even while the other one is busy. */
TEST_POOL(test_receive_in_a_long_queue_is_found)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .rq_wr = 128 };
	const struct fg_conn conn = patient();

	env->g[1]->config.ext = PVR_ENGINE_EXT;
	expect_ok(fg_guest_boot(env->g[1]));
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, FG_END_PAGES);
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
	fg_end_connect(&env->a, &env->b, &conn);
	go(env);
	send_before_receive(env, true);
}

TEST_POOL(test_srq_wakes_waiting_senders)
{
	const struct fg_conn conn = patient();
	struct fg_end owner, far[3];
	struct fg_qp near[3];
	struct fg_srq srq;

	fg_end_open(&owner, env->g[1], PVR_QPT_RC);
	expect_ok(fg_srq_create(&owner.pd, 32, 4, &srq));
	for (uint32_t i = 0; i < 3; i++) {
		near[i] = t_qp_create(&owner, (struct fg_qp_spec){ .srq = &srq });
		fg_end_open(&far[i], env->g[0], PVR_QPT_RC);
		expect_ok(fg_qp_connect(&far[i].qp, &conn, owner.gid, near[i].qpn));
		expect_ok(fg_qp_connect(&near[i], &conn, far[i].gid, far[i].qp.qpn));
	}
	go(env);
	for (uint32_t n = 0; n < 300; n++) {
		for (uint32_t i = 0; i < 3; i++)
			t_send(&far[i], n, 0, 64);
		for (uint32_t i = 0; i < 3; i++) {
			t_srq_recv(&srq, i, &owner.mr, 64 * i, 64);
			if (n % 3 == i)
				sched_yield();
		}
		for (uint32_t i = 0; i < 3; i++)
			await_each(&owner.rcq, &far[i].scq);
	}
}

/* ------------------------------------------------------------------ datagrams */

static void open_ud(struct fg_end *end, struct fg_guest *guest)
{
	fg_end_open(end, guest, PVR_QPT_UD);
	fg_end_ready(end);
}

TEST_POOL(test_datagrams_both_ways)
{
	open_ud(&env->a, env->g[0]);
	open_ud(&env->b, env->g[1]);
	go(env);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		t_recv(&env->a, n, 1000, 200);
		t_recv(&env->b, n, 1000, 200);
		t_send_ud(&env->a, &env->b, n, 0, 100);
		t_send_ud(&env->b, &env->a, n, 0, 100);
		await_each(&env->a.scq, &env->b.scq, &env->a.rcq, &env->b.rcq);
	}
	assert_int_equal(fg_stats(env->g[0]).ud_dropped + fg_stats(env->g[1]).ud_dropped, 0);
}

/* Each member gets each datagram once, even if members were busy in between. */
TEST_POOL(test_group_across_workers)
{
	struct fg_end end[4];

	for (uint32_t i = 0; i < 4; i++) {
		open_ud(&end[i], env->g[i % 3]);
		expect_ok(fg_qp_attach(&end[i].qp, group));
	}
	connect(env, NULL);
	go(env);
	for (uint32_t n = 0; n < 1000; n++) {
		for (uint32_t i = 0; i < 4; i++) {
			t_recv(&end[i], n, 1000, 200);
			t_recv(&end[i], n, 1000, 200);
		}
		t_send_group(&end[0], group, n, 0, 100);
		t_send_group(&end[1], group, n, 0, 100);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, n, 0, &env->b.mr, 0, 64);
		t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, n, 0, &env->a.mr, 0, 64);
		for (uint32_t i = 0; i < 4; i++) {
			await_each(&end[i].rcq, &end[i].rcq);
			expect_no_cqe(&end[i].rcq);
		}
		await_each(&end[0].scq, &end[1].scq, &env->a.scq, &env->b.scq);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(fg_stats(env->g[i]).ud_dropped, 0);
}

/* ------------------------------------------------- one side goes, under load */

/*
 * Held by a guest's thread while it uses its adapter, and while adapters are created or
 * destroyed.
 */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* Writes to the peer until stopped, and reconnects after each failure. */
struct writer {
	struct fg_end *from, *to;
	pthread_t thread;
	bool stop;
	uint32_t ok, failed; /* read by others, too */
};

static uint32_t number(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void count(uint32_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

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

static void reconnect(struct writer *w)
{
	pthread_mutex_lock(&gate);
	/* If the peer ends meanwhile the queue pair is in error again. */
	do {
		fg_qp_to_err(&w->from->qp);
		fg_qp_to_reset(&w->from->qp);
		fg_cq_drain(&w->from->scq);
	} while (fg_qp_connect(&w->from->qp, &hasty, w->to->gid,
			       __atomic_load_n(&w->to->qp.qpn, __ATOMIC_RELAXED)) &&
		 !__atomic_load_n(&w->stop, __ATOMIC_RELAXED));
	pthread_mutex_unlock(&gate);
}

static void *write_on(void *opaque)
{
	struct writer *w = opaque;
	uint32_t n;

	for (n = 0; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); n++) {
		pthread_mutex_lock(&gate);
		t_rdma(w->from, PVRDMA_WR_RDMA_WRITE, n, 0, &w->to->mr, 0, 64);
		pthread_mutex_unlock(&gate);
		if (await(&w->from->scq).status == PVRDMA_WC_SUCCESS) {
			count(&w->ok);
			continue;
		}
		count(&w->failed);
		reconnect(w);
	}
	return NULL;
}

static void writer_start(struct writer *w, struct fg_end *from, struct fg_end *to)
{
	*w = (struct writer){ .from = from, .to = to };
	assert_int_equal(pthread_create(&w->thread, NULL, write_on, w), 0);
}

/* From a to b. */
static void start_writing(struct t_env *env, struct writer *w)
{
	connect(env, &hasty);
	go(env);
	writer_start(w, &env->a, &env->b);
}

static void writer_stop(struct writer *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	pthread_join(w->thread, NULL);
}

static void pause_ms(uint32_t ms)
{
	const struct timespec ts = { .tv_nsec = ms * 1000000l };

	nanosleep(&ts, NULL);
}

static void reset_peer(struct t_env *env)
{
	fg_qp_to_reset(&env->b.qp);
}

/* Handles and memory are used again for other objects while the peer still writes. */
static void replace_peer(struct t_env *env)
{
	struct fg_qp fresh;

	expect_ok(fg_qp_destroy(&env->b.qp));
	fresh = t_qp_create(&env->b, (struct fg_qp_spec){ 0 });
	/* The writer reads this one word meanwhile. */
	__atomic_store_n(&env->b.qp.qpn, fresh.qpn, __ATOMIC_RELAXED);
	env->b.qp.buf = fresh.buf;
	env->b.qp.ring = fresh.ring;
	env->b.qp.handle = fresh.handle;
}

static const struct {
	const char *label;
	void (*end)(struct t_env *env);
} ends[] = {
	{ "reset", reset_peer },
	{ "destroyed", replace_peer },
};

TEST_POOL_CASES(test_queue_pair_ends_under_load, ends)
{
	uint64_t end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;
	struct writer w;

	start_writing(env, &w);
	for (uint32_t i = 0; i < 100 || (!number(&w.failed) && fg_worker_pool_now() < end); i++) {
		row->end(env);
		/* Its PSNs are those of a fresh connection at both ends. */
		expect_ok(fg_qp_connect(&env->b.qp, &hasty, env->a.gid, env->a.qp.qpn));
		if (i % 10 == 0)
			pause_ms(2);
	}
	writer_stop(&w);
	assert_true(w.failed > 0);
}

TEST_POOL(test_adapter_resets_under_load)
{
	struct writer w;

	start_writing(env, &w);
	for (uint32_t i = 0; i < 50; i++) {
		pvr_adapter_reset(env->g[1]->adapter);
		expect_ok(fg_guest_boot(env->g[1]));
		expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
		pause_ms(1);
	}
	wait_until(number(&w.failed));
	writer_stop(&w);
	/* Its objects are gone without a command. */
	fg_qp_drop(&env->b.qp);
	memset(&env->b, 0, sizeof(env->b));
}

/* After unmapping the memory does not exist: any access is a fault. */
TEST_POOL(test_memory_is_unplugged_under_load)
{
	const struct fg_ram_region *region, *end = env->g[1]->ram.region + FG_RAM_REGIONS;
	struct writer w;

	start_writing(env, &w);
	wait_until(number(&w.ok));
	for (region = env->g[1]->ram.region; region < end; region++) {
		if (!region->size)
			continue;
		pvr_adapter_unmap_ram(env->g[1]->adapter, region->gpa, region->size);
		assert_int_equal(mprotect(region->va, region->size, PROT_NONE), 0);
	}
	wait_until(number(&w.failed));
	pause_ms(5);
	writer_stop(&w);
	for (region = env->g[1]->ram.region; region < end; region++)
		if (region->size)
			mprotect(region->va, region->size, PROT_READ | PROT_WRITE);
}

static void stop_the_world(struct t_env *env)
{
	pthread_mutex_lock(&gate);
	fg_worker_pool_pause(pool_of(env));
}

static void start_the_world(struct t_env *env)
{
	fg_worker_pool_resume(pool_of(env));
	pthread_mutex_unlock(&gate);
}

TEST_POOL(test_gid_is_taken_away_under_load)
{
	struct fg_guest_config config;
	struct fg_guest *owner;
	uint8_t gid[16];

	fg_guest_config_init(&config, 4);
	config.worker = 0;
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
	connect(env, NULL);
	go(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	await_ok(&env->a.scq);
	stop_the_world(env);
	owner = fg_guest_create(env->host, &config);
	start_the_world(env);
	env->g[3] = owner;
	expect_ok(fg_guest_boot(owner));
	expect_ok(fg_bind_gid(owner, 0, gid)); /* whose it is by right */
	wait_until(fg_events_pending(env->g[1]));
	expect_one_event(env->g[1], PVR_EVENT_GID_CHANGE, 1);
	expect_refused(fg_unbind_gid(env->g[1], 1, gid));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 64);
	await_ok(&env->a.scq);
}

TEST_POOL(test_adapters_come_and_go_while_others_work)
{
	struct writer w, v;

	start_writing(env, &w);
	for (uint32_t i = 0; i < 20; i++) {
		struct fg_end guest;

		stop_the_world(env);
		env->g[3] = fg_guest_start_on(env->host, 4, i % 2);
		start_the_world(env);
		fg_end_open(&guest, env->g[3], PVR_QPT_RC);
		/* b is not connected to it: it fails repeatedly. */
		expect_ok(fg_qp_connect(&guest.qp, &hasty, env->b.gid, env->b.qp.qpn));
		writer_start(&v, &guest, &env->b);
		pause_ms(1);
		writer_stop(&v);
		assert_int_equal(v.ok, 0);
		stop_the_world(env);
		fg_guest_destroy(env->g[3]);
		env->g[3] = NULL;
		start_the_world(env);
	}
	wait_until(number(&w.ok));
	writer_stop(&w);
	assert_int_equal(w.failed, 0);
}

/* A worker with nothing to do is asleep, and is woken by what others give it. */
TEST_POOL(test_timers_of_a_worker_that_sleeps)
{
	connect(env, &hasty);
	expect_ok(fg_qp_destroy(&env->b.qp));
	go(env);
	for (uint32_t n = 0; n < 50; n++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, n, 0, &env->b.mr, 0, 64);
		assert_int_equal(await(&env->a.scq).status, PVRDMA_WC_RETRY_EXC_ERR);
		fg_qp_to_reset(&env->a.qp);
		expect_ok(fg_qp_connect(&env->a.qp, &hasty, env->b.gid, 77));
	}
}

/* A send of vm1 completes at vm2, which is on another worker, and interrupts vm2. */
TEST_POOL(test_interrupts_at_the_other_worker)
{
	const uint32_t *raised = &env->g[1]->irq[PVR_VEC_CQ];

	connect(env, NULL);
	go(env);
	for (uint32_t n = 0; n < 500; n++) {
		t_recv(&env->b, n, 0, 64);
		fg_cq_arm(&env->b.rcq);
		t_send(&env->a, n, 0, 64);
		wait_until(number(raised) > n);
		assert_int_equal(number(raised), n + 1);
		await_each(&env->b.rcq, &env->a.scq);
		fg_cq_events_pending(env->g[1]);
	}
}
