/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable connections between hosts whose one end is gone for good, as rdma/peer_gone.h has
 * it for those on one host. Told by QP_GONE frames, one for each queue pair; receiving is
 * path/pipe/internal.h's.
 */
#ifndef PVR_PIPE_QP_GONE_H
#define PVR_PIPE_QP_GONE_H

struct pvr_adapter;

/* The adapter is about to lose all queue pairs; it is held. */
void pvr_pipe_send_qp_gone(struct pvr_adapter *adapter);

#endif /* PVR_PIPE_QP_GONE_H */
