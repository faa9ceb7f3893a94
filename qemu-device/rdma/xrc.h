/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * XRC (IBTA annex A14): the responder's part.
 *
 * DOC: XRC targets
 *
 * - A target queue pair belongs to an XRC domain, not to a process. It has no queues: each
 *   request names an SRQ of its domain, whose PD, receives and CQ it uses.
 * - The target keeps the SRQ of the last message that took a receive: qp->srq and
 *   qp->recv_cq. A message in fragments, or a requester that waits for a receive, needs it.
 *   DESTROY_SRQ takes it from all targets first, in steps.
 * - qp->pd is the PD of the SRQ during a request, otherwise the PD of the domain.
 */
#ifndef PVR_XRC_H
#define PVR_XRC_H

#include "rdma/path.h"

struct pvr_xrc_target {
	struct pvr_qp *qp;
	struct pvr_xrcd *xrcd;
	LIST_ENTRY(pvr_xrc_target) link; /* of targets with the same SRQ */
};

/* Before and after each fragment of a request to a target. Return: NULL or why it is refused. */
const char *pvr_xrc_enter(struct pvr_qp *to, const struct pvr_request *request);
void pvr_xrc_leave(struct pvr_qp *to);

/* The target receives from @srq, of its domain, from now on. */
void pvr_xrc_take_srq(struct pvr_qp *to, struct pvr_srq *srq);
/* RESET or destruction: the target has no SRQ any more. */
void pvr_xrc_drop_srq(struct pvr_qp *qp);
/*
 * The SRQ is being destroyed: take it from targets, as many as this step of the adapter's
 * job may. Their requesters that wait for a receive try again, and are refused. Return:
 * whether no target has it.
 */
bool pvr_xrc_release_some(struct pvr_srq *srq);

#endif /* PVR_XRC_H */
