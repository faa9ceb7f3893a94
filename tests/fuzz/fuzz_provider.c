// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a hostile device and its driver, against the libibverbs provider and a
 * program with one thread. The device writes any bytes into the rings, and the driver
 * returns any handles and errors. The kernel is that of rdma-core-provider/tests.
 *
 * An input is a sequence of operations: a byte of enum op, then its arguments.
 * Rings are allocated by malloc(), so that ASan finds accesses beyond them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cq.h"
#include "fake_kernel.h"

#define FEATURES                                                                                \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_RESIZE | PVR_EXT_INLINE | PVR_EXT_UC | PVR_EXT_USER_OPS | \
	 PVR_EXT_MW | PVR_EXT_DB_SUPPRESS | PVR_EXT_CQ_ARM_DBREC | PVR_EXT_CQ_TIMESTAMP)
#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OBJECTS 4 /* of each kind */
#define OPS_MAX 300

enum op {
	OP_CREATE_CQ,
	OP_CREATE_SRQ,
	OP_CREATE_QP,
	OP_DESTROY_CQ,
	OP_DESTROY_SRQ,
	OP_DESTROY_QP,
	OP_RESET_QP,
	OP_RESIZE_CQ,
	OP_RESIZE_SRQ,
	OP_POLL,
	OP_LAZY_START,
	OP_LAZY_NEXT,
	OP_LAZY_END,
	OP_SEND,
	OP_SEND_EX,
	OP_RECV,
	OP_SRQ_RECV,
	OP_ARM,
	OP_EVENT,
	/* Of the device and its driver. */
	OP_SET_INDEX,
	OP_WRITE_CQE,
	OP_WRITE_RING,
	OP_SET_ANSWER,
	OP_NUM,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t length);

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* mmap(), by the name of 64-bit offsets. */
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	(void)addr;
	(void)prot;
	(void)flags;
	(void)fd;
	(void)offset;
	return aligned_alloc(PVR_PAGE_SIZE, length);
}

int __wrap_munmap(void *addr, size_t length)
{
	(void)length;
	free(addr);
	return 0;
}

/* ------------------------------------------------------------------------- the input */

static struct {
	const uint8_t *data;
	size_t left;
	uint32_t next_handle;
	struct pvr_cq *cqs[OBJECTS];
	bool lazy[OBJECTS]; /* an extended CQ */
	struct ibv_srq *srqs[OBJECTS];
	struct ibv_qp *qps[OBJECTS];
	bool by_function[OBJECTS]; /* a QP with ibv_wr_*() */
	struct pvr_cq *open; /* between start_poll and end_poll, or NULL */
	uint64_t read; /* the sum of all that it has read */
} w;

static void take(void *to, size_t size)
{
	size_t n = size < w.left ? size : w.left;

	memset(to, 0, size);
	if (n)
		memcpy(to, w.data, n);
	w.data += n;
	w.left -= n;
}

static uint8_t take_byte(void)
{
	uint8_t byte;

	take(&byte, 1);
	return byte;
}

static uint32_t take_word(void)
{
	uint32_t word;

	take(&word, sizeof(word));
	return word;
}

static struct ibv_cq *ibcq(struct pvr_cq *cq)
{
	return &cq->verbs_cq.cq;
}

static unsigned int take_index(void)
{
	return take_byte() % OBJECTS;
}

/* The open CQ has its lock held: this thread must not use it otherwise. */
static bool uses_open(const struct ibv_qp *qp)
{
	return w.open && (qp->send_cq == ibcq(w.open) || qp->recv_cq == ibcq(w.open));
}

/* ------------------------------------------------------------------------- objects */

/* Fields of completions that can be read. */
static uint64_t all_fields(void)
{
	return IBV_WC_STANDARD_FLAGS |
	       (fake.ctx.features & PVR_EXT_CQ_TIMESTAMP ? PVR_WC_EX_TIMES : 0);
}

static void create_cq(void)
{
	unsigned int i = take_index();
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1 + take_byte() % 20,
		.wc_flags = all_fields(),
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = take_byte() & 1 ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
	};
	struct ibv_cq_ex *ex;

	if (w.cqs[i] || fake.cqs.num > FAKE_MAX_OBJECTS - 2)
		return;
	ex = pvr_create_cq_ex(fake.ibctx, &attr);
	if (ex)
		w.cqs[i] = to_pvr_cq(ibv_cq_ex_to_cq(ex));
}

static void create_srq(void)
{
	unsigned int i = take_index();
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 1 + take_byte() % 20, .max_sge = take_byte() % 5 },
	};

	if (!w.srqs[i] && fake.srqs.num < FAKE_MAX_OBJECTS - 1)
		w.srqs[i] = pvr_create_srq(fake.ibpd, &attr);
}

static bool uses_cq(const struct pvr_cq *cq)
{
	for (int i = 0; i < OBJECTS; i++)
		if (w.qps[i] &&
		    (to_pvr_cq(w.qps[i]->send_cq) == cq || to_pvr_cq(w.qps[i]->recv_cq) == cq))
			return true;
	return false;
}

static void create_qp(void)
{
	unsigned int i = take_index(), send = take_index(), recv = take_index(), srq = take_index();
	uint8_t kind = take_byte();
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = (enum ibv_qp_type[]){ IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_UC,
						 IBV_QPT_RC }[kind & 3],
		.cap = { .max_send_wr = take_byte() % 9,
			 .max_send_sge = take_byte() % 5,
			 .max_recv_wr = take_byte() % 9,
			 .max_recv_sge = take_byte() % 5,
			 .max_inline_data = take_byte() },
		.sq_sig_all = kind & 4 ? 1 : 0,
	};

	if (w.qps[i] || !w.cqs[send] || !w.cqs[recv])
		return;
	attr.send_cq = ibcq(w.cqs[send]);
	attr.recv_cq = ibcq(w.cqs[recv]);
	attr.srq = kind & 8 ? w.srqs[srq] : NULL;
	w.by_function[i] = kind & 16;
	if (w.by_function[i]) {
		attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = attr.qp_type == IBV_QPT_UD ? UD_OPS : RC_OPS;
	}
	if (attr.qp_type == IBV_QPT_UC)
		attr.send_ops_flags &= UD_OPS;
	w.qps[i] = fake_create_qp_ex(&attr);
}

static void destroy_cq(unsigned int i)
{
	if (!w.cqs[i] || w.cqs[i] == w.open || uses_cq(w.cqs[i]))
		return;
	if (!pvr_destroy_cq(ibcq(w.cqs[i])))
		w.cqs[i] = NULL;
}

static void destroy_srq(unsigned int i)
{
	for (int k = 0; k < OBJECTS; k++)
		if (w.qps[k] && w.qps[k]->srq == w.srqs[i])
			return;
	if (w.srqs[i] && !pvr_destroy_srq(w.srqs[i]))
		w.srqs[i] = NULL;
}

static void destroy_qp(unsigned int i)
{
	if (w.qps[i] && !uses_open(w.qps[i]) && !pvr_destroy_qp(w.qps[i]))
		w.qps[i] = NULL;
}

static void reset_qp(void)
{
	struct ibv_qp *qp = w.qps[take_index()];

	if (!qp || uses_open(qp))
		return;
	fake_reset_qp(qp);
}

static void resize_cq(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];
	uint8_t cqe = take_byte();

	if (cq && cq != w.open)
		pvr_resize_cq(ibcq(cq), cqe % 40);
}

/* The device returns any index. */
static void resize_srq(void)
{
	struct ibv_srq *srq = w.srqs[take_index()];
	struct ibv_srq_attr attr = { .max_wr = take_byte() % 40 };
	uint32_t tail = take_word();

	fake.resized_tail = tail % 3 ? &tail : NULL;
	if (srq)
		pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	fake.resized_tail = NULL;
}

/* ------------------------------------------------------------------------- polling */

static bool is_known(uint32_t qp_num)
{
	for (int i = 0; i < OBJECTS; i++)
		if (w.qps[i] && w.qps[i]->qp_num == qp_num)
			return true;
	return false;
}

static void poll_cq(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];
	int num = take_byte() % 9, n;
	struct ibv_wc wc[8];

	if (!cq || cq == w.open)
		return;
	n = pvr_poll_cq(ibcq(cq), num, wc);
	if (n > num)
		die("more completions than requested");
	for (int i = 0; i < n; i++)
		if (!is_known(wc[i].qp_num) || wc[i].status > IBV_WC_GENERAL_ERR)
			die("a completion of no QP, or of no status");
}

static struct ibv_cq_ex *open_ex(void)
{
	return &w.open->verbs_cq.cq_ex;
}

static void lazy_start(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct pvr_cq *cq = w.cqs[take_index()];

	if (!cq || w.open)
		return;
	if (!ibv_start_poll(&cq->verbs_cq.cq_ex, &attr))
		w.open = cq;
}

static uint64_t read_times(struct ibv_cq_ex *ex)
{
	if (!ex->read_completion_ts)
		return 0;
	return ibv_wc_read_completion_ts(ex) + ibv_wc_read_completion_wallclock_ns(ex);
}

static uint64_t read_all(void)
{
	struct ibv_cq_ex *ex = open_ex();

	return read_times(ex) + ex->wr_id + ex->status + ibv_wc_read_opcode(ex) +
	       ibv_wc_read_vendor_err(ex) + ibv_wc_read_byte_len(ex) + ibv_wc_read_imm_data(ex) +
	       ibv_wc_read_qp_num(ex) + ibv_wc_read_src_qp(ex) + ibv_wc_read_wc_flags(ex) +
	       ibv_wc_read_slid(ex) + ibv_wc_read_sl(ex) + ibv_wc_read_dlid_path_bits(ex);
}

/* A program must not read after ENOENT. */
static void lazy_next(void)
{
	if (!w.open)
		return;
	if (take_byte() & 1) {
		w.read += read_all();
		return;
	}
	if (!ibv_next_poll(open_ex()))
		return;
	ibv_end_poll(open_ex());
	w.open = NULL;
}

static void lazy_end(void)
{
	if (w.open)
		ibv_end_poll(open_ex());
	w.open = NULL;
}

/* ------------------------------------------------------------------------- posting */

static uint8_t payload[512];
static struct ibv_sge sges[8] = { { .addr = (uintptr_t)payload, .length = 8 } };

static void take_sges(void)
{
	for (int i = 0; i < 8; i++)
		sges[i] = (struct ibv_sge){ .addr = (uintptr_t)payload,
					    .length = take_byte() & 63,
					    .lkey = (uint32_t)i };
}

static void send(void)
{
	struct ibv_qp *qp = w.qps[take_index()];
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.opcode = take_byte() % 12,
		.send_flags = take_byte() & 31,
		.num_sge = take_byte() % 9,
		.sg_list = sges,
	};

	take_sges();
	if (qp && wr.opcode != IBV_WR_BIND_MW && qp->qp_type != IBV_QPT_UD)
		pvr_post_send(qp, &wr, &bad);
}

static void set_data(struct ibv_qp_ex *qp, uint8_t how)
{
	if (how & 1)
		ibv_wr_set_sge_list(qp, how >> 4, sges);
	else if (how & 2)
		ibv_wr_set_inline_data(qp, payload, how * 2u);
	else
		ibv_wr_set_sge(qp, 1, (uintptr_t)payload, how);
}

/* A batch, in which a request may lack its data or have too much. */
static void send_ex(void)
{
	unsigned int i = take_index();
	struct ibv_qp_ex *qp = w.qps[i] && w.by_function[i] ? ibv_qp_to_qp_ex(w.qps[i]) : NULL;
	uint8_t ops = take_byte(), how;

	if (!qp || w.qps[i]->qp_type != IBV_QPT_RC)
		return;
	take_sges();
	ibv_wr_start(qp);
	for (unsigned int n = ops & 7; n--;) {
		qp->wr_id = n;
		qp->wr_flags = ops & 0x80 ? IBV_SEND_SIGNALED : 0;
		how = take_byte();
		switch (how % 5) {
		case 0:
			ibv_wr_send(qp);
			break;
		case 1:
			ibv_wr_rdma_write(qp, 1, 2);
			break;
		case 2:
			ibv_wr_atomic_fetch_add(qp, 1, 8, 2);
			break;
		case 3:
			ibv_wr_local_inv(qp, 1);
			break;
		default:
			ibv_wr_rdma_read(qp, 1, 2);
		}
		if (how & 0x80)
			set_data(qp, take_byte());
	}
	if (ops & 0x40)
		ibv_wr_abort(qp);
	else
		ibv_wr_complete(qp);
}

static void recv(bool shared)
{
	unsigned int i = take_index();
	struct ibv_recv_wr *bad, wr = { .num_sge = take_byte() % 9, .sg_list = sges };

	if (shared && w.srqs[i])
		pvr_post_srq_recv(w.srqs[i], &wr, &bad);
	else if (!shared && w.qps[i] && !w.qps[i]->srq)
		pvr_post_recv(w.qps[i], &wr, &bad);
}

static void arm(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];

	if (cq)
		pvr_req_notify_cq(ibcq(cq), take_byte() & 1);
}

static void event(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];
	struct ibv_async_event event = { .event_type = IBV_EVENT_DEVICE_FATAL };

	switch (take_byte() & 3) {
	case 0:
		pvr_async_event(fake.ibctx, &event);
		return;
	case 1:
		event.event_type = IBV_EVENT_CQ_ERR;
		event.element.cq = cq ? ibcq(cq) : NULL;
		if (cq)
			pvr_async_event(fake.ibctx, &event);
		return;
	default:
		if (cq)
			pvr_cq_event(ibcq(cq));
	}
}

/* ------------------------------------------------------------------------ the device */

static struct pvr_ring_shm *take_ring(void)
{
	unsigned int i = take_index();

	switch (take_byte() & 3) {
	case 0:
		return w.cqs[i] ? w.cqs[i]->ring_shm : NULL;
	case 1:
		return w.qps[i] ? fake_sq(w.qps[i])->ring_shm : NULL;
	case 2:
		return w.qps[i] ? fake_rq(w.qps[i])->ring_shm : NULL;
	default:
		return w.srqs[i] ? to_pvr_srq(w.srqs[i])->wq.ring_shm : NULL;
	}
}

static void set_index(void)
{
	struct pvr_ring_shm *ring = take_ring();
	uint8_t how = take_byte();
	uint32_t index = how & 2 ? take_word() : take_byte();

	if (ring && how & 1)
		ring->prod_tail = index;
	else if (ring)
		ring->cons_head = index;
}

/* A regular device advances the index, too. A wr_id is a number of a send, or any. */
static void write_cqe(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];
	struct pvr_cqe cqe = { .qp = take_byte(), .opcode = take_byte(), .status = take_byte() };
	uint8_t rest = take_byte();

	cqe.wc_flags = rest;
	cqe.wr_id = rest & 0x80 ? take_word() : rest & 15u;
	if (cq)
		fake_write_cqe(ibcq(cq), &cqe);
}

static void write_ring(void)
{
	struct pvr_cq *cq = w.cqs[take_index()];
	uint32_t at = take_word();
	uint8_t bytes[32];

	take(bytes, sizeof(bytes));
	if (cq)
		memcpy((uint8_t *)cq->buf.addr + at % (cq->buf.size - sizeof(bytes)), bytes,
		       sizeof(bytes));
}

static void set_answer(void)
{
	uint8_t how = take_byte();

	switch (how & 3) {
	case 0:
		fake.fail = take_byte() & 1 ? EIO : 0;
		break;
	case 1:
		fake.next_handle = take_byte();
		break;
	case 2:
		fake.next_handle = take_word();
		break;
	default:
		if (write(fake.async[1], "e", 1) < 0)
			die("cannot write an event");
	}
}

static void run_op(enum op op)
{
	switch (op) {
	case OP_CREATE_CQ:
		create_cq();
		break;
	case OP_CREATE_SRQ:
		create_srq();
		break;
	case OP_CREATE_QP:
		create_qp();
		break;
	case OP_DESTROY_CQ:
		destroy_cq(take_index());
		break;
	case OP_DESTROY_SRQ:
		destroy_srq(take_index());
		break;
	case OP_DESTROY_QP:
		destroy_qp(take_index());
		break;
	case OP_RESET_QP:
		reset_qp();
		break;
	case OP_RESIZE_CQ:
		resize_cq();
		break;
	case OP_RESIZE_SRQ:
		resize_srq();
		break;
	case OP_POLL:
		poll_cq();
		break;
	case OP_LAZY_START:
		lazy_start();
		break;
	case OP_LAZY_NEXT:
		lazy_next();
		break;
	case OP_LAZY_END:
		lazy_end();
		break;
	case OP_SEND:
		send();
		break;
	case OP_SEND_EX:
		send_ex();
		break;
	case OP_RECV:
	case OP_SRQ_RECV:
		recv(op == OP_SRQ_RECV);
		break;
	case OP_ARM:
		arm();
		break;
	case OP_EVENT:
		event();
		break;
	case OP_SET_INDEX:
		set_index();
		break;
	case OP_WRITE_CQE:
		write_cqe();
		break;
	case OP_WRITE_RING:
		write_ring();
		break;
	default:
		set_answer();
	}
}

static void finish(void)
{
	lazy_end();
	fake.fail = 0;
	for (unsigned int i = 0; i < OBJECTS; i++)
		destroy_qp(i);
	for (unsigned int i = 0; i < OBJECTS; i++) {
		destroy_srq(i);
		destroy_cq(i);
	}
	fake_teardown(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&w, 0, sizeof(w));
	w.data = data;
	w.left = size;
	if (fake_setup(NULL))
		die("cannot set the context up");
	fake.ctx.features = take_word() & FEATURES;
	w.cqs[0] = to_pvr_cq(FAKE_CQ_EX(.cqe = 8, .wc_flags = all_fields())
				     ? fake.cqs.object[fake.cqs.num - 1]
				     : NULL);
	w.cqs[1] = to_pvr_cq(FAKE_CQ_EX(.cqe = 4, .wc_flags = all_fields())
				     ? fake.cqs.object[fake.cqs.num - 1]
				     : NULL);
	for (int i = 0; i < OPS_MAX && w.left; i++)
		run_op(take_byte() % OP_NUM);
	finish();
	return 0;
}
