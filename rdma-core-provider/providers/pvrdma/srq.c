// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "cq.h"
#include "pvrdma.h"
#include "uverbs_abi.h"

/* Lays out a queue and allocates it: initialises wq except its lock. */
static int alloc_queue(struct pvr_wq *wq, struct pvr_buf *buf, struct ibv_pd *ibpd, uint32_t max_wr,
		       uint32_t max_sge)
{
	const struct pvr_context *ctx = to_pvr_context(ibpd->context);
	const struct pvr_db_suppress_shm *db_suppress_shm;
	struct pvr_ring_state_shm *state_shm;
	size_t size;
	int err;

	size = pvr_wq_layout(wq, max_wr, max_sge ? max_sge : 1, sizeof(struct pvr_rq_wqe),
			     PVR_RQ_STRIDE_MIN);
	err = pvr_buf_alloc(ctx, buf, PVR_PAGE_SIZE + size, ibpd, PVR_RES_SRQ);
	if (err)
		return err;
	state_shm = buf->addr;
	wq->ring_shm = &state_shm->rx;
	db_suppress_shm = pvr_db_suppress_at(state_shm, ctx->features);
	wq->db_suppress_shm = &db_suppress_shm->rq;
	wq->wqes = (uint8_t *)buf->addr + PVR_PAGE_SIZE;
	wq->is_shared = true;
	return 0;
}

static int init_queue(struct pvr_srq *srq, struct ibv_pd *ibpd, const struct ibv_srq_attr *attr)
{
	int err = alloc_queue(&srq->wq, &srq->buf, ibpd, attr->max_wr, attr->max_sge);

	if (!err)
		pvr_lock_init(&srq->wq.lock, pvr_pd_is_threaded(ibpd));
	return err;
}

static void exit_queue(struct pvr_srq *srq)
{
	pvr_buf_free(&srq->buf);
}

static int create_in_kernel(struct pvr_srq *srq, struct ibv_pd *ibpd,
			    const struct ibv_srq_init_attr *attr)
{
	struct pvr_uverbs_create_srq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)srq->buf.addr, .buf_size = srq->buf.size },
	};
	struct pvr_uverbs_create_srq_resp resp = {};
	struct ibv_srq_init_attr rounded = *attr;
	int err;

	rounded.attr.max_wr = srq->wq.num;
	rounded.attr.max_sge = srq->wq.max_sge;
	err = ibv_cmd_create_srq(ibpd, &srq->verbs_srq.srq, &rounded, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	srq->handle = resp.srqn;
	return err;
}

static int create_xrc_in_kernel(struct pvr_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	struct pvr_uverbs_create_xsrq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)srq->buf.addr, .buf_size = srq->buf.size },
	};
	struct pvr_uverbs_create_xsrq_resp resp = {};
	struct ibv_srq_init_attr_ex rounded = *attr;
	int err;

	rounded.attr.max_wr = srq->wq.num;
	rounded.attr.max_sge = srq->wq.max_sge;
	err = ibv_cmd_create_srq_ex(attr->pd->context, &srq->verbs_srq, &rounded, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	srq->handle = resp.srqn;
	/* libibverbs sets it for basic SRQs only, and a resize allocates from it. */
	srq->verbs_srq.srq.pd = attr->pd;
	return err;
}

static struct pvr_qp_entry *entry_of(struct pvr_context *ctx, const struct pvr_srq *srq)
{
	return &ctx->qp_entries[pvr_srq_index(ctx, srq->handle)];
}

/* The release pairs with the acquire in use_side(). */
static void publish_side(struct pvr_qp_entry *entry, struct pvr_srq *srq)
{
	srq->side.wq = &srq->wq;
	srq->side.left = UINT32_MAX;
	srq->side.last = UINT32_MAX - 1;
	entry->side = &srq->side;
	atomic_store_explicit(&entry->cq, to_pvr_cq(srq->verbs_srq.cq), memory_order_release);
}

/*
 * The completions name the SRQ, so its CQ finds it in the table. Returns EBUSY if the former
 * SRQ of this number is still published, see create_xrc_and_publish().
 */
static int publish_srq(struct pvr_srq *srq)
{
	struct pvr_context *ctx = to_pvr_context(srq->verbs_srq.srq.context);
	struct pvr_qp_entry *entry;
	int err = 0;

	if (srq->handle >= ctx->limits.srq) {
		verbs_err(&ctx->ibv_ctx, "an SRQ has number %u, expected below %u\n", srq->handle,
			  ctx->limits.srq);
		return EPROTO;
	}
	entry = entry_of(ctx, srq);
	pthread_mutex_lock(&ctx->qp_mutex);
	if (atomic_load_explicit(&entry->cq, memory_order_relaxed))
		err = EBUSY;
	else
		publish_side(entry, srq);
	pthread_mutex_unlock(&ctx->qp_mutex);
	return err;
}

/* The kernel has destroyed the SRQ, and the device adds no CQE of it. */
static void unpublish_srq(struct pvr_srq *srq)
{
	struct pvr_context *ctx = to_pvr_context(srq->verbs_srq.srq.context);
	struct pvr_cq *cq = to_pvr_cq(srq->verbs_srq.cq);

	pvr_cq_lock(cq);
	pvr_cq_purge_srq_locked(cq, srq->handle);
	pthread_mutex_lock(&ctx->qp_mutex);
	atomic_store_explicit(&entry_of(ctx, srq)->cq, NULL, memory_order_relaxed);
	pthread_mutex_unlock(&ctx->qp_mutex);
	pvr_cq_unlock(cq);
}

#define MAX_NUMBERS_TRIED 16

/*
 * The kernel may give the number of an SRQ that it has destroyed, but whose CQEs are not purged
 * yet, as create_and_publish() of qp.c says. An SRQ keeps that number while this function gets
 * another one. tries: for the number of such numbers.
 */
static int create_xrc_and_publish(struct pvr_srq *srq, const struct ibv_srq_init_attr_ex *attr,
				  int tries)
{
	struct verbs_srq keeper;
	int err;

	err = create_xrc_in_kernel(srq, attr);
	if (err)
		return err;
	err = publish_srq(srq);
	if (!err)
		return 0;
	keeper = srq->verbs_srq; /* no thread uses its locks */
	if (err == EBUSY && tries > 1)
		err = create_xrc_and_publish(srq, attr, tries - 1);
	ibv_cmd_destroy_srq(&keeper.srq);
	return err;
}

static bool is_xrc(const struct ibv_srq_init_attr_ex *attr)
{
	return (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
}

static int check_attr(const struct pvr_context *ctx, const struct ibv_srq_attr *attr)
{
	const struct pvr_limits *limits = &ctx->limits;

	if (!limits->srq_wr)
		return EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > limits->srq_wr || attr->max_sge > limits->srq_sge)
		return EINVAL;
	return 0;
}

static int check_attr_ex(const struct pvr_context *ctx, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (attr->comp_mask & ~(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC &&
	    (!is_xrc(attr) || !(ctx->features & PVR_EXT_XRC)))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (is_xrc(attr) && ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq))
		return EINVAL;
	return check_attr(ctx, &attr->attr);
}

struct ibv_srq *pvr_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = { .srq_context = attr->srq_context, .attr = attr->attr };
	struct ibv_srq *ibsrq;
	struct pvr_srq *srq;
	int err;

	err = check_attr_ex(to_pvr_context(ibctx), attr);
	if (err)
		goto err_errno;
	if (!is_xrc(attr)) {
		ibsrq = pvr_create_srq(attr->pd, &basic);
		attr->attr = basic.attr;
		return ibsrq;
	}
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto err_errno;
	err = init_queue(srq, attr->pd, &attr->attr);
	if (err)
		goto err_free;
	err = create_xrc_and_publish(srq, attr, MAX_NUMBERS_TRIED);
	if (err)
		goto err_exit_queue;
	attr->attr.max_wr = srq->wq.num;
	attr->attr.max_sge = srq->wq.max_sge;
	return &srq->verbs_srq.srq;

err_exit_queue:
	exit_queue(srq);
err_free:
	free(srq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_srq *pvr_create_srq(struct ibv_pd *ibpd, struct ibv_srq_init_attr *attr)
{
	struct pvr_srq *srq;
	int err;

	err = check_attr(to_pvr_context(ibpd->context), &attr->attr);
	if (err)
		goto err_errno;
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto err_errno;
	err = init_queue(srq, ibpd, &attr->attr);
	if (err)
		goto err_free;
	err = create_in_kernel(srq, ibpd, attr);
	if (err)
		goto err_exit_queue;
	attr->attr.max_wr = srq->wq.num;
	attr->attr.max_sge = srq->wq.max_sge;
	return &srq->verbs_srq.srq;

err_exit_queue:
	exit_queue(srq);
err_free:
	free(srq);
err_errno:
	errno = err;
	return NULL;
}

static int resize_in_kernel(struct pvr_srq *srq, const struct pvr_buf *buf,
			    struct ibv_srq_attr *attr, int attr_mask)
{
	struct pvr_uverbs_modify_srq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)buf->addr, .buf_size = buf->size },
	};

	return ibv_cmd_modify_srq(&srq->verbs_srq.srq, attr, attr_mask, &cmd.ibv_cmd, sizeof(cmd));
}

/*
 * Continues the numbers at tail, the index in the new ring. The same requests remain
 * outstanding: pollers add to polled meanwhile. With an impossible index the queue is full
 * from now on.
 */
static void renumber(struct pvr_wq *wq, uint32_t tail)
{
	uint32_t shift = tail - pvr_wq_tail(wq);

	if (tail >= 2 * wq->num)
		shift -= 1u << 31;
	pvr_wq_set_tail(wq, tail);
	pvr_wq_end_shared(wq, shift);
}

/*
 * Switches to the new queue. The device has copied the waiting requests to its start and
 * has set prod_tail, which is loaded only here.
 */
static void use_queue(struct pvr_srq *srq, const struct pvr_wq *wq, const struct pvr_buf *buf)
{
	srq->wq.ring_shm = wq->ring_shm;
	srq->wq.db_suppress_shm = wq->db_suppress_shm;
	srq->wq.wqes = wq->wqes;
	srq->wq.num = wq->num;
	srq->wq.mask = wq->mask;
	srq->wq.idx_mask = wq->idx_mask;
	renumber(&srq->wq, pvr_shm_load(&wq->ring_shm->prod_tail, memory_order_acquire));
	srq->buf = *buf;
}

/* The caller holds the queue's lock, so no request is posted during the command. */
static int resize_locked(struct pvr_srq *srq, const struct pvr_wq *wq, struct pvr_buf *buf,
			 struct ibv_srq_attr *attr, int attr_mask)
{
	struct pvr_buf old = srq->buf;
	int err;

	if (pvr_wq_outstanding(&srq->wq) > wq->num)
		return EINVAL;
	err = resize_in_kernel(srq, buf, attr, attr_mask);
	if (err)
		return err;
	use_queue(srq, wq, buf);
	*buf = old;
	return 0;
}

static int resize_srq(struct pvr_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	const struct pvr_limits *limits = &to_pvr_context(srq->verbs_srq.srq.context)->limits;
	struct ibv_srq_attr rounded = *attr;
	struct pvr_buf buf = {};
	struct pvr_wq wq = {};
	int err;

	if (!attr->max_wr || attr->max_wr > limits->srq_wr)
		return EINVAL;
	err = alloc_queue(&wq, &buf, srq->verbs_srq.srq.pd, attr->max_wr, srq->wq.max_sge);
	if (err)
		return err;
	rounded.max_wr = wq.num;
	pvr_lock(&srq->wq.lock);
	err = resize_locked(srq, &wq, &buf, &rounded, attr_mask);
	pvr_unlock(&srq->wq.lock);
	pvr_buf_free(&buf); /* the old one, or the new one after an error */
	return err;
}

/* Kernel and device refuse unknown bits, and a resize without a new buffer. */
int pvr_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct pvr_context *ctx = to_pvr_context(ibsrq->context);
	struct ibv_modify_srq cmd = {};

	if ((attr_mask & IBV_SRQ_MAX_WR) && (ctx->features & PVR_EXT_RESIZE))
		return resize_srq(to_pvr_srq(ibsrq), attr, attr_mask);
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int pvr_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

/* Of an XRC SRQ, peers name it. Of a basic one it is only informative. */
int pvr_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	*srq_num = to_pvr_srq(ibsrq)->handle;
	return 0;
}

int pvr_destroy_srq(struct ibv_srq *ibsrq)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	if (srq->side.wq)
		unpublish_srq(srq);
	exit_queue(srq);
	free(srq);
	return 0;
}
