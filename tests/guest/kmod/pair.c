// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two QPs of one device that are connected to each other, with memory. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define WAIT_MS 10000

static void wr_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kt_wr *wr = container_of(wc->wr_cqe, struct kt_wr, cqe);

	wr->wc = *wc;
	wr->times++;
	complete(&wr->done);
}

static void wr_init(struct kt_wr *wr)
{
	memset(wr, 0, sizeof(*wr));
	wr->cqe.done = wr_done;
	init_completion(&wr->done);
}

static int wait_direct(struct ib_cq *cq, struct kt_wr *wr)
{
	unsigned long end = jiffies + msecs_to_jiffies(WAIT_MS);

	while (!try_wait_for_completion(&wr->done)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		if (!ib_process_cq_direct(cq, 8))
			msleep(1);
	}
	return 0;
}

int kt_wait(struct kt_pair *pair, struct kt_wr *wr)
{
	if (pair->cq->poll_ctx == IB_POLL_DIRECT)
		return wait_direct(pair->cq, wr);
	return wait_for_completion_timeout(&wr->done, msecs_to_jiffies(WAIT_MS)) ? 0 : -ETIMEDOUT;
}

static int mem_create(struct kt_dev *dev, struct kt_mem *mem)
{
	struct scatterlist *sg;
	int i;

	mem->va = vzalloc(KT_BYTES);
	KT_CHECK(mem->va);
	KT_CHECK(!sg_alloc_table(&mem->sgt, KT_PAGES, GFP_KERNEL));
	for_each_sg(mem->sgt.sgl, sg, KT_PAGES, i)
		sg_set_page(sg, vmalloc_to_page(mem->va + i * PAGE_SIZE), PAGE_SIZE, 0);
	mem->mapped = ib_dma_map_sg(dev->ibdev, mem->sgt.sgl, KT_PAGES, DMA_BIDIRECTIONAL);
	KT_CHECK(mem->mapped);
	return 0;
}

static void mem_destroy(struct kt_dev *dev, struct kt_mem *mem)
{
	if (mem->mapped)
		ib_dma_unmap_sg(dev->ibdev, mem->sgt.sgl, KT_PAGES, DMA_BIDIRECTIONAL);
	sg_free_table(&mem->sgt);
	vfree(mem->va);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct kt_pair *pair = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED && event->element.qp == pair->end[1].qp)
		atomic_inc(&pair->last_wqe_events);
}

static int qp_create(struct kt_pair *pair, struct kt_end *end, struct ib_srq *srq)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = pair,
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.srq = srq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = KT_WRS,
			 .max_recv_wr = srq ? 0 : KT_WRS,
			 .max_send_sge = 2,
			 .max_recv_sge = srq ? 0 : 2 },
	};

	end->qp = ib_create_qp(pair->dev->pd, &init);
	KT_CHECK(!IS_ERR(end->qp));
	return 0;
}

/* From RESET to RTS. */
static int connect(struct kt_dev *dev, struct ib_qp *qp, struct ib_qp *peer)
{
	static const struct {
		enum ib_qp_state state;
		int mask;
	} steps[] = {
		{ IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
		{ IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER },
		{ IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
				      IB_QP_MAX_QP_RD_ATOMIC },
	};
	struct ib_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	struct rdma_ah_attr *ah = &attr.ah_attr;
	int err = 0;

	ah->type = rdma_ah_find_type(dev->ibdev, 1);
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_grh(ah, &dev->gid, 0, dev->gid_index, 64, 0);
	memcpy(ah->roce.dmac, dev->mac, ETH_ALEN);
	for (int i = 0; i < ARRAY_SIZE(steps) && !err; i++) {
		attr.qp_state = steps[i].state;
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | steps[i].mask);
	}
	return err;
}

static void srq_event(struct ib_event *event, void *context)
{
	struct kt_pair *pair = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		atomic_inc(&pair->limit_events);
}

static int srq_create(struct kt_pair *pair)
{
	struct ib_srq_init_attr init = {
		.event_handler = srq_event,
		.srq_context = pair,
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = KT_WRS, .max_sge = 2 },
	};

	pair->srq = ib_create_srq(pair->dev->pd, &init);
	KT_CHECK(!IS_ERR(pair->srq));
	return 0;
}

static int end_create(struct kt_pair *pair, struct kt_end *end, struct ib_srq *srq)
{
	KT_CHECK(!mem_create(pair->dev, &end->mem));
	return qp_create(pair, end, srq);
}

void kt_qp_destroy(struct kt_end *end)
{
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	end->qp = NULL;
}

static void end_destroy(struct kt_pair *pair, struct kt_end *end)
{
	kt_qp_destroy(end);
	if (!IS_ERR_OR_NULL(end->mr))
		ib_dereg_mr(end->mr);
	mem_destroy(pair->dev, &end->mem);
}

int kt_pair_create(struct kt_pair *pair, const struct kt_need *need)
{
	struct kt_dev *dev = pair->dev;

	pair->cq = ib_alloc_cq(dev->ibdev, pair, 4 * KT_WRS, 0, need->poll);
	KT_CHECK(!IS_ERR(pair->cq));
	KT_CHECK(!need->srq || !srq_create(pair));
	KT_CHECK(!end_create(pair, &pair->end[0], NULL));
	KT_CHECK(!end_create(pair, &pair->end[1], pair->srq));
	KT_CHECK(!connect(dev, pair->end[0].qp, pair->end[1].qp));
	KT_CHECK(!connect(dev, pair->end[1].qp, pair->end[0].qp));
	return 0;
}

void kt_pair_destroy(struct kt_pair *pair)
{
	end_destroy(pair, &pair->end[0]);
	end_destroy(pair, &pair->end[1]);
	if (!IS_ERR_OR_NULL(pair->srq))
		ib_destroy_srq(pair->srq);
	if (!IS_ERR_OR_NULL(pair->cq))
		ib_free_cq(pair->cq);
	kfree(pair);
}

void *kt_small(struct kt_end *end, int n)
{
	return end->mem.va + n * KT_SLOT;
}

struct ib_sge kt_sge(struct kt_pair *pair, struct kt_end *end, int n)
{
	return (struct ib_sge){
		.addr = sg_dma_address(end->mem.sgt.sgl) + n * KT_SLOT,
		.length = KT_SLOT,
		.lkey = pair->dev->pd->local_dma_lkey,
	};
}

struct ib_recv_wr kt_recv_wr(struct kt_pair *pair, int n, struct kt_wr *wr)
{
	wr_init(wr);
	wr->sge = kt_sge(pair, &pair->end[1], n);
	return (struct ib_recv_wr){ .wr_cqe = &wr->cqe, .sg_list = &wr->sge, .num_sge = 1 };
}

int kt_post_recvs(struct kt_pair *pair, struct ib_recv_wr *first, const struct ib_recv_wr **bad)
{
	if (pair->srq)
		return ib_post_srq_recv(pair->srq, first, bad);
	return ib_post_recv(pair->end[1].qp, first, bad);
}

int kt_post_recv(struct kt_pair *pair, int n, struct kt_wr *wr)
{
	struct ib_recv_wr recv = kt_recv_wr(pair, n, wr);

	return kt_post_recvs(pair, &recv, NULL);
}

struct ib_send_wr kt_send_wr(struct kt_pair *pair, int n, struct kt_wr *wr)
{
	wr_init(wr);
	wr->sge = kt_sge(pair, &pair->end[0], n);
	return (struct ib_send_wr){
		.wr_cqe = &wr->cqe,
		.sg_list = &wr->sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
}

int kt_post_send(struct kt_pair *pair, int n, struct kt_wr *wr)
{
	struct ib_send_wr send = kt_send_wr(pair, n, wr);

	return ib_post_send(pair->end[0].qp, &send, NULL);
}

int kt_wait_ok(struct kt_pair *pair, struct kt_wr *wr)
{
	KT_CHECK(!kt_wait(pair, wr));
	KT_CHECK(wr->wc.status == IB_WC_SUCCESS);
	return 0;
}

int kt_run(struct kt_pair *pair, struct kt_end *end, struct ib_send_wr *wr)
{
	int err;

	wr_init(&pair->run);
	wr->wr_cqe = &pair->run.cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	err = ib_post_send(end->qp, wr, NULL);
	if (!err)
		err = kt_wait(pair, &pair->run);
	return err ?: pair->run.wc.status;
}
