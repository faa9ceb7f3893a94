// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_LOCAL_DMA_LKEY: one lkey for all of RAM, for the guest's kernel alone. */
#include "objects.h"

TEST_EXT(PVR_EXT_LOCAL_DMA_LKEY | PVR_EXT_USER_OPS)

static struct pvrdma_sge dma_sge(const struct fg_end *end, uint64_t offset, uint32_t len)
{
	return (struct pvrdma_sge){ fg_buf_gpa(&end->buf, offset), len, PVR_LOCAL_DMA_LKEY };
}

static void post_send(struct fg_end *end, uint64_t wr_id, struct pvrdma_sge sge)
{
	t_post(end, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, .sge = &sge, .num_sge = 1);
}

TEST(rc_connected, test_kernel_sends_and_receives_by_bus_address)
{
	fg_fill(env->a.buf.va + 100, 3000, 5);
	t_recv_sge(&env->b, 1, dma_sge(&env->b, 7, 3000));
	post_send(&env->a, 2, dma_sge(&env->a, 100, 3000));
	await_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 3000);
	assert_int_equal(fg_mismatch(env->b.buf.va + 7, 3000, 5), 3000);
}

TEST(rc_connected, test_kernel_reads_into_bus_addresses)
{
	const struct pvrdma_sge to = dma_sge(&env->a, 0, 2000);

	fg_fill(env->b.buf.va, 2000, 6);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_READ, .sge = &to, .num_sge = 1,
	       T_REMOTE(&env->b.mr, 0));
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.buf.va, 2000, 6), 2000);
}

TEST(rc_connected, test_kernel_srq_takes_bus_addresses)
{
	const struct pvrdma_sge sge = dma_sge(&env->b, 50, 500);
	struct fg_srq srq;

	t_srq_use(&env->b, 64, &srq);
	t_reconnect(env);
	assert_true(fg_post_srq_recv(&srq, 1, &sge, 1));
	fg_fill(env->a.buf.va, 500, 7);
	t_send(&env->a, 2, 0, 500);
	await_recv(&env->b.rcq, 1, 500);
	assert_int_equal(fg_mismatch(env->b.buf.va + 50, 500, 7), 500);
}

TEST_CASES(rc_connected, test_addresses_that_are_no_ram_are_refused, t_bad_gpa)
{
	post_send(&env->a, 2, (struct pvrdma_sge){ row->gpa, 8, PVR_LOCAL_DMA_LKEY });
	await_cqe(&env->a.scq, 2, PVRDMA_WC_LOC_PROT_ERR);
}

TEST(rc_connected, test_read_only_memory_is_not_written)
{
	const uint8_t *rom = t_map_rom(env->g[1]);

	t_recv_sge(&env->b, 1, (struct pvrdma_sge){ T_ROM_GPA, 8, PVR_LOCAL_DMA_LKEY });
	env->a.mr.va[0] = 1;
	t_send(&env->a, 2, 0, 8);
	await_cqe(&env->a.scq, 2, PVRDMA_WC_REM_OP_ERR);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	assert_int_equal(rom[0], 0);
}

static const struct t_case rdma_ops[] = { T_CASE(PVRDMA_WR_RDMA_WRITE), T_CASE(PVRDMA_WR_RDMA_READ),
					  T_CASE(PVRDMA_WR_ATOMIC_FETCH_AND_ADD) };

TEST_CASES(rc_connected, test_key_is_no_rkey, rdma_ops)
{
	t_post(&env->a, .wr_id = 1, .opcode = row->value, T_SGE(&env->a.mr, 0, 8),
	       .remote_addr = fg_buf_gpa(&env->b.buf, 0), .rkey = PVR_LOCAL_DMA_LKEY);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(rc_connected, test_key_cannot_be_invalidated)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_LOCAL_INV, .imm = PVR_LOCAL_DMA_LKEY);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_MW_BIND_ERR);
}

/* A process must not reach beyond its own memory. */
TEST(guests, test_user_contexts_have_no_such_key)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .flags = PVR_QP_USER_OPS };
	struct fg_ctx ctx;
	struct fg_end end;

	t_open_user(&end, &ctx, env->g[0], &spec);
	fg_end_connect(&end, &end, NULL);
	post_send(&end, 1, dma_sge(&end, 0, 8));
	await_cqe(&end.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_ok(fg_qp_to_reset(&end.qp));
	fg_end_connect(&end, &end, NULL);
	t_recv_sge(&end, 2, dma_sge(&end, 0, 8));
	t_send(&end, 3, 0, 8);
	await_cqe(&end.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
}

TEST(host, test_key_needs_the_extension)
{
	struct fg_end end;

	fg_end_open(&end, t_guest_with_ext(env, 3, PVR_EXT_ALL & ~PVR_EXT_LOCAL_DMA_LKEY),
		    PVR_QPT_RC);
	fg_end_connect(&end, &end, NULL);
	post_send(&end, 1, dma_sge(&end, 0, 8));
	await_cqe(&end.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}
