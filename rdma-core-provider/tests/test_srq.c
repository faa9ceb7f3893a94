// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>

#include "fake_kernel.h"

static struct ibv_srq *srq;
static struct pvr_srq *psrq;

static int srq_setup(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 2 } };

	if (fake_setup(state))
		return -1;
	fake.ctx.features = PVR_EXT_RESIZE;
	srq = pvr_create_srq(&fake.pd.ibv_pd, &attr);
	if (!srq)
		return -1;
	psrq = to_pvr_srq(srq);
	return 0;
}

static int srq_teardown(void **state)
{
	pvr_destroy_srq(srq);
	return fake_teardown(state);
}

static int post(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = wr_id << 12, .length = 1, .lkey = 2 };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return pvr_post_srq_recv(srq, &wr, &bad);
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
	const struct pvrdma_rq_wqe_hdr *hdr;
	const struct pvrdma_sge *sge;

	for (; from < to; from++) {
		assert_int_not_equal(wq->ring_shm->cons_head, wq->ring_shm->prod_tail);
		hdr = (void *)(wq->wqes + ((size_t)(wq->ring_shm->cons_head & (wq->num - 1))
					   << wq->stride_shift));
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

/* Waiting requests wrap around the end of the old queue. */
TEST(srq, test_growing_keeps_what_waits)
{
	post_all(0, 6);
	expect(0, 6);
	post_all(6, 12);
	assert_int_equal(resize(33), 0);
	assert_int_equal(fake.srq_attr.max_wr, 64);
	assert_true(fake.resized_locked);
	post_all(12, 70);
	assert_int_equal(post(70), ENOMEM);
	expect(6, 70);
}

TEST(srq, test_shrinking_keeps_what_waits)
{
	post_all(0, 3);
	assert_int_equal(resize(3), 0);
	post_all(3, 4);
	assert_int_equal(post(4), ENOMEM);
	expect(0, 4);
}

TEST(srq, test_too_small_for_what_waits)
{
	post_all(0, 5);
	assert_int_equal(resize(4), EINVAL);
	post_all(5, 8);
	expect(0, 8);
}

TEST(srq, test_a_failure_changes_nothing)
{
	post_all(0, 5);
	fake.fail = ENOMEM;
	assert_int_equal(resize(64), ENOMEM);
	post_all(5, 8);
	assert_int_equal(post(8), ENOMEM);
	expect(0, 8);
}

TEST(srq, test_limit_and_size_at_once)
{
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 9 };

	assert_int_equal(pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(fake.srq_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	assert_int_equal(fake.srq_attr.srq_limit, 9);
	assert_int_equal(psrq->wq.num, 16);
}

TEST(srq, test_a_limit_alone_moves_nothing)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	void *wqes = psrq->wq.wqes;

	assert_int_equal(pvr_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(fake.srq_mask, IBV_SRQ_LIMIT);
	assert_ptr_equal(psrq->wq.wqes, wqes);
}

TEST(srq, test_sizes_beyond_any_limit)
{
	assert_int_equal(resize(0), EINVAL);
	assert_int_equal(resize(UINT32_MAX), EINVAL);
	assert_int_equal(psrq->wq.num, 8);
}

/* The application gets the kernel's errno. */
TEST(srq, test_without_the_extension)
{
	fake.ctx.features = 0;
	assert_int_equal(resize(16), EOPNOTSUPP);
	assert_int_equal(psrq->wq.num, 8);
}

TEST(srq, test_the_number_is_the_devices)
{
	uint32_t num = 0;

	assert_int_equal(pvr_get_srq_num(srq, &num), 0);
	assert_int_not_equal(num, 0);
	assert_int_equal(num, fake.next_handle - 1);
}
