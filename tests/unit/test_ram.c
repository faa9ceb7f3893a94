// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guest RAM: how it is mapped, and what breaks when it goes away. */
#include "objects.h"

static int map(struct fg_guest *g, uint64_t gpa, uint64_t size)
{
	return pvr_adapter_map_ram(g->adapter, gpa, size, t_spare, true);
}

/* Unplugs it, and fills it with a pattern that the device must leave alone. */
static void unplug_and_mark(struct fg_guest *g)
{
	t_unplug_spare(g);
	memset(t_spare, 0xdd, sizeof(t_spare));
}

static void expect_spare_untouched(void)
{
	for (size_t i = 0; i < sizeof(t_spare); i++)
		assert_int_equal(t_spare[i], 0xdd);
}

/* The @n-th of many regions; each has a neighbor of four pages that is not mapped. */
static uint64_t nth_gpa(uint32_t n)
{
	return T_SPARE_GPA + (uint64_t)n * 8 * PVR_PAGE_SIZE;
}

TEST_GUEST(guest, test_overlapping_ram_regions_are_rejected)
{
	const struct fg_ram_region *region = &g->ram.region[1];

	assert_int_equal(map(g, region->gpa, PVR_PAGE_SIZE), -EINVAL);
	assert_int_equal(map(g, region->gpa + region->size - PVR_PAGE_SIZE, PVR_PAGE_SIZE),
			 -EINVAL);
	assert_int_equal(map(g, region->gpa - PVR_PAGE_SIZE, 2 * PVR_PAGE_SIZE), -EINVAL);
	assert_int_equal(map(g, region->gpa + region->size - 1, 2 * PVR_PAGE_SIZE), -EINVAL);
	assert_int_equal(map(g, region->gpa - PVR_PAGE_SIZE, region->size + 2 * PVR_PAGE_SIZE),
			 -EINVAL);
	assert_int_equal(map(g, 0, UINT64_MAX), -EINVAL);
}

TEST_GUEST(guest, test_neighbouring_ram_regions_are_fine)
{
	const struct fg_ram_region *region = &g->ram.region[1];

	assert_int_equal(map(g, region->gpa + region->size, PVR_PAGE_SIZE), 0);
	assert_int_equal(map(g, region->gpa - PVR_PAGE_SIZE, PVR_PAGE_SIZE), 0);
}

TEST_GUEST(guest, test_wrapping_and_empty_ram_regions_are_rejected)
{
	assert_int_equal(map(g, UINT64_MAX - PVR_PAGE_SIZE + 1, 2 * PVR_PAGE_SIZE), -EINVAL);
	assert_int_equal(map(g, 0x5000000000, UINT64_MAX), -EINVAL);
	assert_int_equal(map(g, 0x5000000000, 0), -EINVAL);
}

TEST_GUEST(unprobed, test_ram_region_at_the_end_of_the_address_space)
{
	const uint64_t gpa = UINT64_MAX - PVR_PAGE_SIZE + 1;

	assert_int_equal(map(g, gpa, PVR_PAGE_SIZE), 0);
	fg_dsr_fill(g);
	memcpy(t_spare, g->dsr, PVR_PAGE_SIZE);
	fg_dsr_write(g, gpa);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_READY);
	pvr_adapter_unmap_ram(g->adapter, gpa, PVR_PAGE_SIZE);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_FAILED);
}

TEST_GUEST(unprobed, test_only_whole_pages_of_a_ram_region_are_used)
{
	assert_int_equal(map(g, T_SPARE_GPA, PVR_PAGE_SIZE + 100), 0);
	fg_dsr_fill(g);
	memcpy(t_spare, g->dsr, PVR_PAGE_SIZE);
	fg_dsr_write(g, T_SPARE_GPA + PVR_PAGE_SIZE);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	fg_dsr_write(g, T_SPARE_GPA);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_READY);
}

TEST_GUEST(unprobed, test_many_ram_regions_can_be_mapped_and_unmapped)
{
	uint32_t n = 0;

	/* As memory hot plug and a machine with many DIMMs do. */
	while (n < 100000 && !map(g, nth_gpa(n), 4 * PVR_PAGE_SIZE))
		n++;
	assert_in_range(n, 16, 99999); /* enough for any machine, but not without end */
	for (uint32_t i = 0; i < n; i += 2)
		pvr_adapter_unmap_ram(g->adapter, nth_gpa(i), 4 * PVR_PAGE_SIZE);
	for (uint32_t i = 0; i < n; i += 2)
		assert_int_equal(map(g, nth_gpa(i), 4 * PVR_PAGE_SIZE), 0);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_unmapping_what_is_not_mapped_is_harmless)
{
	const struct fg_ram_region *region = &g->ram.region[2];
	pvr_adapter_unmap_ram(g->adapter, T_SPARE_GPA, PVR_PAGE_SIZE);
	pvr_adapter_unmap_ram(g->adapter, region->gpa + PVR_PAGE_SIZE, PVR_PAGE_SIZE);
	pvr_adapter_unmap_ram(g->adapter, UINT64_MAX, UINT64_MAX);
	t_commands_work(g);
}

/* An MR with its one page in a piece of its own, which the tests unplug. */
static void spare_mr(struct fg_end *end, struct fg_mr *mr)
{
	struct pvr_cmd_create_mr req;
	struct fg_buf buf;

	t_plug_spare(end->guest);
	fg_buf_init(&buf, &end->guest->ram, 1, FG_SCATTERED);
	fg_buf_table(&buf, 0)[0] = T_SPARE_GPA + PVR_PAGE_SIZE;
	req = fg_mr_request(&end->pd, &buf, 0, PVR_PAGE_SIZE, FG_ACCESS_ALL);
	expect_ok(fg_mr_create_as(&end->pd, &req, mr));
	mr->va = t_spare + PVR_PAGE_SIZE;
}

TEST_GUEST(rc_connected, test_mr_over_unplugged_memory_refuses_local_access)
{
	struct fg_mr mr;

	spare_mr(&env->a, &mr);
	env->a.mr = mr;
	t_ping_pong(env->host, &env->a, &env->b);
	unplug_and_mark(g);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_cqe(&env->a.scq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_ok(fg_mr_destroy(&mr));
}

TEST(rc_connected, test_mr_over_unplugged_memory_refuses_remote_access)
{
	struct fg_mr mr;

	spare_mr(&env->b, &mr);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &mr, 0, 100);
	await_written(&env->a, 1);
	unplug_and_mark(env->g[1]);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &mr, 0, 100);
	await_cqe(&env->a.scq, 2, PVRDMA_WC_REM_ACCESS_ERR);
	expect_spare_untouched();
}

TEST(rc_connected, test_mr_does_not_come_back_with_other_memory)
{
	struct fg_mr mr;

	spare_mr(&env->b, &mr);
	t_unplug_spare(env->g[1]);
	t_plug_spare(env->g[1]);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &mr, 0, 100);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

/* a writes @len bytes from @gpa, by its MR of all bus addresses. */
static void write_from(struct t_env *env, const struct fg_mr *dma, uint64_t gpa, uint32_t len)
{
	const struct pvrdma_sge sge = { gpa, len, dma->lkey };

	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .sge = &sge, .num_sge = 1,
	       T_REMOTE(&env->b.mr, 0));
	fg_run(env->host);
}

TEST_GUEST(rc_connected, test_dma_mr_follows_the_memory)
{
	struct fg_mr dma;

	expect_ok(fg_mr_create_dma(&env->a.pd, &dma));
	t_plug_spare(g);
	fg_fill(t_spare, sizeof(t_spare), 4);
	write_from(env, &dma, T_SPARE_GPA + 1, 9000);
	expect_written(&env->a, 1);
	assert_memory_equal(env->b.mr.va, t_spare + 1, 9000);
	t_unplug_spare(g);
	write_from(env, &dma, T_SPARE_GPA + 1, 9000);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}

/* A CQ, QP or SRQ whose page @page is in the piece that the test unplugs. */
static void move_page(struct fg_guest *g, struct fg_buf *buf, uint32_t page)
{
	t_plug_spare(g);
	memset(t_spare, 0, sizeof(t_spare));
	fg_buf_table(buf, 0)[page] = T_SPARE_GPA + PVR_PAGE_SIZE;
}

TEST_GUEST(rc, test_cq_over_unplugged_memory_fails)
{
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct fg_cq cq;

	expect_ok(fg_cq_create(&g->kernel, 64, &cq));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, cq.handle));
	move_page(g, &cq.buf, 1);
	req = fg_cq_request(&g->kernel, &cq.buf, 64);
	expect_ok(fg_create_cq(g, &req, &resp));
	cq.handle = resp.cq_handle;
	t_qp_replace(&env->a, (struct fg_qp_spec){ .scq = &cq, .rcq = &cq });
	fg_end_connect(&env->a, &env->b, NULL);
	t_recv(&env->b, 1, 0, 8);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	unplug_and_mark(g);
	fg_cq_arm(&cq);
	t_send(&env->a, 3, 0, 8);
	fg_run(env->host);
	assert_true(fg_events_count(g, PVR_EVENT_CQ_ERR, cq.handle) > 0);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_spare_untouched();
	expect_ok(fg_qp_destroy(&env->a.qp));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_CQ, cq.handle));
}

TEST_GUEST(rc, test_qp_over_unplugged_memory_fails)
{
	struct fg_qp_spec spec = end_spec(&env->a);
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	struct pvr_resp_create_qp resp;

	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_QP, env->a.qp.handle));
	req.pdir_dma = env->a.qp.buf.pdir;
	move_page(g, &env->a.qp.buf, 0);
	expect_ok(fg_create_qp(g, &req, &resp));
	env->a.qp.handle = resp.qp_handle;
	env->a.qp.qpn = resp.qpn;
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
	unplug_and_mark(g);
	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	t_send(&env->b, 1, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	assert_int_equal(fg_events_count(g, PVR_EVENT_QP_FATAL, env->a.qp.handle), 1);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_cqe(&env->b.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	/* It stays so, even with new memory at the place. */
	t_plug_spare(g);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_refused(fg_qp_to_init(&env->a.qp, NULL));
	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	fg_run(env->host);
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_QP, env->a.qp.handle));
	expect_spare_untouched();
}

TEST_SRQ(test_srq_over_unplugged_memory_fails)
{
	struct fg_guest *g = env->g[1];
	struct pvr_cmd_create_srq req;
	struct pvr_resp_create_srq resp;

	expect_ok(fg_qp_destroy(&s->b->qp));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_SRQ, s->srq.handle));
	move_page(g, &s->srq.buf, 1);
	req = fg_srq_request(&s->b->pd, &s->srq.buf, SRQ_WR, 4);
	expect_ok(fg_create_srq(g, &req, &resp));
	s->srq.handle = resp.srqn;
	s->b->qp = t_qp_create(s->b, (struct fg_qp_spec){ .srq = &s->srq });
	t_reconnect(env);
	fg_run(env->host);
	unplug_and_mark(g);
	s->srq.ring->prod_tail = 4;
	fg_ring_srq(&s->srq);
	t_send(s->a, 1, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	assert_true(fg_events_count(g, PVR_EVENT_SRQ_ERR, s->srq.handle) > 0);
	assert_int_equal(fg_cq_drain(&s->a->scq), 1);
	expect_ok(fg_qp_destroy(&s->b->qp));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_SRQ, s->srq.handle));
}

TEST(rc_connected, test_peer_continues_when_the_other_guest_loses_all_memory)
{
	struct fg_guest *g = env->g[1];

	t_ping_pong(env->host, &env->a, &env->b);
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		pvr_adapter_unmap_ram(g->adapter, g->ram.region[i].gpa, g->ram.region[i].size);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 1000);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &env->a, NULL);
	t_ping_pong(env->host, &env->a, &env->a);
}

TEST_GUEST(rc_connected, test_dma_mr_does_not_wrap_around_the_address_space)
{
	struct fg_mr dma;

	expect_ok(fg_mr_create_dma(&env->a.pd, &dma));
	assert_int_equal(map(g, 0, PVR_PAGE_SIZE), 0);
	assert_int_equal(map(g, UINT64_MAX - PVR_PAGE_SIZE + 1, PVR_PAGE_SIZE), 0);
	write_from(env, &dma, UINT64_MAX - 9, 20);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}
