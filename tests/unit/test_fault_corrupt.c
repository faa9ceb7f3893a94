// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: payload that arrives with inverted bits. */
#include <stdlib.h>

#include "faults.h"
#include "nics.h"

#define LONG (FG_END_PAGES * PVR_PAGE_SIZE)
#define HALF (LONG / 2)

/* ------------------------------------------------------------------------------- numbers */

TEST(host, test_inverted_bits_have_the_probability_of_the_rule)
{
	struct pvr_fault_state one, many;
	struct pvr_fault_rule rule;
	uint64_t at[64], last_at;
	uint32_t num, total = 0;
	struct pvr_error err;

	assert_true(pvr_fault_parse(&rule, "corrupt=0.0001", &err));
	pvr_fault_state_init(&one, &rule, 7);
	/* 1000 messages of 10,000 bits: 1000 inverted bits in the mean. */
	for (uint32_t i = 0; i < 1000; i++) {
		num = pvr_fault_corrupt(&one, &rule, 10000, at, 64);
		last_at = 0;
		for (uint32_t j = 0; j < num; j++) {
			assert_true(at[j] < 10000 && (!j || at[j] > last_at));
			last_at = at[j];
		}
		total += num;
	}
	assert_in_range(total, 880, 1120);
	/* The bits do not depend on the lengths of the messages. */
	pvr_fault_state_init(&one, &rule, 7);
	pvr_fault_state_init(&many, &rule, 7);
	num = pvr_fault_corrupt(&one, &rule, 100000, at, 64);
	total = 0;
	for (uint32_t i = 0; i < 10; i++) {
		uint64_t part[64];
		uint32_t n = pvr_fault_corrupt(&many, &rule, 10000, part, 64);

		for (uint32_t j = 0; j < n; j++)
			assert_int_equal(part[j] + i * 10000, at[total++]);
	}
	assert_int_equal(total, num);
}

TEST(host, test_number_of_inverted_bits_of_a_message_has_a_limit)
{
	struct pvr_fault_state state;
	struct pvr_fault_rule rule;
	struct pvr_error err;
	uint64_t at[64];

	assert_true(pvr_fault_parse(&rule, "corrupt=0.01", &err));
	pvr_fault_state_init(&state, &rule, 1);
	assert_int_equal(pvr_fault_corrupt(&state, &rule, 8ull << 31, at, 64), 64);
	assert_true(pvr_fault_corrupt(&state, &rule, 1000, at, 64) < 64);
	assert_int_equal(pvr_fault_corrupt(&state, &rule, 0, at, 64), 0);
}

/* ------------------------------------------------------------------------------ payload */

static void fill(const struct fg_end *end)
{
	for (uint32_t i = 0; i < LONG; i++)
		((uint8_t *)end->mr.va)[i] = (uint8_t)(i * 7 + i / 251);
}

/* Return: the number of bits that differ between the payloads of both. */
static uint32_t differences(const struct fg_end *a, const struct fg_end *b, uint32_t skip,
			    uint32_t len)
{
	const uint8_t *x = (const uint8_t *)a->mr.va, *y = (const uint8_t *)b->mr.va + skip;
	uint32_t bits = 0;

	for (uint32_t i = 0; i < len; i++)
		bits += (uint32_t)__builtin_popcount(x[i] ^ y[i]);
	return bits;
}

static void begin(struct t_env *env)
{
	fill(&env->a);
	memset(env->b.mr.va, 0, LONG);
	/* 524,288 bits: about 26 are inverted. */
	add(env, "from=vm1 corrupt=5e-5");
}

static void expect_damage(struct t_env *env, uint32_t bits)
{
	assert_in_range(bits, 10, 50);
	assert_int_equal(last(env).corrupted, 1);
}

/* The program's own buffer is not damaged. */
static void expect_intact(const struct fg_end *end)
{
	for (uint32_t i = 0; i < LONG; i++)
		assert_int_equal(((uint8_t *)end->mr.va)[i], (uint8_t)(i * 7 + i / 251));
}

static void write_damaged(struct t_env *env)
{
	begin(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LONG);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	expect_damage(env, differences(&env->a, &env->b, 0, LONG));
	expect_intact(&env->a);
}

static void send_damaged(struct t_env *env)
{
	begin(env);
	t_recv(&env->b, 1, 0, LONG);
	t_send(&env->a, 1, 0, LONG);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 1, LONG);
	expect_damage(env, differences(&env->a, &env->b, 0, LONG));
	expect_intact(&env->a);
}

static void read_damaged(struct t_env *env)
{
	begin(env);
	fill(&env->b);
	memset(env->a.mr.va, 0, LONG);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, LONG);
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	expect_damage(env, differences(&env->b, &env->a, 0, LONG));
	expect_intact(&env->b);
}

TEST(rc_connected, test_write_arrives_with_inverted_bits)
{
	write_damaged(env);
}

TEST(rc_connected, test_send_arrives_with_inverted_bits)
{
	send_damaged(env);
}

TEST(rc_connected, test_read_arrives_with_inverted_bits)
{
	read_damaged(env);
}

TEST(uc, test_uc_message_arrives_with_inverted_bits)
{
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
	send_damaged(env);
}

TEST(ud_ready, test_datagrams_arrive_with_inverted_bits)
{
	uint32_t bits = 0;

	fill(&env->a);
	add(env, "from=vm1 corrupt=0.001");
	for (uint32_t i = 0; i < 10; i++) {
		t_recv(&env->b, i, 0, GRH + 2048);
		t_send_ud(&env->a, &env->b, i, 0, 2048);
		t_run_ud(env->host);
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, GRH + 2048);
		bits += differences(&env->a, &env->b, GRH, 2048);
	}
	/* Of 163,840 bits. */
	assert_in_range(bits, 100, 230);
	assert_int_equal(last(env).corrupted, 10);
	expect_intact(&env->a);
}

TEST(rc_connected, test_message_without_payload_is_not_corrupted)
{
	add(env, "corrupt=0.01");
	for (uint32_t i = 0; i < 20; i++) {
		t_message(env, PVR_SEND_SIGNALED);
		fg_run(env->host);
		expect_sent(&env->a, 7);
		expect_recv(&env->b.rcq, 7, 0);
	}
	assert_int_equal(last(env).corrupted, 0);
}

TEST(rc_connected, test_inline_data_arrive_with_inverted_bits)
{
	uint32_t before = 0;

	*(uint64_t *)env->a.mr.va = 0;
	add(env, "from=vm1 corrupt=0.01");
	for (uint32_t i = 0; i < 40; i++) {
		*(uint64_t *)env->b.mr.va = 0;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 8);
		fg_run(env->host);
		expect_written(&env->a, i);
		before += *(uint64_t *)env->b.mr.va != 0;
	}
	assert_int_equal(before, last(env).corrupted);
	assert_in_range(before, 8, 32);
}

TEST(rc_connected, test_end_of_the_fault_ends_the_damage)
{
	begin(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LONG);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	pvr_engine_clear_faults(env->host->engine, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, LONG);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
	assert_int_equal(differences(&env->a, &env->b, 0, LONG), 0);
}

/* ----------------------------------------------------------------------- other hosts */

T_SETUP_HOSTS(hosts, 2)
{
	hosts_connect(env, &env->a, &env->b, FG_END_PAGES);
}

TEST(hosts, test_write_to_another_host_arrives_with_inverted_bits)
{
	write_damaged(env);
}

TEST(hosts, test_send_to_another_host_arrives_with_inverted_bits)
{
	send_damaged(env);
}

TEST(hosts, test_read_from_another_host_arrives_with_inverted_bits)
{
	read_damaged(env);
}

/* A NIC cannot read the damaged copy, so the payload goes by the stream. */
TEST(nics, test_write_by_rdma_nics_arrives_with_inverted_bits)
{
	uint32_t bits = 0;

	memset(env->a.mr.va, 0x5a, NICS_PAGES * PVR_PAGE_SIZE);
	memset(env->b.mr.va, 0x5a, NICS_PAGES * PVR_PAGE_SIZE);
	add(env, "from=vm1 corrupt=0.0001");
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 4 * NICS_LEAST);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	for (uint32_t i = 0; i < NICS_PAGES * PVR_PAGE_SIZE; i++)
		bits += (uint32_t)__builtin_popcount(((uint8_t *)env->b.mr.va)[i] ^ 0x5a);
	assert_true(bits > 0);
	assert_int_equal(last(env).corrupted, 1);
	assert_int_equal(nics_out(env, 0), 0);
}
