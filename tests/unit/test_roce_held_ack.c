// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ACKs that wait for the answer of the guest, and leave with it. */
#include "core/objects.h"
#include "path/wire/internal.h"
#include "segment.h"

#define LEN 8u

/* Workers poll from here on. */
T_SETUP(polled, rc_connected)
{
	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		fg_segment_host(env->segment, i)->polls = true;
	fg_run(env->host);
}

/* Return: the frames that the other host sends then. */
static uint64_t write_to_b(struct t_env *env)
{
	uint64_t before = fg_segment_sent(env->segment, 1);

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LEN);
	fg_run(env->host);
	return fg_segment_sent(env->segment, 1) - before;
}

/* Return: the frames that this host sends. */
static uint64_t answer(struct t_env *env)
{
	uint64_t before = fg_segment_sent(env->segment, 1);

	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->a.mr, LEN, LEN);
	fg_run(env->host);
	return fg_segment_sent(env->segment, 1) - before;
}

static bool is_done(struct fg_end *end)
{
	struct pvrdma_cqe cqe;

	return fg_cq_poll(&end->scq, &cqe) && cqe.status == PVRDMA_WC_SUCCESS;
}

/* b has answered once, so that it holds the next ACK. */
T_SETUP(answering, polled)
{
	assert_int_equal(write_to_b(env), 1);
	assert_true(is_done(&env->a));
	assert_int_equal(answer(env), 1);
	assert_true(is_done(&env->b));
}

TEST(polled, test_ack_is_sent_at_once_to_a_guest_that_does_not_answer)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_to_b(env), 1);
		assert_true(is_done(&env->a));
	}
}

TEST(answering, test_ack_waits_for_the_answer)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_to_b(env), 0);
		assert_false(is_done(&env->a));
		/* a holds the ACK of the last answer, too. */
		assert_int_equal(is_done(&env->b), i > 0);
		assert_int_equal(answer(env), 2);
		assert_true(is_done(&env->a));
	}
}

TEST(answering, test_ack_without_an_answer_is_sent_soon_and_the_next_one_at_once)
{
	assert_int_equal(write_to_b(env), 0);
	fg_advance(env->host, PVR_ETH_HOLD_NS - 1);
	assert_false(is_done(&env->a));
	fg_advance(env->host, 1);
	assert_true(is_done(&env->a));
	assert_int_equal(write_to_b(env), 1);
	assert_true(is_done(&env->a));
}

TEST(answering, test_late_answer_is_not_expected_again)
{
	assert_int_equal(write_to_b(env), 0);
	fg_advance(env->host, PVR_ETH_HOLD_NS);
	assert_int_equal(write_to_b(env), 1);
	fg_advance(env->host, PVR_ETH_HOLD_NS);
	assert_int_equal(answer(env), 1);
	assert_int_equal(write_to_b(env), 1);
}

TEST(answering, test_second_request_sends_the_held_ack)
{
	struct pvrdma_cqe cqe;

	assert_int_equal(write_to_b(env), 0);
	assert_int_equal(write_to_b(env), 1);
	assert_true(fg_cq_poll(&env->a.scq, &cqe));
	assert_true(fg_cq_poll(&env->a.scq, &cqe));
}

TEST(answering, test_large_request_gets_its_ack_at_once)
{
	uint64_t before = fg_segment_sent(env->segment, 1);

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 2 * PVR_ETH_HOLD_BYTES);
	fg_run(env->host);
	assert_int_equal(fg_segment_sent(env->segment, 1) - before, 1);
	assert_true(is_done(&env->a));
}

/* It would notice the answer late. */
TEST(answering, test_worker_that_sleeps_holds_no_ack)
{
	struct fg_host *host = fg_segment_host(env->segment, 1);

	host->polls = false;
	pvr_engine_enable_doorbells(host->engine, 0);
	assert_int_equal(write_to_b(env), 1);
	assert_true(is_done(&env->a));
}

TEST(answering, test_reset_drops_the_held_ack)
{
	uint64_t before;

	assert_int_equal(write_to_b(env), 0);
	before = fg_segment_sent(env->segment, 1);
	assert_int_equal(fg_qp_to_reset(&env->b.qp), 0);
	fg_advance(env->host, 2 * PVR_ETH_HOLD_NS);
	assert_int_equal(fg_segment_sent(env->segment, 1), before);
}
