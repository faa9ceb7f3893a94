/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The transport between adapters of one engine: a memcpy. */
#ifndef PVR_LOCAL_H
#define PVR_LOCAL_H

#include "rdma/path.h"
#include "rdma/responder.h"

extern const struct pvr_path_ops pvr_local_path_ops;

/**
 * pvr_local_peer() - the queue pair that @qp, of type RC or UC, is connected to
 * @peer: it, if it exists, is reachable and is connected back to @qp, in whatever state,
 *	  else NULL; neither changes in this quantum, until the end of which its adapter is held
 *
 * Return: false if its adapter is busy: this quantum of @qp cannot go on.
 */
bool pvr_local_peer(struct pvr_qp *qp, struct pvr_qp **peer);

/* @peer: as pvr_local_peer() found it for this quantum, or NULL. */
static inline struct pvr_syndrome pvr_local_send(struct pvr_qp *peer,
						 const struct pvr_request *request)
{
	if (!peer || peer->state < PVR_QPS_RTR || peer->state > PVR_QPS_SQE)
		return (struct pvr_syndrome){ .kind = PVR_SYN_NONE };
	return pvr_responder_execute(peer, request);
}

#endif /* PVR_LOCAL_H */
