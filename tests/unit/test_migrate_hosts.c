// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Adapters that are saved and loaded between the parts of requests to another host. */
#include "hosts.h"
#include "rndv.h"

#include "core/objects.h"
#include "gid/resolve.h"
#include "fg_migrate.h"

#define REQUESTS 48u
#define PAGES 64u
#define LEN 60000u
#define MAX_STEPS 100000u

TEST_EXT(PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL)

/* The receiver's buffer begins with a counter; the sender's, too, with what atomics return. */
T_SETUP_HOSTS(hosts, 2, .chunk = 4096, .buffer = 16384)
{
	hosts_connect(env, &env->a, &env->b, PAGES);
	memset(env->b.buf.va, 0, PVR_PAGE_SIZE);
}

static void post(struct t_env *env, uint32_t i)
{
	switch (i % 4) {
	case 0:
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       T_SGE(&env->a.mr, 8 * i, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
		break;
	case 1:
		t_recv(&env->b, i, PVR_PAGE_SIZE, LEN);
		t_send(&env->a, i, PVR_PAGE_SIZE, LEN);
		break;
	case 2:
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, PVR_PAGE_SIZE, &env->b.mr, 2 * LEN, LEN);
		break;
	default:
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, 2 * LEN, &env->b.mr, 2 * LEN, LEN);
	}
}

/* Each request has completed once, in order, and each atomic was executed once. */
static void expect_all(struct t_env *env)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < REQUESTS; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_SUCCESS);
	expect_no_cqe(&env->a.scq);
	for (i = 1; i < REQUESTS; i += 4)
		expect_recv(&env->b.rcq, i, LEN);
	expect_no_cqe(&env->b.rcq);
	for (i = 0; i < REQUESTS; i += 4) {
		memcpy(&value, (uint8_t *)env->a.buf.va + 8 * i, sizeof(value));
		assert_int_equal(value, i / 4);
	}
	memcpy(&value, env->b.buf.va, sizeof(value));
	assert_int_equal(value, REQUESTS / 4);
	assert_memory_equal((uint8_t *)env->a.buf.va + PVR_PAGE_SIZE,
			    (uint8_t *)env->a.buf.va + 2 * LEN, LEN);
}

static const struct mover {
	const char *label;
	bool a, b, cuts;
	uint32_t every; /* steps */
} movers[] = {
	{ "sender, each step", true, false, false, 1 },
	{ "sender, often", true, false, false, 5 },
	{ "receiver, each step", false, true, false, 1 },
	{ "receiver, often", false, true, false, 7 },
	{ "both", true, true, false, 3 },
	{ "sender, with new connections", true, false, true, 11 },
	{ "receiver, with new connections", false, true, true, 11 },
	{ "both, with new connections", true, true, true, 13 },
};

static void move(struct t_env *env, const struct mover *row)
{
	if (row->cuts)
		fg_wire_cut(env->wire, 0, 1, 0);
	if (row->a)
		fg_migrate(env->g[0]);
	if (row->b)
		fg_migrate(env->g[1]);
	if (row->cuts)
		fg_wire_mend(env->wire, 0, 1, 0);
}

/* Until the move after the last completion, or for a time that no run needs. */
TEST_CASES(hosts, test_requests_in_flight_survive_moves, movers)
{
	uint32_t i, steps = 0;

	memset(env->a.buf.va, 0x5a, PAGES * PVR_PAGE_SIZE);
	for (i = 0; i < REQUESTS; i++)
		post(env, i);
	for (; fg_cq_pending(&env->a.scq) < REQUESTS && steps < MAX_STEPS; steps++) {
		fg_wire_step(env->wire);
		if (steps % row->every == 0)
			move(env, row);
		if (steps % 64 == 63)
			fg_wire_advance(env->wire, FG_MS);
	}
	expect_all(env);
}

/* The answers are lost with the connection: the requests are sent again, and not executed again. */
TEST(hosts, test_answers_that_are_lost_while_the_sender_moves)
{
	uint32_t i;

	memset(env->a.buf.va, 0x5a, PAGES * PVR_PAGE_SIZE);
	for (i = 0; i < REQUESTS; i++)
		post(env, i);
	fg_wire_steps(env->wire, 40);
	assert_in_range(t_device_qp(&env->a)->sq_inflight, 1, REQUESTS);
	fg_wire_hold(env->wire, 1, 0, true);
	fg_wire_steps(env->wire, 40);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_migrate(env->g[0]);
	fg_migrate(env->g[1]);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_wire_settle(env->wire, FG_SEC);
	expect_all(env);
}

/* ------------------------------------------------------------------ from host to host */

static const struct traveller {
	const char *label;
	int guest; /* that moves to and fro */
	uint32_t steps; /* before a move */
} travellers[] = {
	{ "the receiver, at once", 1, 1 }, { "the receiver, soon", 1, 4 },
	{ "the receiver, later", 1, 13 },  { "the receiver, much later", 1, 40 },
	{ "the sender, at once", 0, 1 },   { "the sender, soon", 0, 4 },
	{ "the sender, later", 0, 13 },	   { "the sender, much later", 0, 40 },
};

/* Alternately both are on one host and on two. Each move has requests in progress. */
TEST_CASES(hosts, test_requests_survive_moves_from_host_to_host, travellers)
{
	const uint32_t wave = REQUESTS / 12;
	uint32_t i, moves = 0;

	memset(env->a.buf.va, 0x5a, PAGES * PVR_PAGE_SIZE);
	fg_wire_limit(env->wire, 3000, 1000);
	for (i = 0; i < REQUESTS; i++) {
		post(env, i);
		if (i % wave != wave - 1)
			continue;
		fg_wire_steps(env->wire, row->steps);
		fg_move(env->g[row->guest],
			fg_wire_host(env->wire, (unsigned int)(moves++ + !row->guest) % 2));
	}
	fg_wire_settle(env->wire, 10 * FG_SEC);
	expect_all(env);
	assert_int_equal(moves, 12);
}

/* All were executed, and no response has arrived when the receiver comes to the sender's host. */
TEST(hosts, test_peer_that_comes_to_this_host_has_executed_all)
{
	uint32_t i;

	memset(env->a.buf.va, 0x5a, PAGES * PVR_PAGE_SIZE);
	for (i = 0; i < REQUESTS; i++)
		post(env, i);
	fg_wire_hold(env->wire, 1, 0, true);
	fg_wire_steps(env->wire, 2000);
	assert_in_range(t_device_qp(&env->a)->sq_inflight, 2, REQUESTS);
	assert_int_not_equal(t_device_qp(&env->b)->rq_psn, t_device_qp(&env->b)->attr.rq_psn);
	fg_move(env->g[1], fg_wire_host(env->wire, 0));
	fg_run(env->host);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_settle(env->wire, FG_SEC);
	expect_all(env);
}

/* Its second execution would fail: the region is valid. */
TEST(hosts, test_local_operation_in_flight_is_not_executed_again)
{
	struct fg_buf buf;
	struct fg_mr mr;

	fg_buf_init(&buf, &env->g[0]->ram, 2, FG_SCATTERED);
	expect_ok(fast_mr_create(&env->a.pd, 2, &mr));
	fg_wire_hold(env->wire, 1, 0, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	put_fast_reg(&env->a, 2, &buf, mr.rkey);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 8);
	fg_wire_steps(env->wire, 100);
	assert_int_equal(t_device_qp(&env->a)->sq_inflight, 3);
	fg_migrate(env->g[0]);
	fg_move(env->g[1], fg_wire_host(env->wire, 0));
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_SUCCESS);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_SUCCESS);
	expect_no_cqe(&env->a.scq);
	fg_wire_hold(env->wire, 1, 0, false);
}

T_SETUP_HOSTS(three, 3, .chunk = 4096)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 21; /* 8.6 s */
	hosts_open(env, &env->a, &env->b, PVR_QPT_RC, 4);
	fg_end_connect(&env->a, &env->b, &conn);
	fg_wire_run(env->wire);
	for (unsigned int i = 0; i < 3; i++)
		pvr_engine_set_name(fg_wire_host(env->wire, i)->engine,
				    (const char *[]){ "host1", "host2", "host3" }[i]);
}

static const struct doorbell {
	const char *label;
	bool comes; /* while the requester waits, when the adapter is found again */
} doorbells[] = { { "the sender is idle", false }, { "the sender posts more", true } };

/*
 * The source's VM ends before the start at the destination: a request in flight finds no adapter, and
 * waits for an ACK timeout at most.
 */
TEST_CASES(three, test_request_that_found_no_adapter_is_sent_when_it_starts, doorbells)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_MS);
	fg_wire_directory(env->wire, false);
	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_settle(env->host, 20 * FG_MS);
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, 20 * FG_MS);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	if (row->comes)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 200 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	if (row->comes)
		expect_cqe(&env->a.scq, 2, PVRDMA_WC_SUCCESS);
	pvr_adapter_destroy(source);
}

/* Both go from one host to another one, first the adapter whose request waits. */
TEST(three, test_request_that_found_no_adapter_is_sent_when_both_are_here)
{
	struct pvr_adapter *source[3];
	unsigned int ms;

	source[2] = hosts_send_state(env, env->g[1], 0);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	source[1] = hosts_send_state(env, env->g[1], 2);
	assert_int_equal(pvr_adapter_drop(source[1]), 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 20 * FG_MS);
	source[0] = hosts_send_state(env, env->g[0], 2);
	assert_int_equal(hosts_start_in(env, env->g[0], &ms), 0);
	fg_settle(env->host, 20 * FG_MS);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	fg_settle(env->host, 200 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
	pvr_adapter_destroy(source[2]);
}

/* The directory still has the GID at the host that the adapter has left. */
TEST(three, test_retries_last_while_the_directory_is_late)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	fg_wire_keep_gids(env->wire, 1, true);
	assert_int_equal(pvr_adapter_drop(source), 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->a.scq);
	/* Neither all retries at once, nor a request for each answer. */
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
	assert_in_range(fg_wire_moves(env->wire, 0), 10, 120);
	fg_wire_keep_gids(env->wire, 1, false);
	pvr_announce(fg_wire_host(env->wire, 1)->engine, "default", env->b.gid,
		     PVR_GID_TYPE_ROCE_V2, env->g[1]->config.mac, false);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	fg_settle(env->host, 200 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	pvr_adapter_destroy(source);
}
