/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection that this host accepted: requests of another host's guests. Used by its
 * thread only.
 */
#ifndef PVR_RSP_CONN_H
#define PVR_RSP_CONN_H

#include "gid/resolve.h"
#include "path/pipe/fabric_ids.h"
#include "path/pipe/rx.h"
#include "path/pipe/tx.h"

struct pvr_rsp_conn {
	LIST_ENTRY(pvr_rsp_conn) link; /* of the host */
	struct pvr_host *host;
	enum pvr_pipe_kind kind;
	unsigned int worker;
	bool qp_gone_agreed; /* QP_GONE was negotiated */
	bool atomic_write_agreed; /* ATOMIC_WRITE and FLUSH were negotiated */
	bool xrc_agreed; /* XRC was negotiated */
	bool page_agreed; /* PVR_FRAME_SYN_PAGE was negotiated */
	bool fault_agreed; /* FAULT was negotiated */
	bool refer_agreed; /* REFERRAL was negotiated */
	bool address_agreed; /* ADDRESS was negotiated */
	bool load_agreed; /* numbers of loads behind TAKE were negotiated */
	bool move_agreed; /* PVR_FRAME_SYN_HELD, MOVED and TAKE were negotiated */
	struct pvr_link_count count;
	struct pvr_pipe_rx box;
	struct pvr_pipe_tx answers;
	struct pvr_fabric_ids fabrics;
	struct pvr_rsp_conn_acks acks;
	uint32_t rndv_done_count; /* rendezvous of the peer that were reported by RNDV_DONE */
	/* Runs that have left an ACK pending ... */
	unsigned int late;
	unsigned int held; /* ... of these, since the ACK was offered for piggybacking */
	uint32_t offered; /* acks.count at the last offer */
	struct pvr_gid_quota lookups; /* of senders */
	uint64_t address_at; /* when the last ADDRESS was used, in ns; 0: none was */
	/* See pvr_rsp_conn_may_stall(). Times in ns. */
	bool stalled; /* at the current frame */
	uint64_t stall_left; /* time that frames may still stall the connection ... */
	uint64_t stall_counted; /* ... at this time */
};

#endif /* PVR_RSP_CONN_H */
