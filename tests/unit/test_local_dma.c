// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_LOCAL_DMA_LKEY: one lkey for all of RAM, for the guest's kernel alone. */
#include "common.h"

TEST_INIT
{
	fg_default_ext = PVR_EXT_LOCAL_DMA_LKEY | PVR_EXT_USER_OPS;
}

static struct pvrdma_sge dma_sge(const struct fg_end *end, uint64_t offset, uint32_t len)
{
	return (struct pvrdma_sge){ fg_buf_gpa(&end->buf, offset), len, PVR_LOCAL_DMA_LKEY };
}

static void post_send(struct fg_end *end, uint64_t wr_id, const struct pvrdma_sge *sge)
{
	struct fg_wr wr = { .wr_id = wr_id,
			    .opcode = PVRDMA_WR_SEND,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = sge,
			    .num_sge = 1 };

	assert_true(fg_post_send(&end->qp, &wr));
}

TEST(rc_connected, test_kernel_sends_and_receives_by_bus_address)
{
	struct pvrdma_sge from = dma_sge(&env->a, 100, 3000), to = dma_sge(&env->b, 7, 3000);

	fg_fill(env->a.buf.va + 100, 3000, 5);
	assert_true(fg_post_recv(&env->b.qp, 1, &to, 1));
	post_send(&env->a, 2, &from);
	fg_run(env->host);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 1, 3000);
	assert_int_equal(fg_mismatch(env->b.buf.va + 7, 3000, 5), 3000);
}

TEST(rc_connected, test_kernel_reads_into_bus_addresses)
{
	struct pvrdma_sge to = dma_sge(&env->a, 0, 2000);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_RDMA_READ,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &to,
			    .num_sge = 1,
			    .remote_addr = env->b.mr.start,
			    .rkey = env->b.mr.rkey };

	fg_fill(env->b.buf.va, 2000, 6);
	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.buf.va, 2000, 6), 2000);
}

TEST(rc_connected, test_kernel_srq_takes_bus_addresses)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvrdma_sge sge;
	struct fg_srq srq;

	expect_ok(fg_srq_create(&env->b.pd, 64, 1, &srq));
	expect_ok(fg_qp_destroy(&env->b.qp));
	spec.pd = &env->b.pd;
	spec.scq = &env->b.scq;
	spec.rcq = &env->b.rcq;
	spec.srq = &srq;
	expect_ok(fg_qp_create(&spec, &env->b.qp));
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->b, NULL);
	sge = dma_sge(&env->b, 50, 500);
	assert_true(fg_post_srq_recv(&srq, 1, &sge, 1));
	fg_fill(env->a.buf.va, 500, 7);
	t_send(&env->a, 2, 0, 500);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 1, 500);
	assert_int_equal(fg_mismatch(env->b.buf.va + 50, 500, 7), 500);
}

TEST(rc_connected, test_addresses_that_are_no_ram_are_refused)
{
	static const uint64_t bad[] = { 0, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvrdma_sge sge = { bad[i], 8, PVR_LOCAL_DMA_LKEY };

		post_send(&env->a, 2, &sge);
		fg_run(env->host);
		expect_cqe(&env->a.scq, 2, PVRDMA_WC_LOC_PROT_ERR);
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->b.qp));
		fg_end_connect(&env->a, &env->b, NULL);
	}
}

TEST(rc_connected, test_read_only_memory_is_not_written)
{
	static uint8_t rom[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	struct pvrdma_sge sge = { 0xf0000000, 8, PVR_LOCAL_DMA_LKEY };

	expect_ok((uint32_t)pvr_adapter_map_ram(env->g[1]->adapter, sge.addr, sizeof(rom), rom,
						false));
	assert_true(fg_post_recv(&env->b.qp, 1, &sge, 1));
	env->a.mr.va[0] = 1;
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_OP_ERR);
	assert_int_equal(rom[0], 0);
}

TEST(rc_connected, test_key_is_no_rkey)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ,
						     PVRDMA_WR_ATOMIC_FETCH_AND_ADD };

	for (size_t i = 0; i < COUNT(ops); i++) {
		struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 8);
		struct fg_wr wr = { .wr_id = 1,
				    .opcode = ops[i],
				    .flags = PVR_SEND_SIGNALED,
				    .sge = &sge,
				    .num_sge = 1,
				    .remote_addr = fg_buf_gpa(&env->b.buf, 0),
				    .rkey = PVR_LOCAL_DMA_LKEY };

		assert_true(fg_post_send(&env->a.qp, &wr));
		fg_run(env->host);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->b.qp));
		fg_end_connect(&env->a, &env->b, NULL);
	}
}

TEST(rc_connected, test_key_cannot_be_invalidated)
{
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_LOCAL_INV,
			    .flags = PVR_SEND_SIGNALED,
			    .imm = PVR_LOCAL_DMA_LKEY };

	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_MW_BIND_ERR);
}

/* A process must not reach beyond its own memory. */
TEST(guests, test_user_contexts_have_no_such_key)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .flags = PVR_QP_USER_OPS };
	struct pvrdma_sge sge;
	struct fg_ctx ctx;
	struct fg_end end;

	expect_ok(fg_ctx_create(env->g[0], &ctx));
	fg_end_open_spec(&end, &ctx, &spec, 4);
	fg_end_connect(&end, &end, NULL);
	sge = dma_sge(&end, 0, 8);
	post_send(&end, 1, &sge);
	fg_run(env->host);
	expect_cqe(&end.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_ok(fg_qp_to_reset(&end.qp));
	fg_end_connect(&end, &end, NULL);
	assert_true(fg_post_recv(&end.qp, 2, &sge, 1));
	t_send(&end, 3, 0, 8);
	fg_run(env->host);
	expect_cqe(&end.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
}

TEST(guests, test_key_needs_the_extension)
{
	struct fg_guest_config config;
	struct pvrdma_sge sge;
	uint8_t gid[16];
	struct fg_end end;

	fg_guest_config_init(&config, 3);
	config.ext = PVR_EXT_ALL & ~PVR_EXT_LOCAL_DMA_LKEY;
	env->g[2] = fg_guest_create(env->host, &config);
	expect_ok(fg_guest_boot(env->g[2]));
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(env->g[2], 0, gid));
	fg_end_open(&end, env->g[2], PVR_QPT_RC);
	fg_end_connect(&end, &end, NULL);
	sge = dma_sge(&end, 0, 8);
	post_send(&end, 1, &sge);
	fg_run(env->host);
	expect_cqe(&end.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}
