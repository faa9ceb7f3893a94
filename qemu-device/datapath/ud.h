/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, those of the GSI included. */
#ifndef PVR_UD_H
#define PVR_UD_H

#include "datapath/queue.h"

/**
 * pvr_ud_send() - send a datagram
 * @status: how the request completes
 * @length: what was sent, if successful
 * @work: bytes that this was worth to the turn: copies to a multicast group count
 *
 * What happens at the receiver does not concern the sender (IBTA vol. 1, 9.8.3): it is
 * dropped there and counted.
 *
 * Return: true, or false if a receiver's adapter is busy: the request has to be sent again
 * in another turn, and those of a multicast group that have got it will not get it twice.
 */
bool pvr_ud_send(struct pvr_qp *qp, struct pvr_send_wqe *wqe, enum pvrdma_wc_status *status,
		 uint64_t *length, uint64_t *work);

#endif /* PVR_UD_H */
