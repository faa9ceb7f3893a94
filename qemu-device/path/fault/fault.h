/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on demand: a path in front of another one.
 *
 * DOC: faults
 *
 * - pvr_path_find() puts this path in front of the path that reaches the peer if a rule
 *   matches the queue pair. All other queue pairs execute no instruction more.
 * - A change of the rules increments gid_gen of all fabrics, so all queue pairs find their
 *   paths again before their next request.
 * - This path decides about one request of the send queue at a time, before its first
 *   fragment. The path behind it then executes that request only.
 * - The path behind keeps its state of the queue pair when this path comes or goes. Requests
 *   that are in flight then are not decided; the next one waits until they are complete.
 * - To another host one request is in flight at a time, so a request that gets lost is the
 *   oldest one, as on one host.
 * - A lost request is one without a response: the requester's ACK timeout, retries and
 *   failure are those of any path.
 * - pvr_ud_run() calls this path for datagrams of all queue pairs while there are rules. A
 *   datagram has a destination of its own, so its rules are found when it is at the head.
 * - The path behind applies damage (qp->flips) to a copy of the payload, or to the data that an
 *   RDMA READ has brought.
 * - A responder at this host fails with the requester, under its lock. To another host the
 *   path behind asks the daemon there for the error, in place of the request at the head. That
 *   daemon refuses it unless its operator allows faults, too.
 * - A stalled peer at this host does not send. The requests of one at another host are answered
 *   with a wait, as long as it is stalled.
 * - The state of a queue pair is charged to its adapter.
 */
#ifndef PVR_PATH_FAULT_H
#define PVR_PATH_FAULT_H

#include "fault/rule.h"
#include "rdma/path.h"

extern const struct pvr_path_ops pvr_fault_path_ops;

/* @faults: of an engine that is destroyed; may be NULL */
void pvr_faults_free(struct pvr_faults *faults);

#endif /* PVR_PATH_FAULT_H */
