/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QP_GONE frames: report to the peers on other hosts that RC queue pairs were destroyed
 * with their adapter. One frame per queue pair. For peers on the same host see
 * rdma/peer_gone.h; the receive handler is declared in path/pipe/internal.h.
 */
#ifndef PVR_PIPE_QP_GONE_H
#define PVR_PIPE_QP_GONE_H

struct pvr_adapter;

/* Called under the adapter's lock before all its queue pairs are destroyed. */
void pvr_pipe_send_qp_gone(struct pvr_adapter *adapter);

#endif /* PVR_PIPE_QP_GONE_H */
