// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tests of fast registration, and of ways to take a registration back. */
#include <linux/random.h>
#include <linux/scatterlist.h>

#include "ktest.h"

#define REMOTE (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

int kt_local_dma_lkey(struct kt_pair *pair)
{
	struct ib_device *ibdev = pair->dev->ibdev;

	KT_CHECK(ibdev->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY);
	KT_CHECK(pair->dev->pd->local_dma_lkey == ibdev->local_dma_lkey);
	KT_CHECK(!pair->dev->pd->__internal_mr);
	return 0;
}

/* Register the first @pages of an end's memory by a work request. */
static int reg(struct kt_pair *pair, struct kt_end *end, int pages, int access)
{
	struct ib_reg_wr wr = { .wr = { .opcode = IB_WR_REG_MR }, .access = access };
	int n;

	if (!end->mr)
		end->mr = ib_alloc_mr(pair->dev->pd, IB_MR_TYPE_MEM_REG, pages);
	KT_CHECK(!IS_ERR(end->mr));
	n = ib_map_mr_sg(end->mr, end->mem.sgt.sgl, pages, NULL, PAGE_SIZE);
	KT_CHECK(n == pages);
	wr.mr = end->mr;
	wr.key = end->mr->rkey;
	KT_CHECK(kt_run(pair, end, &wr.wr) == IB_WC_SUCCESS);
	return 0;
}

static int reg_both(struct kt_pair *pair, int pages)
{
	int err = reg(pair, &pair->end[0], pages, IB_ACCESS_LOCAL_WRITE);

	return err ?: reg(pair, &pair->end[1], pages, REMOTE);
}

/* RDMA between the registered memories. Return: the status or -errno. */
static int rdma(struct kt_pair *pair, enum ib_wr_opcode opcode, u32 rkey, int pages)
{
	struct kt_end *local = &pair->end[0], *remote = &pair->end[1];
	struct ib_sge sge = {
		.addr = local->mr->iova,
		.length = pages * PAGE_SIZE,
		.lkey = local->mr->lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = remote->mr->iova,
		.rkey = rkey,
	};

	return kt_run(pair, local, &wr.wr);
}

/* Where every page lies elsewhere, a page too few or in the wrong place shows. */
static int write_and_read(struct kt_pair *pair, int pages)
{
	struct kt_end *local = &pair->end[0], *remote = &pair->end[1];
	size_t bytes = pages * PAGE_SIZE;

	get_random_bytes(local->mem.va, KT_BYTES);
	KT_CHECK(!reg_both(pair, pages));
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, remote->mr->rkey, pages) == IB_WC_SUCCESS);
	KT_CHECK(!memcmp(local->mem.va, remote->mem.va, bytes));
	KT_CHECK(bytes == KT_BYTES || !memchr_inv(remote->mem.va + bytes, 0, KT_BYTES - bytes));
	get_random_bytes(remote->mem.va, bytes);
	KT_CHECK(rdma(pair, IB_WR_RDMA_READ, remote->mr->rkey, pages) == IB_WC_SUCCESS);
	KT_CHECK(!memcmp(local->mem.va, remote->mem.va, bytes));
	return 0;
}

int kt_reg_256(struct kt_pair *pair)
{
	return write_and_read(pair, 256);
}

int kt_reg_1024(struct kt_pair *pair)
{
	KT_CHECK(pair->dev->ibdev->attrs.max_fast_reg_page_list_len >= 1024);
	return write_and_read(pair, 1024);
}

int kt_reg_too_long(struct kt_pair *pair)
{
	u32 max = pair->dev->ibdev->attrs.max_fast_reg_page_list_len;

	KT_CHECK(ib_alloc_mr(pair->dev->pd, IB_MR_TYPE_MEM_REG, max + 1) == ERR_PTR(-EINVAL));
	KT_CHECK(ib_alloc_mr(pair->dev->pd, IB_MR_TYPE_MEM_REG, 0) == ERR_PTR(-EINVAL));
	return 0;
}

static int invalidate(struct kt_pair *pair, struct kt_end *end)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = end->mr->rkey };

	return kt_run(pair, end, &wr);
}

int kt_local_inv(struct kt_pair *pair)
{
	struct kt_end *remote = &pair->end[1];

	KT_CHECK(!reg_both(pair, 4));
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, remote->mr->rkey, 4) == IB_WC_SUCCESS);
	KT_CHECK(invalidate(pair, remote) == IB_WC_SUCCESS);
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, remote->mr->rkey, 4) == IB_WC_REM_ACCESS_ERR);
	return 0;
}

int kt_reg_again(struct kt_pair *pair)
{
	struct kt_end *remote = &pair->end[1];
	u32 old;

	KT_CHECK(!reg_both(pair, 4));
	old = remote->mr->rkey;
	KT_CHECK(invalidate(pair, remote) == IB_WC_SUCCESS);
	ib_update_fast_reg_key(remote->mr, ib_inc_rkey(old));
	KT_CHECK(!reg(pair, remote, 2, REMOTE));
	KT_CHECK(remote->mr->rkey != old);
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, remote->mr->rkey, 2) == IB_WC_SUCCESS);
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, old, 2) == IB_WC_REM_ACCESS_ERR);
	return 0;
}

/* The receiver learns which key has gone. */
int kt_send_with_inv(struct kt_pair *pair)
{
	struct kt_end *remote = &pair->end[1];
	struct ib_sge sge = kt_sge(pair, &pair->end[0], 0);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1 };
	struct kt_wr *recv = &pair->recv[0];

	KT_CHECK(!reg_both(pair, 4));
	wr.ex.invalidate_rkey = remote->mr->rkey;
	KT_CHECK(!kt_post_recv(pair, 0, recv));
	KT_CHECK(kt_run(pair, &pair->end[0], &wr) == IB_WC_SUCCESS);
	KT_CHECK(!kt_wait_ok(pair, recv));
	KT_CHECK(recv->wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KT_CHECK(recv->wc.ex.invalidate_rkey == remote->mr->rkey);
	KT_CHECK(rdma(pair, IB_WR_RDMA_WRITE, remote->mr->rkey, 4) == IB_WC_REM_ACCESS_ERR);
	return 0;
}
