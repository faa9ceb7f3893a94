// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting by function, ibv_wr_start(3). Builders begin an element, setters add to the
 * last one. sq.lock is held from wr_start to wr_complete or wr_abort. The device sees the
 * elements only after wr_complete. After the first error nothing more is written.
 */
#include <errno.h>
#include <string.h>

#include <ccan/array_size.h>

#include "doorbell.h"
#include "pvrdma.h"
#include "sqe.h"

/*
 * Setters that the last request still accepts: PVR_SQE_SGES, PVR_SQE_INLINE and this one.
 */
#define ADDRESS (1u << 31) /* of a datagram, or the SRQ of an XRC request */

static struct pvr_qp *ex_to_pvr_qp(struct ibv_qp_ex *qpx)
{
	return container_of(qpx, struct pvr_qp, verbs_qp.qp_ex);
}

static void fail(struct pvr_batch *batch, int err)
{
	if (!batch->err)
		batch->err = err;
}

/* A datagram needs an address, an XRC request an SRQ; neither needs data. */
static void end_request(struct pvr_batch *batch)
{
	if (unlikely(batch->setters & ADDRESS))
		fail(batch, EINVAL);
	batch->setters = 0;
}

/*
 * Begins the element of a request. Returns NULL after an error. IBV_SEND_INLINE is
 * ignored, because the setter of the data decides.
 */
static __always_inline struct pvr_sq_wqe *begin(struct ibv_qp_ex *qpx, enum ibv_wr_opcode opcode)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);
	struct pvr_batch *batch = &qp->batch;
	const struct pvr_send_op *op;
	struct pvr_sq_wqe *hdr;
	int err;

	end_request(batch);
	if (unlikely(batch->err))
		return NULL;
	err = pvr_sqe_begin(qp, opcode, qpx->wr_id, qpx->wr_flags & ~IBV_SEND_INLINE, &hdr, &op);
	if (unlikely(err)) {
		batch->err = err;
		return NULL;
	}
	batch->hdr = hdr;
	batch->setters = (op->carries & PVR_SQE_DATA) | batch->address;
	pvr_wq_advance(&qp->sq);
	return hdr;
}

/*
 * Returns the element that a setter writes to, or NULL after an error or if the request
 * has no such part.
 */
static struct pvr_sq_wqe *add(struct pvr_batch *batch, unsigned int setter)
{
	if (unlikely(batch->err))
		return NULL;
	if (unlikely(!(batch->setters & setter))) {
		batch->err = EINVAL;
		return NULL;
	}
	batch->setters &= ~(setter & PVR_SQE_DATA ? PVR_SQE_DATA : setter);
	return batch->hdr;
}

static void wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_RDMA_WRITE);

	if (likely(hdr))
		pvr_sqe_rdma(hdr, remote_addr, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (unlikely(!hdr))
		return;
	hdr->ex.imm_data = imm_data;
	pvr_sqe_rdma(hdr, remote_addr, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_RDMA_READ);

	if (likely(hdr))
		pvr_sqe_rdma(hdr, remote_addr, rkey);
}

static void wr_send(struct ibv_qp_ex *qpx)
{
	begin(qpx, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm_data)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_SEND_WITH_IMM);

	if (likely(hdr))
		hdr->ex.imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *qpx, uint32_t invalidate_rkey)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_SEND_WITH_INV);

	if (likely(hdr))
		hdr->ex.invalidate_rkey = htole32(invalidate_rkey);
}

static void wr_local_inv(struct ibv_qp_ex *qpx, uint32_t invalidate_rkey)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_LOCAL_INV);

	if (likely(hdr))
		hdr->ex.invalidate_rkey = htole32(invalidate_rkey);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_ATOMIC_CMP_AND_SWP);

	if (likely(hdr))
		pvr_sqe_atomic(hdr, remote_addr, rkey, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (likely(hdr))
		pvr_sqe_atomic(hdr, remote_addr, rkey, add, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_BIND_MW);

	if (likely(hdr))
		fail(&ex_to_pvr_qp(qpx)->batch, pvr_sqe_bind_type2(hdr, mw, rkey, info));
}

static void wr_atomic_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_ATOMIC_WRITE);
	struct pvr_wqe_atomic_write write = { .addr = htole64(remote_addr), .rkey = htole32(rkey) };

	if (unlikely(!hdr))
		return;
	memcpy(&write.value, value, sizeof(write.value));
	memcpy(&hdr->wr, &write, sizeof(write));
}

static_assert(PVR_FLUSH_GLOBAL == IBV_FLUSH_GLOBAL &&
		      PVR_FLUSH_PERSISTENT == IBV_FLUSH_PERSISTENT &&
		      (int)PVR_FLUSH_RANGE == (int)IBV_FLUSH_RANGE &&
		      (int)PVR_FLUSH_MR == (int)IBV_FLUSH_MR,
	      "placements and levels are passed as they are");

static void wr_flush(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t placement, uint8_t level)
{
	struct pvr_sq_wqe *hdr = begin(qpx, IBV_WR_FLUSH);
	const struct pvr_wqe_flush flush = {
		.addr = htole64(remote_addr),
		.length = htole64(length),
		.rkey = htole32(rkey),
		.placement = placement,
		.level = level,
	};

	if (likely(hdr))
		memcpy(&hdr->wr, &flush, sizeof(flush));
}

static void wr_set_ud_addr(struct ibv_qp_ex *qpx, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct pvr_batch *batch = &ex_to_pvr_qp(qpx)->batch;
	struct pvr_sq_wqe *hdr = add(batch, ADDRESS);

	if (likely(hdr))
		fail(batch, pvr_sqe_ud(hdr, ah, remote_qpn, remote_qkey));
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qpx, uint32_t remote_srqn)
{
	struct pvr_sq_wqe *hdr = add(&ex_to_pvr_qp(qpx)->batch, ADDRESS);

	if (likely(hdr))
		hdr->remote_srqn = htole32(remote_srqn);
}

static void wr_set_sge_list(struct ibv_qp_ex *qpx, size_t num_sge, const struct ibv_sge *sges)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);
	struct pvr_sq_wqe *hdr = add(&qp->batch, PVR_SQE_SGES);

	if (likely(hdr))
		fail(&qp->batch, pvr_sqe_sges(qp, hdr, sges, num_sge));
}

static void wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };
	struct pvr_sq_wqe *hdr = add(&ex_to_pvr_qp(qpx)->batch, PVR_SQE_SGES);

	if (unlikely(!hdr))
		return;
	hdr->num_sge = htole32(1); /* max_sge is at least 1 */
	pvr_copy_sges(pvr_sqe_data(hdr), &sge, 1);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num_buf,
				    const struct ibv_data_buf *bufs)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);
	struct pvr_sq_wqe *hdr = add(&qp->batch, PVR_SQE_INLINE);
	struct pvr_inline data;
	size_t i;

	if (unlikely(!hdr))
		return;
	data = pvr_inline_begin(qp, hdr);
	for (i = 0; i < num_buf && !qp->batch.err; i++)
		fail(&qp->batch, pvr_inline_add(&data, bufs[i].addr, bufs[i].length));
	pvr_inline_end(&data, hdr);
}

static void wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);
	struct pvr_sq_wqe *hdr = add(&qp->batch, PVR_SQE_INLINE);
	struct pvr_inline data;

	if (unlikely(!hdr))
		return;
	data = pvr_inline_begin(qp, hdr);
	fail(&qp->batch, pvr_inline_add(&data, addr, length));
	pvr_inline_end(&data, hdr);
}

static void wr_start(struct ibv_qp_ex *qpx)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);

	pvr_lock(&qp->sq.lock);
	qp->batch.first = pvr_wq_tail(&qp->sq);
	qp->batch.err = 0;
	qp->batch.setters = 0;
}

static int wr_complete(struct ibv_qp_ex *qpx)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);
	bool ring = false;
	uint32_t tail;
	int err;

	end_request(&qp->batch);
	err = qp->batch.err;
	if (unlikely(err))
		pvr_wq_set_tail(&qp->sq, qp->batch.first);
	tail = pvr_wq_tail(&qp->sq);
	if (tail != qp->batch.first)
		ring = pvr_wq_publish(&qp->sq);
	pvr_unlock(&qp->sq.lock);
	if (ring)
		pvr_ring_sq(qp, tail);
	return err;
}

static void wr_abort(struct ibv_qp_ex *qpx)
{
	struct pvr_qp *qp = ex_to_pvr_qp(qpx);

	pvr_wq_set_tail(&qp->sq, qp->batch.first);
	pvr_unlock(&qp->sq.lock);
}

/* Bits of send_ops_flags are numbered by opcode, except the last two. */
static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE &&
		      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM == 1 << IBV_WR_RDMA_WRITE_WITH_IMM &&
		      IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND &&
		      IBV_QP_EX_WITH_SEND_WITH_IMM == 1 << IBV_WR_SEND_WITH_IMM &&
		      IBV_QP_EX_WITH_RDMA_READ == 1 << IBV_WR_RDMA_READ &&
		      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP == 1 << IBV_WR_ATOMIC_CMP_AND_SWP &&
		      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD == 1 << IBV_WR_ATOMIC_FETCH_AND_ADD &&
		      IBV_QP_EX_WITH_LOCAL_INV == 1 << IBV_WR_LOCAL_INV &&
		      IBV_QP_EX_WITH_BIND_MW == 1 << IBV_WR_BIND_MW &&
		      IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV,
	      "send_ops_flags go by opcode");

static enum ibv_wr_opcode opcode_of(uint64_t flag)
{
	if (flag == IBV_QP_EX_WITH_FLUSH)
		return IBV_WR_FLUSH;
	if (flag == IBV_QP_EX_WITH_ATOMIC_WRITE)
		return IBV_WR_ATOMIC_WRITE;
	return __builtin_ctzll(flag);
}

static void flip_mark(void *mark)
{
	uint32_t mask;

	memcpy(&mask, mark, sizeof(mask));
	mask ^= VERBS_QP_EX;
	memcpy(mark, &mask, sizeof(mask));
}

/*
 * DOC: libraries with a shorter struct ibv_qp_ex
 *
 * ibv_qp_to_qp_ex(3) checks a mark behind struct ibv_qp_ex. libibverbs 44 has no wr_flush in
 * that structure and older ones have no wr_atomic_write, although their private ABI is the
 * same. So there the mark is at the place of the first function that they lack.
 */
enum mark_place {
	MARK_AT_ATOMIC_WRITE,
	MARK_AT_FLUSH,
	MARK_AT_END,
	MARK_PLACES,
};

static void *mark_at(struct verbs_qp *vqp, enum mark_place place)
{
	void *const marks[] = {
		[MARK_AT_ATOMIC_WRITE] = &vqp->qp_ex.wr_atomic_write,
		[MARK_AT_FLUSH] = &vqp->qp_ex.wr_flush,
		[MARK_AT_END] = &vqp->comp_mask,
	};

	return marks[place];
}

/* Set the mark where the library checks it. Return: that place, or MARK_PLACES. */
static enum mark_place mark_extended(struct verbs_qp *vqp)
{
	int place;

	for (place = MARK_PLACES - 1; place >= 0; place--) {
		flip_mark(mark_at(vqp, place));
		if (ibv_qp_to_qp_ex(&vqp->qp))
			return place;
		flip_mark(mark_at(vqp, place));
	}
	return MARK_PLACES;
}

/* Return: the operations for which the library has no function. */
static uint64_t absent_ops(void)
{
	struct verbs_qp probe = { .comp_mask = 0 };

	switch (mark_extended(&probe)) {
	case MARK_AT_END:
		return 0;
	case MARK_AT_FLUSH:
		return IBV_QP_EX_WITH_FLUSH;
	default:
		return IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	}
}

int pvr_check_send_ops(const struct pvr_context *ctx, enum ibv_qp_type type, uint64_t ops)
{
	const struct pvr_send_op *op;
	uint64_t flag;

	if (ops & absent_ops())
		return EOPNOTSUPP;
	for (; ops; ops &= ~flag) {
		flag = ops & -ops;
		if (flag > IBV_QP_EX_WITH_ATOMIC_WRITE ||
		    pvr_send_op(ctx, type, opcode_of(flag), &op))
			return EOPNOTSUPP;
	}
	return 0;
}

static void set_builders(struct ibv_qp_ex *qpx, uint64_t ops)
{
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		qpx->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qpx->wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_SEND)
		qpx->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		qpx->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		qpx->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		qpx->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		qpx->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		qpx->wr_local_inv = wr_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		qpx->wr_bind_mw = wr_bind_mw;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		qpx->wr_send_inv = wr_send_inv;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qpx->wr_atomic_write = wr_atomic_write;
	if (ops & IBV_QP_EX_WITH_FLUSH)
		qpx->wr_flush = wr_flush;
}

void pvr_set_send_ops(struct pvr_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *qpx = &qp->verbs_qp.qp_ex;

	set_builders(qpx, ops);
	if (qpx->qp_base.qp_type == IBV_QPT_UD)
		qpx->wr_set_ud_addr = wr_set_ud_addr;
	if (qpx->qp_base.qp_type == IBV_QPT_XRC_SEND)
		qpx->wr_set_xrc_srqn = wr_set_xrc_srqn;
	if (qpx->wr_set_ud_addr || qpx->wr_set_xrc_srqn)
		qp->batch.address = ADDRESS;
	qpx->wr_set_sge = wr_set_sge;
	qpx->wr_set_sge_list = wr_set_sge_list;
	qpx->wr_set_inline_data = wr_set_inline_data;
	qpx->wr_set_inline_data_list = wr_set_inline_data_list;
	qpx->wr_start = wr_start;
	qpx->wr_complete = wr_complete;
	qpx->wr_abort = wr_abort;
	mark_extended(&qp->verbs_qp);
}
