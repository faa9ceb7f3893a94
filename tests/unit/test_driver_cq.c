// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completions of kernel consumers, as the driver reads them, in user space. */
#include "pvrdma.h"
#include "srq_wq.h"
#include "test.h"
#include "wq.h"

#define ENTRIES 8
#define HANDLE 3
#define POSTED 100 /* bytes of each request's buffers */

static struct {
	struct pci_dev pdev;
	struct pvr_dev dev;
	struct pvr_cq cq;
	struct pvr_qp qp;
	struct pvr_ring sq_ring, rq_ring;
} w;

unsigned long jiffies;

/* --------------------------------------------------- files of the driver that are not here */

void writel(u32 value, void *reg)
{
	(void)value;
	(void)reg;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)dev;
	(void)why;
	abort();
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	(void)dev;
	(void)req;
	(void)resp;
	abort();
}

int pvr_cmd_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle)
{
	(void)dev;
	(void)cmd;
	(void)handle;
	abort();
}

void pvr_keep(struct pvr_dev *dev, struct pvr_pdir *pdir, struct ib_umem **umem)
{
	(void)dev;
	(void)pdir;
	(void)umem;
	abort();
}

int pvr_handle_insert(struct pvr_dev *dev, struct xarray *table, u32 handle, void *obj)
{
	(void)dev;
	(void)table;
	(void)handle;
	(void)obj;
	abort();
}

int pvr_cq_buf_init(struct pvr_dev *dev, struct pvr_cq_buf *buf, u32 n, struct ib_udata *udata)
{
	(void)dev;
	(void)buf;
	(void)n;
	(void)udata;
	abort();
}

void pvr_cq_buf_exit(struct pvr_cq_buf *buf)
{
	(void)buf;
	abort();
}

u32 pvr_udata_ctx(struct ib_udata *udata)
{
	(void)udata;
	abort();
}

u32 pvr_udata_features(struct ib_udata *udata)
{
	(void)udata;
	abort();
}

int pvr_udata_out(struct ib_udata *udata, const void *src, size_t size)
{
	(void)udata;
	(void)src;
	(void)size;
	abort();
}

/* ------------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.features = PVR_EXT_NO_POLL_DB;
	w.dev.pdev = &w.pdev;
	pvr_page_cache_init(&w.dev.dir_pages, &w.pdev.dev);
	w.cq.ibcq.device = &w.dev.ibdev;
	w.cq.buf.n = ENTRIES;
	xa_init_flags(&w.cq.qps, XA_FLAGS_LOCK_IRQ);
	assert_int_equal(pvr_pdir_init(&w.cq.buf.pdir, &w.dev.dir_pages, 2, true), 0);
	w.cq.buf.ring_shm = pvr_pdir_at(&w.cq.buf.pdir, 0);
	w.qp.handle = HANDLE;
	w.qp.ibqp.device = &w.dev.ibdev;
	w.qp.ibqp.send_cq = &w.cq.ibcq;
	w.qp.ibqp.recv_cq = &w.cq.ibcq;
	assert_int_equal(pvr_wq_init(&w.qp.sq, &w.sq_ring, 4, 1, 128, 0), 0);
	assert_int_equal(pvr_wq_init(&w.qp.rq, &w.rq_ring, 4, 1, 64, 0), 0);
	return pvr_cq_attach(&w.cq, &w.qp);
}

static int tear_down(void **state)
{
	(void)state;
	pvr_wq_exit(&w.qp.rq);
	pvr_wq_exit(&w.qp.sq);
	pvr_pdir_exit(&w.cq.buf.pdir);
	pvr_page_cache_exit(&w.dev.dir_pages);
	return 0;
}

#define TEST_CQ(name) TEST_SETUP(set_up, tear_down, name)

/* The next request of a queue, completed by the device with this opcode and length. */
static struct ib_wc complete_one(struct pvr_wq *wq, u32 opcode, u32 byte_len)
{
	struct pvr_ring *ring = w.cq.buf.ring_shm;
	struct pvrdma_cqe cqe = {
		.wr_id = wq->tail | (wq == &w.qp.rq ? PVR_WQ_RECV : 0),
		.qp = HANDLE,
		.opcode = opcode,
		.byte_len = byte_len,
	};
	struct ib_wc wc;

	spin_lock(&wq->lock);
	pvr_wq_push(wq, 77, POSTED);
	spin_unlock(&wq->lock);
	memcpy(pvr_pdir_at(&w.cq.buf.pdir,
			   PVR_PAGE_SIZE + pvr_ring_slot(ring->prod_tail, ENTRIES) * sizeof(cqe)),
	       &cqe, sizeof(cqe));
	ring->prod_tail = pvr_ring_next(ring->prod_tail, ENTRIES);
	assert_int_equal(pvr_poll_cq(&w.cq.ibcq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 77);
	return wc;
}

TEST_CQ(test_receive_is_no_longer_than_its_buffers)
{
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, POSTED).byte_len, POSTED);
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, POSTED + 1).byte_len, POSTED);
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, U32_MAX).byte_len, POSTED);
}

TEST_CQ(test_datagram_is_no_shorter_than_its_grh)
{
	w.qp.ibqp.qp_type = IB_QPT_GSI;
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, 0).byte_len, sizeof(struct ib_grh));
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, POSTED).byte_len, POSTED);
	w.qp.ibqp.qp_type = IB_QPT_RC;
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV, 0).byte_len, 0);
}

TEST_CQ(test_read_is_no_longer_than_its_buffers)
{
	assert_int_equal(complete_one(&w.qp.sq, PVRDMA_WC_RDMA_READ, U32_MAX).byte_len, POSTED);
}

/* Its bytes are not in the buffers of the request. */
TEST_CQ(test_write_with_immediate_data_may_be_longer_than_the_buffers)
{
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV_RDMA_WITH_IMM, 4096).byte_len, 4096);
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV_RDMA_WITH_IMM, U32_MAX).byte_len,
			 BIT(31));
}

TEST_CQ(test_receive_has_the_opcode_of_a_receive)
{
	static const u32 wrong[] = { PVRDMA_WC_SEND, PVRDMA_WC_RDMA_READ, PVRDMA_WC_FAST_REG_MR,
				     200, U32_MAX };

	for (int i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(complete_one(&w.qp.rq, wrong[i], 0).opcode, IB_WC_RECV);
	assert_int_equal(complete_one(&w.qp.rq, PVRDMA_WC_RECV_RDMA_WITH_IMM, 0).opcode,
			 IB_WC_RECV_RDMA_WITH_IMM);
}

TEST_CQ(test_send_has_the_opcode_of_a_send)
{
	static const u32 wrong[] = { PVRDMA_WC_RECV, PVRDMA_WC_RECV_RDMA_WITH_IMM, 200 };

	for (int i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(complete_one(&w.qp.sq, wrong[i], 0).opcode, IB_WC_SEND);
	assert_int_equal(complete_one(&w.qp.sq, PVRDMA_WC_RDMA_READ, 0).opcode, IB_WC_RDMA_READ);
}
