/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PVR_EXT_PEER_GONE: reliable connections whose peer no longer exists.
 *
 * DOC: incarnations
 *
 * An adapter starts a new incarnation when its VM ends or its driver resets the device.
 * Then all its queue pairs are gone. Without this extension a requester detects that
 * after its last retry, and a queue pair that only receives never does.
 *
 * - A connected queue pair stores the incarnation of its peer's adapter.
 * - When that incarnation has ended, the queue pair fails:
 *   - with a posted send request: the request completes with RETRY_EXC_ERR;
 *   - without: the event QP_FATAL, and the first receive request completes with
 *     GENERAL_ERR, because some programs ignore both the event and flushed requests.
 *   All other requests are flushed.
 * - The end of an incarnation starts a timer at each adapter of the fabric in this
 *   process; the timer begins a sweep, which checks all queue pairs in steps. So resets in a
 *   loop cost the others one check per period.
 * - Peers on other hosts get one frame per queue pair, see path/pipe/internal.h.
 */
#ifndef PVR_PEER_GONE_H
#define PVR_PEER_GONE_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_adapter;
struct pvr_qp;

int pvr_peer_gone_init(struct pvr_adapter *adapter);
void pvr_peer_gone_exit(struct pvr_adapter *adapter);

/* Store the incarnation of the peer: the address of the queue pair has been set. */
void pvr_peer_gone_watch(struct pvr_qp *qp);
/* Its adapter was loaded: the same, unless the guest is still to be told of its peer's end. */
void pvr_peer_gone_watch_again(struct pvr_qp *qp);
/*
 * It has started after a load, or another adapter of its fabric has: a sweep finds the peers of
 * queue pairs that have none.
 */
void pvr_peer_gone_watch_missing(struct pvr_adapter *adapter);
/*
 * The queue pairs of @moved go on elsewhere: others of this process do not watch them here any
 * more. No lock is held. Sweeps visit these, each with pvr_peer_gone_forget().
 */
void pvr_peer_gone_moved(struct pvr_adapter *moved);
void pvr_peer_gone_forget(struct pvr_qp *qp);
/*
 * It is being saved: note whether its peer is gone, as incarnations have a meaning in this
 * process only. @living: see pvr_peer_gone_check().
 */
void pvr_peer_gone_settle(struct pvr_qp *qp, uint64_t *living);
/* True if the queue pair has the address of a peer and is not in error. */
bool pvr_peer_gone_is_connected(const struct pvr_qp *qp);
/*
 * Another host reports that the peer is gone. The lock of the queue pair's adapter is
 * held.
 */
void pvr_peer_gone_end(struct pvr_qp *qp);
/* Start the timer after which all queue pairs are checked, if has_lost_peers is set. */
void pvr_peer_gone_check_later(struct pvr_adapter *adapter);
/* The guest cannot be notified: check when bus mastering begins. */
void pvr_peer_gone_postpone(struct pvr_adapter *adapter);
/*
 * Check a queue pair of an adapter that may do DMA. @living: an incarnation that was found
 * alive, initially 0. Return: whether the queue pair fails.
 */
bool pvr_peer_gone_check(struct pvr_qp *qp, uint64_t *living);

#endif /* PVR_PEER_GONE_H */
