// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fake_kernel.h"

static struct ibv_cq *cq;
static struct pvr_cq *pcq;
static struct ibv_qp *qp;

static void resize_cq_begin(void)
{
	fake.ctx.features = PVR_EXT_RESIZE | PVR_EXT_NO_POLL_DB;
	cq = fake.send_cq;
	pcq = to_pvr_cq(cq);
	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
}

static void complete(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		FAKE_COMPLETE(cq, .qp = fake_handle(qp), .wr_id = from);
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
TEST(resize_cq, test_growing_keeps_unread_cqes)
{
	fake_start_at(cq, 13);
	complete(0, 7);
	assert_int_equal(pvr_resize_cq(cq, 33), 0);
	assert_int_equal(cq->cqe, 64);
	assert_int_equal(pcq->buf.size, 2 * 4096);
	complete(7, 60);
	expect(0, 60);
	assert_int_equal(pcq->ring_shm->cons_head, 60);
}

TEST(resize_cq, test_shrinking_keeps_unread_cqes)
{
	fake_start_at(cq, 6);
	complete(0, 4);
	assert_int_equal(pvr_resize_cq(cq, 4), 0);
	assert_int_equal(cq->cqe, 4);
	expect(0, 4);
	complete(4, 7);
	expect(4, 7);
}

TEST(resize_cq, test_resize_does_not_move_read_cqes)
{
	struct ibv_wc wc;

	complete(0, 8);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	expect(1, 8);
}

TEST(resize_cq, test_resize_below_the_unread_cqes_is_refused)
{
	complete(0, 5);
	assert_int_equal(pvr_resize_cq(cq, 4), EINVAL);
	assert_int_equal(cq->cqe, 8);
	complete(5, 8);
	expect(0, 8);
}

TEST(resize_cq, test_failed_resize_changes_nothing)
{
	complete(0, 3);
	fake.fail = ENOMEM;
	assert_int_equal(pvr_resize_cq(cq, 64), ENOMEM);
	assert_int_equal(cq->cqe, 8);
	assert_int_equal(pcq->num, 8);
	expect(0, 3);
}

TEST(resize_cq, test_resize_to_the_same_size_needs_no_command)
{
	fake.fail = EIO;
	assert_int_equal(pvr_resize_cq(cq, 7), 0);
	assert_int_equal(fake.fail, EIO);
}

static const struct {
	const char *label;
	int cqe, err;
	uint32_t features;
} refused[] = {
	{ "0", 0, EINVAL, PVR_EXT_RESIZE },
	{ "-1", -1, EINVAL, PVR_EXT_RESIZE },
	{ "INT_MAX", 0x7fffffff, EINVAL, PVR_EXT_RESIZE },
	{ "no extension", 16, EOPNOTSUPP, PVR_EXT_NO_POLL_DB },
};

TEST_CASES(resize_cq, test_resize_refuses, refused)
{
	fake.ctx.features = row->features;
	assert_int_equal(pvr_resize_cq(cq, row->cqe), row->err);
	assert_int_equal(cq->cqe, 8);
}

TEST(resize_cq, test_resize_holds_the_lock)
{
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	assert_true(fake.resized_locked);
	assert_false(pvr_lock_is_held(&pcq->lock));
}

TEST(resize_cq, test_single_threaded_cq_is_resized)
{
	struct ibv_cq_ex *ex = fake_single_threaded_cq();
	struct ibv_poll_cq_attr no_attr = {};

	cq = ibv_cq_ex_to_cq(ex);
	complete(0, 2);
	assert_int_equal(pvr_resize_cq(cq, 64), 0);
	complete(2, 40);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ex->wr_id, 0);
	ibv_end_poll(ex);
	expect(1, 40);
}
