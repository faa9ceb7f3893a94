// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Regions that kernel consumers register and invalidate by work requests. */
#include "common.h"

#define MAX_PAGES 16
#define IOVA 0x10000000ull

struct fast {
	struct t_env *env;
	struct fg_end *end; /* whose region it is */
	uint32_t handle, key;
};

static uint32_t fast_create(struct fg_end *end, uint32_t pages, struct pvr_resp_create_mr *resp)
{
	struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = end->pd.handle,
		.flags = PVR_MR_FLAG_FRMR,
		.nchunks = pages,
	};

	return fg_create_mr(end->guest, &req, resp);
}

static void reconnect(struct fg_end *a, struct fg_end *b)
{
	expect_ok(fg_qp_to_reset(&a->qp));
	if (a != b)
		expect_ok(fg_qp_to_reset(&b->qp));
	fg_end_connect(a, b, NULL);
}

/* A region of b, which a reads and writes. */
static void fast_init(struct fast *fast, struct t_env *env)
{
	struct pvr_resp_create_mr resp;

	fast->env = env;
	fast->end = &fast->env->b;
	expect_ok(fast_create(fast->end, MAX_PAGES, &resp));
	fast->handle = resp.mr_handle;
	fast->key = resp.rkey;
}

#define TEST_FAST(name) TEST_OBJECT(rc_connected, struct fast, fast, fast_init, name)

static struct pvrdma_sq_wqe_hdr *put(struct fg_end *end, uint64_t wr_id, enum pvrdma_wr_opcode op)
{
	struct fg_wr wr = { .wr_id = wr_id, .opcode = op, .flags = PVR_SEND_SIGNALED };
	uint32_t index = end->qp.sq_tail & (end->qp.sq_wr - 1);

	assert_true(fg_put_send(&end->qp, &wr));
	return fg_sq_wqe(&end->qp, index);
}

static void run(struct fast *fast, struct fg_end *end)
{
	fg_ring_send(&end->qp);
	fg_run(fast->env->host);
}

/* FAST_REG_MR of the whole buffer, not yet rung. */
static struct pvrdma_sq_wqe_hdr *put_register(struct fast *fast, uint64_t wr_id)
{
	struct pvrdma_sq_wqe_hdr *wqe = put(fast->end, wr_id, PVRDMA_WR_FAST_REG_MR);

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.fast_reg.iova_start = IOVA;
	wqe->wr.fast_reg.pl_pdir_dma = fast->end->buf.pdir;
	wqe->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	wqe->wr.fast_reg.page_list_len = MAX_PAGES;
	wqe->wr.fast_reg.length = MAX_PAGES * PVR_PAGE_SIZE;
	wqe->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	wqe->wr.fast_reg.rkey = fast->key;
	return wqe;
}

static void registered(struct fast *fast)
{
	put_register(fast, 900);
	run(fast, fast->end);
	expect_done(&fast->end->scq, 900, PVRDMA_WC_FAST_REG_MR);
}

static void invalidate(struct fast *fast, uint64_t wr_id, uint32_t key)
{
	put(fast->end, wr_id, PVRDMA_WR_LOCAL_INV)->ex.invalidate_rkey = key;
	run(fast, fast->end);
}

/* a writes @len bytes of its buffer through the region's key. */
static void write_through(struct fast *fast, uint64_t addr, uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&fast->env->a.mr, 0, len);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_RDMA_WRITE,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = addr,
			    .rkey = fast->key };

	assert_true(fg_post_send(&fast->env->a.qp, &wr));
	fg_run(fast->env->host);
}

TEST_FAST(test_registered_region_is_written_and_read)
{
	registered(fast);
	fg_fill(env->a.mr.va, 10000, 7);
	write_through(fast, IOVA + 4000, 10000);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(fg_mismatch(fast->end->buf.va + 4000, 10000, 7), 10000);
}

TEST_FAST(test_region_begins_within_its_first_page)
{
	struct pvrdma_sq_wqe_hdr *wqe;

	wqe = put_register(fast, 5);
	wqe->wr.fast_reg.iova_start = IOVA + 100;
	wqe->wr.fast_reg.length = 5000;
	wqe->wr.fast_reg.page_list_len = 2;
	run(fast, fast->end);
	expect_done(&fast->end->scq, 5, PVRDMA_WC_FAST_REG_MR);
	fg_fill(env->a.mr.va, 5000, 8);
	write_through(fast, IOVA + 100, 5000);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(fg_mismatch(fast->end->buf.va + 100, 5000, 8), 5000);
	write_through(fast, IOVA + 101, 5000);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_new_region_is_not_valid)
{
	write_through(fast, 0, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_invalidated_region_refuses_access)
{
	registered(fast);
	invalidate(fast, 6, fast->key);
	expect_done(&fast->end->scq, 6, PVRDMA_WC_LOCAL_INV);
	write_through(fast, IOVA, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_key_changes_its_low_byte)
{
	uint32_t old;

	registered(fast);
	invalidate(fast, 6, fast->key);
	expect_done(&fast->end->scq, 6, PVRDMA_WC_LOCAL_INV);
	old = fast->key;
	fast->key = (old & ~0xffu) | ((old + 1) & 0xff);
	registered(fast);
	write_through(fast, IOVA, 8);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	fast->key = old;
	write_through(fast, IOVA, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_valid_region_cannot_be_registered_again)
{
	registered(fast);
	put_register(fast, 7);
	run(fast, fast->end);
	expect_cqe(&fast->end->scq, 7, PVRDMA_WC_MW_BIND_ERR);
	expect_state(fast->end, PVR_QPS_ERR);
}

/* One field of the request is wrong; a fresh pair for each. */
#define EXPECT_BAD_REGISTER(env, field, value)                                             \
	do {                                                                               \
		struct fast bad;                                                           \
                                                                                           \
		fast_init(&bad, env);                                                      \
		reconnect(&bad.env->a, &bad.env->b);                                       \
		put_register(&bad, 7)->wr.fast_reg.field = (value);                        \
		run(&bad, bad.end);                                                        \
		expect_cqe(&bad.end->scq, 7, PVRDMA_WC_MW_BIND_ERR);                       \
		expect_ok(fg_cmd_destroy(bad.end->guest, PVR_CMD_DESTROY_MR, bad.handle)); \
	} while (0)

TEST(rc_connected, test_bad_registrations_fail)
{
	EXPECT_BAD_REGISTER(env, page_list_len, MAX_PAGES + 1);
	EXPECT_BAD_REGISTER(env, page_list_len, UINT32_MAX);
	EXPECT_BAD_REGISTER(env, page_list_len, 0);
	EXPECT_BAD_REGISTER(env, page_shift, 0);
	EXPECT_BAD_REGISTER(env, page_shift, 63);
	EXPECT_BAD_REGISTER(env, length, 0);
	EXPECT_BAD_REGISTER(env, length, MAX_PAGES * PVR_PAGE_SIZE + 1);
	EXPECT_BAD_REGISTER(env, length, UINT32_MAX);
	EXPECT_BAD_REGISTER(env, iova_start, UINT64_MAX - 5);
	EXPECT_BAD_REGISTER(env, iova_start, IOVA + 1);
	EXPECT_BAD_REGISTER(env, access_flags, PVR_ACCESS_REMOTE_WRITE);
	EXPECT_BAD_REGISTER(env, access_flags, PVR_ACCESS_MW_BIND);
	EXPECT_BAD_REGISTER(env, pl_pdir_dma, 0xdead000);
	EXPECT_BAD_REGISTER(env, pl_pdir_dma, env->b.buf.pdir + 8);
	EXPECT_BAD_REGISTER(env, rkey, env->b.mr.rkey);
	EXPECT_BAD_REGISTER(env, rkey, 0xffffff00);
}

TEST_FAST(test_bad_invalidations_fail)
{
	registered(fast);
	invalidate(fast, 6, fast->key ^ 1);
	expect_cqe(&fast->end->scq, 6, PVRDMA_WC_MW_BIND_ERR);
	reconnect(&env->a, &env->b);
	invalidate(fast, 6, fast->end->mr.rkey);
	expect_cqe(&fast->end->scq, 6, PVRDMA_WC_MW_BIND_ERR);
	reconnect(&env->a, &env->b);
	write_through(fast, IOVA, 8);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
}

static void send_with_inv(struct fast *fast, uint32_t key, uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&fast->env->a.mr, 0, len);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_SEND_WITH_INV,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .imm = key };

	t_recv(&fast->env->b, 2, 0, len);
	assert_true(fg_post_send(&fast->env->a.qp, &wr));
	fg_run(fast->env->host);
}

TEST_FAST(test_send_with_invalidate_invalidates)
{
	struct pvrdma_cqe cqe;

	registered(fast);
	send_with_inv(fast, fast->key, 100);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	cqe = expect_recv(&env->b.rcq, 2, 100);
	assert_true(cqe.wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	assert_memory_equal(&cqe.imm_data, &fast->key, sizeof(fast->key));
	write_through(fast, IOVA, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_send_with_invalidate_of_a_wrong_key_is_refused)
{
	registered(fast);
	send_with_inv(fast, env->b.mr.rkey, 100);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
}

TEST(rc, test_page_counts_beyond_the_limit_are_rejected)
{
	struct pvr_resp_create_mr resp;
	uint32_t max = env->g[0]->dsr->caps.max_fast_reg_page_list_len;

	expect_ok(fast_create(&env->a, max, &resp));
	expect_refused(fast_create(&env->a, max + 1, &resp));
	expect_refused(fast_create(&env->a, 0, &resp));
	expect_refused(fast_create(&env->a, UINT32_MAX, &resp));
}

/* A region for as many pages as there can be takes no more either. */
TEST_FAST(test_page_list_of_129_pages_fails)
{
	struct pvr_resp_create_mr resp;
	struct pvrdma_sq_wqe_hdr *wqe;
	struct fg_buf buf;

	fg_buf_init(&buf, &fast->end->guest->ram, 129, FG_SCATTERED);
	expect_ok(fast_create(fast->end, 128, &resp));
	fast->key = resp.rkey;
	wqe = put_register(fast, 7);
	wqe->wr.fast_reg.pl_pdir_dma = buf.pdir;
	wqe->wr.fast_reg.page_list_len = 129;
	run(fast, fast->end);
	expect_cqe(&fast->end->scq, 7, PVRDMA_WC_MW_BIND_ERR);
	reconnect(&env->a, &env->b);
	wqe = put_register(fast, 8);
	wqe->wr.fast_reg.pl_pdir_dma = buf.pdir;
	wqe->wr.fast_reg.page_list_len = 128;
	run(fast, fast->end);
	expect_done(&fast->end->scq, 8, PVRDMA_WC_FAST_REG_MR);
}

TEST(guest, test_user_queue_pairs_have_none_of_it)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_FAST_REG_MR, PVRDMA_WR_LOCAL_INV,
						     PVRDMA_WR_SEND_WITH_INV };
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_ctx ctx;
	struct fg_end end;

	expect_ok(fg_ctx_create(env->g[0], &ctx));
	fg_end_open_spec(&end, &ctx, &spec, 4);
	for (size_t i = 0; i < COUNT(ops); i++) {
		reconnect(&end, &end);
		put(&end, 3, ops[i]);
		fg_ring_send(&end.qp);
		fg_run(env->host);
		expect_cqe(&end.scq, 3, PVRDMA_WC_LOC_QP_OP_ERR);
	}
	fg_end_close(&end);
	expect_ok(fg_ctx_destroy(&ctx));
}
