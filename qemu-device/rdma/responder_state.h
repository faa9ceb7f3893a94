/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a responder keeps of the requests of a connection from outside of this process, so
 * that each of them is executed once however often it arrives.
 */
#ifndef PVR_RESPONDER_STATE_H
#define PVR_RESPONDER_STATE_H

#include "rdma/wr.h"

/* Values that atomics found: no requester has more of them in flight. */
struct pvr_atomic_replay {
	uint32_t count; /* of all that there ever were */
	struct {
		uint32_t psn;
		uint64_t value;
	} last[PVR_MAX_RD_ATOMIC];
};

/* What a queue pair knows as responder to requests from outside of this process. */
struct pvr_responder_state {
	struct pvr_host *from; /* who has sent first */
	struct pvr_atomic_replay *replay; /* NULL: no atomic yet */
	bool nak_sent; /* to send again from its position */
	uint32_t base; /* what is before this was never executed, or so long ago that it cannot come again */
	/* Why it is in error, for a requester that has not heard it. */
	bool has_refused;
	uint8_t status; /* enum pvrdma_wc_status */
	uint32_t psn; /* of the request */
};

/* Where the fragment of a request is, compared with what this queue pair has got. */
enum pvr_place {
	PVR_PSN_DUPLICATE, /* executed already */
	PVR_PSN_EXPECTED,
	PVR_PSN_AHEAD,
	PVR_PSN_INVALID,
};

enum pvr_place pvr_place_of(struct pvr_qp *to, const struct pvr_request *request);

/* The state of @to, which has room for an atomic if @atomic. Return: false if there is no memory. */
bool pvr_host_rq_get(struct pvr_qp *to, struct pvr_host *from, bool atomic);
/* Forget who has sent to it. */
void pvr_responder_state_free(struct pvr_qp *qp);
/* Who has; NULL: nobody yet. */
struct pvr_host *pvr_responder_state_host(const struct pvr_qp *qp);

/* Keeps the value that the atomic at @psn has found. */
void pvr_replay_record(struct pvr_qp *to, uint32_t psn, uint64_t value);
/* Return: whether the value of the atomic at @psn is still known; then it is in @value. */
bool pvr_replay_find(const struct pvr_qp *to, uint32_t psn, uint64_t *value);

#endif /* PVR_RESPONDER_STATE_H */
