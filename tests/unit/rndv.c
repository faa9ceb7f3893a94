// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A region of one end that memory windows expose to the other. */
#include "rndv.h"

void expose_init(struct expose *l, struct t_env *env, uint32_t flag)
{
	memset(l, 0, sizeof(*l));
	l->env = env;
	l->a = &env->a;
	l->b = &env->b;
	expect_ok(fg_mr_create(&l->b->pd, &l->b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND,
			       &l->region));
	expect_ok(fg_mw_create(&l->b->pd, flag, &l->mw));
	l->bind = (struct pvr_wqe_bind_mw){
		.addr = l->region.start + BOUND_FROM,
		.length = BOUND_LEN,
		.mw_rkey = l->mw.rkey,
		.new_rkey = l->mw.rkey ^ 0x55,
		.mr_lkey = l->region.lkey,
		.access_flags = FG_ACCESS_ALL & ~PVR_ACCESS_LOCAL_WRITE,
	};
}

struct pvrdma_sq_wqe_hdr *expose_put(struct fg_end *end, uint64_t wr_id, enum pvrdma_wr_opcode op,
				     uint32_t key)
{
	struct fg_wr wr = { .wr_id = wr_id, .opcode = op, .flags = PVR_SEND_SIGNALED, .imm = key };
	uint32_t index = end->qp.sq_tail;

	assert_true(fg_put_send(&end->qp, &wr));
	return fg_sq_wqe(&end->qp, index);
}

struct pvrdma_sq_wqe_hdr *expose_put_bind(struct fg_end *end, uint64_t wr_id,
					  const struct pvr_wqe_bind_mw *bind)
{
	struct pvrdma_sq_wqe_hdr *wqe = expose_put(end, wr_id, PVRDMA_WR_BIND_MW, 0);

	memset(&wqe->wr, 0xee, sizeof(wqe->wr));
	memcpy(&wqe->wr, bind, sizeof(*bind));
	return wqe;
}

void expose_run(struct expose *l, struct fg_end *end)
{
	fg_ring_send(&end->qp);
	fg_run(l->env->host);
}

void expose_bind(struct expose *l)
{
	expose_put_bind(l->b, BIND_ID, &l->bind);
	expose_run(l, l->b);
	expect_done(&l->b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	/* As drivers do: the key of next time. */
	l->mw.rkey = l->bind.new_rkey;
	l->bind.mw_rkey = l->bind.new_rkey;
	l->bind.new_rkey ^= 0x0f;
}

void expose_reconnect(struct expose *l)
{
	t_reconnect(l->env);
}

void expose_bind_refused(struct expose *l)
{
	expose_put_bind(l->b, BIND_ID, &l->bind);
	expose_run(l, l->b);
	expect_cqe(&l->b->scq, BIND_ID, PVRDMA_WC_MW_BIND_ERR);
	expect_state(l->b, PVR_QPS_ERR);
	expose_reconnect(l);
}

void expose_invalidate(struct expose *l, struct fg_end *end, uint32_t key)
{
	expose_put(end, 901, PVRDMA_WR_LOCAL_INV, key);
	expose_run(l, end);
}

void expose_invalidated(struct expose *l)
{
	expose_invalidate(l, l->b, l->mw.rkey);
	expect_done(&l->b->scq, 901, PVRDMA_WC_LOCAL_INV);
}

void expose_access(struct expose *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		   uint32_t len)
{
	t_post(l->a, .wr_id = 1, .opcode = op, T_SGE(&l->a->mr, 0, len), .remote_addr = addr,
	       .rkey = rkey);
	fg_run(l->env->host);
}

void expose_write_ok(struct expose *l, uint64_t addr, uint32_t at, uint32_t len)
{
	fg_fill(l->a->mr.va, len, at);
	memset(l->b->buf.va, 0, l->b->buf.size);
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, addr, len);
	expect_written(l->a, 1);
	assert_int_equal(fg_mismatch(l->b->buf.va + at, len, at), len);
	assert_int_equal(l->b->buf.va[at - 1], 0);
	assert_int_equal(l->b->buf.va[at + len], 0);
}

void expose_all_ok(struct expose *l)
{
	expose_write_ok(l, l->region.start + BOUND_FROM, BOUND_FROM, BOUND_LEN);
}

void expose_refused(struct expose *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		    uint32_t len)
{
	expose_access(l, op, rkey, addr, len);
	expect_cqe(&l->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(l->b, PVR_QPS_ERR);
}

void expose_all_refused(struct expose *l)
{
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM, 1);
}

uint32_t fast_mr_create(const struct fg_pd *pd, uint32_t pages, struct fg_mr *mr)
{
	const struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					       .pd_handle = pd->handle,
					       .flags = PVR_MR_FLAG_FRMR,
					       .nchunks = pages };

	return fg_mr_create_as(pd, &req, mr);
}

struct pvrdma_sq_wqe_hdr *put_fast_reg(struct fg_end *end, uint64_t wr_id, const struct fg_buf *buf,
				       uint32_t rkey)
{
	struct pvrdma_sq_wqe_hdr *wqe = expose_put(end, wr_id, PVRDMA_WR_FAST_REG_MR, 0);

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.fast_reg.iova_start = FAST_IOVA;
	wqe->wr.fast_reg.pl_pdir_dma = buf->pdir;
	wqe->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	wqe->wr.fast_reg.page_list_len = buf->npages;
	wqe->wr.fast_reg.length = (uint32_t)buf->size;
	wqe->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	wqe->wr.fast_reg.rkey = rkey;
	return wqe;
}
