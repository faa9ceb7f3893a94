// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Regions that work requests register and invalidate; PVR_EXT_LONG_FAST_REG: long page lists. */
#include "ends.h"
#include "rndv.h"

#define MAX_PAGES FG_END_PAGES
#define STOCK_PAGES 128
#define LONG_PAGES 1024

/* A region of b for the pages of @buf, which a reads and writes. */
struct fast {
	struct t_env *env;
	struct fg_end *a, *b;
	struct fg_buf buf;
	struct fg_mr mr;
};

static void fast_init_pages(struct fast *fast, struct t_env *env, uint32_t pages)
{
	*fast = (struct fast){ .env = env, .a = &env->a, .b = &env->b };
	fg_buf_init(&fast->buf, &fast->b->guest->ram, pages, FG_SCATTERED);
	expect_ok(fast_mr_create(&fast->b->pd, pages, &fast->mr));
	fast->mr.start = FAST_IOVA;
}

static void fast_init(struct fast *fast, struct t_env *env)
{
	fast_init_pages(fast, env, MAX_PAGES);
}

#define TEST_FAST(name) TEST_OBJECT(rc_connected, struct fast, fast, fast_init, name)

T_SETUP_EXT(long_lists, PVR_EXT_LONG_FAST_REG, rc_connected)

T_SETUP_EXT(long_loopback, PVR_EXT_LONG_FAST_REG, rc_loopback)

#define TEST_LONG(fixture, pages, name) \
	TEST_OBJECT(fixture, struct fast, fast, fast_init_pages, name, pages)

static void run(struct fast *fast)
{
	fg_ring_send(&fast->b->qp);
	fg_run(fast->env->host);
}

/* Of the whole buffer, not yet rung. */
static struct pvrdma_sq_wqe_hdr *put_register(struct fast *fast, uint64_t wr_id)
{
	return put_fast_reg(fast->b, wr_id, &fast->buf, fast->mr.rkey);
}

static void registered(struct fast *fast)
{
	put_register(fast, 900);
	run(fast);
	expect_done(&fast->b->scq, 900, PVRDMA_WC_FAST_REG_MR);
}

static void expect_not_registered(struct fast *fast, uint64_t wr_id)
{
	run(fast);
	expect_cqe(&fast->b->scq, wr_id, PVRDMA_WC_MW_BIND_ERR);
	expect_state(fast->b, PVR_QPS_ERR);
}

static void invalidate(struct fast *fast, uint32_t key)
{
	expose_put(fast->b, 6, PVRDMA_WR_LOCAL_INV, key);
	run(fast);
}

static void invalidated(struct fast *fast)
{
	invalidate(fast, fast->mr.rkey);
	expect_done(&fast->b->scq, 6, PVRDMA_WC_LOCAL_INV);
}

/* a writes @len bytes at byte @offset of the region, and they are where they belong. */
static void write_ok(struct fast *fast, uint64_t offset, uint32_t len)
{
	const uint32_t seed = (uint32_t)offset + len;

	fg_fill(fast->a->mr.va, len, seed);
	t_rdma(fast->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &fast->mr, offset, len);
	await_written(fast->a, 1);
	assert_int_equal(fg_mismatch(fast->buf.va + offset, len, seed), len);
}

static void write_refused(struct fast *fast, uint64_t offset, uint32_t len)
{
	t_rdma(fast->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &fast->mr, offset, len);
	await_cqe(&fast->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FAST(test_registered_region_is_written_and_read)
{
	registered(fast);
	write_ok(fast, 4000, 10000);
}

TEST_FAST(test_region_begins_within_its_first_page)
{
	struct pvrdma_sq_wqe_hdr *wqe = put_register(fast, 5);

	wqe->wr.fast_reg.iova_start = FAST_IOVA + 100;
	wqe->wr.fast_reg.length = 5000;
	wqe->wr.fast_reg.page_list_len = 2;
	run(fast);
	expect_done(&fast->b->scq, 5, PVRDMA_WC_FAST_REG_MR);
	write_ok(fast, 100, 5000);
	write_refused(fast, 101, 5000);
}

TEST_FAST(test_new_region_is_not_valid)
{
	write_refused(fast, -FAST_IOVA, 8);
}

TEST_FAST(test_invalidated_region_refuses_access)
{
	registered(fast);
	invalidated(fast);
	write_refused(fast, 0, 8);
}

TEST_FAST(test_key_changes_its_low_byte)
{
	const uint32_t old = fast->mr.rkey;

	registered(fast);
	invalidated(fast);
	fast->mr.rkey = (old & ~0xffu) | ((old + 1) & 0xff);
	registered(fast);
	write_ok(fast, 0, 8);
	fast->mr.rkey = old;
	write_refused(fast, 0, 8);
}

TEST_FAST(test_valid_region_cannot_be_registered_again)
{
	registered(fast);
	put_register(fast, 7);
	expect_not_registered(fast, 7);
}

/* One field of the request is wrong; a fresh pair for each. */
#define EXPECT_BAD_REGISTER(fast, field, value)                     \
	do {                                                        \
		put_register(fast, 7)->wr.fast_reg.field = (value); \
		expect_not_registered(fast, 7);                     \
		t_reconnect((fast)->env);                           \
	} while (0)

TEST_FAST(test_bad_registrations_fail)
{
	EXPECT_BAD_REGISTER(fast, page_list_len, MAX_PAGES + 1);
	EXPECT_BAD_REGISTER(fast, page_list_len, UINT32_MAX);
	EXPECT_BAD_REGISTER(fast, page_list_len, 0);
	EXPECT_BAD_REGISTER(fast, page_shift, 0);
	EXPECT_BAD_REGISTER(fast, page_shift, 63);
	EXPECT_BAD_REGISTER(fast, length, 0);
	EXPECT_BAD_REGISTER(fast, length, MAX_PAGES * PVR_PAGE_SIZE + 1);
	EXPECT_BAD_REGISTER(fast, length, UINT32_MAX);
	EXPECT_BAD_REGISTER(fast, iova_start, UINT64_MAX - 5);
	EXPECT_BAD_REGISTER(fast, iova_start, FAST_IOVA + 1);
	EXPECT_BAD_REGISTER(fast, access_flags, PVR_ACCESS_REMOTE_WRITE);
	EXPECT_BAD_REGISTER(fast, access_flags, PVR_ACCESS_MW_BIND);
	EXPECT_BAD_REGISTER(fast, pl_pdir_dma, 0xdead000);
	EXPECT_BAD_REGISTER(fast, pl_pdir_dma, fast->buf.pdir + 8);
	EXPECT_BAD_REGISTER(fast, rkey, env->b.mr.rkey);
	EXPECT_BAD_REGISTER(fast, rkey, 0xffffff00);
	/* None of them has changed the region. */
	registered(fast);
	write_ok(fast, 0, 8);
}

TEST_FAST(test_bad_invalidations_fail)
{
	const uint32_t bad[] = { fast->mr.rkey ^ 1, env->b.mr.rkey };

	registered(fast);
	for (size_t i = 0; i < COUNT(bad); i++) {
		invalidate(fast, bad[i]);
		expect_cqe(&env->b.scq, 6, PVRDMA_WC_MW_BIND_ERR);
		t_reconnect(env);
	}
	write_ok(fast, 0, 8);
}

static void send_with_inv(struct fast *fast, uint32_t key)
{
	t_recv(fast->b, 2, 0, 100);
	t_post(fast->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND_WITH_INV, T_SGE(&fast->a->mr, 0, 100),
	       .imm = key);
	fg_run(fast->env->host);
}

TEST_FAST(test_send_with_invalidate_invalidates)
{
	struct pvrdma_cqe cqe;

	registered(fast);
	send_with_inv(fast, fast->mr.rkey);
	expect_sent(&env->a, 1);
	cqe = expect_recv(&env->b.rcq, 2, 100);
	assert_true(cqe.wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	assert_memory_equal(&cqe.imm_data, &fast->mr.rkey, sizeof(fast->mr.rkey));
	write_refused(fast, 0, 8);
}

TEST_FAST(test_send_with_invalidate_of_a_wrong_key_is_refused)
{
	registered(fast);
	send_with_inv(fast, env->b.mr.rkey);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
}

/* The limit is that of the region's creation, not that of the device. */
static void list_longer_than_the_region(struct fast *fast)
{
	put_register(fast, 7)->wr.fast_reg.page_list_len = fast->buf.npages + 1;
	expect_not_registered(fast, 7);
	t_reconnect(fast->env);
	registered(fast);
}

TEST_LONG(rc_connected, STOCK_PAGES, test_page_list_of_129_pages_fails)
{
	list_longer_than_the_region(fast);
}

TEST_LONG(long_lists, STOCK_PAGES + 1, test_list_longer_than_the_region_is_refused)
{
	list_longer_than_the_region(fast);
}

TEST(guest, test_user_queue_pairs_have_none_of_it)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_FAST_REG_MR, PVRDMA_WR_LOCAL_INV,
						     PVRDMA_WR_SEND_WITH_INV };
	struct fg_ctx ctx;
	struct fg_end end;

	t_open_user(&end, &ctx, env->g[0], &(struct fg_qp_spec){ .type = PVR_QPT_RC });
	for (size_t i = 0; i < COUNT(ops); i++) {
		expect_ok(fg_qp_to_reset(&end.qp));
		fg_end_connect(&end, &end, NULL);
		t_post(&end, .wr_id = 3, .opcode = ops[i]);
		await_cqe(&end.scq, 3, PVRDMA_WC_LOC_QP_OP_ERR);
	}
	fg_end_close(&end);
	expect_ok(fg_ctx_destroy(&ctx));
}

/* ------------------------------------------------------------------ long lists */

static const struct {
	const char *label;
	uint32_t ext, max;
} limits[] = { { "stock driver", PVR_EXT_ALL & ~PVR_EXT_LONG_FAST_REG, STOCK_PAGES },
	       { "extension", PVR_EXT_LONG_FAST_REG, LONG_PAGES } };

TEST_CASES(host, test_lists_beyond_the_limit_are_refused, limits)
{
	struct fg_guest *guest = t_guest_with_ext(env, 3, row->ext);
	struct fg_mr mr;
	struct fg_pd pd;

	assert_int_equal(guest->dsr->caps.max_fast_reg_page_list_len, row->max);
	expect_ok(fg_pd_create(&guest->kernel, &pd));
	expect_ok(fast_mr_create(&pd, row->max, &mr));
	assert_int_equal(fast_mr_create(&pd, row->max + 1, &mr), EINVAL);
	expect_refused(fast_mr_create(&pd, 0, &mr));
	expect_refused(fast_mr_create(&pd, UINT32_MAX, &mr));
}

TEST_LONG(long_lists, LONG_PAGES, test_every_page_of_a_long_list_is_reached)
{
	registered(fast);
	for (uint64_t page = 0; page < LONG_PAGES; page += 8)
		write_ok(fast, page * PVR_PAGE_SIZE, 8 * PVR_PAGE_SIZE);
}

TEST_LONG(long_lists, LONG_PAGES, test_bad_page_in_the_second_table_is_refused)
{
	fg_buf_table(&fast->buf, 1)[PVR_PDIR_ENTRIES - 1] = FG_MMIO_HOLE;
	put_register(fast, 1);
	expect_not_registered(fast, 1);
}

/* Long lists end a quantum, so that other requests need not wait for all of them. */
TEST_LONG(long_loopback, LONG_PAGES, test_long_lists_do_not_delay_other_requests)
{
	struct pvrdma_cqe cqe;
	struct fg_end other = *fast->b;
	struct fg_mr mr;
	struct fg_buf small;
	uint32_t place = UINT32_MAX;

	other.qp = t_qp_create(fast->b, (struct fg_qp_spec){ .rcq = &fast->b->scq });
	fg_end_connect(&other, &other, NULL);
	fg_buf_init(&small, &fast->b->guest->ram, 1, FG_SCATTERED);
	expect_ok(fast_mr_create(&fast->b->pd, 1, &mr));
	for (uint32_t i = 0; i < 10; i++) {
		put_register(fast, 2 * i);
		expose_put(fast->b, 2 * i + 1, PVRDMA_WR_LOCAL_INV, fast->mr.rkey);
	}
	put_fast_reg(&other, 100, &small, mr.rkey);
	fg_ring_send(&fast->b->qp);
	fg_ring_send(&other.qp);
	fg_run(env->host);
	for (uint32_t i = 0; i < 21; i++) {
		assert_true(fg_cq_poll(&fast->b->scq, &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		if (cqe.wr_id == 100)
			place = i;
	}
	/* A quantum has 256 KiB, and a list of 1024 pages counts for 64. */
	assert_in_range(place, 1, 8);
}
