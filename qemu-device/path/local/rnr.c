// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requesters that wait for a receive request of a peer on the same host. */
#include "path/local/rnr.h"

#include "core/wq.h"
#include "rdma/requester.h"
#include "rdma/sched.h"
#include "path/local/local.h"
#include "rdma/qp.h"
#include "rdma/rq.h"
#include "rdma/completer.h"

#define LOOKS 4
#define FIRST_LOOK_NS 20000ull
/* 1/PART of a queue is enough to resume the requester. */
#define PART 4

/* @deadline: a running time */
static void wait_until(struct pvr_qp *qp, enum pvr_qp_wait wait, uint64_t deadline)
{
	struct pvr_timers *timers = &qp->adapter->timers;

	qp->wait = wait;
	pvr_timer_set(timers, &qp->timer, pvr_timers_with_pauses(timers, deadline));
}

/*
 * Return: false if a receive was posted before the guest could see the request for a
 * doorbell.
 */
static bool ask_for_doorbell(struct pvr_qp *peer)
{
	pvr_qp_set_rnr_nak_sent(peer, true);
	if (!pvr_wq_avail(&peer->rq))
		return true;
	pvr_qp_set_rnr_nak_sent(peer, false);
	return false;
}

/*
 * After an RNR NAK or a poll. Return: false if a receive is available: no wait is
 * necessary.
 */
static bool wait_on(struct pvr_qp *qp, struct pvr_qp *peer, uint64_t now)
{
	uint64_t next = now + (FIRST_LOOK_NS << qp->rnr_polls);

	if (qp->rnr_polls < LOOKS && next < qp->rnr_until) {
		qp->rnr_polls++;
		wait_until(qp, PVR_QP_WAIT_RNR_POLL, next);
		return true;
	}
	if (!ask_for_doorbell(peer))
		return false;
	wait_until(qp, PVR_QP_WAIT_RNR, qp->rnr_until);
	return true;
}

void pvr_rnr_wait(struct pvr_qp *qp, struct pvr_qp *peer, uint64_t ns)
{
	uint64_t now;

	if (!pvr_rnr_is_polled(peer)) {
		pvr_requester_wait_rnr(qp, ns);
		return;
	}
	now = pvr_running_time(qp->adapter);
	qp->rnr_until = now + ns;
	qp->rnr_polls = qp->rnr_slow ? LOOKS : 0;
	qp->rnr_seen = 0;
	if (!wait_on(qp, peer, now))
		pvr_sched_kick(qp);
}

/*
 * If the peer has gone, has changed or is in error, resume: the responder decides the
 * result.
 */
static bool may_go_on(struct pvr_qp *qp, const struct pvr_qp *peer)
{
	uint32_t seen = qp->rnr_seen, avail;

	if (!pvr_local_can_receive(peer) || !pvr_rnr_is_polled(peer))
		return true;
	avail = (uint32_t)pvr_wq_avail(&peer->rq); /* a negative value becomes a very large one */
	qp->rnr_seen = avail;
	return avail >= peer->rq.count / PART || (avail && avail == seen);
}

bool pvr_rnr_poll(struct pvr_qp *qp)
{
	uint64_t now = pvr_running_time(qp->adapter);
	struct pvr_qp *peer;

	if (pvr_timer_is_set(&qp->timer))
		return true;
	if (!pvr_local_peer(qp, &peer))
		return false;
	if (may_go_on(qp, peer) || !wait_on(qp, peer, now))
		qp->wait = PVR_QP_RUNNING;
	return true;
}
