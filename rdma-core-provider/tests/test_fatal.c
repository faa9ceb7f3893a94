// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <unistd.h>

#include "fake_kernel.h"

#define MANY 100000 /* polls: enough for several checks of the clock */

static struct ibv_qp *qp;
static struct ibv_wc wcs[64];

static int fatal_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	qp = fake_qp(IBV_QPT_RC, 16, 1, 4, 1);
	return 0;
}
#define fatal_teardown fake_teardown

static int poll_many(struct ibv_cq *cq)
{
	int i, num = 0;

	for (i = 0; i < MANY && !num; i++)
		num = pvr_poll_cq(cq, 64, wcs);
	return num;
}

static void post_sends(uint64_t from, uint64_t to)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	for (wr.wr_id = from; wr.wr_id < to; wr.wr_id++)
		assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
}

static void post_recvs(uint64_t from, uint64_t to)
{
	struct ibv_recv_wr wr = {}, *bad;

	for (wr.wr_id = from; wr.wr_id < to; wr.wr_id++)
		assert_int_equal(pvr_post_recv(qp, &wr, &bad), 0);
}

static void expect_flushed(int num, uint64_t from, uint64_t to)
{
	int i;

	assert_int_equal(num, to - from);
	for (i = 0; i < num; i++) {
		assert_int_equal(wcs[i].wr_id, from + i);
		assert_int_equal(wcs[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wcs[i].qp_num, qp->qp_num);
	}
}

static void event_waits(void)
{
	assert_int_equal(write(fake.async[1], "e", 1), 1);
}

static void program_reads(enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type, .element.cq = fake.send_cq };

	pvr_async_event(&fake.ctx.ibv_ctx.context, &event);
}

TEST(fatal, test_an_idle_device_is_not_asked)
{
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_equal(fake.port_queries, 0);
}

TEST(fatal, test_other_events_kill_nothing)
{
	event_waits();
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_equal(fake.port_queries, 1);
	program_reads(IBV_EVENT_PORT_ERR);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, wcs), 0);
	assert_false(fake.ctx.dead);
}

TEST(fatal, test_a_failed_device_is_noticed)
{
	event_waits();
	fake.fail = EIO;
	assert_true(poll_many(fake.send_cq) < 0);
	assert_true(pvr_poll_cq(fake.recv_cq, 1, wcs) < 0);
}

/* Other errors of QUERY_PORT do not mean that the device is dead. */
TEST(fatal, test_a_question_that_fails_kills_nothing)
{
	event_waits();
	fake.fail = ENOMEM;
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_equal(fake.port_queries, 1);
}

/* uverbs closes the event queue when the driver is removed. */
TEST(fatal, test_a_closed_event_file_is_noticed)
{
	close(fake.async[1]);
	fake.async[1] = dup(fake.async[0]);
	assert_true(poll_many(fake.send_cq) < 0);
	assert_int_equal(fake.port_queries, 0);
}

/* A program that waits for notifications polls once after each. */
TEST(fatal, test_a_notification_of_nothing_is_looked_into)
{
	event_waits();
	fake.fail = EIO;
	pvr_cq_event(fake.recv_cq);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, wcs), 0);
	assert_true(pvr_poll_cq(fake.recv_cq, 1, wcs) < 0);
}

/* The empty poll after CQEs costs no system call. */
TEST(fatal, test_a_notification_of_completions_is_not)
{
	struct pvrdma_cqe cqe = { .qp = to_pvr_qp(qp)->handle };

	event_waits();
	fake_complete(fake.recv_cq, &cqe);
	pvr_cq_event(fake.recv_cq);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, wcs), 1);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, wcs), 0);
	assert_int_equal(fake.port_queries, 0);
}

TEST(fatal, test_what_is_posted_is_flushed)
{
	post_sends(0, 3);
	post_recvs(10, 12);
	program_reads(IBV_EVENT_DEVICE_FATAL);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 0, 3);
	assert_int_equal(wcs[0].opcode & IBV_WC_RECV, 0);
	expect_flushed(pvr_poll_cq(fake.recv_cq, 64, wcs), 10, 12);
	assert_int_equal(wcs[0].opcode, IBV_WC_RECV);
	assert_true(pvr_poll_cq(fake.send_cq, 1, wcs) < 0);
	post_sends(3, 4);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 3, 4);
}

/* Requests that the device completed or had taken are not flushed. */
TEST(fatal, test_completions_from_before_come_first)
{
	struct pvrdma_cqe cqe = { .wr_id = 0, .qp = to_pvr_qp(qp)->handle };

	post_sends(0, 3);
	fake_consume(&to_pvr_qp(qp)->sq, 1);
	fake_complete(fake.send_cq, &cqe);
	program_reads(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 1);
	assert_int_equal(wcs[0].status, IBV_WC_SUCCESS);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 1, 3);
}

/* 16 requests and 8 CQEs: flushed in two parts, across the ring's end. */
TEST(fatal, test_more_than_the_cq_holds_is_flushed_in_parts)
{
	struct pvr_cq *cq = to_pvr_cq(fake.send_cq);

	cq->head = cq->ring_shm->prod_tail = cq->ring_shm->cons_head = 13;
	post_sends(0, 16);
	program_reads(IBV_EVENT_DEVICE_FATAL);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 0, 8);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 8, 16);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

TEST(fatal, test_a_broken_index_flushes_nothing)
{
	post_sends(0, 2);
	to_pvr_qp(qp)->sq.ring_shm->cons_head = 0x1234567;
	program_reads(IBV_EVENT_DEVICE_FATAL);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

/*
 * Polling does not wait for the creation or destruction of a QP, and does not fail while
 * a post is in progress.
 */
TEST(fatal, test_flushing_waits_for_nobody)
{
	post_sends(0, 1);
	program_reads(IBV_EVENT_DEVICE_FATAL);
	pthread_mutex_lock(&fake.ctx.qp_mutex);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 0);
	pthread_mutex_unlock(&fake.ctx.qp_mutex);
	pvr_lock(&to_pvr_qp(qp)->sq.lock);
	expect_flushed(pvr_poll_cq(fake.send_cq, 64, wcs), 0, 1);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 0);
	pvr_unlock(&to_pvr_qp(qp)->sq.lock);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

TEST(fatal, test_lazy_calls_see_the_same)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
	struct ibv_cq_ex *ex = pvr_create_cq_ex(&fake.ctx.ibv_ctx.context, &attr);
	struct ibv_poll_cq_attr no_attr = {};

	post_sends(0, 2);
	qp->send_cq = ibv_cq_ex_to_cq(ex);
	program_reads(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 1);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(ibv_start_poll(ex, &no_attr), EIO);
	qp->send_cq = fake.send_cq;
	pvr_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* IBTA 11.6.3.2: a CQ in error can only be destroyed. Its CQEs are still readable. */
TEST(fatal, test_a_cq_in_error_ends_with_an_error)
{
	struct pvrdma_cqe cqe = { .wr_id = 5, .qp = to_pvr_qp(qp)->handle };

	fake_complete(fake.send_cq, &cqe);
	program_reads(IBV_EVENT_CQ_ERR);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 1);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 64, wcs), 0);
}
