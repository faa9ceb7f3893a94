// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting by kernel consumers, compiled for user space with the fuzzer's kernel. */
#include "pvrdma.h"
#include "srq_wq.h"
#include "test.h"
#include "wq.h"

#define N 16 /* requests of a queue */
#define SRQ_HANDLE 5
#define QP_HANDLE 7
#define STRIDE PVR_SQ_STRIDE_MIN

static struct {
	struct pvr_dev dev;
	struct pvr_qp qp;
	struct pvr_srq srq;
	struct pvr_ring_state qp_shm, srq_shm;
	u32 suppress; /* doorbell suppression of each queue */
	u8 uar[PAGE_SIZE];
	u64 elements[PAGE_SIZE / 8]; /* aligned as WQEs are */
	u32 rung[4], doorbells; /* doorbells, and their values */
	u32 deaths;
} w;

/* ------------------------------------------------------------------ kernel and device */

void *pvr_pdir_at(const struct pvr_pdir *pdir, size_t offset)
{
	(void)pdir;
	return (u8 *)w.elements + offset % PAGE_SIZE;
}

/* A trapped write takes long: no lock is held, and so interrupts are on. */
void writel(u32 value, void *reg)
{
	(void)reg;
	assert_false(w.qp.sq.lock.held);
	assert_false(w.qp.rq.lock.held);
	assert_false(w.srq.wq.lock.held);
	assert_in_range(w.doorbells, 0, ARRAY_SIZE(w.rung) - 1);
	w.rung[w.doorbells++] = value;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)why;
	w.deaths++;
	test_and_set_bit(PVR_DEV_DEAD, &dev->flags);
}

/* ------------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.uar = w.uar;
	w.qp.ibqp.device = &w.dev.ibdev;
	w.qp.ibqp.qp_type = IB_QPT_RC;
	w.qp.handle = QP_HANDLE;
	w.qp.state = IB_QPS_RTS;
	w.srq.ibsrq.device = &w.dev.ibdev;
	w.srq.handle = SRQ_HANDLE;
	return pvr_wq_init(&w.qp.sq, &w.qp_shm.tx, N, 1, STRIDE, 0) ||
	       pvr_wq_init(&w.qp.rq, &w.qp_shm.rx, N, 1, STRIDE, 0) ||
	       pvr_srq_wq_init(&w.srq.wq, &w.srq_shm.rx, N, 1, STRIDE);
}

static int tear_down(void **state)
{
	(void)state;
	pvr_wq_exit(&w.qp.sq);
	pvr_wq_exit(&w.qp.rq);
	pvr_srq_wq_exit(&w.srq.wq);
	return 0;
}

#define TEST_POST(name) TEST_SETUP(set_up, tear_down, name)

/* Post @n requests by one call; a request with too many SGEs ends the list if @bad. */
static int post_sends(u32 n, bool bad)
{
	struct ib_send_wr wr[N] = {};
	const struct ib_send_wr *bad_wr = NULL;
	int err;

	for (u32 i = 0; i < n; i++) {
		wr[i].opcode = IB_WR_SEND;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	wr[n - 1].num_sge = bad ? 100 : 0;
	err = pvr_post_send(&w.qp.ibqp, wr, &bad_wr);
	assert_ptr_equal(bad_wr, err ? &wr[n - 1] : NULL);
	return err;
}

static int post_recvs(u32 n, bool srq)
{
	struct ib_recv_wr wr[N] = {};
	const struct ib_recv_wr *bad_wr;

	for (u32 i = 0; i + 1 < n; i++)
		wr[i].next = &wr[i + 1];
	return srq ? pvr_post_srq_recv(&w.srq.ibsrq, wr, &bad_wr)
		   : pvr_post_recv(&w.qp.ibqp, wr, &bad_wr);
}

static void expect_rung(u32 value)
{
	assert_int_equal(w.doorbells, 1);
	assert_int_equal(w.rung[0], value);
	w.doorbells = 0;
}

TEST_POST(test_a_call_rings_once_without_a_lock)
{
	assert_int_equal(post_sends(N / 2, false), 0);
	expect_rung(QP_HANDLE | PVR_DB_QP_SEND);
	assert_int_equal(w.qp_shm.tx.prod_tail, N / 2);
	assert_int_equal(post_recvs(N / 2, false), 0);
	expect_rung(QP_HANDLE | PVR_DB_QP_RECV);
	assert_int_equal(post_recvs(N / 2, true), 0);
	expect_rung(SRQ_HANDLE | PVR_DB_SRQ_RECV);
}

TEST_POST(test_requests_before_a_bad_one_are_rung)
{
	assert_int_equal(post_sends(3, true), -EINVAL);
	expect_rung(QP_HANDLE | PVR_DB_QP_SEND);
	assert_int_equal(w.qp_shm.tx.prod_tail, 2);
	assert_int_equal(post_sends(1, true), -EINVAL);
	assert_int_equal(w.doorbells, 0);
}

TEST_POST(test_no_doorbell_while_the_device_polls)
{
	w.qp.sq.db_suppress_shm = &w.suppress;
	w.qp.rq.db_suppress_shm = &w.suppress;
	w.srq.wq.db_suppress_shm = &w.suppress;
	w.suppress = 1;
	assert_int_equal(post_sends(1, false), 0);
	assert_int_equal(post_recvs(1, false), 0);
	assert_int_equal(post_recvs(1, true), 0);
	assert_int_equal(w.doorbells, 0);
	w.suppress = 0;
	assert_int_equal(post_recvs(1, true), 0);
	expect_rung(SRQ_HANDLE | PVR_DB_SRQ_RECV);
}

TEST_POST(test_requests_to_a_dead_device_are_flushed)
{
	w.dev.flags = BIT(PVR_DEV_DEAD);
	assert_int_equal(post_sends(1, false), 0);
	assert_true(w.dev.flush_work.queued);
	assert_int_equal(post_recvs(1, true), 0);
	assert_int_equal(w.doorbells, 0);
}

TEST_POST(test_impossible_index_is_a_failure)
{
	w.qp_shm.tx.cons_head = 0xdeadbeef;
	assert_int_equal(post_sends(1, false), 0);
	assert_int_equal(w.deaths, 1);
	assert_true(w.dev.flush_work.queued);
	assert_int_equal(w.doorbells, 0);
}
