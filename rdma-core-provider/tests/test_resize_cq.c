// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fake_kernel.h"

static struct ibv_cq *cq;
static struct pvr_cq *pcq;
static struct ibv_qp *qp;

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.cap = { .max_send_wr = 64 },
	};

	return fake_create_qp(&attr);
}

static void resize_cq_begin(void)
{
	fake.ctx.features = PVR_EXT_RESIZE | PVR_EXT_NO_POLL_DB;
	cq = fake.send_cq;
	pcq = to_pvr_cq(cq);
	qp = create_qp();
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

static const struct {
	const char *label;
	uint32_t start; /* index of the first CQE, so that they wrap at the ring's end */
	uint64_t unread;
	int cqe, fail, err; /* requested size; errno of the kernel; expected errno */
	int size; /* the size after it */
} resizes[] = {
	{ "growing", 13, 7, 33, 0, 0, 64 },
	{ "shrinking", 6, 4, 4, 0, 0, 4 },
	{ "below the unread CQEs", 0, 5, 4, 0, EINVAL, 8 },
	{ "failure of the kernel", 0, 3, 64, ENOMEM, ENOMEM, 8 },
};

TEST_CASES(resize_cq, test_resize_keeps_unread_cqes, resizes)
{
	fake_start_at(cq, row->start);
	complete(0, row->unread);
	fake.fail = row->fail;
	assert_int_equal(pvr_resize_cq(cq, row->cqe), row->err);
	assert_int_equal(cq->cqe, row->size);
	assert_int_equal(pcq->num, row->size);
	complete(row->unread, row->size);
	expect(0, row->size);
	complete(0, 3);
	expect(0, 3);
	assert_int_equal(pcq->ring_shm->cons_head, pcq->ring_shm->prod_tail);
}

TEST(resize_cq, test_ring_has_whole_pages)
{
	assert_int_equal(pvr_resize_cq(cq, 33), 0);
	assert_int_equal(pcq->buf.size, 2 * 4096);
}

TEST(resize_cq, test_resize_does_not_move_read_cqes)
{
	struct ibv_wc wc;

	complete(0, 8);
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	expect(1, 8);
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
	qp = create_qp();
	complete(0, 2);
	assert_int_equal(pvr_resize_cq(cq, 64), 0);
	complete(2, 40);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ex->wr_id, 0);
	ibv_end_poll(ex);
	expect(1, 40);
}
