/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PVR_EXT_PEER_GONE: reliable connections whose other end is gone for good.
 *
 * DOC: lives of peers
 *
 * When a VM ends, or its driver resets the device, its queue pairs are gone, and nobody
 * else will ever have their numbers in that life of the adapter. Who sends to them would
 * learn it after all retries, and who only receives never. So a queue pair remembers the
 * life of the adapter that its address leads to, and when that has ended it fails at once:
 * a request that waits gets RETRY_EXC_ERR as after the last retry; without one there is an
 * event QP_FATAL, and the first receive request gets GENERAL_ERR, as there are programs
 * that take no notice of the event, nor of requests that are flushed. All others are.
 *
 * Whose adapter ends a life tells all others of its fabric, and each looks through its
 * queue pairs by a timer: a guest that resets its device in a loop costs them one look in
 * a while, whatever it does. Those on other hosts are told one by one, see path/pipe/qp_gone.h.
 */
#ifndef PVR_PEERS_H
#define PVR_PEERS_H

#include <stdbool.h>

struct pvr_adapter;
struct pvr_qp;

int pvr_peer_gone_init(struct pvr_adapter *adapter);
void pvr_peer_gone_exit(struct pvr_adapter *adapter);

/* The address of the queue pair has been set. */
void pvr_peer_gone_watch(struct pvr_qp *qp);
/* It has the address of a peer, and is not in error. */
bool pvr_peer_gone_is_connected(const struct pvr_qp *qp);
/* Another host says that its peer is gone; its adapter is held. */
void pvr_peer_gone_end(struct pvr_qp *qp);
/* A life has ended, if has_lost_peers says so. */
void pvr_peer_gone_check_later(struct pvr_adapter *adapter);

#endif /* PVR_PEERS_H */
