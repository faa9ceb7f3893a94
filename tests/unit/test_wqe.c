// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work requests that are wrong in themselves. */
#include "objects.h"

#define GIB_PAGES (1u << 18)

static void reconnect(struct t_env *env)
{
	t_reconnect(env);
	fg_run(env->host);
	end_drain(&env->a);
	end_drain(&env->b);
}

/* a's request fails with @status and takes a's QP along; b does not notice. */
static void expect_sender_fails(struct t_env *env, uint32_t status)
{
	await_cqe(&env->a.scq, 1, status);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_cqe(&env->b.rcq);
	expect_no_event(env->g[1]);
	reconnect(env);
}

static void fill_sges(struct pvrdma_sge sge[4], const struct fg_mr *mr, uint32_t step, uint32_t len)
{
	for (uint32_t i = 0; i < 4; i++)
		sge[i] = fg_sge(mr, i * step, len);
}

static void post_with_num_sge(struct t_env *env, uint32_t num_sge)
{
	struct pvrdma_sge sge[4];

	fill_sges(sge, &env->a.mr, 100, 100);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = sge, .num_sge = num_sge);
}

TEST(rc_connected, test_send_with_no_entries_is_a_message_of_no_bytes)
{
	t_recv(&env->b, 2, 0, 64);
	post_with_num_sge(env, 0);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 0);
}

TEST(rc_connected, test_send_with_as_many_entries_as_the_queue_has)
{
	t_recv(&env->b, 2, 0, 1000);
	post_with_num_sge(env, 4);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 400);
}

static const struct t_case too_many[] = {
	{ "one", 5 },
	{ "twice as many", 8 },
	{ "the device's maximum", 32 },
	{ "one more than the device's maximum", 33 },
	{ "255", 255 },
	{ "256", 256 },
	{ "2^28, bytes wrap", 0x10000000 },
	{ "2^31 - 1", 0x7fffffff },
	{ "2^31", 0x80000000 },
	{ "2^32 - 1", UINT32_MAX },
};

TEST_CASES(rc_connected, test_send_with_too_many_entries_fails, too_many)
{
	post_with_num_sge(env, row->value);
	expect_sender_fails(env, PVRDMA_WC_LOC_QP_OP_ERR);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST_CASES(rc_connected, test_receive_with_too_many_entries_fails_both_ends, too_many)
{
	struct pvrdma_sge sge[4];

	fill_sges(sge, &env->b.mr, 100, 100);
	assert_true(fg_post_recv(&env->b.qp, 2, sge, row->value));
	t_send(&env->a, 1, 0, 8);
	await_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_QP_OP_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_OP_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
}

TEST(rc_connected, test_receive_with_no_entries_takes_empty_messages_only)
{
	assert_true(fg_post_recv(&env->b.qp, 2, NULL, 0));
	assert_true(fg_post_recv(&env->b.qp, 3, NULL, 0));
	post_with_num_sge(env, 0);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 0);
	t_send(&env->a, 4, 0, 1);
	await_cqe(&env->b.rcq, 3, PVRDMA_WC_LOC_LEN_ERR);
	expect_cqe(&env->a.scq, 4, PVRDMA_WC_REM_INV_REQ_ERR);
}

TEST(rc_connected, test_receive_buffer_one_byte_too_small)
{
	struct pvrdma_sge sge[2] = { fg_sge(&env->b.mr, 0, 50), fg_sge(&env->b.mr, 100, 49) };

	fg_fill(env->b.buf.va, env->b.buf.size, 3);
	assert_true(fg_post_recv(&env->b.qp, 2, sge, 2));
	t_send(&env->a, 1, 0, 100);
	await_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_LEN_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 3), env->b.buf.size);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
}

static const struct t_case unknown_opcodes[] = {
	{ "LSO", PVRDMA_WR_LSO },
	{ "RDMA_READ_WITH_INV", PVRDMA_WR_RDMA_READ_WITH_INV },
	{ "MASKED_ATOMIC_CMP_AND_SWP", PVRDMA_WR_MASKED_ATOMIC_CMP_AND_SWP },
	{ "MASKED_ATOMIC_FETCH_AND_ADD", PVRDMA_WR_MASKED_ATOMIC_FETCH_AND_ADD },
	{ "BIND_MW without its extension", PVRDMA_WR_BIND_MW },
	{ "REG_SIG_MR", PVRDMA_WR_REG_SIG_MR },
	{ "ERROR", PVRDMA_WR_ERROR },
	{ "17", 17 },
	{ "255", 255 },
	{ "256", 256 },
	{ "SEND with bit 31", 0x80000002 },
	{ "2^32 - 1", UINT32_MAX },
};

TEST_CASES(rc_connected, test_unknown_opcodes_fail, unknown_opcodes)
{
	t_post(&env->a, .wr_id = 1, .opcode = row->value, T_SGE(&env->a.mr, 0, 8),
	       T_REMOTE(&env->b.mr, 0));
	expect_sender_fails(env, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(rc_connected, test_unmapped_entry_in_the_middle_fails_the_whole_request)
{
	for (int bad = 0; bad < 4; bad++) {
		struct pvrdma_sge sge[4];

		fill_sges(sge, &env->a.mr, 1000, 1000);
		sge[bad].addr = 0x1000;
		fg_fill(env->b.buf.va, env->b.buf.size, 4);
		t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .sge = sge,
		       .num_sge = 4, T_REMOTE(&env->b.mr, 0));
		expect_sender_fails(env, PVRDMA_WC_LOC_PROT_ERR);
		assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 4), env->b.buf.size);
	}
}

TEST(rc_connected, test_unmapped_entry_in_the_middle_of_a_receive_fails_it_all)
{
	for (int bad = 0; bad < 4; bad++) {
		struct pvrdma_sge sge[4];

		fill_sges(sge, &env->b.mr, 1000, 1000);
		sge[bad].lkey = 0;
		fg_fill(env->b.buf.va, env->b.buf.size, 4);
		assert_true(fg_post_recv(&env->b.qp, 2, sge, 4));
		t_send(&env->a, 1, 0, 500);
		await_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_OP_ERR);
		assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 4), env->b.buf.size);
		reconnect(env);
	}
}

TEST(rc_connected, test_empty_entries_need_no_key)
{
	const struct pvrdma_sge sge[] = { { 0xdead, 0, 0xbad },
					  fg_sge(&env->a.mr, 0, 10),
					  { UINT64_MAX, 0, UINT32_MAX } };

	t_recv(&env->b, 2, 0, 10);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = sge, .num_sge = 3);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 10);
}

TEST(rc_connected, test_lengths_whose_sum_wraps_32_bits_fail)
{
	struct pvrdma_sge sge[4];
	struct fg_mr big;

	/* 4 * 1 GiB is 0 in 32 bits, which would fit the receiver. */
	t_wide_mr(&env->a, GIB_PAGES, &big);
	fill_sges(sge, &big, 0, 1u << 30);
	t_recv(&env->b, 2, 0, 64);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = sge, .num_sge = 4);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_LEN_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_cqe(&env->b.rcq);
}

TEST(rc_connected, test_message_longer_than_the_device_allows_fails)
{
	struct pvr_port_attr port;
	struct pvrdma_sge sge[4];
	struct fg_mr big;

	expect_ok(fg_query_port(env->g[0], 1, &port));
	if (port.max_msg_sz >= 3u << 30)
		t_skip("the device takes a message of 3 GiB");
	t_wide_mr(&env->a, GIB_PAGES, &big);
	fill_sges(sge, &big, 0, 1u << 30);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .sge = sge, .num_sge = 3,
	       T_REMOTE(&env->b.mr, 0));
	expect_sender_fails(env, PVRDMA_WC_LOC_LEN_ERR);
}

TEST(rc_connected, test_one_gigabyte_in_one_message)
{
	struct fg_mr from, to;

	t_wide_mr(&env->a, GIB_PAGES, &from);
	t_wide_mr(&env->b, GIB_PAGES, &to);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&from, 0, 1u << 30),
	       T_REMOTE(&to, 0));
	await_written(&env->a, 1);
}

TEST(rc_connected, test_bad_request_is_consumed_once)
{
	for (int i = 0; i < 10; i++)
		post_with_num_sge(env, 77);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
	for (int i = 1; i < 10; i++)
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(fg_sq_space(&env->a.qp), 64);
}

TEST(rc_connected, test_unknown_flags_are_ignored)
{
	t_recv(&env->b, 2, 0, 8);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .flags = 0xfffffff7);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 0);
}

TEST(rc_connected, test_garbage_in_unused_fields_is_ignored)
{
	struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 16);
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&env->a.qp, 0);

	/* As the stock provider leaves it: what earlier requests had there. */
	memset(wqe, 0xa5, env->a.qp.sq_stride);
	wqe->wr_id = 1;
	wqe->num_sge = 1;
	wqe->opcode = PVRDMA_WR_SEND;
	wqe->send_flags = PVR_SEND_SIGNALED;
	memcpy(wqe + 1, &sge, sizeof(sge));
	t_recv(&env->b, 2, 0, 16);
	env->a.qp.ring->tx.prod_tail = 1;
	fg_ring_send(&env->a.qp);
	await_sent(&env->a, 1);
	assert_int_equal(expect_recv(&env->b.rcq, 2, 16).wc_flags & PVRDMA_WC_WITH_IMM, 0);
}

/* Queues with an entry stride that several pages hold a whole number of. */
TEST(guests, test_every_stride_works)
{
	uint32_t max_sge = env->g[0]->dsr->caps.max_sge;

	for (uint32_t sges = 1; sges <= max_sge; sges += sges < 4 ? 1 : 7) {
		const struct fg_qp_spec spec = {
			.type = PVR_QPT_RC, .sq_wr = 16, .rq_wr = 16, .sq_sge = sges, .rq_sge = sges
		};

		t_open_connected(env, &spec, 2);
		for (int i = 0; i < 20; i++)
			t_ping_pong(env->host, &env->a, &env->b);
		fg_end_close(&env->a);
		fg_end_close(&env->b);
	}
}
