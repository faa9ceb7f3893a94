// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable connections between two hosts: each message takes effect once, under all
 * network faults.
 */
#include "hosts.h"
#include "rndv.h"

TEST_EXT(PVR_EXT_UC)

#define PAGES 96
#define TRY_NS (4 * (4096ull << 14)) /* fg_conn_default's timeout */

/* Where what lies in both ends' buffers. */
#define DATA 0u
#define DATA_LEN 100000u
#define WORD (40u * PVR_PAGE_SIZE) /* b: the counter; a: what it was, one for each */
#define BACK (48u * PVR_PAGE_SIZE) /* a: what is read */
#define NOTES (80u * PVR_PAGE_SIZE) /* what is sent, 64 bytes each */

T_SETUP_HOSTS(hosts, 2)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_RC, PAGES);
}

static void open_and_connect(struct t_env *env)
{
	hosts_connect(env, &env->a, &env->b, PAGES);
}

T_SETUP_HOSTS(connected, 2)
{
	open_and_connect(env);
}

T_SETUP_HOSTS(small, 2, .chunk = 16384, .buffer = 20000)
{
	open_and_connect(env);
}

/* A step of the wire moves no more than is on its way: some hundred bytes. */
T_SETUP_HOSTS(narrow, 2, .chunk = 16384, .buffer = 613)
{
	open_and_connect(env);
}

T_SETUP_HOSTS(slots, 2, .slots = 4, .chunk = 16384)
{
	open_and_connect(env);
}

/* ------------------------------------------------------------- a mixed load */

#define ROUNDS 4u

static void post_atomic(struct fg_end *end, const struct fg_end *to, uint64_t wr_id, uint32_t n)
{
	t_post(end, .wr_id = wr_id, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&end->mr, WORD + 8 * n, 8), T_REMOTE(&to->mr, WORD), .compare_add = 1);
}

/* Each round: a WRITE, a count, a note, a READ of what was written. */
static void post_load(struct t_env *env, uint32_t seed)
{
	struct fg_end *a = &env->a, *b = &env->b;

	memset(b->buf.va, 0, b->buf.size);
	memset(a->buf.va, 0, a->buf.size);
	fg_fill(a->buf.va + DATA, DATA_LEN, seed);
	fg_fill(a->buf.va + NOTES, 64 * ROUNDS, seed + 1);
	for (uint32_t i = 0; i < ROUNDS; i++)
		t_recv(b, 100 + i, NOTES + 4096 + 64 * i, 64);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		t_rdma(a, PVRDMA_WR_RDMA_WRITE, 4 * i, DATA + i * 25000, &b->mr, DATA + i * 25000,
		       25000);
		post_atomic(a, b, 4 * i + 1, i);
		t_send(a, 4 * i + 2, NOTES + 64 * i, 64);
		t_rdma(a, PVRDMA_WR_RDMA_READ, 4 * i + 3, BACK + i * 25000, &b->mr,
		       DATA + i * 25000, 25000);
	}
}

/* All of it has happened, in order, once. */
static void check_load(struct t_env *env, uint32_t seed)
{
	static const enum pvrdma_wc_opcode done[4] = { PVRDMA_WC_RDMA_WRITE, PVRDMA_WC_FETCH_ADD,
						       PVRDMA_WC_SEND, PVRDMA_WC_RDMA_READ };
	struct fg_end *a = &env->a, *b = &env->b;
	const uint64_t *was = (const uint64_t *)(a->buf.va + WORD);

	for (uint32_t i = 0; i < 4 * ROUNDS; i++)
		expect_done(&a->scq, i, done[i % 4]);
	expect_no_cqe(&a->scq);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		expect_recv(&b->rcq, 100 + i, 64);
		assert_int_equal(was[i], i);
	}
	expect_no_cqe(&b->rcq);
	assert_int_equal(*(const uint64_t *)(b->buf.va + WORD), ROUNDS);
	assert_int_equal(fg_mismatch(b->buf.va + DATA, DATA_LEN, seed), DATA_LEN);
	assert_int_equal(fg_mismatch(b->buf.va + NOTES + 4096, 64 * ROUNDS, seed + 1), 64 * ROUNDS);
	assert_int_equal(fg_mismatch(a->buf.va + BACK, DATA_LEN, seed), DATA_LEN);
}

static void run_load(struct t_env *env, uint32_t seed)
{
	post_load(env, seed);
	fg_wire_settle(env->wire, FG_SEC);
	check_load(env, seed);
}

TEST(connected, test_mixed_load)
{
	for (uint32_t i = 0; i < 5; i++)
		run_load(env, 10 * i);
}

TEST(connected, test_mixed_load_in_small_parts)
{
	fg_wire_limit(env->wire, 61, 47);
	run_load(env, 1);
	fg_wire_limit(env->wire, 1, 1);
	run_load(env, 2);
}

/* The connection breaks after @steps, and again each @every steps, @times in all. */
static void run_with_cuts(struct t_env *env, uint32_t steps, uint32_t times, uint32_t seed)
{
	post_load(env, seed);
	while (times--) {
		fg_wire_steps(env->wire, steps);
		fg_wire_cut(env->wire, 0, 1, 0);
		fg_wire_step(env->wire);
		fg_wire_mend(env->wire, 0, 1, 0);
	}
	fg_wire_settle(env->wire, 10 * FG_SEC);
	check_load(env, seed);
}

/* In each frame, and between any two. */
TEST(narrow, test_connection_cut_anywhere)
{
	struct pvr_host_stats stats;

	for (uint32_t steps = 0; steps < 420; steps += 2)
		run_with_cuts(env, steps, 1, steps);
	pvr_host_get_stats(fg_wire_remote_host(env->wire, 0, 1), &stats);
	assert_true(stats.retransmits > 100);
}

TEST(narrow, test_connection_cut_again_and_again)
{
	for (uint32_t steps = 1; steps < 60; steps += 2)
		run_with_cuts(env, steps, 20, steps);
}

/* Frames of a few bytes: each of their boundaries and most of their inside. */
TEST(connected, test_small_messages_cut_anywhere)
{
	uint64_t *word = (uint64_t *)(env->b.buf.va + WORD);

	fg_wire_limit(env->wire, 0, 1);
	*word = 0;
	for (uint32_t steps = 0; steps < 200; steps++) {
		t_recv(&env->b, steps, NOTES, 64);
		t_send(&env->a, 1, NOTES, 8);
		post_atomic(&env->a, &env->b, 2, 0);
		fg_wire_steps(env->wire, steps);
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, 10 * FG_SEC);
		expect_sent(&env->a, 1);
		expect_done(&env->a.scq, 2, PVRDMA_WC_FETCH_ADD);
		expect_recv(&env->b.rcq, steps, 8);
		expect_no_cqe(&env->b.rcq);
		assert_int_equal(*word, steps + 1);
		assert_int_equal(*(uint64_t *)(env->a.buf.va + WORD), steps);
	}
}

/* ----------------------------------------------------------------- other routes */

TEST(narrow, test_traffic_moves_to_another_path_and_back)
{
	for (uint32_t steps = 0; steps < 150; steps += 3) {
		post_load(env, steps);
		fg_wire_steps(env->wire, steps);
		fg_wire_verbs(env->wire, 0, 1, true);
		fg_wire_steps(env->wire, steps);
		fg_wire_verbs(env->wire, 0, 1, false);
		fg_wire_steps(env->wire, steps);
		fg_wire_settle(env->wire, 10 * FG_SEC);
		check_load(env, steps);
	}
}

static void note_path(void *opaque, const struct pvr_flow_stats *stats)
{
	struct pvr_flow_stats *found = opaque;

	if (!strcmp(stats->to, "host2"))
		*found = *stats;
}

TEST(connected, test_path_is_shown)
{
	struct pvr_flow_stats path = { 0 };

	run_load(env, 1);
	pvr_engine_for_each_flow(env->host->engine, note_path, &path);
	assert_string_equal(path.from, "vm1");
	assert_string_equal(path.path, "tcp");
	assert_int_equal(path.messages, 4 * ROUNDS);
	assert_int_equal(path.bytes, 2 * DATA_LEN + ROUNDS * (8 + 64));
	fg_wire_verbs(env->wire, 0, 1, true);
	run_load(env, 2);
	pvr_engine_for_each_flow(env->host->engine, note_path, &path);
	assert_string_equal(path.path, "verbs");
	assert_int_equal(path.messages, 8 * ROUNDS);
}

TEST(slots, test_slot_that_is_down_is_left_to_others)
{
	run_load(env, 1);
	for (unsigned int slot = 0; slot < 3; slot++) {
		post_load(env, slot);
		fg_wire_step(env->wire);
		fg_wire_cut(env->wire, 0, 1, slot);
		fg_wire_settle(env->wire, FG_SEC);
		check_load(env, slot);
	}
	for (unsigned int slot = 0; slot < 3; slot++) {
		fg_wire_mend(env->wire, 0, 1, slot);
		run_load(env, slot);
	}
}

static void send_uc(struct fg_end *a, char value)
{
	a->mr.va[0] = (uint8_t)value;
	t_send(a, 1, 0, 1);
}

/*
 * The first byte is sent by @slot, where it is late, the second one by the connection of the queue
 * pair. *text: what arrives.
 */
static void send_two(struct t_env *env, unsigned int slot, char text[4])
{
	struct pvrdma_cqe cqe;
	struct fg_end a, b;

	hosts_open(env, &a, &b, PVR_QPT_UC, 1);
	fg_end_connect(&a, &b, NULL);
	for (uint64_t i = 0; i < 4; i++)
		t_recv(&b, i, i, 1);
	for (unsigned int i = 0; i < 4; i++)
		if (i != slot)
			fg_wire_cut(env->wire, 0, 1, i);
	fg_wire_delay(env->wire, 10 * FG_MS);
	send_uc(&a, 'x');
	fg_wire_run(env->wire);
	for (unsigned int i = 0; i < 4; i++)
		if (i != slot)
			fg_wire_mend(env->wire, 0, 1, i);
	fg_wire_delay(env->wire, 0);
	fg_wire_run(env->wire);
	send_uc(&a, 'y');
	fg_wire_settle(env->wire, 20 * FG_MS);
	send_uc(&a, 'z');
	fg_wire_settle(env->wire, 20 * FG_MS);
	memset(text, 0, 4);
	while (fg_cq_poll(&b.rcq, &cqe))
		text[cqe.wr_id] = (char)b.mr.va[cqe.wr_id];
	assert_int_equal(fg_cq_drain(&a.scq), 3);
	fg_end_close(&a);
	fg_end_close(&b);
}

TEST(slots, test_uc_message_that_was_overtaken_is_lost)
{
	unsigned int overtaken = 0;
	char text[4];

	for (unsigned int slot = 0; slot < 4; slot++) {
		send_two(env, slot, text);
		if (strcmp(text, "yz") != 0)
			assert_string_equal(text, "xyz");
		else
			overtaken++;
	}
	assert_true(overtaken > 0);
}

/*
 * The responder alone begins anew, in the middle of a message of its peer, with PSNs that are ahead of
 * the peer's. UC need not agree on PSNs.
 */
TEST(narrow, test_uc_responder_that_is_reset_receives_the_next_message)
{
	struct fg_conn conn = fg_conn_default;
	struct fg_end a, b;

	hosts_open(env, &a, &b, PVR_QPT_UC, PAGES);
	fg_end_connect(&a, &b, NULL);
	t_recv(&b, 1, 0, DATA_LEN);
	memset(a.mr.va, 1, DATA_LEN);
	t_send(&a, 1, 0, DATA_LEN);
	while (!b.mr.va[DATA_LEN / 2])
		fg_wire_steps(env->wire, 1);
	fg_wire_hold(env->wire, 0, 1, true);
	expect_ok(fg_qp_to_reset(&b.qp));
	conn.psn += 1000;
	expect_ok(fg_qp_connect(&b.qp, &conn, a.gid, a.qp.qpn));
	t_recv(&b, 2, 0, DATA_LEN);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_run(env->wire);
	expect_no_cqe(&b.rcq);
	t_send(&a, 2, 0, 8);
	fg_wire_run(env->wire);
	expect_recv(&b.rcq, 2, 8);
	fg_cq_drain(&a.scq);
	fg_end_close(&a);
	fg_end_close(&b);
}

/* ------------------------------------------------------------------------- time */

static void expect_given_up(struct t_env *env, uint64_t least, uint64_t most)
{
	uint64_t waited;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 1000);
	t_send(&env->a, 2, 0, 8);
	await_no_cqe(&env->a.scq);
	waited = fg_wire_settle(env->wire, 1000 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	assert_true(waited >= least);
	assert_true(waited <= most);
	assert_int_equal(fg_stats(env->g[0]).retries_exceeded, 1);
}

TEST(connected, test_peer_that_does_not_answer_is_given_up_in_time)
{
	hosts_hold(env);
	expect_given_up(env, 8 * TRY_NS, 8 * TRY_NS);
}

TEST(connected, test_peer_without_a_connection_is_given_up_in_time)
{
	fg_wire_cut(env->wire, 0, 1, 0);
	expect_given_up(env, 8 * TRY_NS, 8 * TRY_NS);
	assert_true(fg_wire_wants(env->wire, 0) >= 8);
}

static void break_connection(struct t_env *env)
{
	fg_wire_cut(env->wire, 0, 1, 0);
}

static void take_link_down(struct t_env *env)
{
	pvr_adapter_set_link(env->g[0]->adapter, false);
}

static const struct no_peer {
	const char *label;
	void (*happens)(struct t_env *env);
} no_peers[] = { { "no connection", break_connection },
		 { "the own link is down", take_link_down } };

T_SETUP_EXT(suppressing, PVR_EXT_DB_SUPPRESS, hosts)

/* It does not wait for the connection yet: the doorbell of its first request must not be suppressed. */
TEST(suppressing, test_idle_queue_pair_without_a_connection_sees_its_next_request)
{
	struct fg_mr mr;

	fg_wire_cut(env->wire, 0, 1, 0);
	fg_end_connect(&env->a, &env->b, NULL);
	fg_wire_run(env->wire);
	expect_ok(fast_mr_create(&env->a.pd, env->a.buf.npages, &mr));
	put_fast_reg(&env->a, 900, &env->a.buf, mr.rkey);
	fg_ring_send(&env->a.qp);
	fg_wire_run(env->wire);
	expect_done(&env->a.scq, 900, PVRDMA_WC_FAST_REG_MR);
}

/* A local operation has no responder. Those behind a request wait for it, as it is to be fenced. */
TEST_CASES(connected, test_local_operations_need_no_connection, no_peers)
{
	struct fg_mr mr;

	row->happens(env);
	expect_ok(fast_mr_create(&env->a.pd, env->a.buf.npages, &mr));
	put_fast_reg(&env->a, 900, &env->a.buf, mr.rkey);
	expose_put(&env->a, 901, PVRDMA_WR_LOCAL_INV, mr.rkey);
	fg_ring_send(&env->a.qp);
	fg_wire_run(env->wire);
	expect_done(&env->a.scq, 900, PVRDMA_WC_FAST_REG_MR);
	expect_done(&env->a.scq, 901, PVRDMA_WC_LOCAL_INV);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 902, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, TRY_NS);
	expect_no_cqe(&env->a.scq);
}

TEST(hosts, test_queue_pair_that_is_not_there_is_given_up_in_time)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, 0xabcdef));
	fg_wire_run(env->wire);
	/* Each silence is an answer here, so a try may be as short as the timeout. */
	expect_given_up(env, 2 * TRY_NS, 8 * TRY_NS);
}

/* Its answer is known, so the requester need not wait for a timeout, here of 8.6 s. */
TEST(hosts, test_queue_pair_that_is_connected_late_is_reached_soon)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 21;
	expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, env->b.qp.qpn));
	fg_wire_run(env->wire);
	t_send(&env->a, 1, 0, 8);
	fg_wire_settle(env->wire, 100 * FG_MS);
	await_no_cqe(&env->a.scq);
	expect_ok(fg_qp_connect(&env->b.qp, &conn, env->a.gid, env->a.qp.qpn));
	t_recv(&env->b, 2, 0, 8);
	fg_wire_settle(env->wire, 200 * FG_MS);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 8);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

TEST(hosts, test_link_that_comes_up_is_used_soon)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 21;
	fg_end_connect(&env->a, &env->b, &conn);
	take_link_down(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_wire_settle(env->wire, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	pvr_adapter_set_link(env->g[0]->adapter, true);
	fg_wire_settle(env->wire, 200 * FG_MS);
	expect_written(&env->a, 1);
}

TEST(hosts, test_retries_are_the_queue_pairs)
{
	struct fg_conn conn = fg_conn_default;
	uint64_t waited;

	hosts_hold(env);
	for (uint8_t retries = 0; retries < 8; retries++) {
		conn.retry_cnt = retries;
		conn.timeout = 8 + retries;
		expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, env->b.qp.qpn));
		t_send(&env->a, 1, 0, 8);
		waited = fg_wire_settle(env->wire, 1000 * FG_SEC);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
		assert_int_equal(waited, (retries + 1) * 4 * (4096ull << conn.timeout));
		expect_ok(fg_qp_to_reset(&env->a.qp));
	}
}

TEST(hosts, test_timeout_0_has_no_end)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 0;
	fg_end_connect(&env->a, &env->b, &conn);
	fg_wire_run(env->wire);
	fg_wire_cut(env->wire, 0, 1, 0);
	post_load(env, 1);
	fg_wire_settle(env->wire, 1000 * FG_SEC);
	expect_no_cqe(&env->a.scq);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_wire_settle(env->wire, FG_SEC);
	check_load(env, 1);
}

TEST(connected, test_outage_within_the_retries_costs_nothing)
{
	for (uint32_t steps = 1; steps < 40; steps += 3) {
		post_load(env, steps);
		fg_wire_steps(env->wire, steps);
		fg_wire_cut(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, 7 * TRY_NS);
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, FG_SEC);
		check_load(env, steps);
	}
	assert_int_equal(fg_stats(env->g[0]).retries_exceeded, 0);
}

/* Each answer begins a new try: a slow peer is no dead one. */
TEST(small, test_slow_peer_is_waited_for)
{
	fg_wire_delay(env->wire, TRY_NS + FG_MS);
	post_load(env, 1);
	assert_true(fg_wire_settle(env->wire, 60 * FG_SEC) > 2 * TRY_NS);
	assert_true(fg_stats(env->g[0]).ack_timeouts > 0);
	check_load(env, 1);
}

/* --------------------------------------------------------------- RNR, and refusals */

TEST(connected, test_receives_come_late)
{
	for (uint32_t i = 0; i < 20; i++)
		t_send(&env->a, i, NOTES, 64);
	for (uint32_t i = 0; i < 20; i++) {
		fg_wire_settle(env->wire, 5 * FG_MS);
		assert_int_equal(fg_cq_pending(&env->a.scq), 0);
		t_recv(&env->b, i, NOTES, 64);
		fg_wire_settle(env->wire, 5 * FG_MS);
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 64);
	}
	assert_true(fg_stats(env->g[1]).rnr_naks >= 20);
}

/* Only requests after the waiting one are sent again. */
TEST(connected, test_connection_cut_while_receives_are_awaited)
{
	for (uint32_t steps = 1; steps < 30; steps++) {
		t_send(&env->a, 1, NOTES, 64);
		post_atomic(&env->a, &env->b, 2, 0);
		fg_wire_steps(env->wire, steps);
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_advance(env->wire, FG_MS);
		expect_no_cqe(&env->a.scq);
		t_recv(&env->b, 3, NOTES, 64);
		fg_wire_settle(env->wire, 5 * FG_MS);
		expect_sent(&env->a, 1);
		expect_done(&env->a.scq, 2, PVRDMA_WC_FETCH_ADD);
		expect_recv(&env->b.rcq, 3, 64);
		expect_no_cqe(&env->b.rcq);
	}
	assert_int_equal(*(uint64_t *)(env->b.buf.va + WORD), 29);
}

/* A refusal that got lost with its connection is repeated. */
TEST(connected, test_refusal_survives_its_connection)
{
	for (uint32_t steps = 0; steps < 12; steps++) {
		fg_wire_limit(env->wire, 0, 50);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
		env->b.mr.rkey ^= 0x10000;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
		env->b.mr.rkey ^= 0x10000;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 8);
		fg_wire_steps(env->wire, steps);
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, FG_SEC);
		expect_written(&env->a, 1);
		expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_ACCESS_ERR);
		expect_cqe(&env->a.scq, 3, PVRDMA_WC_WR_FLUSH_ERR);
		expect_state(&env->b, PVR_QPS_ERR);
		t_reconnect(env);
		fg_wire_run(env->wire);
	}
}
