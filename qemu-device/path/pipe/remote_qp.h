/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connected queue pairs whose peer is on another host.
 *
 * * path/pipe/requester.c runs quanta of queue pairs that send to another host.
 * * path/pipe/completer.c completes acknowledged requests.
 * * path/pipe/responder.c executes requests from other hosts.
 * * path/pipe/internal.h declares the connections.
 */
#ifndef PVR_PIPE_QP_H
#define PVR_PIPE_QP_H

#include "rdma/requester.h"
#include "path/pipe/internal.h"

/* Runs a quantum of @qp. Allocates pipe_sq if @qp has none. */
enum pvr_quantum pvr_pipe_run_sq(struct pvr_qp *qp);
/* See struct pvr_path_ops. */
bool pvr_host_detach(struct pvr_qp *qp);
/* Called when the timer of @qp has expired and @qp does not wait for that timer. */
void pvr_pipe_timeout(struct pvr_qp *qp);

/* Drops all in-flight WRs: the queue pair has stopped sending. */
void pvr_pipe_sq_stop(struct pvr_qp *qp);
void pvr_pipe_sq_free(struct pvr_qp *qp);

#endif /* PVR_PIPE_QP_H */
