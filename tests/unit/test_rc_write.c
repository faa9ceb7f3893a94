// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA WRITE and WRITE_WITH_IMM. */
#include "transfer.h"

TEST_CASES(rc_big, test_write_of_all_shapes, t_transfer_shapes)
{
	row->run(env, PVRDMA_WR_RDMA_WRITE);
}

TEST(rc_big, test_write_with_imm_of_all_lengths)
{
	t_transfer_lengths(env, PVRDMA_WR_RDMA_WRITE_WITH_IMM);
}

TEST(rc_connected, test_write_leaves_receive_requests_alone)
{
	t_recv(&env->b, 1, 0, 64);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 100, 64);
	await_written(&env->a, 2);
	expect_no_cqe(&env->b.rcq);
	t_send(&env->a, 3, 0, 8);
	await_recv(&env->b.rcq, 1, 8);
}

TEST(rc_connected, test_write_with_imm_consumes_a_receive_request)
{
	struct pvrdma_cqe cqe;

	memset(env->b.mr.va, 0xcc, 64);
	fg_fill(env->a.mr.va, 64, 1);
	t_recv(&env->b, 1, 0, 64);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 5000, 64);
	await_written(&env->a, 2);
	cqe = expect_done(&env->b.rcq, 1, PVRDMA_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(cqe.imm_data, 0x78563412);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_WITH_IMM, PVRDMA_WC_WITH_IMM);
	assert_int_equal(cqe.byte_len, 64);
	assert_int_equal(fg_mismatch(env->b.mr.va + 5000, 64, 1), 64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(env->b.mr.va[i], 0xcc);
}

TEST(rc_connected, test_write_with_imm_ignores_the_receive_buffer)
{
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 0, 64);
	await_written(&env->a, 2);
	expect_done(&env->b.rcq, 1, PVRDMA_WC_RECV_RDMA_WITH_IMM);
}

TEST(rc_connected, test_write_with_imm_without_receive_request_waits)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 0, 64);
	await_no_cqe(&env->a.scq);
	t_recv(&env->b, 1, 0, 0);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
	expect_done(&env->b.rcq, 1, PVRDMA_WC_RECV_RDMA_WITH_IMM);
}

TEST(rc_self, test_write_to_oneself_with_overlap)
{
	fg_fill(env->a.mr.va, 30000, 1);
	for (uint32_t shift = 0; shift < 3; shift++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->a.mr, shift * 50, 20000);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, shift * 50, &env->a.mr, 0, 20000);
		await_written(&env->a, 1);
		expect_written(&env->a, 2);
	}
}

TEST(rc_connected, test_zero_length_write_needs_no_valid_key)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .remote_addr = 0xdead,
	       .rkey = 0xbad);
	await_written(&env->a, 1);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(rc_connected, test_write_then_send_keep_their_order)
{
	for (uint32_t i = 1; i < 40; i++) {
		memset(env->a.mr.va, (int)i, 100);
		t_recv(&env->b, i, 8192, 8);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 4096, 100);
		t_send(&env->a, 1000 + i, 0, 8);
		await_written(&env->a, i);
		expect_sent(&env->a, 1000 + i);
		expect_recv(&env->b.rcq, i, 8);
		assert_int_equal(env->b.mr.va[4096 + 99], i);
	}
}

TEST(rc_connected, test_write_through_a_dma_mr)
{
	struct pvrdma_sge sge[3];
	struct fg_mr dma;

	expect_ok(fg_mr_create_dma(&env->a.pd, &dma));
	fg_fill(env->a.buf.va, 3 * PVR_PAGE_SIZE, 1);
	for (uint32_t i = 0; i < 3; i++)
		sge[i] = fg_sge(&dma, fg_buf_gpa(&env->a.buf, i * PVR_PAGE_SIZE), PVR_PAGE_SIZE);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .sge = sge, .num_sge = 3,
	       T_REMOTE(&env->b.mr, 0));
	await_written(&env->a, 1);
	assert_int_equal(fg_mismatch(env->b.buf.va, 3 * PVR_PAGE_SIZE, 1), 3 * PVR_PAGE_SIZE);
}

TEST(rc_connected, test_inline_flag_of_a_stock_provider_is_harmless)
{
	struct pvrdma_cqe cqe;

	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE,
	       .flags = PVR_SEND_SIGNALED | PVR_SEND_INLINE, T_SGE(&env->a.mr, 0, 32),
	       T_REMOTE(&env->b.mr, 0));
	fg_run(env->host);
	assert_true(fg_cq_poll(&env->a.scq, &cqe));
	assert_true(cqe.status == PVRDMA_WC_SUCCESS || cqe.status == PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(rc, test_ends_with_different_mtus_stay_in_step)
{
	struct fg_conn small = fg_conn_default, large = fg_conn_default;

	t_not_on_segment(env, "both ends of a RoCE connection have the same path MTU");
	small.mtu = PVR_MTU_256;
	large.mtu = PVR_MTU_4096;
	expect_ok(fg_qp_connect(&env->a.qp, &small, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_connect(&env->b.qp, &large, env->a.gid, env->a.qp.qpn));
	for (uint32_t i = 0; i < 10; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 5000);
		t_rdma(&env->b, PVRDMA_WR_RDMA_READ, i, 0, &env->a.mr, 0, 9000);
		await_written(&env->a, i);
		expect_done(&env->b.scq, i, PVRDMA_WC_RDMA_READ);
	}
}
