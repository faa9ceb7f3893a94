/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An outgoing connection: what our guests ask for, and the answers.
 *
 * Queue pairs of any adapter and worker send on it, under its lock; what comes in is its
 * own thread's, without.
 */
#ifndef PVR_REQ_CONN_H
#define PVR_REQ_CONN_H

#include "path/pipe/fabric_ids.h"
#include "path/pipe/rx.h"
#include "path/pipe/tx.h"

struct pvr_req_conn {
	struct pvr_host *host;
	uint8_t kind, slot;
	uint64_t generation; /* 0: it is down. Read without the lock, too */
	uint32_t chunk; /* ditto */
	uint8_t dscp; /* ditto */
	struct pvr_link_count count; /* of all connections in this slot */

	/* Protects what follows; taken inside adapters' locks, and only that of ACKs inside it. */
	struct pvr_lock lock;
	struct pvr_pipe_tx box;
	struct pvr_fabric_ids fabrics; /* names are read by its thread without the lock */
	bool piggyback_ack;
	bool qp_gone_agreed; /* QP_GONE frames were agreed upon */
	uint32_t rndv_done_count; /* of the other side ... */
	uint32_t rndv_done_sent; /* ... that it has been told of */
	bool refused; /* somebody waits until the box is flushed */
	bool told_limit; /* there were more fabrics than it can have */
	uint64_t ping; /* the cookie of the last one */

	/* Its thread's. */
	uint32_t rndv_done_unflushed; /* that were flushed */
	struct pvr_pipe_rx in;
};

/* NULL is allowed. */
void pvr_req_conn_free(struct pvr_req_conn *out);

#endif /* PVR_REQ_CONN_H */
