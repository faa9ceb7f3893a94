// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Creation and destruction of QPs beside other threads. */
#include "fake_kernel.h"

static struct ibv_qp *created;

static int poll_send_cq(struct ibv_wc *wc)
{
	return pvr_poll_cq(fake.send_cq, 1, wc);
}

static void create_another(void)
{
	fake.in_destroy_qp = NULL;
	created = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);
}

/*
 * ibv_destroy_qp() waits until the events of the QP are acknowledged. The thread that has
 * them may create a QP before it acknowledges them. This test does so inside the command.
 */
TEST(fake, test_qp_is_created_while_another_waits_for_its_events)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);
	struct ibv_wc wc;

	fake.in_destroy_qp = create_another;
	assert_int_equal(pvr_destroy_qp(qp), 0);
	FAKE_COMPLETE(fake.send_cq, .qp = fake_handle(created), .wr_id = 7);
	assert_int_equal(poll_send_cq(&wc), 1);
	assert_int_equal(wc.qp_num, created->qp_num);
}

static void create_with_the_same_handle(void)
{
	uint32_t handle = fake.next_handle - 1;

	fake.next_handle = handle;
	create_another();
	FAKE_COMPLETE(fake.send_cq, .qp = fake_handle(created), .wr_id = 7);
}

/* The CQEs of the old QP are not those of the new one, and its purge keeps those. */
TEST(fake, test_handle_of_a_qp_that_waits_for_its_events_is_not_used)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);
	struct ibv_wc wc;

	FAKE_COMPLETE(fake.send_cq, .qp = fake_handle(qp), .wr_id = 5);
	fake.in_destroy_qp = create_with_the_same_handle;
	assert_int_equal(pvr_destroy_qp(qp), 0);
	assert_int_equal(fake.destroyed_qps, 2); /* also the one that kept the handle */
	assert_int_equal(poll_send_cq(&wc), 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp_num, created->qp_num);
	assert_int_equal(poll_send_cq(&wc), 0);
}

static void repeat_the_handle(void)
{
	fake.next_handle--;
}

/* Bad input: a driver that always gives the handle of a live QP. */
TEST(fake, test_driver_that_repeats_a_handle_is_refused)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 8, 1, 1, 1);

	fake.next_handle = fake_handle(qp);
	fake.in_create_qp = repeat_the_handle;
	assert_fails(fake_create_qp(&(struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC }), EBUSY);
	assert_ptr_equal(fake.ctx.qp_tbl[fake_handle(qp)], to_pvr_qp(qp));
	assert_int_equal(fake.destroyed_qps, 16);
}
