// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>

#include "fake_kernel.h"

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8 },
	};

	return fake_create_qp(&attr);
}

static void cq_begin(void)
{
	cq = fake.send_cq;
	qp = create_qp();
	assert_non_null(qp);
}

static void complete(uint32_t handle, uint64_t wr_id)
{
	FAKE_COMPLETE(cq, .qp = handle, .wr_id = wr_id);
}

TEST(cq, test_poll_translates_each_field)
{
	struct ibv_wc wc;

	FAKE_COMPLETE(cq, .wr_id = 99, .qp = 0xffff0000u | fake_handle(qp),
		      .opcode = PVRDMA_WC_RECV, .status = PVRDMA_WC_SUCCESS, .byte_len = 1234,
		      .imm_data = htonl(5), .src_qp = 17,
		      .wc_flags = PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM | PVRDMA_WC_WITH_INVALIDATE |
				  PVRDMA_WC_WITH_NETWORK_HDR_TYPE,
		      .vendor_err = 3, .pkey_index = 4, .slid = 5, .sl = 6, .dlid_path_bits = 7);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
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
	assert_int_equal(to_pvr_cq(cq)->ring_shm->cons_head, 1);
}

static const struct {
	const char *label;
	uint32_t opcode, status; /* of the CQE */
	enum ibv_wc_opcode wc_opcode;
	enum ibv_wc_status wc_status;
} cqes[] = {
	{ "SEND", PVRDMA_WC_SEND, 0, IBV_WC_SEND },
	{ "WRITE", PVRDMA_WC_RDMA_WRITE, 0, IBV_WC_RDMA_WRITE },
	{ "READ", PVRDMA_WC_RDMA_READ, 0, IBV_WC_RDMA_READ },
	{ "CMP_SWAP", PVRDMA_WC_COMP_SWAP, 0, IBV_WC_COMP_SWAP },
	{ "FETCH_ADD", PVRDMA_WC_FETCH_ADD, 0, IBV_WC_FETCH_ADD },
	{ "BIND_MW", PVRDMA_WC_BIND_MW, 0, IBV_WC_BIND_MW },
	{ "LSO", PVRDMA_WC_LSO, 0, IBV_WC_TSO },
	{ "LOCAL_INV", PVRDMA_WC_LOCAL_INV, 0, IBV_WC_LOCAL_INV },
	{ "ATOMIC_WRITE", PVR_WC_ATOMIC_WRITE, 0, IBV_WC_ATOMIC_WRITE },
	{ "FLUSH", PVR_WC_FLUSH, 0, IBV_WC_FLUSH },
	{ "RECV", PVRDMA_WC_RECV, 0, IBV_WC_RECV },
	{ "WRITE received", PVRDMA_WC_RECV_RDMA_WITH_IMM, 0, IBV_WC_RECV_RDMA_WITH_IMM },
	{ "unknown opcode", 0xffffffff, 0, IBV_WC_SEND },
	{ "unknown status", PVRDMA_WC_SEND, 1000, IBV_WC_SEND, IBV_WC_GENERAL_ERR },
};

TEST(cq, test_moderation_is_the_kernels)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 7, .cq_period = 900 },
	};

	assert_int_equal(pvr_modify_cq(cq, &attr), 0);
	assert_memory_equal(&fake.modified_cq, &attr, sizeof(attr));
	fake.fail = EOPNOTSUPP;
	assert_int_equal(pvr_modify_cq(cq, &attr), EOPNOTSUPP);
}

TEST_CASES(cq, test_poll_translates_opcode_and_status, cqes)
{
	struct ibv_wc wc;

	FAKE_COMPLETE(cq, .qp = fake_handle(qp), .opcode = row->opcode, .status = row->status);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.opcode, row->wc_opcode);
	assert_int_equal(wc.status, row->wc_status);
}

/* Only of datagrams, which have a GRH. */
static const struct {
	const char *label;
	uint32_t wc_flags;
	uint8_t type; /* of the network */
	uint8_t sl, wc_sl; /* of the CQE; expected */
} packets[] = {
	{ "RoCE v2 over IPv4", PVRDMA_WC_GRH, PVRDMA_NETWORK_IPV4, 0, 8 | 2 },
	{ "RoCE v2 over IPv6", PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM, PVRDMA_NETWORK_IPV6, 0, 8 | 1 },
	{ "RoCE v1", PVRDMA_WC_GRH, PVRDMA_NETWORK_ROCE_V1, 0, 0 },
	{ "unknown network", PVRDMA_WC_GRH, 200, 5, 5 },
	{ "no datagram", 0, PVRDMA_NETWORK_IPV4, 6, 6 },
	{ "no datagram, immediate data", PVRDMA_WC_WITH_IMM, PVRDMA_NETWORK_IPV4, 6, 6 },
};

TEST_CASES(cq, test_service_level_has_the_packet_type, packets)
{
	struct ibv_poll_cq_attr no_attr = {};
	struct ibv_cq_ex *ex = FAKE_CQ_EX(.cqe = 8, .wc_flags = IBV_WC_EX_WITH_SL);
	struct ibv_wc wc;
	int i;

	cq = ibv_cq_ex_to_cq(ex);
	qp = create_qp();
	for (i = 0; i < 2; i++)
		FAKE_COMPLETE(cq, .qp = fake_handle(qp), .opcode = PVRDMA_WC_RECV,
			      .wc_flags = row->wc_flags, .network_hdr_type = row->type,
			      .sl = row->sl);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.sl, row->wc_sl);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ibv_wc_read_sl(ex), row->wc_sl);
	ibv_end_poll(ex);
}

TEST(cq, test_empty_poll_rings_unless_there_is_the_extension)
{
	struct ibv_wc wc;

	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), PVR_DB_CQ_POLL | to_pvr_cq(cq)->handle);
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), 0);
}

TEST(cq, test_poll_skips_cqes_of_unknown_qps)
{
	struct ibv_wc wcs[4];

	complete(FAKE_QP_TBL_SIZE - 1, 1);
	complete(0xffff, 2);
	complete(fake_handle(qp), 3);
	complete(0, 4);
	assert_int_equal(pvr_poll_cq(cq, 4, wcs), 1);
	assert_int_equal(wcs[0].wr_id, 3);
	assert_int_equal(to_pvr_cq(cq)->ring_shm->cons_head, 4);
}

TEST(cq, test_poll_wraps)
{
	struct ibv_wc wcs[8];
	uint64_t next = 0, id = 0;
	int round, i;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < 5; i++)
			complete(fake_handle(qp), id++);
		assert_int_equal(pvr_poll_cq(cq, 8, wcs), 5);
		for (i = 0; i < 5; i++)
			assert_int_equal(wcs[i].wr_id, next++);
	}
}

TEST(cq, test_poll_empties_a_full_ring)
{
	struct ibv_wc wcs[16];
	int i;

	for (i = 0; i < 8; i++)
		complete(fake_handle(qp), i);
	assert_int_equal(pvr_poll_cq(cq, 16, wcs), 8);
	assert_int_equal(wcs[7].wr_id, 7);
}

TEST(cq, test_poll_refuses_an_impossible_index)
{
	struct ibv_wc wc;

	to_pvr_cq(cq)->ring_shm->prod_tail = 9;
	assert_true(pvr_poll_cq(cq, 1, &wc) < 0);
	to_pvr_cq(cq)->ring_shm->prod_tail = 0x12345678;
	assert_true(pvr_poll_cq(cq, 1, &wc) < 0);
}

/* The ring starts at an index from which the moved CQEs wrap. */
static const struct {
	const char *label;
	uint32_t start;
	int (*end)(struct ibv_qp *qp);
} ends[] = {
	{ "destroy", 12, pvr_destroy_qp },
	{ "reset", 5, fake_reset_qp },
};

TEST_CASES(cq, test_end_of_a_qp_purges_its_completions, ends)
{
	static const bool of_ended[] = { true, false, true, true, false, false, true };
	struct ibv_qp *ended = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);
	struct ibv_wc wcs[8];
	int i;

	fake_start_at(cq, row->start);
	for (i = 0; i < 7; i++)
		complete(fake_handle(of_ended[i] ? ended : qp), i);
	assert_int_equal(row->end(ended), 0);
	assert_int_equal(pvr_poll_cq(cq, 8, wcs), 3);
	assert_int_equal(wcs[0].wr_id, 1);
	assert_int_equal(wcs[1].wr_id, 4);
	assert_int_equal(wcs[2].wr_id, 5);
	assert_int_equal(to_pvr_cq(cq)->ring_shm->cons_head, to_pvr_cq(cq)->ring_shm->prod_tail);
}

TEST(cq, test_reset_empties_the_queues)
{
	struct pvr_wq *sq = fake_sq(qp), *rq = fake_rq(qp);

	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
	FAKE_RECV(qp, 0);
	fake_consume(sq, 1);
	assert_int_equal(fake_reset_qp(qp), 0);
	assert_int_equal(sq->tail | sq->ring_shm->prod_tail | sq->ring_shm->cons_head, 0);
	assert_int_equal(rq->tail | rq->ring_shm->prod_tail | rq->ring_shm->cons_head, 0);
}

TEST(cq, test_failed_destroy_keeps_the_qp)
{
	struct ibv_wc wc;

	complete(fake_handle(qp), 1);
	fake.fail = EBUSY;
	assert_int_equal(pvr_destroy_qp(qp), EBUSY);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
}

TEST(cq, test_create_cq_rounds_up_and_refuses_other_sizes)
{
	assert_int_equal(fake.recv_cq->cqe, 8);
	assert_fails(pvr_create_cq(fake.ibctx, 0, NULL, 0), EINVAL);
	assert_fails(pvr_create_cq(fake.ibctx, 0x7fffffff, NULL, 0), EINVAL);
}
