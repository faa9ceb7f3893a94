/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * State of a responder to requests from another process. It makes the responder execute
 * each request once, however often the request arrives.
 */
#ifndef PVR_RESPONDER_STATE_H
#define PVR_RESPONDER_STATE_H

#include "rdma/wr.h"

/* Original values of the last atomics: no requester has more of them in flight. */
struct pvr_atomic_replay {
	uint32_t count; /* of all atomics of the connection */
	struct {
		uint32_t psn;
		uint64_t value;
	} last[PVR_MAX_RD_ATOMIC];
};

/* The state of one queue pair. */
struct pvr_responder_state {
	struct pvr_host *from; /* the host that has sent the first request */
	struct pvr_atomic_replay *replay; /* NULL: no atomic yet */
	bool nak_sent; /* a NAK for the expected PSN was sent */
	uint32_t base; /* no earlier PSN was executed, or it is too old to arrive again */
	/* The reason of ERR, for a requester that has not received the NAK. */
	bool has_refused;
	uint8_t status; /* enum pvrdma_wc_status */
	uint32_t psn; /* of the request */
};

/* The PSN and offset of a fragment, compared with the expected ones. */
enum pvr_psn_class {
	PVR_PSN_DUPLICATE, /* executed already */
	PVR_PSN_STRADDLES, /* its head is executed already, its tail is expected */
	PVR_PSN_EXPECTED,
	PVR_PSN_AHEAD,
	PVR_PSN_INVALID,
};

enum pvr_psn_class pvr_psn_classify(struct pvr_qp *to, const struct pvr_request *request);

/*
 * Allocate the state of @to, with @atomic also that of atomics. Return: false without
 * memory.
 */
bool pvr_host_rq_get(struct pvr_qp *to, struct pvr_host *from, bool atomic);
/* Free the state. */
void pvr_responder_state_free(struct pvr_qp *qp);
/* Return: the host that has sent the first request; NULL: no request yet. */
struct pvr_host *pvr_responder_state_host(const struct pvr_qp *qp);

/* The record of a responder, if it has this state. The host is not part of it. */
struct pvr_codec;
void pvr_responder_state_save(struct pvr_codec *codec, struct pvr_qp *qp);
void pvr_responder_state_load(struct pvr_codec *codec);

/* Store the original value of the atomic at @psn. */
void pvr_replay_record(struct pvr_qp *to, uint32_t psn, uint64_t value);
/* Return: true if the original value of the atomic at @psn is stored; @value gets it. */
bool pvr_replay_find(const struct pvr_qp *to, uint32_t psn, uint64_t *value);

#endif /* PVR_RESPONDER_STATE_H */
