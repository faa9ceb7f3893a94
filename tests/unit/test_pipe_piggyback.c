// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ACKs of a polling host: they wait for the guest's answer, and are piggybacked with it.
 */
#include "hosts.h"
#include "fg_malformed.h"
#include "path/pipe/rsp_conn.h"

#define SOON 8 /* steps: polls of a worker, and the way back */
#define LATER 300
#define FRAGMENT 64u

TEST_EXT(PVR_EXT_DB_SUPPRESS)

static void poll_both(struct t_env *env, bool polls)
{
	for (unsigned int i = 0; i < 2; i++)
		fg_wire_host(env->wire, i)->polls = polls;
}

T_SETUP_HOSTS(polling, 2)
{
	hosts_connect(env, &env->a, &env->b, 1);
	poll_both(env, true);
}

/* From one half of the buffer to the other one's, until it is there. */
static void write_to(struct t_env *env, struct fg_end *from, struct fg_end *to, uint8_t value)
{
	const uint8_t *there = (uint8_t *)to->buf.va + 2048;
	uint32_t steps = 0;

	memset(from->buf.va, value, FRAGMENT);
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, value, 0, &to->mr, 2048, FRAGMENT);
	while (there[FRAGMENT - 1] != value) {
		fg_wire_step(env->wire);
		assert_true(steps++ < SOON);
	}
}

/* Return: whether @host has received a request that it has not acknowledged. */
static bool owes(struct t_env *env, unsigned int host)
{
	const struct pvr_host *peer = fg_wire_remote_host(env->wire, host, 1 - host);

	return LIST_FIRST(&peer->ins)->acks.ack_pending;
}

static uint32_t steps_until_done(struct t_env *env, const struct fg_end *end)
{
	uint32_t steps = 0;

	while (!fg_cq_pending(&end->scq) && steps < 2 * LATER) {
		fg_wire_step(env->wire);
		steps++;
	}
	return steps;
}

static void expect_done_soon(struct t_env *env, struct fg_end *end, uint8_t value)
{
	assert_in_range(steps_until_done(env, end), 0, SOON);
	expect_written(end, value);
}

TEST(polling, test_acknowledgement_waits_for_no_answer_that_does_not_come)
{
	write_to(env, &env->a, &env->b, 1);
	assert_true(owes(env, 1));
	assert_in_range(steps_until_done(env, &env->a), 2, SOON);
	assert_false(owes(env, 1));
	expect_written(&env->a, 1);
}

TEST(polling, test_responder_without_polling_acknowledges_at_once)
{
	poll_both(env, false);
	for (unsigned int i = 0; i < 2; i++)
		pvr_engine_enable_doorbells(fg_wire_host(env->wire, i)->engine, 0);
	write_to(env, &env->a, &env->b, 1);
	assert_false(owes(env, 1));
	await_written(&env->a, 1);
}

TEST(polling, test_answer_takes_the_acknowledgement_along)
{
	/* So that it needs no doorbell. */
	write_to(env, &env->b, &env->a, 1);
	expect_done_soon(env, &env->b, 1);
	for (uint8_t i = 2; i < 40; i++) {
		write_to(env, &env->a, &env->b, i);
		write_to(env, &env->b, &env->a, i);
		/* In the same bytes as the answer, and its own is still to come. */
		assert_true(owes(env, 1));
		fg_wire_step(env->wire);
		expect_written(&env->a, i);
		expect_done_soon(env, &env->b, i);
	}
}

TEST(polling, test_piggyback_ack_is_sent_again_by_its_own_connection)
{
	uint32_t steps = 0;

	write_to(env, &env->a, &env->b, 1);
	write_to(env, &env->b, &env->a, 2);
	fg_wire_step(env->wire);
	expect_written(&env->a, 1);
	while (owes(env, 1)) {
		fg_wire_step(env->wire);
		assert_true(steps++ < LATER);
	}
	assert_true(steps > SOON);
	await_written(&env->b, 2);
	expect_no_cqe(&env->a.scq);
}

TEST(polling, test_traffic_that_never_ends_is_acknowledged_all_the_same)
{
	uint32_t acked = 0;

	for (uint32_t i = 0; i < LATER; i++) {
		uint8_t value = (uint8_t)(1 + i % 100);

		write_to(env, &env->a, &env->b, value);
		write_to(env, &env->b, &env->a, value);
		expect_done_soon(env, &env->a, value);
		expect_done_soon(env, &env->b, value);
		acked += !owes(env, 1);
	}
	assert_true(acked > 0);
}

/* The connection that it went along with breaks. */
TEST(polling, test_piggyback_ack_may_get_lost)
{
	write_to(env, &env->a, &env->b, 1);
	memset(env->b.buf.va, 2, FRAGMENT);
	fg_wire_delay(env->wire, FG_MS);
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->a.mr, 2048, FRAGMENT);
	fg_host_step(fg_wire_host(env->wire, 1));
	assert_true(fg_wire_in_flight(env->wire, 1, 0) > 0);
	fg_wire_cut(env->wire, 1, 0, 0);
	fg_wire_delay(env->wire, 0);
	assert_true(owes(env, 1));
	assert_in_range(steps_until_done(env, &env->a), SOON, LATER);
	expect_written(&env->a, 1);
	fg_wire_mend(env->wire, 1, 0, 0);
	await_written(&env->b, 2);
}

/* Nothing but good news is piggybacked. */
TEST(polling, test_piggyback_nak_is_refused)
{
	struct fg_malformed *malformed = fg_malformed_create_piggyback(env->wire, 1, 0);
	struct pvr_frame_ack ack = { .frame = FG_FRAME(PVR_FRAME_ACK, sizeof(ack)),
				     .syndrome = PVR_FRAME_SYN_ACK };

	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &ack, sizeof(ack));
	assert_false(fg_malformed_is_closed(malformed));
	ack.syndrome = PVR_FRAME_SYN_NAK;
	fg_malformed_send(malformed, &ack, sizeof(ack));
	assert_true(fg_malformed_is_closed(malformed));
}
