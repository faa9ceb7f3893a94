// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <unistd.h>

#include "fake_kernel.h"

#define MANY 100000 /* polls: enough for several checks of the clock */

static struct ibv_qp *qp;
static struct ibv_wc wcs[64];

static void fatal_begin(void)
{
	fake.ctx.features = PVR_EXT_NO_POLL_DB;
	qp = fake_qp(IBV_QPT_RC, 16, 1, 4, 1);
}

static int poll_many(struct ibv_cq *cq)
{
	int i, num = 0;

	for (i = 0; i < MANY && !num; i++)
		num = pvr_poll_cq(cq, 64, wcs);
	return num;
}

static void post_sends(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		FAKE_SEND(qp, 0, .wr_id = from, .opcode = IBV_WR_SEND);
}

static void post_recvs(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		FAKE_RECV(qp, 0, .wr_id = from);
}

/* Polls, and checks that the requests are flushed. */
static void expect_flushed(struct ibv_cq *cq, uint64_t from, uint64_t to)
{
	uint64_t i;

	assert_int_equal(pvr_poll_cq(cq, 64, wcs), to - from);
	for (i = 0; i < to - from; i++) {
		assert_int_equal(wcs[i].wr_id, from + i);
		assert_int_equal(wcs[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wcs[i].qp_num, qp->qp_num);
	}
}

static void write_event(void)
{
	assert_int_equal(write(fake.async[1], "e", 1), 1);
}

static void report(enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type, .element.cq = fake.send_cq };

	pvr_async_event(fake.ibctx, &event);
}

TEST(fatal, test_poll_without_events_does_not_query_the_device)
{
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_equal(fake.port_queries, 0);
}

TEST(fatal, test_other_events_do_not_end_the_device)
{
	write_event();
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_not_equal(fake.port_queries, 0);
	report(IBV_EVENT_PORT_ERR);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, wcs), 0);
	assert_false(fake.ctx.dead);
}

TEST(fatal, test_poll_finds_a_failed_device)
{
	write_event();
	fake.fail = EIO;
	assert_true(poll_many(fake.send_cq) < 0);
	assert_true(pvr_poll_cq(fake.recv_cq, 1, wcs) < 0);
}

/* Other errors of QUERY_PORT do not mean that the device is dead. */
TEST(fatal, test_failed_query_does_not_end_the_device)
{
	write_event();
	fake.fail = ENOMEM;
	assert_int_equal(poll_many(fake.send_cq), 0);
	assert_int_not_equal(fake.port_queries, 0);
}

/* uverbs closes the event queue when the driver is removed. */
TEST(fatal, test_poll_finds_a_closed_event_file)
{
	close(fake.async[1]);
	fake.async[1] = dup(fake.async[0]);
	assert_true(poll_many(fake.send_cq) < 0);
	assert_int_equal(fake.port_queries, 0);
}

/* A program that waits for notifications polls once after each. */
TEST(fatal, test_empty_poll_after_a_notification_queries_the_device)
{
	write_event();
	fake.fail = EIO;
	pvr_cq_event(fake.recv_cq);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, wcs), 0);
	assert_true(pvr_poll_cq(fake.recv_cq, 1, wcs) < 0);
}

/* The empty poll after CQEs costs no system call. */
TEST(fatal, test_empty_poll_after_completions_does_not_query_the_device)
{
	write_event();
	FAKE_COMPLETE(fake.recv_cq, .qp = fake_handle(qp), .opcode = PVRDMA_WC_RECV);
	pvr_cq_event(fake.recv_cq);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, wcs), 1);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, wcs), 0);
	assert_int_equal(fake.port_queries, 0);
}

TEST(fatal, test_posted_requests_are_flushed)
{
	post_sends(0, 3);
	post_recvs(10, 12);
	report(IBV_EVENT_DEVICE_FATAL);
	expect_flushed(fake.send_cq, 0, 3);
	assert_int_equal(wcs[0].opcode & IBV_WC_RECV, 0);
	expect_flushed(fake.recv_cq, 10, 12);
	assert_int_equal(wcs[0].opcode, IBV_WC_RECV);
	assert_true(pvr_poll_cq(fake.send_cq, 1, wcs) < 0);
	post_sends(3, 4);
	expect_flushed(fake.send_cq, 3, 4);
}

TEST(fatal, test_completions_of_the_device_come_before_flushed_ones)
{
	post_sends(0, 3);
	fake_take(fake_sq(qp), 1);
	FAKE_CQE(fake.send_cq, .wr_id = 0, .qp = fake_handle(qp));
	report(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 1);
	assert_int_equal(wcs[0].status, IBV_WC_SUCCESS);
	expect_flushed(fake.send_cq, 1, 3);
}

/* A program that waits for the completions of all its requests ends. */
TEST(fatal, test_requests_that_the_device_has_taken_are_flushed)
{
	post_sends(0, 3);
	fake_take(fake_sq(qp), 2);
	post_recvs(10, 12);
	fake_take(fake_rq(qp), 1);
	report(IBV_EVENT_DEVICE_FATAL);
	expect_flushed(fake.send_cq, 0, 3);
	expect_flushed(fake.recv_cq, 10, 12);
	post_sends(3, 19);
	expect_flushed(fake.send_cq, 3, 11);
}

/* 16 requests and 8 CQEs: flushed in two parts, across the ring's end. */
TEST(fatal, test_more_requests_than_cqes_are_flushed_in_parts)
{
	fake_start_at(fake.send_cq, 13);
	post_sends(0, 16);
	report(IBV_EVENT_DEVICE_FATAL);
	expect_flushed(fake.send_cq, 0, 8);
	expect_flushed(fake.send_cq, 8, 16);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

/*
 * The device is alive: it takes requests and completes them while the provider flushes them.
 * Each completes once, and the provider writes nothing into the device's rings.
 */
TEST(fatal, test_flush_does_not_race_a_live_device)
{
	struct pvr_cq *cq = to_pvr_cq(fake.send_cq);
	struct pvr_ring_shm *ring_shm = cq->ring_shm, *sq_shm = fake_sq(qp)->ring_shm;
	struct pvr_cqe *cqes_shm = cq->cqes_shm;

	post_sends(0, 12);
	report(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 3, wcs), 3);
	assert_int_equal(ring_shm->prod_tail | ring_shm->cons_head, 0);
	assert_int_equal(sq_shm->cons_head, 0);
	cqes_shm[0] = (struct pvr_cqe){ .qp = fake_handle(qp), .wr_id = 0 };
	cqes_shm[1] = (struct pvr_cqe){ .qp = fake_handle(qp), .wr_id = 5 };
	ring_shm->prod_tail = 2;
	fake_take(fake_sq(qp), 6);
	expect_flushed(fake.send_cq, 3, 8);
	expect_flushed(fake.send_cq, 8, 12);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
	assert_int_equal(ring_shm->cons_head, 0);
	assert_int_equal(sq_shm->cons_head, 6);
	fake.ctx.features |= PVR_EXT_RESIZE;
	assert_int_equal(pvr_resize_cq(fake.send_cq, 64), EIO);
}

TEST(fatal, test_destroyed_qp_of_a_dead_device_is_purged)
{
	struct ibv_qp *other = fake_qp(IBV_QPT_RC, 2, 1, 1, 1);

	post_sends(0, 2);
	assert_int_equal(fake_post_send(other, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND }), 0);
	report(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 1, wcs), 1);
	assert_int_equal(pvr_destroy_qp(other), 0);
	expect_flushed(fake.send_cq, 1, 2);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

TEST(fatal, test_a_broken_index_flushes_nothing)
{
	post_sends(0, 2);
	fake_sq(qp)->ring_shm->prod_tail = 0x1234567;
	report(IBV_EVENT_DEVICE_FATAL);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

/* Polling does not fail while a post is in progress. */
TEST(fatal, test_flushing_does_not_wait_for_locks)
{
	post_sends(0, 1);
	report(IBV_EVENT_DEVICE_FATAL);
	pvr_lock(&fake_sq(qp)->lock);
	expect_flushed(fake.send_cq, 0, 1);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 0);
	pvr_unlock(&fake_sq(qp)->lock);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
}

TEST(fatal, test_lazy_calls_flush_too)
{
	struct ibv_cq_ex *ex = FAKE_CQ_EX(.cqe = 8);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = ibv_cq_ex_to_cq(ex),
		.cap = { .max_send_wr = 2 },
	};
	struct ibv_poll_cq_attr no_attr = {};

	qp = fake_create_qp(&attr);
	post_sends(0, 2);
	report(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 1);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(ibv_start_poll(ex, &no_attr), EIO);
}

/* IBTA 11.6.3.2: a CQ in error can only be destroyed. Its CQEs are still readable. */
TEST(fatal, test_a_cq_in_error_ends_with_an_error)
{
	FAKE_COMPLETE(fake.send_cq, .wr_id = 5, .qp = fake_handle(qp));
	report(IBV_EVENT_CQ_ERR);
	assert_int_equal(pvr_poll_cq(fake.send_cq, 64, wcs), 1);
	assert_true(pvr_poll_cq(fake.send_cq, 64, wcs) < 0);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 64, wcs), 0);
}
