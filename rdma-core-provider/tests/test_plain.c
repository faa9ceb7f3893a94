// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The most common requests and completions, which post.c and cq_poll.c treat apart from the others. */
#include "fake_kernel.h"

#define REMOTE .wr.rdma = { .remote_addr = 0x7777777700000123, .rkey = 0x88888888 }

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static uint8_t data[64];

static struct ibv_qp *create_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 8, .max_inline_data = 48 },
	};
	struct ibv_qp *created = fake_create_qp(&attr);

	assert_non_null(created);
	return created;
}

static void plain_begin(void)
{
	size_t i;

	fake.ctx.features = PVR_EXT_INLINE | PVR_EXT_UC;
	cq = fake.send_cq;
	qp = create_qp(IBV_QPT_RC);
	for (i = 0; i < sizeof(data); i++)
		data[i] = 3 * i;
}

static void spoil(uint32_t slot)
{
	memset(fake_send_wqe(qp, slot), 0xff, fake_sq(qp)->stride);
}

/* ------------------------------------------------------------------ requests */

static const struct {
	const char *label;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	uint32_t flags, wqe_opcode;
	bool is_rdma;
} requests[] = {
	{ "WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, PVRDMA_WR_RDMA_WRITE, true },
	{ "READ", IBV_QPT_RC, IBV_WR_RDMA_READ, IBV_SEND_FENCE, PVRDMA_WR_RDMA_READ, true },
	{ "SEND", IBV_QPT_RC, IBV_WR_SEND, IBV_SEND_SOLICITED, PVRDMA_WR_SEND, false },
	{ "WRITE on UC", IBV_QPT_UC, IBV_WR_RDMA_WRITE, 7, PVRDMA_WR_RDMA_WRITE, true },
	{ "SEND on UC", IBV_QPT_UC, IBV_WR_SEND, 0, PVRDMA_WR_SEND, false },
};

TEST_CASES(plain, test_request_writes_the_whole_element, requests)
{
	struct pvr_sq_wqe expected = { .wr_id = 0x1122334455667788,
				       .num_sge = 1,
				       .opcode = row->wqe_opcode,
				       .send_flags = row->flags };
	uint32_t i;

	if (row->is_rdma)
		expected.wr = (typeof(expected.wr)){ .rdma = { 0x7777777700000123, 0x88888888 } };
	qp = create_qp(row->type);
	for (i = 0; i < 9; i++) {
		spoil(i % 4);
		FAKE_SEND(qp, 0, .wr_id = 0x1122334455667788, FAKE_SGES(1), .opcode = row->opcode,
			  .send_flags = row->flags, REMOTE);
		fake_expect_wqe(qp, i % 4, fake_sges, &expected);
		assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, (i + 1) % 8);
		assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
		fake_consume(fake_sq(qp), 1);
	}
}

static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
	uint32_t length, wqe_opcode;
} inlines[] = {
	{ "WRITE of 1 byte", IBV_WR_RDMA_WRITE, 1, PVRDMA_WR_RDMA_WRITE },
	{ "WRITE of 8 bytes", IBV_WR_RDMA_WRITE, 8, PVRDMA_WR_RDMA_WRITE },
	{ "WRITE of 48 bytes", IBV_WR_RDMA_WRITE, 48, PVRDMA_WR_RDMA_WRITE },
	{ "SEND of 8 bytes", IBV_WR_SEND, 8, PVRDMA_WR_SEND },
	{ "SEND of 13 bytes", IBV_WR_SEND, 13, PVRDMA_WR_SEND },
};

TEST_CASES(plain, test_inline_request_writes_the_whole_element, inlines)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = row->length, .lkey = 0xbad };
	struct pvr_sq_wqe expected = { .wr_id = 5,
				       .total_len = row->length,
				       .opcode = row->wqe_opcode,
				       .send_flags = PVR_SEND_INLINE | PVR_SEND_SIGNALED };
	const uint8_t *behind = (uint8_t *)(fake_send_wqe(qp, 0) + 1) + row->length;

	if (row->opcode == IBV_WR_RDMA_WRITE)
		expected.wr = (typeof(expected.wr)){ .rdma = { 0x7777777700000123, 0x88888888 } };
	spoil(0);
	spoil(1);
	FAKE_SEND(qp, 0, .wr_id = 5, .opcode = row->opcode, .num_sge = 1, .sg_list = &sge,
		  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED, REMOTE);
	fake_expect_wqe(qp, 0, NULL, &expected);
	assert_memory_equal(behind - row->length, data, row->length);
	assert_int_equal(*behind, 0xff);
}

static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
	uint32_t flags, length;
	enum ibv_qp_state state;
} refused[] = {
	{ "RTR", IBV_WR_RDMA_WRITE, 0, 8, IBV_QPS_RTR },
	{ "inline in RTR", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 8, IBV_QPS_RTR },
	{ "inline READ", IBV_WR_RDMA_READ, IBV_SEND_INLINE, 8, IBV_QPS_RTS },
	{ "inline data too long", IBV_WR_SEND, IBV_SEND_INLINE, 49, IBV_QPS_RTS },
	{ "unknown flag", IBV_WR_SEND, 1 << 30, 8, IBV_QPS_RTS },
	{ "opcode beyond 31", IBV_WR_SEND + 32, 0, 8, IBV_QPS_RTS },
};

TEST_CASES(plain, test_request_is_refused, refused)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = row->length };

	qp->state = row->state;
	FAKE_SEND(qp, EINVAL, .opcode = row->opcode, .num_sge = 1, .sg_list = &sge,
		  .send_flags = row->flags, REMOTE);
	assert_int_equal(fake_sq(qp)->tail | fake_sq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

TEST(plain, test_request_without_a_free_element_is_refused)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 8 };
	int i;

	for (i = 0; i < 4; i++)
		FAKE_SEND(qp, 0, FAKE_SGES(1), .opcode = IBV_WR_RDMA_WRITE, REMOTE);
	FAKE_SEND(qp, ENOMEM, FAKE_SGES(1), .opcode = IBV_WR_RDMA_WRITE, REMOTE);
	FAKE_SEND(qp, ENOMEM, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .sg_list = &sge,
		  .num_sge = 1);
	assert_false(pvr_lock_is_held(&fake_sq(qp)->lock));
	fake_consume(fake_sq(qp), 1);
	FAKE_SEND(qp, 0, FAKE_SGES(1), .opcode = IBV_WR_RDMA_WRITE, REMOTE);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 5);
}

/* Its address handle is not lost. */
TEST(plain, test_datagram_is_no_plain_request)
{
	struct pvr_ah ah = { .av = { .gid_index = 5, .port_pd = 0x01000002 } };

	qp = create_qp(IBV_QPT_UD);
	FAKE_SEND(qp, 0, FAKE_SGES(1), .opcode = IBV_WR_SEND,
		  .wr.ud = { &ah.ibv_ah, .remote_qpn = 0x17, .remote_qkey = 3 });
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .opcode = PVRDMA_WR_SEND, .num_sge = 1,
			.wr.ud = { .remote_qpn = 0x17, .remote_qkey = 3, .av = ah.av });
}

/* --------------------------------------------------------------- completions */

static void complete(struct ibv_qp *of, uint64_t wr_id, uint32_t opcode, uint32_t status)
{
	FAKE_COMPLETE(cq, .qp = fake_handle(of), .wr_id = wr_id, .opcode = opcode, .status = status,
		      .byte_len = 100 + wr_id);
}

static void expect(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode,
		   enum ibv_wc_status status)
{
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->opcode, opcode);
	assert_int_equal(wc->status, status);
	assert_int_equal(wc->byte_len, 100 + wr_id);
	assert_int_equal(wc->wc_flags | wc->vendor_err | wc->src_qp | wc->imm_data, 0);
	assert_int_equal(wc->pkey_index | wc->slid | wc->sl | wc->dlid_path_bits, 0);
}

/* Behind the ring are CQEs of the next requests. */
static void spoil_memory_behind_the_ring(void)
{
	struct pvr_cq *pcq = to_pvr_cq(cq);
	uint32_t i;

	for (i = 0; i < pcq->num; i++) {
		pcq->cqes_shm[pcq->num + i] = pcq->cqes_shm[i];
		pcq->cqes_shm[pcq->num + i].byte_len = 7;
	}
}

/* The first poll finds the QP. The second one comes to the end of the ring, and continues at its start. */
TEST(plain, test_completions_of_one_qp)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_SEND,	IBV_WC_RDMA_WRITE,
						      IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,
						      IBV_WC_FETCH_ADD, IBV_WC_BIND_MW };
	struct ibv_wc wcs[8];
	uint64_t round, i;

	qp = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);
	cq = qp->send_cq;
	memset(wcs, 0xff, sizeof(wcs));
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 6; i++)
			complete(qp, 10 * round + i, (uint32_t)opcodes[i], 0);
		spoil_memory_behind_the_ring();
		assert_int_equal(pvr_poll_cq(cq, 8, wcs), 6);
		for (i = 0; i < 6; i++) {
			expect(&wcs[i], 10 * round + i, opcodes[i], IBV_WC_SUCCESS);
			assert_int_equal(wcs[i].qp_num, qp->qp_num);
		}
		assert_int_equal(to_pvr_cq(cq)->ring_shm->cons_head,
				 to_pvr_cq(cq)->ring_shm->prod_tail);
		assert_int_equal(pvr_wq_outstanding(fake_sq(qp)), 0);
	}
}

TEST(plain, test_others_among_the_completions_of_one_qp)
{
	struct ibv_qp *other = create_qp(IBV_QPT_RC);
	struct ibv_wc wcs[8];

	complete(qp, 1, PVRDMA_WC_SEND, 0);
	assert_int_equal(pvr_poll_cq(cq, 8, wcs), 1);
	complete(qp, 2, PVRDMA_WC_RDMA_WRITE, 0);
	complete(qp, 3, PVRDMA_WC_RECV, 0);
	complete(qp, 4, PVRDMA_WC_RDMA_WRITE, PVRDMA_WC_RETRY_EXC_ERR);
	complete(other, 5, PVRDMA_WC_RDMA_READ, 0);
	complete(qp, 6, PVRDMA_WC_SEND, 0);
	assert_int_equal(pvr_poll_cq(cq, 4, wcs), 4);
	expect(&wcs[0], 2, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	expect(&wcs[1], 3, IBV_WC_RECV, IBV_WC_SUCCESS);
	expect(&wcs[2], 4, IBV_WC_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR);
	expect(&wcs[3], 5, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	assert_int_equal(wcs[3].qp_num, other->qp_num);
	assert_int_equal(pvr_poll_cq(cq, 4, wcs), 1);
	expect(&wcs[0], 6, IBV_WC_SEND, IBV_WC_SUCCESS);
	assert_int_equal(wcs[0].qp_num, qp->qp_num);
	assert_int_equal(pvr_wq_outstanding(fake_sq(qp)), 0);
	assert_int_equal(pvr_wq_outstanding(fake_rq(qp)), 0);
}

/* The numbers of the completed requests of one QP are also those of outstanding ones of the other. */
TEST(plain, test_completions_of_two_qps)
{
	struct ibv_qp *other = create_qp(IBV_QPT_RC);
	struct ibv_wc wcs[8];
	uint64_t round, number;

	FAKE_SEND(qp, 0, .wr_id = 0, FAKE_SGES(1), .opcode = IBV_WR_SEND);
	complete(other, 1, PVRDMA_WC_SEND, 0);
	assert_int_equal(pvr_poll_cq(cq, 8, wcs), 1);
	for (round = 0; round < 20; round++) {
		FAKE_SEND(qp, 0, .wr_id = round + 1, FAKE_SGES(1), .opcode = IBV_WR_SEND);
		FAKE_SEND(other, 0, .wr_id = 100 + round, FAKE_SGES(1), .opcode = IBV_WR_SEND);
		number = round & 1 ? round : round + 1;
		FAKE_CQE(cq, .qp = fake_handle(round & 1 ? qp : other), .wr_id = number);
		number = round & 1 ? round + 1 : round;
		FAKE_CQE(cq, .qp = fake_handle(round & 1 ? other : qp), .wr_id = number);
		assert_int_equal(pvr_poll_cq(cq, 8, wcs), 2);
		assert_int_equal(wcs[round & 1].wr_id, 100 + round);
		assert_int_equal(wcs[round & 1].qp_num, other->qp_num);
		assert_int_equal(wcs[!(round & 1)].wr_id, round);
		assert_int_equal(wcs[!(round & 1)].qp_num, qp->qp_num);
	}
}

/* A broken device completes a request twice, and one that was not posted. */
TEST(plain, test_completions_of_no_request_are_skipped)
{
	struct ibv_wc wcs[8];
	uint64_t number;

	for (number = 0; number < 3; number++)
		FAKE_SEND(qp, 0, .wr_id = 50 + number, FAKE_SGES(1), .opcode = IBV_WR_SEND);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 0);
	assert_int_equal(pvr_poll_cq(cq, 8, wcs), 1);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 0);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 2); /* and the unsignaled one before it */
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 1);
	FAKE_CQE(cq, .qp = fake_handle(qp), .wr_id = 3);
	assert_int_equal(pvr_poll_cq(cq, 8, wcs), 1);
	assert_int_equal(wcs[0].wr_id, 52);
	assert_int_equal(pvr_wq_outstanding(fake_sq(qp)), 0);
	assert_int_equal(to_pvr_cq(cq)->ring_shm->cons_head, 5);
}
