// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request that is posted just when the device stops looking (PVR_EXT_DB_SUPPRESS): by steps,
 * as the functions that look are ours here, and by a guest in a thread of its own.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "common.h"
#include "rdma/rq.h"
#include "rdma/requester.h"

#define MESSAGES 30000
#define SPINS 2000 /* until others get the CPU */
#define HANG_SECONDS 20 /* without a single message */

/* --------------------------------------------------------------- by steps */

TEST_INIT
{
	fg_default_ext = PVR_ENGINE_EXT;
}

/* Runs before and after the device reads a ring, once each. */
static struct {
	struct t_env *env;
	void (*before_look)(struct t_env *env);
	void (*after_look)(struct t_env *env);
	void (*after_count)(struct t_env *env); /* of any ring's requests */
	uint32_t looks;
	bool rung; /* a doorbell is on its way, which comes when the device can take it */
} hook;

static void call(void (**fn)(struct t_env *env))
{
	void (*once)(struct t_env * env) = *fn;

	*fn = NULL;
	if (once)
		once(hook.env);
}

bool __real_pvr_requester_has_work(const struct pvr_qp *qp);
bool __wrap_pvr_requester_has_work(const struct pvr_qp *qp);

bool __wrap_pvr_requester_has_work(const struct pvr_qp *qp)
{
	bool found;

	hook.looks++;
	call(&hook.before_look);
	found = __real_pvr_requester_has_work(qp);
	call(&hook.after_look);
	return found;
}

int __real_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);
int __wrap_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);

int __wrap_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe)
{
	int err;

	hook.looks++;
	call(&hook.before_look);
	err = __real_pvr_recv_get(qp, wqe);
	call(&hook.after_look);
	return err;
}

int __real_pvr_wq_avail(const struct pvr_wq *wq);
int __wrap_pvr_wq_avail(const struct pvr_wq *wq);

int __wrap_pvr_wq_avail(const struct pvr_wq *wq)
{
	int avail = __real_pvr_wq_avail(wq);

	call(&hook.after_count);
	return avail;
}

static void begin(struct t_env *env)
{
	fg_run(env->host);
	memset(&hook, 0, sizeof(hook));
	hook.env = env;
}

static void put_write(struct t_env *env)
{
	struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 8);
	struct fg_wr wr = { .wr_id = 2,
			    .opcode = PVRDMA_WR_RDMA_WRITE,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = env->b.mr.start,
			    .rkey = env->b.mr.rkey };

	assert_true(fg_put_send(&env->a.qp, &wr));
}

/* The guest's barrier came late: it posts, and sees the 0. */
static void post_and_ring(struct t_env *env)
{
	put_write(env);
	assert_int_equal(fg_qp_db_suppress(&env->a.qp)->sq, 0);
	hook.rung = true;
}

static void expect_two_writes(struct t_env *env)
{
	fg_run(env->host);
	if (hook.rung)
		fg_ring_send(&env->a.qp);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_WRITE);
	assert_true(hook.looks > 0);
}

TEST(rc_connected, test_end_of_a_quantum_finds_what_saw_the_1)
{
	begin(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	hook.before_look = put_write;
	expect_two_writes(env);
}

TEST(rc_connected, test_end_of_a_quantum_enables_the_doorbell_of_later_posts)
{
	begin(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	hook.after_look = post_and_ring;
	expect_two_writes(env);
}

static void poll_one(struct t_env *env)
{
	begin(env);
	pvr_engine_poll(env->host->engine, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	assert_int_not_equal(fg_qp_db_suppress(&env->a.qp)->sq, 0);
	hook.looks = 0;
}

TEST(rc_connected, test_end_of_polling_finds_what_saw_the_1)
{
	poll_one(env);
	hook.before_look = put_write;
	assert_false(pvr_engine_enable_doorbells(env->host->engine, 0));
	expect_two_writes(env);
}

TEST(rc_connected, test_end_of_polling_enables_the_doorbell_of_later_posts)
{
	poll_one(env);
	hook.after_look = post_and_ring;
	assert_true(pvr_engine_enable_doorbells(env->host->engine, 0));
	expect_two_writes(env);
}

/* The first read finds nothing; the guest has read that no doorbell is needed. */
static void put_recv(struct t_env *env)
{
	struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, 64);

	assert_int_not_equal(fg_qp_db_suppress(&env->b.qp)->rq, 0);
	assert_true(fg_put_recv(&env->b.qp, 7, &sge, 1));
}

TEST(rc_connected, test_responder_finds_the_receive_that_saw_the_1)
{
	begin(env);
	t_send(&env->a, 1, 0, 8);
	hook.after_look = put_recv;
	fg_run(env->host);
	assert_int_equal(hook.looks >= 2, true);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 7, 8);
	/* The state is as if the requester had never waited. */
	assert_int_not_equal(fg_qp_db_suppress(&env->b.qp)->rq, 0);
	assert_int_equal(fg_stats(env->g[1]).rnr_naks, 0);
}

static const struct fg_conn patient = {
	.mtu = PVR_MTU_1024,
	.access = FG_ACCESS_ALL,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 0,
	.max_rd_atomic = 16,
	.max_dest_rd_atomic = 16,
};

/* A receive queue that the requester polls (path/local/rnr.h). */
static void connect_long(struct t_env *env)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .rq_wr = 128 };

	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, FG_END_PAGES);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->b, &patient);
}

/* Return: false if the next timer is not an RNR poll. */
static bool to_next_look(struct fg_host *host)
{
	uint64_t deadline = pvr_engine_deadline(host->engine, 0);

	if (deadline > host->now + FG_MS)
		return false;
	host->now = deadline;
	return true;
}

TEST(rc_connected, test_last_look_finds_the_receive_that_saw_the_1)
{
	uint32_t last, looks = 0;

	connect_long(env);
	begin(env);
	t_send(&env->a, 1, 0, 8);
	for (fg_run(env->host); to_next_look(env->host); fg_run(env->host))
		looks++;
	assert_int_equal(fg_qp_db_suppress(&env->b.qp)->rq, 0);
	/* The same again, up to the last. */
	connect_long(env);
	begin(env);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	for (last = 1; last < looks; last++) {
		assert_true(to_next_look(env->host));
		fg_run(env->host);
	}
	hook.after_count = put_recv;
	assert_true(to_next_look(env->host));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 7, 8);
	assert_int_not_equal(fg_qp_db_suppress(&env->b.qp)->rq, 0);
}

/* ------------------------------------------------------------- by threads */

struct player {
	struct t_env *env;
	uint32_t done; /* messages */
	uint32_t bells[2]; /* doorbells under way: of a's SQ, of b's RQ */
	bool looked_for; /* b's receives: the clock goes on, as far as the last look */
	bool writes; /* nothing else, so that most of the time is spent at the end of turns */
	bool bursts; /* of writes, with one doorbell until the device has come */
	bool rang; /* ... for the requests before rung, and it may be under way */
	uint32_t rung;
	bool stop;
};

static void ring(struct player *p, uint32_t which, const uint32_t *word_shm)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(word_shm, __ATOMIC_RELAXED))
		__atomic_store_n(&p->bells[which], 1, __ATOMIC_SEQ_CST);
}

/*
 * As ring(), for send queues: skip the doorbell while an earlier one is outstanding, as
 * its handling finds these requests, too.
 */
static void ring_until_it_comes(struct player *p)
{
	const struct fg_qp *qp = &p->env->a.qp;
	uint32_t n = qp->sq_wr, head;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&fg_qp_db_suppress(qp)->sq, __ATOMIC_ACQUIRE)) {
		p->rang = false;
		return;
	}
	head = __atomic_load_n(&qp->ring->tx.cons_head, __ATOMIC_RELAXED);
	if (p->rang && ((p->rung - head) & (2 * n - 1)) - 1 < n - 1)
		return;
	p->rang = true;
	p->rung = qp->sq_tail;
	__atomic_store_n(&p->bells[0], 1, __ATOMIC_SEQ_CST);
}

static void player_send(struct player *p)
{
	struct fg_end *a = &p->env->a;
	struct pvrdma_sge sge = fg_sge(&a->mr, 0, 8);
	struct fg_wr wr = {
		.opcode = PVRDMA_WR_SEND, .flags = PVR_SEND_SIGNALED, .sge = &sge, .num_sge = 1
	};

	fg_put_send(&a->qp, &wr);
	ring(p, 0, &fg_qp_db_suppress(&a->qp)->sq);
}

static void player_recv(struct player *p)
{
	struct fg_end *b = &p->env->b;
	struct pvrdma_sge sge = fg_sge(&b->mr, 0, 64);

	fg_put_recv(&b->qp, 0, &sge, 1);
	ring(p, 1, &fg_qp_db_suppress(&b->qp)->rq);
}

static bool wait_cqe(struct player *p, struct fg_cq *cq)
{
	struct pvrdma_cqe cqe;
	uint32_t spins = 0;

	while (!fg_cq_poll(cq, &cqe)) {
		if (__atomic_load_n(&p->stop, __ATOMIC_RELAXED))
			return false;
		if (++spins % SPINS == 0)
			sched_yield();
	}
	return true;
}

static bool write_once(struct player *p, uint32_t i)
{
	volatile uint32_t delay;

	/* From the completion of the last to right behind the end of its turn. */
	for (delay = i % 256; delay; delay--)
		;
	put_write(p->env);
	ring(p, 0, &fg_qp_db_suppress(&p->env->a.qp)->sq);
	return wait_cqe(p, &p->env->a.scq);
}

/* One to six writes, each with some time before it. */
static bool write_burst(struct player *p, uint32_t i)
{
	uint32_t n = 1 + i % 6, k;
	volatile uint32_t delay;

	for (k = 0; k < n; k++) {
		for (delay = (i * 37 + k * 5003) % 16384; delay; delay--)
			;
		put_write(p->env);
		ring_until_it_comes(p);
	}
	for (k = 0; k < n; k++)
		if (!wait_cqe(p, &p->env->a.scq))
			return false;
	return true;
}

/* The receive comes before the message, behind it, or while the sender waits. */
static bool send_once(struct player *p, uint32_t i)
{
	if (i & 1)
		player_recv(p);
	player_send(p);
	if (i & 2)
		sched_yield();
	if (!(i & 1))
		player_recv(p);
	return wait_cqe(p, &p->env->b.rcq) && wait_cqe(p, &p->env->a.scq);
}

static bool play_once(struct player *p, uint32_t i)
{
	if (p->bursts)
		return write_burst(p, i);
	return p->writes ? write_once(p, i) : send_once(p, i);
}

/* One message, or burst, at a time, so that a doorbell that is missing once stops everything. */
static void *play(void *opaque)
{
	struct player *p = opaque;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		if (!play_once(p, i))
			break;
		__atomic_store_n(&p->done, i + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void carry_bells(struct player *p)
{
	if (__atomic_exchange_n(&p->bells[0], 0, __ATOMIC_SEQ_CST))
		fg_ring_send(&p->env->a.qp);
	if (__atomic_exchange_n(&p->bells[1], 0, __ATOMIC_SEQ_CST))
		fg_ring_recv(&p->env->b.qp);
}

static time_t seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* The clock stands still, but for looks: no RNR timer repairs what a missing doorbell has left. */
static void serve(struct player *p, bool polls)
{
	struct pvr_engine *engine = p->env->host->engine;
	time_t end = seconds() + HANG_SECONDS;
	uint32_t round = 0, done, last = 0;

	while ((done = __atomic_load_n(&p->done, __ATOMIC_RELAXED)) < MESSAGES) {
		if (done == last && seconds() > end)
			break;
		if (done != last)
			end = seconds() + HANG_SECONDS;
		last = done;
		carry_bells(p);
		if (p->looked_for)
			to_next_look(p->env->host);
		if (polls)
			pvr_engine_poll(engine, 0);
		pvr_engine_run(engine, 0);
		if (polls && round % 4 == 0)
			pvr_engine_enable_doorbells(engine, 0);
		if (++round % SPINS == 0)
			sched_yield();
	}
}

static void play_player(struct player *p, bool polls)
{
	pthread_t thread;

	fg_run(p->env->host);
	assert_int_equal(pthread_create(&thread, NULL, play, p), 0);
	serve(p, polls);
	__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(p->done, MESSAGES);
}

static const struct {
	const char *label;
	bool polls;
	bool writes;
} plays[] = {
	{ "at any time", false, false },
	{ "at the end of turns", false, true },
	{ "when polling begins and ends", true, false },
	{ "at the end of polling", true, true },
};

TEST_CASES(rc_connected, test_no_doorbell_is_missing, plays)
{
	struct player p = { .env = env, .writes = row->writes };

	play_player(&p, row->polls);
}

TEST(rc_connected, test_receives_are_looked_for_or_rung_for)
{
	struct player p = { .env = env, .looked_for = true };

	connect_long(p.env);
	play_player(&p, false);
}

TEST(rc_connected, test_one_doorbell_until_the_device_has_come)
{
	struct player p = { .env = env, .bursts = true };

	play_player(&p, false);
}

TEST(rc_connected, test_one_doorbell_until_the_device_has_come_or_polls)
{
	struct player p = { .env = env, .bursts = true };

	play_player(&p, true);
}
