/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requesters that wait for a receive request of a peer on the same host.
 *
 * DOC: detecting the next receive request
 *
 * * A short receive queue, and each SRQ, is detected by its doorbell. When a requester
 *   starts to wait, the doorbell suppression word becomes 0 (PVR_EXT_DB_SUPPRESS). The
 *   first receive that is posted then rings and resumes the requester.
 * * A long receive queue is polled first. Its guest usually posts already, as fast as it
 *   can. A doorbell per message would make the pair run in steps of one message and one
 *   wake-up.
 * * The requester's timer polls a long queue up to 4 times within 0.3 ms. The first
 *   interval is 20 us, and each interval is twice the one before.
 * * The requester resumes when a quarter of the queue is filled, or when the queue has
 *   receives and their number has not changed since the last poll.
 * * After the last poll without receives, the guest is asked for a doorbell, as with a
 *   short queue. A guest that posts nothing costs a few timers.
 * * If a wait took more than 2 ms, the next wait starts with the doorbell and without
 *   polls.
 * * A stock driver always rings, so its queues are never polled.
 * * An RNR poll is no retry: rnr_retry and the RNR timer do not change. When the RNR
 *   timer expires, the request is sent again, and a second RNR NAK counts.
 */
#ifndef PVR_RNR_H
#define PVR_RNR_H

#include "core/objects.h"

/*
 * Starts the wait of @qp after an RNR NAK.
 * @peer: the queue pair that sent the NAK; its adapter is locked
 * @ns: nanoseconds until the RNR timer resends the request at the latest
 */
void pvr_rnr_wait(struct pvr_qp *qp, struct pvr_qp *peer, uint64_t ns);

/*
 * Polls the receive queue for @qp, which waits in PVR_QP_WAIT_RNR_POLL, if a poll is due.
 * On success @qp->wait may be PVR_QP_RUNNING.
 * Return: false if the peer's adapter is locked by another worker.
 */
bool pvr_rnr_poll(struct pvr_qp *qp);

#endif /* PVR_RNR_H */
