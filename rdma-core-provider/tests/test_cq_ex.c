// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>

#include "fake_kernel.h"

static struct ibv_poll_cq_attr no_attr;

/* A CQ with all readable fields, and a QP that completes into it. */
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 8, .max_recv_wr = 8 },
	};

	return fake_create_qp(&attr);
}

static void cq_ex_begin(void)
{
	cq = FAKE_CQ_EX(.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS);
	assert_non_null(cq);
	qp = create_qp();
}

static struct pvr_cq *to_pvr(struct ibv_cq_ex *ex)
{
	return to_pvr_cq(ibv_cq_ex_to_cq(ex));
}

static void complete(uint64_t wr_id)
{
	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .wr_id = wr_id, .qp = fake_handle(qp));
}

static void complete_unknown_qp(void)
{
	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .qp = FAKE_QP_TBL_SIZE - 1);
}

static bool is_locked(struct ibv_cq_ex *ex)
{
	return pvr_lock_is_held(&to_pvr(ex)->lock);
}

TEST(cq_ex, test_lazy_calls_read_each_field)
{
	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .wr_id = 99, .qp = to_pvr_qp(qp)->handle,
		      .opcode = PVRDMA_WC_RECV, .status = PVRDMA_WC_LOC_LEN_ERR, .byte_len = 1234,
		      .imm_data = htonl(5), .src_qp = 17,
		      .wc_flags = PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM, .vendor_err = 3, .slid = 5,
		      .sl = 6, .dlid_path_bits = 7);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(cq->wr_id, 99);
	assert_int_equal(cq->status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 3);
	assert_int_equal(ibv_wc_read_byte_len(cq), 1234);
	assert_int_equal(ibv_wc_read_imm_data(cq), htonl(5));
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(cq), 17);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), 5);
	assert_int_equal(ibv_wc_read_sl(cq), 6);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 7);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_lazy_calls_read_an_invalidated_rkey)
{
	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .qp = fake_handle(qp), .opcode = PVRDMA_WC_RECV,
		      .imm_data = 0x12345678, .wc_flags = PVRDMA_WC_WITH_INVALIDATE);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq), 0x12345678);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_empty_start_poll_leaves_the_cq_unlocked)
{
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_false(is_locked(cq));
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), PVR_DB_CQ_POLL | to_pvr(cq)->handle);
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), 0);
}

/* The device may overwrite the slot of the current CQE. */
TEST(cq_ex, test_lazy_calls_return_the_slot_at_once)
{
	struct pvr_cq *pcq = to_pvr(cq);
	uint64_t i;

	for (i = 1; i <= 3; i++)
		complete(i);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_true(is_locked(cq));
	for (i = 1; i <= 3; i++) {
		assert_int_equal(pcq->ring_shm->cons_head, i);
		memset(&pcq->cqes_shm[i - 1], 0xff, sizeof(struct pvr_cqe));
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_SEND);
		assert_int_equal(ibv_wc_read_byte_len(cq), 0);
		assert_int_equal(ibv_next_poll(cq), i < 3 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	assert_false(is_locked(cq));
}

TEST(cq_ex, test_next_poll_finds_completions_after_start_poll)
{
	complete(1);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	complete(2);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	ibv_end_poll(cq);
}

/* CQEs of unknown QPs must not fill the ring. */
TEST(cq_ex, test_start_poll_returns_the_slots_of_unknown_qps)
{
	complete_unknown_qp();
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_int_equal(to_pvr(cq)->ring_shm->cons_head, 1);
	complete_unknown_qp();
	complete(2);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(cq->wr_id, 2);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_lazy_calls_wrap_and_mix_with_plain_polls)
{
	uint64_t id = 0, next = 0;
	struct ibv_wc wc;
	int round, i;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < 5; i++)
			complete(id++);
		assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
		assert_int_equal(wc.wr_id, next++);
		assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
		for (i = 0; i < 4; i++) {
			assert_int_equal(cq->wr_id, next++);
			assert_int_equal(ibv_next_poll(cq), i < 3 ? 0 : ENOENT);
		}
		ibv_end_poll(cq);
	}
}

/* A plain poll that stops early must not leave a stale number of available CQEs. */
TEST(cq_ex, test_plain_poll_leaves_no_stale_count)
{
	struct ibv_wc wcs[8];
	int i;

	for (i = 0; i < 4; i++)
		complete(i);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 1, wcs), 1);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 8, wcs), 3);
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
}

TEST(cq_ex, test_an_impossible_index_is_an_error)
{
	complete(1);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	to_pvr(cq)->ring_shm->prod_tail = 0x12345678;
	assert_int_equal(ibv_next_poll(cq), EIO);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &no_attr), EIO);
	assert_false(is_locked(cq));
}

TEST(cq_ex, test_start_poll_refuses_attributes)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	complete(1);
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_false(is_locked(cq));
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_single_threaded_cq_takes_no_lock)
{
	struct ibv_wc wc;

	cq = fake_single_threaded_cq();
	qp = create_qp();
	complete(7);
	complete(8);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_false(is_locked(cq));
	assert_int_equal(cq->wr_id, 7);
	ibv_end_poll(cq);
	assert_int_equal(to_pvr(cq)->ring_shm->cons_head, 1);
	pvr_lock(&to_pvr(cq)->lock);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	assert_true(is_locked(cq));
	pvr_unlock(&to_pvr(cq)->lock);
}

/* CQEs are purged with their QP, including those that start_poll has counted. */
TEST(cq_ex, test_qp_destroyed_between_two_lazy_calls_is_purged)
{
	int i;

	cq = fake_single_threaded_cq();
	qp = create_qp();
	for (i = 0; i < 3; i++)
		complete(i);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(pvr_destroy_qp(qp), 0);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(to_pvr(cq)->ring_shm->cons_head, 3);
}

/* The destruction of a QP of other CQs does not lock this one. */
TEST(cq_ex, test_cqe_of_a_qp_of_another_cq_is_skipped)
{
	struct ibv_qp *other = fake_qp(IBV_QPT_RC, 8, 1, 8, 1);

	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .qp = fake_handle(other));
	FAKE_COMPLETE(ibv_cq_ex_to_cq(cq), .qp = fake_handle(other), .opcode = PVRDMA_WC_RECV);
	complete(7);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(cq->wr_id, 7);
	assert_int_equal(pvr_destroy_qp(other), 0);
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_only_requested_fields_can_be_read)
{
	struct ibv_cq_ex *few = FAKE_CQ_EX(.cqe = 1, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN);

	assert_non_null(few->read_byte_len);
	assert_non_null(few->read_opcode);
	assert_null(few->read_src_qp);
	assert_null(few->read_completion_ts);
}

#define FLAGS(bits) .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = (bits)
#define FIELD(bit)                          \
	{                                   \
		.cqe = 8, .wc_flags = (bit) \
	}

static const struct {
	const char *label;
	struct ibv_cq_init_attr_ex attr;
	int err;
	int fail; /* errno of the kernel */
} refused[] = {
	{ "time stamp", FIELD(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP), EOPNOTSUPP },
	{ "VLAN", FIELD(IBV_WC_EX_WITH_CVLAN), EOPNOTSUPP },
	{ "flow tag", FIELD(IBV_WC_EX_WITH_FLOW_TAG), EOPNOTSUPP },
	{ "tag matching", FIELD(IBV_WC_EX_WITH_TM_INFO), EOPNOTSUPP },
	{ "wall clock", FIELD(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK), EOPNOTSUPP },
	{ "unknown field", FIELD(1ull << 40), EOPNOTSUPP },
	{ "unknown attribute", { .cqe = 8, .comp_mask = 1 << 7 }, EOPNOTSUPP },
	{ "overrun", { .cqe = 8, FLAGS(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) }, EOPNOTSUPP },
	{ "unknown flag", { .cqe = 8, FLAGS(1 << 7) }, EOPNOTSUPP },
	{ "no CQE", { .cqe = 0 }, EINVAL },
	{ "too many CQEs", { .cqe = UINT32_MAX }, EINVAL },
	{ "the kernel fails", { .cqe = 8 }, ENOSPC, ENOSPC },
};

TEST_CASES(cq_ex, test_create_cq_ex_refuses, refused)
{
	struct ibv_cq_init_attr_ex attr = row->attr;

	fake.fail = row->fail;
	assert_fails(pvr_create_cq_ex(fake.ibctx, &attr), row->err);
}

TEST(cq_ex, test_flags_outside_the_mask_are_ignored)
{
	cq = FAKE_CQ_EX(.cqe = 8, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | 1 << 7);
	assert_non_null(cq);
	assert_false(to_pvr(cq)->single_threaded);
}
