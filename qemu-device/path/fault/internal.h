/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The rules of an engine and the state of a queue pair, shared by the files of this folder. */
#ifndef PVR_FAULT_INTERNAL_H
#define PVR_FAULT_INTERNAL_H

#include "path/fault/fault.h"
#include "rdma/flips.h"
#include "rdma/ud.h"

/* A rule in use. Each message loops over all rules of its queue pair, so there are few. */
struct pvr_fault {
	uint32_t id; /* never reused */
	struct pvr_fault_rule rule;
	/* Any worker increments them. */
	uint64_t messages;
	uint64_t injected[PVR_FAULT_KINDS];
	uint64_t refused; /* messages that the responder's host did not let fail there */
};

/* Changes only while no worker runs. */
struct pvr_faults {
	uint64_t gen; /* incremented by each change */
	uint32_t last_id;
	uint32_t num;
	struct pvr_fault *list[PVR_FAULTS_MAX]; /* the oldest is first */
};

static inline void pvr_fault_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* A rule that matches the queue pair. */
struct pvr_fault_use {
	struct pvr_fault *fault; /* valid while @gen is that of the engine's rules */
	uint32_t id; /* of the fault */
	bool is_peer; /* the rule stalls this queue pair: it is the peer of those that it matches */
	struct pvr_fault_state state;
};

/* The rules of faults that the request at the head still has: 1 + index in uses[], or 0. */
struct pvr_fault_by {
	uint8_t error; /* it fails with sq->status */
	uint8_t recv; /* the responder's receive request fails */
	uint8_t rnr; /* the next try gets an RNR NAK */
	uint8_t nak; /* the next try gets a NAK for a sequence error */
	uint8_t stalled; /* the peer does not answer */
	uint8_t port; /* the port goes down before the request */
	uint8_t overtaken, copied; /* the next datagram overtakes this one; it is doubled */
};

/* The state of a queue pair. */
struct pvr_fault_sq {
	uint8_t slots; /* of uses[], allocated */
	uint8_t num; /* of uses[], in use */
	uint64_t gen; /* of the rules in uses[] */
	/* The request at the head of the send queue. */
	bool is_known; /* its faults are decided: it was at the head before */
	bool may_pass; /* this try of it is not lost */
	uint32_t head; /* sq.head of the request */
	uint16_t status; /* of its failure, or PVRDMA_WC_SUCCESS */
	bool overflows; /* its completion finds a full CQ */
	struct pvr_fault_by by;
	uint64_t due; /* not sent before this time in ns */
	uint32_t released; /* requests behind it whose delay ends with its own */
	struct pvr_flips flips; /* its damage; qp->flips if there is some */
	bool asked_is_counted; /* flips.asked */
	/* Of a datagram. */
	bool has_waited; /* for the one that overtakes it */
	struct pvr_ud_treatment treatment; /* if may_pass */
	struct pvr_ud_held *held; /* overtaken by the datagram at the head; or NULL */
	bool releases; /* @held is sent before the datagram at the head */
	uint64_t applies; /* bit i: the rule of uses[i] matches the request at the head */
	struct pvr_fault_use uses[];
};

/* sq.c */

/* Return: whether a rule matches the requests of the queue pair. */
bool pvr_fault_matches_qp(const struct pvr_qp *qp);
/* Return: the state with the rules of now, or NULL: out of memory. */
struct pvr_fault_sq *pvr_fault_sq_get(struct pvr_qp *qp);
void pvr_fault_sq_free(struct pvr_qp *qp);
/* Return: the state of a fault at @qp, or NULL: no request of @qp had it. */
const struct pvr_fault_state *pvr_fault_state_of(const struct pvr_qp *qp, uint32_t id);
/* The queue pair does not send any more: forget its request at the head. */
void pvr_fault_sq_stop(struct pvr_qp *qp);

/* decide.c */

/* Decide all but the losses of a request that is new at the head. @posted: from it on */
void pvr_fault_begin(struct pvr_qp *qp, struct pvr_fault_sq *sq, const struct pvr_opcode *op,
		     uint32_t posted);
/* Return: bytes of the request at the head; the path behind refuses it if they are too many. */
uint64_t pvr_fault_length(const struct pvr_qp *qp);
/* Set the port down if a fault of the request at the head does that. */
void pvr_fault_set_port_down(struct pvr_qp *qp, struct pvr_fault_sq *sq);
/* Return: whether this try of the request at the head is lost. */
bool pvr_fault_is_lost(struct pvr_fault_sq *sq);

/* fault.c */

bool pvr_fault_is_sending(const struct pvr_qp *qp);
/* Fail the request at the head with sq->status, a local error, or by an overflow of its CQ. */
void pvr_fault_fail(struct pvr_qp *qp, struct pvr_fault_sq *sq, const struct pvr_send_wqe *wqe);

/* ud.c */

enum pvr_quantum pvr_fault_run_ud(struct pvr_qp *qp);

#endif /* PVR_FAULT_INTERNAL_H */
