// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: header page, send WQEs, receive WQEs in one directory. */
#include "fg_qp.h"

#include <string.h>

#include "fg_cmd.h"
#include "fg_gid.h"

#define DEFAULT_WR 64
#define DEFAULT_SGE 4
#define GARBAGE 0x5a
#define PSN_BASE 0x123456u

const struct fg_conn fg_conn_default = {
	.mtu = PVR_MTU_1024,
	.access = PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
	.max_rd_atomic = 16,
	.max_dest_rd_atomic = 16,
};

static uint32_t pow2(uint32_t x, uint32_t min)
{
	while (min < x)
		min *= 2;
	return min;
}

uint32_t fg_sq_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t list = max_sge * (uint32_t)sizeof(struct pvrdma_sge);

	return pow2(sizeof(struct pvrdma_sq_wqe_hdr) + (list > max_inline ? list : max_inline),
		    PVR_SQ_STRIDE_MIN);
}

uint32_t fg_rq_stride(uint32_t max_sge)
{
	return pow2(sizeof(struct pvrdma_rq_wqe_hdr) + max_sge * sizeof(struct pvrdma_sge),
		    PVR_RQ_STRIDE_MIN);
}

uint32_t fg_queue_pages(uint32_t wr, uint32_t stride)
{
	return (uint32_t)(((uint64_t)wr * stride + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE);
}

/* An older device returns a number that is also the handle. */
static bool has_handles(struct fg_guest *guest)
{
	return guest->config.driver_version >= PVR_VERSION_QPHANDLE &&
	       fg_reg_read(guest, PVR_REG_VERSION) >= PVR_VERSION_QPHANDLE;
}

uint32_t fg_create_qp(struct fg_guest *guest, const struct pvr_cmd_create_qp *req,
		      struct pvr_resp_create_qp *resp)
{
	struct pvr_resp_create_qp_v1 v1;
	uint32_t err;

	if (has_handles(guest))
		return fg_cmd(guest, req, sizeof(*req), resp, sizeof(*resp));
	err = fg_cmd(guest, req, sizeof(*req), &v1, sizeof(v1));
	*resp = (struct pvr_resp_create_qp){
		.hdr = v1.hdr,
		.qpn = v1.qpn,
		.qp_handle = v1.qpn,
		.max_send_wr = v1.max_send_wr,
		.max_recv_wr = v1.max_recv_wr,
		.max_send_sge = v1.max_send_sge,
		.max_recv_sge = v1.max_recv_sge,
		.max_inline_data = v1.max_inline_data,
	};
	return err;
}

static bool has_rq(const struct fg_qp_spec *spec)
{
	return !spec->srq && spec->type != PVR_QPT_XRC_INI;
}

static struct fg_qp_spec spec_complete(const struct fg_qp_spec *spec)
{
	struct fg_qp_spec full = *spec;

	full.sq_wr = full.sq_wr ? full.sq_wr : DEFAULT_WR;
	full.sq_sge = full.sq_sge ? full.sq_sge : DEFAULT_SGE;
	full.rq_wr = has_rq(spec) ? full.rq_wr ? full.rq_wr : DEFAULT_WR : 0;
	full.rq_sge = has_rq(spec) ? full.rq_sge ? full.rq_sge : DEFAULT_SGE : 0;
	return full;
}

struct pvr_cmd_create_qp fg_qp_request(const struct fg_qp_spec *spec)
{
	struct fg_qp_spec full = spec_complete(spec);
	uint32_t send = fg_queue_pages(full.sq_wr, fg_sq_stride(full.sq_sge, full.max_inline));
	uint32_t recv = !has_rq(&full) ? 0 : fg_queue_pages(full.rq_wr, fg_rq_stride(full.rq_sge));

	return (struct pvr_cmd_create_qp){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_QP),
		.pd_handle = full.pd->handle,
		.send_cq_handle = full.scq->handle,
		.recv_cq_handle = full.rcq->handle,
		.srq_handle = full.srq ? full.srq->handle : 0,
		.max_send_wr = full.sq_wr,
		.max_recv_wr = full.rq_wr,
		.max_send_sge = full.sq_sge,
		.max_recv_sge = full.rq_sge,
		.max_inline_data = full.max_inline,
		.access_flags = PVR_ACCESS_LOCAL_WRITE,
		.total_chunks = (uint16_t)(1 + send + recv),
		.send_chunks = (uint16_t)send,
		.sq_sig_all = full.sig_all,
		.flags = full.flags,
		.qp_type = (uint8_t)full.type,
		.is_srq = full.srq != NULL,
	};
}

static void qp_layout(struct fg_qp *qp, const struct pvr_cmd_create_qp *req)
{
	qp->ring = (struct pvr_ring_state *)qp->buf.va;
	qp->sq = qp->buf.va + PVR_PAGE_SIZE;
	qp->rq = qp->sq + (size_t)req->send_chunks * PVR_PAGE_SIZE;
	qp->sq_stride = fg_sq_stride(req->max_send_sge, req->max_inline_data);
	qp->rq_stride = fg_rq_stride(req->max_recv_sge);
	qp->sq_wr = req->max_send_wr;
	qp->rq_wr = req->max_recv_wr;
	qp->sq_sge = req->max_send_sge;
	qp->max_inline = req->max_inline_data;
	qp->rq_sge = req->max_recv_sge;
}

uint32_t fg_qp_create(const struct fg_qp_spec *spec, struct fg_qp *qp)
{
	struct fg_guest *guest = spec->pd->ctx->guest;
	struct pvr_cmd_create_qp req = fg_qp_request(spec);
	struct pvr_resp_create_qp resp;
	uint32_t err;

	memset(qp, 0, sizeof(*qp));
	fg_buf_init(&qp->buf, &guest->ram, req.total_chunks, spec->kind);
	req.pdir_dma = qp->buf.pdir;
	err = fg_create_qp(guest, &req, &resp);
	if (err) {
		fg_buf_exit(&qp->buf);
		return err;
	}
	qp->guest = guest;
	qp->ctx = spec->pd->ctx;
	qp->type = spec->type;
	qp->pd_handle = spec->pd->handle;
	qp->qpn = resp.qpn;
	qp->handle = resp.qp_handle;
	qp_layout(qp, &req);
	return 0;
}

uint32_t fg_qp_destroy(struct fg_qp *qp)
{
	uint32_t err = fg_cmd_destroy(qp->guest, PVR_CMD_DESTROY_QP, qp->handle);

	if (!err)
		fg_qp_drop(qp);
	return err;
}

void fg_qp_drop(struct fg_qp *qp)
{
	fg_buf_exit(&qp->buf);
}

#define COPY(bit, field)                                                     \
	do {                                                                 \
		if (mask & (bit))                                            \
			memcpy(&to->field, &from->field, sizeof(to->field)); \
	} while (0)

static void copy_masked(struct pvr_qp_attr *to, const struct pvr_qp_attr *from, uint32_t mask)
{
	COPY(PVR_QPA_STATE, qp_state);
	COPY(PVR_QPA_CUR_STATE, cur_qp_state);
	COPY(PVR_QPA_EN_SQD_ASYNC, en_sqd_async_notify);
	COPY(PVR_QPA_ACCESS_FLAGS, qp_access_flags);
	COPY(PVR_QPA_PKEY_INDEX, pkey_index);
	COPY(PVR_QPA_PORT, port_num);
	COPY(PVR_QPA_QKEY, qkey);
	COPY(PVR_QPA_AV, ah_attr);
	COPY(PVR_QPA_PATH_MTU, path_mtu);
	COPY(PVR_QPA_TIMEOUT, timeout);
	COPY(PVR_QPA_RETRY_CNT, retry_cnt);
	COPY(PVR_QPA_RNR_RETRY, rnr_retry);
	COPY(PVR_QPA_RQ_PSN, rq_psn);
	COPY(PVR_QPA_MAX_RD_ATOMIC, max_rd_atomic);
	COPY(PVR_QPA_ALT_PATH, alt_ah_attr);
	COPY(PVR_QPA_ALT_PATH, alt_port_num);
	COPY(PVR_QPA_ALT_PATH, alt_timeout);
	COPY(PVR_QPA_ALT_PATH, alt_pkey_index);
	COPY(PVR_QPA_MIN_RNR_TIMER, min_rnr_timer);
	COPY(PVR_QPA_SQ_PSN, sq_psn);
	COPY(PVR_QPA_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(PVR_QPA_PATH_MIG_STATE, path_mig_state);
	COPY(PVR_QPA_CAP, cap);
	COPY(PVR_QPA_DEST_QPN, dest_qp_num);
}

uint32_t fg_qp_modify(struct fg_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr)
{
	struct pvr_cmd_modify_qp req = {
		.hdr = FG_CMD_HDR(PVR_CMD_MODIFY_QP),
		.qp_handle = qp->handle,
		.attr_mask = mask,
	};
	struct pvr_resp_hdr resp;

	memset(&req.attrs, GARBAGE, sizeof(req.attrs));
	copy_masked(&req.attrs, attr, mask);
	return fg_cmd(qp->guest, &req, sizeof(req), &resp, sizeof(resp));
}

uint32_t fg_qp_query(struct fg_qp *qp, struct pvr_qp_attr *attr)
{
	struct pvr_cmd_query_qp req = {
		.hdr = FG_CMD_HDR(PVR_CMD_QUERY_QP),
		.qp_handle = qp->handle,
		.attr_mask = PVR_QPA_ALL,
	};
	struct pvr_resp_query_qp resp;
	uint32_t err = fg_cmd(qp->guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*attr = resp.attrs;
	return err;
}

uint32_t fg_qp_state(struct fg_qp *qp)
{
	struct pvr_qp_attr attr;

	return fg_qp_query(qp, &attr) ? UINT32_MAX : attr.qp_state;
}

uint32_t fg_query_stats(struct fg_guest *guest, uint32_t qp_handle, uint64_t stat[PVR_STAT_NUM])
{
	struct pvr_cmd_query_stats req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_STATS),
					   .qp_handle = qp_handle };
	struct pvr_resp_query_stats resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		memcpy(stat, resp.stat, sizeof(resp.stat));
	return err;
}

uint32_t fg_sum_stats(struct fg_guest *guest, const uint32_t *qp_handle, uint32_t count,
		      uint64_t stat[PVR_STAT_NUM])
{
	struct pvr_cmd_sum_stats req = { .hdr = FG_CMD_HDR(PVR_CMD_SUM_STATS), .count = count };
	struct pvr_resp_query_stats resp;
	uint32_t err;

	for (uint32_t i = 0; i < count && i < PVR_SUM_STATS_MAX; i++)
		req.qp_handle[i] = qp_handle[i];
	err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));
	if (!err)
		memcpy(stat, resp.stat, sizeof(resp.stat));
	return err;
}

uint32_t fg_qp_stats(struct fg_qp *qp, uint64_t stat[PVR_STAT_NUM])
{
	return fg_query_stats(qp->guest, qp->handle, stat);
}

static uint32_t mcast(struct fg_qp *qp, enum pvr_cmd cmd, const uint8_t mgid[16])
{
	struct pvr_cmd_mcast req = { .hdr = FG_CMD_HDR(cmd), .qp_handle = qp->handle };

	memcpy(req.mgid, mgid, sizeof(req.mgid));
	return fg_cmd(qp->guest, &req, sizeof(req), NULL, 0);
}

uint32_t fg_qp_attach(struct fg_qp *qp, const uint8_t mgid[16])
{
	return mcast(qp, PVR_CMD_ATTACH_MCAST, mgid);
}

uint32_t fg_qp_detach(struct fg_qp *qp, const uint8_t mgid[16])
{
	return mcast(qp, PVR_CMD_DETACH_MCAST, mgid);
}

static bool is_connected(const struct fg_qp *qp)
{
	return qp->type != PVR_QPT_UD && qp->type != PVR_QPT_GSI;
}

static uint32_t responder_attrs(const struct fg_qp *qp)
{
	if (qp->type == PVR_QPT_RC || qp->type == PVR_QPT_XRC_TGT)
		return PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_MIN_RNR_TIMER;
	return 0;
}

static uint32_t requester_attrs(const struct fg_qp *qp)
{
	if (qp->type == PVR_QPT_RC || qp->type == PVR_QPT_XRC_INI)
		return PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY |
		       PVR_QPA_MAX_RD_ATOMIC;
	return qp->type == PVR_QPT_XRC_TGT ? PVR_QPA_TIMEOUT : 0;
}

uint32_t fg_qp_to_init(struct fg_qp *qp, const struct fg_conn *conn)
{
	struct pvr_qp_attr attr = {
		.qp_state = PVR_QPS_INIT,
		.port_num = 1,
		.qkey = qp->type == PVR_QPT_GSI ? FG_GSI_QKEY : FG_QKEY,
		.qp_access_flags = conn ? conn->access : fg_conn_default.access,
	};
	uint32_t mask = PVR_QPA_STATE | PVR_QPA_PKEY_INDEX;

	if (qp->type != PVR_QPT_GSI)
		mask |= PVR_QPA_PORT;
	mask |= is_connected(qp) ? PVR_QPA_ACCESS_FLAGS : PVR_QPA_QKEY;
	return fg_qp_modify(qp, mask, &attr);
}

uint32_t fg_qp_to_rtr(struct fg_qp *qp, const struct fg_conn *conn, const uint8_t dgid[16],
		      uint32_t dest_qpn)
{
	const struct fg_conn *c = conn ? conn : &fg_conn_default;
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTR };
	uint32_t mask = PVR_QPA_STATE;

	if (is_connected(qp)) {
		attr.path_mtu = c->mtu;
		attr.dest_qp_num = dest_qpn;
		attr.rq_psn = PSN_BASE + c->psn;
		attr.max_dest_rd_atomic = c->max_dest_rd_atomic;
		attr.min_rnr_timer = c->min_rnr_timer;
		attr.ah_attr.sgid_index = c->sgid_index;
		attr.ah_attr.hop_limit = 64;
		attr.ah_attr.ah_flags = PVR_AH_GRH;
		attr.ah_attr.port_num = 1;
		memcpy(attr.ah_attr.dgid, dgid, 16);
		fg_mac_of_gid(attr.ah_attr.dmac, dgid);
		mask |= PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN;
	}
	mask |= responder_attrs(qp);
	return fg_qp_modify(qp, mask, &attr);
}

uint32_t fg_qp_to_rts(struct fg_qp *qp, const struct fg_conn *conn)
{
	const struct fg_conn *c = conn ? conn : &fg_conn_default;
	struct pvr_qp_attr attr = {
		.qp_state = PVR_QPS_RTS,
		.sq_psn = PSN_BASE + c->psn,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = c->max_rd_atomic,
	};
	uint32_t mask = PVR_QPA_STATE | PVR_QPA_SQ_PSN;

	mask |= requester_attrs(qp);
	return fg_qp_modify(qp, mask, &attr);
}

uint32_t fg_qp_to_err(struct fg_qp *qp)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_ERR };

	return fg_qp_modify(qp, PVR_QPA_STATE, &attr);
}

uint32_t fg_qp_to_reset(struct fg_qp *qp)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RESET };
	uint32_t err = fg_qp_modify(qp, PVR_QPA_STATE, &attr);

	if (err)
		return err;
	memset(qp->ring, 0, sizeof(*qp->ring));
	qp->sq_tail = qp->rq_tail = 0;
	qp->rang = false;
	return 0;
}

uint32_t fg_qp_connect(struct fg_qp *qp, const struct fg_conn *conn, const uint8_t dgid[16],
		       uint32_t dest_qpn)
{
	uint32_t err = fg_qp_to_init(qp, conn);

	if (!err)
		err = fg_qp_to_rtr(qp, conn, dgid, dest_qpn);
	if (!err)
		err = fg_qp_to_rts(qp, conn);
	return err;
}
