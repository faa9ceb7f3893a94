/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PVR_EXT_DB_SUPPRESS: telling the guest which doorbells it need not ring, and looking at
 * send queues that ring none.
 *
 * DOC: who sees whom
 *
 * Both sides do a store, a full barrier and a load, so that of a request posted just
 * when we stop looking at least one side learns:
 *
 *	guest				device
 *	prod_tail = new			word = 0
 *	full barrier			full barrier
 *	load word; ring if 0		load prod_tail; go on if there is something
 *
 * A word that goes from 0 to 1 needs no order: who saw the 1 is found by the last look
 * that comes before the next 0, at the latest.
 *
 * DOC: a send queue's word, by what the queue pair does
 *
 *	ready, or in its turn	1; the quantum ends with a look at the ring
 *	polled			1; RTS only, see pvr_db_poll()
 *	waits (RNR, ACK)	1; the timer, the peer's receive or a new state ends it
 *	at rest			0; nothing to be executed in this state was there after the 0
 *	RESET			0
 *	adapter without DMA	as it was, as we may not write; bus master gives all a quantum
 *
 * A change of state always gives a quantum, so what was posted in a state that executes
 * nothing (INIT, RTR, SQD) is found without a doorbell.
 *
 * DOC: a receive queue's word
 *
 * 1, as the responder looks for itself, but 0 while a requester waits for a receive (who
 * says so looks once more behind that 0, see get_recv() and path/local/rnr.h), in ERR, where
 * the quantum that follows flushes what came before the 0, and in RESET. Of an SRQ: 0 while
 * the requester of any of its queue pairs waits, or when it is broken.
 *
 * The guest can write to the words: they are never read back.
 */
#ifndef PVR_DB_SUPPRESS_H
#define PVR_DB_SUPPRESS_H

#include "core/objects.h"

/* The words of a new queue pair or SRQ, or of an SRQ in a new ring. */
void pvr_db_init_qp(struct pvr_qp *qp);
void pvr_db_init_srq(struct pvr_srq *srq);

/* @qp will get a quantum: its send queue needs no doorbell, nor to be polled. */
void pvr_db_disable(struct pvr_qp *qp);

/*
 * The quantum of @qp is over: poll it, let it wait, or lay it to rest. Return: true if
 * something was posted meanwhile, for another quantum.
 */
bool pvr_db_idle(struct pvr_qp *qp);

/* @qp gets no turns: it is in RESET. */
void pvr_db_reset(struct pvr_qp *qp);
/* It goes; its memory is not written to, as it may be another driver's already. */
void pvr_db_exit_qp(struct pvr_qp *qp);

/*
 * The state, or who waits, has changed: 0 if the guest has to tell of the next receive,
 * from @qp's own queue or its SRQ. What is loaded afterwards is loaded behind that.
 */
void pvr_db_update_rq(struct pvr_qp *qp);
void pvr_db_update_srq(struct pvr_srq *srq);

/*
 * Looks at those send queues of @adapter that were busy last, and from now on keeps
 * such queues. Return: true if it has found a request.
 */
bool pvr_db_poll(struct pvr_adapter *adapter);
/* That would do nothing. Needs no lock: what comes just now is found by the next poll. */
static inline bool pvr_db_has_nothing(const struct pvr_adapter *adapter)
{
	return __atomic_load_n(&adapter->polled.on, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&adapter->polled.count, __ATOMIC_RELAXED);
}

/* No more looking. Return: false if a request came meanwhile: its QP gets a quantum. */
bool pvr_db_enable_all(struct pvr_adapter *adapter);

#endif /* PVR_DB_SUPPRESS_H */
