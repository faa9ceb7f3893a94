/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The local path: copies between adapters of one engine. */
#ifndef PVR_LOCAL_H
#define PVR_LOCAL_H

#include "rdma/path.h"
#include "rdma/responder.h"

extern const struct pvr_path_ops pvr_local_path_ops;

/**
 * pvr_local_peer() - find and lock the peer of a queue pair
 * @qp: of type RC or UC
 * @peer: set to the peer if it exists, is reachable and is connected back to @qp, in any
 *   state; else to NULL
 *
 * The peer's adapter stays locked until the end of the quantum.
 *
 * Return: false if the peer's adapter is locked by another worker. The quantum of @qp
 * cannot continue then.
 */
bool pvr_local_peer(struct pvr_qp *qp, struct pvr_qp **peer);

/* @peer: of pvr_local_peer(), or NULL. Return: whether it executes requests. */
static inline bool pvr_local_can_receive(const struct pvr_qp *peer)
{
	return peer && pvr_qp_can_respond(peer);
}

/*
 * @peer has not executed the fragment of @wqe, the request at the head of @qp. If it has done so
 * before, as the responder to another host, take the result and acknowledge. Return: ACK, with
 * *step; or a NAK; NONE: it is no such request.
 */
struct pvr_syndrome pvr_local_catch_up(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
				       struct pvr_qp *peer, enum pvr_step *step);

/*
 * @qp: pvr_local_peer() has found no peer for it. Return: whether the adapter of its peer is stopped,
 * and not for too long. Then @qp waits.
 */
bool pvr_local_hold(struct pvr_qp *qp);

/* run_sq() that also captures, see rdma/capture.h. */
enum pvr_quantum pvr_local_run_captured(struct pvr_qp *qp, unsigned int max);

/* run_sq() of a request with qp->flips. */
enum pvr_quantum pvr_local_run_damaged(struct pvr_qp *qp, unsigned int max);

#endif /* PVR_LOCAL_H */
