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
	enum pvr_quantum result; /* how it ends */
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

/*
 * The loop of a quantum: while the first function gives a request and the second one, told
 * what became of it, says to go on. budget->result then says how the quantum ends. Both are
 * inline, as each message passes through them.
 */
static pvr_always_inline bool
pvr_requester_fetch(struct pvr_qp *qp, struct pvr_quantum_budget *budget, struct pvr_send_wqe *wqe)
{
	if (budget->bytes >= PVR_QUANTUM_BYTES) {
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
	/* Completing may have failed the CQ, and the queue pair with it. */
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

/* A quantum would find a request; the QP's memory must be there. */
bool pvr_requester_has_work(const struct pvr_qp *qp);

/* What an RNR NAK or a missing answer has waited for is worth another try. */
void pvr_requester_resume(struct pvr_qp *qp);
void pvr_requester_timeout(struct pvr_timer *timer);

/* RTS -> SQD: what has begun is finished first. */
void pvr_requester_drain(struct pvr_qp *qp);

#endif /* PVR_REQUESTER_H */
