/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion of send requests, and what becomes of requests in error. */
#include "rdma/completer.h"

#include "rdma/cq.h"
#include "rdma/opcode.h"
#include "rdma/rq.h"

/* To stock drivers BIND_MW is a number as any other that means nothing. */
static uint32_t send_opcode(const struct pvr_qp *qp, uint32_t opcode)
{
	const struct pvr_opcode *op = pvr_opcode(opcode);

	return op->ext & ~qp->adapter->features ? PVRDMA_WC_SEND : op->done;
}

void pvr_send_push_cqe(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		       enum pvrdma_wc_status status, uint64_t length)
{
	struct pvrdma_cqe cqe = {
		.wr_id = wqe->hdr.wr_id,
		.opcode = send_opcode(qp, wqe->hdr.opcode),
		.status = status,
		.byte_len = status == PVRDMA_WC_SUCCESS ? length : 0,
		.port_num = 1,
	};

	pvr_cq_push(qp, qp->send_cq, &cqe, false);
}

bool pvr_flush_send(struct pvr_qp *qp, unsigned int *budget)
{
	struct pvr_send_wqe wqe;

	while (!qp->pages.broken && pvr_wq_avail(&qp->sq) > 0) {
		if (!*budget)
			return true;
		--*budget;
		pvr_wq_fetch_send(&qp->sq, &wqe);
		pvr_send_complete(qp, &wqe, PVRDMA_WC_WR_FLUSH_ERR, 0);
	}
	return false;
}

/* Programs that take flushed requests for their own doing must see that this is not. */
static enum pvrdma_wc_status recv_status(struct pvr_qp *qp)
{
	bool peer_gone = qp->peer_gone;

	qp->peer_gone = false;
	return peer_gone ? PVRDMA_WC_GENERAL_ERR : PVRDMA_WC_WR_FLUSH_ERR;
}

static void flush_one_recv(struct pvr_qp *qp, const struct pvrdma_rq_wqe_hdr *hdr)
{
	struct pvrdma_cqe cqe = {
		.wr_id = hdr->wr_id,
		.opcode = PVRDMA_WC_RECV,
		.status = recv_status(qp),
		.port_num = 1,
	};

	pvr_recv_complete(qp, &cqe, false);
}

/* Requests in an SRQ are anybody's; only the one in hand is flushed. */
static void flush_srq(struct pvr_qp *qp)
{
	if (qp->held->valid)
		flush_one_recv(qp, &qp->held->hdr);
	if (qp->last_wqe)
		return;
	qp->last_wqe = true;
	pvr_event_async(qp->adapter, PVR_EVENT_QP_LAST_WQE_REACHED, qp->handle);
}

bool pvr_flush_recv(struct pvr_qp *qp, unsigned int *budget)
{
	struct pvr_recv_wqe wqe;

	if (qp->srq) {
		flush_srq(qp);
		return false;
	}
	while (!qp->pages.broken && pvr_wq_avail(&qp->rq) > 0) {
		if (!*budget)
			return true;
		--*budget;
		pvr_wq_fetch_recv(&qp->rq, &wqe);
		flush_one_recv(qp, &wqe.hdr);
	}
	return false;
}
