/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connected queue pairs whose peer is on another host.
 *
 * DOC: who does what
 *
 * path/pipe/requester.c gives turns to queue pairs that send to another host, and
 * path/pipe/completer.c completes what was acknowledged; path/pipe/responder.c
 * executes what comes from there. Connections are path/pipe/internal.h's.
 */
#ifndef PVR_PIPE_QP_H
#define PVR_PIPE_QP_H

#include "rdma/requester.h"
#include "path/pipe/internal.h"

/* A quantum of @qp, which has pipe_sq or gets it now. */
enum pvr_quantum pvr_pipe_run_sq(struct pvr_qp *qp);
/* See struct pvr_path_ops. */
bool pvr_host_detach(struct pvr_qp *qp);
/* The timer of a queue pair with pipe_sq has expired while it was not waiting by it. */
void pvr_pipe_timeout(struct pvr_qp *qp);

/* Nothing is in flight any more: the queue pair does not send now. */
void pvr_pipe_sq_stop(struct pvr_qp *qp);
void pvr_pipe_sq_free(struct pvr_qp *qp);

#endif /* PVR_PIPE_QP_H */
