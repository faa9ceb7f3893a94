/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Whose turn it is: queue pairs with work, in bounded turns, round robin. */
#include "datapath/sched.h"

#include <errno.h>

#include "datapath/queue.h"
#include "datapath/quiet.h"
#include "datapath/requester.h"
#include "model/objects.h"
#include "transport/local.h"

#define TURNS_PER_RUN 32

void pvr_sched_kick(struct pvr_qp *qp)
{
	if (qp->is_ready)
		return;
	qp->is_ready = true;
	pvr_quiet_work(qp);
	TAILQ_INSERT_TAIL(&qp->adapter->engine->ready, qp, ready);
}

void pvr_sched_remove(struct pvr_qp *qp)
{
	if (!qp->is_ready)
		return;
	qp->is_ready = false;
	TAILQ_REMOVE(&qp->adapter->engine->ready, qp, ready);
}

/* Return: whether it had been asleep. */
static bool wake_peer(struct pvr_qp *qp)
{
	struct pvr_qp *peer;

	if (!qp->peer_waits)
		return false;
	pvr_qp_set_peer_waits(qp, false);
	peer = pvr_local_peer(qp);
	if (!peer || peer->wait != PVR_QP_WAITS_RNR)
		return false;
	pvr_requester_resume(peer);
	return true;
}

void pvr_sched_posted_recv(struct pvr_qp *qp)
{
	if (qp->state == PVR_QPS_ERR)
		pvr_sched_kick(qp);
	else
		wake_peer(qp);
}

void pvr_sched_posted_srq(struct pvr_srq *srq)
{
	int left = srq->error ? -EIO : pvr_wq_avail(&srq->wq);
	bool all = left < 0; /* they will find that it is broken */
	struct pvr_qp *qp;

	/*
	 * No more than there are requests for: the others would ask in vain, which takes a
	 * turn, and a retry of those they have. Who is woken gets its turn later, so none
	 * comes to wait again meanwhile.
	 */
	while ((all || left > 0) && (qp = TAILQ_FIRST(&srq->waiting)))
		left -= wake_peer(qp);
	/* Who waited may be gone. */
	pvr_quiet_srq(srq);
}

bool pvr_sched_run(struct pvr_engine *engine)
{
	unsigned int turns = TURNS_PER_RUN;
	struct pvr_qp *qp;

	while (turns-- && (qp = TAILQ_FIRST(&engine->ready))) {
		pvr_sched_remove(qp);
		if (pvr_requester_turn(qp) || pvr_quiet_stop(qp))
			pvr_sched_kick(qp);
	}
	return !TAILQ_EMPTY(&engine->ready);
}
