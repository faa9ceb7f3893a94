/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection that this host dialed: requests of local guests, and their responses.
 *
 * Queue pairs of any adapter and worker send on it under its lock (req_conn.c). Its thread receives
 * without the lock (req_conn_rx.c). route.c selects one for a queue pair.
 */
#ifndef PVR_REQ_CONN_H
#define PVR_REQ_CONN_H

#include "path/pipe/fabric_ids.h"
#include "path/pipe/host.h"
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
	bool load_agreed; /* numbers of loads were negotiated */
	bool refer_agreed; /* REFERRAL was negotiated */
	bool tail_agreed; /* PVR_HELLO_F_TAIL was negotiated */
	bool xrc_agreed; /* XRC was negotiated */
	bool fault_agreed; /* FAULT was negotiated */
	bool move_agreed; /* MOVED and TAKE were negotiated */
	bool address_agreed; /* ADDRESS was negotiated */
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

/* Return: NULL if it was never used. */
static inline struct pvr_req_conn *pvr_req_conn_find(const struct pvr_host *host, unsigned int kind,
						     unsigned int slot)
{
	return __atomic_load_n(&host->out[kind].slot[slot], __ATOMIC_ACQUIRE);
}

/* Creates it at the first use; it is never freed before the host. Return: NULL without memory. */
struct pvr_req_conn *pvr_req_conn_get(struct pvr_host *host, enum pvr_pipe_kind kind,
				      unsigned int slot);

/*
 * Called with the lock held. Sends a frame without gathering. Return: false if there was no space
 * for it.
 */
bool pvr_req_conn_send_now(struct pvr_req_conn *out, union pvr_any_frame *any, size_t size);
/*
 * Called with the lock held. Without space, retried later: RNDV_DONE only limits how much may be
 * exposed.
 */
void pvr_req_conn_send_rndv_done(struct pvr_req_conn *out);

/* NULL is allowed. */
void pvr_req_conn_free(struct pvr_req_conn *out);

#endif /* PVR_REQ_CONN_H */
