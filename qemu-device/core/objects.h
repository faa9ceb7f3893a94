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

/* A domain of XRC SRQs and of the target queue pairs that can use them; see rdma/xrc.h. */
struct pvr_xrcd {
	uint32_t handle;
	uint32_t users; /* SRQs and queue pairs */
	struct pvr_pd pd; /* of its queue pairs between two requests; it has no regions */
};
static inline struct pvr_xrcd *pvr_xrcd_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->xrcds, handle);
}

/* ------------------------------------------------------------------- MR */

enum pvr_mr_kind {
	PVR_MR_USER, /* registered by command */
	PVR_MR_DMA, /* all of the guest's RAM, for local access */
	PVR_MR_FAST, /* registered and invalidated by work requests */
	PVR_MR_WINDOW1, /* a memory window of type 1, or 2B: bound to part of a region */
	PVR_MR_WINDOW2,
};

/* Clear: a fast region is not registered, a window is not bound. */
#define PVR_MR_VALID (1u << 31)

LIST_HEAD(pvr_windows, pvr_mr);

struct pvr_mr {
	/* The members for each access come first, in two cache lines. */
	enum pvr_mr_kind kind;
	uint32_t key; /* lkey and rkey: index << 8 | generation */
	struct pvr_pd *pd;
	uint32_t access; /* PVR_ACCESS_*, PVR_MR_VALID */
	uint64_t start, length; /* address range in work requests */
	/* Its pages; those of the region if it is a bound window; NULL: none. */
	const struct pvr_pages *where;
	uint64_t offset; /* of byte @start in @where */
	struct pvr_pages pages;

	uint32_t handle;
	uint32_t max_pages; /* of a fast region */
	struct pvr_windows windows; /* bound to this region */
	/* Of a bound window. */
	LIST_ENTRY(pvr_mr) region_link;
	struct pvr_qp *qp; /* type 2: the QP that has bound it */
	LIST_ENTRY(pvr_mr) qp_link;
};

/*
 * FAST_REG_MR (IBTA 10.6.4.4): give memory and a new key to an invalid fast region.
 * Return: 0, -EINVAL or -EFAULT.
 */
int pvr_mr_fast_register(struct pvr_adapter *adapter, const struct pvr_pd *pd,
			 const struct pvrdma_sq_wqe_hdr *wqe);

/*
 * Find the region or window that LOCAL_INV or, if @host is set, a SEND_WITH_INV to @qp
 * may invalidate by this key (IBTA 10.6.5). That is a valid fast region, with a remote
 * right if @host is set, or a window of type 2 that @qp has bound. Return: NULL if it is
 * neither.
 */
struct pvr_mr *pvr_mr_find_invalidable(const struct pvr_qp *qp, uint32_t key, bool host);
void pvr_mr_invalidate(struct pvr_mr *mr);

/* BIND_MW (IBTA 10.6.7.2). Return: 0, or -EINVAL with nothing changed. */
int pvr_mw_bind(struct pvr_qp *qp, const struct pvr_wqe_bind_mw *bind);
/*
 * Unbind windows, as many as this step of the adapter's job may: one QP or region may have all
 * windows of the adapter. Return: whether none is left.
 */
bool pvr_mw_unbind_some(struct pvr_adapter *adapter, const struct pvr_windows *windows);

/* ------------------------------------------------------------------- CQ */

enum pvr_cq_arm {
	PVR_CQ_DISARMED,
	PVR_CQ_ARMED_SOLICITED,
	PVR_CQ_ARMED_ANY,
};

#define PVR_CQ_BACKOFF_MAX 14 /* 0.8 s */

/* A CQ's state in rdma/cq_lost_arm.c. */
struct pvr_cq_lost_arm {
	struct pvr_timer timer;
	uint64_t watched; /* earlier completions are expected to be consumed by the timer */
	uint64_t doorbells; /* cq_doorbells of the context at the last CQ notification */
	uint8_t backoff; /* exponent of 2 in the timeout */
	bool notified; /* the timer waits for the guest's reaction */
};

/* See rdma/cq_moderation.h. */
struct pvr_cq_moderation {
	uint16_t count; /* completions; 0: any number waits for the period */
	uint16_t period_us; /* 0: no moderation */
	bool has_timer;
	struct pvr_timer timer; /* set while a notification waits */
};

struct pvr_cq {
	struct pvr_owned owned;
	struct pvr_uc *uc;
	uint32_t handle;
	uint32_t users; /* send and receive queues with completions here */
	uint32_t comp_vector;
	uint32_t cqe;
	struct pvr_pages pages;
	struct pvr_ring *shm; /* the device writes prod_tail */
	struct pvr_cq_arm_dbrec *arm_dbrec; /* NULL without PVR_EXT_CQ_ARM_DBREC */
	uint32_t arm_seen; /* the last value of arm_dbrec->arm that was handled */
	bool arm_notified; /* the last value stored to arm_dbrec->notified */
	/*
	 * Numbers of completions: produced so far, at the last notification, up to the
	 * last solicited one. The ring's index is @produced modulo 2 * cqe.
	 */
	uint64_t produced, notified, solicited;
	uint64_t published; /* number of completions that are visible to the guest */
	uint32_t room; /* entries that this run may fill before it reads cons_head again */
	enum pvr_cq_arm armed;
	bool in_run; /* on pvr_adapter.completed */
	SLIST_ENTRY(pvr_cq) run;
	struct pvr_cq_lost_arm late;
	struct pvr_cq_moderation moderation;
	bool error; /* overrun, or its memory was removed: accepts no more completions */
	bool has_timestamps; /* PVR_CQ_TIMESTAMP */
	bool in_backlog; /* of its pvr_cq_vector */
	TAILQ_ENTRY(pvr_cq) backlog;
};
static inline struct pvr_cq *pvr_cq_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->cqs, handle);
}

/* ----------------------------------------------------------- work queues */

/* A ring of work requests: the guest produces, the device consumes. */
struct pvr_wq {
	const struct pvr_pages *pages;
	struct pvr_ring *shm; /* the device writes cons_head */
	uint64_t start; /* offset of the ring in @pages */
	uint32_t stride; /* a power of two, divides a page */
	uint32_t count; /* a power of two */
	uint32_t max_sge;
	uint32_t max_inline; /* bytes; send queues */
	uint32_t head; /* 0 .. 2 * count - 1 */
	bool in_run; /* on pvr_adapter.consumed */
	SLIST_ENTRY(pvr_wq) run;
};

/* ------------------------------------------------------------------- SRQ */

struct pvr_srq {
	struct pvr_owned owned;
	struct pvr_adapter *adapter;
	struct pvr_pd *pd;
	uint32_t handle;
	uint32_t users;
	uint32_t limit; /* the event is armed unless 0 */
	bool error;
	struct pvr_pages pages;
	struct pvr_wq wq;
	/* QPs with rnr_nak_sent, the longest waiting first. */
	TAILQ_HEAD(, pvr_qp) waiting;
	uint32_t waking; /* QPs with rnr_resume_pending: each has reserved one request */
	/* Of an XRC SRQ; NULL and empty without. See rdma/xrc.h. */
	struct pvr_xrcd *xrcd;
	struct pvr_cq *cq;
	LIST_HEAD(, pvr_xrc_target) targets; /* with this SRQ */
	bool is_closing; /* no target takes it any more */
	struct pvr_db_suppress *db_suppress_shm; /* NULL without PVR_EXT_DB_SUPPRESS */
	bool db_suppress; /* the value of its word */
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
	struct pvrdma_sge sge[]; /* max_sge of the SRQ */
};

enum pvr_qp_wait {
	PVR_QP_RUNNING,
	PVR_QP_WAIT_RNR_POLL, /* for the responder's receive request; the path polls */
	/* In the following states a quantum does nothing. */
	PVR_QP_WAIT_RNR, /* for the responder's receive doorbell, or the timer */
	PVR_QP_WAIT_RETRY, /* for the timer: the responder does not respond */
	PVR_QP_WAIT_PAGE, /* for the timer: a page is absent */
	/* Peers on other hosts; see path/pipe/requester.c. */
	PVR_QP_WAIT_CONN, /* for a connection */
	PVR_QP_WAIT_ACKS, /* for ACKs of in-flight WRs */
};

/* The source of a request, for the responder: part of a queue pair or of a frame. */
struct pvr_req_src {
	uint32_t qpn;
	uint32_t psn; /* of the request */
};

LIST_HEAD(pvr_mcast_qps, pvr_mcast_qp); /* see gid/mcast_group.h */

struct pvr_pipe_sq;
struct pvr_responder_state;
struct pvr_fault_sq;
struct pvr_xrc_target;

/* XRC: a requester and a responder, both with the rules of RC. */
enum pvr_xrc_role {
	PVR_XRC_NONE,
	PVR_XRC_INI,
	PVR_XRC_TGT,
};

struct pvr_qp {
	struct pvr_owned owned;
	struct pvr_adapter *adapter;
	struct pvr_pd *pd;
	struct pvr_cq *send_cq, *recv_cq; /* PVR_XRC_TGT: NULL, and that of the SRQ */
	struct pvr_srq *srq; /* or NULL; PVR_XRC_TGT: that of the last message */
	struct pvr_xrc_target *xrc_target; /* of PVR_XRC_TGT, or NULL */
	TAILQ_ENTRY(pvr_qp) waiting; /* of the SRQ, if rnr_nak_sent */
	struct pvr_srq_held *held; /* NULL without an SRQ */
	uint32_t handle;
	uint64_t cqe_qp; /* pvrdma_cqe.qp: the handle, or see PVR_CQE_XRC */
	uint8_t type; /* enum pvr_qp_type; PVR_QPT_RC of XRC */
	uint8_t xrc_role; /* enum pvr_xrc_role */
	bool sq_sig_all;
	bool user_ops; /* PVR_QP_USER_OPS */
	struct pvr_pages pages;
	struct pvr_wq sq, rq;
	struct pvr_windows windows; /* of type 2, bound by it */

	enum pvr_qp_state state;
	struct pvr_qp_attr attr; /* set by MODIFY_QP */

	/* Requester. */
	union {
		struct pvr_req_src req_src;
		struct {
			uint32_t qpn;
			uint32_t sq_psn; /* of the next request */
		};
	};
	uint64_t sq_offset; /* completed bytes of the request at sq.head */
	uint32_t sq_inflight; /* in-flight WRs, from sq.head on; see pipe_sq */
	uint32_t epoch; /* of this connection, to detect responses to an earlier one */
	uint8_t retry_left, rnr_left;
	/* Indices in engine->paths. */
	uint8_t path_id, path_found; /* the current path, and the next one */
	uint8_t path_target; /* path_found, or the next path behind PVR_PATH_FAULT */
	uint8_t path_behind; /* while path_id is PVR_PATH_FAULT: the current path behind it */
	/* Local operations that another path has executed: the next ones, from sq.head on. */
	uint16_t sq_local_done;
	enum pvr_qp_wait wait;
	TAILQ_ENTRY(pvr_qp) unanswered_link; /* on hosts.unanswered of the adapter */
	struct pvr_timer timer; /* while it waits */
	/* path/local/rnr.c; see pvr_running_time() */
	union {
		uint64_t rnr_until; /* when the RNR timer expires */
		uint64_t unanswered_at; /* if unanswered: the begin of the ACK timeout */
	};
	uint64_t rnr_since; /* first RNR NAK of the request at the head */
	uint32_t rnr_seen; /* receives at the last poll */
	uint8_t rnr_polls; /* number of polls, including the next one */
	bool rnr_slow; /* the previous wait was too long for polling */
	/* Both are cleared at each response: one store, as they are neighbors. */
	bool unanswered; /* the last try of the request at the head got no response */
	bool rnr_nak; /* the request at the head got an RNR NAK, at rnr_since */
	bool peer_gone; /* for good, and no completion has reported it yet */
	bool peer_qp_gone; /* QP_GONE arrived while the guest could not be notified */
	bool peer_is_far; /* the peer is at another host */
	bool sq_draining; /* SQD is requested while a request is in progress */

	/* Responder. */
	uint32_t rq_psn; /* of the next request */
	uint64_t rq_offset; /* received bytes of the request in progress */
	union {
		uint64_t flushed; /* bytes of the FLUSH in progress that are persistent */
		uint64_t uc_heard; /* UC: epoch of the last request, and when, in ms << 32 */
	};
	bool rnr_nak_sent; /* the requester got an RNR NAK */
	bool rnr_resume_pending; /* its next quantum resumes the requester: a receive was posted */
	bool comm_est; /* the event COMM_EST was sent */
	bool last_wqe; /* the event QP_LAST_WQE_REACHED was sent; QPs with an SRQ */
	bool is_new_connection; /* see pvr_qp_note_connection() */
	bool path_searched; /* since the begin of PVR_QP_WAIT_RETRY */
	bool resumes_by_timer; /* PVR_QP_WAIT_RETRY: a path that is found does not end it */

	/* The peer of a connected QP, and its location: see path/local/local.c. */
	struct pvr_adapter *peer_adapter;
	struct pvr_qp *peer;
	struct pvr_flow *flow;
	union { /* see rdma/peer_gone.h; 0: no peer */
		uint64_t peer_incarnation; /* of a peer in this process */
		struct pvr_host *peer_host; /* peer_is_far: the host of its GID when that was set */
	};
	uint64_t path_gen; /* gid_gen at the last pvr_path_find(); 0: none */
	uint64_t peer_qp_gen; /* qp_gen of peer_adapter at the last lookup; 0: none */
	struct pvr_host *path_host; /* the host of the GID; NULL: an adapter here, or unknown */
	struct pvr_pipe_sq *pipe_sq; /* requester to another host; NULL: it is not */
	struct pvr_responder_state *responder_state; /* of a responder to another host, or NULL */
	struct pvr_fault_sq *fault_sq; /* path/fault; NULL: it has not sent by that path */
	struct pvr_flips *flips; /* damage of the request at the head; NULL: none */

	/* rdma/db_suppress.c */
	struct pvr_db_suppress *db_suppress_shm; /* NULL without PVR_EXT_DB_SUPPRESS */
	bool sq_db_suppressed, rq_db_suppressed; /* the values of the words */
	bool is_polled;
	bool is_ready; /* here, so that it takes no space of its own */
	uint64_t polled_since; /* number of quanta of its worker when polling began */
	TAILQ_ENTRY(pvr_qp) polled;

	struct pvr_mcast_qps groups; /* multicast */
	uint64_t mcast_next; /* sending: adapters from this number on have it; 0: none yet */
	uint32_t ud_wait_since; /* ms; when ud_waits was set or cleared, see rdma/ud_step.h */
	bool ud_waits;
	bool ud_closing; /* it is being destroyed */
	uint8_t ud_failed_waits; /* recent waits without success */
	bool mcast_taken; /* sending: a member has accepted it */
	uint64_t stat[PVR_STAT_NUM];

	TAILQ_ENTRY(pvr_qp) ready; /* if is_ready */
};
static inline struct pvr_qp *pvr_qp_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return pvr_table_get(&adapter->qps, handle);
}

/* Find a queue pair by its number. */
static inline struct pvr_qp *pvr_qp_find(struct pvr_adapter *adapter, uint32_t qpn)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, qpn & 0xffff);

	return qp && qp->qpn == qpn ? qp : NULL;
}

/* Return: whether it is RC or UC, which have one peer. */
static inline bool pvr_qp_is_connected(const struct pvr_qp *qp)
{
	return qp->type == PVR_QPT_RC || qp->type == PVR_QPT_UC;
}

/* Return: whether its state permits it to execute requests and to receive datagrams. */
static inline bool pvr_qp_can_respond(const struct pvr_qp *qp)
{
	return qp->state >= PVR_QPS_RTR && qp->state <= PVR_QPS_SQE;
}

/* Return: whether queue pairs of these types can be connected. */
static inline bool pvr_qp_is_partner(const struct pvr_qp *a, const struct pvr_qp *b)
{
	if (a->xrc_role)
		return b->xrc_role && a->xrc_role != b->xrc_role;
	return !b->xrc_role && a->type == b->type;
}

/* Add @n to a counter of the queue pair and of its adapter. */
static inline void pvr_count(struct pvr_qp *qp, enum pvr_stat stat, uint64_t n)
{
	qp->stat[stat] += n;
	qp->adapter->stat[stat] += n;
}

#endif /* PVR_OBJECTS_H */
