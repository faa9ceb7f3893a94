// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A third path: what a table of functions has to do, and what the engine does for it. */
#include "ends.h"
#include "lossy_path.h"

#define MESSAGES 40
#define SIZE 64u /* of a message in the buffers */
#define ACK_TIMEOUT (4096ull << 14) /* ns, of fg_conn_default */
#define LONG_PAGES 256u /* 1 MiB, four pieces */

/* Two guests on one host whose engine has the lossy path and, behind it, the local one. */
T_SETUP(lossy, host)
{
	lossy_path_install(env->host->engine);
	env->g[0] = fg_guest_start(env->host, 1);
	env->g[1] = fg_guest_start(env->host, 2);
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
}

T_SETUP(lossy_connected, lossy)
{
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
}

static uint32_t *word(const struct fg_end *end, uint32_t i)
{
	return (uint32_t *)(end->mr.va + i * SIZE);
}

/* Number i, in message i of the buffer of @end. */
static void fill(struct fg_end *end)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		*word(end, i) = 1000 + i;
}

static void expect_filled(const struct fg_end *end)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		assert_int_equal(*word(end, i), 1000 + i);
}

/* As many requests of a are done, in order, and no others. */
static void expect_all_done(struct t_env *env, uint32_t requests, enum pvrdma_wc_opcode opcode)
{
	for (uint32_t i = 0; i < requests; i++)
		expect_done(&env->a.scq, i, opcode);
	expect_no_cqe(&env->a.scq);
}

static void post_sends(struct t_env *env)
{
	fill(&env->a);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		t_recv(&env->b, i, i * SIZE, SIZE);
		t_send(&env->a, i, i * SIZE, SIZE);
	}
}

/* Each once, and in order. */
static void expect_sends(struct t_env *env)
{
	expect_all_done(env, MESSAGES, PVRDMA_WC_SEND);
	for (uint32_t i = 0; i < MESSAGES; i++)
		expect_recv(&env->b.rcq, i, SIZE);
	expect_no_cqe(&env->b.rcq);
	expect_filled(&env->b);
}

/* Makes requesters of this host resolve their paths again. */
static void move_a_gid(struct t_env *env)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 9);
	expect_ok(fg_bind_gid(env->g[1], 5, gid));
	expect_ok(fg_unbind_gid(env->g[1], 5, gid));
}

static void ping(struct t_env *env)
{
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
}

/* ------------------------------------------------------------------------- losses */

struct loss {
	const char *label;
	unsigned int every;
};

static const struct loss losses[] = {
	{ "none", 0 },
	{ "each_second", 2 },
	{ "each_third", 3 },
	{ "each_seventh", 7 },
};

static void expect_losses(const struct loss *loss, unsigned int requests)
{
	unsigned int lost = loss->every ? (lossy_path.sent - 1) / loss->every : 0;

	assert_int_equal(lossy_path.lost, lost);
	assert_int_equal(lossy_path.sent - lossy_path.lost, requests);
}

TEST_CASES(lossy_connected, test_send_despite_loss_arrives_once_in_order, losses)
{
	lossy_path.lose_every = row->every;
	post_sends(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_sends(env);
	expect_losses(row, MESSAGES);
}

TEST_CASES(lossy_connected, test_write_despite_loss_arrives_once_in_order, losses)
{
	lossy_path.lose_every = row->every;
	fill(&env->a);
	for (uint32_t i = 0; i < MESSAGES; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, i * SIZE, &env->b.mr, i * SIZE, SIZE);
	/* The last one to a place is what stays there. */
	for (uint32_t i = 0; i < 10; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, MESSAGES + i, i * SIZE, &env->b.mr,
		       MESSAGES * SIZE, SIZE);
	fg_settle(env->host, 100 * FG_SEC);
	expect_all_done(env, MESSAGES + 10, PVRDMA_WC_RDMA_WRITE);
	expect_filled(&env->b);
	assert_int_equal(*word(&env->b, MESSAGES), 1009);
	expect_losses(row, MESSAGES + 10);
}

TEST_CASES(lossy_connected, test_read_despite_loss_completes_once_in_order, losses)
{
	lossy_path.lose_every = row->every;
	fill(&env->b);
	for (uint32_t i = 0; i < MESSAGES; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, i * SIZE, &env->b.mr, i * SIZE, SIZE);
	fg_settle(env->host, 100 * FG_SEC);
	expect_all_done(env, MESSAGES, PVRDMA_WC_RDMA_READ);
	expect_filled(&env->a);
	expect_losses(row, MESSAGES);
}

TEST_CASES(lossy_connected, test_atomic_despite_loss_is_executed_once, losses)
{
	lossy_path.lose_every = row->every;
	*(uint64_t *)env->b.mr.va = 1000;
	for (uint32_t i = 0; i < MESSAGES; i++)
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       T_SGE(&env->a.mr, i * SIZE, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
	fg_settle(env->host, 100 * FG_SEC);
	expect_all_done(env, MESSAGES, PVRDMA_WC_FETCH_ADD);
	expect_filled(&env->a);
	assert_int_equal(*(uint64_t *)env->b.mr.va, 1000 + MESSAGES);
	expect_losses(row, MESSAGES);
}

/* The pieces that have arrived are not sent again. */
TEST(lossy_connected, test_only_a_lost_fragment_is_sent_again)
{
	struct fg_mr wide_a, wide_b;

	t_wide_mr(&env->a, LONG_PAGES, &wide_a);
	t_wide_mr(&env->b, LONG_PAGES, &wide_b);
	lossy_path.lose_every = 3;
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE,
	       T_SGE(&wide_a, 0, LONG_PAGES * 4096), T_REMOTE(&wide_b, 0));
	fg_settle(env->host, 10 * FG_SEC);
	expect_written(&env->a, 1);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(lossy_path.sent, 5);
	assert_int_equal(lossy_path.lost, 1);
}

/* The first try and one for each of the 7 retries, an ACK timeout apart. */
TEST(lossy_connected, test_peer_behind_total_loss_ends_with_retry_exceeded)
{
	uint64_t begin = env->host->now;

	lossy_path.lose_every = 1;
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	t_send(&env->a, 2, 0, SIZE);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(lossy_path.lost, lossy_path.sent);
	assert_true(env->host->now - begin >= fg_conn_default.retry_cnt * ACK_TIMEOUT);
}

/* ------------------------------------------------------------------------- delays */

TEST(lossy_connected, test_delayed_request_keeps_order)
{
	lossy_path.delay_every = 5;
	lossy_path.delay_ns = 3 * FG_MS;
	post_sends(env);
	fg_run(env->host);
	/* The fifth is on its way, and nothing passes it. */
	assert_int_equal(fg_cq_pending(&env->b.rcq), 4);
	fg_advance(env->host, 3 * FG_MS - 1);
	assert_int_equal(fg_cq_pending(&env->b.rcq), 4);
	fg_advance(env->host, 1);
	assert_int_equal(fg_cq_pending(&env->b.rcq), 9);
	fg_settle(env->host, FG_SEC);
	expect_sends(env);
	assert_int_equal(lossy_path.sent, MESSAGES);
	assert_int_equal(lossy_path.delayed, MESSAGES / 5);
}

TEST(lossy_connected, test_delay_and_loss_keep_order)
{
	lossy_path.lose_every = 4;
	lossy_path.delay_every = 6;
	lossy_path.delay_ns = FG_MS;
	post_sends(env);
	fg_settle(env->host, 100 * FG_SEC);
	expect_sends(env);
	assert_true(lossy_path.lost && lossy_path.delayed);
}

TEST(lossy_connected, test_err_ends_a_delay)
{
	lossy_path.delay_every = 1;
	lossy_path.delay_ns = 3 * FG_MS;
	t_recv(&env->b, 1, 0, SIZE);
	t_send(&env->a, 1, 0, SIZE);
	fg_run(env->host);
	assert_int_equal(lossy_path.delayed, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
}

/* ---------------------------------------------------------------- resolve, detach */

TEST(lossy, test_resolve_no_falls_to_the_next_path)
{
	lossy_path.unreachable = true;
	lossy_path.lose_every = 1;
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
	assert_int_equal(lossy_path.sent, 0);
	expect_path(env, "local");
}

TEST(lossy_connected, test_path_changes_when_resolve_says_no)
{
	ping(env);
	expect_sent(&env->a, 7);
	assert_int_equal(lossy_path.sent, 1);
	lossy_path.unreachable = true;
	move_a_gid(env);
	ping(env);
	expect_sent(&env->a, 7);
	assert_int_equal(lossy_path.sent, 1);
	assert_int_equal(lossy_path.detached, 1);
	expect_path(env, "local");
}

TEST(lossy_connected, test_detach_false_keeps_the_queue_pair)
{
	ping(env);
	lossy_path.unreachable = true;
	lossy_path.keeps_qps = true;
	move_a_gid(env);
	/* Both paths find the peer alike: local resolve() has filled in its adapter. */
	ping(env);
	assert_int_equal(lossy_path.sent, 2);
	assert_true(lossy_path.detached > 0);
	expect_path(env, "lossy");
	lossy_path.keeps_qps = false;
	ping(env);
	assert_int_equal(lossy_path.sent, 2);
	expect_path(env, "local");
	for (uint32_t i = 0; i < 3; i++)
		expect_sent(&env->a, 7);
}

/* --------------------------------------------------------------------- rnr_resume */

/* The responder's doorbell does not resume the requester: the RNR timer of 0.64 ms does. */
TEST(lossy_connected, test_without_rnr_resume_the_timer_retries)
{
	t_send(&env->a, 1, 0, SIZE);
	fg_run(env->host);
	assert_int_equal(lossy_path.rnr, 1);
	t_recv(&env->b, 1, 0, SIZE);
	await_no_cqe(&env->b.rcq);
	fg_advance(env->host, 640 * FG_US - 1);
	expect_no_cqe(&env->b.rcq);
	fg_advance(env->host, 1);
	expect_recv(&env->b.rcq, 1, SIZE);
	expect_sent(&env->a, 1);
	assert_int_equal(lossy_path.sent, 2);
}

/* -------------------------------------------------------------------- stop, close */

static uint32_t to_sqd(struct fg_qp *qp)
{
	const struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	return fg_qp_modify(qp, PVR_QPA_STATE, &attr);
}

static const struct {
	const char *label;
	uint32_t (*change)(struct fg_qp *qp);
	unsigned int stopped, closed; /* calls of the path's functions */
} changes[] = {
	{ "SQD", to_sqd, 0, 0 },
	{ "ERR", fg_qp_to_err, 1, 0 },
	{ "RESET", fg_qp_to_reset, 2, 1 },
	{ "destroyed", fg_qp_destroy, 1, 1 },
};

TEST_CASES(lossy_connected, test_stop_and_close_are_called_when_rts_is_left, changes)
{
	unsigned int before;

	lossy_path.delay_every = 1;
	lossy_path.delay_ns = FG_MS;
	t_send(&env->a, 1, 0, SIZE);
	fg_run(env->host);
	before = lossy_path.stopped;
	expect_ok(row->change(&env->a.qp));
	assert_int_equal(lossy_path.stopped - before, row->stopped);
	assert_int_equal(lossy_path.closed, row->closed);
	fg_settle(env->host, FG_SEC);
}

/*
 * A quantum that is repeated without a try of a lock, after an adapter that it once found locked is
 * gone: its worker waits for no lock.
 */
TEST(lossy_connected, test_lock_of_a_removed_adapter_is_not_waited_for)
{
	struct pvr_lock *lock = &env->g[1]->adapter->lock;

	pvr_lock(lock);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	fg_host_step(env->host);
	pvr_unlock(lock);
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
	lossy_path.busy = true;
	fg_host_step(env->host);
	lossy_path.busy = false;
}

/* --------------------------------------------------------------------- the local path */

/* Each program connects its own queue pair, and may send before the other one has done so. */
TEST(rc, test_queue_pair_that_is_connected_late_is_reached_soon)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 21; /* 8.6 s */
	expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, env->b.qp.qpn));
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	expect_ok(fg_qp_connect(&env->b.qp, &conn, env->a.gid, env->a.qp.qpn));
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, 200 * FG_MS);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}
