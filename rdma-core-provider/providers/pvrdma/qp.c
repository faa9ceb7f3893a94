// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: creation, states, destruction. Posting is in post.c. */
#include <errno.h>
#include <stdlib.h>

#include <util/util.h>

#include "pvrdma.h"
#include "sqe.h"
#include "uverbs_abi.h"

static bool has_inline(const struct pvr_context *ctx)
{
	return ctx->features & PVR_EXT_INLINE;
}

static int check_qp_type(const struct pvr_context *ctx, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_UC:
		return ctx->features & PVR_EXT_UC ? 0 : EOPNOTSUPP;
	case IBV_QPT_XRC_SEND:
		return ctx->features & PVR_EXT_XRC ? 0 : EOPNOTSUPP;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

/* Unknown mask bits are unsupported features. */
static int check_ex_attr(const struct pvr_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
				IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return pvr_check_send_ops(ctx, attr->qp_type, attr->send_ops_flags);
	return 0;
}

/* An SRQ replaces the receive queue. An XRC initiator has none. */
static bool has_rq(const struct ibv_qp_init_attr_ex *attr)
{
	return !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND;
}

static int check_cap(const struct pvr_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const struct pvr_limits *limits = &ctx->limits;
	const struct ibv_qp_cap *cap = &attr->cap;

	if (cap->max_send_wr > limits->qp_wr || cap->max_send_sge > limits->sge)
		return EINVAL;
	if (has_rq(attr) && (cap->max_recv_wr > limits->qp_wr || cap->max_recv_sge > limits->sge))
		return EINVAL;
	return has_inline(ctx) && cap->max_inline_data > PVR_MAX_INLINE ? EINVAL : 0;
}

static int check_init_attr(const struct pvr_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	int err = check_qp_type(ctx, attr->qp_type);

	if (!err)
		err = check_ex_attr(ctx, attr);
	if (err)
		return err;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_SEND ? attr->srq != NULL : !attr->recv_cq)
		return EINVAL;
	if (attr->srq && attr->qp_type == IBV_QPT_UC)
		return EINVAL;
	return check_cap(ctx, attr);
}

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

/*
 * Inline data use the space of scatter/gather entries, so the whole stride is usable.
 * Without the extension the result is 0, as with the stock provider, and creation
 * succeeds.
 */
static uint32_t max_inline(const struct pvr_context *ctx, const struct pvr_wq *sq)
{
	size_t room = sq->stride - sizeof(struct pvr_sq_wqe);

	if (!has_inline(ctx))
		return 0;
	return room < PVR_MAX_INLINE ? room : PVR_MAX_INLINE;
}

static size_t min_send_stride(const struct pvr_context *ctx, const struct ibv_qp_cap *cap)
{
	size_t stride = sizeof(struct pvr_sq_wqe) + cap->max_inline_data;

	return has_inline(ctx) && stride > PVR_SQ_STRIDE_MIN ? stride : PVR_SQ_STRIDE_MIN;
}

/* Returns the bytes of header page and send queue. */
static size_t layout_send_queue(struct pvr_qp *qp, const struct pvr_context *ctx,
				const struct ibv_qp_cap *cap)
{
	return PVR_PAGE_SIZE + pvr_wq_layout(&qp->sq, at_least_one(cap->max_send_wr),
					     at_least_one(cap->max_send_sge),
					     sizeof(struct pvr_sq_wqe), min_send_stride(ctx, cap));
}

/* Returns its bytes. The indices of the receive queue are in the header page. */
static size_t layout_recv_queue(struct pvr_qp *qp, const struct ibv_qp_cap *cap)
{
	return pvr_wq_layout(&qp->rq, at_least_one(cap->max_recv_wr),
			     at_least_one(cap->max_recv_sge), sizeof(struct pvr_rq_wqe),
			     PVR_RQ_STRIDE_MIN);
}

static void use_buf(struct pvr_qp *qp, const struct pvr_context *ctx)
{
	struct pvr_ring_state_shm *state_shm = qp->buf.addr;
	const struct pvr_db_suppress_shm *db_suppress_shm;

	qp->sq.ring_shm = &state_shm->tx;
	qp->rq.ring_shm = &state_shm->rx;
	db_suppress_shm = pvr_db_suppress_at(state_shm, ctx->features);
	qp->sq.db_suppress_shm = &db_suppress_shm->sq;
	qp->sq.is_send = ctx->features & PVR_EXT_DB_SUPPRESS;
	qp->rq.db_suppress_shm = &db_suppress_shm->rq;
	qp->sq.wqes = (uint8_t *)qp->buf.addr + PVR_PAGE_SIZE;
	qp->rq.wqes = (uint8_t *)qp->buf.addr + qp->send_size;
}

/*
 * One piece of memory for both queues: one allocation here, and one to pin for the kernel.
 * The receive queue begins at a page of this system, as some drivers require.
 */
static int alloc_queues(struct pvr_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	const struct pvr_context *ctx = to_pvr_context(attr->pd->context);
	size_t recv_size = 0;
	int err;

	qp->send_size = align(layout_send_queue(qp, ctx, &attr->cap), pvr_page_size());
	if (has_rq(attr))
		recv_size = align(layout_recv_queue(qp, &attr->cap), pvr_page_size());
	err = pvr_buf_alloc(ctx, &qp->buf, qp->send_size + recv_size, attr->pd, PVR_RES_QP);
	if (err)
		return err;
	use_buf(qp, ctx);
	qp->sq.wr_ids = calloc(qp->sq.num, sizeof(*qp->sq.wr_ids));
	if (qp->sq.wr_ids)
		return 0;
	pvr_buf_free(&qp->buf);
	return ENOMEM;
}

static int init_queues(struct pvr_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	int err = alloc_queues(qp, attr);

	if (err)
		return err;
	qp->recv_wq = attr->srq ? &to_pvr_srq(attr->srq)->wq : &qp->rq;
	pvr_lock_init(&qp->sq.lock, pvr_pd_is_threaded(attr->pd));
	pvr_lock_init(&qp->rq.lock, pvr_pd_is_threaded(attr->pd));
	return 0;
}

static void exit_queues(struct pvr_qp *qp)
{
	free(qp->sq.wr_ids);
	pvr_buf_free(&qp->buf);
}

/* Stores the actual sizes. */
static void set_cap(const struct pvr_context *ctx, struct pvr_qp *qp)
{
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = qp->sq.num,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_wr = qp->rq.num,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = max_inline(ctx, &qp->sq),
	};
}

static int create_in_kernel(struct pvr_context *ctx, struct pvr_qp *qp,
			    const struct ibv_qp_init_attr_ex *attr)
{
	size_t recv_size = qp->buf.size - qp->send_size;
	struct pvr_uverbs_create_qp cmd = {
		.drv_payload = {
			.rbuf_addr = recv_size ? (uintptr_t)qp->buf.addr + qp->send_size : 0,
			.rbuf_size = recv_size,
			.sbuf_addr = (uintptr_t)qp->buf.addr,
			.sbuf_size = qp->send_size,
			.qp_addr = (uintptr_t)qp,
		},
	};
	struct pvr_uverbs_create_qp_resp resp = {};
	struct ibv_qp_init_attr_ex rounded = *attr;
	int err;

	rounded.comp_mask = IBV_QP_INIT_ATTR_PD;
	rounded.cap = qp->cap;
	err = ibv_cmd_create_qp_ex(&ctx->ibv_ctx.context, &qp->verbs_qp, &rounded, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	/*
	 * Devices before version 20 have one number for both. Later ones have no handle
	 * 0.
	 */
	qp->handle = resp.qp_handle ? resp.qp_handle : qp->verbs_qp.qp.qp_num;
	return 0;
}

/*
 * Begins at the first request of an empty queue. Of an SRQ any number is outstanding, because
 * completions in other CQs end its requests, too.
 */
static void reset_side(struct pvr_qp_side *side)
{
	side->left = side->wq->is_shared ? UINT32_MAX : 0;
	side->last = side->left - 1;
}

static void init_side(struct pvr_qp *qp, enum pvr_side which, struct pvr_wq *wq)
{
	struct pvr_qp_side *side = &qp->sides[which];

	side->wq = wq;
	side->wr_ids = wq->wr_ids;
	side->mask = wq->mask;
	side->qp_num = qp->verbs_qp.qp.qp_num;
	reset_side(side);
}

/* The release pairs with the acquire in use_side(). */
static void publish_side(struct pvr_context *ctx, struct pvr_qp *qp, enum pvr_side which,
			 struct ibv_cq *cq)
{
	struct pvr_qp_entry *entry = &ctx->qp_entries[pvr_qp_index(qp->handle, which)];

	entry->side = &qp->sides[which];
	atomic_store_explicit(&entry->cq, to_pvr_cq(cq), memory_order_release);
}

/* An XRC initiator has no receive CQ; no message completes there. */
static struct ibv_cq *recv_cq_of(struct pvr_qp *qp)
{
	return qp->verbs_qp.qp.recv_cq ? qp->verbs_qp.qp.recv_cq : qp->verbs_qp.qp.send_cq;
}

static void publish_sides(struct pvr_context *ctx, struct pvr_qp *qp)
{
	init_side(qp, PVR_SIDE_SEND, &qp->sq);
	init_side(qp, PVR_SIDE_RECV, qp->recv_wq);
	publish_side(ctx, qp, PVR_SIDE_SEND, qp->verbs_qp.qp.send_cq);
	publish_side(ctx, qp, PVR_SIDE_RECV, recv_cq_of(qp));
}

static void unpublish_side(struct pvr_context *ctx, const struct pvr_qp *qp, enum pvr_side which)
{
	atomic_store_explicit(&ctx->qp_entries[pvr_qp_index(qp->handle, which)].cq, NULL,
			      memory_order_relaxed);
}

/* Returns EBUSY if the former QP of this handle is still published, see create_and_publish(). */
static int publish_qp(struct pvr_context *ctx, struct pvr_qp *qp)
{
	int err = 0;

	if (qp->handle >= ctx->qp_tbl_size) {
		verbs_err(&ctx->ibv_ctx, "qp %u has handle %u, expected below %u\n",
			  qp->verbs_qp.qp.qp_num, qp->handle, ctx->qp_tbl_size);
		return EPROTO;
	}
	pthread_mutex_lock(&ctx->qp_mutex);
	if (ctx->qp_tbl[qp->handle]) {
		err = EBUSY;
	} else {
		ctx->qp_tbl[qp->handle] = qp;
		publish_sides(ctx, qp);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	return err;
}

#define MAX_HANDLES_TRIED 16

/*
 * The kernel may give the handle of a QP that it has destroyed, but whose CQEs are not purged
 * yet, because ibv_destroy_qp(3) waits in another thread until its events are acknowledged.
 * A QP keeps that handle while this function gets another one. tries: for the number of such
 * handles.
 */
static int create_and_publish(struct pvr_context *ctx, struct pvr_qp *qp,
			      const struct ibv_qp_init_attr_ex *attr, int tries)
{
	struct verbs_qp keeper;
	int err;

	err = create_in_kernel(ctx, qp, attr);
	if (err)
		return err;
	err = publish_qp(ctx, qp);
	if (!err)
		return 0;
	keeper = qp->verbs_qp; /* no thread uses its locks */
	if (err == EBUSY && tries > 1)
		err = create_and_publish(ctx, qp, attr, tries - 1);
	ibv_cmd_destroy_qp(&keeper.qp);
	return err;
}

struct ibv_qp *pvr_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct pvr_context *ctx = to_pvr_context(ibctx);
	struct pvr_qp *qp;
	int err;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return pvr_create_target(ibctx, attr);
	err = check_init_attr(ctx, attr);
	if (err)
		goto err_errno;
	err = ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto err_errno;
	err = init_queues(qp, attr);
	if (err)
		goto err_free;
	set_cap(ctx, qp);
	qp->send_ops = pvr_send_ops_of(ctx, attr->qp_type);
	qp->plain_ops = pvr_plain_ops_of(attr->qp_type);
	qp->sq_sig_all = attr->sq_sig_all;
	err = create_and_publish(ctx, qp, attr, MAX_HANDLES_TRIED);
	if (err)
		goto err_exit_queues;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		pvr_set_send_ops(qp, attr->send_ops_flags);
	attr->cap = qp->cap;
	return &qp->verbs_qp.qp;

err_exit_queues:
	exit_queues(qp);
err_free:
	free(qp);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_qp *pvr_create_qp(struct ibv_pd *ibpd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ibpd,
	};
	struct ibv_qp *qp = pvr_create_qp_ex(ibpd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* The dropped completions end their requests, too: those of an SRQ outlive the QP. */
static void purge_cqs_locked(struct pvr_qp *qp, struct pvr_cq *send_cq, struct pvr_cq *recv_cq)
{
	uint32_t received = pvr_cq_purge_locked(recv_cq, qp->handle);

	if (recv_cq != send_cq)
		pvr_cq_purge_locked(send_cq, qp->handle);
	if (qp->recv_wq->is_shared)
		pvr_wq_end_shared(qp->recv_wq, received);
}

/*
 * The kernel has destroyed the QP, and the device adds no CQE of it. The CQEs and the
 * table's entry are removed together, so that no poller sees a CQE without its QP. A poll
 * that flushes takes the mutex inside the lock of a CQ, too.
 */
static void unpublish_qp(struct pvr_context *ctx, struct pvr_qp *qp)
{
	struct pvr_cq *send_cq = to_pvr_cq(qp->verbs_qp.qp.send_cq);
	struct pvr_cq *recv_cq = to_pvr_cq(recv_cq_of(qp));

	pvr_cq_lock_pair(send_cq, recv_cq);
	purge_cqs_locked(qp, send_cq, recv_cq);
	unpublish_side(ctx, qp, PVR_SIDE_SEND);
	unpublish_side(ctx, qp, PVR_SIDE_RECV);
	pthread_mutex_lock(&ctx->qp_mutex);
	ctx->qp_tbl[qp->handle] = NULL;
	pthread_mutex_unlock(&ctx->qp_mutex);
	pvr_cq_unlock_pair(send_cq, recv_cq);
}

/*
 * The command waits until other threads have acknowledged the events of the QP. So no lock
 * may be held, which these threads could need before.
 */
int pvr_destroy_qp(struct ibv_qp *ibqp)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	int err = ibv_cmd_destroy_qp(ibqp);

	if (err)
		return err;
	if (pvr_qp_is_target(qp)) {
		free(qp);
		return 0;
	}
	unpublish_qp(to_pvr_context(ibqp->context), qp);
	exit_queues(qp);
	free(qp);
	return 0;
}

/*
 * The device has emptied the queues. Requests and completions of the time before RESET
 * are dropped.
 */
static void forget_work(struct pvr_qp *qp)
{
	struct pvr_cq *send_cq = to_pvr_cq(qp->verbs_qp.qp.send_cq);
	struct pvr_cq *recv_cq = to_pvr_cq(recv_cq_of(qp));

	pvr_cq_lock_pair(send_cq, recv_cq);
	pvr_wq_reset(&qp->sq);
	pvr_wq_reset(&qp->rq);
	reset_side(&qp->sides[PVR_SIDE_SEND]);
	reset_side(&qp->sides[PVR_SIDE_RECV]);
	purge_cqs_locked(qp, send_cq, recv_cq);
	pvr_cq_unlock_pair(send_cq, recv_cq);
}

int pvr_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct ibv_modify_qp cmd = {};
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (!err && (attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET &&
	    !pvr_qp_is_target(to_pvr_qp(ibqp)))
		forget_work(to_pvr_qp(ibqp));
	return err;
}

int pvr_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	struct ibv_query_qp cmd;
	int err;

	err = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
	if (err)
		return err;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	init_attr->sq_sig_all = qp->sq_sig_all;
	return 0;
}
