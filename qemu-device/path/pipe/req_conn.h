/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection that this host dialed: requests of local guests, and their responses.
 *
 * Queue pairs of any adapter and worker send on it under its lock. Its thread receives
 * without the lock.
 */
#ifndef PVR_REQ_CONN_H
#define PVR_REQ_CONN_H

#include "path/pipe/fabric_ids.h"
#include "path/pipe/rx.h"
#include "path/pipe/tx.h"

struct pvr_req_conn {
	struct pvr_host *host;
	uint8_t kind, slot;
	uint64_t generation; /* 0: down; also read without the lock */
	uint32_t chunk; /* ditto */
	uint8_t dscp; /* ditto */
	struct pvr_link_count count; /* sum of all connections of this slot */

	/*
	 * Protects the members below. Taken inside adapter locks. Inside it only the locks
	 * of the host and of piggybacked ACKs are taken.
	 */
	struct pvr_lock lock;
	struct pvr_pipe_tx box;
	struct pvr_fabric_ids fabrics; /* its thread reads names without the lock */
	bool piggyback_ack;
	bool qp_gone_agreed; /* QP_GONE was negotiated */
	bool atomic_write_agreed; /* ATOMIC_WRITE and FLUSH were negotiated */
	bool xrc_agreed; /* XRC was negotiated */
	bool fault_agreed; /* FAULT was negotiated */
	bool move_agreed; /* MOVED and TAKE were negotiated */
	uint32_t rndv_done_count; /* rendezvous of the peer that are over ... */
	uint32_t rndv_done_sent; /* ... of these, reported by RNDV_DONE */
	bool refused; /* a sender waits until the box is flushed */
	bool limit_logged; /* the limit of fabrics was logged */
	uint64_t ping; /* cookie of the last PING */
	uint32_t gid_queries; /* without a reply */
	uint32_t takes; /* TAKE without a reply */

	/* Used by its thread only. */
	uint32_t rndv_done_unflushed; /* rndv_done_count at the last flush */
	struct pvr_pipe_rx in;
};

/* NULL is allowed. */
void pvr_req_conn_free(struct pvr_req_conn *out);

#endif /* PVR_REQ_CONN_H */
