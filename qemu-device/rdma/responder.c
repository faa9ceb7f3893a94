// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder of a connection, reliable or not.
 *
 * RC: IBTA 9.7.4 (responder) and table 58 (NAK codes).
 *
 * - An error of the request or of the responder's receive request moves the responder to
 *   ERR and sends a NAK with a status to the requester.
 * - A fragment out of order is dropped.
 *
 * UC: IBTA 9.8.2 and the UC column of the table of responder errors in 9.9.3.
 *
 * - An error of the request (order, rights, rkey, length, no receive posted) drops the
 *   message. The requester sees no error, and the receive request stays for the next
 *   message (class D).
 * - An error of the responder's receive request (forbidden memory, too many entries)
 *   completes it in error and moves the responder to ERR (class A, but without a NAK).
 * - The first fragment of a message is accepted with any PSN.
 */
#include "rdma/responder.h"

#include <errno.h>
#include <string.h>

#include "core/dirty.h"
#include "core/persist.h"
#include "rdma/rq.h"
#include "rdma/qp.h"
#include "rdma/event.h"
#include "rdma/page_fault.h"
#include "rdma/responder_state.h"
#include "rdma/xrc.h"

/* A step of a FLUSH to persistence, about 0.1 ms of a slow memory, and the wait for the next one. */
#define FLUSH_STEP (256u << 10)
#define FLUSH_WAIT_NS 1000u

/* IBTA 9.7.5.2.8, table 45, in units of 10 us. */
static const uint32_t rnr_timer[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t pvr_rnr_timer_ns(const struct pvr_qp *to)
{
	return rnr_timer[to->attr.min_rnr_timer & 31] * 10000u;
}

static struct pvr_syndrome ack(void)
{
	return (struct pvr_syndrome){ .kind = PVR_SYN_ACK };
}

static struct pvr_syndrome nak(enum pvrdma_wc_status status)
{
	return (struct pvr_syndrome){ .kind = PVR_SYN_NAK, .status = status };
}

/* Drop a fragment of a UC message: its later fragments are then out of order. */
static struct pvr_syndrome drop(void)
{
	return (struct pvr_syndrome){ .kind = PVR_SYN_NONE };
}

/*
 * Requesters of other hosts retry after their RNR timer: the next receive does not resume
 * them.
 */
static struct pvr_syndrome rnr(struct pvr_qp *to, const struct pvr_inbound *in)
{
	if (to->type == PVR_QPT_UC)
		return drop();
	if (!in && !pvr_rnr_is_polled(to))
		pvr_qp_set_rnr_nak_sent(to, true);
	pvr_count(to, PVR_STAT_RNR_NAKS, 1);
	return (struct pvr_syndrome){
		.kind = PVR_SYN_RNR,
		.wait_ns = rnr_timer[to->attr.min_rnr_timer & 31] * 10000u,
	};
}

static struct pvr_syndrome refuse(struct pvr_qp *to, enum pvr_eqe_type event,
				  enum pvrdma_wc_status status, const char *why)
{
	pvr_count(to,
		  status == PVRDMA_WC_REM_ACCESS_ERR ? PVR_STAT_ACCESS_ERRORS
						     : PVR_STAT_REQUEST_ERRORS,
		  1);
	if (to->type == PVR_QPT_UC)
		return drop();
	pvr_qp_fail(to, event, why);
	return nak(status);
}

static struct pvr_syndrome refuse_access(struct pvr_qp *to)
{
	return refuse(to, PVR_EVENT_QP_ACCESS_ERR, PVRDMA_WC_REM_ACCESS_ERR,
		      "remote access with a bad rkey, range or right");
}

/*
 * The fragment could not be copied between @sg and the requester's memory. Return: PVR_SYN_PAGE
 * if the requester waits for pages; a NAK if the requester's guest has refused its page;
 * PVR_SYN_NONE: absent pages are not the reason, or their guest has refused one of @sg.
 */
static pvr_noinline struct pvr_syndrome page_fault(const struct pvr_request *request,
						   const struct pvr_sg *sg, bool is_local)
{
	/* A packet is less than a fragment: ask for the pages behind it too. */
	uint64_t left = request->length ? request->length - request->offset : sg->total;
	uint64_t len = left < PVR_QUANTUM_BYTES ? left : PVR_QUANTUM_BYTES;
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;
	enum pvr_page_state own, far = PVR_PAGE_FOUND;

	if (is_local)
		far = pvr_page_fault(request->local, request->offset, request->chunk, &wait_ns);
	if (far == PVR_PAGE_REFUSED)
		return nak(PVRDMA_WC_LOC_PROT_ERR);
	own = pvr_page_fault(sg, request->offset, len, &wait_ns);
	if (own == PVR_PAGE_REFUSED || (own == PVR_PAGE_FOUND && far == PVR_PAGE_FOUND))
		return drop();
	return (struct pvr_syndrome){ .kind = PVR_SYN_PAGE, .wait_ns = wait_ns };
}

/* ------------------------------------------------------ receive requests */

/*
 * With PVR_EXT_DB_SUPPRESS the guest rings only after the receive word has become 0. So
 * the queue is loaded once more after the 0. A requester that polls for the next receive
 * needs no doorbell: the word stays 1.
 */
static pvr_always_inline int get_recv(struct pvr_qp *to, struct pvr_recv_wqe *wqe,
				      const struct pvr_inbound *in)
{
	int err = pvr_recv_get(to, wqe);

	if (err != -ENOENT || !to->db_suppress_shm || to->type != PVR_QPT_RC || in)
		return err;
	if (pvr_rnr_is_polled(to))
		return err;
	pvr_qp_set_rnr_nak_sent(to, true);
	err = pvr_recv_get(to, wqe);
	if (err != -ENOENT)
		pvr_qp_set_rnr_nak_sent(to, false);
	return err;
}

static void complete_recv(struct pvr_qp *to, const struct pvr_request *request,
			  const struct pvr_recv_wqe *wqe, enum pvrdma_wc_status status)
{
	bool write = request->op->kind == PVR_OP_WRITE;
	struct pvrdma_cqe cqe = {
		.wr_id = wqe->hdr.wr_id,
		.opcode = write ? PVRDMA_WC_RECV_RDMA_WITH_IMM : PVRDMA_WC_RECV,
		.status = status,
		.src_qp = request->from->qpn,
		.port_num = 1,
	};

	if (status == PVRDMA_WC_SUCCESS) {
		cqe.byte_len = request->length;
		if (request->op->imm) {
			cqe.imm_data = request->wqe->hdr.ex.imm_data;
			cqe.wc_flags = PVRDMA_WC_WITH_IMM;
		} else if (request->wqe->hdr.opcode == PVRDMA_WR_SEND_WITH_INV) {
			/* In host order, as consumers compare it with their rkey. */
			memcpy(&cqe.imm_data, &request->wqe->hdr.ex.invalidate_rkey,
			       sizeof(cqe.imm_data));
			cqe.wc_flags = PVRDMA_WC_WITH_INVALIDATE;
		}
	}
	pvr_recv_complete(to, &cqe, request->wqe->hdr.send_flags & PVR_SEND_SOLICITED);
}

/* An error of the receive request: complete it with @status, send a NAK with @host. */
static struct pvr_syndrome fail_recv(struct pvr_qp *to, const struct pvr_request *request,
				     const struct pvr_recv_wqe *wqe, enum pvrdma_wc_status status,
				     enum pvrdma_wc_status host, const char *why)
{
	complete_recv(to, request, wqe, status);
	pvr_qp_fail(to, PVR_EVENT_NUM, why);
	return nak(host);
}

/* The message does not fit. */
static struct pvr_syndrome fail_length(struct pvr_qp *to, const struct pvr_request *request,
				       const struct pvr_recv_wqe *wqe)
{
	pvr_count(to, PVR_STAT_REQUEST_ERRORS, 1);
	if (to->type == PVR_QPT_UC)
		return drop();
	return fail_recv(to, request, wqe, PVRDMA_WC_LOC_LEN_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			 "receive buffer too small");
}

/* The payload could not be stored. */
static pvr_noinline struct pvr_syndrome fail_recv_memory(struct pvr_qp *to,
							 const struct pvr_request *request,
							 const struct pvr_recv_wqe *wqe,
							 const struct pvr_sg *sg, bool is_local)
{
	struct pvr_syndrome fault = page_fault(request, sg, is_local);

	if (fault.kind != PVR_SYN_NONE)
		return fault;
	return fail_recv(to, request, wqe, PVRDMA_WC_LOC_PROT_ERR, PVRDMA_WC_REM_OP_ERR,
			 "memory of the receive buffer was unplugged");
}

/* ------------------------------------------------------------- operations */

/* The memory of a remote key could not be used. */
static pvr_noinline struct pvr_syndrome refuse_memory(struct pvr_qp *to,
						      const struct pvr_request *request,
						      const struct pvr_sg *sg, bool is_local)
{
	struct pvr_syndrome fault = page_fault(request, sg, is_local);

	return fault.kind == PVR_SYN_NONE ? refuse_access(to) : fault;
}

static pvr_always_inline struct pvr_syndrome respond_send(struct pvr_qp *to,
							  const struct pvr_request *request,
							  const struct pvr_recv_wqe *wqe,
							  struct pvr_inbound *in)
{
	uint32_t max_sge = to->srq ? to->srq->wq.max_sge : to->rq.max_sge;
	struct pvr_sg sg PVR_UNINITIALIZED;
	int err;

	if (wqe->hdr.num_sge > max_sge)
		return fail_recv(to, request, wqe, PVRDMA_WC_LOC_QP_OP_ERR, PVRDMA_WC_REM_OP_ERR,
				 "receive with too many SGEs");
	if (pvr_sg_build(&sg, to, pvr_recv_pd(to), wqe->sge, wqe->hdr.num_sge,
			 PVR_ACCESS_LOCAL_WRITE))
		return fail_recv(to, request, wqe, PVRDMA_WC_LOC_PROT_ERR, PVRDMA_WC_REM_OP_ERR,
				 "receive SGE outside its lkey's range or rights");
	if (sg.total < request->length)
		return fail_length(to, request, wqe);
	if (in)
		err = in->ops->recv_payload(in, &sg);
	else
		err = pvr_sg_copy(&sg, request->offset, request->local, request->offset,
				  request->chunk);
	if (err == -EAGAIN)
		return (struct pvr_syndrome){ .kind = PVR_SYN_PARTIAL };
	return err ? fail_recv_memory(to, request, wqe, &sg, !in) : ack();
}

/* Checks the key before any payload moves, and invalidates it with the last fragment. */
static pvr_always_inline struct pvr_syndrome respond_send_inv(struct pvr_qp *to,
							      const struct pvr_request *request,
							      const struct pvr_recv_wqe *wqe,
							      struct pvr_inbound *in)
{
	uint32_t key = request->wqe->hdr.ex.invalidate_rkey;
	struct pvr_mr *mr = pvr_mr_find_invalidable(to, key, true);
	struct pvr_syndrome syndrome;

	if (!mr)
		return refuse_access(to);
	syndrome = respond_send(to, request, wqe, in);
	if (syndrome.kind == PVR_SYN_ACK && request->last)
		pvr_mr_invalidate(mr);
	return syndrome;
}

static pvr_always_inline struct pvr_syndrome respond_rdma(struct pvr_qp *to,
							  const struct pvr_request *request,
							  struct pvr_inbound *in, bool read)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &request->wqe->hdr;
	uint32_t right = request->op->remote;
	struct pvr_sg sg PVR_UNINITIALIZED;
	int err;

	if (!(to->attr.qp_access_flags & right))
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      read ? "RDMA READ is not enabled" : "RDMA WRITE is not enabled");
	if (read && !to->attr.max_dest_rd_atomic)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "RDMA READ beyond max_dest_rd_atomic");
	if (pvr_sg_build_remote(&sg, to, hdr->wr.rdma.rkey, hdr->wr.rdma.remote_addr,
				request->length, right))
		return refuse_access(to);
	if (read && in)
		err = in->ops->read_reply(in, &sg);
	else if (read)
		err = pvr_sg_copy(request->local, request->offset, &sg, request->offset,
				  request->chunk);
	else if (in)
		err = in->ops->recv_payload(in, &sg);
	else
		err = pvr_sg_copy(&sg, request->offset, request->local, request->offset,
				  request->chunk);
	if (in && err == -EAGAIN)
		return (struct pvr_syndrome){ .kind = PVR_SYN_PARTIAL };
	return err ? refuse_memory(to, request, &sg, !in) : ack();
}

/*
 * Uses the host's atomic instructions: atomic against all CPUs of the guest and all other
 * requesters. Return: the original value.
 */
static uint64_t apply_atomic(uint64_t *word_shm, const struct pvrdma_sq_wqe_hdr *hdr)
{
	uint64_t old = hdr->wr.atomic.compare_add;

	if (hdr->opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD)
		return __atomic_fetch_add(word_shm, old, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word_shm, &old, hdr->wr.atomic.swap, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return old;
}

static pvr_always_inline struct pvr_syndrome
respond_atomic(struct pvr_qp *to, const struct pvr_request *request, struct pvr_inbound *in)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &request->wqe->hdr;
	struct pvr_syndrome fault;
	struct pvr_sg sg PVR_UNINITIALIZED;
	uint64_t *word_shm, old;

	if (!(to->attr.qp_access_flags & PVR_ACCESS_REMOTE_ATOMIC))
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "atomics are not enabled");
	if (!to->attr.max_dest_rd_atomic)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "atomic beyond max_dest_rd_atomic");
	if (hdr->wr.atomic.remote_addr % sizeof(uint64_t))
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "atomic at an address that is not a multiple of 8");
	if (pvr_sg_build_remote(&sg, to, hdr->wr.atomic.rkey, hdr->wr.atomic.remote_addr,
				sizeof(uint64_t), PVR_ACCESS_REMOTE_ATOMIC))
		return refuse_access(to);
	word_shm = pvr_sg_word(&sg);
	/* An aligned iova may map to unaligned memory. */
	if (!word_shm || (uintptr_t)word_shm % sizeof(uint64_t))
		return refuse_memory(to, request, &sg, !in);
	/* The result must find its pages: the atomic executes once. */
	if (!in && !request->local->flat) {
		fault = page_fault(request, &sg, true);
		if (fault.kind != PVR_SYN_NONE)
			return fault;
	}
	old = apply_atomic(word_shm, hdr);
	pvr_dirty(to->adapter, word_shm, sizeof(*word_shm));
	if (in) {
		pvr_replay_record(to, request->from->psn, old);
		in->ops->atomic_reply(in, old);
	} else { /* Cannot fail: the requester has checked its SGE in this quantum. */
		(void)pvr_sg_write(request->local, &old, sizeof(old));
	}
	return ack();
}

static pvr_noinline struct pvr_syndrome respond_atomic_write(struct pvr_qp *to,
							     const struct pvr_request *request)
{
	struct pvr_wqe_atomic_write write;
	struct pvr_sg sg PVR_UNINITIALIZED;
	uint64_t *word_shm;

	memcpy(&write, &request->wqe->hdr.wr, sizeof(write));
	if (!(to->attr.qp_access_flags & PVR_ACCESS_REMOTE_WRITE))
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "ATOMIC WRITE, but RDMA WRITE is not enabled");
	if (write.addr % sizeof(uint64_t))
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "ATOMIC WRITE to an address that is not a multiple of 8");
	if (pvr_sg_build_remote(&sg, to, write.rkey, write.addr, sizeof(uint64_t),
				PVR_ACCESS_REMOTE_WRITE))
		return refuse_access(to);
	word_shm = pvr_sg_word(&sg);
	/* An aligned iova may map to unaligned memory. */
	if (!word_shm || (uintptr_t)word_shm % sizeof(uint64_t))
		return refuse_memory(to, request, &sg, false);
	__atomic_store_n(word_shm, write.value, __ATOMIC_SEQ_CST);
	pvr_dirty(to->adapter, word_shm, sizeof(*word_shm));
	return ack();
}

/* The memory of a FLUSH. */
struct flush_range {
	const struct pvr_mr *mr;
	uint64_t addr, length;
};

/* Return: whether @to's guest has permitted the flush to the key. */
static bool find_flush(const struct pvr_qp *to, const struct pvr_wqe_flush *flush, uint32_t right,
		       struct flush_range *range)
{
	*range = (struct flush_range){ .addr = flush->addr, .length = flush->length };
	if (flush->level == PVR_FLUSH_MR) {
		range->mr = pvr_mr_by_key(to->adapter, to->pd, flush->rkey);
		if (!range->mr)
			return false;
		range->addr = range->mr->start;
		range->length = range->mr->length;
	}
	range->mr = pvr_mr_find_remote(to, flush->rkey, range->addr, range->length, right);
	return range->mr;
}

/*
 * A region can have many GiB, so this is done in steps. Between them the requester waits as for
 * an absent page, and other queue pairs run. Return: ACK if all of the range is persistent.
 */
static struct pvr_syndrome persist_some(struct pvr_qp *to, const struct flush_range *range)
{
	uint64_t budget = FLUSH_STEP, contig, len;
	const uint8_t *run;

	while (to->flushed < range->length && budget) {
		len = range->length - to->flushed;
		run = pvr_mr_run(to->adapter, range->mr, range->addr + to->flushed,
				 len < budget ? len : budget, &contig);
		if (!run)
			return refuse_access(to);
		pvr_persist(run, contig);
		to->flushed += contig;
		budget -= contig;
	}
	pvr_persist_end();
	if (to->flushed < range->length)
		return (struct pvr_syndrome){ .kind = PVR_SYN_PAGE, .wait_ns = FLUSH_WAIT_NS };
	to->flushed = 0;
	return ack();
}

/*
 * IBTA A19.4. Earlier writes of the queue pair are copies by this process or DMA that has
 * ended, so a fence makes them globally visible.
 */
static pvr_noinline struct pvr_syndrome respond_flush(struct pvr_qp *to,
						      const struct pvr_request *request)
{
	struct flush_range range;
	struct pvr_wqe_flush flush;
	uint32_t right;

	memcpy(&flush, &request->wqe->hdr.wr, sizeof(flush));
	if (!flush.placement || flush.placement & ~(PVR_FLUSH_GLOBAL | PVR_FLUSH_PERSISTENT) ||
	    flush.level > PVR_FLUSH_MR)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "FLUSH with an unknown placement or level");
	right = (flush.placement & PVR_FLUSH_GLOBAL ? PVR_ACCESS_FLUSH_GLOBAL : 0) |
		(flush.placement & PVR_FLUSH_PERSISTENT ? PVR_ACCESS_FLUSH_PERSISTENT : 0);
	if (right & ~to->attr.qp_access_flags)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR,
			      "FLUSH is not enabled");
	if (!find_flush(to, &flush, right, &range))
		return refuse_access(to);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return flush.placement & PVR_FLUSH_PERSISTENT ? persist_some(to, &range) : ack();
}

/* ---------------------------------------------------------------- a fragment */

/* True for the expected PSN and offset. */
static bool in_order(const struct pvr_qp *to, const struct pvr_request *request)
{
	return request->from->psn == to->rq_psn && request->offset == to->rq_offset;
}

/* IBTA 9.8.2.2.1: drops an incomplete message before; its receive request stays. */
static void resynchronise(struct pvr_qp *to, const struct pvr_request *request)
{
	if (to->type != PVR_QPT_UC || request->offset)
		return;
	to->rq_psn = request->from->psn;
	to->rq_offset = 0;
}

static void established(struct pvr_qp *to)
{
	if (to->state != PVR_QPS_RTR || to->comm_est)
		return;
	to->comm_est = true;
	pvr_event_async(to->adapter, PVR_EVENT_COMM_EST, to->handle);
}

/* The fragment is done. Return: true if it was the last one of its message. */
static bool advance(struct pvr_qp *to, const struct pvr_request *request)
{
	if (!request->last) {
		to->rq_offset += request->chunk;
		return false;
	}
	to->rq_offset = 0;
	to->rq_psn = (to->rq_psn + request->psns) & 0xffffff;
	return true;
}

/* Compiled twice: for local requests, where @in is NULL, and for all others. */
static pvr_always_inline struct pvr_syndrome
execute(struct pvr_qp *to, const struct pvr_request *request, struct pvr_inbound *in)
{
	struct pvr_syndrome syndrome;
	struct pvr_recv_wqe wqe PVR_UNINITIALIZED;
	int err;

	resynchronise(to, request);
	if (!in_order(to, request))
		return (struct pvr_syndrome){ .kind = PVR_SYN_NONE };
	established(to);
	if (!request->op->recv) {
		if (request->op->kind == PVR_OP_WRITE)
			syndrome = respond_rdma(to, request, in, false);
		else if (request->op->kind == PVR_OP_READ)
			syndrome = respond_rdma(to, request, in, true);
		else if (request->op->kind == PVR_OP_ATOMIC)
			syndrome = respond_atomic(to, request, in);
		else if (request->op->kind == PVR_OP_ATOMIC_WRITE)
			syndrome = respond_atomic_write(to, request);
		else
			syndrome = respond_flush(to, request);
		if (syndrome.kind == PVR_SYN_ACK)
			advance(to, request);
		return syndrome;
	}
	err = get_recv(to, &wqe, in);
	if (err == -ENOENT)
		return rnr(to, in);
	if (err)
		return nak(PVRDMA_WC_REM_OP_ERR);
	if (request->op->kind == PVR_OP_WRITE)
		syndrome = respond_rdma(to, request, in, false);
	else if (request->wqe->hdr.opcode == PVRDMA_WR_SEND_WITH_INV)
		syndrome = respond_send_inv(to, request, &wqe, in);
	else
		syndrome = respond_send(to, request, &wqe, in);
	if (syndrome.kind == PVR_SYN_ACK && advance(to, request))
		complete_recv(to, request, &wqe, PVRDMA_WC_SUCCESS);
	return syndrome;
}

/* For XRC targets. @again: reply again to an RDMA READ. */
static pvr_noinline struct pvr_syndrome execute_xrc(struct pvr_qp *to,
						    const struct pvr_request *request,
						    struct pvr_inbound *in, bool again)
{
	struct pvr_syndrome syndrome;
	const char *why;

	if (!again && !in_order(to, request))
		return (struct pvr_syndrome){ .kind = PVR_SYN_NONE };
	why = pvr_xrc_enter(to, request);
	if (why)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR, why);
	syndrome = again ? respond_rdma(to, request, in, true) : execute(to, request, in);
	pvr_xrc_leave(to);
	return syndrome;
}

/* pvr_wq_fetch_sge() and pvr_sg_build() bound what they store in its arrays. */
PVR_NO_STACK_PROTECTOR struct pvr_syndrome pvr_responder_execute(struct pvr_qp *to,
								 const struct pvr_request *request)
{
	if (to->xrc_target)
		return execute_xrc(to, request, NULL, false);
	return execute(to, request, NULL);
}

struct pvr_syndrome pvr_responder_execute_inbound(struct pvr_qp *to, struct pvr_inbound *in)
{
	if (to->xrc_target)
		return execute_xrc(to, &in->request, in, false);
	return execute(to, &in->request, in);
}

struct pvr_syndrome pvr_responder_read_again(struct pvr_qp *to, struct pvr_inbound *in)
{
	if (to->xrc_target)
		return execute_xrc(to, &in->request, in, true);
	return respond_rdma(to, &in->request, in, true);
}

struct pvr_syndrome pvr_responder_execute_tail(struct pvr_qp *to, struct pvr_inbound *in)
{
	struct pvr_request *request = &in->request;
	struct pvr_syndrome syndrome;

	if (request->op->kind != PVR_OP_READ) {
		request->chunk -= to->rq_offset - request->offset;
		request->offset = to->rq_offset;
		return pvr_responder_execute_inbound(to, in);
	}
	syndrome = pvr_responder_read_again(to, in);
	if (syndrome.kind == PVR_SYN_ACK) {
		to->rq_offset = request->offset;
		advance(to, request);
	}
	return syndrome;
}

static struct pvr_syndrome fail_next_recv(struct pvr_qp *to, const struct pvr_request *request,
					  enum pvrdma_wc_status status, const char *why)
{
	struct pvr_recv_wqe wqe PVR_UNINITIALIZED;

	if (pvr_recv_get(to, &wqe))
		return drop();
	return fail_recv(to, request, &wqe, status,
			 status == PVRDMA_WC_LOC_LEN_ERR ? PVRDMA_WC_REM_INV_REQ_ERR
							 : PVRDMA_WC_REM_OP_ERR,
			 why);
}

struct pvr_syndrome pvr_responder_fail_recv(struct pvr_qp *to, const struct pvr_request *request,
					    enum pvrdma_wc_status status, const char *why)
{
	struct pvr_syndrome syndrome;
	const char *no_srq;

	if (!in_order(to, request))
		return drop();
	if (!to->xrc_target)
		return fail_next_recv(to, request, status, why);
	no_srq = pvr_xrc_enter(to, request);
	if (no_srq)
		return refuse(to, PVR_EVENT_QP_REQ_ERR, PVRDMA_WC_REM_INV_REQ_ERR, no_srq);
	syndrome = fail_next_recv(to, request, status, why);
	pvr_xrc_leave(to);
	return syndrome;
}

/* IBTA table 58: the events of the NAK codes. */
static enum pvr_eqe_type event_of(enum pvrdma_wc_status status)
{
	switch (status) {
	case PVRDMA_WC_REM_ACCESS_ERR:
		return PVR_EVENT_QP_ACCESS_ERR;
	case PVRDMA_WC_REM_INV_REQ_ERR:
		return PVR_EVENT_QP_REQ_ERR;
	default:
		return PVR_EVENT_NUM;
	}
}

struct pvr_syndrome pvr_responder_fail(struct pvr_qp *to, enum pvrdma_wc_status status,
				       const char *why)
{
	return refuse(to, event_of(status), status, why);
}
