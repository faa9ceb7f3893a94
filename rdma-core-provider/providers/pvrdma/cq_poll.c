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

static __attribute__((noinline)) int complain(const struct pvr_cq *cq)
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
		cq->tail = cq->head;
		return complain(cq);
	}
	cq->tail = cq->head + fill;
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
 * A poll, by local variables. The requests of side that it has taken still count as
 * outstanding for posters. settle() ends them after the CQEs are returned to the device.
 * Otherwise the completion of a request that another thread posts at once could find the
 * CQ full.
 */
struct poll {
	struct pvr_cq *cq;
	uint32_t head; /* the next CQE */
	uint32_t stop; /* CQEs from here on are not taken */
	uint32_t num; /* completions that the poll returns, unless it skips CQEs */
	uint32_t index; /* that of side in qp_entries, or PVR_NO_INDEX */
	struct pvr_qp_side *side; /* that of the last CQE, or NULL */
	struct pvr_qp_side *others; /* sides of former CQEs, linked by next, or NULL */
	bool is_single; /* takes one CQE, so there are no others */
};

/* A poll of the CQEs that look() found. */
static __always_inline struct poll poll_begin(struct pvr_cq *cq)
{
	return (struct poll){
		.cq = cq,
		.head = cq->head,
		.stop = cq->tail,
		.num = cq->tail - cq->head,
		.index = cq->index,
		.side = cq->side,
	};
}

/* The poll returns up to num completions. */
static __always_inline void limit(struct poll *poll, uint32_t num)
{
	if (poll->num > num) {
		poll->num = num;
		poll->stop = poll->head + num;
	}
}

/* Ends the requests that polls have taken. */
static __always_inline void end_requests(struct pvr_qp_side *side)
{
	uint32_t polled = side->last + 1 - side->left;

	if (likely(!side->wq->is_shared)) {
		pvr_wq_end(side->wq, polled);
		return;
	}
	pvr_wq_end_shared(side->wq, polled);
	side->left = UINT32_MAX;
}

/* side can be one of these, too: the second time it ends none. */
static __always_inline void end_others(struct pvr_qp_side *side)
{
	struct pvr_qp_side *last = NULL, *next;

	for (; side != last; side = next) {
		next = side->next;
		last = side;
		side->next = NULL;
		end_requests(side);
	}
}

/* Returns the slots to the device, then ends the requests. The next poll begins with side. */
static __always_inline void settle(const struct poll *poll)
{
	struct pvr_cq *cq = poll->cq;

	cq->head = poll->head;
	cq->side = poll->side;
	cq->index = poll->index;
	pvr_cq_publish(cq);
	if (likely(poll->side))
		end_requests(poll->side);
	if (!poll->is_single)
		end_others(poll->others);
}

/*
 * Two sides with one queue are those of QPs with the same SRQ. The last of the other sides is
 * linked to itself, so each of them has a next one.
 */
static __always_inline void leave_side(struct poll *poll, struct pvr_qp_side *next)
{
	struct pvr_qp_side *side = poll->side;

	if (side->wq == next->wq) {
		next->left = side->left;
		side->left = UINT32_MAX;
	} else if (!side->next) {
		side->next = poll->others ? poll->others : side;
		poll->others = side;
	}
}

/*
 * Switches to another side. Returns false if it is of no QP of the CQ. The acquire pairs
 * with the release in publish_side().
 */
static __always_inline bool use_side(struct poll *poll, uint32_t index)
{
	const struct pvr_context *ctx = to_pvr_context(poll->cq->verbs_cq.cq.context);
	struct pvr_qp_entry *entry;

	if (unlikely(index >= ctx->num_entries))
		return false;
	entry = &ctx->qp_entries[index];
	if (unlikely(atomic_load_explicit(&entry->cq, memory_order_acquire) != poll->cq))
		return false;
	if (!poll->is_single && likely(poll->side))
		leave_side(poll, entry->side);
	poll->side = entry->side;
	poll->index = index;
	return true;
}

/* XRC: the CQE has the number of its SRQ, and that of a QP that other processes may have. */
static __always_inline bool use_srq(struct poll *poll, uint64_t qp)
{
	const struct pvr_context *ctx = to_pvr_context(poll->cq->verbs_cq.cq.context);
	uint32_t index = pvr_srq_index(ctx, qp >> 32 & ~PVR_CQE_XRC);

	if (index != poll->index && !use_side(poll, index))
		return false;
	poll->side->qp_num = qp;
	return true;
}

static __always_inline bool use_other(struct poll *poll, const struct pvr_cqe *cqe, uint32_t index)
{
	const uint64_t qp = le64toh(cqe->qp);

	return unlikely(qp >> 32) ? use_srq(poll, qp) : use_side(poll, index);
}

/*
 * Loads tail, only if a former value does not suffice, because posters write to its cache
 * line all the time. Returns the number of requests that were posted since.
 */
static __always_inline uint32_t add_posted(struct pvr_qp_side *side, uint32_t *last, uint32_t *left)
{
	uint32_t posted = pvr_wq_tail(side->wq) - 1 - *last;

	*last += posted;
	*left += posted;
	return posted;
}

/*
 * Takes the request of a CQE from the outstanding ones, and the sends before it. Returns
 * false if it is not outstanding.
 */
static __always_inline bool take_request(struct pvr_qp_side *side, const struct pvr_cqe *cqe,
					 uint64_t *wr_id)
{
	uint32_t left = side->left - 1, number;

	*wr_id = le64toh(cqe->wr_id);
	if (side->wr_ids) {
		number = *wr_id;
		*wr_id = side->wr_ids[number & side->mask];
		left = side->last - number;
	}
	if (left >= side->left) {
		left += add_posted(side, &side->last, &side->left);
		if (unlikely(left >= side->left))
			return false;
	}
	side->left = left;
	return true;
}

static __attribute__((noinline)) void note_skipped(struct pvr_cq *cq, uint32_t idx)
{
	const struct pvr_cqe *cqe = pvr_cqe_at(cq, idx);

	verbs_debug(verbs_get_ctx(cq->verbs_cq.cq.context),
		    "cq %u: completion of no outstanding request, QP handle %u, opcode %u\n",
		    cq->handle, pvr_cqe_qp_handle(cqe), le32toh(cqe->opcode));
}

/*
 * Takes the request of the next CQE. Returns false if there is none. Then the CQE must be
 * skipped, because it would block the CQ.
 */
static __always_inline bool take(struct poll *poll, const struct pvr_cqe *cqe, uint64_t *wr_id)
{
	uint32_t index = pvr_qp_index(pvr_cqe_qp_handle(cqe), pvr_cqe_side(cqe));

	if (unlikely(index != poll->index) && unlikely(!use_other(poll, cqe, index)))
		return false;
	if (unlikely(!take_request(poll->side, cqe, wr_id)))
		return false;
	poll->head++;
	return true;
}

static_assert(offsetof(struct ibv_wc, imm_data) - offsetof(struct ibv_wc, byte_len) ==
		      offsetof(struct pvr_cqe, imm_data) - offsetof(struct pvr_cqe, byte_len),
	      "both fields are copied at once");
static_assert(offsetof(struct ibv_wc, wc_flags) - offsetof(struct ibv_wc, src_qp) ==
		      offsetof(struct pvr_cqe, wc_flags) - offsetof(struct pvr_cqe, src_qp),
	      "both fields are copied at once");

/*
 * The fields that take the least instructions by pairs. Compilers do not join the copies of
 * fields.
 */
static __always_inline void copy_pairs(struct ibv_wc *wc, const struct pvr_cqe *cqe)
{
	memcpy(&wc->byte_len, &cqe->byte_len, sizeof(cqe->byte_len) + sizeof(cqe->imm_data));
	memcpy(&wc->src_qp, &cqe->src_qp, sizeof(cqe->src_qp) + sizeof(cqe->wc_flags));
	if (__BYTE_ORDER == __LITTLE_ENDIAN)
		return;
	wc->byte_len = le32toh(cqe->byte_len);
	wc->src_qp = le32toh(cqe->src_qp);
	wc->wc_flags = le32toh(cqe->wc_flags);
}

static __always_inline void fill_wc(struct ibv_wc *wc, const struct pvr_cqe *cqe, uint64_t wr_id,
				    uint32_t qp_num)
{
	wc->wr_id = wr_id;
	wc->status = pvr_wc_status(cqe);
	wc->opcode = pvr_wc_opcode(cqe);
	wc->vendor_err = le32toh(cqe->vendor_err);
	copy_pairs(wc, cqe);
	wc->qp_num = qp_num;
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = le16toh(cqe->slid);
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
	if (unlikely(wc->wc_flags)) {
		wc->wc_flags = pvr_wc_flags(cqe);
		wc->imm_data = pvr_wc_imm_data(cqe);
		wc->sl = pvr_wc_sl(cqe);
	}
}

/*
 * DOC: plain completions
 *
 * Most polls find only successful sends of the QP that the last poll ended with. take_plain()
 * takes these with few tests, up to the end of the ring. Their opcodes are the same in verbs.
 * Fields that only received messages have are 0.
 */
#define PLAIN_MAX ((uint64_t)PVRDMA_WC_FETCH_ADD)

static_assert((int)PVRDMA_WC_SEND == IBV_WC_SEND &&
		      (int)PVRDMA_WC_RDMA_WRITE == IBV_WC_RDMA_WRITE &&
		      (int)PVRDMA_WC_RDMA_READ == IBV_WC_RDMA_READ &&
		      (int)PVRDMA_WC_COMP_SWAP == IBV_WC_COMP_SWAP &&
		      (int)PVRDMA_WC_FETCH_ADD == IBV_WC_FETCH_ADD && IBV_WC_SUCCESS == 0,
	      "opcodes of plain completions are returned as they are");
static_assert(offsetof(struct pvr_cqe, status) == offsetof(struct pvr_cqe, opcode) + 4 &&
		      offsetof(struct ibv_wc, opcode) == offsetof(struct ibv_wc, status) + 4,
	      "both fields are one number");

/* The opcode, and the status in the high half. */
static __always_inline uint64_t outcome_of(const struct pvr_cqe *cqe)
{
	__le64 outcome;

	memcpy(&outcome, &cqe->opcode, sizeof(outcome));
	return le64toh(outcome);
}

static __always_inline void fill_plain(struct ibv_wc *wc, const struct pvr_cqe *cqe, uint64_t wr_id,
				       uint32_t qp_num)
{
	wc->wr_id = wr_id;
	memset(&wc->status, 0, sizeof(*wc) - offsetof(struct ibv_wc, status));
	wc->opcode = le32toh(cqe->opcode);
	wc->byte_len = le32toh(cqe->byte_len);
	wc->qp_num = qp_num;
}

static __always_inline void skip(struct poll *poll)
{
	note_skipped(poll->cq, poll->head++);
	if (poll->stop == poll->cq->tail)
		poll->num--;
	else
		poll->stop++;
}

/* Takes all CQEs of a poll. The device may overwrite them after settle(). */
static __attribute__((noinline)) int poll_all(struct pvr_cq *cq, int num, struct ibv_wc *wc)
{
	struct poll poll = poll_begin(cq);
	const struct pvr_cqe *cqe;
	uint64_t wr_id;

	limit(&poll, num);
	while (poll.head != poll.stop) {
		cqe = pvr_cqe_at(cq, poll.head);
		if (unlikely(!take(&poll, cqe, &wr_id))) {
			skip(&poll);
			continue;
		}
		if (likely(outcome_of(cqe) <= PLAIN_MAX))
			fill_plain(wc++, cqe, wr_id, poll.side->qp_num);
		else
			fill_wc(wc++, cqe, wr_id, poll.side->qp_num);
	}
	settle(&poll);
	return poll.num;
}

/* Returns how many CQEs were taken, up to num. The caller returns their slots. */
static __always_inline uint32_t take_plain(struct pvr_cq *cq, struct pvr_qp_side *side,
					   uint32_t num, struct ibv_wc *wc)
{
	const struct pvr_cqe *begin = pvr_cqe_at(cq, cq->head), *cqe = begin, *end = begin + num;
	const uint64_t handle = cq->index / PVR_SIDE_NUM, *wr_ids = side->wr_ids;
	const uint32_t mask = side->mask, qp_num = side->qp_num;
	uint32_t number, after, last = side->last, left = side->left;

	if (unlikely(end > cq->cqes_shm + cq->num))
		end = cq->cqes_shm + cq->num;
	for (; cqe != end; cqe++, wc++) {
		number = le64toh(cqe->wr_id);
		if (unlikely(le64toh(cqe->qp) != handle || outcome_of(cqe) > PLAIN_MAX))
			break;
		after = last - number;
		if (unlikely(after >= left)) {
			after += add_posted(side, &last, &left);
			if (unlikely(after >= left))
				break;
		}
		left = after;
		fill_plain(wc, cqe, wr_ids[number & mask], qp_num);
	}
	side->left = left;
	side->last = last;
	return cqe - begin;
}

/* The side that the last poll ended with, if take_plain() can take its completions. */
static __always_inline struct pvr_qp_side *plain_side(const struct pvr_cq *cq)
{
	return likely(cq->side) && cq->side->wr_ids ? cq->side : NULL;
}

static int poll_locked(struct pvr_cq *cq, uint32_t num, struct ibv_wc *wc)
{
	struct pvr_qp_side *side = plain_side(cq);
	uint32_t fill, taken = 0;
	int err;

	err = refill(cq);
	if (unlikely(err))
		return err == ENOENT ? 0 : -err;
	fill = cq->tail - cq->head;
	if (fill > num)
		fill = num;
	if (likely(side))
		taken = take_plain(cq, side, fill, wc);
	if (likely(taken)) {
		cq->head += taken;
		pvr_cq_publish(cq);
		pvr_wq_end(side->wq, side->last + 1 - side->left);
	}
	if (likely(taken == fill))
		return taken;
	return taken + poll_all(cq, fill - taken, wc + taken);
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

/* Returns false if the CQE is skipped. */
static __always_inline bool take_next(struct pvr_cq *cq)
{
	const struct pvr_cqe *cqe = pvr_cqe_at(cq, cq->head);
	struct ibv_cq_ex *ex = &cq->verbs_cq.cq_ex;
	struct poll poll = poll_begin(cq);
	uint64_t wr_id;

	poll.is_single = true;
	if (unlikely(!take(&poll, cqe, &wr_id)))
		return false;
	cq->cqe = *cqe;
	cq->qp_num = poll.side->qp_num;
	ex->wr_id = wr_id;
	ex->status = pvr_wc_status(&cq->cqe);
	settle(&poll);
	return true;
}

static int advance(struct pvr_cq *cq)
{
	for (; cq->head != cq->tail; pvr_cq_publish(cq)) {
		if (likely(take_next(cq)))
			return 0;
		note_skipped(cq, cq->head++);
	}
	return ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct pvr_cq *cq = of_ex(ex);
	int err = cq->head != cq->tail ? 0 : look(cq);

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
	return le32toh(of_ex(ex)->cqe.vendor_err);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return le32toh(of_ex(ex)->cqe.byte_len);
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return pvr_wc_imm_data(&of_ex(ex)->cqe);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return le32toh(of_ex(ex)->cqe.src_qp);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return pvr_wc_flags(&of_ex(ex)->cqe);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return le16toh(of_ex(ex)->cqe.slid);
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
