// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: datagrams. They have no responses, and each has a destination of its own. */
#include "core/objects.h"
#include "path/fault/internal.h"
#include "rdma/completer.h"
#include "rdma/ud.h"

/* A datagram that the next one overtakes waits for it this long, if it is not posted yet. */
#define OVERTAKE_WAIT_NS 1000000u

/* Return: whether the datagram at the head waits for the one that overtakes it. */
static bool awaits_next(struct pvr_qp *qp, struct pvr_fault_sq *sq, uint32_t posted)
{
	if (!sq->by.overtaken || sq->held || sq->has_waited || posted > 1)
		return false;
	sq->has_waited = true;
	pvr_requester_await(qp, OVERTAKE_WAIT_NS);
	return true;
}

/* Decided once, when nothing holds the datagram any more. */
static void treat(struct pvr_fault_sq *sq, uint32_t posted)
{
	struct pvr_fault *fault;

	sq->may_pass = true;
	sq->treatment = (struct pvr_ud_treatment){
		.copies = 1,
		.flips = sq->flips.num ? &sq->flips : NULL,
	};
	if (pvr_fault_is_lost(sq)) {
		sq->treatment.copies = 0;
		return;
	}
	if (sq->by.recv) {
		fault = sq->uses[sq->by.recv - 1].fault;
		sq->treatment.recv_status = fault->rule.recv_status;
		pvr_fault_count(&fault->injected[PVR_FAULT_RECV_ERROR]);
	}
	if (sq->by.copied) {
		sq->treatment.copies = 2;
		pvr_fault_count(&sq->uses[sq->by.copied - 1].fault->injected[PVR_FAULT_DUPLICATE]);
	}
	sq->treatment.holds = sq->by.overtaken && !sq->held && posted > 1;
}

/* Return: whether the datagram at the head is executed now. */
static bool decide(struct pvr_qp *qp, struct pvr_fault_sq *sq, uint32_t posted)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	const struct pvr_opcode *op;
	uint64_t now;

	if (sq->may_pass && sq->is_known)
		return true;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	op = pvr_opcode(wqe.hdr.opcode);
	/* The queue pair fails without faults. */
	if (op->kind != PVR_OP_SEND) {
		sq->treatment = (struct pvr_ud_treatment){ .copies = 1 };
		return true;
	}
	if (!sq->is_known || sq->head != qp->sq.head)
		pvr_fault_begin(qp, sq, op, posted);
	now = sq->due ? pvr_now(qp->adapter->engine) : 0;
	if (now < sq->due) {
		pvr_requester_await(qp, sq->due - now);
		return false;
	}
	pvr_fault_set_port_down(qp, sq);
	if (sq->status || sq->overflows) {
		pvr_fault_fail(qp, sq, &wqe);
		return false;
	}
	if (awaits_next(qp, sq, posted))
		return false;
	treat(sq, posted);
	return true;
}

/* Send the datagram that was overtaken. Return: false if an adapter is locked. */
static bool release(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	if (!pvr_ud_send_held(qp, sq->held))
		return false;
	pvr_ud_free_held(qp->adapter, sq->held);
	sq->held = NULL;
	return true;
}

/* The datagram at the head has completed. */
static enum pvr_quantum completed(struct pvr_qp *qp, struct pvr_fault_sq *sq,
				  enum pvr_quantum result)
{
	struct pvr_ud_held *overtaken = sq->treatment.held;

	sq->is_known = false;
	sq->may_pass = false;
	sq->treatment.held = NULL;
	if (overtaken) {
		sq->held = overtaken;
		pvr_fault_count(&sq->uses[sq->by.overtaken - 1].fault->injected[PVR_FAULT_REORDER]);
		return result;
	}
	sq->releases = sq->held;
	return result;
}

static enum pvr_quantum run_one(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	enum pvr_quantum result;
	uint32_t head = qp->sq.head;
	int posted;

	if (sq->releases) {
		if (!release(qp, sq))
			return PVR_QUANTUM_BUSY;
		sq->releases = false;
	}
	posted = pvr_wq_avail(&qp->sq);
	if (posted <= 0)
		return pvr_ud_run_treated(qp, 1, NULL);
	if (!decide(qp, sq, (uint32_t)posted))
		return PVR_QUANTUM_DONE;
	result = pvr_ud_run_treated(qp, 1, &sq->treatment);
	return qp->sq.head == head ? result : completed(qp, sq, result);
}

enum pvr_quantum pvr_fault_run_ud(struct pvr_qp *qp)
{
	const uint64_t *sent = &qp->adapter->stat[PVR_STAT_TX_BYTES];
	struct pvr_fault_sq *sq = pvr_fault_sq_get(qp);
	enum pvr_quantum result = PVR_QUANTUM_MORE;
	unsigned int left = qp->adapter->quantum_requests;
	uint64_t before = *sent;

	/* The guest has reached its limit, or the host has no memory. */
	if (!sq) {
		pvr_requester_wait(qp);
		return PVR_QUANTUM_DONE;
	}
	/* So the functions of the path of faults end its state. */
	qp->path_id = PVR_PATH_FAULT;
	qp->path_behind = PVR_PATH_DEFAULT;
	if (!sq->num && !sq->held)
		return pvr_ud_run_treated(qp, left, NULL);
	for (; left && result == PVR_QUANTUM_MORE; left--) {
		result = run_one(qp, sq);
		if (!pvr_fault_is_sending(qp) || *sent - before >= qp->adapter->quantum_bytes)
			break;
	}
	return result;
}
