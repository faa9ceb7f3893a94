// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_LONG_FAST_REG: page lists of more than the 128 pages of stock drivers. */
#include "common.h"

#define STOCK_PAGES 128
#define LONG_PAGES 1024
#define IOVA 0x10000000ull

TEST_INIT
{
	fg_default_ext = PVR_EXT_LONG_FAST_REG;
}

/* A region of b, which a writes. */
struct fast {
	struct t_env *env;
	struct fg_end *end;
	struct fg_buf buf;
	uint32_t key;
};

static uint32_t fast_create(const struct fg_pd *pd, uint32_t pages, uint32_t *key)
{
	struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = pd->handle,
		.flags = PVR_MR_FLAG_FRMR,
		.nchunks = pages,
	};
	struct pvr_resp_create_mr resp;
	uint32_t err = fg_create_mr(pd->ctx->guest, &req, &resp);

	*key = err ? 0 : resp.rkey;
	return err;
}

static void fast_init(struct fast *fast, struct t_env *env, uint32_t pages)
{
	fast->env = env;
	fast->end = &fast->env->b;
	fg_buf_init(&fast->buf, &fast->end->guest->ram, pages, FG_SCATTERED);
	expect_ok(fast_create(&fast->end->pd, pages, &fast->key));
}

#define TEST_FAST(fixture, pages, name) \
	TEST_OBJECT(fixture, struct fast, fast, fast_init, name, pages)

static struct pvrdma_sq_wqe_hdr *put(struct fg_qp *qp, uint64_t wr_id, enum pvrdma_wr_opcode op,
				     uint32_t key)
{
	struct fg_wr wr = { .wr_id = wr_id, .opcode = op, .flags = PVR_SEND_SIGNALED, .imm = key };
	uint32_t index = qp->sq_tail;

	assert_true(fg_put_send(qp, &wr));
	return fg_sq_wqe(qp, index);
}

/* FAST_REG_MR of all of @buf, not yet rung. */
static struct pvrdma_sq_wqe_hdr *put_register(struct fg_qp *qp, uint64_t wr_id,
					      const struct fg_buf *buf, uint32_t key)
{
	struct pvrdma_sq_wqe_hdr *wqe = put(qp, wr_id, PVRDMA_WR_FAST_REG_MR, 0);

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.fast_reg.iova_start = IOVA;
	wqe->wr.fast_reg.pl_pdir_dma = buf->pdir;
	wqe->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	wqe->wr.fast_reg.page_list_len = buf->npages;
	wqe->wr.fast_reg.length = (uint32_t)buf->size;
	wqe->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	wqe->wr.fast_reg.rkey = key;
	return wqe;
}

static void run(struct fast *fast, struct fg_qp *qp)
{
	fg_ring_send(qp);
	fg_run(fast->env->host);
}

TEST(guest, test_caps_tell_the_longest_list)
{
	struct fg_guest_config config;

	assert_int_equal(env->g[0]->dsr->caps.max_fast_reg_page_list_len, LONG_PAGES);
	fg_guest_config_init(&config, 3);
	config.ext = PVR_EXT_ALL & ~PVR_EXT_LONG_FAST_REG;
	env->g[2] = fg_guest_create(env->host, &config);
	expect_ok(fg_guest_boot(env->g[2]));
	assert_int_equal(env->g[2]->dsr->caps.max_fast_reg_page_list_len, STOCK_PAGES);
}

TEST(guest, test_lists_beyond_the_limit_are_refused)
{
	struct fg_guest_config config;
	struct fg_pd pd;
	uint32_t key;

	expect_ok(fg_pd_create(&env->g[0]->kernel, &pd));
	expect_ok(fast_create(&pd, LONG_PAGES, &key));
	assert_int_equal(fast_create(&pd, LONG_PAGES + 1, &key), EINVAL);
	fg_guest_config_init(&config, 3);
	config.ext = PVR_EXT_ALL & ~PVR_EXT_LONG_FAST_REG;
	env->g[2] = fg_guest_create(env->host, &config);
	expect_ok(fg_guest_boot(env->g[2]));
	expect_ok(fg_pd_create(&env->g[2]->kernel, &pd));
	expect_ok(fast_create(&pd, STOCK_PAGES, &key));
	assert_int_equal(fast_create(&pd, STOCK_PAGES + 1, &key), EINVAL);
}

TEST_FAST(rc_connected, LONG_PAGES, test_every_page_of_a_long_list_is_reached)
{
	struct fg_end *a;

	a = &env->a;
	put_register(&fast->end->qp, 1, &fast->buf, fast->key);
	run(fast, &fast->end->qp);
	expect_done(&fast->end->scq, 1, PVRDMA_WC_FAST_REG_MR);
	for (uint32_t page = 0; page < LONG_PAGES; page += 8) {
		const struct fg_mr host = { .start = IOVA, .rkey = fast->key };
		const uint32_t len = 8 * PVR_PAGE_SIZE;

		fg_fill(a->mr.va, len, page);
		t_rdma(a, PVRDMA_WR_RDMA_WRITE, 2, 0, &host, (uint64_t)page * PVR_PAGE_SIZE, len);
		fg_run(env->host);
		expect_done(&a->scq, 2, PVRDMA_WC_RDMA_WRITE);
		assert_int_equal(
			fg_mismatch(fast->buf.va + (size_t)page * PVR_PAGE_SIZE, len, page), len);
	}
}

TEST_FAST(rc_connected, LONG_PAGES, test_bad_page_in_the_second_table_is_refused)
{
	fg_buf_table(&fast->buf, 1)[PVR_PDIR_ENTRIES - 1] = FG_MMIO_HOLE;
	put_register(&fast->end->qp, 1, &fast->buf, fast->key);
	run(fast, &fast->end->qp);
	expect_cqe(&fast->end->scq, 1, PVRDMA_WC_MW_BIND_ERR);
}

/* The limit is that of the region's creation, not that of the device. */
TEST_FAST(rc_connected, STOCK_PAGES + 1, test_list_longer_than_the_region_is_refused)
{
	put_register(&fast->end->qp, 1, &fast->buf, fast->key)->wr.fast_reg.page_list_len =
		STOCK_PAGES + 2;
	run(fast, &fast->end->qp);
	expect_cqe(&fast->end->scq, 1, PVRDMA_WC_MW_BIND_ERR);
}

/* Long lists end a quantum, so that other requests need not wait for all of them. */
TEST_FAST(rc_loopback, LONG_PAGES, test_long_lists_do_not_delay_other_requests)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct pvrdma_cqe cqe;
	struct fg_end other;
	struct fg_buf small;
	uint32_t key, place = UINT32_MAX;

	fg_end_open(&other, env->a.guest, PVR_QPT_RC);
	spec.pd = &fast->end->pd;
	spec.scq = spec.rcq = &fast->end->scq;
	expect_ok(fg_qp_destroy(&other.qp));
	expect_ok(fg_qp_create(&spec, &other.qp));
	fg_end_connect(&other, &other, NULL);
	fg_buf_init(&small, &fast->end->guest->ram, 1, FG_SCATTERED);
	expect_ok(fast_create(&fast->end->pd, 1, &key));
	for (uint32_t i = 0; i < 10; i++) {
		put_register(&fast->end->qp, 2 * i, &fast->buf, fast->key);
		put(&fast->end->qp, 2 * i + 1, PVRDMA_WR_LOCAL_INV, fast->key);
	}
	put_register(&other.qp, 100, &small, key);
	fg_ring_send(&fast->end->qp);
	run(fast, &other.qp);
	for (uint32_t i = 0; i < 21; i++) {
		assert_true(fg_cq_poll(&fast->end->scq, &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		if (cqe.wr_id == 100)
			place = i;
	}
	/* A turn has 256 KiB, and a list of 1024 pages counts for 64. */
	assert_in_range(place, 1, 8);
}
