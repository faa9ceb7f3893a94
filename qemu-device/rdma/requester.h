/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: executes send queues. */
#ifndef PVR_REQUESTER_H
#define PVR_REQUESTER_H

#include "core/wq.h"

/* A quantum ends after so many requests or bytes; a fragment is never larger than that. */
#define PVR_QUANTUM_REQUESTS 64
#define PVR_QUANTUM_BYTES (256u << 10)

enum pvr_quantum {
	PVR_QUANTUM_DONE, /* nothing to do, or it waits */
	PVR_QUANTUM_MORE, /* it could go on at once */
	PVR_QUANTUM_BUSY, /* the peer's adapter is busy */
};

/* What a quantum may still do. */
struct pvr_quantum_budget {
	unsigned int batch; /* requests that are known to wait, and are of this quantum */
	unsigned int left; /* how many more the quantum may have */
	uint64_t bytes; /* that it has moved */
};

/* What became of the request at the head. */
enum pvr_step {
	PVR_STEP_NEXT, /* it is completed */
	PVR_STEP_AGAIN, /* a fragment is done, the quantum is over */
	PVR_STEP_STOP, /* it waits, or the queue pair has failed */
	PVR_STEP_BUSY, /* it is as it was: the peer's adapter is busy */
};

/* A quantum for the queue pair, whose adapter may do DMA. */
enum pvr_quantum pvr_requester_run(struct pvr_qp *qp);
/* What had begun before SQD is finished. */
void pvr_requester_drained(struct pvr_qp *qp);
/* The guest's producer index is no index of its ring: the queue pair fails. */
void pvr_requester_bad_index(struct pvr_qp *qp);

/* Looks at the ring for the next requests of this quantum. Return: whether there are some. */
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

/**
 * pvr_requester_each() - execute the requests at the head, one after the other
 * @step: executes one; always inlined, so there is no indirect call
 *
 * Return: how the quantum ends.
 */
static pvr_always_inline enum pvr_quantum
pvr_requester_each(struct pvr_qp *qp, struct pvr_quantum_budget *budget,
		   enum pvr_step (*step)(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
					 struct pvr_quantum_budget *budget))
{
	struct pvr_send_wqe wqe;
	enum pvr_step result;

	while (budget->bytes < PVR_QUANTUM_BYTES) {
		if (!budget->batch && !pvr_requester_take_batch(qp, budget))
			return budget->left ? PVR_QUANTUM_DONE : PVR_QUANTUM_MORE;
		pvr_wq_fetch_send(&qp->sq, &wqe);
		result = step(qp, &wqe, budget);
		if (result == PVR_STEP_NEXT)
			budget->batch--;
		else if (result != PVR_STEP_AGAIN)
			return result == PVR_STEP_BUSY ? PVR_QUANTUM_BUSY : PVR_QUANTUM_DONE;
		if (qp->state == PVR_QPS_RTS)
			continue;
		/* Completing may have failed the CQ, and the queue pair with it. */
		if (!qp->sq_draining)
			return PVR_QUANTUM_MORE;
		if (result == PVR_STEP_NEXT) {
			pvr_requester_drained(qp);
			return PVR_QUANTUM_DONE;
		}
	}
	return PVR_QUANTUM_MORE;
}

/* A quantum would find a request; the QP's memory must be there. */
bool pvr_requester_has_work(const struct pvr_qp *qp);

/* What an RNR NAK or a missing answer has waited for is worth another try. */
void pvr_requester_resume(struct pvr_qp *qp);
void pvr_requester_timeout(struct pvr_timer *timer);

/* RTS -> SQD: what has begun is finished first. */
void pvr_requester_drain(struct pvr_qp *qp);

#endif /* PVR_REQUESTER_H */
