// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>

#include "fake_kernel.h"

static struct ibv_qp *qp;

static void rc_begin(void)
{
	qp = fake_qp(IBV_QPT_RC, 4, 3, 2, 2);
}

TEST(fake, test_queues_have_the_strides_of_the_abi)
{
	struct pvr_qp *pqp = to_pvr_qp(fake_qp(IBV_QPT_RC, 5, 4, 3, 2));

	assert_int_equal(pqp->sq.num, 8);
	assert_int_equal(pqp->sq.stride, 256);
	assert_int_equal(pqp->rq.num, 4);
	assert_int_equal(pqp->rq.stride, 64);
	assert_int_equal(pqp->send_size, 2 * 4096);
	/* The receive queue follows in the same piece. */
	assert_int_equal(pqp->buf.size, 3 * 4096);
	assert_ptr_equal(pqp->rq.wqes, (uint8_t *)pqp->buf.addr + pqp->send_size);
	assert_int_equal((uintptr_t)pqp->buf.addr % 4096, 0);
}

TEST(fake, test_create_qp_returns_the_real_sizes)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 5, .max_inline_data = 64 } };

	assert_non_null(fake_create_qp(&attr));
	assert_int_equal(attr.cap.max_send_wr, 8);
	assert_int_equal(attr.cap.max_send_sge, 1);
	assert_int_equal(attr.cap.max_recv_wr, 1);
	assert_int_equal(attr.cap.max_inline_data, 0);
}

TEST(rc, test_send_writes_the_element)
{
	FAKE_SEND(qp, 0, .wr_id = 0x1122334455667788, FAKE_SGES(2),
		  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE, .imm_data = htonl(0xabcd),
		  .wr.rdma = { .remote_addr = 0x7777000, .rkey = 0x99 });
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .wr_id = 0x1122334455667788, .num_sge = 2,
			.opcode = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = PVR_SEND_SIGNALED | PVR_SEND_FENCE,
			.ex.imm_data = htonl(0xabcd),
			.wr.rdma = { .remote_addr = 0x7777000, .rkey = 0x99 });
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 1);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
}

TEST(rc, test_send_overwrites_the_former_request_of_the_slot)
{
	memset(fake_send_wqe(qp, 0), 0xff, sizeof(struct pvr_sq_wqe));
	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
	FAKE_EXPECT_WQE(qp, 0, NULL, .opcode = PVRDMA_WR_SEND);
}

TEST(rc, test_send_writes_an_atomic)
{
	FAKE_SEND(qp, 0, FAKE_SGES(1), .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		  .wr.atomic = { .remote_addr = 8, .compare_add = 1, .swap = 2, .rkey = 3 });
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .opcode = PVRDMA_WR_ATOMIC_CMP_AND_SWP, .num_sge = 1,
			.wr.atomic = { .remote_addr = 8, .compare_add = 1, .swap = 2, .rkey = 3 });
}

TEST(fake, test_send_writes_a_datagram)
{
	struct pvr_ah ah = { .av = { .gid_index = 5, .port_pd = 0x01000002 } };

	qp = fake_qp(IBV_QPT_UD, 1, 1, 1, 1);
	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND,
		  .wr.ud = { &ah.ibv_ah, .remote_qpn = 0x17, .remote_qkey = 0x80000000 });
	FAKE_EXPECT_WQE(qp, 0, NULL, .opcode = PVRDMA_WR_SEND,
			.wr.ud = { .remote_qpn = 0x17, .remote_qkey = 0x80000000, .av = ah.av });
}

TEST(fake, test_send_of_a_list_rings_once_for_the_requests_that_fit)
{
	struct ibv_send_wr *bad = NULL, wrs[3] = {
		{ .opcode = IBV_WR_SEND, .next = &wrs[1] },
		{ .opcode = IBV_WR_SEND, .next = &wrs[2] },
		{ .opcode = IBV_WR_SEND },
	};

	qp = fake_qp(IBV_QPT_RC, 2, 1, 1, 1);
	assert_int_equal(pvr_post_send(qp, wrs, &bad), ENOMEM);
	assert_ptr_equal(bad, &wrs[2]);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 2);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
}

TEST(rc, test_send_wraps)
{
	struct pvr_wq *sq = fake_sq(qp);
	uint32_t i;

	for (i = 0; i < 50; i++) {
		FAKE_SEND(qp, 0, .wr_id = 1000 + i, .opcode = IBV_WR_SEND);
		assert_int_equal(fake_send_wqe(qp, i % 4)->wr_id, i);
		assert_int_equal(fake_send_wr_id(qp, i % 4), 1000 + i);
		assert_int_equal(sq->ring_shm->prod_tail, (i + 1) % 8);
		if (i >= 2)
			fake_consume(sq, 1);
	}
}

TEST(rc, test_send_does_not_need_the_index_of_the_device)
{
	fake_sq(qp)->ring_shm->cons_head = 0xdeadbeef;
	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
}

/* test_errno.c has the opcodes that UC refuses. */
static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
} on_uc[] = {
	{ "SEND", IBV_WR_SEND },
	{ "SEND with immediate", IBV_WR_SEND_WITH_IMM },
	{ "WRITE", IBV_WR_RDMA_WRITE },
	{ "WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM },
};

TEST_CASES(fake, test_uc_sends_and_writes, on_uc)
{
	fake.ctx.features = PVR_EXT_UC;
	FAKE_SEND(fake_qp(IBV_QPT_UC, 8, 1, 1, 1), 0, .opcode = row->opcode);
}

TEST(rc, test_send_in_error_is_posted_to_be_flushed)
{
	qp->state = IBV_QPS_ERR;
	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
}

TEST(rc, test_send_drops_the_inline_flag_of_an_empty_message)
{
	struct ibv_sge empty = { .addr = 5, .length = 0 };

	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .num_sge = 1,
		  .sg_list = &empty);
	FAKE_EXPECT_WQE(qp, 0, NULL, .opcode = PVRDMA_WR_SEND);
}

TEST(rc, test_recv_writes_the_element)
{
	struct pvr_rq_wqe *hdr = (void *)fake_rq(qp)->wqes;

	qp->state = IBV_QPS_INIT;
	FAKE_RECV(qp, 0, .wr_id = 7, FAKE_SGES(2));
	assert_int_equal(hdr->wr_id, 7);
	assert_int_equal(hdr->num_sge, 2);
	assert_memory_equal(hdr + 1, fake_sges, 2 * sizeof(fake_sges[0]));
	assert_int_equal(fake_rq(qp)->ring_shm->prod_tail, 1);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_RECV_RUNG(qp));
}

TEST(fake, test_srq_has_its_own_doorbell)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 3, .max_sge = 3 } };
	struct ibv_srq *srq = pvr_create_srq(fake.ibpd, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 4);
	FAKE_SRQ_RECV(srq, 0, FAKE_SGES(3));
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET), FAKE_SRQ_RUNG(srq));
	assert_int_equal(pvr_destroy_srq(srq), 0);
}

TEST(fake, test_recv_on_a_qp_with_srq_is_refused)
{
	struct ibv_qp_init_attr attr = { .srq = fake_srq(1, 1),
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_recv_wr = 9 } };
	qp = fake_create_qp(&attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	FAKE_RECV(qp, EINVAL);
}
