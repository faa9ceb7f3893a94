// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <errno.h>

#include "fake_kernel.h"

static void complete(struct ibv_cq *cq, uint32_t handle, uint64_t wr_id)
{
	struct pvrdma_cqe cqe = { .wr_id = wr_id, .qp = handle };

	fake_complete(cq, &cqe);
}

static uint32_t handle_of(struct ibv_qp *qp)
{
	return to_pvr_qp(qp)->handle;
}

TEST(fake, test_poll_translates)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_UD, 1, 1, 1, 1);
	struct pvrdma_cqe cqe = {
		.wr_id = 99,
		.qp = 0xffff0000u | handle_of(qp),
		.opcode = PVRDMA_WC_RECV,
		.status = PVRDMA_WC_SUCCESS,
		.byte_len = 1234,
		.imm_data = htonl(5),
		.src_qp = 17,
		.wc_flags = PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM | PVRDMA_WC_WITH_INVALIDATE |
			    PVRDMA_WC_WITH_NETWORK_HDR_TYPE,
		.vendor_err = 3,
		.pkey_index = 4,
		.slid = 5,
		.sl = 6,
		.dlid_path_bits = 7,
	};
	struct ibv_wc wc;

	fake_complete(fake.recv_cq, &cqe);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 99);
	assert_int_equal(wc.qp_num, qp->qp_num);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 1234);
	assert_int_equal(wc.imm_data, htonl(5));
	assert_int_equal(wc.src_qp, 17);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
	assert_int_equal(wc.vendor_err, 3);
	assert_int_equal(wc.pkey_index, 4);
	assert_int_equal(wc.slid, 5);
	assert_int_equal(wc.sl, 6);
	assert_int_equal(wc.dlid_path_bits, 7);
	assert_int_equal(to_pvr_cq(fake.recv_cq)->ring_shm->cons_head, 1);
}

TEST(fake, test_poll_maps_opcodes)
{
	static const struct {
		uint32_t pvr;
		enum ibv_wc_opcode ibv;
	} map[] = {
		{ PVRDMA_WC_SEND, IBV_WC_SEND },
		{ PVRDMA_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE },
		{ PVRDMA_WC_RDMA_READ, IBV_WC_RDMA_READ },
		{ PVRDMA_WC_COMP_SWAP, IBV_WC_COMP_SWAP },
		{ PVRDMA_WC_FETCH_ADD, IBV_WC_FETCH_ADD },
		{ PVRDMA_WC_BIND_MW, IBV_WC_BIND_MW },
		{ PVRDMA_WC_LSO, IBV_WC_TSO },
		{ PVRDMA_WC_LOCAL_INV, IBV_WC_LOCAL_INV },
		{ PVRDMA_WC_RECV, IBV_WC_RECV },
		{ PVRDMA_WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM },
		{ 0xffffffff, IBV_WC_SEND },
	};
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(map); i++) {
		struct pvrdma_cqe cqe = { .qp = handle_of(qp), .opcode = map[i].pvr };

		fake_complete(fake.send_cq, &cqe);
		assert_int_equal(pvr_poll_cq(fake.send_cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, map[i].ibv);
	}
}

TEST(fake, test_poll_maps_an_unknown_status_to_a_general_error)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct pvrdma_cqe cqe = { .qp = handle_of(qp), .status = 1000 };
	struct ibv_wc wc;

	fake_complete(fake.send_cq, &cqe);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_GENERAL_ERR);
}

TEST(fake, test_empty_poll_rings_without_the_extension)
{
	struct ibv_wc wc;

	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, &wc), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET),
			 PVR_DB_CQ_POLL | to_pvr_cq(fake.send_cq)->handle);
}

TEST(fake, test_empty_poll_is_silent_with_the_extension)
{
	struct ibv_wc wc;

	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, &wc), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), 0);
}

TEST(fake, test_poll_passes_over_unknown_qps)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_wc wcs[4];

	complete(fake.send_cq, FAKE_QP_TBL_SIZE - 1, 1);
	complete(fake.send_cq, 0xffff, 2);
	complete(fake.send_cq, handle_of(qp), 3);
	complete(fake.send_cq, 0, 4);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 4, wcs), 1);
	assert_int_equal(wcs[0].wr_id, 3);
	assert_int_equal(to_pvr_cq(fake.send_cq)->ring_shm->cons_head, 4);
}

TEST(fake, test_poll_wraps)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_wc wcs[8];
	uint64_t next = 0, id = 0;
	int round, i, num;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < 5; i++)
			complete(fake.send_cq, handle_of(qp), id++);
		num = pvr_poll_cq(fake.send_cq, 8, wcs);
		assert_int_equal(num, 5);
		for (i = 0; i < num; i++)
			assert_int_equal(wcs[i].wr_id, next++);
	}
}

TEST(fake, test_poll_takes_a_full_ring)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_wc wcs[16];
	int i;

	for (i = 0; i < 8; i++)
		complete(fake.send_cq, handle_of(qp), i);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 16, wcs), 8);
	assert_int_equal(wcs[7].wr_id, 7);
}

TEST(fake, test_poll_refuses_an_impossible_index)
{
	struct ibv_wc wc;

	to_pvr_cq(fake.send_cq)->ring_shm->prod_tail = 9;
	assert_true(pvr_poll_cq(fake.send_cq, 1, &wc) < 0);
	to_pvr_cq(fake.send_cq)->ring_shm->prod_tail = 0x12345678;
	assert_true(pvr_poll_cq(fake.send_cq, 1, &wc) < 0);
}

TEST(fake, test_notify_arms)
{
	uint32_t handle = to_pvr_cq(fake.send_cq)->handle;

	assert_int_equal(pvr_req_notify_cq(fake.send_cq, 0), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), PVR_DB_CQ_ARM | handle);
	assert_int_equal(pvr_req_notify_cq(fake.send_cq, 1), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), PVR_DB_CQ_ARM_SOL | handle);
}

/* Starts at the given index, so that the moved CQEs wrap. */
static void purge_from(uint32_t start, int (*kill)(struct ibv_qp *))
{
	struct ibv_qp *kept = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_qp *dead = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	static const bool of_dead[] = { true, false, true, true, false, false, true };
	struct pvr_cq *cq = to_pvr_cq(fake.send_cq);
	struct ibv_wc wcs[8];
	int i, num;

	cq->head = start;
	cq->ring_shm->prod_tail = start;
	cq->ring_shm->cons_head = start;
	for (i = 0; i < 7; i++)
		complete(fake.send_cq, handle_of(of_dead[i] ? dead : kept), i);
	assert_int_equal(kill(dead), 0);
	num = pvr_poll_cq(fake.send_cq, 8, wcs);
	assert_int_equal(num, 3);
	assert_int_equal(wcs[0].wr_id, 1);
	assert_int_equal(wcs[1].wr_id, 4);
	assert_int_equal(wcs[2].wr_id, 5);
	assert_int_equal(cq->ring_shm->cons_head, cq->ring_shm->prod_tail);
}

TEST(fake, test_destroy_qp_purges_its_completions)
{
	purge_from(12, pvr_destroy_qp);
}

static int reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return pvr_modify_qp(qp, &attr, IBV_QP_STATE);
}

TEST(fake, test_reset_purges_its_completions)
{
	purge_from(5, reset);
}

TEST(fake, test_reset_empties_the_queues)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 2, 1, 2, 1);
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct pvr_qp *pqp = to_pvr_qp(qp);

	assert_int_equal(pvr_post_send(qp, &send, &bad_send), 0);
	assert_int_equal(pvr_post_recv(qp, &recv, &bad_recv), 0);
	fake_consume(&pqp->sq, 1);
	assert_int_equal(reset(qp), 0);
	assert_int_equal(pqp->sq.tail | pqp->sq.ring_shm->prod_tail, 0);
	assert_int_equal(pqp->sq.ring_shm->cons_head, 0);
	assert_int_equal(pqp->rq.tail | pqp->rq.ring_shm->prod_tail, 0);
	assert_int_equal(pqp->rq.ring_shm->cons_head, 0);
}

TEST(fake, test_failed_destroy_keeps_the_qp)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_wc wc;

	complete(fake.send_cq, handle_of(qp), 1);
	fake.fail = EBUSY;
	assert_int_equal(pvr_destroy_qp(qp), EBUSY);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, &wc), 1);
}

TEST(fake, test_create_cq_rounds_up)
{
	assert_int_equal(fake.recv_cq->cqe, 8);
	assert_fails(pvr_create_cq(&fake.ctx.ibv_ctx.context, 0, NULL, 0), EINVAL);
	assert_fails(pvr_create_cq(&fake.ctx.ibv_ctx.context, 0x7fffffff, NULL, 0), EINVAL);
}
