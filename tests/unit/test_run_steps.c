// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Adapters with many queue pairs that are stopped, started, saved and loaded: no call touches all
 * of them, and other adapters of the worker run meanwhile.
 */
#include <stdlib.h>

#include "core/objects.h"
#include "hosts.h"
#include "rdma/qp_sweep.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

#define MANY 2500u /* queue pairs: several steps of the shortest visits */
#define SOON (20 * FG_MS)
#define ROUNDS 200u /* calls of pvr_engine_run() that are enough for all steps */

TEST_EXT(PVR_EXT_PEER_GONE)

/*
 * Guest 0 has many queue pairs that are connected to b, and share their pages. Guests 2 and 3 are
 * its neighbors.
 */
struct crowd {
	struct t_env *env;
	struct pvr_adapter *adapter;
	struct fg_end c, d; /* of the neighbors, connected */
};

static void add_queue_pairs(struct fg_end *end, const struct fg_end *peer)
{
	const struct fg_qp_spec spec = {
		.pd = &end->pd, .scq = &end->scq, .rcq = &end->rcq, .type = PVR_QPT_RC
	};
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	struct fg_qp qp = t_qp_create(end, spec);
	struct pvr_resp_create_qp resp;

	req.pdir_dma = qp.buf.pdir;
	for (uint32_t i = 0; i < MANY; i++) {
		expect_ok(fg_create_qp(end->guest, &req, &resp));
		qp.handle = resp.qp_handle;
		qp.qpn = resp.qpn;
		expect_ok(fg_qp_to_init(&qp, NULL));
		expect_ok(fg_qp_to_rtr(&qp, NULL, peer->gid, peer->qp.qpn));
		expect_ok(fg_qp_to_rts(&qp, NULL));
	}
}

static void crowd_init(struct crowd *m, struct t_env *env)
{
	m->env = env;
	m->adapter = env->g[0]->adapter;
	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&m->c, env->g[2], &m->d, env->g[3]);
	add_queue_pairs(&env->a, &env->b);
	fg_run(env->host);
	m->adapter->job.longest = 0;
}

#define TEST_CROWD(name) TEST_OBJECT(rc_connected, struct crowd, m, crowd_init, name)

static bool is_kicked(const struct pvr_qp *qp)
{
	return qp->is_ready;
}

static bool is_lost(const struct pvr_qp *qp)
{
	return qp->peer_qp_gone;
}

static bool is_failed(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_ERR;
}

/* Of the adapter's queue pairs, with that of end a. */
static uint32_t count_of(const struct fg_guest *guest, bool (*is)(const struct pvr_qp *qp))
{
	struct pvr_qp *qp;
	uint32_t n = 0, i;

	PVR_TABLE_FOR_EACH(&guest->adapter->qps, i, qp)
		n += is(qp);
	return n;
}

static uint32_t count(const struct crowd *m, bool (*is)(const struct pvr_qp *qp))
{
	return count_of(m->env->g[0], is);
}

/*
 * The neighbors exchange a message. Each run ends after a step of one adapter. Return: the number
 * of runs.
 */
static uint32_t run_with_neighbors(struct crowd *m, uint64_t id)
{
	struct pvrdma_cqe cqe;
	uint32_t runs = 0;

	t_recv(&m->d, id, 0, 8);
	t_send(&m->c, id, 0, 8);
	while (!fg_cq_poll(&m->c.scq, &cqe)) {
		assert_in_range(++runs, 1, 2 * T_GUESTS);
		pvr_engine_run(m->env->host->engine, 0);
	}
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	expect_recv(&m->d.rcq, id, 8);
	return runs;
}

static void expect_sweeps_to_end(struct crowd *m)
{
	uint32_t runs = 0;

	for (uint64_t id = 0; m->adapter->qp_sweep.reasons | m->adapter->watch_sweep.reasons;
	     id++) {
		assert_in_range(id, 0, ROUNDS);
		runs += run_with_neighbors(m, id);
	}
	assert_in_range(runs, 2, ROUNDS); /* there were several steps */
	assert_in_range(m->adapter->job.longest, 1, PVR_STEP_WORK + 2 * PVR_WORK_QP);
}

/* ------------------------------------------------------------------------ stop, start */

TEST_CROWD(test_start_visits_queue_pairs_in_steps)
{
	fg_stop(env->g[0]);
	assert_int_equal(fg_start(env->g[0]), 0);
	assert_int_equal(count(m, is_kicked), 0);
	expect_sweeps_to_end(m);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* Of objects behind the many. One CQ has no queue pair any more. */
TEST_CROWD(test_start_finds_requests_and_arms_of_the_stop)
{
	struct fg_end from, to, left, sender;

	t_open_pair(&from, env->g[0], &to, env->g[1]);
	t_open_pair(&left, env->g[0], &sender, env->g[1]);
	t_recv(&to, 2, 0, 8);
	t_recv(&left, 3, 0, 8);
	t_send(&sender, 4, 0, 8);
	fg_run(env->host);
	expect_ok(fg_qp_destroy(&left.qp));
	fg_stop(env->g[0]);
	t_put_send(&from, 1, 0, 8);
	fg_cq_arm(&left.rcq);
	assert_int_equal(fg_start(env->g[0]), 0);
	expect_sweeps_to_end(m);
	fg_run(env->host);
	expect_sent(&from, 1);
	expect_recv(&to.rcq, 2, 8);
	assert_int_equal(fg_cq_events_pending(env->g[0]), 1);
}

static void set_timers(struct crowd *m, uint64_t deadline)
{
	struct pvr_qp *qp;
	uint32_t i;

	pvr_adapter_lock(m->adapter);
	PVR_TABLE_FOR_EACH(&m->adapter->qps, i, qp)
		pvr_timer_set(&m->adapter->timers, &qp->timer, deadline + i);
	pvr_adapter_unlock(m->adapter);
}

TEST_CROWD(test_start_moves_no_timer_by_itself)
{
	uint64_t before, sum = 0, due = env->host->now + FG_SEC;
	uint32_t i;

	set_timers(m, due);
	before = pvr_timers_next(&m->adapter->timers);
	for (i = 1; i <= m->adapter->timers.count; i++)
		sum += m->adapter->timers.heap[i]->deadline;
	fg_stop(env->g[0]);
	env->host->now += 5 * FG_SEC;
	assert_int_equal(fg_start(env->g[0]), 0);
	assert_int_equal(pvr_timers_next(&m->adapter->timers), before + 5 * FG_SEC);
	for (i = 1; i <= m->adapter->timers.count; i++)
		sum -= m->adapter->timers.heap[i]->deadline;
	assert_int_equal(sum, 0);
}

/* ----------------------------------------------------------------------------- peers */

TEST_CROWD(test_stop_judges_no_peer)
{
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	fg_stop(env->g[0]);
	assert_int_equal(count(m, is_lost), 0);
	assert_int_equal(fg_start(env->g[0]), 0);
	fg_settle(env->host, SOON);
	assert_int_equal(count(m, is_failed), MANY + 1);
}

/* The state tells it, as another process cannot know the incarnation. */
static void move_after_peer_ended(struct crowd *m, bool is_stopped_before)
{
	struct t_env *env = m->env;
	struct fg_state state;

	if (is_stopped_before)
		fg_stop(env->g[0]);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	if (!is_stopped_before)
		fg_stop(env->g[0]);
	assert_int_equal(fg_state_save(env->g[0], &state), 0);
	fg_drop(env->g[0]);
	assert_int_equal(fg_state_load(env->g[0], &state), 0);
	fg_state_free(&state);
	assert_int_equal(fg_start(env->g[0]), 0);
	fg_settle(env->host, SOON);
	assert_int_equal(count(m, is_failed), MANY + 1);
}

TEST_CROWD(test_peer_that_ends_before_the_stop_is_gone_after_the_load)
{
	move_after_peer_ended(m, false);
}

TEST_CROWD(test_peer_that_ends_during_the_stop_is_gone_after_the_load)
{
	move_after_peer_ended(m, true);
}

/* ------------------------------------------------------------------- loaded adapters */

static bool has_peer(const struct pvr_qp *qp)
{
	return qp->peer_incarnation != 0;
}

static void save_and_drop(struct fg_guest *guest, struct fg_state *state)
{
	fg_stop(guest);
	assert_int_equal(fg_state_save(guest, state), 0);
	assert_int_equal(pvr_adapter_drop(guest->adapter), 0);
}

static void load(struct fg_guest *guest, struct fg_state *state)
{
	assert_int_equal(fg_state_load(guest, state), 0);
	fg_state_free(state);
}

TEST_CROWD(test_start_of_a_loaded_adapter_finds_peers_in_steps)
{
	struct fg_state state;

	save_and_drop(env->g[0], &state);
	fg_run(env->host);
	load(env->g[0], &state);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	assert_int_equal(count(m, has_peer), 0);
	expect_sweeps_to_end(m);
	assert_int_equal(count(m, has_peer), MANY + 1);
}

/* Its peers have not noticed the move when the adapter has another guest. */
TEST_CROWD(test_drop_of_a_moved_adapter_is_noticed_in_steps)
{
	struct fg_state state;

	save_and_drop(env->g[1], &state);
	assert_int_equal(count(m, has_peer), MANY + 1);
	pvr_adapter_reset(env->g[1]->adapter);
	expect_sweeps_to_end(m);
	assert_int_equal(count(m, has_peer), 0);
	fg_settle(env->host, SOON);
	assert_int_equal(count(m, is_failed), 0);
	load(env->g[1], &state);
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), 0);
	assert_int_equal(count(m, has_peer), 0);
	expect_sweeps_to_end(m);
	assert_int_equal(count(m, has_peer), MANY + 1);
}

/* The end of the peer is noticed after the start. */
TEST_CROWD(test_stopped_adapter_finds_the_peers_of_its_queue_pairs)
{
	struct fg_state state;

	save_and_drop(env->g[0], &state);
	fg_run(env->host);
	load(env->g[0], &state);
	assert_int_equal(pvr_adapter_stay_stopped(env->g[0]->adapter), 0);
	fg_run(env->host);
	assert_int_equal(count(m, has_peer), MANY + 1);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(env->host);
	assert_int_equal(fg_start(env->g[0]), 0);
	fg_settle(env->host, SOON);
	assert_int_equal(count(m, is_failed), MANY + 1);
}

/* Another state of the adapter was read since, so its peers have gone on. */
static void load_stale_state(struct crowd *m)
{
	struct fg_guest *g = m->env->g[0];
	struct fg_state state, last;

	fg_stop(g);
	assert_int_equal(fg_state_save(g, &state), 0);
	assert_int_equal(fg_start(g), 0);
	fg_run(m->env->host);
	save_and_drop(g, &last);
	fg_state_free(&last);
	fg_run(m->env->host);
	load(g, &state);
}

TEST_CROWD(test_connections_of_an_old_state_end_in_steps)
{
	uint32_t before, now, runs = 0;

	t_recv(&env->b, 9, 0, 8);
	load_stale_state(m);
	t_put_send(&env->a, 1, 0, 8);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	for (before = 0; before <= MANY; before = now) {
		now = count(m, is_failed);
		assert_in_range(++runs, 0, ROUNDS);
		assert_in_range(now - before, 0, PVR_STEP_WORK / PVR_WORK_QP);
		pvr_engine_run(env->host->engine, 0);
	}
	assert_in_range(m->adapter->job.longest, 1, PVR_STEP_WORK + PVR_WORK_QP + PVR_WORK_FRAME);
	fg_settle(env->host, SOON);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
}

/* A queue pair behind the many: its requests, those of its peer, and a connection that is new. */
TEST_CROWD(test_queue_pair_whose_connection_is_about_to_end_has_no_requests)
{
	struct fg_end from, to;

	t_open_pair(&from, env->g[0], &to, env->g[1]);
	t_recv(&to, 9, 0, 8);
	t_recv(&from, 8, 0, 8);
	fg_run(env->host);
	load_stale_state(m);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	t_send(&from, 1, 0, 8);
	t_send(&to, 2, 0, 8);
	pvr_engine_run(env->host->engine, 0);
	assert_true(m->adapter->ends_connections);
	expect_state(&from, PVR_QPS_RTS);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&from.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_cqe(&from.rcq, 8, PVRDMA_WC_WR_FLUSH_ERR);
	expect_cqe(&to.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&to.rcq, 9, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST_CROWD(test_new_connection_stays_while_old_ones_end)
{
	struct fg_end from, to;

	t_open_pair(&from, env->g[0], &to, env->g[1]);
	fg_run(env->host);
	load_stale_state(m);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	t_reconnect_ends(&from, &to);
	assert_true(m->adapter->ends_connections);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(count(m, is_failed), MANY + 1);
	t_ping_pong(env->host, &from, &to);
}

/* It keeps its PSNs, which the peer has seen. */
TEST_CROWD(test_other_path_is_no_new_connection)
{
	struct pvr_qp_attr attr = {
		.qp_state = PVR_QPS_SQD,
		.ah_attr = { .hop_limit = 9, .ah_flags = PVR_AH_GRH, .port_num = 1 },
	};
	struct fg_end from, to;

	t_open_pair(&from, env->g[0], &to, env->g[1]);
	fg_run(env->host);
	load_stale_state(m);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	expect_ok(fg_qp_modify(&from.qp, PVR_QPA_STATE, &attr));
	memcpy(attr.ah_attr.dgid, to.gid, 16);
	fg_mac_of_gid(attr.ah_attr.dmac, to.gid);
	expect_ok(fg_qp_modify(&from.qp, PVR_QPA_AV, &attr));
	assert_true(m->adapter->ends_connections);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(count(m, is_failed), MANY + 2);
}

TEST_CROWD(test_state_that_was_partly_read_when_connections_end_is_stale)
{
	struct pvr_save *save;
	uint8_t part[64];

	(void)m;
	fg_stop(env->g[0]);
	assert_int_equal(pvr_adapter_save_begin(env->g[0]->adapter, &save), 0);
	assert_int_equal(pvr_save_read(save, part, sizeof(part)), sizeof(part));
	pvr_adapter_lock(env->g[0]->adapter);
	pvr_qp_end_connections(env->g[0]->adapter);
	pvr_adapter_unlock(env->g[0]->adapter);
	assert_int_equal(pvr_save_read(save, part, sizeof(part)), -ESTALE);
	pvr_save_end(save);
}

/* A sweep that has begun before the stop. */
TEST_CROWD(test_stopped_adapter_is_saved_during_each_sweep)
{
	struct fg_state state;

	for (uint32_t reason = PVR_SWEEP_ERRORS; reason <= PVR_SWEEP_RESUME; reason <<= 1) {
		pvr_adapter_lock(m->adapter);
		pvr_qp_sweep_begin(m->adapter, reason);
		pvr_adapter_unlock(m->adapter);
		fg_stop(env->g[0]);
		assert_int_equal(fg_state_save(env->g[0], &state), 0);
		fg_state_free(&state);
		assert_int_equal(fg_start(env->g[0]), 0);
		fg_run(env->host);
	}
}

/* The state that is saved then has no connections either. */
TEST_CROWD(test_stop_while_connections_end)
{
	struct fg_state state;

	load_stale_state(m);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	fg_stop(env->g[0]);
	assert_true(m->adapter->ends_connections);
	assert_int_equal(fg_state_save(env->g[0], &state), 0);
	assert_int_equal(count(m, is_failed), MANY + 1);
	assert_int_equal(pvr_adapter_drop(env->g[0]->adapter), 0);
	fg_run(env->host);
	load(env->g[0], &state);
	assert_int_equal(count(m, is_failed), MANY + 1);
}

TEST_CROWD(test_reset_while_connections_end)
{
	load_stale_state(m);
	assert_int_equal(pvr_adapter_start(env->g[0]->adapter), 0);
	pvr_adapter_reset(env->g[0]->adapter);
	assert_false(m->adapter->ends_connections);
	fg_run(env->host);
	expect_ok(fg_guest_boot(env->g[0]));
}

/* ----------------------------------------------------------------------- other hosts */

/* Guest 0 has many queue pairs that are connected to b, which is at another host. */
T_SETUP_HOSTS(far, 2)
{
	hosts_connect(env, &env->a, &env->b, 1);
	add_queue_pairs(&env->a, &env->b);
	fg_run(env->host);
}

static bool waits_for_connection(const struct pvr_qp *qp)
{
	return qp->wait == PVR_QP_WAIT_CONN;
}

/* All of them send one request, also those that share a ring. */
static void send_all(struct t_env *env)
{
	struct pvr_adapter *adapter = env->g[0]->adapter;
	struct pvr_qp *qp;
	uint32_t i;

	pvr_adapter_lock(adapter);
	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp)
		if (qp->type == PVR_QPT_RC)
			__atomic_store_n(&qp->sq.shm->prod_tail, 1, __ATOMIC_RELEASE);
	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp)
		pvr_sched_kick(qp);
	pvr_adapter_unlock(adapter);
	fg_run(env->host);
}

TEST(far, test_connection_resumes_many_queue_pairs_in_steps)
{
	struct pvr_adapter *adapter = env->g[0]->adapter;

	fg_wire_cut(env->wire, 0, 1, 0);
	send_all(env);
	assert_in_range(count_of(env->g[0], waits_for_connection), MANY, MANY + 1);
	fg_wire_mend(env->wire, 0, 1, 0);
	assert_in_range(count_of(env->g[0], waits_for_connection), MANY - 1024, MANY - 1);
	assert_int_equal(adapter->qp_sweep.reasons, PVR_SWEEP_RESUME);
	fg_run(env->host);
	assert_int_equal(adapter->qp_sweep.reasons, 0);
	assert_int_equal(count_of(env->g[0], waits_for_connection), 0);
}
