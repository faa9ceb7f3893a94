// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Polling by ibv_poll_cq() and by the lazy calls of extended CQs. Both get CQEs by
 * refill() and take(), and return the slots by settle().
 */
#include <errno.h>
#include <string.h>

#include <util/compiler.h>

#include "cq.h"
#include "doorbell.h"
#include "wc.h"

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

/*
 * A poll, by local variables. Of the last queue it keeps the completions that still count as
 * outstanding for posters. settle() ends them after the CQEs are returned to the device.
 * Otherwise the completion of a request that another thread posts at once could find the
 * CQ full.
 */
struct poll {
	struct pvr_cq *cq;
	uint32_t head, avail; /* those of cq */
	struct pvr_wq *wq; /* or NULL */
	uint32_t polled, seen; /* those of wq; of an SRQ polled is the number of completions */
};

static __always_inline struct poll poll_begin(struct pvr_cq *cq)
{
	return (struct poll){ .cq = cq, .head = cq->head, .avail = cq->avail };
}

static __always_inline void settle(struct poll *poll)
{
	struct pvr_cq *cq = poll->cq;

	cq->head = poll->head;
	cq->avail = poll->avail;
	pvr_cq_publish(cq);
	if (unlikely(!poll->wq))
		return;
	if (unlikely(poll->wq->is_shared))
		pvr_wq_end_shared(poll->wq, poll->polled);
	else
		pvr_wq_end(poll->wq, poll->polled);
}

static __always_inline void use_wq(struct poll *poll, struct pvr_wq *wq)
{
	if (poll->wq)
		settle(poll);
	poll->wq = wq;
	poll->polled = 0;
	poll->seen = atomic_load_explicit(&wq->seen, memory_order_relaxed);
	if (likely(!wq->is_shared))
		poll->polled = atomic_load_explicit(&wq->polled, memory_order_relaxed);
}

static __always_inline bool is_below_seen(const struct poll *poll, uint32_t number)
{
	return number - poll->polled < poll->seen - poll->polled;
}

/*
 * Returns whether a request is outstanding, by its number. Loads tail only if a former
 * value does not suffice, because posters write to its cache line all the time. Of an SRQ
 * each request passes: other CQs end requests, too.
 */
static __always_inline bool is_outstanding(struct poll *poll, uint32_t number)
{
	if (likely(is_below_seen(poll, number)) || poll->wq->is_shared)
		return true;
	poll->seen = pvr_wq_tail(poll->wq);
	atomic_store_explicit(&poll->wq->seen, poll->seen, memory_order_relaxed);
	return is_below_seen(poll, number);
}

/*
 * Ends the request of a CQE, and the sends before it. Returns false if it is not
 * outstanding.
 */
static __always_inline bool end_request(struct poll *poll, const struct pvr_qp_side *side,
					const struct pvrdma_cqe *cqe, uint64_t *wr_id)
{
	uint32_t number = poll->polled;

	*wr_id = cqe->wr_id;
	if (side->wr_ids) {
		number = cqe->wr_id;
		*wr_id = side->wr_ids[number & side->mask];
	}
	if (unlikely(!is_outstanding(poll, number)))
		return false;
	poll->polled = number + 1;
	return true;
}

/* The entry of an impossible handle is behind those of QPs and names no CQ. */
static __always_inline const struct pvr_qp_side *find_side(const struct pvr_cq *cq,
							   const struct pvrdma_cqe *cqe)
{
	const struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);
	uint32_t handle = pvr_cqe_qp_handle(cqe);

	if (handle > ctx->qp_tbl_size)
		handle = ctx->qp_tbl_size;
	return pvr_qp_side(ctx, handle, pvr_cqe_side(cqe));
}

/* The acquire pairs with the release in publish_side(). */
static __always_inline bool is_of_cq(const struct pvr_qp_side *side, const struct pvr_cq *cq)
{
	return atomic_load_explicit(&side->cq, memory_order_acquire) == cq;
}

static __attribute__((noinline)) void note_skipped(const struct pvr_cq *cq,
						   const struct pvrdma_cqe *cqe)
{
	verbs_debug(verbs_get_ctx(cq->verbs_cq.cq.context),
		    "cq %u: completion of no outstanding request, QP handle %u, opcode %u\n",
		    cq->handle, pvr_cqe_qp_handle(cqe), cqe->opcode);
}

/*
 * Returns the next CQE that look() found, its wr_id and QP number, or NULL if none is left.
 * The device may overwrite it after settle(). A CQE of no outstanding request is skipped,
 * because it would block the CQ.
 */
static __always_inline const struct pvrdma_cqe *take(struct poll *poll, uint64_t *wr_id,
						     uint32_t *qp_num)
{
	const struct pvr_qp_side *side;
	const struct pvrdma_cqe *cqe;

	for (; poll->avail; note_skipped(poll->cq, cqe)) {
		cqe = pvr_cqe_at(poll->cq, poll->head);
		side = find_side(poll->cq, cqe);
		poll->avail--;
		if (unlikely(!is_of_cq(side, poll->cq))) {
			poll->head++;
			continue;
		}
		if (unlikely(side->wq != poll->wq))
			use_wq(poll, side->wq);
		poll->head++;
		if (unlikely(!end_request(poll, side, cqe, wr_id)))
			continue;
		*qp_num = side->qp_num;
		return cqe;
	}
	return NULL;
}

static_assert(offsetof(struct ibv_wc, imm_data) - offsetof(struct ibv_wc, byte_len) ==
		      offsetof(struct pvrdma_cqe, imm_data) - offsetof(struct pvrdma_cqe, byte_len),
	      "both fields are copied at once");

static void fill_wc(struct ibv_wc *wc, const struct pvrdma_cqe *cqe, uint64_t wr_id,
		    uint32_t qp_num)
{
	wc->wr_id = wr_id;
	wc->status = pvr_wc_status(cqe);
	wc->opcode = pvr_wc_opcode(cqe);
	wc->vendor_err = cqe->vendor_err;
	memcpy(&wc->byte_len, &cqe->byte_len, sizeof(cqe->byte_len) + sizeof(cqe->imm_data));
	wc->qp_num = qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = 0;
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
	if (unlikely(cqe->wc_flags)) {
		wc->wc_flags = pvr_wc_flags(cqe);
		wc->sl = pvr_wc_sl(cqe);
	}
}

static int poll_locked(struct pvr_cq *cq, int num, struct ibv_wc *wc)
{
	const struct pvrdma_cqe *cqe;
	struct poll poll;
	uint64_t wr_id;
	uint32_t qp_num;
	int taken = 0, err;

	err = refill(cq);
	if (err)
		return err == ENOENT ? 0 : -err;
	poll = poll_begin(cq);
	while (taken < num && (cqe = take(&poll, &wr_id, &qp_num)))
		fill_wc(&wc[taken++], cqe, wr_id, qp_num);
	settle(&poll);
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
 * The lazy calls. The current CQE is copied, so that its slot returns to the device and the
 * application can post the next request at once. Until end_poll the CQ is locked, unless
 * the application promised to use a single thread.
 */

static struct pvr_cq *of_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct pvr_cq, verbs_cq.cq_ex);
}

static int advance(struct pvr_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->verbs_cq.cq_ex;
	const struct pvrdma_cqe *cqe;
	struct poll poll = poll_begin(cq);

	cqe = take(&poll, &ex->wr_id, &cq->qp_num);
	if (cqe) {
		cq->cqe = *cqe;
		ex->status = pvr_wc_status(&cq->cqe);
	}
	settle(&poll);
	return cqe ? 0 : ENOENT;
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
	return err ? err : advance(cq);
}

static void end_alone(struct ibv_cq_ex *ex)
{
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
	pvr_unlock(&of_ex(ex)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return pvr_wc_opcode(&of_ex(ex)->cqe);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.byte_len;
}

/* Also the invalidated rkey. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return pvr_wc_flags(&of_ex(ex)->cqe);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return pvr_wc_sl(&of_ex(ex)->cqe);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->cqe.dlid_path_bits;
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
