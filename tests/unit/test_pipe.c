// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connected queue pairs of two hosts: order, limits, and those that come and go. */
#include "hosts.h"
#include "core/objects.h"
#include "path/pipe/sq.h"

#define BIG (4u << 20)

TEST_EXT(PVR_EXT_UC | PVR_EXT_DB_SUPPRESS)

T_SETUP_HOSTS(hosts, 2)
{
}

/* One step of the wire moves a few KB only. */
T_SETUP_HOSTS(narrow, 2, .chunk = 16384, .buffer = 4000)
{
}

/* a and b are connected. */
T_SETUP(ends, hosts)
{
	hosts_connect(env, &env->a, &env->b, 64);
}

/* They are, and a's requests do not arrive before hosts_release(). */
T_SETUP(held, ends)
{
	hosts_hold(env);
}

static uint32_t begun(struct fg_end *end)
{
	return t_device_qp(end)->sq_inflight;
}

/* ------------------------------------------------------------------ interleaving */

TEST(narrow, test_large_messages_do_not_keep_small_ones_waiting)
{
	struct fg_end c, d;
	uint32_t waited;

	hosts_connect(env, &env->a, &env->b, BIG / PVR_PAGE_SIZE);
	hosts_connect(env, &c, &d, 1);
	fg_fill(env->a.buf.va, BIG, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, BIG);
	fg_wire_steps(env->wire, 20);
	for (uint32_t i = 0; i < 5; i++) {
		t_recv(&d, i, 0, 64);
		t_send(&c, i, 0, 64);
		for (waited = 0; !fg_cq_pending(&c.scq); waited++)
			fg_wire_step(env->wire);
		expect_sent(&c, i);
		expect_recv(&d.rcq, i, 64);
		/* A turn of the other's, 256 KiB, at 4000 bytes a step. */
		assert_true(waited < 2 * (256u << 10) / 4000);
	}
	expect_no_cqe(&env->a.scq);
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(&env->a, 1);
	assert_int_equal(fg_mismatch(env->b.buf.va, BIG, 1), BIG);
}

TEST(narrow, test_many_queue_pairs_share_a_connection)
{
	struct fg_end a[12], b[12];
	const uint32_t len = 300000;

	for (uint32_t i = 0; i < COUNT(a); i++) {
		hosts_connect(env, &a[i], &b[i], 80);
		fg_fill(a[i].buf.va, len, i);
	}
	for (uint32_t i = 0; i < COUNT(a); i++) {
		t_recv(&b[i], i, 0, len);
		t_send(&a[i], i, 0, len);
	}
	fg_wire_settle(env->wire, FG_SEC);
	for (uint32_t i = 0; i < COUNT(a); i++) {
		expect_sent(&a[i], i);
		expect_recv(&b[i].rcq, i, len);
		assert_int_equal(fg_mismatch(b[i].buf.va, len, i), len);
	}
}

/* Answers are held back while more comes for the same queue pair, not for others. */
TEST(hosts, test_each_queue_pair_of_a_batch_is_acknowledged)
{
	struct fg_end a[8], b[8];

	for (uint32_t i = 0; i < COUNT(a); i++)
		hosts_connect(env, &a[i], &b[i], 1);
	hosts_hold(env);
	for (uint32_t i = 0; i < COUNT(a); i++)
		t_rdma(&a[i], PVRDMA_WR_RDMA_WRITE, i, 0, &b[i].mr, 0, 8);
	fg_wire_run(env->wire);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_run(env->wire);
	for (uint32_t i = 0; i < COUNT(a); i++)
		expect_written(&a[i], i);
}

/*
 * A guest that has rung takes its doorbell to be on its way until cons_head has passed what
 * it was for, which it does with the answer: until then nothing else may need one.
 */
TEST(ends, test_no_doorbell_is_needed_while_answers_are_on_their_way)
{
	uint64_t doorbells;

	assert_int_equal(fg_qp_db_suppress(&env->a.qp)->sq, 0);
	fg_wire_hold(env->wire, 1, 0, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_wire_run(env->wire);
	assert_int_equal(begun(&env->a), 1);
	assert_int_not_equal(fg_qp_db_suppress(&env->a.qp)->sq, 0);
	doorbells = env->g[0]->doorbells;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	assert_int_equal(env->g[0]->doorbells, doorbells);
	fg_wire_hold(env->wire, 1, 0, false);
	await_written(&env->a, 1);
	expect_written(&env->a, 2);
	assert_int_equal(fg_qp_db_suppress(&env->a.qp)->sq, 0);
}

/* All get their share of a connection that is too slow for them. */
TEST(narrow, test_slow_connection_starves_no_qp)
{
	struct fg_end a[6], b[6];

	for (uint32_t i = 0; i < COUNT(a); i++)
		hosts_connect(env, &a[i], &b[i], 64);
	for (uint32_t i = 0; i < COUNT(a); i++)
		for (uint32_t k = 0; k < 40; k++)
			t_rdma(&a[i], PVRDMA_WR_RDMA_WRITE, k, 0, &b[i].mr, 0, 100000);
	while (fg_cq_pending(&a[0].scq) < 20)
		fg_wire_step(env->wire);
	for (uint32_t i = 1; i < COUNT(a); i++)
		assert_in_range(fg_cq_pending(&a[i].scq), 13, 27);
}

TEST(hosts, test_more_requests_than_the_window)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = 4096, .sig_all = false };

	t_open_connected(env, &spec, 16);
	hosts_hold(env);
	for (uint32_t i = 0; i < 4000; i++)
		t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE,
		       .flags = i == 3999 ? PVR_SEND_SIGNALED : 0, T_SGE(&env->a.mr, 0, 8),
		       T_REMOTE(&env->b.mr, 0));
	fg_wire_run(env->wire);
	assert_true(begun(&env->a) <= PVR_INFLIGHT_MAX);
	hosts_release(env);
	expect_written(&env->a, 1);
	assert_int_equal(begun(&env->a), 0);
}

/* ------------------------------------------------------------------------- order */

/* A post that has not begun while what it waits for is in flight. */
static void expect_begun(struct t_env *env, uint32_t before, uint32_t after)
{
	fg_wire_run(env->wire);
	assert_int_equal(begun(&env->a), before);
	hosts_release(env);
	assert_int_equal(fg_cq_drain(&env->a.scq), after);
	assert_int_equal(begun(&env->a), 0);
}

TEST(held, test_fence_waits_for_reads_on_their_way)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 8);
	t_post(&env->a, .wr_id = 9, .opcode = PVRDMA_WR_RDMA_WRITE,
	       .flags = PVR_SEND_SIGNALED | PVR_SEND_FENCE, T_REMOTE(&env->b.mr, 0));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 8);
	expect_begun(env, 2, 4);
}

TEST(held, test_invalidation_waits_for_all_before_it)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	t_post(&env->a, .wr_id = 9, .opcode = PVRDMA_WR_LOCAL_INV, .imm = 0xbad);
	fg_wire_run(env->wire);
	assert_int_equal(begun(&env->a), 1);
	expect_no_cqe(&env->a.scq);
	hosts_release(env);
	/* A bad one fails in its turn, after what was before it. */
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 9, PVRDMA_WC_MW_BIND_ERR);
}

TEST(held, test_reads_in_flight_are_bounded_by_the_depth)
{
	for (uint32_t i = 0; i < 40; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, 0, &env->b.mr, 0, 8);
	expect_begun(env, fg_conn_default.max_rd_atomic, 40);
}

/* An invalid request is found before it is sent, and fails in its order. */
TEST(held, test_bad_request_fails_behind_those_on_their_way)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	env->a.mr.lkey ^= 0x10000;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	env->a.mr.lkey ^= 0x10000;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 8);
	await_no_cqe(&env->a.scq);
	hosts_release(env);
	expect_written(&env->a, 1);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(held, test_sqd_waits_for_what_is_on_its_way)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD, .en_sqd_async_notify = 1 };

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 8);
	fg_wire_run(env->wire);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE | PVR_QPA_EN_SQD_ASYNC, &attr));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 8);
	fg_wire_run(env->wire);
	expect_no_event(env->g[0]);
	expect_ok(fg_qp_query(&env->a.qp, &attr));
	assert_int_equal(attr.sq_draining, 1);
	hosts_release(env);
	expect_written(&env->a, 1);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	expect_no_cqe(&env->a.scq);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
	attr.qp_state = PVR_QPS_RTS;
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(&env->a, 3);
}

TEST(hosts, test_psn_of_the_send_queue_is_that_of_the_next_request)
{
	struct pvr_qp_attr before, attr;

	hosts_connect(env, &env->a, &env->b, 16);
	expect_ok(fg_qp_query(&env->a.qp, &before));
	hosts_hold(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 3000);
	fg_wire_run(env->wire);
	expect_ok(fg_qp_query(&env->a.qp, &attr));
	assert_int_equal(attr.sq_psn, (before.sq_psn + 3) & 0xffffff);
	hosts_release(env);
	expect_ok(fg_qp_query(&env->b.qp, &attr));
	assert_int_equal(attr.rq_psn, (before.sq_psn + 3) & 0xffffff);
}

/* ------------------------------------------------------------- coming and going */

/*
 * @what happens after so many steps of a long WRITE and a long READ; all ends in time.
 * Return: the status of a's first request that failed, or SUCCESS if none did.
 */
static uint32_t interrupt(struct t_env *env, uint32_t n, void (*what)(struct t_env *env))
{
	struct pvrdma_cqe cqe = { 0 };

	hosts_connect(env, &env->a, &env->b, 64);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 100000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 100000);
	fg_wire_steps(env->wire, n);
	what(env);
	fg_wire_settle(env->wire, 100 * FG_SEC);
	while (env->g[0] && fg_cq_poll(&env->a.scq, &cqe) && cqe.status == PVRDMA_WC_SUCCESS)
		;
	return cqe.status;
}

static void unplug(struct t_env *env, unsigned int guest)
{
	fg_guest_destroy(env->g[guest]);
	env->g[guest] = NULL;
}

static void destroy_b_mr(struct t_env *env)
{
	expect_ok(fg_mr_destroy(&env->b.mr));
	fg_fill(env->b.buf.va, env->b.buf.size, 77);
}

TEST(narrow, test_region_goes_under_a_write_and_a_read)
{
	uint32_t refused = 0;

	for (uint32_t n = 0; n < 60; n += 3) {
		env = t_renew(t_setup_narrow);
		refused += interrupt(env, n, destroy_b_mr) == PVRDMA_WC_REM_ACCESS_ERR;
		/* Nothing is written to memory that the guest has back. */
		assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 77), env->b.buf.size);
	}
	assert_true(refused > 10);
}

static void unplug_b(struct t_env *env)
{
	unplug(env, 1);
}

TEST(narrow, test_peer_goes_under_a_write_and_a_read)
{
	for (uint32_t n = 0; n < 24; n += 2) {
		env = t_renew(t_setup_narrow);
		assert_int_equal(interrupt(env, n, unplug_b), PVRDMA_WC_RETRY_EXC_ERR);
	}
}

static void unplug_a(struct t_env *env)
{
	unplug(env, 0);
}

/* The other side is as it was, and works with the next one. */
TEST(narrow, test_requester_goes_under_a_write_and_a_read)
{
	for (uint32_t n = 0; n < 60; n += 4) {
		env = t_renew(t_setup_narrow);
		interrupt(env, n, unplug_a);
		expect_state(&env->b, PVR_QPS_RTS);
		env->g[0] = fg_guest_start(env->host, 1);
		fg_wire_run(env->wire);
		fg_end_close(&env->b);
		hosts_connect(env, &env->a, &env->b, 64);
		t_exchange(env, 1, 100);
	}
}

/* Answers to what was before are not for what is now, though its PSNs are the same. */
TEST(ends, test_queue_pair_begins_anew_with_answers_on_their_way)
{
	for (uint32_t i = 0; i < 10; i++) {
		fg_wire_hold(env->wire, 1, 0, true);
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 10000);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 10000);
		fg_wire_run(env->wire);
		t_reconnect(env);
		fg_fill(env->a.buf.va, env->a.buf.size, i);
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, 20000, 10000);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 4, 0, &env->b.mr, 40000, 10000);
		fg_fill(env->b.buf.va + 20000, 10000, 100 + i);
		await_no_cqe(&env->a.scq);
		fg_wire_hold(env->wire, 1, 0, false);
		fg_wire_settle(env->wire, FG_SEC);
		expect_done(&env->a.scq, 3, PVRDMA_WC_RDMA_READ);
		expect_written(&env->a, 4);
		assert_int_equal(fg_mismatch(env->a.buf.va, 10000, 100 + i), 10000);
	}
}

/* A peer that is there on this host later is found there, and one that leaves elsewhere. */
TEST(ends, test_peer_moves_between_hosts)
{
	t_ping_pong(env->host, &env->a, &env->b);
	for (unsigned int host = 0; host < 4; host++) {
		unplug_b(env);
		t_send(&env->a, 1, 0, 8);
		fg_wire_settle(env->wire, 100 * FG_SEC);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
		expect_ok(fg_qp_to_reset(&env->a.qp));
		env->g[1] = fg_guest_start(fg_wire_host(env->wire, host % 2), 2);
		fg_wire_run(env->wire);
		fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
		fg_end_connect(&env->a, &env->b, NULL);
		t_ping_pong(env->host, &env->a, &env->b);
	}
}

/* Its peer comes up while it is tried: on another host, then on this one. */
TEST(hosts, test_message_waits_for_a_peer_that_is_not_known_yet)
{
	for (unsigned int host = 0; host < 2; host++) {
		uint8_t gid[16];
		struct fg_end a;

		unplug_b(env);
		fg_end_open(&a, env->g[0], PVR_QPT_RC);
		fg_gid_from_mac(gid, (const uint8_t[]){ 0x52, 0x54, 0, 0x12, 0x34, 2 });
		expect_ok(fg_qp_connect(&a.qp, NULL, gid, 2));
		t_send(&a, 1, 0, 8);
		fg_wire_advance(env->wire, 100 * FG_MS);
		expect_no_cqe(&a.scq);
		env->g[1] = fg_guest_start(fg_wire_host(env->wire, host), 2);
		fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
		assert_int_equal(env->b.qp.qpn & 0xffff, 2);
		expect_ok(fg_qp_connect(&env->b.qp, NULL, a.gid, a.qp.qpn));
		t_recv(&env->b, 2, 0, 8);
		fg_wire_settle(env->wire, 10 * FG_SEC);
		expect_sent(&a, 1);
		expect_recv(&env->b.rcq, 2, 8);
		fg_end_close(&a);
	}
}

/* ------------------------------------------------------------------------- UC */

TEST(narrow, test_unreliable_messages_get_lost_as_a_whole)
{
	uint32_t lost = 0;

	hosts_open(env, &env->a, &env->b, PVR_QPT_UC, 64);
	fg_end_connect(&env->a, &env->b, NULL);
	for (uint32_t n = 0; n < 60; n += 2) {
		uint32_t got;

		fg_fill(env->a.buf.va, 60000, n);
		t_recv(&env->b, 1, 0, 60000);
		t_send(&env->a, 2, 0, 60000);
		fg_wire_steps(env->wire, n);
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, FG_SEC);
		expect_sent(&env->a, 2);
		got = fg_cq_pending(&env->b.rcq);
		lost += !got;
		if (!got) {
			/* Its receive request is for the next one. */
			t_send(&env->a, 3, 0, 60000);
			fg_wire_settle(env->wire, FG_SEC);
			expect_sent(&env->a, 3);
		}
		expect_recv(&env->b.rcq, 1, 60000);
		assert_int_equal(fg_mismatch(env->b.buf.va, 60000, n), 60000);
	}
	assert_in_range(lost, 5, 29);
}

TEST(ends, test_statistics_of_both_ends)
{
	struct pvr_adapter_stats a, b;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 50000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 1000);
	fg_wire_settle(env->wire, FG_SEC);
	a = fg_stats(env->g[0]);
	b = fg_stats(env->g[1]);
	assert_int_equal(a.tx_messages, 2);
	assert_int_equal(a.tx_bytes, 51000);
	assert_int_equal(a.tx_reads, 1);
	assert_int_equal(b.rx_messages, 2);
	assert_int_equal(b.rx_bytes, 51000);
}

TEST(ends, test_bytes_count_for_their_path)
{
	struct pvr_adapter_stats a;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 50000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 1000);
	fg_wire_settle(env->wire, FG_SEC);
	a = fg_stats(env->g[0]);
	assert_int_equal(a.tcp_bytes, 51000);
	assert_int_equal(a.verbs_bytes, 0);
	assert_int_equal(a.local_bytes, 0);
}
