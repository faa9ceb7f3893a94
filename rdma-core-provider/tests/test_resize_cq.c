// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>

#include "fake_kernel.h"

static struct ibv_cq *cq;
static struct pvr_cq *pcq;
static struct ibv_qp *qp;

static int resize_cq_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake.ctx.features = PVR_EXT_RESIZE | PVR_EXT_NO_POLL_DB;
	cq = fake.send_cq;
	pcq = to_pvr_cq(cq);
	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	return 0;
}
#define resize_cq_teardown fake_teardown

static void start_at(uint32_t idx)
{
	pcq->head = pcq->ring_shm->prod_tail = pcq->ring_shm->cons_head = idx;
}

static void complete(uint64_t from, uint64_t to)
{
	struct pvrdma_cqe cqe = { .qp = to_pvr_qp(qp)->handle };

	for (cqe.wr_id = from; cqe.wr_id < to; cqe.wr_id++)
		fake_complete(cq, &cqe);
}

static void expect(uint64_t from, uint64_t to)
{
	struct ibv_wc wcs[64];
	uint64_t id;
	int num = pvr_poll_cq(cq, 64, wcs);

	assert_int_equal(num, to - from);
	for (id = from; id < to; id++)
		assert_int_equal(wcs[id - from].wr_id, id);
}

/* Unread CQEs wrap around the end of the old ring. */
TEST(resize_cq, test_growing_keeps_what_is_unread)
{
	start_at(13);
	complete(0, 7);
	assert_int_equal(pvr_resize_cq(cq, 33), 0);
	assert_int_equal(cq->cqe, 64);
	assert_int_equal(pcq->buf.size, 2 * 4096);
	complete(7, 60);
	expect(0, 60);
	assert_int_equal(pcq->ring_shm->cons_head, 60);
}

TEST(resize_cq, test_shrinking_keeps_what_is_unread)
{
	start_at(6);
	complete(0, 4);
	assert_int_equal(pvr_resize_cq(cq, 4), 0);
	assert_int_equal(cq->cqe, 4);
	expect(0, 4);
	complete(4, 7);
	expect(4, 7);
}

TEST(resize_cq, test_what_is_read_is_not_moved)
{
	struct ibv_wc wc;

	complete(0, 8);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	expect(1, 8);
}

TEST(resize_cq, test_too_small_for_what_is_unread)
{
	complete(0, 5);
	assert_int_equal(pvr_resize_cq(cq, 4), EINVAL);
	assert_int_equal(cq->cqe, 8);
	complete(5, 8);
	expect(0, 8);
}

TEST(resize_cq, test_a_failure_changes_nothing)
{
	complete(0, 3);
	fake.fail = ENOMEM;
	assert_int_equal(pvr_resize_cq(cq, 64), ENOMEM);
	assert_int_equal(cq->cqe, 8);
	assert_int_equal(pcq->num, 8);
	expect(0, 3);
}

TEST(resize_cq, test_the_same_size_asks_nobody)
{
	fake.fail = EIO;
	assert_int_equal(pvr_resize_cq(cq, 7), 0);
	assert_int_equal(fake.fail, EIO);
	fake.fail = 0;
}

TEST(resize_cq, test_limits)
{
	assert_int_equal(pvr_resize_cq(cq, 0), EINVAL);
	assert_int_equal(pvr_resize_cq(cq, -1), EINVAL);
	assert_int_equal(pvr_resize_cq(cq, 0x7fffffff), EINVAL);
	assert_int_equal(cq->cqe, 8);
}

TEST(resize_cq, test_without_the_extension)
{
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	assert_int_equal(pvr_resize_cq(cq, 16), EOPNOTSUPP);
	assert_int_equal(cq->cqe, 8);
}

TEST(resize_cq, test_nobody_polls_meanwhile)
{
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	assert_true(fake.resized_locked);
	assert_false(pvr_lock_is_held(&pcq->lock));
}

TEST(resize_cq, test_a_cq_of_one_thread)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *ex = pvr_create_cq_ex(&fake.ctx.ibv_ctx.context, &attr);
	struct ibv_poll_cq_attr no_attr = {};

	cq = ibv_cq_ex_to_cq(ex);
	pcq = to_pvr_cq(cq);
	complete(0, 2);
	assert_int_equal(pvr_resize_cq(cq, 64), 0);
	complete(2, 40);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ex->wr_id, 0);
	ibv_end_poll(ex);
	expect(1, 40);
	pvr_destroy_cq(cq);
}
