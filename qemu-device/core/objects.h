/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Protection domains, memory regions, completion queues, queue pairs, SRQs. */
#ifndef PVR_OBJECTS_H
#define PVR_OBJECTS_H

#include "core/adapter.h"

/* ------------------------------------------------------------------- PD */

struct pvr_pd {
	struct pvr_uc *uc;
	uint32_t handle;
	uint32_t users; /* MRs, QPs, SRQs */
};
static inline struct pvr_pd *pvr_pd_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->pds, handle);
}

/* ------------------------------------------------------------------- MR */

enum pvr_mr_kind {
	PVR_MR_USER, /* registered by command */
	PVR_MR_DMA, /* all of the guest's RAM, for local access */
	PVR_MR_FAST, /* registered and invalidated by work requests */
	PVR_MR_WINDOW1, /* a memory window of type 1, or 2B: bound to part of a region */
	PVR_MR_WINDOW2,
};

/* Without this a fast region is not registered, a window not bound now. */
#define PVR_MR_VALID (1u << 31)

struct pvr_mr {
	/* What each access needs comes first: two cache lines. */
	enum pvr_mr_kind kind;
	uint32_t key; /* lkey and rkey: index << 8 | generation */
	struct pvr_pd *pd;
	uint32_t access; /* PVR_ACCESS_*, PVR_MR_VALID */
	uint64_t start, length; /* as work requests name them */
	/* Its pages, or its region's if it is a bound window; NULL: it has none. */
	const struct pvr_pages *where;
	uint64_t offset; /* of byte start in them */
	struct pvr_pages pages;

	uint32_t handle;
	uint32_t max_pages; /* of a fast region */
	LIST_HEAD(, pvr_mr) windows; /* bound to this region */
	/* Of a bound window. */
	LIST_ENTRY(pvr_mr) region_link;
	struct pvr_qp *qp; /* type 2: who bound it */
	LIST_ENTRY(pvr_mr) qp_link;
};

/*
 * FAST_REG_MR: give an invalid fast region memory and a new key. Return: 0 or -EINVAL,
 * -EFAULT (IBTA vol. 1, 10.6.4.4).
 */
int pvr_mr_fast_register(struct pvr_adapter *adapter, const struct pvr_pd *pd,
			 const struct pvrdma_sq_wqe_hdr *wqe);

/*
 * What LOCAL_INV, or SEND_WITH_INV arriving at @qp (@host), may invalidate by this key:
 * a valid fast region, which peers must have some right to, or a window of type 2 that
 * @qp has bound (10.6.5). NULL if it is neither.
 */
struct pvr_mr *pvr_mr_find_invalidable(const struct pvr_qp *qp, uint32_t key, bool host);
void pvr_mr_invalidate(struct pvr_mr *mr);

/* BIND_MW (10.6.7.2). Return: 0 or -EINVAL, and then nothing has changed. */
int pvr_mw_bind(struct pvr_qp *qp, const struct pvr_wqe_bind_mw *bind);
/* A QP that goes leaves its windows of type 2 unbound. */
void pvr_mw_unbind_all(struct pvr_qp *qp);

/* ------------------------------------------------------------------- CQ */

enum pvr_cq_arm {
	PVR_CQ_DISARMED,
	PVR_CQ_ARMED_SOLICITED,
	PVR_CQ_ARMED_ANY,
};

/* What rdma/cq_lost_arm.c knows of a CQ. */
struct pvr_cq_lost_arm {
	struct pvr_timer timer;
	uint64_t watched; /* completions before this one should be consumed by then */
	uint64_t doorbells; /* of the context, when the CQ was last announced */
	uint8_t backoff; /* the time is doubled so often */
	bool notified; /* the timer waits for the guest's answer */
};

struct pvr_cq {
	struct pvr_owned owned;
	struct pvr_uc *uc;
	uint32_t handle;
	/* Whose queues complete here; a QP can be in both. In use while there is one. */
	TAILQ_HEAD(, pvr_qp) senders, receivers;
	uint32_t comp_vector;
	uint32_t cqe;
	struct pvr_pages pages;
	struct pvr_ring *shm; /* ours is prod_tail */
	struct pvr_cq_arm_dbrec *arm_dbrec; /* PVR_EXT_CQ_ARM_DBREC, ours is notified; else NULL */
	uint32_t arm_seen; /* the word of it that we acted on last */
	bool arm_notified; /* what we stored there last */
	/* Completions so far: written, up to the last notification, up to the last
	 * solicited one. The ring's index is the first of them modulo 2 * cqe. */
	uint64_t produced, notified, solicited;
	uint64_t published; /* so many of them the guest can see */
	uint32_t room; /* entries that this run may fill without another look */
	enum pvr_cq_arm armed;
	bool in_run; /* of pvr_adapter */
	SLIST_ENTRY(pvr_cq) run;
	struct pvr_cq_lost_arm late;
	bool error; /* overrun, or its memory went: takes no more */
	bool in_backlog; /* of pvr_event_rings */
	TAILQ_ENTRY(pvr_cq) backlog;
};
static inline struct pvr_cq *pvr_cq_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->cqs, handle);
}

/* ----------------------------------------------------------- work queues */

/* A ring of work requests: guest produces, we consume. */
struct pvr_wq {
	const struct pvr_pages *pages;
	struct pvr_ring *shm; /* ours is cons_head */
	uint64_t start; /* of the ring, in the pages */
	uint32_t stride; /* a power of two, divides a page */
	uint32_t count; /* a power of two */
	uint32_t max_sge;
	uint32_t max_inline; /* bytes; send queues */
	uint32_t head; /* 0 .. 2 * count - 1 */
	bool in_run; /* of pvr_adapter */
	SLIST_ENTRY(pvr_wq) run;
};

/* ------------------------------------------------------------------- SRQ */

struct pvr_srq {
	struct pvr_owned owned;
	struct pvr_adapter *adapter;
	struct pvr_pd *pd;
	uint32_t handle;
	uint32_t users;
	uint32_t limit; /* armed if not 0 */
	bool error;
	struct pvr_pages pages;
	struct pvr_wq wq;
	LIST_HEAD(, pvr_qp) qps;
	/* Those whose rnr_nak_sent, the longest first. */
	TAILQ_HEAD(, pvr_qp) waiting;
	uint32_t waking; /* QPs with rnr_resume_pending: as many requests are spoken for */
	struct pvr_db_suppress *db_suppress_shm; /* NULL without PVR_EXT_DB_SUPPRESS */
	bool db_suppress; /* what its word says */
};
static inline struct pvr_srq *pvr_srq_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->srqs, handle);
}

/* -------------------------------------------------------------------- QP */

/* A receive request taken from an SRQ for a message in progress. */
struct pvr_srq_held {
	bool valid;
	struct pvrdma_rq_wqe_hdr hdr;
	struct pvrdma_sge sge[]; /* as many as the SRQ's requests may have */
};

enum pvr_qp_wait {
	PVR_QP_RUNNING,
	PVR_QP_WAIT_RNR_POLL, /* for the responder's receive request, which its path polls */
	/* From here on a quantum does nothing. */
	PVR_QP_WAIT_RNR, /* likewise, until its doorbell or the timer */
	PVR_QP_WAIT_RETRY, /* for a responder that does not answer */
	/* Peers on other hosts; see path/pipe/requester.c. */
	PVR_QP_WAIT_CONN, /* for the connection to them */
	PVR_QP_WAIT_ACKS, /* for those to what it has sent */
};

/* What a responder needs to know of who asks: part of a queue pair, or of a frame. */
struct pvr_req_src {
	uint32_t qpn;
	uint32_t psn; /* of the request */
};

LIST_HEAD(pvr_mcast_qps, pvr_mcast_qp); /* see gid/mcast_group.h */

struct pvr_pipe_sq;
struct pvr_responder_state;

struct pvr_qp {
	struct pvr_owned owned;
	struct pvr_adapter *adapter;
	struct pvr_pd *pd;
	struct pvr_cq *send_cq, *recv_cq;
	TAILQ_ENTRY(pvr_qp) send_link, recv_link;
	struct pvr_srq *srq; /* or NULL */
	LIST_ENTRY(pvr_qp) srq_link;
	TAILQ_ENTRY(pvr_qp) waiting; /* of the SRQ, if rnr_nak_sent */
	struct pvr_srq_held *held; /* if srq */
	uint32_t handle;
	uint8_t type; /* enum pvr_qp_type */
	bool sq_sig_all;
	bool user_ops; /* PVR_QP_USER_OPS */
	struct pvr_pages pages;
	struct pvr_wq sq, rq;
	LIST_HEAD(, pvr_mr) windows; /* of type 2, bound by it */

	enum pvr_qp_state state;
	struct pvr_qp_attr attr; /* as MODIFY_QP set it */

	/* Requester. */
	union {
		struct pvr_req_src req_src;
		struct {
			uint32_t qpn;
			uint32_t sq_psn; /* of the next request */
		};
	};
	uint64_t sq_offset; /* bytes of the request at sq.head that are done */
	uint32_t sq_inflight; /* requests from sq.head on that have begun, see pipe_sq */
	uint32_t epoch; /* of this connection, to tell answers to an earlier one */
	uint8_t retry_left, rnr_left;
	uint8_t path_id, path_found; /* enum pvr_path_id: the current one, and the one to take */
	enum pvr_qp_wait wait;
	TAILQ_ENTRY(pvr_qp) unanswered_link; /* of the adapter's, if it waits for an ACK */
	struct pvr_timer timer; /* while it waits */
	/* path/local/rnr.c */
	uint64_t rnr_until; /* when the RNR timer expires */
	uint64_t rnr_since; /* it waits for receives that it looks, or looked, for */
	uint32_t rnr_seen; /* so many were there at the last look */
	uint8_t rnr_polls; /* so many there were, and the one that is due */
	bool rnr_slow; /* the wait before was longer than looking pays */
	bool unanswered; /* the request at the head got no answer last time */
	bool peer_gone; /* for good, and no request has said so yet */
	bool peer_qp_gone; /* ditto, and its host has said so while the guest could not be told */
	bool peer_is_far; /* on another host */
	bool sq_draining; /* SQD was asked for, a request is in progress */

	/* Responder. */
	uint32_t rq_psn; /* of the next request */
	uint64_t rq_offset; /* bytes of the request in progress that have arrived */
	bool rnr_nak_sent; /* the requester got an RNR NAK */
	bool rnr_resume_pending; /* in its next quantum: there is a receive request now */
	bool comm_est; /* the event has been given */
	bool last_wqe; /* the event has been given; QPs with an SRQ */

	/* The peer of a connected QP, and where it was found: see path/local/local.c. */
	struct pvr_adapter *peer_adapter;
	struct pvr_qp *peer;
	struct pvr_flow *flow;
	union { /* see rdma/peer_gone.h; 0: nobody's */
		uint64_t peer_incarnation; /* of a peer here */
		struct pvr_host *peer_host; /* peer_is_far: that had its GID when that was set */
	};
	uint64_t path_gen; /* of the fabric; 0: not looked for */
	uint64_t peer_qp_gen; /* of peer_adapter; 0: not looked for there */
	struct pvr_host *path_host; /* who has the GID, if no adapter here has it */
	struct pvr_pipe_sq *pipe_sq; /* it sends to another host: NULL if not */
	struct pvr_responder_state *responder_state; /* as responder to one; NULL: never has been */

	/* rdma/db_suppress.c */
	struct pvr_db_suppress *db_suppress_shm; /* NULL without PVR_EXT_DB_SUPPRESS */
	bool sq_db_suppressed, rq_db_suppressed; /* what the words say */
	bool is_polled;
	uint64_t polled_since; /* turns that its worker had had */
	TAILQ_ENTRY(pvr_qp) polled;

	struct pvr_mcast_qps groups; /* multicast */
	uint64_t mcast_next; /* sending: those from this one on have got it; 0: nobody yet */
	uint32_t ud_wait_since; /* sending: it waits, or does not wait, see rdma/ud_send.c; in ms */
	bool ud_waits;
	bool ud_closing; /* it is about to be destroyed */
	uint8_t ud_failed_waits; /* waits in vain, lately */
	bool mcast_taken; /* sending: somebody of those has taken it */
	uint64_t stat[PVR_STAT_NUM];

	bool is_ready;
	TAILQ_ENTRY(pvr_qp) ready;
};
static inline struct pvr_qp *pvr_qp_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->qps, handle);
}

/* By number, as peers name it. */
static inline struct pvr_qp *pvr_qp_find(struct pvr_adapter *adapter, uint32_t qpn)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, qpn & 0xffff);

	return qp && qp->qpn == qpn ? qp : NULL;
}

/* RC or UC: it has one peer. */
static inline bool pvr_qp_is_connected(const struct pvr_qp *qp)
{
	return qp->type == PVR_QPT_RC || qp->type == PVR_QPT_UC;
}

/* Counts for the queue pair and for its adapter. */
static inline void pvr_count(struct pvr_qp *qp, enum pvr_stat stat, uint64_t n)
{
	qp->stat[stat] += n;
	qp->adapter->stat[stat] += n;
}

#endif /* PVR_OBJECTS_H */
