// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The adversary: a segment that loses, repeats, reorders and damages RoCE frames. */
#include "core/objects.h"
#include "segment.h"

#define ROUNDS 12u
#define LEN 20000u /* 20 packets */

T_SETUP(lossy, rc)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 10; /* 4 ms */
	conn.psn = 4000; /* so that PSNs wrap during the test */
	fg_end_connect(&env->a, &env->b, &conn);
}

static const struct adversary {
	const char *label;
	struct fg_segment_rules rules;
	bool gso; /* frames have several packets, which the segment cuts */
} adversaries[] = {
	{ "loss 0.5 %", .rules = { .seed = 1, .lose = 5 } },
	{ "loss 10 %", .rules = { .seed = 2, .lose = 100 } },
	{ "loss 30 %", .rules = { .seed = 3, .lose = 300 } },
	{ "repetition", .rules = { .seed = 4, .repeat = 300 } },
	{ "reordering", .rules = { .seed = 5, .swap = 200 } },
	{ "damage", .rules = { .seed = 6, .damage = 100 } },
	{ "delay", .rules = { .seed = 7, .delay = 6000000 } },
	{ "no room", .rules = { .seed = 8, .room = 3 } },
	{ "all",
	  .rules = { .seed = 9, .lose = 50, .repeat = 50, .swap = 50, .damage = 50, .room = 20 } },
	{ "GSO", .rules = { .seed = 10 }, .gso = true },
	{ "GSO, loss 10 %", .rules = { .seed = 11, .lose = 100 }, .gso = true },
	{ "GSO, loss 30 %", .rules = { .seed = 12, .lose = 300 }, .gso = true },
	{ "GSO, no room", .rules = { .seed = 13, .room = 3 }, .gso = true },
	{ "GSO, all",
	  .rules = { .seed = 14, .lose = 50, .repeat = 50, .swap = 50, .damage = 50, .room = 20 },
	  .gso = true },
	{ "GSO, whole", .rules = { .seed = 15, .whole = true }, .gso = true },
	{ "GSO, whole, loss 10 %", .rules = { .seed = 16, .lose = 100, .whole = true },
	  .gso = true },
};

static void use(struct t_env *env, const struct adversary *row)
{
	*fg_segment_rules(env->segment) = row->rules;
	fg_segment_set_gso(env->segment, row->gso);
}

/* Frames of several packets were sent, or none. */
static void expect_merged(struct t_env *env, const struct adversary *row)
{
	if (row->gso)
		assert_true(fg_segment_merged(env->segment, 0) > 0);
	else
		assert_int_equal(fg_segment_merged(env->segment, 0), 0);
}

static void settle(struct t_env *env)
{
	uint64_t passed = fg_settle(env->host, 100 * FG_SEC);

	assert_true(passed < 100 * FG_SEC);
}

/* With 30 % of loss, seven tries in a row may fail: the test must not depend on that. */
static void patient(struct t_env *env)
{
	for (unsigned int i = 0; i < 2; i++)
		t_device_qp(i ? &env->b : &env->a)->retry_left = 7;
}

static void one_round(struct t_env *env, uint32_t i)
{
	patient(env);
	fg_fill(env->a.mr.va, LEN, i);
	memset(env->b.mr.va, 0, LEN);
	t_recv(&env->b, i, 0, LEN);
	t_send(&env->a, i, 0, LEN);
	settle(env);
	expect_sent(&env->a, i);
	expect_recv(&env->b.rcq, i, LEN);
	assert_int_equal(fg_mismatch(env->b.mr.va, LEN, i), LEN);
}

TEST_CASES(lossy, test_sends_arrive_once_and_in_order, adversaries)
{
	use(env, row);
	for (uint32_t i = 0; i < ROUNDS; i++)
		one_round(env, i);
	expect_no_cqe(&env->b.rcq);
	expect_merged(env, row);
}

TEST_CASES(lossy, test_writes_and_reads_have_all_bytes, adversaries)
{
	use(env, row);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		patient(env);
		fg_fill(env->a.mr.va, LEN, i);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2 * i, 0, &env->b.mr, 0, LEN);
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2 * i + 1, LEN, &env->b.mr, 0, LEN);
		settle(env);
		expect_written(&env->a, 2 * i);
		expect_done(&env->a.scq, 2 * i + 1, PVRDMA_WC_RDMA_READ);
		assert_int_equal(fg_mismatch(env->b.mr.va, LEN, i), LEN);
		assert_int_equal(fg_mismatch((uint8_t *)env->a.mr.va + LEN, LEN, i), LEN);
	}
}

TEST_CASES(lossy, test_atomics_are_executed_once, adversaries)
{
	uint64_t *word = (uint64_t *)env->b.mr.va;

	*word = 0;
	use(env, row);
	for (uint32_t i = 0; i < 4 * ROUNDS; i++) {
		patient(env);
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       T_SGE(&env->a.mr, 0, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
		if (i % 4 != 3)
			continue;
		settle(env);
		for (uint32_t n = i - 3; n <= i; n++)
			expect_done(&env->a.scq, n, PVRDMA_WC_FETCH_ADD);
		assert_int_equal(*word, i + 1);
		assert_int_equal(*(uint64_t *)env->a.mr.va, i);
	}
}

/* A mix in flight at once, with receives that come late. */
TEST_CASES(lossy, test_pipelined_requests_complete_in_order, adversaries)
{
	const uint32_t n = 32;

	use(env, row);
	patient(env);
	for (uint32_t i = 0; i < n; i++) {
		if (i % 3 == 0)
			t_send(&env->a, i, 0, 3000);
		else
			t_rdma(&env->a, i % 3 == 1 ? PVRDMA_WR_RDMA_WRITE : PVRDMA_WR_RDMA_READ, i,
			       0, &env->b.mr, 0, 5000);
	}
	fg_settle(env->host, FG_MS);
	for (uint32_t i = 0; i < n; i += 3)
		t_recv(&env->b, i, 0, 3000);
	for (uint32_t i = 0; i < 8; i++) {
		patient(env);
		fg_settle(env->host, 20 * FG_MS);
	}
	settle(env);
	for (uint32_t i = 0; i < n; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_SUCCESS);
	for (uint32_t i = 0; i < n; i += 3)
		expect_recv(&env->b.rcq, i, 3000);
}

TEST(lossy, test_silent_peer_ends_in_bounded_time)
{
	fg_segment_rules(env->segment)->cut = true;
	t_send(&env->a, 1, 0, 8);
	assert_in_range(fg_settle(env->host, 100 * FG_SEC), 8 * (4096ull << 10),
			9 * (4096ull << 10));
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* Of 64 packets: else a peer would send all of a long READ at once. */
TEST_CASES(rc, test_reads_are_asked_for_in_parts, adversaries)
{
	struct fg_conn conn = fg_conn_default;
	struct segment_frame request;

	conn.mtu = PVR_MTU_256;
	conn.timeout = 10;
	fg_end_connect(&env->a, &env->b, &conn);
	fg_segment_rules(env->segment)->cut = true;
	fg_fill(env->b.mr.va, 2 * LEN, 5);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 2 * LEN);
	fg_run(env->host);
	request = segment_last(env, 0);
	assert_int_equal(request.frame.opcode, PVR_ROCE_OP_READ_REQUEST);
	assert_int_equal(request.frame.length, 64 * 256);
	use(env, row);
	for (uint32_t i = 0; i < 8; i++) {
		patient(env);
		fg_settle(env->host, 20 * FG_MS);
	}
	settle(env);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.mr.va, 2 * LEN, 5), 2 * LEN);
}
