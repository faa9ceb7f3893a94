/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requesters that wait because their responder has no receive request.
 *
 * DOC: who tells of the next receive
 *
 * A short queue, and each SRQ, is rung for: its word says 0 (PVR_EXT_DB_SUPPRESS) as soon as a
 * requester waits, and the first receive that is posted wakes it. Where a long queue runs
 * dry that is no good: its guest is posting already, as fast as it can, and so the pair
 * would go on in steps of one message, each with a doorbell and a wake-up.
 *
 * So the requester looks at a long queue by itself, with its timer, a few times within
 * 0.3 ms, each distance twice the one before. It goes on when a part of the queue is filled, or
 * when there are receives and no more of them come. If there are none after the last look,
 * the guest is asked for its doorbell as with short queues. So one that posts nothing costs a
 * few timers; and where a wait took above 2 ms, the next begins with the doorbell. A stock
 * driver rings always, so nobody looks at its queues.
 *
 * A look is no retry: it leaves rnr_retry and the RNR timer as they were. When that expires
 * the request is tried again, and a second NAK counts.
 */
#ifndef PVR_RNR_H
#define PVR_RNR_H

#include "core/objects.h"

/*
 * @qp got an RNR NAK and tries again in @ns at the latest. @peer: who sent it, and is held.
 */
void pvr_rnr_wait(struct pvr_qp *qp, struct pvr_qp *peer, uint64_t ns);

/*
 * A quantum of @qp, which waits as PVR_QP_WAIT_RNR_POLL: if a look is due it may be running now.
 * Return: false if its peer is busy.
 */
bool pvr_rnr_poll(struct pvr_qp *qp);

#endif /* PVR_RNR_H */
