// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: creation, resizing, arming, purging. cq_poll.c polls them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "doorbell.h"
#include "uverbs_abi.h"

/*
 * Returns whether there are unread CQEs that the device may not have announced. CQEs of a
 * concurrent poller count as unread until it publishes cons_head. The acquire pairs with
 * the device's release of prod_tail, before which it clears told.
 */
static bool has_news(const struct pvr_cq *cq)
{
	uint32_t head = pvr_shm_load(&cq->ring_shm->cons_head, memory_order_relaxed);

	return pvr_shm_load(&cq->ring_shm->prod_tail, memory_order_acquire) != head &&
	       !pvr_shm_load(&cq->arm_dbrec->notified, memory_order_relaxed);
}

/*
 * Arms the CQ by its arm record if possible. Returns whether a doorbell is needed.
 *
 * The fence pairs with the device's fence between its store to prod_tail and its load of
 * the record. Either the device sees the record, or this thread sees the completion,
 * which the device may not have announced.
 *
 * The record stays armed for any completion if the new request is for solicited ones
 * only: the device may not have read it yet, and both requests need their event.
 */
static bool arm_locked(struct pvr_cq *cq, uint32_t kind)
{
	if (!cq->arm_dbrec)
		return true;
	if (kind == PVR_CQ_ARM_SOLICITED && (cq->arm & PVR_CQ_ARM_KIND) == PVR_CQ_ARM_ANY)
		return true;
	cq->arm = ((cq->arm & ~PVR_CQ_ARM_KIND) + PVR_CQ_ARM_STEP) | kind;
	pvr_shm_store(&cq->arm_dbrec->arm, cq->arm, memory_order_release);
	pvr_full_barrier();
	return has_news(cq);
}

static void lock_arming(struct pvr_cq *cq)
{
	if (!cq->single_threaded)
		pvr_lock(&cq->arm_lock);
}

static void unlock_arming(struct pvr_cq *cq)
{
	if (!cq->single_threaded)
		pvr_unlock(&cq->arm_lock);
}

/*
 * The device notifies at once if it finds CQEs when it reads the arming. So the caller's
 * next poll may run before that event. The previous poll has published cons_head.
 */
int pvr_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	bool ring;

	lock_arming(cq);
	ring = arm_locked(cq, solicited_only ? PVR_CQ_ARM_SOLICITED : PVR_CQ_ARM_ANY);
	unlock_arming(cq);
	if (ring)
		pvr_ring_cq(to_pvr_context(ibcq->context), cq->handle,
			    solicited_only ? PVR_DB_CQ_ARM_SOL : PVR_DB_CQ_ARM);
	return 0;
}

static bool is_of_qp(const struct pvr_cqe *cqe, uint32_t handle)
{
	return !(le64toh(cqe->qp) >> 32) && pvr_cqe_qp_handle(cqe) == handle;
}

static bool is_of_srq(const struct pvr_cqe *cqe, uint32_t srqn)
{
	return le64toh(cqe->qp) >> 32 == (PVR_CQE_XRC | srqn);
}

/*
 * Moves the other CQEs towards prod_tail and cons_head behind the purged ones. The device
 * never reads CQEs back and writes only from prod_tail on.
 */
static uint32_t purge_locked(struct pvr_cq *cq,
			     bool (*is_of)(const struct pvr_cqe *cqe, uint32_t number),
			     uint32_t number)
{
	uint32_t mask = cq->idx_mask, fill = pvr_cq_fill(cq), received = 0, from, to;

	cq->side = NULL;
	cq->index = PVR_NO_INDEX;
	if (fill > cq->num)
		return 0;
	from = to = (cq->head + fill) & mask;
	while (fill--) {
		from = (from - 1) & mask;
		if (is_of(pvr_cqe_at(cq, from), number)) {
			received += pvr_cqe_side(pvr_cqe_at(cq, from)) == PVR_SIDE_RECV;
			continue;
		}
		to = (to - 1) & mask;
		if (to != from)
			memcpy(pvr_cqe_at(cq, to), pvr_cqe_at(cq, from), sizeof(struct pvr_cqe));
	}
	cq->head = to;
	cq->tail = to; /* next_poll() reloads it */
	pvr_cq_publish(cq);
	return received;
}

uint32_t pvr_cq_purge_locked(struct pvr_cq *cq, uint32_t qp_handle)
{
	return purge_locked(cq, is_of_qp, qp_handle);
}

void pvr_cq_purge_srq_locked(struct pvr_cq *cq, uint32_t srqn)
{
	purge_locked(cq, is_of_srq, srqn);
}

void pvr_cq_lock_pair(struct pvr_cq *a, struct pvr_cq *b)
{
	struct pvr_cq *first = a->handle <= b->handle ? a : b;
	struct pvr_cq *second = first == a ? b : a;

	pvr_cq_lock(first);
	if (second != first)
		pvr_cq_lock(second);
}

void pvr_cq_unlock_pair(struct pvr_cq *a, struct pvr_cq *b)
{
	pvr_cq_unlock(a);
	if (b != a)
		pvr_cq_unlock(b);
}

static uint32_t elements_for(uint32_t cqe)
{
	uint32_t num = 1;

	while (num < cqe)
		num <<= 1;
	return num;
}

static int alloc_ring(const struct pvr_cq *cq, const struct pvr_context *ctx, struct pvr_buf *buf,
		      uint32_t num)
{
	return pvr_buf_alloc(ctx, buf, PVR_PAGE_SIZE + (size_t)num * sizeof(struct pvr_cqe),
			     cq->parent, PVR_RES_CQ);
}

/* Switches to an empty ring that is not armed. */
static void use_ring(struct pvr_cq *cq, const struct pvr_context *ctx, const struct pvr_buf *buf,
		     uint32_t num)
{
	struct pvr_ring_state_shm *state_shm = buf->addr;
	uint8_t *page = buf->addr;

	cq->buf = *buf;
	cq->ring_shm = &state_shm->rx;
	cq->cqes_shm = (void *)((uint8_t *)buf->addr + PVR_PAGE_SIZE);
	cq->num = num;
	cq->idx_mask = 2 * num - 1;
	cq->head = 0;
	cq->tail = 0;
	cq->arm = 0;
	cq->arm_dbrec = ctx->features & PVR_EXT_CQ_ARM_DBREC
				? (void *)(page + PVR_CQ_ARM_DBREC_OFFSET)
				: NULL;
}

static int init_ring(struct pvr_cq *cq, const struct pvr_context *ctx, uint32_t cqe)
{
	uint32_t num = elements_for(cqe);
	struct pvr_buf buf = {};
	int err;

	err = alloc_ring(cq, ctx, &buf, num);
	if (err)
		return err;
	use_ring(cq, ctx, &buf, num);
	pvr_lock_init(&cq->lock, false);
	pvr_lock_init(&cq->arm_lock, false);
	return 0;
}

static void exit_ring(struct pvr_cq *cq)
{
	free(cq->own_ring);
	pvr_buf_free(&cq->buf);
}

#define MAX_OWN_CQES 1024u

int pvr_cq_leave_device(struct pvr_cq *cq)
{
	uint32_t num = cq->num < MAX_OWN_CQES ? cq->num : MAX_OWN_CQES;
	struct pvr_own_ring *own;

	if (cq->own_ring)
		return 0;
	own = calloc(1, sizeof(*own) + num * sizeof(own->cqes[0]));
	if (!own)
		return ENOMEM;
	lock_arming(cq);
	cq->own_ring = own;
	cq->ring_shm = &own->ring;
	cq->cqes_shm = own->cqes;
	cq->num = num;
	cq->idx_mask = 2 * num - 1;
	cq->head = 0;
	cq->tail = 0;
	unlock_arming(cq);
	return 0;
}

/* The caller has refused flags of extended CQs that need the kernel. */
static int create_in_kernel(struct pvr_cq *cq, struct ibv_context *ibctx,
			    const struct ibv_cq_init_attr_ex *attr)
{
	struct pvr_uverbs_create_cq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)cq->buf.addr, .buf_size = cq->buf.size },
	};
	const struct ibv_cq_init_attr_ex known = {
		.cqe = cq->num,
		.channel = attr->channel,
		.comp_vector = attr->comp_vector,
		.wc_flags = attr->wc_flags, /* timestamps count */
	};
	struct pvr_uverbs_create_cq_resp resp = {};
	int err;

	err = ibv_cmd_create_cq_ex(ibctx, &known, &cq->verbs_cq, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	cq->handle = resp.cqn;
	return err;
}

/* All objects of a thread domain are used by one thread at a time. */
static void set_domain(struct pvr_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	cq->parent = attr->parent_domain;
	cq->single_threaded = (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
			      pvr_pd_is_threaded(attr->parent_domain);
}

static struct pvr_cq *create_cq(struct ibv_context *ibctx, const struct ibv_cq_init_attr_ex *attr)
{
	struct pvr_cq *cq;
	int err = EINVAL;

	if (!attr->cqe || attr->cqe > to_pvr_context(ibctx)->limits.cqe)
		goto err_errno;
	err = ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_errno;
	cq->index = PVR_NO_INDEX;
	set_domain(cq, attr);
	err = init_ring(cq, to_pvr_context(ibctx), attr->cqe);
	if (err)
		goto err_free;
	err = create_in_kernel(cq, ibctx, attr);
	if (err)
		goto err_exit_ring;
	return cq;

err_exit_ring:
	exit_ring(cq);
err_free:
	free(cq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_cq *pvr_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct pvr_cq *cq = create_cq(ibctx, &attr);

	return cq ? &cq->verbs_cq.cq : NULL;
}

#define COMP_MASK_KNOWN (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)

/*
 * The device has no VLANs or flow tags. A CQ that overflows is in error, with and without
 * IGNORE_OVERRUN.
 */
static int check_ex(struct ibv_context *ibctx, const struct ibv_cq_init_attr_ex *attr)
{
	const bool has_times = to_pvr_context(ibctx)->features & PVR_EXT_CQ_TIMESTAMP;
	const uint64_t fields = IBV_WC_STANDARD_FLAGS | (has_times ? PVR_WC_EX_TIMES : 0);

	if (attr->comp_mask & ~COMP_MASK_KNOWN)
		return EOPNOTSUPP;
	if (attr->wc_flags & ~fields)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!to_pvr_parent_domain(attr->parent_domain) || attr->parent_domain->context != ibctx))
		return EINVAL;
	return 0;
}

static int set_calls(struct pvr_cq *cq, uint64_t wc_flags)
{
	pvr_cq_set_lazy_calls(cq, wc_flags);
	pvr_cq_set_clock_calls(cq, wc_flags);
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		return pvr_cq_read_clocks(cq);
	return 0;
}

struct ibv_cq_ex *pvr_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex known = *attr;
	struct pvr_cq *cq;
	int err;

	err = check_ex(ibctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		known.flags = 0;
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		known.parent_domain = NULL;
	cq = create_cq(ibctx, &known);
	if (!cq)
		return NULL;
	err = set_calls(cq, attr->wc_flags);
	if (err) {
		pvr_destroy_cq(&cq->verbs_cq.cq);
		errno = err;
		return NULL;
	}
	return &cq->verbs_cq.cq_ex;
}

/*
 * The device moves the unread CQEs to the start of the new ring before the command
 * returns. cons_head is current since the last poll.
 */
static int resize_in_kernel(struct pvr_cq *cq, const struct pvr_buf *buf, uint32_t num)
{
	struct pvr_uverbs_resize_cq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)buf->addr, .buf_size = buf->size },
	};
	struct pvr_uverbs_resize_cq_resp resp = {};

	return ibv_cmd_resize_cq(&cq->verbs_cq.cq, num, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				 sizeof(resp));
}

/*
 * The only system call under a CQ's locks: pollers and arming threads wait until the ring
 * in use is known. The device keeps the arming of the old record. On success *buf is the
 * old ring.
 */
static int move_locked(struct pvr_cq *cq, const struct pvr_context *ctx, struct pvr_buf *buf,
		       uint32_t num)
{
	struct pvr_buf old = cq->buf;
	int err;

	if (cq->own_ring)
		return EIO;
	lock_arming(cq);
	err = resize_in_kernel(cq, buf, num);
	if (!err)
		use_ring(cq, ctx, buf, num);
	unlock_arming(cq);
	if (!err)
		*buf = old;
	return err;
}

/* The device moderates, so nothing changes here. */
int pvr_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/* A request that rounds up to the present size keeps the ring. */
int pvr_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	const struct pvr_context *ctx = to_pvr_context(ibcq->context);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	struct pvr_buf buf = {};
	uint32_t num;
	int err;

	if (!(ctx->features & PVR_EXT_RESIZE))
		return EOPNOTSUPP;
	if (cqe < 1 || (unsigned int)cqe > ctx->limits.cqe)
		return EINVAL;
	num = elements_for(cqe);
	if (num == (uint32_t)ibcq->cqe)
		return 0;
	err = alloc_ring(cq, ctx, &buf, num);
	if (err)
		return err;
	pvr_cq_lock(cq);
	err = move_locked(cq, ctx, &buf, num);
	pvr_cq_unlock(cq);
	pvr_buf_free(&buf); /* the old one, or the new one after an error */
	return err;
}

int pvr_destroy_cq(struct ibv_cq *ibcq)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	exit_ring(cq);
	free(cq);
	return 0;
}
