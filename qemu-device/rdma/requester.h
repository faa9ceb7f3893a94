/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: executes send queues. */
#ifndef PVR_REQUESTER_H
#define PVR_REQUESTER_H

#include "rdma/completer.h"
#include "rdma/wr.h"

/*
 * Limits of a quantum in requests and bytes, unless rdma/shaper.h sets lower ones. A fragment
 * has at most PVR_QUANTUM_BYTES.
 */
#define PVR_QUANTUM_REQUESTS 64
#define PVR_QUANTUM_BYTES (256u << 10)
/*
 * The same while other adapters of the worker have work: a small message of one of them waits
 * for a quantum of each.
 */
#define PVR_QUANTUM_BYTES_SHARED (64u << 10)

enum pvr_quantum {
	PVR_QUANTUM_DONE, /* no work, or the send queue waits */
	PVR_QUANTUM_MORE, /* another quantum has work at once */
	PVR_QUANTUM_BUSY, /* the peer's adapter is locked */
};

/* The remaining limits of a quantum. */
struct pvr_quantum_budget {
	unsigned int batch; /* posted requests that this quantum still executes */
	unsigned int left; /* requests that may be added to batch */
	uint64_t bytes; /* moved so far */
	uint64_t max_bytes; /* of the quantum, and of a fragment */
	enum pvr_quantum result; /* of the quantum, when its loop ends */
};

/* Result of an execution step for the request at the head. */
enum pvr_step {
	PVR_STEP_NEXT, /* completed */
	PVR_STEP_AGAIN, /* a fragment is done; the request continues */
	PVR_STEP_STOP, /* the send queue waits, or the queue pair has failed */
	PVR_STEP_BUSY, /* unchanged: the peer's adapter is locked */
};

/* The limits of a quantum that begins. @max: requests */
static pvr_always_inline struct pvr_quantum_budget pvr_requester_budget(const struct pvr_qp *qp,
									unsigned int max)
{
	return (struct pvr_quantum_budget){
		.left = max,
		.max_bytes = qp->adapter->quantum_bytes,
	};
}

/* Run a quantum of the queue pair. The caller has checked that its adapter may do DMA. */
enum pvr_quantum pvr_requester_run(struct pvr_qp *qp);
/* Requests that had begun before SQD are complete: the send queue has drained. */
void pvr_requester_drained(struct pvr_qp *qp);
/* Fail the queue pair: the guest's producer index is out of range. */
void pvr_requester_bad_index(struct pvr_qp *qp);
/*
 * Return: whether the queue has a request at its head. A quantum that executes none must call
 * this: a producer index out of range, or before the requests in flight, counts as work, and
 * fails the queue pair here.
 */
bool pvr_requester_has_request(struct pvr_qp *qp);

/*
 * Load the producer index for further requests of this quantum. Return: true if there are
 * some.
 */
static pvr_always_inline bool pvr_requester_take_batch(struct pvr_qp *qp,
						       struct pvr_quantum_budget *budget)
{
	int avail = budget->left ? pvr_wq_avail(&qp->sq) : 0;

	if (avail < 0) {
		pvr_requester_bad_index(qp);
		return false;
	}
	budget->batch = (unsigned int)avail < budget->left ? (unsigned int)avail : budget->left;
	budget->left -= budget->batch;
	return budget->batch;
}

/*
 * The loop of a quantum: pvr_requester_fetch() gets the request at the head, and the
 * function after it takes the result of its step. The loop ends when one of them returns
 * false; budget->result is then the result of the quantum. Both are inline: each message
 * uses them.
 */
static pvr_always_inline bool
pvr_requester_fetch(struct pvr_qp *qp, struct pvr_quantum_budget *budget, struct pvr_send_wqe *wqe)
{
	if (budget->bytes >= budget->max_bytes) {
		budget->result = PVR_QUANTUM_MORE;
		return false;
	}
	if (!budget->batch && !pvr_requester_take_batch(qp, budget)) {
		budget->result = budget->left ? PVR_QUANTUM_DONE : PVR_QUANTUM_MORE;
		return false;
	}
	pvr_wq_fetch_send(&qp->sq, wqe);
	return true;
}

static pvr_always_inline bool
pvr_requester_go_on(struct pvr_qp *qp, struct pvr_quantum_budget *budget, enum pvr_step step)
{
	if (step == PVR_STEP_NEXT) {
		budget->batch--;
	} else if (step != PVR_STEP_AGAIN) {
		budget->result = step == PVR_STEP_BUSY ? PVR_QUANTUM_BUSY : PVR_QUANTUM_DONE;
		return false;
	}
	if (qp->state == PVR_QPS_RTS)
		return true;
	/* The completion may have overrun the CQ, which moves the queue pair to ERR. */
	if (!qp->sq_draining) {
		budget->result = PVR_QUANTUM_MORE;
		return false;
	}
	if (step != PVR_STEP_NEXT)
		return true;
	pvr_requester_drained(qp);
	budget->result = PVR_QUANTUM_DONE;
	return false;
}

/* True if a quantum has work. */
bool pvr_requester_has_work(const struct pvr_qp *qp);

/* End a wait for a receive or a response: retry in the next quantum. */
void pvr_requester_resume(struct pvr_qp *qp);
void pvr_requester_timeout(struct pvr_timer *timer);

/* RTS -> SQD: a request that has begun completes first. */
void pvr_requester_drain(struct pvr_qp *qp);

/*
 * Describe the next fragment of the request at the head, whose memory is all of @sg. @max: its
 * bytes at most
 */
static pvr_always_inline struct pvr_request
pvr_requester_fragment(const struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		       const struct pvr_opcode *op, const struct pvr_sg *sg, uint64_t max)
{
	uint64_t left = sg->total - qp->sq_offset;

	return (struct pvr_request){
		.from = &qp->req_src,
		.wqe = wqe,
		.op = op,
		.local = sg,
		.length = sg->total,
		.offset = qp->sq_offset,
		.chunk = left < max ? left : max,
		.psns = pvr_psns(qp, sg->total),
		.last = left <= max,
	};
}

/* The fragment is acknowledged, or it is of UC and sent: complete the request after its last. */
static pvr_always_inline enum pvr_step pvr_requester_ack(struct pvr_qp *qp,
							 const struct pvr_request *request,
							 struct pvr_quantum_budget *budget)
{
	budget->bytes += request->chunk;
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->unanswered = false;
	qp->rnr_nak = false;
	if (!request->last) {
		qp->sq_offset += request->chunk;
		return PVR_STEP_AGAIN;
	}
	qp->sq_psn = (qp->sq_psn + request->psns) & 0xffffff;
	pvr_send_complete(qp, request->wqe, PVRDMA_WC_SUCCESS, request->length);
	return PVR_STEP_NEXT;
}

#endif /* PVR_REQUESTER_H */
