// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA READ. */
#include "transfer.h"

TEST_CASES(rc_big, test_read_of_all_shapes, t_transfer_shapes)
{
	row->run(env, PVRDMA_WR_RDMA_READ);
}

TEST(rc_connected, test_read_completes_with_its_length)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 777);
	fg_run(env->host);
	assert_int_equal(expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ).byte_len, 777);
	expect_no_cqe(&env->b.rcq);
	expect_no_cqe(&env->b.scq);
}

TEST(rc_connected, test_zero_length_read_needs_no_valid_key)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_READ, .remote_addr = 0xdead,
	       .rkey = 0xbad);
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
}

TEST(rc_connected, test_read_sees_what_was_written_before)
{
	fg_fill(env->a.mr.va, 10000, 1);
	memset(env->a.mr.va + 20000, 0, 10000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 123, 10000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 20000, &env->b.mr, 123, 10000);
	await_written(&env->a, 1);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.mr.va + 20000, 10000, 1), 10000);
}

TEST(rc_connected, test_fenced_send_waits_for_the_read)
{
	fg_fill(env->b.mr.va, 4000, 1);
	memset(env->a.mr.va, 0, 4000);
	t_recv(&env->b, 3, 8192, 4000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 4000);
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_SEND,
	       .flags = PVR_SEND_SIGNALED | PVR_SEND_FENCE, T_SGE(&env->a.mr, 0, 4000));
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 3, 4000);
	assert_int_equal(fg_mismatch(env->b.mr.va + 8192, 4000, 1), 4000);
}

TEST(rc, test_more_reads_than_the_depth_all_complete)
{
	struct fg_conn conn = fg_conn_default;

	conn.max_rd_atomic = conn.max_dest_rd_atomic = 1;
	fg_end_connect(&env->a, &env->b, &conn);
	for (uint32_t i = 0; i < 60; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, 0, &env->b.mr, 0, 5000);
	fg_run(env->host);
	for (uint32_t i = 0; i < 60; i++)
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_READ);
}

TEST(rc, test_read_from_a_responder_without_read_resources_fails)
{
	t_connect_with(env, max_dest_rd_atomic, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 100);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
}

TEST(rc, test_read_without_initiator_depth_fails)
{
	t_connect_with(env, max_rd_atomic, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 100);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(rc_self, test_read_from_oneself_with_overlap)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->a.mr, 77, 20000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 77, &env->a.mr, 0, 20000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->a.mr, 0, 20000);
	fg_run(env->host);
	for (uint32_t i = 1; i <= 3; i++)
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_READ);
}

TEST(rc_big, test_mr_deregistered_in_the_middle_of_a_read)
{
	const uint32_t len = 1 << 20;
	struct pvrdma_cqe cqe;

	for (uint32_t i = 0; i < 40; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, 0, &env->b.mr, 0, len);
	pvr_engine_run(env->host->engine, 0);
	expect_ok(fg_mr_destroy(&env->b.mr));
	memset(env->b.buf.va, 0xdd, env->b.buf.size);
	fg_run(env->host);
	/* Those done before are good, then one error, then nothing but flushes. */
	for (uint32_t i = 0, bad = 0; i < 40; i++) {
		assert_true(fg_cq_poll(&env->a.scq, &cqe));
		assert_int_equal(cqe.wr_id, i);
		if (bad)
			assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
		else if (cqe.status != PVRDMA_WC_SUCCESS)
			assert_int_equal(cqe.status, PVRDMA_WC_REM_ACCESS_ERR);
		bad |= cqe.status;
	}
	expect_no_cqe(&env->a.scq);
}
