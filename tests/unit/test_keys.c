// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Checks of keys: PD, range and rights, at the sender, the receiver and remotely. */
#include "common.h"

#define LEN 5000u /* crosses a page */

struct keys_env {
	struct t_env *env;
	struct fg_host *host;
	struct fg_end *a, *b;
	/* The request that is tried: a's entry, b's entry (SEND), or b's range (RDMA). */
	struct pvrdma_sge local, recv;
	uint64_t remote_addr;
	uint32_t rkey;
};

static void keys_init(struct keys_env *k, struct t_env *env)
{
	*k = (struct keys_env){ .env = env, .host = env->host, .a = &env->a, .b = &env->b };
	k->local = fg_sge(&k->a->mr, 100, LEN);
	k->recv = fg_sge(&k->b->mr, 200, LEN);
	k->remote_addr = k->b->mr.start + 300;
	k->rkey = k->b->mr.rkey;
	fg_fill(k->a->buf.va, k->a->buf.size, 1);
	fg_fill(k->b->buf.va, k->b->buf.size, 2);
}

#define TEST_KEYS(name) TEST_OBJECT(rc_connected, struct keys_env, k, keys_init, name)

static void post(struct keys_env *k, enum pvrdma_wr_opcode op)
{
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = op,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &k->local,
			    .num_sge = 1,
			    .remote_addr = k->remote_addr,
			    .rkey = k->rkey };

	if (op == PVRDMA_WR_SEND)
		assert_true(fg_post_recv(&k->b->qp, 2, &k->recv, 1));
	assert_true(fg_post_send(&k->a->qp, &wr));
	fg_run(k->host);
}

/* Neither buffer may have changed. */
static void expect_untouched(struct keys_env *k)
{
	assert_int_equal(fg_mismatch(k->a->buf.va, k->a->buf.size, 1), k->a->buf.size);
	assert_int_equal(fg_mismatch(k->b->buf.va, k->b->buf.size, 2), k->b->buf.size);
}

/* The sender's own fault: the peer hears nothing of it. */
static void expect_local_error(struct keys_env *k, enum pvrdma_wr_opcode op)
{
	post(k, op);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_RTS);
	expect_no_cqe(&k->b->rcq);
	expect_no_event(k->env->g[1]);
	expect_untouched(k);
}

/* The receiver's fault: both ends fail. */
static void expect_receiver_error(struct keys_env *k)
{
	post(k, PVRDMA_WR_SEND);
	expect_cqe(&k->b->rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_REM_OP_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_ERR);
	expect_untouched(k);
}

static void expect_remote_error(struct keys_env *k, enum pvrdma_wr_opcode op)
{
	post(k, op);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_ERR);
	expect_one_event(k->env->g[1], PVR_EVENT_QP_ACCESS_ERR, k->b->qp.handle);
	expect_no_event(k->env->g[0]);
	expect_untouched(k);
}

/* Makes the ends as new, for the next way to be wrong. */
static void reconnect(struct keys_env *k, struct t_env *env)
{
	expect_ok(fg_qp_to_reset(&k->a->qp));
	expect_ok(fg_qp_to_reset(&k->b->qp));
	fg_end_connect(k->a, k->b, NULL);
	fg_run(k->host);
	fg_cq_drain(&k->a->scq);
	fg_cq_drain(&k->b->rcq);
	fg_events_count(k->env->g[0], 0, 0);
	fg_events_count(k->env->g[1], 0, 0);
	keys_init(k, env);
}

TEST_KEYS(test_the_good_requests_are_good)
{
	post(k, PVRDMA_WR_SEND);
	expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
	expect_recv(&k->b->rcq, 2, LEN);
	post(k, PVRDMA_WR_RDMA_WRITE);
	expect_done(&k->a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	post(k, PVRDMA_WR_RDMA_READ);
	expect_done(&k->a->scq, 1, PVRDMA_WC_RDMA_READ);
}

TEST_KEYS(test_send_with_wrong_lkeys)
{
	const uint32_t flip[] = { 1, 0x80, 0x100, 0x10000, 0x1000000, 0x80000000 };

	for (size_t i = 0; i < COUNT(flip); i++) {
		k->local.lkey ^= flip[i];
		expect_local_error(k, PVRDMA_WR_SEND);
		reconnect(k, env);
	}
	k->local.lkey = 0;
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	k->local.lkey = UINT32_MAX;
	expect_local_error(k, PVRDMA_WR_RDMA_WRITE);
	reconnect(k, env);
	k->local.lkey = 0;
	expect_local_error(k, PVRDMA_WR_RDMA_READ);
}

TEST_KEYS(test_send_from_an_mr_of_another_pd)
{
	struct fg_end other;

	fg_end_open(&other, env->g[0], PVR_QPT_RC);
	k->local.lkey = other.mr.lkey;
	expect_local_error(k, PVRDMA_WR_SEND);
}

TEST_KEYS(test_send_from_an_mr_of_another_guest)
{
	struct fg_mr extra[10];

	for (int i = 0; i < 10; i++)
		expect_ok(fg_mr_create(&k->b->pd, &k->b->buf, FG_ACCESS_ALL, &extra[i]));
	k->local.lkey = extra[9].lkey;
	expect_local_error(k, PVRDMA_WR_SEND);
}

TEST_KEYS(test_send_with_a_stale_lkey)
{
	struct fg_mr again;

	expect_ok(fg_mr_destroy(&k->a->mr));
	k->a->mr.length = 0;
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	expect_ok(fg_mr_create(&k->a->pd, &k->a->buf, FG_ACCESS_ALL, &again));
	expect_local_error(k, PVRDMA_WR_SEND);
}

TEST_KEYS(test_send_outside_the_mr)
{
	const struct {
		uint64_t offset;
		uint32_t len;
	} bad[] = {
		{ -1ull, 1 },
		{ -1ull, LEN },
		{ FG_END_PAGES * PVR_PAGE_SIZE, 1 },
		{ FG_END_PAGES * PVR_PAGE_SIZE - 10, 11 },
		{ 0, FG_END_PAGES * PVR_PAGE_SIZE + 1 },
		{ 0, UINT32_MAX },
		{ 1ull << 32, 1 },
		{ 1ull << 63, 1 },
		{ -FG_USER_VA, 1 },
		{ -FG_USER_VA - 1, 2 },
		{ -FG_USER_VA - 1, UINT32_MAX },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		k->local = fg_sge(&k->a->mr, bad[i].offset, bad[i].len);
		expect_local_error(k, PVRDMA_WR_SEND);
		reconnect(k, env);
	}
}

TEST_KEYS(test_send_of_the_last_byte)
{
	k->local = fg_sge(&k->a->mr, k->a->buf.size - 1, 1);
	post(k, PVRDMA_WR_SEND);
	expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
}

TEST_KEYS(test_mr_bounds_are_bytes_not_pages)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&k->a->pd, &k->a->buf, 77, 5000, FG_ACCESS_ALL, &mr));
	k->local = fg_sge(&mr, 0, 5000);
	post(k, PVRDMA_WR_SEND);
	expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
	reconnect(k, env);
	k->local = fg_sge(&mr, -1ull, 1);
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	k->local = fg_sge(&mr, 5000, 1);
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	k->local = fg_sge(&mr, 4999, 2);
	expect_local_error(k, PVRDMA_WR_SEND);
}

TEST_KEYS(test_send_from_read_only_mr_is_fine)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&k->a->pd, &k->a->buf, 0, &mr));
	k->local = fg_sge(&mr, 0, LEN);
	post(k, PVRDMA_WR_SEND);
	expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
}

TEST_KEYS(test_read_into_read_only_mr_fails)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&k->a->pd, &k->a->buf, PVR_ACCESS_REMOTE_READ, &mr));
	k->local = fg_sge(&mr, 0, LEN);
	expect_local_error(k, PVRDMA_WR_RDMA_READ);
}

TEST_KEYS(test_receive_into_read_only_mr_fails)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&k->b->pd, &k->b->buf, PVR_ACCESS_REMOTE_READ, &mr));
	k->recv = fg_sge(&mr, 0, LEN);
	expect_receiver_error(k);
}

TEST_KEYS(test_receive_with_bad_lkeys_and_ranges)
{
	struct fg_end other;
	struct fg_mr mr;

	fg_end_open(&other, env->g[1], PVR_QPT_RC);
	k->recv.lkey ^= 0x100;
	expect_receiver_error(k);
	reconnect(k, env);
	k->recv.lkey = 0;
	expect_receiver_error(k);
	reconnect(k, env);
	k->recv.lkey = other.mr.lkey;
	expect_receiver_error(k);
	reconnect(k, env);
	k->recv.addr = k->b->mr.start - 1;
	expect_receiver_error(k);
	reconnect(k, env);
	k->recv = fg_sge(&k->b->mr, k->b->buf.size - LEN + 1, LEN);
	expect_receiver_error(k);
	reconnect(k, env);
	k->recv = (struct pvrdma_sge){ UINT64_MAX - 10, LEN, k->b->mr.lkey };
	expect_receiver_error(k);
	reconnect(k, env);
	expect_ok(fg_mr_create(&k->b->pd, &k->b->buf, FG_ACCESS_ALL, &mr));
	expect_ok(fg_mr_destroy(&mr));
	k->recv = fg_sge(&mr, 0, LEN);
	expect_receiver_error(k);
}

static void remote_access(struct t_env *env, enum pvrdma_wr_opcode op)
{
	struct keys_env k;
	struct fg_end other;
	struct fg_mr mr;
	const uint64_t size = FG_END_PAGES * PVR_PAGE_SIZE;
	const uint64_t bad[] = { -1ull,	     size,	  size - LEN + 1,  1ull << 32,
				 1ull << 63, -FG_USER_VA, -FG_USER_VA - 1, -FG_USER_VA - LEN };

	keys_init(&k, env);
	fg_end_open(&other, k.env->g[1], PVR_QPT_RC);
	for (size_t i = 0; i < COUNT(bad); i++) {
		k.remote_addr = k.b->mr.start + bad[i];
		expect_remote_error(&k, op);
		reconnect(&k, env);
	}
	for (uint32_t bit = 1; bit; bit <<= 4) {
		k.rkey ^= bit;
		expect_remote_error(&k, op);
		reconnect(&k, env);
	}
	k.rkey = 0;
	expect_remote_error(&k, op);
	reconnect(&k, env);
	k.rkey = other.mr.rkey; /* another PD */
	expect_remote_error(&k, op);
	reconnect(&k, env);
	expect_ok(fg_mr_create(&k.b->pd, &k.b->buf, FG_ACCESS_ALL, &mr));
	expect_ok(fg_mr_destroy(&mr));
	k.rkey = mr.rkey; /* stale */
	expect_remote_error(&k, op);
	reconnect(&k, env);
	expect_ok(fg_mr_create_dma(&k.b->pd, &mr));
	k.rkey = mr.rkey; /* local use only */
	k.remote_addr = fg_buf_gpa(&k.b->buf, 0);
	expect_remote_error(&k, op);
}

TEST(rc_connected, test_write_needs_a_good_rkey_and_range)
{
	remote_access(env, PVRDMA_WR_RDMA_WRITE);
}

TEST(rc_connected, test_read_needs_a_good_rkey_and_range)
{
	remote_access(env, PVRDMA_WR_RDMA_READ);
}

TEST_KEYS(test_remote_rights_of_the_mr)
{
	struct fg_mr no_write, no_read, local;

	expect_ok(fg_mr_create(&k->b->pd, &k->b->buf, PVR_ACCESS_REMOTE_READ, &no_write));
	expect_ok(fg_mr_create(&k->b->pd, &k->b->buf,
			       PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE, &no_read));
	expect_ok(fg_mr_create(&k->b->pd, &k->b->buf, PVR_ACCESS_LOCAL_WRITE, &local));
	k->rkey = no_write.rkey;
	expect_remote_error(k, PVRDMA_WR_RDMA_WRITE);
	reconnect(k, env);
	k->rkey = no_read.rkey;
	expect_remote_error(k, PVRDMA_WR_RDMA_READ);
	reconnect(k, env);
	k->rkey = local.rkey;
	expect_remote_error(k, PVRDMA_WR_RDMA_READ);
	reconnect(k, env);
	k->rkey = local.rkey;
	expect_remote_error(k, PVRDMA_WR_RDMA_WRITE);
}

/* The QP's own permission comes first. */
static void qp_right(struct t_env *env, enum pvrdma_wr_opcode op, uint32_t missing)
{
	struct keys_env k;
	struct fg_conn conn = fg_conn_default;

	keys_init(&k, env);
	conn.access &= ~missing;
	fg_end_connect(k.a, k.b, &conn);
	post(&k, op);
	expect_cqe(&k.a->scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_state(k.b, PVR_QPS_ERR);
	expect_one_event(k.env->g[1], PVR_EVENT_QP_REQ_ERR, k.b->qp.handle);
	expect_untouched(&k);
}

TEST(rc, test_write_needs_permission_of_the_qp)
{
	qp_right(env, PVRDMA_WR_RDMA_WRITE, PVR_ACCESS_REMOTE_WRITE);
}

TEST(rc, test_write_with_imm_needs_permission_of_the_qp)
{
	t_recv(&env->b, 2, 0, 0);
	qp_right(env, PVRDMA_WR_RDMA_WRITE_WITH_IMM, PVR_ACCESS_REMOTE_WRITE);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc, test_read_needs_permission_of_the_qp)
{
	qp_right(env, PVRDMA_WR_RDMA_READ, PVR_ACCESS_REMOTE_READ);
}

TEST_KEYS(test_pages_are_translated_at_registration)
{
	memset(fg_buf_table(&k->b->buf, 0), 0xff, PVR_PAGE_SIZE);
	memset(fg_buf_dir(&k->b->buf), 0xff, PVR_PAGE_SIZE);
	post(k, PVRDMA_WR_RDMA_WRITE);
	expect_done(&k->a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_memory_equal(k->b->buf.va + 300, k->a->buf.va + 100, LEN);
}

TEST_KEYS(test_dma_mr_reaches_all_of_ram_and_nothing_else)
{
	struct fg_mr dma;
	const struct fg_ram_region *region;

	expect_ok(fg_mr_create_dma(&k->a->pd, &dma));
	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		region = &env->g[0]->ram.region[i];
		k->local = (struct pvrdma_sge){ region->gpa + region->size - 10, 10, dma.lkey };
		post(k, PVRDMA_WR_SEND);
		expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
		reconnect(k, env);
		k->local = (struct pvrdma_sge){ region->gpa + region->size - 10, 11, dma.lkey };
		expect_local_error(k, PVRDMA_WR_SEND);
		reconnect(k, env);
		k->local = (struct pvrdma_sge){ region->gpa - 1, 2, dma.lkey };
		expect_local_error(k, PVRDMA_WR_SEND);
		reconnect(k, env);
	}
	k->local = (struct pvrdma_sge){ FG_MMIO_HOLE, 10, dma.lkey };
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	k->local = (struct pvrdma_sge){ FG_BAR2_GPA, 10, dma.lkey };
	expect_local_error(k, PVRDMA_WR_SEND);
	reconnect(k, env);
	k->local = (struct pvrdma_sge){ UINT64_MAX, 10, dma.lkey };
	expect_local_error(k, PVRDMA_WR_SEND);
}

TEST_KEYS(test_dma_mr_respects_read_only_memory)
{
	static uint8_t rom[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	struct fg_mr dma;

	fg_fill(rom, sizeof(rom), 5);
	expect_ok((uint32_t)pvr_adapter_map_ram(env->g[0]->adapter, 0xf0000000, sizeof(rom), rom,
						false));
	expect_ok(fg_mr_create_dma(&k->a->pd, &dma));
	k->local = (struct pvrdma_sge){ 0xf0000000, 4096, dma.lkey };
	post(k, PVRDMA_WR_SEND);
	expect_done(&k->a->scq, 1, PVRDMA_WC_SEND);
	expect_recv(&k->b->rcq, 2, 4096);
	assert_int_equal(fg_mismatch(k->b->mr.va + 200, 4096, 5), 4096);
	reconnect(k, env);
	k->local = (struct pvrdma_sge){ 0xf0000000, 4096, dma.lkey };
	expect_local_error(k, PVRDMA_WR_RDMA_READ);
	assert_int_equal(fg_mismatch(rom, sizeof(rom), 5), sizeof(rom));
}
