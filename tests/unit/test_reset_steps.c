// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What runs between two steps of a reset or of DESTROY_UC: timers, requests of peers,
 * doorbells, statistics, the directory. After the begin of a reset there is no DMA.
 */
#include <stdlib.h>

#include "core/objects.h"
#include "cq_steps.h"
#include "ends.h"
#include "fg_gid.h"
#include "pipe.h"

TEST_INIT
{
	fg_default_uar_mapped = true;
	fg_default_ext = PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE | PVR_EXT_PEER_GONE;
}

#define FILLERS 600u /* queue pairs that a reset destroys first, in two steps or more */

/*
 * An end whose queue pair and CQs are behind the fillers, so that the first step of a
 * reset leaves them, and its peer in another guest.
 */
struct half {
	struct t_env *env;
	struct fg_guest *g; /* of b and the fillers */
	struct fg_ctx ctx;
	struct fg_end a, b;
	uint8_t *before; /* RAM of g at the begin of the reset */
};

static void fill(const struct half *h, struct fg_end *end)
{
	struct fg_qp_spec spec = {
		.pd = &end->pd,
		.scq = &end->scq,
		.rcq = &end->rcq,
		.type = PVR_QPT_RC,
		.sq_wr = 2,
		.rq_wr = 2,
		.sq_sge = 1,
		.rq_sge = 1,
		.kind = FG_LINEAR,
	};
	struct fg_qp qp;

	for (uint32_t i = 0; i < FILLERS; i++)
		expect_ok(fg_qp_create(&spec, &qp));
}

static void half_init(struct half *h, struct t_env *env)
{
	static const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_end first;

	*h = (struct half){ .env = env, .g = env->b.guest };
	expect_ok(fg_ctx_create(h->g, &h->ctx));
	fg_end_open_spec(&first, &h->ctx, &spec, 1);
	fill(h, &first);
	fg_end_open_spec(&h->b, &h->ctx, &spec, FG_END_PAGES);
	fg_end_open(&h->a, env->a.guest, PVR_QPT_RC);
	fg_end_connect(&h->a, &h->b, NULL);
}

static size_t copy_ram(const struct half *h, uint8_t *to)
{
	const struct fg_ram_region *region = h->g->ram.region;
	size_t size = 0;

	for (int i = 0; i < FG_RAM_REGIONS; size += region[i++].size)
		if (to)
			memcpy(to + size, region[i].va, region[i].size);
	return size;
}

/* Executes the first step. */
static void begin_reset(struct half *h)
{
	pvr_adapter_reset(h->g->adapter);
	assert_true(pvr_adapter_busy(h->g->adapter));
	assert_non_null(pvr_qp_get(h->g->adapter, h->b.qp.handle));
	h->before = malloc(copy_ram(h, NULL));
	assert_non_null(h->before);
	copy_ram(h, h->before);
}

/* The worker polls doorbells, runs timers that are due, and executes a step. */
static void one_step(struct half *h)
{
	pvr_engine_poll(h->env->host->engine, 0);
	pvr_engine_run(h->env->host->engine, 0);
	assert_true(pvr_adapter_busy(h->g->adapter));
}

static void expect_no_dma(struct half *h)
{
	size_t size = copy_ram(h, NULL);
	uint8_t *after = malloc(size);

	assert_non_null(after);
	fg_run(h->env->host);
	assert_false(pvr_adapter_busy(h->g->adapter));
	assert_int_equal(h->g->adapter->qps.used + h->g->adapter->cqs.used, 0);
	copy_ram(h, after);
	assert_true(!memcmp(h->before, after, size));
	free(h->before);
	free(after);
}

#define TEST_HALF(name) TEST_OBJECT(rc_connected, struct half, h, half_init, name)

/* ------------------------------------------------------------------------- timers */

TEST_HALF(test_lost_arm_is_not_made_good)
{
	fg_cq_arm(&h->b.rcq);
	fg_cq_ring(&h->b.rcq, PVR_DB_CQ_POLL);
	fg_run(env->host);
	t_recv(&h->b, 1, 0, 0);
	t_post(&h->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND);
	await_sent(&h->a, 1);
	begin_reset(h);
	env->host->now += T_LATE;
	one_step(h);
	expect_no_dma(h);
}

TEST_HALF(test_wait_for_a_receive_ends_without_a_request)
{
	t_post(&h->b, .wr_id = 1, .opcode = PVRDMA_WR_SEND);
	fg_run(env->host);
	t_recv(&h->a, 1, 0, 0);
	begin_reset(h);
	env->host->now += FG_SEC;
	one_step(h);
	expect_no_dma(h);
	expect_no_cqe(&h->a.rcq);
}

TEST_HALF(test_retry_ends_without_a_request)
{
	pvr_adapter_set_bus_master(env->a.guest->adapter, false);
	t_rdma(&h->b, PVRDMA_WR_RDMA_WRITE, 1, 0, &h->a.mr, 0, 64);
	fg_run(env->host);
	begin_reset(h);
	env->host->now += 100 * FG_SEC;
	one_step(h);
	expect_no_dma(h);
}

/* ------------------------------------------------------------- peers and doorbells */

/* The peer is executed between two steps, and fails when its retries are used up. */
TEST_HALF(test_requests_of_a_peer_have_no_effect)
{
	memset(h->a.buf.va, 0x77, PVR_PAGE_SIZE);
	t_recv(&h->b, 1, 0, 64);
	begin_reset(h);
	t_rdma(&h->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &h->b.mr, 0, 64);
	t_rdma(&h->a, PVRDMA_WR_RDMA_READ, 2, 128, &h->b.mr, 0, 64);
	t_send(&h->a, 3, 0, 64);
	one_step(h);
	expect_no_cqe(&h->a.scq);
	expect_no_dma(h);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&h->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* Those of the mapped page are found by the poll, the others are trapped. */
TEST_HALF(test_doorbells_have_no_effect)
{
	uint32_t ring = h->b.qp.handle | PVR_DB_QP_SEND | PVR_DB_QP_RECV;

	t_recv(&h->b, 1, 0, 64);
	begin_reset(h);
	fg_ring_send(&h->b.qp);
	fg_cq_ring(&h->b.rcq, PVR_DB_CQ_ARM);
	pvr_adapter_uar_write(h->g->adapter, PVRDMA_UAR_QP_OFFSET, &ring, sizeof(ring));
	pvr_adapter_uar_write(h->g->adapter, h->ctx.uar * PVR_PAGE_SIZE + PVRDMA_UAR_QP_OFFSET,
			      &ring, sizeof(ring));
	one_step(h);
	expect_no_dma(h);
}

/* -------------------------------------------------------------------- control plane */

TEST_HALF(test_control_plane_reads_and_changes_a_device_in_reset)
{
	struct pvr_adapter *adapter = h->g->adapter;
	struct pvr_adapter_stats stats;

	t_rdma(&h->b, PVRDMA_WR_RDMA_WRITE, 1, 0, &h->a.mr, 0, 64);
	begin_reset(h);
	pvr_adapter_get_stats(adapter, &stats);
	assert_in_range(stats.qps, 1, FILLERS + 3);
	pvr_adapter_set_link(adapter, false);
	one_step(h);
	pvr_adapter_set_link(adapter, true);
	pvr_adapter_set_bus_master(adapter, false);
	pvr_adapter_set_bus_master(adapter, true);
	expect_no_dma(h);
}

/* The cause of the failure goes with the objects, or is found again. */
TEST_HALF(test_failure_does_not_stop_a_reset)
{
	begin_reset(h);
	pvr_adapter_fail(h->g->adapter, "a test");
	one_step(h);
	expect_no_dma(h);
	assert_int_equal(fg_guest_boot(h->g), 0);
}

TEST_HALF(test_second_reset_begins_again)
{
	begin_reset(h);
	pvr_adapter_reset(h->g->adapter);
	fg_run(env->host);
	assert_false(pvr_adapter_busy(h->g->adapter));
	expect_no_dma(h);
}

TEST_HALF(test_removal_finishes_a_reset)
{
	begin_reset(h);
	free(h->before);
	fg_guest_unplug(h->g);
	fg_run(env->host);
}

/* A guest's access, without a daemon that postpones it. */
TEST_HALF(test_register_access_finishes_a_reset)
{
	begin_reset(h);
	fg_reg_read(h->g, PVR_REG_ICR);
	assert_false(pvr_adapter_busy(h->g->adapter));
	expect_no_dma(h);
}

/* ---------------------------------------------------------------------- DESTROY_UC */

/* The device works on: other contexts are not affected, and this one ends. */
TEST_HALF(test_context_is_destroyed_under_traffic)
{
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_DESTROY_UC),
				      .handle = h->ctx.handle };
	uint64_t id = 0;

	fg_cmd_begin(h->g, &req, sizeof(req));
	for (; pvr_adapter_busy(h->g->adapter); id++) {
		t_rdma(&h->a, PVRDMA_WR_RDMA_WRITE, id, 0, &h->b.mr, 0, 64);
		t_rdma(&h->b, PVRDMA_WR_RDMA_READ, id, 0, &h->a.mr, 0, 64);
		t_exchange(env, id, 64);
		env->host->now += T_LATE;
		pvr_engine_poll(env->host->engine, 0);
	}
	expect_ok(fg_cmd_end(h->g, &req, NULL, 0));
	t_exchange(env, id, 64);
	assert_int_equal(h->g->adapter->qps.used, 1);
	assert_int_equal(h->g->adapter->cqs.used, 2);
}

/* Nothing may be answered any more, but the objects go. */
TEST_HALF(test_bus_master_off_does_not_stop_the_end_of_a_context)
{
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_DESTROY_UC),
				      .handle = h->ctx.handle };

	fg_cmd_begin(h->g, &req, sizeof(req));
	memset(h->g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
	pvr_adapter_set_bus_master(h->g->adapter, false);
	fg_run(env->host);
	assert_int_equal(fg_reg_read(h->g, PVR_REG_ERR), EIO);
	assert_int_equal(h->g->adapter->qps.used, 1);
	assert_int_equal(*(uint8_t *)h->g->resp_slot, 0xee);
}
