/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Posting of work requests: no system call, one doorbell per call. */
#include <errno.h>
#include <string.h>

#include <ccan/array_size.h>
#include <util/compiler.h>

#include "doorbell.h"
#include "pvrdma.h"

static_assert(sizeof(struct ibv_sge) == sizeof(struct pvrdma_sge) &&
		      offsetof(struct ibv_sge, addr) == offsetof(struct pvrdma_sge, addr) &&
		      offsetof(struct ibv_sge, length) == offsetof(struct pvrdma_sge, length) &&
		      offsetof(struct ibv_sge, lkey) == offsetof(struct pvrdma_sge, lkey),
	      "scatter/gather lists are copied as they are");

/* The flags that the device gets; both sides have the same bits. */
#define SEND_FLAGS_PASSED (PVR_SEND_FENCE | PVR_SEND_SIGNALED | PVR_SEND_SOLICITED)
#define SEND_FLAGS_KNOWN (SEND_FLAGS_PASSED | IBV_SEND_INLINE)

static_assert(PVR_SEND_FENCE == IBV_SEND_FENCE && PVR_SEND_SIGNALED == IBV_SEND_SIGNALED &&
		      PVR_SEND_SOLICITED == IBV_SEND_SOLICITED,
	      "send flags are passed as they are");

#define ON_RC (1u << IBV_QPT_RC)
#define ON_UD (1u << IBV_QPT_UD)

/* What can be posted: the device's opcode, on which QPs, and what else the element carries. */
static const struct send_op {
	uint8_t opcode; /* enum pvrdma_wr_opcode */
	uint8_t qp_types; /* ON_*; 0: the device does not offer it to user space */
	bool rdma;
	bool atomic;
	bool imm;
} send_ops[] = {
	[IBV_WR_RDMA_WRITE] = { .opcode = PVRDMA_WR_RDMA_WRITE, .qp_types = ON_RC, .rdma = true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { .opcode = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
					 .qp_types = ON_RC, .rdma = true, .imm = true },
	[IBV_WR_SEND] = { .opcode = PVRDMA_WR_SEND, .qp_types = ON_RC | ON_UD },
	[IBV_WR_SEND_WITH_IMM] = { .opcode = PVRDMA_WR_SEND_WITH_IMM, .qp_types = ON_RC | ON_UD,
				   .imm = true },
	[IBV_WR_RDMA_READ] = { .opcode = PVRDMA_WR_RDMA_READ, .qp_types = ON_RC, .rdma = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { .opcode = PVRDMA_WR_ATOMIC_CMP_AND_SWP, .qp_types = ON_RC,
					.atomic = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
					  .qp_types = ON_RC, .atomic = true },
	/* The last that verbs name and the device has not: those before it are absent. */
	[IBV_WR_DRIVER1] = {},
};

/* Nothing fits into an element, so the flag goes only with messages that have no data. */
static int check_inline(const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length)
			return EINVAL;
	return 0;
}

static int check_opcode(const struct ibv_qp *ibqp, const struct ibv_send_wr *wr)
{
	if (wr->opcode >= ARRAY_SIZE(send_ops))
		return EINVAL;
	if (!send_ops[wr->opcode].qp_types)
		return EOPNOTSUPP;
	if (!(send_ops[wr->opcode].qp_types & (1u << ibqp->qp_type)))
		return EINVAL;
	return 0;
}

static int check_send(struct pvr_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_qp *ibqp = &qp->verbs_qp.qp;
	int err;

	if (unlikely(ibqp->state < IBV_QPS_RTS))
		return EINVAL;
	err = check_opcode(ibqp, wr);
	if (unlikely(err))
		return err;
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge))
		return EINVAL;
	if (unlikely(wr->send_flags & ~SEND_FLAGS_KNOWN))
		return EINVAL;
	if (unlikely(wr->send_flags & IBV_SEND_INLINE))
		err = check_inline(wr);
	if (unlikely(err))
		return err;
	if (unlikely(ibqp->qp_type == IBV_QPT_UD && !wr->wr.ud.ah))
		return EINVAL;
	return unlikely(pvr_wq_full(&qp->sq)) ? ENOMEM : 0;
}

/* An address handle is the application's, and is copied into the element. */
static void fill_datagram(struct pvrdma_sq_wqe_hdr *hdr, const struct ibv_send_wr *wr)
{
	hdr->wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
	hdr->wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
	hdr->wr.ud.av = to_pvr_ah(wr->wr.ud.ah)->av;
}

static void fill_atomic(struct pvrdma_sq_wqe_hdr *hdr, const struct ibv_send_wr *wr)
{
	hdr->wr.atomic.remote_addr = wr->wr.atomic.remote_addr;
	hdr->wr.atomic.rkey = wr->wr.atomic.rkey;
	hdr->wr.atomic.compare_add = wr->wr.atomic.compare_add;
	hdr->wr.atomic.swap = wr->wr.atomic.swap;
}

static void copy_sges(void *to, const struct ibv_sge *sges, int num)
{
	if (num)
		memcpy(to, sges, num * sizeof(*sges));
}

/*
 * Writes the whole header, so that nothing of the slot's former request is left in it. Room for
 * max_sge entries behind the header is what pvr_wq_layout() made the stride for.
 */
static void write_send(struct pvr_qp *qp, const struct ibv_send_wr *wr)
{
	const struct send_op *op = &send_ops[wr->opcode];
	struct pvrdma_sq_wqe_hdr *hdr = pvr_wq_element(&qp->sq);
	int num_sge = wr->send_flags & IBV_SEND_INLINE ? 0 : wr->num_sge;

	*hdr = (struct pvrdma_sq_wqe_hdr){
		.wr_id = wr->wr_id,
		.num_sge = num_sge,
		.opcode = op->opcode,
		.send_flags = wr->send_flags & SEND_FLAGS_PASSED,
	};
	if (op->imm)
		hdr->ex.imm_data = wr->imm_data;
	if (op->rdma) {
		hdr->wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
		hdr->wr.rdma.rkey = wr->wr.rdma.rkey;
	} else if (op->atomic) {
		fill_atomic(hdr, wr);
	} else if (qp->verbs_qp.qp.qp_type == IBV_QPT_UD) {
		fill_datagram(hdr, wr);
	}
	copy_sges(hdr + 1, wr->sg_list, num_sge);
}

/* Requests before the one that is refused stay posted, as ibv_post_send(3) says. */
int pvr_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	bool posted = false;
	int err = 0;

	pthread_spin_lock(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = check_send(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		write_send(qp, wr);
		pvr_wq_advance(&qp->sq);
		posted = true;
	}
	if (posted)
		pvr_wq_publish(&qp->sq);
	pthread_spin_unlock(&qp->sq.lock);
	if (posted)
		pvr_ring_qp(to_pvr_context(ibqp->context), qp->handle, PVR_DB_QP_SEND);
	return err;
}

static int check_recv(struct pvr_wq *wq, const struct ibv_recv_wr *wr)
{
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge))
		return EINVAL;
	return unlikely(pvr_wq_full(wq)) ? ENOMEM : 0;
}

static void write_recv(struct pvr_wq *wq, const struct ibv_recv_wr *wr)
{
	struct pvrdma_rq_wqe_hdr *hdr = pvr_wq_element(wq);

	*hdr = (struct pvrdma_rq_wqe_hdr){ .wr_id = wr->wr_id, .num_sge = wr->num_sge };
	copy_sges(hdr + 1, wr->sg_list, wr->num_sge);
}

/* Fills a receive queue of either kind. Returns an errno; *posted tells whether to ring. */
static int post_recvs(struct pvr_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		      bool *posted)
{
	int err = 0;

	*posted = false;
	pthread_spin_lock(&wq->lock);
	for (; wr; wr = wr->next) {
		err = check_recv(wq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		write_recv(wq, wr);
		pvr_wq_advance(wq);
		*posted = true;
	}
	if (*posted)
		pvr_wq_publish(wq);
	pthread_spin_unlock(&wq->lock);
	return err;
}

int pvr_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	bool posted;
	int err;

	if (unlikely(ibqp->state == IBV_QPS_RESET || !qp->rq.num)) {
		*bad_wr = wr;
		return EINVAL;
	}
	err = post_recvs(&qp->rq, wr, bad_wr, &posted);
	if (posted)
		pvr_ring_qp(to_pvr_context(ibqp->context), qp->handle, PVR_DB_QP_RECV);
	return err;
}

int pvr_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	bool posted;
	int err;

	err = post_recvs(&srq->wq, wr, bad_wr, &posted);
	if (posted)
		pvr_ring_srq(to_pvr_context(ibsrq->context), srq->handle);
	return err;
}
