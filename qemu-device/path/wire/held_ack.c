// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Held ACKs of the wire path's responder.
 *
 * DOC: held ACKs
 *
 * - A frame of its own costs as much as a small message, at both ends. Guests that exchange
 *   messages answer at once, so the ACK may wait for the answer, and both leave by one system call.
 * - A responder whose queue pair has sent a message soon after an ACK expects that again, and holds
 *   the next ACK. One that was held in vain is sent after PVR_ETH_HOLD_NS, and the next one at once.
 * - Only a worker that polls holds an ACK: it notices the end of that time, and the answer, at once.
 * - An adapter holds one ACK. It is that of few bytes: the requester does not wait for it.
 */
#include "path/wire/internal.h"

#include "rdma/cq.h"
#include "rdma/worker.h"

static void let_go(struct pvr_eth_adapter *wire)
{
	wire->held = NULL;
	if (pvr_timer_is_set(&wire->hold))
		pvr_timer_cancel(&wire->adapter->timers, &wire->hold);
}

void pvr_eth_forget_held(struct pvr_eth_rq *rq)
{
	struct pvr_eth_adapter *wire = rq->qp->adapter->wire;

	if (wire->held == rq)
		let_go(wire);
}

void pvr_eth_send_held(struct pvr_eth_adapter *wire)
{
	struct pvr_eth_rq *rq = wire->held;

	if (!rq)
		return;
	let_go(wire);
	/* pvr_eth_answer() sends it behind the answers. */
	if (!rq->count)
		pvr_eth_ack_behind(rq);
}

static bool may_hold(const struct pvr_eth_batch *batch)
{
	const struct pvr_eth_rq *rq = batch->acks;

	return rq->expects_answer && !rq->count && !rq->nak_due && !batch->wire->held &&
	       batch->unacked <= PVR_ETH_HOLD_BYTES &&
	       __atomic_load_n(&batch->wire->adapter->worker->polls, __ATOMIC_RELAXED);
}

bool pvr_eth_hold_ack(struct pvr_eth_batch *batch)
{
	struct pvr_eth_adapter *wire = batch->wire;

	if (!batch->acks || !may_hold(batch))
		return false;
	wire->held = batch->acks;
	batch->acks = NULL;
	pvr_eth_set_timer(wire, &wire->hold, PVR_ETH_HOLD_NS);
	return true;
}

void pvr_eth_answered(struct pvr_qp *qp, uint64_t now)
{
	struct pvr_eth_adapter *wire = qp->adapter->wire;
	struct pvr_eth_rq *rq = pvr_eth_rq(qp);

	if (rq && rq->acked) {
		rq->expects_answer = now - rq->acked < PVR_ETH_HOLD_NS;
		rq->acked = 0;
	}
	pvr_eth_send_held(wire);
}

void pvr_eth_hold_timer(struct pvr_timer *timer)
{
	struct pvr_eth_adapter *wire =
		(struct pvr_eth_adapter *)((char *)timer - offsetof(struct pvr_eth_adapter, hold));

	if (wire->held)
		wire->held->expects_answer = false;
	pvr_eth_send_held(wire);
	pvr_eth_flush(wire);
}
