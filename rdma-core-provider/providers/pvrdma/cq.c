/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: polling, arming, and purging of what a dead QP left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/array_size.h>
#include <util/compiler.h>

#include "doorbell.h"
#include "pvrdma.h"
#include "uverbs_abi.h"

/* The device counts requests as the kernel does; user space numbers some differently. */
static const enum ibv_wc_opcode wc_opcodes[] = {
	[PVRDMA_WC_SEND] = IBV_WC_SEND,
	[PVRDMA_WC_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[PVRDMA_WC_RDMA_READ] = IBV_WC_RDMA_READ,
	[PVRDMA_WC_COMP_SWAP] = IBV_WC_COMP_SWAP,
	[PVRDMA_WC_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[PVRDMA_WC_BIND_MW] = IBV_WC_BIND_MW,
	[PVRDMA_WC_LSO] = IBV_WC_TSO,
	[PVRDMA_WC_LOCAL_INV] = IBV_WC_LOCAL_INV,
};

static const struct {
	uint32_t pvr;
	unsigned int ibv;
} wc_flags[] = {
	{ PVRDMA_WC_GRH, IBV_WC_GRH },
	{ PVRDMA_WC_WITH_IMM, IBV_WC_WITH_IMM },
	{ PVRDMA_WC_WITH_INVALIDATE, IBV_WC_WITH_INV },
	{ PVRDMA_WC_IP_CSUM_OK, IBV_WC_IP_CSUM_OK },
};

static enum ibv_wc_opcode to_ibv_opcode(uint32_t opcode)
{
	if (opcode == PVRDMA_WC_RECV)
		return IBV_WC_RECV;
	if (opcode == PVRDMA_WC_RECV_RDMA_WITH_IMM)
		return IBV_WC_RECV_RDMA_WITH_IMM;
	return opcode < ARRAY_SIZE(wc_opcodes) ? wc_opcodes[opcode] : IBV_WC_SEND;
}

static enum ibv_wc_status to_ibv_status(uint32_t status)
{
	/* Up to the last one both sides have the same numbers. */
	return status <= PVRDMA_WC_GENERAL_ERR ? (enum ibv_wc_status)status : IBV_WC_GENERAL_ERR;
}

static unsigned int to_ibv_flags(uint32_t flags)
{
	unsigned int ibv = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wc_flags); i++)
		if (flags & wc_flags[i].pvr)
			ibv |= wc_flags[i].ibv;
	return ibv;
}

static struct pvrdma_cqe *cqe_at(struct pvr_cq *cq, uint32_t idx)
{
	return &cq->cqes_shm[idx & (cq->num - 1)];
}

/*
 * The acquire pairs with the device's release of prod_tail after it wrote the CQEs. Returns a
 * number above cq->num if the device wrote an impossible index.
 */
static uint32_t cq_fill(struct pvr_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->ring_shm->prod_tail, memory_order_acquire);

	return pvr_ring_used(tail, cq->head, cq->num);
}

/* The release pairs with the device's acquire of cons_head before it writes over old CQEs. */
static void cq_publish(struct pvr_cq *cq)
{
	atomic_store_explicit(&cq->ring_shm->cons_head, cq->head, memory_order_release);
}

static uint32_t cqe_qp_handle(const struct pvrdma_cqe *cqe)
{
	return cqe->qp & (PVR_QP_HANDLES - 1);
}

static struct pvr_qp *find_qp(struct pvr_context *ctx, uint32_t handle)
{
	if (handle >= ctx->qp_tbl_size)
		return NULL;
	/* Pairs with the release in publish_qp(). */
	return atomic_load_explicit(&ctx->qp_tbl[handle], memory_order_acquire);
}

static void fill_wc(struct ibv_wc *wc, const struct pvrdma_cqe *cqe, const struct pvr_qp *qp)
{
	wc->wr_id = cqe->wr_id;
	wc->status = to_ibv_status(cqe->status);
	wc->opcode = to_ibv_opcode(cqe->opcode);
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm_data;
	wc->qp_num = qp->verbs_qp.qp.qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = to_ibv_flags(cqe->wc_flags);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
}

/*
 * Takes up to num of the fill CQEs that are there. One that names no QP of ours is passed over:
 * nobody waits for it, and stopping at it would stop the CQ for ever.
 */
static int take_cqes(struct pvr_cq *cq, uint32_t fill, int num, struct ibv_wc *wc)
{
	struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);
	const struct pvrdma_cqe *cqe;
	struct pvr_qp *qp;
	int taken = 0;

	for (; fill && taken < num; fill--) {
		cqe = cqe_at(cq, cq->head);
		qp = find_qp(ctx, cqe_qp_handle(cqe));
		if (likely(qp))
			fill_wc(&wc[taken++], cqe, qp);
		else
			verbs_debug(&ctx->ibv_ctx, "cq %u: completion of unknown QP handle %u\n",
				    cq->handle, cqe_qp_handle(cqe));
		cq->head = pvr_ring_next(cq->head, cq->num);
	}
	cq_publish(cq);
	return taken;
}

static int poll_locked(struct pvr_cq *cq, int num, struct ibv_wc *wc)
{
	uint32_t fill = cq_fill(cq);

	if (!fill)
		return 0;
	if (unlikely(fill > cq->num)) {
		verbs_err(verbs_get_ctx(cq->verbs_cq.cq.context),
			  "cq %u: the device's index does not fit a ring of %u at %u\n", cq->handle,
			  cq->num, cq->head);
		return -EIO;
	}
	return take_cqes(cq, fill, num, wc);
}

int pvr_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct pvr_context *ctx = to_pvr_context(ibcq->context);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	int polled;

	if (num_entries < 1)
		return 0;
	pthread_spin_lock(&cq->lock);
	polled = poll_locked(cq, num_entries, wc);
	if (!polled && !(ctx->features & PVR_EXT_NO_POLL_DB)) {
		/* A device without the extension may wait for this before it looks. */
		pvr_ring_cq(ctx, cq->handle, PVR_DB_CQ_POLL);
		polled = poll_locked(cq, num_entries, wc);
	}
	pthread_spin_unlock(&cq->lock);
	return polled;
}

/*
 * The device notifies at once if CQEs are there when it sees the arming, so the caller's poll
 * after this may run before it. cons_head was published by the poll before.
 */
int pvr_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);

	pvr_ring_cq(to_pvr_context(ibcq->context), cq->handle,
		    solicited_only ? PVR_DB_CQ_ARM_SOL : PVR_DB_CQ_ARM);
	return 0;
}

/*
 * Moves the CQEs to keep towards prod_tail and cons_head after them: the device never reads what
 * it wrote, and writes only from prod_tail on.
 */
void pvr_cq_purge_locked(struct pvr_cq *cq, uint32_t qp_handle)
{
	uint32_t mask = 2 * cq->num - 1, fill = cq_fill(cq), from, to;

	if (fill > cq->num)
		return;
	from = to = (cq->head + fill) & mask;
	while (fill--) {
		from = (from - 1) & mask;
		if (cqe_qp_handle(cqe_at(cq, from)) == qp_handle)
			continue;
		to = (to - 1) & mask;
		if (to != from)
			memcpy(cqe_at(cq, to), cqe_at(cq, from), sizeof(struct pvrdma_cqe));
	}
	cq->head = to;
	cq_publish(cq);
}

void pvr_cq_lock_pair(struct pvr_cq *a, struct pvr_cq *b)
{
	struct pvr_cq *first = a->handle <= b->handle ? a : b;
	struct pvr_cq *second = first == a ? b : a;

	pthread_spin_lock(&first->lock);
	if (second != first)
		pthread_spin_lock(&second->lock);
}

void pvr_cq_unlock_pair(struct pvr_cq *a, struct pvr_cq *b)
{
	pthread_spin_unlock(&a->lock);
	if (b != a)
		pthread_spin_unlock(&b->lock);
}

static int init_ring(struct pvr_cq *cq, int cqe)
{
	struct pvr_ring_state_shm *state_shm;
	uint32_t num = 1;
	int err;

	while (num < (uint32_t)cqe)
		num <<= 1;
	err = pvr_buf_alloc(&cq->buf, PVR_PAGE_SIZE + (size_t)num * sizeof(struct pvrdma_cqe));
	if (err)
		return err;
	state_shm = cq->buf.addr;
	cq->num = num;
	cq->ring_shm = &state_shm->rx;
	cq->cqes_shm = (void *)((uint8_t *)cq->buf.addr + PVR_PAGE_SIZE);
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	return 0;
}

static void exit_ring(struct pvr_cq *cq)
{
	pthread_spin_destroy(&cq->lock);
	pvr_buf_free(&cq->buf);
}

static int create_in_kernel(struct pvr_cq *cq, struct ibv_context *ibctx,
			    struct ibv_comp_channel *channel, int comp_vector)
{
	struct pvr_uverbs_create_cq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)cq->buf.addr, .buf_size = cq->buf.size },
	};
	struct pvr_uverbs_create_cq_resp resp = {};
	int err;

	err = ibv_cmd_create_cq(ibctx, cq->num, channel, comp_vector, &cq->verbs_cq.cq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	cq->handle = resp.cqn;
	return err;
}

struct ibv_cq *pvr_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct pvr_cq *cq;
	int err = EINVAL;

	if (cqe < 1 || (unsigned int)cqe > PVR_MAX_ELEMENTS)
		goto err_errno;
	err = ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_errno;
	err = init_ring(cq, cqe);
	if (err)
		goto err_free;
	err = create_in_kernel(cq, ibctx, channel, comp_vector);
	if (err)
		goto err_exit_ring;
	return &cq->verbs_cq.cq;

err_exit_ring:
	exit_ring(cq);
err_free:
	free(cq);
err_errno:
	errno = err;
	return NULL;
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
