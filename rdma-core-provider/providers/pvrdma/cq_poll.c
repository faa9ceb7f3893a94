// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Polling by ibv_poll_cq() and by the lazy calls of extended CQs. Both get CQEs by
 * refill() and take(), and return the slots by pvr_cq_publish().
 */
#include <errno.h>

#include <util/compiler.h>

#include "cq.h"
#include "doorbell.h"
#include "wc.h"

/* Returns the QP number with PVR_QP_NUM_VALID, or 0. */
static uint32_t find_qp_num(const struct pvr_context *ctx, uint32_t handle)
{
	if (handle >= ctx->qp_tbl_size)
		return 0;
	return atomic_load_explicit(&ctx->qp_nums[handle], memory_order_relaxed);
}

static int complain(const struct pvr_cq *cq)
{
	verbs_err(verbs_get_ctx(cq->verbs_cq.cq.context),
		  "cq %u: impossible prod_tail for a ring of %u CQEs at %u\n", cq->handle, cq->num,
		  cq->head);
	return EIO;
}

/*
 * Loads the number of unread CQEs. Returns ENOENT if there are none, EIO if the index is
 * impossible.
 */
static inline int look(struct pvr_cq *cq)
{
	uint32_t fill = pvr_cq_fill(cq);

	if (unlikely(fill > cq->num)) {
		cq->avail = 0;
		return complain(cq);
	}
	cq->avail = fill;
	return fill ? 0 : ENOENT;
}

static int refill_empty(struct pvr_cq *cq)
{
	struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);
	int err;

	if (!(ctx->features & PVR_EXT_NO_POLL_DB)) {
		/* A device without the extension may write CQEs only after this */
		pvr_ring_cq(ctx, cq->handle, PVR_DB_CQ_POLL);
		err = look(cq);
		if (err != ENOENT)
			return err;
	}
	err = pvr_cq_idle_locked(cq);
	return err ? err : look(cq);
}

static inline int refill(struct pvr_cq *cq)
{
	int err = look(cq);

	if (err == ENOENT)
		return refill_empty(cq);
	/* The CQEs explain the notification: no check of the device is needed */
	if (unlikely(atomic_load_explicit(&cq->notified, memory_order_relaxed)))
		atomic_store_explicit(&cq->notified, false, memory_order_relaxed);
	return err;
}

static __attribute__((noinline)) void note_unknown(const struct pvr_cq *cq,
						   const struct pvrdma_cqe *cqe)
{
	verbs_debug(verbs_get_ctx(cq->verbs_cq.cq.context),
		    "cq %u: completion of unknown QP handle %u\n", cq->handle,
		    pvr_cqe_qp_handle(cqe));
}

/*
 * Returns the next CQE that look() found and its QP number, or NULL if none is left. A CQE
 * of an unknown QP is skipped, because it would block the CQ.
 */
static inline const struct pvrdma_cqe *take(struct pvr_cq *cq, uint32_t *qp_num)
{
	const struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);
	const struct pvrdma_cqe *cqe;
	uint32_t found;

	while (cq->avail) {
		cqe = pvr_cqe_at(cq, cq->head);
		cq->head = pvr_ring_next(cq->head, cq->num);
		cq->avail--;
		found = find_qp_num(ctx, pvr_cqe_qp_handle(cqe));
		*qp_num = found & PVR_QP_NUM_MASK;
		if (likely(found))
			return cqe;
		note_unknown(cq, cqe);
	}
	return NULL;
}

static void fill_wc(struct ibv_wc *wc, const struct pvrdma_cqe *cqe, uint32_t qp_num)
{
	wc->wr_id = cqe->wr_id;
	wc->status = pvr_wc_status(cqe);
	wc->opcode = pvr_wc_opcode(cqe);
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm_data;
	wc->qp_num = qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = pvr_wc_flags(cqe);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
}

static int poll_locked(struct pvr_cq *cq, int num, struct ibv_wc *wc)
{
	const struct pvrdma_cqe *cqe;
	uint32_t qp_num;
	int taken = 0, err;

	err = refill(cq);
	if (err)
		return err == ENOENT ? 0 : -err;
	while (taken < num && (cqe = take(cq, &qp_num)))
		fill_wc(&wc[taken++], cqe, qp_num);
	pvr_cq_publish(cq);
	return taken;
}

int pvr_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	int polled;

	if (num_entries < 1)
		return 0;
	pvr_cq_lock(cq);
	polled = poll_locked(cq, num_entries, wc);
	pvr_cq_unlock(cq);
	return polled;
}

/*
 * The lazy calls. The current CQE stays in its slot, which end_poll returns to the
 * device. Until then the CQ is locked, unless the application promised to use a single
 * thread.
 */

static struct pvr_cq *of_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct pvr_cq, verbs_cq.cq_ex);
}

static int advance(struct pvr_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->verbs_cq.cq_ex;

	cq->cqe = take(cq, &cq->qp_num);
	if (!cq->cqe)
		return ENOENT;
	ex->wr_id = cq->cqe->wr_id;
	ex->status = pvr_wc_status(cq->cqe);
	return 0;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct pvr_cq *cq = of_ex(ex);
	int err = cq->avail ? 0 : look(cq);

	return err ? err : advance(cq);
}

static int start_alone(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct pvr_cq *cq = of_ex(ex);
	int err;

	if (unlikely(attr->comp_mask))
		return EINVAL;
	err = refill(cq);
	if (!err)
		err = advance(cq);
	if (unlikely(err)) /* no end_poll follows */
		pvr_cq_publish(cq);
	return err;
}

static void end_alone(struct ibv_cq_ex *ex)
{
	pvr_cq_publish(of_ex(ex));
}

static int start_locked(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct pvr_cq *cq = of_ex(ex);
	int err;

	pvr_lock(&cq->lock);
	err = start_alone(ex, attr);
	if (err)
		pvr_unlock(&cq->lock);
	return err;
}

static void end_locked(struct ibv_cq_ex *ex)
{
	pvr_cq_publish(of_ex(ex));
	pvr_unlock(&of_ex(ex)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return pvr_wc_opcode(of_ex(ex)->cqe);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->byte_len;
}

/* Also the invalidated rkey. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return pvr_wc_flags(of_ex(ex)->cqe);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe->dlid_path_bits;
}

/* Indexed by pvr_cq.single_threaded. */
static const struct {
	int (*start)(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr);
	void (*end)(struct ibv_cq_ex *ex);
} pollers[] = {
	[false] = { .start = start_locked, .end = end_locked },
	[true] = { .start = start_alone, .end = end_alone },
};

void pvr_cq_set_lazy_calls(struct pvr_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->verbs_cq.cq_ex;

	ex->start_poll = pollers[cq->single_threaded].start;
	ex->next_poll = next_poll;
	ex->end_poll = pollers[cq->single_threaded].end;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
}
