// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Senders that wait for an SRQ: a doorbell wakes as many as it can serve, even if some
 * have left.
 */
#include "objects.h"

#define CROWD 3

/* Each of far sends to one of near, and all of near receive through one SRQ. */
struct crowd {
	struct t_env *env;
	struct fg_end owner; /* has the PD, CQs and buffer of near's QPs */
	struct fg_end far[CROWD], near[CROWD];
	struct fg_srq srq;
};

static void crowd_init_conn(struct crowd *c, struct t_env *env, const struct fg_conn *conn)
{
	struct fg_qp_spec spec;

	*c = (struct crowd){ .env = env };
	fg_end_open(&c->owner, env->g[1], PVR_QPT_RC);
	expect_ok(fg_srq_create(&c->owner.pd, 32, 4, &c->srq));
	spec = end_spec(&c->owner);
	spec.srq = &c->srq;
	for (uint32_t i = 0; i < CROWD; i++) {
		fg_end_open(&c->far[i], env->g[0], PVR_QPT_RC);
		c->near[i] = c->owner;
		expect_ok(fg_qp_create(&spec, &c->near[i].qp));
		fg_end_connect(&c->far[i], &c->near[i], conn);
	}
}

static void crowd_init(struct crowd *c, struct t_env *env)
{
	crowd_init_conn(c, env, NULL);
}

#define TEST_CROWD(name) TEST_OBJECT(guests, struct crowd, c, crowd_init, name)

/* A message that has to wait. */
static void send(struct crowd *c, uint32_t i)
{
	t_send(&c->far[i], i, 0, 64);
	await_no_cqe(&c->far[i].scq);
}

static void all_send(struct crowd *c)
{
	for (uint32_t i = 0; i < CROWD; i++)
		send(c, i);
}

/* So many requests with one doorbell, and no time passes. */
static void post(struct crowd *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pvrdma_sge sge = fg_sge(&c->owner.mr, i * 64, 64);

		assert_true(fg_put_srq_recv(&c->srq, i, &sge, 1));
	}
	fg_ring_srq(&c->srq);
	fg_run(c->env->host);
}

static void expect_served(struct crowd *c, uint32_t i)
{
	expect_sent(&c->far[i], i);
}

TEST_CROWD(test_one_doorbell_wakes_all_waiting_senders)
{
	all_send(c);
	post(c, CROWD);
	for (uint32_t i = 0; i < CROWD; i++)
		expect_served(c, i);
	assert_int_equal(fg_cq_drain(&c->owner.rcq), CROWD);
}

/* The receive that woke the first sender, before the sender's next quantum. */
static void post_for_first(struct crowd *c)
{
	struct pvrdma_sge sge = fg_sge(&c->owner.mr, 0, 64);

	all_send(c);
	assert_true(fg_put_srq_recv(&c->srq, 0, &sge, 1));
	fg_ring_srq(&c->srq);
}

/* The next sender gets the receive, and the one after it that of the next doorbell. */
static void expect_others_served(struct crowd *c)
{
	fg_run(c->env->host);
	expect_served(c, 1);
	post(c, 1);
	expect_served(c, 2);
}

TEST_CROWD(test_destroyed_queue_pair_leaves_its_receive_to_the_next)
{
	post_for_first(c);
	expect_ok(fg_qp_destroy(&c->near[0].qp));
	expect_others_served(c);
}

TEST_CROWD(test_reset_queue_pair_leaves_its_receive_to_the_next)
{
	post_for_first(c);
	expect_ok(fg_qp_to_reset(&c->near[0].qp));
	expect_others_served(c);
}

TEST_CROWD(test_failed_queue_pair_leaves_its_receive_to_the_next)
{
	post_for_first(c);
	expect_ok(fg_qp_to_err(&c->near[0].qp));
	expect_others_served(c);
	expect_no_cqe(&c->far[0].scq);
	assert_int_equal(fg_cq_drain(&c->owner.rcq), 2);
}

/* It is the first that waits, but cannot use the receive. */
TEST_CROWD(test_receive_for_a_failed_queue_pair_goes_to_the_next)
{
	all_send(c);
	expect_ok(fg_qp_to_err(&c->near[0].qp));
	fg_run(c->env->host);
	post(c, 1);
	expect_served(c, 1);
	post(c, 1);
	expect_served(c, 2);
}

TEST_CROWD(test_longest_waiting_sender_is_first)
{
	static const uint32_t order[CROWD] = { 2, 0, 1 };

	for (uint32_t i = 0; i < CROWD; i++)
		send(c, order[i]);
	for (uint32_t i = 0; i < CROWD; i++) {
		post(c, 1);
		expect_served(c, order[i]);
	}
}

/*
 * One request for many senders: the others wait on, and the next request wakes one of
 * them.
 */
TEST_CROWD(test_unserved_sender_waits_on)
{
	uint32_t done[CROWD + 1] = { 0 };

	all_send(c);
	for (uint32_t n = 1; n <= CROWD; n++) {
		post(c, 1);
		for (uint32_t i = 0; i < CROWD; i++)
			done[n] += fg_cq_drain(&c->far[i].scq);
		assert_int_equal(done[n], 1);
	}
}

/* A sender without a request is not woken, since that would cost it a retry. */
TEST(guests, test_unserved_sender_uses_no_retry)
{
	struct fg_conn conn = fg_conn_default;
	struct crowd c;

	conn.rnr_retry = 1;
	crowd_init_conn(&c, env, &conn);
	all_send(&c);
	for (uint32_t i = 0; i < CROWD; i++) {
		post(&c, 1);
		expect_served(&c, i);
	}
}

/* A sender that cannot be woken uses up no request. */
TEST_CROWD(test_sender_without_a_qp_is_skipped)
{
	all_send(c);
	expect_ok(fg_qp_destroy(&c->far[0].qp));
	post(c, 1);
	expect_served(c, 1);
	expect_no_cqe(&c->far[2].scq);
}

/* Retries by timer are refused again, and the QP still waits once. */
TEST_CROWD(test_sender_refused_twice_waits_once)
{
	all_send(c);
	for (int i = 0; i < 5; i++)
		fg_advance(env->host, FG_SEC);
	for (int i = 0; i < 3; i++) {
		post(c, CROWD);
		for (uint32_t k = 0; k < CROWD; k++)
			expect_served(c, k);
		all_send(c);
	}
}

static void destroy(struct crowd *c, uint32_t i)
{
	expect_ok(fg_qp_destroy(&c->near[i].qp));
}

static void reset(struct crowd *c, uint32_t i)
{
	expect_ok(fg_qp_to_reset(&c->near[i].qp));
}

static void err(struct crowd *c, uint32_t i)
{
	expect_ok(fg_qp_to_err(&c->near[i].qp));
}

static void reset_and_connect(struct crowd *c, uint32_t i)
{
	reset(c, i);
	expect_ok(fg_qp_to_reset(&c->far[i].qp));
	fg_end_connect(&c->far[i], &c->near[i], NULL);
	send(c, i);
}

static const struct {
	const char *label;
	void (*leave)(struct crowd *c, uint32_t i);
	bool comes_back;
} ways[] = {
	{ "destroyed qp does not wait", destroy, false },
	{ "qp in reset does not wait", reset, false },
	{ "qp in error wakes no other qp later", err, false },
	{ "qp that was reset waits again", reset_and_connect, true },
};

/* One of the crowd leaves while it waits; the others are served at once. */
TEST_CASES(guests, test_one_leaves_while_it_waits, ways)
{
	for (uint32_t gone = 0; gone < CROWD; gone++) {
		struct crowd c;

		if (gone)
			env = t_renew(t_setup_guests);
		crowd_init(&c, env);
		all_send(&c);
		row->leave(&c, gone);
		post(&c, CROWD);
		for (uint32_t i = 0; i < CROWD; i++) {
			if (i != gone || row->comes_back)
				expect_served(&c, i);
			else
				expect_no_cqe(&c.far[i].scq);
		}
		if (row->comes_back)
			continue;
		/*
		 * The peer's request fails after its retries: the destination QP is gone.
		 */
		fg_settle(c.env->host, 100 * FG_SEC);
		expect_cqe(&c.far[gone].scq, gone, PVRDMA_WC_RETRY_EXC_ERR);
	}
}

/* All that wait at once, in the device's own order. */
TEST_CROWD(test_adapter_reset_while_they_wait)
{
	all_send(c);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, 100 * FG_SEC);
	for (uint32_t i = 0; i < CROWD; i++)
		expect_cqe(&c->far[i].scq, i, PVRDMA_WC_RETRY_EXC_ERR);
}
