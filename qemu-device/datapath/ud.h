/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, those of the GSI included. */
#ifndef PVR_UD_H
#define PVR_UD_H

#include "datapath/queue.h"

/* Who waits tries again so much later: how to get there may be known by then. */
#define PVR_UD_LATER_NS 2000000ull

enum pvr_ud_sent {
	PVR_UD_SENT, /* or it cannot be, or got lost */
	PVR_UD_BUSY, /* a receiver's adapter is: again in another turn */
	PVR_UD_LATER, /* how to get there will be known soon: again after a while */
};

/**
 * pvr_ud_send() - send a datagram
 * @status: how the request completes
 * @length: what was sent, if successful
 * @work: bytes that this was worth to the turn: copies to a multicast group count
 *
 * What happens at the receiver does not concern the sender (IBTA vol. 1, 9.8.3): it is
 * dropped there and counted.
 *
 * A request that is sent again reaches those of a multicast group that have got it not once
 * more. While it is being found out which other hosts it goes to, or a connection to one is
 * made, it waits in its ring, and all behind it: for 0.2 s at most, and after that in vain
 * later ones do not for a while. With @qp->ud_leaves a copy does so elsewhere.
 */
enum pvr_ud_sent pvr_ud_send(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
			     enum pvrdma_wc_status *status, uint64_t *length, uint64_t *work);

#endif /* PVR_UD_H */
