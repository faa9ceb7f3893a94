// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request that is posted just when the device stops to poll (PVR_EXT_DB_SUPPRESS): by steps,
 * as the functions that read rings are replaced here, and by a guest in a thread of its own.
 */
#include <pthread.h>
#include <sched.h>

#include "db_suppress.h"
#include "rdma/rq.h"
#include "rdma/requester.h"

#define MESSAGES 30000
#define SPINS 2000 /* until others get the CPU */
#define HANG_SECONDS 20 /* without a single message */

/* --------------------------------------------------------------- by steps */

TEST_EXT(PVR_ENGINE_EXT)

/* Runs before and after the device reads a ring, once each. */
static struct {
	struct t_env *env;
	void (*before_read)(struct t_env *env);
	void (*after_read)(struct t_env *env);
	void (*after_count)(struct t_env *env); /* of any ring's requests */
	uint32_t reads;
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

	hook.reads++;
	call(&hook.before_read);
	found = __real_pvr_requester_has_work(qp);
	call(&hook.after_read);
	return found;
}

int __real_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);
int __wrap_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);

int __wrap_pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe)
{
	int err;

	hook.reads++;
	call(&hook.before_read);
	err = __real_pvr_recv_get(qp, wqe);
	call(&hook.after_read);
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
	t_put_write(&env->a, &env->b, 2);
}

/* The guest's barrier came late: it posts, and sees the 0. */
static void post_and_ring(struct t_env *env)
{
	put_write(env);
	assert_int_equal(sq_word(&env->a), 0);
	hook.rung = true;
}

static void expect_two_writes(struct t_env *env)
{
	fg_run(env->host);
	if (hook.rung)
		fg_ring_send(&env->a.qp);
	await_written(&env->a, 1);
	expect_written(&env->a, 2);
	assert_true(hook.reads > 0);
}

static void post_one(struct t_env *env)
{
	begin(env);
	t_write(&env->a, &env->b, 1);
}

static void poll_one(struct t_env *env)
{
	begin(env);
	poll(env);
	t_write(&env->a, &env->b, 1);
	fg_run(env->host);
	assert_int_not_equal(sq_word(&env->a), 0);
	hook.reads = 0;
}

TEST(rc_connected, test_end_of_a_quantum_finds_what_saw_the_1)
{
	post_one(env);
	hook.before_read = put_write;
	expect_two_writes(env);
}

TEST(rc_connected, test_end_of_a_quantum_enables_the_doorbell_of_later_posts)
{
	post_one(env);
	hook.after_read = post_and_ring;
	expect_two_writes(env);
}

TEST(rc_connected, test_end_of_polling_finds_what_saw_the_1)
{
	poll_one(env);
	hook.before_read = put_write;
	assert_false(enable_doorbells(env));
	expect_two_writes(env);
}

TEST(rc_connected, test_end_of_polling_enables_the_doorbell_of_later_posts)
{
	poll_one(env);
	hook.after_read = post_and_ring;
	assert_true(enable_doorbells(env));
	expect_two_writes(env);
}

/* The first read finds nothing; the guest has read that no doorbell is needed. */
static void put_recv(struct t_env *env)
{
	assert_int_not_equal(rq_word(&env->b), 0);
	t_put_recv(&env->b, 7, 0, 64);
}

TEST(rc_connected, test_responder_finds_the_receive_that_saw_the_1)
{
	begin(env);
	t_send(&env->a, 1, 0, 8);
	hook.after_read = put_recv;
	fg_run(env->host);
	assert_true(hook.reads >= 2);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 7, 8);
	/* The state is as if the requester had never waited. */
	assert_int_not_equal(rq_word(&env->b), 0);
	assert_int_equal(fg_stats(env->g[1]).rnr_naks, 0);
}

/* A receive queue that the requester polls (path/local/rnr.h). */
static void connect_long(struct t_env *env)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .rq_wr = 128 };
	const struct fg_conn conn = t_conn_rnr(T_RNR_FOREVER, T_RNR_LONGEST);

	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, FG_END_PAGES);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->b, &conn);
}

/* Return: false if the next timer is not an RNR poll. */
static bool to_next_poll(struct fg_host *host)
{
	uint64_t deadline = pvr_engine_deadline(host->engine, 0);

	if (deadline > host->now + FG_MS)
		return false;
	host->now = deadline;
	return true;
}

static void wait_for_receive(struct t_env *env)
{
	connect_long(env);
	begin(env);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
}

TEST(rc_connected, test_last_rnr_poll_finds_the_receive_that_saw_the_1)
{
	uint32_t polls = 0;

	wait_for_receive(env);
	for (; to_next_poll(env->host); fg_run(env->host))
		polls++;
	assert_int_equal(rq_word(&env->b), 0);
	/* The same again, up to the last. */
	wait_for_receive(env);
	for (uint32_t i = 1; i < polls; i++) {
		assert_true(to_next_poll(env->host));
		fg_run(env->host);
	}
	hook.after_count = put_recv;
	assert_true(to_next_poll(env->host));
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 7, 8);
	assert_int_not_equal(rq_word(&env->b), 0);
}

/* ------------------------------------------------------------- by threads */

struct player {
	struct t_env *env;
	uint32_t done; /* messages */
	uint32_t bells[2]; /* doorbells under way: of a's SQ, of b's RQ */
	bool polled_for; /* the receives of b: the clock goes on, as far as the last RNR poll */
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
	t_put_send(&p->env->a, 0, 0, 8);
	ring(p, 0, &fg_qp_db_suppress(&p->env->a.qp)->sq);
}

static void player_recv(struct player *p)
{
	t_put_recv(&p->env->b, 0, 0, 64);
	ring(p, 1, &fg_qp_db_suppress(&p->env->b.qp)->rq);
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

/* The clock stands still, but for RNR polls: no RNR timer repairs what a missing doorbell has left. */
static void serve(struct player *p, bool polls)
{
	struct pvr_engine *engine = p->env->host->engine;
	uint64_t end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;
	uint32_t round = 0, done, last = 0;

	while ((done = __atomic_load_n(&p->done, __ATOMIC_RELAXED)) < MESSAGES) {
		if (done != last)
			end = fg_worker_pool_now() + HANG_SECONDS * FG_SEC;
		else if (fg_worker_pool_now() > end)
			break;
		last = done;
		carry_bells(p);
		if (p->polled_for)
			to_next_poll(p->env->host);
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
	bool polls; /* the device */
	bool writes, bursts;
} plays[] = {
	{ "at any time", .polls = false },
	{ "at the end of turns", .polls = false, .writes = true },
	{ "when polling begins and ends", .polls = true },
	{ "at the end of polling", .polls = true, .writes = true },
	{ "one for a burst until the device has come", .polls = false, .bursts = true },
	{ "one for a burst until the device has come or polls", .polls = true, .bursts = true },
};

TEST_CASES(rc_connected, test_no_doorbell_is_missing, plays)
{
	struct player p = { .env = env, .writes = row->writes, .bursts = row->bursts };

	play_player(&p, row->polls);
}

TEST(rc_connected, test_receives_are_polled_for_or_rung_for)
{
	struct player p = { .env = env, .polled_for = true };

	connect_long(env);
	play_player(&p, false);
}
