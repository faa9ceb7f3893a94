// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compare-and-swap, fetch-and-add: IBTA vol. 1, 9.4.5 and 10.7.2.3. */
#include <pthread.h>

#include "common.h"

#define RESULT 512 /* where results go in the requester's buffer */

static void post(struct t_env *env, enum pvrdma_wr_opcode op, uint64_t offset, uint64_t arg,
		 uint64_t swap, uint32_t result_len)
{
	struct pvrdma_sge sge = fg_sge(&env->a.mr, RESULT, result_len);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = op,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = env->b.mr.start + offset,
			    .rkey = env->b.mr.rkey,
			    .compare_add = arg,
			    .swap = swap };

	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
}

static uint64_t word(const struct fg_end *end, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, end->mr.va + offset, sizeof(value));
	return value;
}

static void set_word(struct fg_end *end, uint64_t offset, uint64_t value)
{
	memcpy(end->mr.va + offset, &value, sizeof(value));
}

static void test_fetch_and_add_returns_the_old_value(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 64, UINT64_MAX - 1);
	post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 0, 8);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(word(&env->a, RESULT) == UINT64_MAX - 1);
	assert_true(word(&env->b, 64) == 3);
	expect_no_cqe(&env->b.rcq);
}

static void test_compare_and_swap_swaps_if_equal(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 4096 - 8, 42);
	post(env, PVRDMA_WR_ATOMIC_CMP_AND_SWP, 4096 - 8, 42, 77, 8);
	assert_int_equal(expect_done(&env->a.scq, 1, PVRDMA_WC_COMP_SWAP).byte_len, 8);
	assert_true(word(&env->a, RESULT) == 42);
	assert_true(word(&env->b, 4096 - 8) == 77);
}

static void test_compare_and_swap_leaves_what_differs(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 0, 43);
	post(env, PVRDMA_WR_ATOMIC_CMP_AND_SWP, 0, 42, 77, 8);
	expect_done(&env->a.scq, 1, PVRDMA_WC_COMP_SWAP);
	assert_true(word(&env->a, RESULT) == 43);
	assert_true(word(&env->b, 0) == 43);
}

static void expect_refusal(struct t_env *env, uint32_t status, uint64_t offset)
{
	expect_cqe(&env->a.scq, 1, status);
	expect_state(&env->a, PVR_QPS_ERR);
	assert_true(word(&env->b, offset) == 1000);
}

static void test_unaligned_atomic_is_refused_by_the_responder(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 0, 1000);
	post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 4, 1, 0, 8);
	expect_refusal(env, PVRDMA_WC_REM_INV_REQ_ERR, 0);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_REQ_ERR, env->b.qp.handle);
}

static void test_atomic_with_a_result_of_other_than_8_bytes_fails(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 0, 1000);
	post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 4);
	expect_refusal(env, PVRDMA_WC_LOC_LEN_ERR, 0);
	expect_state(&env->b, PVR_QPS_RTS);
}

static void test_atomic_with_a_wrong_lkey_changes_nothing(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 0, 1000);
	env->a.mr.lkey ^= 0x55;
	post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8);
	env->a.mr.lkey ^= 0x55;
	expect_refusal(env, PVRDMA_WC_LOC_PROT_ERR, 0);
	expect_state(&env->b, PVR_QPS_RTS);
}

static void test_atomic_with_a_wrong_rkey_is_refused(void **state)
{
	struct t_env *env = *state;

	set_word(&env->b, 0, 1000);
	env->b.mr.rkey ^= 0x55;
	post(env, PVRDMA_WR_ATOMIC_CMP_AND_SWP, 0, 1000, 1, 8);
	env->b.mr.rkey ^= 0x55;
	expect_refusal(env, PVRDMA_WC_REM_ACCESS_ERR, 0);
	expect_one_event(env->g[1], PVR_EVENT_QP_ACCESS_ERR, env->b.qp.handle);
}

static void test_atomic_beyond_the_region_is_refused(void **state)
{
	struct t_env *env = *state;

	post(env, PVRDMA_WR_ATOMIC_CMP_AND_SWP, env->b.mr.length, 0, 1, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

static void test_atomic_that_the_responder_has_not_enabled_is_refused(void **state)
{
	struct t_env *env = *state;
	struct fg_conn conn = fg_conn_default;

	conn.access = PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_WRITE;
	fg_end_connect(&env->a, &env->b, &conn);
	set_word(&env->b, 0, 1000);
	post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8);
	expect_refusal(env, PVRDMA_WC_REM_INV_REQ_ERR, 0);
}

static void test_zero_entry_atomic_fails(void **state)
{
	struct t_env *env = *state;
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
			    .remote_addr = env->b.mr.start,
			    .rkey = env->b.mr.rkey };

	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_LEN_ERR);
}

/* ------------------------------------------------- against the guest's own CPU */

#define ADDS 20000

static void *guest_cpu(void *arg)
{
	uint64_t *counter = arg;

	for (int i = 0; i < ADDS; i++)
		__atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void test_atomics_lose_nothing_against_a_guest_cpu(void **state)
{
	struct t_env *env = *state;
	uint64_t *counter = (uint64_t *)env->b.mr.va;
	pthread_t thread;

	*counter = 0;
	assert_int_equal(pthread_create(&thread, NULL, guest_cpu, counter), 0);
	for (int i = 0; i < ADDS / 10; i++) {
		post(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8);
		expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	}
	pthread_join(thread, NULL);
	assert_true(__atomic_load_n(counter, __ATOMIC_SEQ_CST) == ADDS + ADDS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fetch_and_add_returns_the_old_value, rc_connected),
		T(test_compare_and_swap_swaps_if_equal, rc_connected),
		T(test_compare_and_swap_leaves_what_differs, rc_connected),
		T(test_unaligned_atomic_is_refused_by_the_responder, rc_connected),
		T(test_atomic_with_a_result_of_other_than_8_bytes_fails, rc_connected),
		T(test_atomic_with_a_wrong_lkey_changes_nothing, rc_connected),
		T(test_atomic_with_a_wrong_rkey_is_refused, rc_connected),
		T(test_atomic_beyond_the_region_is_refused, rc_connected),
		T(test_atomic_that_the_responder_has_not_enabled_is_refused, rc),
		T(test_zero_entry_atomic_fails, rc_connected),
		T(test_atomics_lose_nothing_against_a_guest_cpu, rc_connected),
	};

	return T_MAIN(tests);
}
