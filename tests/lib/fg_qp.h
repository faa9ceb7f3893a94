/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs of fake guests: created, modified, queried, destroyed. */
#ifndef FG_QP_H
#define FG_QP_H

#include <rdma/vmw_pvrdma-abi.h>

#include "fg_buf.h"
#include "fg_cq.h"
#include "fg_pd.h"
#include "fg_srq.h"

#define FG_QKEY 0x11223344u
#define FG_GSI_QKEY 0x80010000u

/* Attributes of a new QP; zero sizes become 64 work requests of 4 SGEs. */
struct fg_qp_spec {
	const struct fg_pd *pd;
	struct fg_cq *scq, *rcq;
	struct fg_srq *srq; /* instead of a receive queue */
	enum pvr_qp_type type;
	uint32_t sq_wr, rq_wr; /* powers of two */
	uint32_t sq_sge, rq_sge;
	uint32_t max_inline; /* PVR_EXT_INLINE */
	bool sig_all;
	uint8_t flags; /* PVR_QP_* */
	enum fg_buf_kind kind; /* of the queues' pages: for thousands of QPs use FG_LINEAR */
};

struct fg_qp {
	struct fg_guest *guest;
	struct fg_ctx *ctx;
	enum pvr_qp_type type;
	struct fg_buf buf;
	struct pvr_ring_state *ring; /* in buf, as are sq and rq */
	uint8_t *sq, *rq;
	uint32_t sq_stride, rq_stride;
	uint32_t sq_wr, rq_wr;
	uint32_t sq_sge, rq_sge;
	uint32_t max_inline;
	uint32_t sq_tail, rq_tail; /* the program's own indices */
	bool rang; /* a doorbell for the sends before sq_rung may be on its way */
	uint32_t sq_rung;
	uint32_t handle, qpn;
	uint32_t pd_handle;
};

/* How an RC QP is connected; the timers and depths are none of a UC QP's. */
struct fg_conn {
	uint32_t mtu; /* enum pvr_mtu */
	uint32_t access; /* PVR_ACCESS_REMOTE_* that peers may use */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t sgid_index;
	uint32_t psn; /* both ends begin so far behind the usual one */
};

/* MTU 1024, all access, timeout 14, 7 retries, RNR for ever, timer 12, depth 16. */
extern const struct fg_conn fg_conn_default;

/* Strides and pages of queues, as both drivers compute them. */
uint32_t fg_sq_stride(uint32_t max_sge, uint32_t max_inline);
uint32_t fg_rq_stride(uint32_t max_sge);
uint32_t fg_queue_pages(uint32_t wr, uint32_t stride);

/* CREATE_QP with any request. */
uint32_t fg_create_qp(struct fg_guest *guest, const struct pvr_cmd_create_qp *req,
		      struct pvr_resp_create_qp *resp);
/* The request for @spec, with the pages it needs; pdir_dma is the caller's. */
struct pvr_cmd_create_qp fg_qp_request(const struct fg_qp_spec *spec);

/* On failure nothing is left. */
uint32_t fg_qp_create(const struct fg_qp_spec *spec, struct fg_qp *qp);
/* On failure the QP is unchanged. */
uint32_t fg_qp_destroy(struct fg_qp *qp);
/* Gives the pages back without a command (the device has forgotten the QP). */
void fg_qp_drop(struct fg_qp *qp);

/* MODIFY_QP; fields of @attr that @mask does not name reach the device as garbage. */
uint32_t fg_qp_modify(struct fg_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr);
/* QUERY_QP of everything. */
uint32_t fg_qp_query(struct fg_qp *qp, struct pvr_qp_attr *attr);
/* QUERY_QP's state, or UINT32_MAX. */
uint32_t fg_qp_state(struct fg_qp *qp);

/* QUERY_STATS of a QP; of the adapter. */
uint32_t fg_qp_stats(struct fg_qp *qp, uint64_t stat[PVR_STAT_NUM]);
uint32_t fg_query_stats(struct fg_guest *guest, uint32_t qp_handle, uint64_t stat[PVR_STAT_NUM]);
/* SUM_STATS. @count may exceed PVR_SUM_STATS_MAX. */
uint32_t fg_sum_stats(struct fg_guest *guest, const uint32_t *qp_handle, uint32_t count,
		      uint64_t stat[PVR_STAT_NUM]);

/* ATTACH_MCAST, DETACH_MCAST. */
uint32_t fg_qp_attach(struct fg_qp *qp, const uint8_t mgid[16]);
uint32_t fg_qp_detach(struct fg_qp *qp, const uint8_t mgid[16]);

/* State changes with the attributes that the stock stack sends; NULL: the default. */
uint32_t fg_qp_to_init(struct fg_qp *qp, const struct fg_conn *conn);
uint32_t fg_qp_to_rtr(struct fg_qp *qp, const struct fg_conn *conn, const uint8_t dgid[16],
		      uint32_t dest_qpn);
uint32_t fg_qp_to_rts(struct fg_qp *qp, const struct fg_conn *conn);
uint32_t fg_qp_to_err(struct fg_qp *qp);
/* Zeroes the ring indices afterwards, as drivers do. */
uint32_t fg_qp_to_reset(struct fg_qp *qp);
/* RESET to RTS; GID and number are ignored unless the QP is RC or UC. */
uint32_t fg_qp_connect(struct fg_qp *qp, const struct fg_conn *conn, const uint8_t dgid[16],
		       uint32_t dest_qpn);

#endif /* FG_QP_H */
