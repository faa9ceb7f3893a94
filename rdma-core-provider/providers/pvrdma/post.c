// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting of work requests by list, without a system call and with at most one doorbell
 * per call.
 */
#include <errno.h>

#include "doorbell.h"
#include "sqe.h"

/* Inline data ignore the lkeys, see ibv_post_send(3). */
static int write_inline(struct pvr_qp *qp, struct pvr_sq_wqe *hdr, const struct ibv_sge *sges,
			int num)
{
	struct pvr_inline data = pvr_inline_begin(qp, hdr);
	int i, err;

	for (i = 0; i < num; i++) {
		err = pvr_inline_add(&data, (const void *)(uintptr_t)sges[i].addr, sges[i].length);
		if (err)
			return err;
	}
	pvr_inline_end(&data, hdr);
	return 0;
}

static int write_data(struct pvr_qp *qp, struct pvr_sq_wqe *hdr, const struct ibv_send_wr *wr)
{
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE)
		return write_inline(qp, hdr, wr->sg_list, wr->num_sge);
	hdr->num_sge = htole32(wr->num_sge);
	pvr_copy_sges(pvr_sqe_data(hdr), wr->sg_list, wr->num_sge);
	return 0;
}

static int write_bind(const struct pvr_send_op *op, struct pvr_sq_wqe *hdr,
		      const struct ibv_send_wr *wr)
{
	if (op->carries & PVR_SQE_FUNCTION)
		return EOPNOTSUPP;
	return pvr_sqe_bind_type2(hdr, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

static int write_address(struct pvr_qp *qp, const struct pvr_send_op *op, struct pvr_sq_wqe *hdr,
			 const struct ibv_send_wr *wr)
{
	if (op->carries & PVR_SQE_RDMA)
		pvr_sqe_rdma(hdr, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	else if (op->carries & PVR_SQE_ATOMIC)
		pvr_sqe_atomic(hdr, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
			       wr->wr.atomic.compare_add, wr->wr.atomic.swap);
	else if (op->carries & (PVR_SQE_BIND | PVR_SQE_FUNCTION))
		return write_bind(op, hdr, wr);
	else if (qp->verbs_qp.qp.qp_type == IBV_QPT_UD)
		return pvr_sqe_ud(hdr, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return 0;
}

static int write_send(struct pvr_qp *qp, const struct ibv_send_wr *wr)
{
	struct pvr_sq_wqe *hdr;
	const struct pvr_send_op *op;
	int err;

	err = pvr_sqe_begin(qp, wr->opcode, wr->wr_id, wr->send_flags, &hdr, &op);
	if (unlikely(err))
		return err;
	if (op->carries & PVR_SQE_IMM)
		hdr->ex.imm_data = wr->imm_data;
	else if (op->carries & PVR_SQE_INV)
		hdr->ex.invalidate_rkey = htole32(wr->invalidate_rkey);
	if (unlikely(qp->verbs_qp.qp.qp_type == IBV_QPT_XRC_SEND))
		hdr->remote_srqn = htole32(wr->qp_type.xrc.remote_srqn);
	err = write_address(qp, op, hdr, wr);
	if (likely(!err && (op->carries & PVR_SQE_SGES)))
		err = write_data(qp, hdr, wr);
	return err;
}

void pvr_ring_sq(struct pvr_qp *qp, uint32_t tail)
{
	pvr_ring_qp(to_pvr_context(qp->verbs_qp.qp.context), qp->handle, PVR_DB_QP_SEND);
	if (qp->sq.is_send)
		pvr_wq_note_doorbell(&qp->sq, tail);
}

/* The requests before a refused one stay posted, see ibv_post_send(3). */
static __attribute__((noinline)) int post_list(struct pvr_qp *qp, struct ibv_send_wr *wr,
					       struct ibv_send_wr **bad_wr)
{
	bool posted = false, ring = false;
	uint32_t tail = 0;
	int err = 0;

	pvr_lock(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = write_send(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		pvr_wq_advance(&qp->sq);
		posted = true;
	}
	if (posted) {
		tail = pvr_wq_tail(&qp->sq);
		ring = pvr_wq_publish(&qp->sq);
	}
	pvr_unlock(&qp->sq.lock);
	if (ring)
		pvr_ring_sq(qp, tail);
	return err;
}

static __attribute__((noinline)) int ring_sq(struct pvr_qp *qp, uint32_t tail)
{
	pvr_ring_sq(qp, tail);
	return 0;
}

/*
 * DOC: plain requests
 *
 * A WRITE, READ or SEND with one SGE, posted by itself on a connection, is by far the most
 * common request. post_plain() writes it with few tests and without a call. Its opcode and
 * flags are less than 8, or 16 with inline data. Pairs of fields have the same places in
 * request and WQE.
 */
#define PLAIN_MAX 7u

static_assert((int)IBV_WR_RDMA_WRITE == PVRDMA_WR_RDMA_WRITE &&
		      (int)IBV_WR_RDMA_READ == PVRDMA_WR_RDMA_READ &&
		      (int)IBV_WR_SEND == PVRDMA_WR_SEND,
	      "opcodes of plain requests are passed as they are");
static_assert((IBV_WR_RDMA_WRITE | IBV_WR_RDMA_READ | IBV_WR_SEND) <= PLAIN_MAX &&
		      PVR_SQE_FLAGS_PASSED == PLAIN_MAX && IBV_SEND_INLINE == PLAIN_MAX + 1 &&
		      PVR_SEND_INLINE == IBV_SEND_INLINE,
	      "one test finds other opcodes and flags");
static_assert(sizeof(struct pvr_sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct pvr_sge, length) == offsetof(struct ibv_sge, length) &&
		      offsetof(struct pvr_sge, lkey) == offsetof(struct ibv_sge, lkey),
	      "an SGE is copied at once");

static __always_inline bool is_plain(const struct pvr_qp *qp, const struct ibv_send_wr *wr,
				     uint32_t max)
{
	return wr && (wr->opcode | wr->send_flags) <= max && (qp->plain_ops >> wr->opcode & 1) &&
	       wr->num_sge == 1 && !wr->next && qp->verbs_qp.qp.state >= IBV_QPS_RTS;
}

/* READs have none. An empty message is the same without the flag. */
static bool is_plain_inline(const struct pvr_qp *qp, const struct ibv_send_wr *wr)
{
	return is_plain(qp, wr, PLAIN_MAX | IBV_SEND_INLINE) && wr->opcode != IBV_WR_RDMA_READ &&
	       wr->sg_list->length - 1 < qp->cap.max_inline_data;
}

/* Writes all of wr: compilers do not join copies of fields. */
static __always_inline void write_plain_target(struct pvr_sq_wqe *hdr, const struct ibv_send_wr *wr)
{
	const __le64 rkey = htole64(wr->wr.rdma.rkey); /* and the reserved field */

	memset((uint8_t *)&hdr->wr + sizeof(hdr->wr.rdma), 0,
	       sizeof(hdr->wr) - sizeof(hdr->wr.rdma));
	if (wr->opcode == IBV_WR_SEND) {
		memset(&hdr->wr.rdma, 0, sizeof(hdr->wr.rdma));
		return;
	}
	hdr->wr.rdma.remote_addr = htole64(wr->wr.rdma.remote_addr);
	memcpy(&hdr->wr.rdma.rkey, &rkey, sizeof(rkey));
}

/* And the flags. */
static __always_inline void copy_plain_opcode(struct pvr_sq_wqe *hdr, const struct ibv_send_wr *wr)
{
	memcpy(&hdr->opcode, &wr->opcode, sizeof(hdr->opcode) + sizeof(hdr->send_flags));
	if (__BYTE_ORDER == __LITTLE_ENDIAN)
		return;
	hdr->opcode = htole32(wr->opcode);
	hdr->send_flags = htole32(wr->send_flags);
}

static __always_inline void copy_plain_sge(void *to, const struct ibv_sge *from)
{
	struct pvr_sge sge;

	if (__BYTE_ORDER == __LITTLE_ENDIAN) {
		memcpy(to, from, sizeof(sge));
		return;
	}
	sge = pvr_sge_of(from);
	memcpy(to, &sge, sizeof(sge));
}

/* Writes the whole header, as pvr_sqe_begin() does. */
static __always_inline void write_plain(struct pvr_sq_wqe *hdr, uint32_t number,
					const struct ibv_send_wr *wr, bool is_inline)
{
	hdr->wr_id = htole64(number);
	hdr->num_sge = htole32(!is_inline);
	hdr->total_len = is_inline ? htole32(wr->sg_list->length) : 0;
	copy_plain_opcode(hdr, wr);
	memset(&hdr->ex, 0, sizeof(hdr->ex) + sizeof(hdr->remote_srqn));
	write_plain_target(hdr, wr);
	if (is_inline)
		pvr_copy_inline(pvr_sqe_data(hdr), (const void *)(uintptr_t)wr->sg_list->addr,
				wr->sg_list->length);
	else
		copy_plain_sge(pvr_sqe_data(hdr), wr->sg_list);
}

static __always_inline int post_plain(struct pvr_qp *qp, struct ibv_send_wr *wr,
				      struct ibv_send_wr **bad_wr, bool is_inline)
{
	uint32_t number;
	bool ring;

	pvr_lock(&qp->sq.lock);
	number = pvr_wq_tail(&qp->sq);
	if (unlikely(pvr_wq_full(&qp->sq, number))) {
		pvr_unlock(&qp->sq.lock);
		*bad_wr = wr;
		return ENOMEM;
	}
	qp->sq.wr_ids[number & qp->sq.mask] = wr->wr_id;
	write_plain(pvr_wq_slot(&qp->sq, number), number, wr, is_inline);
	ring = pvr_wq_publish_to(&qp->sq, number + 1);
	pvr_unlock(&qp->sq.lock);
	return unlikely(ring) ? ring_sq(qp, number + 1) : 0;
}

static __attribute__((noinline)) int post_other(struct pvr_qp *qp, struct ibv_send_wr *wr,
						struct ibv_send_wr **bad_wr)
{
	if (likely(is_plain_inline(qp, wr)))
		return post_plain(qp, wr, bad_wr, true);
	return post_list(qp, wr, bad_wr);
}

int pvr_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);

	if (likely(is_plain(qp, wr, PLAIN_MAX)))
		return post_plain(qp, wr, bad_wr, false);
	return post_other(qp, wr, bad_wr);
}

static int check_recv(struct pvr_wq *wq, const struct ibv_recv_wr *wr)
{
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge))
		return EINVAL;
	return unlikely(pvr_wq_full(wq, pvr_wq_tail(wq))) ? ENOMEM : 0;
}

static void write_recv(struct pvr_wq *wq, const struct ibv_recv_wr *wr)
{
	struct pvr_rq_wqe *hdr = pvr_wq_element(wq);

	*hdr = (struct pvr_rq_wqe){
		.wr_id = htole64(wr->wr_id),
		.num_sge = htole32(wr->num_sge),
	};
	pvr_copy_sges((struct pvr_sge *)(hdr + 1), wr->sg_list, wr->num_sge);
}

/*
 * Posts to a receive queue or SRQ. Returns an errno; *ring: whether a doorbell is needed.
 */
static int post_recvs(struct pvr_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		      bool *ring)
{
	bool posted = false;
	int err = 0;

	*ring = false;
	pvr_lock(&wq->lock);
	for (; wr; wr = wr->next) {
		err = check_recv(wq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		write_recv(wq, wr);
		pvr_wq_advance(wq);
		posted = true;
	}
	if (posted)
		*ring = pvr_wq_publish(wq);
	pvr_unlock(&wq->lock);
	return err;
}

int pvr_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	bool ring;
	int err;

	if (unlikely(ibqp->state == IBV_QPS_RESET || !qp->rq.num)) {
		*bad_wr = wr;
		return EINVAL;
	}
	err = post_recvs(&qp->rq, wr, bad_wr, &ring);
	if (ring)
		pvr_ring_qp(to_pvr_context(ibqp->context), qp->handle, PVR_DB_QP_RECV);
	return err;
}

int pvr_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	bool ring;
	int err;

	err = post_recvs(&srq->wq, wr, bad_wr, &ring);
	if (ring)
		pvr_ring_srq(to_pvr_context(ibsrq->context), srq->handle);
	return err;
}
