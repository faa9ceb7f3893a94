// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: count_calls CASE COUNT
 *
 * For scripts/bench/provider: posts or polls COUNT times, and acts as the device in
 * between. Without arguments, prints the cases and the functions to count for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_kernel.h"

#define FEATURES                                                                            \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_INLINE | PVR_EXT_DB_SUPPRESS | PVR_EXT_CQ_ARM_DBREC | \
	 PVR_EXT_RESIZE)
#define RUN 16 /* CQEs per poll */

static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp, *other_qp;
static struct ibv_qp *srq_qp, *other_srq_qp;
static struct ibv_srq *srq;
static uint64_t data = 0x1122334455667788;
static struct ibv_sge sge = { .addr = (uintptr_t)&data, .length = sizeof(data), .lkey = 1 };

/* The device executes all posted requests. It polls, so no doorbell is needed. */
static void consume(struct pvr_wq *wq)
{
	wq->ring_shm->cons_head = wq->ring_shm->prod_tail;
	wq->polled = wq->tail;
}

/* Completions of a and b alternate. */
static void complete(struct ibv_qp *a, struct ibv_qp *b, uint32_t opcode, uint32_t n)
{
	while (n--)
		FAKE_COMPLETE(cq, .qp = fake_handle(n & 1 ? a : b), .opcode = opcode);
}

static void post_send(uint32_t flags)
{
	FAKE_SEND(qp, 0, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		  .send_flags = IBV_SEND_SIGNALED | flags,
		  .wr.rdma = { .remote_addr = 0x7777000, .rkey = 0x99 });
	consume(fake_sq(qp));
}

static void wr_write(uint32_t flags)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, 0x99, 0x7777000);
	if (flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qpx, &data, sizeof(data));
	else
		ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	if (ibv_wr_complete(qpx))
		abort();
	consume(fake_sq(qp));
}

static void post_recv(uint32_t arg)
{
	FAKE_RECV(qp, 0, .sg_list = &sge, .num_sge = 1);
	consume(fake_rq(qp));
}

static void post_srq_recv(uint32_t arg)
{
	FAKE_SRQ_RECV(srq, 0, .sg_list = &sge, .num_sge = 1);
	consume(&to_pvr_srq(srq)->wq);
}

static void poll(uint32_t n)
{
	struct ibv_wc wcs[RUN];

	if (pvr_poll_cq(cq, RUN, wcs) != (int)n)
		abort();
}

static void poll_cq(uint32_t n)
{
	complete(qp, qp, PVRDMA_WC_RDMA_WRITE, n);
	poll(n);
}

static void poll_cq_of_qps(uint32_t n)
{
	complete(qp, other_qp, PVRDMA_WC_RDMA_WRITE, n);
	poll(n);
}

static void poll_cq_of_srq(uint32_t n)
{
	complete(srq_qp, other_srq_qp, PVRDMA_WC_RECV, n);
	poll(n);
}

static void start_poll(uint32_t arg)
{
	struct ibv_poll_cq_attr attr = {};

	complete(qp, qp, PVRDMA_WC_RDMA_WRITE, 1);
	if (ibv_start_poll(cq_ex, &attr) || ibv_wc_read_opcode(cq_ex) != IBV_WC_RDMA_WRITE)
		abort();
	ibv_end_poll(cq_ex);
}

static void req_notify_cq(uint32_t arg)
{
	pvr_req_notify_cq(cq, 0);
}

static const struct {
	const char *name, *functions;
	void (*run)(uint32_t arg);
	uint32_t arg;
} cases[] = {
	{ "post_send", "pvr_post_send", post_send, 0 },
	{ "post_send.inline", "pvr_post_send", post_send, IBV_SEND_INLINE },
	{ "wr_write", "wr_start wr_rdma_write wr_set_sge wr_complete", wr_write, 0 },
	{ "wr_write.inline", "wr_start wr_rdma_write wr_set_inline_data wr_complete", wr_write,
	  IBV_SEND_INLINE },
	{ "post_recv", "pvr_post_recv", post_recv },
	{ "post_srq_recv", "pvr_post_srq_recv", post_srq_recv },
	{ "poll_cq.empty", "pvr_poll_cq", poll_cq, 0 },
	{ "poll_cq.1", "pvr_poll_cq", poll_cq, 1 },
	{ "poll_cq.16", "pvr_poll_cq", poll_cq, RUN },
	{ "poll_cq.16.qps", "pvr_poll_cq", poll_cq_of_qps, RUN },
	{ "poll_cq.16.srq", "pvr_poll_cq", poll_cq_of_srq, RUN },
	{ "start_poll", "start_locked end_locked read_opcode", start_poll },
	{ "req_notify_cq", "pvr_req_notify_cq", req_notify_cq },
};

/* The CQs of fake_setup() have no features. */
static void create(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_inline_data = 48 },
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	cq_ex = FAKE_CQ_EX(.cqe = 64);
	cq = ibv_cq_ex_to_cq(cq_ex);
	attr.send_cq = attr.recv_cq = cq;
	qp = fake_create_qp_ex(&attr);
	other_qp = fake_create_qp_ex(&attr);
	srq = attr.srq = fake_srq(64, 1);
	srq_qp = fake_create_qp_ex(&attr);
	other_srq_qp = fake_create_qp_ex(&attr);
	if (!cq || !qp || !other_qp || !srq_qp || !other_srq_qp)
		abort();
	*fake_db_suppress(&to_pvr_qp(qp)->buf) = (struct fake_db_suppress){ 1, 1 };
	fake_db_suppress(&to_pvr_srq(srq)->buf)->rq = 1;
}

static int run(const char *name, int count)
{
	size_t i;

	for (i = 0; i < COUNT(cases) && strcmp(cases[i].name, name); i++)
		;
	if (i == COUNT(cases) || fake_setup(NULL))
		return 1;
	fake.ctx.features = FEATURES;
	create();
	while (count--)
		cases[i].run(cases[i].arg);
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 3)
		return run(argv[1], atoi(argv[2]));
	for (i = 0; i < COUNT(cases); i++)
		printf("%s %s\n", cases[i].name, cases[i].functions);
	return 0;
}
