// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events that concern all queue pairs of an adapter: a CQ or SRQ in error, a peer that is gone.
 * They are handled in steps, between which other adapters run.
 */
#include "core/objects.h"
#include "ends.h"
#include "rdma/cq.h"
#include "rdma/qp_sweep.h"
#include "rdma/worker.h"

#define MANY 700u /* queue pairs: four steps */
#define STEP_QPS (PVR_STEP_WORK / PVR_WORK_QP + 1)
#define SOON (20 * FG_MS)

TEST_EXT(PVR_EXT_PEER_GONE | PVR_EXT_STATS)

/* An adapter with many queue pairs, a peer, and two neighbours of the same worker. */
struct many {
	struct t_env *env;
	struct pvr_adapter *adapter;
	struct fg_end c, d; /* of the neighbours, connected */
	struct fg_cq cq; /* has one entry */
	struct fg_srq srq;
	struct fg_qp first; /* its receives go to cq */
	struct fg_qp qps[MANY];
};

static void many_init(struct many *m, struct t_env *env)
{
	memset(m, 0, sizeof(*m));
	m->env = env;
	m->adapter = env->g[0]->adapter;
	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&m->c, env->g[2], &m->d, env->g[3]);
	expect_ok(fg_cq_create(&env->g[0]->kernel, 1, &m->cq));
	m->first = t_qp_create(&env->a, (struct fg_qp_spec){ .rcq = &m->cq });
	expect_ok(fg_qp_to_init(&m->first, NULL));
}

#define TEST_MANY(name) TEST_OBJECT(rc_connected, struct many, m, many_init, name)

static void add_qps(struct many *m, struct fg_qp_spec spec)
{
	spec.sq_wr = spec.rq_wr = 2;
	spec.sq_sge = spec.rq_sge = 1;
	spec.kind = FG_LINEAR;
	for (uint32_t i = 0; i < MANY; i++) {
		m->qps[i] = t_qp_create(&m->env->a, spec);
		expect_ok(fg_qp_to_init(&m->qps[i], NULL));
	}
}

static void add_peers_of_b(struct many *m)
{
	const struct fg_end *b = &m->env->b;

	add_qps(m, (struct fg_qp_spec){ .type = PVR_QPT_RC });
	for (uint32_t i = 0; i < MANY; i++)
		expect_ok(fg_qp_to_rtr(&m->qps[i], NULL, b->gid, b->qp.qpn));
}

static uint32_t failed(const struct many *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MANY; i++)
		n += m->qps[i].handle &&
		     pvr_qp_get(m->adapter, m->qps[i].handle)->state == PVR_QPS_ERR;
	return n;
}

static bool run(struct many *m)
{
	return pvr_engine_run(m->env->host->engine, 0);
}

/* Runs until the first queue pairs have failed. */
static void run_first_step(struct many *m)
{
	for (uint32_t i = 0; !failed(m); i++) {
		assert_in_range(i, 0, 100);
		run(m);
	}
	assert_in_range(failed(m), 1, STEP_QPS);
}

/* The neighbours exchange a message after each step. */
static void expect_all_fail_in_steps(struct many *m)
{
	uint32_t before;

	for (uint64_t id = 0; failed(m) < MANY; id++) {
		assert_in_range(id, 0, 100);
		t_recv(&m->d, id, 0, 8);
		t_send(&m->c, id, 0, 8);
		before = failed(m);
		run(m);
		assert_in_range(failed(m) - before, 0, STEP_QPS);
		run(m);
		expect_recv(&m->d.rcq, id, 8);
		expect_sent(&m->c, id);
	}
	assert_in_range(m->adapter->job.longest, 1, PVR_STEP_WORK + 2 * PVR_WORK_QP);
}

/* Two receives of a queue pair are flushed to a CQ with room for one. */
static void overflow(struct many *m)
{
	assert_true(fg_post_recv(&m->first, 1, NULL, 0));
	assert_true(fg_post_recv(&m->first, 2, NULL, 0));
	expect_ok(fg_qp_to_err(&m->first));
}

TEST_MANY(test_queue_pairs_of_a_failed_cq)
{
	add_qps(m, (struct fg_qp_spec){ .scq = &m->cq });
	overflow(m);
	expect_all_fail_in_steps(m);
	fg_run(env->host);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_CQ_ERR, m->cq.handle), 1);
}

/* A message finds that the guest has made the producer index of the SRQ wrong. */
static void break_srq(struct many *m)
{
	struct t_env *env = m->env;

	m->srq.ring->prod_tail = 0x7fffffff;
	t_send(&env->b, 1, 0, 8);
}

TEST_MANY(test_queue_pairs_of_a_failed_srq)
{
	t_srq_use(&env->a, 4, &m->srq);
	t_reconnect(env);
	add_qps(m, (struct fg_qp_spec){ .srq = &m->srq });
	break_srq(m);
	expect_all_fail_in_steps(m);
}

TEST_MANY(test_queue_pairs_whose_peer_is_gone)
{
	add_peers_of_b(m);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	env->host->now += SOON;
	expect_all_fail_in_steps(m);
}

TEST_MANY(test_objects_are_destroyed_between_the_steps)
{
	add_qps(m, (struct fg_qp_spec){ .scq = &m->cq });
	overflow(m);
	run_first_step(m);
	expect_ok(fg_qp_destroy(&m->first));
	for (uint32_t i = 0; i < MANY; i++)
		expect_ok(fg_qp_destroy(&m->qps[i]));
	expect_ok(fg_cq_destroy(&m->cq));
	fg_run(env->host);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST_MANY(test_reset_between_the_steps)
{
	add_qps(m, (struct fg_qp_spec){ .scq = &m->cq });
	overflow(m);
	run_first_step(m);
	pvr_adapter_reset(m->adapter);
	fg_run(env->host);
	assert_false(pvr_adapter_busy(m->adapter));
	assert_int_equal(m->adapter->qps.used, 0);
	expect_ok(fg_guest_boot(env->g[0]));
}

/* The first half of the table has been visited when the second CQ fails. */
TEST_MANY(test_second_failure_between_the_steps)
{
	struct fg_end other;

	fg_end_open(&other, env->g[0], PVR_QPT_RC);
	add_qps(m, (struct fg_qp_spec){ .scq = &m->cq });
	overflow(m);
	run_first_step(m);
	pvr_adapter_lock(m->adapter);
	pvr_cq_fail(m->adapter, pvr_cq_get(m->adapter, env->a.rcq.handle), "a test");
	pvr_adapter_unlock(m->adapter);
	fg_run(env->host);
	assert_int_equal(failed(m), MANY);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&other, PVR_QPS_RESET);
}

TEST_MANY(test_notice_is_delivered_when_bus_mastering_is_on_again)
{
	add_peers_of_b(m);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	env->host->now += SOON;
	run_first_step(m);
	pvr_adapter_set_bus_master(m->adapter, false);
	fg_run(env->host);
	assert_in_range(failed(m), 1, MANY - 1);
	pvr_adapter_set_bus_master(m->adapter, true);
	fg_settle(env->host, SOON);
	assert_int_equal(failed(m), MANY);
}

/* A CQ stays in error. So a queue pair that uses it again fails at its first completion. */
TEST_MANY(test_queue_pair_that_uses_a_failed_cq_again)
{
	overflow(m);
	fg_run(env->host);
	expect_ok(fg_qp_to_reset(&m->first));
	expect_ok(fg_qp_connect(&m->first, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	expect_ok(fg_qp_connect(&env->b.qp, NULL, env->a.gid, m->first.qpn));
	while (fg_events_pending(env->g[0]))
		fg_events_count(env->g[0], PVR_EVENT_CQ_ERR, 0);
	assert_true(fg_post_recv(&m->first, 3, NULL, 0));
	t_send(&env->b, 1, 0, 0);
	fg_run(env->host);
	assert_int_equal(fg_qp_state(&m->first), PVR_QPS_ERR);
	expect_one_event(env->g[0], PVR_EVENT_QP_FATAL, m->first.handle);
}

TEST_MANY(test_bus_mastering_lets_the_worker_kick_queue_pairs)
{
	add_qps(m, (struct fg_qp_spec){ .type = PVR_QPT_RC });
	pvr_adapter_set_bus_master(m->adapter, false);
	pvr_adapter_set_bus_master(m->adapter, true);
	assert_int_equal(m->adapter->qp_sweep.reasons, PVR_SWEEP_KICK);
	fg_settle(env->host, SOON);
	assert_int_equal(m->adapter->qp_sweep.reasons, 0);
	t_ping_pong(env->host, &env->a, &env->b);
}
