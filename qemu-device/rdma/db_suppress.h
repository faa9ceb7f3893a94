/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PVR_EXT_DB_SUPPRESS: doorbell suppression words, and polling of suppressed send queues.
 *
 * DOC: order of memory accesses
 *
 * Both sides do a store, a full barrier and a load. So at least one side sees a request
 * that is posted at the moment in which the device stops polling:
 *
 *	guest				device
 *	prod_tail = new			word = 0
 *	full barrier			full barrier
 *	load word; ring if 0		load prod_tail; continue if there is a request
 *
 * A change from 0 to 1 needs no order: the device loads prod_tail once more after the
 * next 0, and finds every request whose doorbell the 1 suppressed.
 *
 * DOC: the word of a send queue, by the state of its queue pair
 *
 *	ready, or in a quantum	1; the quantum ends with a load of prod_tail
 *	polled			1; RTS only, see pvr_db_poll()
 *	waits (RNR, ACK)	1; the timer, the peer's receive or a new state ends the wait
 *	idle			0; after the 0 there was no request for this state to execute
 *	requests in flight	1; each response gives the queue pair a quantum
 *	RESET			0
 *	adapter without DMA	unchanged; all queue pairs get a quantum when DMA is on again
 *
 * Each change of state but that to RESET gives the queue pair a quantum. So requests that
 * were posted in a state that executes none (INIT, RTR, SQD) need no doorbell.
 *
 * DOC: the word of a receive queue
 *
 *	requester waits		0; the responder loads prod_tail after the 0, see get_recv()
 *				and path/local/rnr.h
 *	ERR			0; the next quantum flushes requests that came before the 0
 *	RESET			0
 *	else			1; the responder loads prod_tail for each message
 *
 * The word of an SRQ is 0 while the requester of one of its queue pairs waits, and when
 * the SRQ is in error.
 *
 * The guest can write to the words: the device never reads them.
 */
#ifndef PVR_DB_SUPPRESS_H
#define PVR_DB_SUPPRESS_H

#include "core/objects.h"

/* Initialize the words of a new queue pair or SRQ, or of an SRQ in a new ring. */
void pvr_db_init_qp(struct pvr_qp *qp);
void pvr_db_init_srq(struct pvr_srq *srq);

/* Use the words of a loaded queue pair or SRQ, as they are. */
void pvr_db_attach_qp(struct pvr_qp *qp);
void pvr_db_attach_srq(struct pvr_srq *srq);

/* @qp will get a quantum: suppress its send doorbells and stop polling its send queue. */
void pvr_db_disable(struct pvr_qp *qp);

/*
 * The quantum of @qp is over: poll its send queue, leave it in its wait, or enable its
 * doorbells. Return: true if it needs another quantum for requests posted meanwhile.
 */
bool pvr_db_idle(struct pvr_qp *qp);

/* @qp is in RESET: it gets no quantum. */
void pvr_db_reset(struct pvr_qp *qp);
/*
 * @qp is destroyed. Its memory is not written: it may belong to another driver already.
 */
void pvr_db_exit_qp(struct pvr_qp *qp);

/*
 * Update the receive word of @qp, or of its SRQ, after a change of the state or of the
 * waiting requesters: 0 if the guest must ring for its next receive. A full barrier
 * follows the 0.
 */
void pvr_db_update_rq(struct pvr_qp *qp);
void pvr_db_update_srq(struct pvr_srq *srq);

/*
 * Poll the recently busy send queues of @adapter, and from now on poll each queue after
 * its quantum. Return: true if a request was found.
 */
bool pvr_db_poll(struct pvr_adapter *adapter);
/*
 * True if pvr_db_poll() would do nothing. Needs no lock: the next poll finds later
 * requests.
 */
static inline bool pvr_db_has_nothing(const struct pvr_adapter *adapter)
{
	return __atomic_load_n(&adapter->polled.on, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&adapter->polled.count, __ATOMIC_RELAXED);
}

/*
 * End polling and enable doorbells. Return: false if a request was found: its QP gets a
 * quantum.
 */
bool pvr_db_enable_all(struct pvr_adapter *adapter);

#endif /* PVR_DB_SUPPRESS_H */
