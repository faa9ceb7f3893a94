// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fake_kernel.h"

static struct ibv_srq *srq;
static struct pvr_srq *psrq;

static void srq_begin(void)
{
	fake.ctx.features = PVR_EXT_RESIZE;
	srq = fake_srq(8, 2);
	psrq = to_pvr_srq(srq);
}

static int post(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = wr_id << 12, .length = 1, .lkey = 2 };

	return fake_post_srq_recv(
		srq, &(struct ibv_recv_wr){ .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 });
}

static void post_all(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_int_equal(post(from), 0);
}

/* Checks the requests that the device finds next. */
static void expect(uint64_t from, uint64_t to)
{
	struct pvr_wq *wq = &psrq->wq;
	const struct pvr_rq_wqe *hdr;
	const struct pvr_sge *sge;

	for (; from < to; from++) {
		assert_int_not_equal(wq->ring_shm->cons_head, wq->ring_shm->prod_tail);
		hdr = pvr_wq_slot(wq, wq->ring_shm->cons_head);
		sge = (void *)(hdr + 1);
		assert_int_equal(hdr->wr_id, from);
		assert_int_equal(sge->addr, from << 12);
		fake_consume(wq, 1);
	}
	assert_int_equal(wq->ring_shm->cons_head, wq->ring_shm->prod_tail);
}

static int resize(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static const struct {
	const char *label;
	uint32_t start; /* requests that are consumed before, so that the others wrap */
	uint32_t waiting, max_wr;
	int fail, err; /* errno of the kernel; expected errno */
	uint32_t size; /* the size after it */
} resizes[] = {
	{ "growing", 6, 6, 33, 0, 0, 64 },
	{ "shrinking", 0, 3, 3, 0, 0, 4 },
	{ "below the waiting requests", 0, 5, 4, 0, EINVAL, 8 },
	{ "failure of the kernel", 0, 5, 64, ENOMEM, ENOMEM, 8 },
};

TEST_CASES(srq, test_resize_keeps_waiting_requests, resizes)
{
	uint32_t first = row->start;

	post_all(0, first);
	expect(0, first);
	post_all(first, first + row->waiting);
	fake.fail = row->fail;
	assert_int_equal(resize(row->max_wr), row->err);
	post_all(first + row->waiting, first + row->size);
	assert_int_equal(post(first + row->size), ENOMEM);
	expect(first, first + row->size);
}

TEST(srq, test_resize_holds_the_lock_and_rounds_up)
{
	assert_int_equal(resize(33), 0);
	assert_int_equal(fake.srq_attr.max_wr, 64);
	assert_true(fake.resized_locked);
}

TEST(srq, test_limit_and_size_change_together)
{
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 9 };

	assert_int_equal(pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(fake.srq_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	assert_int_equal(fake.srq_attr.srq_limit, 9);
	assert_int_equal(psrq->wq.num, 16);
}

TEST(srq, test_limit_alone_does_not_resize)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	void *wqes = psrq->wq.wqes;

	assert_int_equal(pvr_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(fake.srq_mask, IBV_SRQ_LIMIT);
	assert_ptr_equal(psrq->wq.wqes, wqes);
}

/* Without the extension, the application gets the kernel's errno. */
static const struct {
	const char *label;
	uint32_t max_wr;
	int err;
	uint32_t features;
} refused[] = {
	{ "0", 0, EINVAL, PVR_EXT_RESIZE },
	{ "UINT32_MAX", UINT32_MAX, EINVAL, PVR_EXT_RESIZE },
	{ "no extension", 16, EOPNOTSUPP, 0 },
};

TEST_CASES(srq, test_resize_refuses, refused)
{
	fake.ctx.features = row->features;
	assert_int_equal(resize(row->max_wr), row->err);
	assert_int_equal(psrq->wq.num, 8);
}

TEST(srq, test_srq_number_is_that_of_the_device)
{
	uint32_t num = 0;

	assert_int_equal(pvr_get_srq_num(srq, &num), 0);
	assert_int_not_equal(num, 0);
	assert_int_equal(num, fake.next_handle - 1);
}
