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

#endif /* PVR_LOCAL_H */
