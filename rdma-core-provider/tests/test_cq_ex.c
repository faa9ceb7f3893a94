// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <errno.h>

#include "fake_kernel.h"

static struct ibv_poll_cq_attr no_attr;

static struct ibv_cq_ex *create(struct ibv_cq_init_attr_ex attr)
{
	return pvr_create_cq_ex(&fake.ctx.ibv_ctx.context, &attr);
}

static struct ibv_cq_ex *create_single_threaded(void)
{
	return create((struct ibv_cq_init_attr_ex){
		.cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	});
}

/* A CQ with all readable fields, and a QP that completes into it. */
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;

static int cq_ex_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	cq = create((struct ibv_cq_init_attr_ex){ .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS });
	qp = fake_qp(IBV_QPT_UD, 1, 1, 1, 1);
	return cq && qp ? 0 : -1;
}

static int cq_ex_teardown(void **state)
{
	pvr_destroy_cq(ibv_cq_ex_to_cq(cq));
	return fake_teardown(state);
}

static struct pvr_cq *to_pvr(struct ibv_cq_ex *ex)
{
	return to_pvr_cq(ibv_cq_ex_to_cq(ex));
}

static void complete(uint32_t handle, uint64_t wr_id)
{
	struct pvrdma_cqe cqe = { .wr_id = wr_id, .qp = handle };

	fake_complete(ibv_cq_ex_to_cq(cq), &cqe);
}

static void complete_ours(uint64_t wr_id)
{
	complete(to_pvr_qp(qp)->handle, wr_id);
}

static bool is_locked(struct ibv_cq_ex *ex)
{
	return pvr_lock_is_held(&to_pvr(ex)->lock);
}

TEST(cq_ex, test_all_fields_are_read)
{
	struct pvrdma_cqe cqe = {
		.wr_id = 99,
		.qp = to_pvr_qp(qp)->handle,
		.opcode = PVRDMA_WC_RECV,
		.status = PVRDMA_WC_LOC_LEN_ERR,
		.byte_len = 1234,
		.imm_data = htonl(5),
		.src_qp = 17,
		.wc_flags = PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM,
		.vendor_err = 3,
		.slid = 5,
		.sl = 6,
		.dlid_path_bits = 7,
	};

	fake_complete(ibv_cq_ex_to_cq(cq), &cqe);
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

TEST(cq_ex, test_an_invalidated_rkey_is_read)
{
	struct pvrdma_cqe cqe = { .qp = to_pvr_qp(qp)->handle,
				  .opcode = PVRDMA_WC_RECV,
				  .imm_data = 0x12345678,
				  .wc_flags = PVRDMA_WC_WITH_INVALIDATE };

	fake_complete(ibv_cq_ex_to_cq(cq), &cqe);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq), 0x12345678);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_an_empty_poll_leaves_the_cq_unlocked)
{
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_false(is_locked(cq));
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), PVR_DB_CQ_POLL | to_pvr(cq)->handle);
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), 0);
}

/* The device must not overwrite the current CQE. */
TEST(cq_ex, test_slots_are_given_back_at_the_end)
{
	struct pvr_cq *pcq = to_pvr(cq);
	uint64_t i;

	for (i = 1; i <= 3; i++)
		complete_ours(i);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_true(is_locked(cq));
	for (i = 1; i <= 3; i++) {
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(ibv_next_poll(cq), i < 3 ? 0 : ENOENT);
	}
	assert_int_equal(pcq->ring_shm->cons_head, 0);
	ibv_end_poll(cq);
	assert_false(is_locked(cq));
	assert_int_equal(pcq->ring_shm->cons_head, 3);
}

TEST(cq_ex, test_completions_that_arrive_meanwhile_are_seen)
{
	complete_ours(1);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	complete_ours(2);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	ibv_end_poll(cq);
}

/* CQEs of unknown QPs must not fill the ring. */
TEST(cq_ex, test_completions_of_unknown_qps_are_given_back)
{
	complete(FAKE_QP_TBL_SIZE - 1, 1);
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	assert_int_equal(to_pvr(cq)->ring_shm->cons_head, 1);
	complete(FAKE_QP_TBL_SIZE - 1, 1);
	complete_ours(2);
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
			complete_ours(id++);
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
TEST(cq_ex, test_a_plain_poll_leaves_nothing_behind_for_the_lazy_one)
{
	struct ibv_wc wcs[8];
	int i;

	for (i = 0; i < 4; i++)
		complete_ours(i);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 1, wcs), 1);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(cq), 8, wcs), 3);
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
}

TEST(cq_ex, test_an_impossible_index_is_an_error)
{
	complete_ours(1);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	to_pvr(cq)->ring_shm->prod_tail = 0x12345678;
	assert_int_equal(ibv_next_poll(cq), EIO);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &no_attr), EIO);
	assert_false(is_locked(cq));
}

TEST(cq_ex, test_start_poll_knows_no_attributes)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	complete_ours(1);
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_false(is_locked(cq));
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	ibv_end_poll(cq);
}

TEST(cq_ex, test_one_thread_needs_no_lock)
{
	struct ibv_cq_ex *single = create_single_threaded();
	struct pvrdma_cqe cqe = { .wr_id = 7, .qp = to_pvr_qp(qp)->handle };
	struct ibv_wc wc;

	assert_non_null(single);
	fake_complete(ibv_cq_ex_to_cq(single), &cqe);
	fake_complete(ibv_cq_ex_to_cq(single), &cqe);
	assert_int_equal(ibv_start_poll(single, &no_attr), 0);
	assert_false(is_locked(single));
	assert_int_equal(single->wr_id, 7);
	ibv_end_poll(single);
	assert_int_equal(to_pvr(single)->ring_shm->cons_head, 1);
	pvr_lock(&to_pvr(single)->lock);
	assert_int_equal(pvr_poll_cq(ibv_cq_ex_to_cq(single), 1, &wc), 1);
	assert_true(is_locked(single));
	pvr_unlock(&to_pvr(single)->lock);
	pvr_destroy_cq(ibv_cq_ex_to_cq(single));
}

/* CQEs are purged with their QP, including those that start_poll has counted. */
TEST(cq_ex, test_a_qp_dies_between_two_lazy_calls)
{
	struct ibv_cq_ex *single = create_single_threaded();
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(single),
		.recv_cq = ibv_cq_ex_to_cq(single),
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *dead = pvr_create_qp(&fake.pd.ibv_pd, &attr);
	struct pvrdma_cqe cqe = { .qp = to_pvr_qp(dead)->handle };
	int i;

	for (i = 0; i < 3; i++)
		fake_complete(ibv_cq_ex_to_cq(single), &cqe);
	assert_int_equal(ibv_start_poll(single, &no_attr), 0);
	assert_int_equal(pvr_destroy_qp(dead), 0);
	assert_int_equal(ibv_next_poll(single), ENOENT);
	ibv_end_poll(single);
	assert_int_equal(to_pvr(single)->ring_shm->cons_head, 3);
	pvr_destroy_cq(ibv_cq_ex_to_cq(single));
}

TEST(cq_ex, test_only_what_was_asked_for_can_be_read)
{
	struct ibv_cq_ex *few = create(
		(struct ibv_cq_init_attr_ex){ .cqe = 1, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN });

	assert_non_null(few->read_byte_len);
	assert_non_null(few->read_opcode);
	assert_null(few->read_src_qp);
	assert_null(few->read_completion_ts);
	pvr_destroy_cq(ibv_cq_ex_to_cq(few));
}

static void refused(struct ibv_cq_init_attr_ex attr, int err)
{
	assert_fails(create(attr), err);
}

TEST(cq_ex, test_what_the_device_cannot_tell_is_refused)
{
	static const uint64_t flags[] = {
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		IBV_WC_EX_WITH_CVLAN,
		IBV_WC_EX_WITH_FLOW_TAG,
		IBV_WC_EX_WITH_TM_INFO,
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		1ull << 40,
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		attr.wc_flags = flags[i];
		refused(attr, EOPNOTSUPP);
	}
}

TEST(cq_ex, test_unknown_attributes_are_refused)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .comp_mask = 1 << 7 };

	refused(attr, EOPNOTSUPP);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	refused(attr, EOPNOTSUPP);
	attr.flags = 1 << 7;
	refused(attr, EOPNOTSUPP);
	attr = (struct ibv_cq_init_attr_ex){ .cqe = 0 };
	refused(attr, EINVAL);
	attr.cqe = UINT32_MAX;
	refused(attr, EINVAL);
	attr.cqe = 8;
	fake.fail = ENOSPC;
	refused(attr, ENOSPC);
}

TEST(cq_ex, test_flags_outside_the_mask_are_not_looked_at)
{
	struct ibv_cq_ex *plain = create((struct ibv_cq_init_attr_ex){
		.cqe = 8, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | 1 << 7 });

	assert_non_null(plain);
	assert_false(to_pvr(plain)->single_threaded);
	pvr_destroy_cq(ibv_cq_ex_to_cq(plain));
}
