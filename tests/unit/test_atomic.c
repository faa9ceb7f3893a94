// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compare-and-swap and fetch-and-add. */
#include <pthread.h>

#include "ends.h"

#define CAS PVRDMA_WR_ATOMIC_CMP_AND_SWP
#define FAA PVRDMA_WR_ATOMIC_FETCH_AND_ADD
#define TARGET 4096u /* of the word in b's buffer */
#define RESULT 64u /* of the old value in a's buffer */
#define GUARD 0x5555aaaa5555aaaaull

static uint64_t *target(struct t_env *env)
{
	return (uint64_t *)(env->b.mr.va + TARGET);
}

static uint64_t *result(struct t_env *env)
{
	return (uint64_t *)(env->a.mr.va + RESULT);
}

struct atomic {
	enum pvrdma_wr_opcode op;
	uint64_t compare_add, swap;
	uint64_t remote_addr;
	uint32_t rkey;
	struct pvrdma_sge sge[4]; /* as many as the queue takes */
	uint32_t num_sge;
};

/* A valid request: b's word at TARGET, into a's RESULT. */
static struct atomic valid(struct t_env *env, enum pvrdma_wr_opcode op)
{
	*target(env) = 100;
	target(env)[-1] = target(env)[1] = GUARD;
	*result(env) = GUARD;
	result(env)[-1] = result(env)[1] = GUARD;
	return (struct atomic){ .op = op,
				.compare_add = op == CAS ? 100 : 5,
				.swap = 77,
				.remote_addr = env->b.mr.start + TARGET,
				.rkey = env->b.mr.rkey,
				.sge = { fg_sge(&env->a.mr, RESULT, 8) },
				.num_sge = 1 };
}

static void expect_values(struct t_env *env, uint64_t new, uint64_t old)
{
	assert_true(*target(env) == new);
	assert_true(*result(env) == old);
	assert_true(target(env)[-1] == GUARD && target(env)[1] == GUARD);
	assert_true(result(env)[-1] == GUARD && result(env)[1] == GUARD);
}

static void run(struct t_env *env, const struct atomic *atomic)
{
	t_post(&env->a, .wr_id = 1, .opcode = atomic->op, .sge = atomic->sge,
	       .num_sge = atomic->num_sge, .remote_addr = atomic->remote_addr, .rkey = atomic->rkey,
	       .compare_add = atomic->compare_add, .swap = atomic->swap);
	fg_run(env->host);
}

/* The target becomes @new, and the result @old. */
static struct pvrdma_cqe expect_success(struct t_env *env, const struct atomic *atomic,
					uint64_t new, uint64_t old)
{
	struct pvrdma_cqe cqe;

	run(env, atomic);
	cqe = expect_done(&env->a.scq, 1,
			  atomic->op == CAS ? PVRDMA_WC_COMP_SWAP : PVRDMA_WC_FETCH_ADD);
	expect_values(env, new, old);
	return cqe;
}

static void expect_failure(struct t_env *env, const struct atomic *atomic, uint32_t status)
{
	run(env, atomic);
	expect_cqe(&env->a.scq, 1, status);
	expect_values(env, 100, GUARD);
	expect_state(&env->a, PVR_QPS_ERR);
	if (status == PVRDMA_WC_REM_ACCESS_ERR)
		expect_one_event(env->g[1], PVR_EVENT_QP_ACCESS_ERR, env->b.qp.handle);
	else if (status == PVRDMA_WC_REM_INV_REQ_ERR)
		expect_one_event(env->g[1], PVR_EVENT_QP_REQ_ERR, env->b.qp.handle);
	else
		expect_state(&env->b, PVR_QPS_RTS);
	t_reconnect(env);
}

TEST(rc_connected, test_atomics_are_offered)
{
	const struct pvr_caps *caps = &env->g[0]->dsr->caps;

	assert_int_equal(caps->atomic_ops, PVR_ATOMIC_CMP_SWAP | PVR_ATOMIC_FETCH_ADD);
}

TEST(rc_connected, test_compare_and_swap_that_matches)
{
	struct atomic atomic = valid(env, CAS);

	assert_int_equal(expect_success(env, &atomic, 77, 100).byte_len, 8);
	expect_no_cqe(&env->b.rcq);
}

TEST(rc_connected, test_compare_and_swap_that_does_not_match)
{
	struct atomic atomic = valid(env, CAS);

	atomic.compare_add = 101;
	expect_success(env, &atomic, 100, 100);
}

TEST(rc_connected, test_fetch_and_add)
{
	struct atomic atomic = valid(env, FAA);

	expect_success(env, &atomic, 105, 100);
	atomic.compare_add = -105ull;
	expect_success(env, &atomic, 0, 105);
}

TEST(rc_connected, test_all_64_bits_take_part)
{
	struct atomic atomic = valid(env, CAS);

	*target(env) = 0x8000000000000001ull;
	atomic.compare_add = 1;
	expect_success(env, &atomic, 0x8000000000000001ull, 0x8000000000000001ull);
	atomic.compare_add = 0x8000000000000001ull;
	atomic.swap = 0xfedcba9876543210ull;
	expect_success(env, &atomic, 0xfedcba9876543210ull, 0x8000000000000001ull);
}

TEST(rc_connected, test_atomics_run_in_order)
{
	*target(env) = 0;
	for (uint32_t i = 0; i < 60; i++)
		t_post(&env->a, .wr_id = i, .opcode = FAA, T_SGE(&env->a.mr, 8 * i, 8),
		       T_REMOTE(&env->b.mr, TARGET), .compare_add = 3);
	fg_run(env->host);
	for (uint32_t i = 0; i < 60; i++) {
		expect_done(&env->a.scq, i, PVRDMA_WC_FETCH_ADD);
		assert_true(((uint64_t *)env->a.mr.va)[i] == 3 * i);
	}
}

static const struct t_case result_offsets[] = { T_CASE(1),    T_CASE(7),    T_CASE(4089),
						T_CASE(4092), T_CASE(4095), T_CASE(8190) };

TEST_CASES(rc_connected, test_result_at_any_offset, result_offsets)
{
	struct atomic atomic = valid(env, FAA);
	uint64_t old;

	atomic.sge[0] = fg_sge(&env->a.mr, row->value, 8);
	run(env, &atomic);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	memcpy(&old, env->a.mr.va + row->value, 8);
	assert_true(old == 100);
}

TEST(rc_connected, test_target_in_an_unaligned_mr)
{
	struct atomic atomic = valid(env, FAA);
	struct fg_mr mr;

	/* The address counts, not the distance from the MR's start. */
	expect_ok(fg_mr_create_part(&env->b.pd, &env->b.buf, 4091, 1000, FG_ACCESS_ALL, &mr));
	atomic.rkey = mr.rkey;
	atomic.remote_addr = mr.start + 5;
	expect_success(env, &atomic, 105, 100);
}

TEST(rc_connected, test_unaligned_targets_are_refused)
{
	for (uint32_t offset = 1; offset < 8; offset++) {
		struct atomic atomic = valid(env, offset % 2 ? CAS : FAA);

		atomic.remote_addr += offset;
		expect_failure(env, &atomic, PVRDMA_WC_REM_INV_REQ_ERR);
	}
}

static const struct t_case bad_targets[] = { { "word before", -8ull },
					     { "word behind", FG_END_PAGES *PVR_PAGE_SIZE },
					     { "next", FG_END_PAGES *PVR_PAGE_SIZE + 8 },
					     T_CASE(1ull << 32),
					     T_CASE(1ull << 63),
					     { "last address", -FG_USER_VA - 8 } };

TEST_CASES(rc_connected, test_target_outside_the_mr_is_refused, bad_targets)
{
	struct atomic atomic = valid(env, FAA);

	atomic.remote_addr = env->b.mr.start + row->value;
	expect_failure(env, &atomic, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(rc_connected, test_target_that_ends_one_byte_behind_the_mr_is_refused)
{
	struct atomic atomic = valid(env, FAA);
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&env->b.pd, &env->b.buf, 0, TARGET + 7, FG_ACCESS_ALL, &mr));
	atomic.rkey = mr.rkey;
	atomic.remote_addr = mr.start + TARGET;
	expect_failure(env, &atomic, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(rc_connected, test_wrong_rkeys_are_refused)
{
	struct atomic atomic = valid(env, CAS);
	struct fg_mr no_atomic;

	atomic.rkey ^= 0x100;
	expect_failure(env, &atomic, PVRDMA_WC_REM_ACCESS_ERR);
	atomic = valid(env, CAS);
	expect_ok(fg_mr_create(&env->b.pd, &env->b.buf,
			       PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE |
				       PVR_ACCESS_REMOTE_READ,
			       &no_atomic));
	atomic.rkey = no_atomic.rkey;
	expect_failure(env, &atomic, PVRDMA_WC_REM_ACCESS_ERR);
}

/* The target must not change when the old value has nowhere to go. */
TEST(rc_connected, test_wrong_lkeys_are_refused_before_anything_happens)
{
	struct atomic atomic = valid(env, FAA);
	struct fg_mr read_only;

	atomic.sge[0].lkey ^= 0x100;
	expect_failure(env, &atomic, PVRDMA_WC_LOC_PROT_ERR);
	atomic = valid(env, FAA);
	atomic.sge[0].addr = 0x1000;
	expect_failure(env, &atomic, PVRDMA_WC_LOC_PROT_ERR);
	atomic = valid(env, CAS);
	expect_ok(fg_mr_create(&env->a.pd, &env->a.buf, PVR_ACCESS_REMOTE_READ, &read_only));
	atomic.sge[0] = fg_sge(&read_only, RESULT, 8);
	expect_failure(env, &atomic, PVRDMA_WC_LOC_PROT_ERR);
}

T_SETUP_EXT(all_extensions, PVR_ENGINE_EXT, rc_connected)

/* Neither offered nor done, by stock providers or with all extensions. */
TEST(all_extensions, test_masked_atomics_are_refused)
{
	assert_int_equal(env->g[0]->dsr->caps.atomic_ops &
				 (PVR_ATOMIC_MASKED_CMP_SWAP | PVR_ATOMIC_MASKED_FETCH_ADD),
			 0);
	for (uint32_t opcode = 12; opcode <= 13; opcode++) {
		struct atomic atomic = valid(env, CAS);

		atomic.op = opcode;
		expect_failure(env, &atomic, PVRDMA_WC_LOC_QP_OP_ERR);
	}
}

static const struct t_case bad_lengths[] = { T_CASE(0), T_CASE(1),  T_CASE(4),	 T_CASE(7),
					     T_CASE(9), T_CASE(16), T_CASE(4096) };

TEST_CASES(rc_connected, test_wrong_lengths_are_refused, bad_lengths)
{
	struct atomic atomic = valid(env, FAA);

	atomic.sge[0].length = row->value;
	expect_failure(env, &atomic, PVRDMA_WC_LOC_LEN_ERR);
}

TEST(rc_connected, test_no_entry_for_the_result_is_refused)
{
	struct atomic atomic = valid(env, FAA);

	atomic.num_sge = 0;
	expect_failure(env, &atomic, PVRDMA_WC_LOC_LEN_ERR);
}

static const struct t_case bad_numbers[] = { T_CASE(5), T_CASE(255), T_CASE(UINT32_MAX) };

TEST_CASES(rc_connected, test_too_many_entries_are_refused, bad_numbers)
{
	struct atomic atomic = valid(env, FAA);

	atomic.num_sge = row->value;
	expect_failure(env, &atomic, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(rc_connected, test_result_in_two_entries)
{
	struct atomic atomic = valid(env, FAA);

	atomic.sge[0] = fg_sge(&env->a.mr, RESULT, 3);
	atomic.sge[1] = fg_sge(&env->a.mr, RESULT + 3, 5);
	atomic.num_sge = 2;
	expect_success(env, &atomic, 105, 100);
}

TEST(rc, test_qp_must_permit_atomics)
{
	struct atomic atomic = valid(env, FAA);

	t_connect_with(env, access, fg_conn_default.access & ~PVR_ACCESS_REMOTE_ATOMIC);
	expect_failure(env, &atomic, PVRDMA_WC_REM_INV_REQ_ERR);
}

TEST(rc, test_atomics_need_read_resources)
{
	struct atomic atomic = valid(env, FAA);

	t_connect_with(env, max_dest_rd_atomic, 0);
	expect_failure(env, &atomic, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	t_connect_with(env, max_rd_atomic, 0);
	expect_failure(env, &atomic, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(rc_self, test_atomic_on_ones_own_memory)
{
	struct atomic atomic;

	env->b = env->a; /* the target is a's own */
	atomic = valid(env, FAA);
	expect_success(env, &atomic, 105, 100);
	/* The result may even be the target. */
	atomic.sge[0] = fg_sge(&env->a.mr, TARGET, 8);
	run(env, &atomic);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(*target(env) == 105);
}

static void *add_ones(void *opaque)
{
	uint64_t *word = opaque;

	for (int i = 0; i < 100000; i++)
		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(rc_connected, test_atomics_are_atomic_against_the_guests_cpus)
{
	struct atomic atomic = valid(env, FAA);
	pthread_t thread;

	*target(env) = 0;
	assert_int_equal(pthread_create(&thread, NULL, add_ones, target(env)), 0);
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 60; i++)
			t_post(&env->a, .opcode = FAA, .flags = 0, .sge = atomic.sge, .num_sge = 1,
			       T_REMOTE(&env->b.mr, TARGET), .compare_add = 1ull << 32);
		fg_run(env->host);
	}
	pthread_join(thread, NULL);
	assert_true(*target(env) == (30000ull << 32) + 100000);
}
