// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams to other hosts whose queue pair is destroyed as soon as they are posted. */
#include "hosts.h"

#define LEN 100u
#define KEPT 64u
#define KEPT_BYTES (64u << 10)

static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };

TEST_EXT(PVR_EXT_MCAST)

/* Three hosts with a guest each; b's GID is not in the cache of the first one. */
T_SETUP_HOSTS(hosts, 3)
{
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
	hosts_hide_b(env);
}

static void recv_many(struct fg_end *end, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		t_recv(end, i, 0, 4096 + GRH);
}

static void send_many(struct fg_end *from, const struct fg_end *to, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		t_send_ud(from, to, i, 0, LEN + i);
}

/* @num datagrams of LEN, LEN + 1, .. bytes to b, and the queue pair is gone before anything has run. */
static void send_and_leave(struct t_env *env, unsigned int num)
{
	recv_many(&env->b, num);
	send_many(&env->a, &env->b, num);
	expect_ok(fg_qp_destroy(&env->a.qp));
}

static void expect_in_order(struct fg_end *end, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		expect_recv(&end->rcq, i, LEN + i + GRH);
	expect_no_cqe(&end->rcq);
}

/* The directory finds b, and then so many datagrams arrive. */
static void expect_after_reply(struct t_env *env, unsigned int num)
{
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, 10 * FG_MS);
	expect_in_order(&env->b, num);
}

TEST(hosts, test_datagrams_are_sent_when_the_destination_is_known)
{
	send_and_leave(env, 20);
	fg_settle(env->host, 100 * FG_MS);
	expect_no_cqe(&env->b.rcq);
	expect_after_reply(env, 20);
}

TEST(hosts, test_a_queue_pair_that_waits_already_leaves_them_too)
{
	recv_many(&env->b, 20);
	send_many(&env->a, &env->b, 20);
	fg_settle(env->host, 50 * FG_MS);
	expect_ok(fg_qp_destroy(&env->a.qp));
	expect_after_reply(env, 20);
}

TEST(hosts, test_a_connection_is_waited_for)
{
	fg_wire_directory(env->wire, true);
	fg_wire_cut(env->wire, 0, 1, 0);
	send_and_leave(env, 2);
	fg_settle(env->host, 50 * FG_MS);
	expect_no_cqe(&env->b.rcq);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_settle(env->host, 10 * FG_MS);
	expect_in_order(&env->b, 2);
}

/* The destination becomes known between those of one queue pair and those of the next. */
TEST(hosts, test_datagrams_wait_behind_older_ones_to_their_destination)
{
	struct fg_end second;

	t_open_ready(&second, env->g[0], PVR_QPT_UD);
	recv_many(&env->b, 4);
	send_many(&env->a, &env->b, 2);
	expect_ok(fg_qp_destroy(&env->a.qp));
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	for (unsigned int i = 2; i < 4; i++)
		t_send_ud(&second, &env->b, i, 0, LEN + i);
	expect_ok(fg_qp_destroy(&second.qp));
	fg_settle(env->host, 10 * FG_MS);
	expect_in_order(&env->b, 4);
}

/* Datagrams with a resolved destination are sent at once, to the same and to other hosts. */
TEST(hosts, test_destroying_sends_what_was_posted)
{
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	send_and_leave(env, 3);
	fg_settle(env->host, 10 * FG_MS);
	expect_in_order(&env->b, 3);
}

/* The guest gets its memory back, and may use it for something else. */
TEST(hosts, test_payload_is_that_of_when_it_was_destroyed)
{
	memset(env->a.buf.va, 0x5a, LEN);
	send_and_leave(env, 1);
	memset(env->a.buf.va, 0xff, LEN);
	expect_after_reply(env, 1);
	for (unsigned int i = 0; i < LEN; i++)
		assert_int_equal(env->b.buf.va[GRH + i], 0x5a);
}

TEST(hosts, test_datagrams_do_not_wait_for_long)
{
	unsigned int asked;

	send_and_leave(env, 2);
	fg_settle(env->host, 210 * FG_MS);
	asked = fg_wire_resolves(env->wire, 0);
	fg_settle(env->host, 100 * FG_MS);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked);
	expect_after_reply(env, 0);
}

/*
 * After a failed wait the next datagrams do not wait, neither in the linger queue nor in
 * the ring.
 */
TEST(hosts, test_after_a_wait_in_vain_nothing_is_kept)
{
	recv_many(&env->b, 3);
	t_send_ud(&env->a, &env->b, 1, 0, LEN);
	fg_settle(env->host, 210 * FG_MS);
	expect_sent(&env->a, 1);
	send_and_leave(env, 2);
	expect_after_reply(env, 0);
}

TEST(hosts, test_no_more_than_64_are_kept)
{
	struct fg_end second;

	t_open_ready(&second, env->g[0], PVR_QPT_UD);
	send_and_leave(env, KEPT - 2);
	for (unsigned int i = 0; i < 10; i++)
		t_send_ud(&second, &env->b, i, 0, 8);
	expect_ok(fg_qp_destroy(&second.qp));
	expect_after_reply(env, KEPT - 2);
	assert_int_equal(fg_stats(env->g[1]).ud_dropped, 2); /* for want of a receive request */
}

TEST(hosts, test_no_more_than_64_kib_are_kept)
{
	const unsigned int num = 20;

	recv_many(&env->b, num);
	for (unsigned int i = 0; i < num; i++)
		t_send_ud(&env->a, &env->b, i, 0, 4096);
	expect_ok(fg_qp_destroy(&env->a.qp));
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, 10 * FG_MS);
	assert_int_equal(fg_cq_drain(&env->b.rcq), KEPT_BYTES / 4096);
}

/* As many as there is room for, and they get lost; then there is a new queue pair. */
static void fill(struct t_env *env, uint32_t len)
{
	for (unsigned int i = 0; i < KEPT; i++)
		t_send_ud(&env->a, &env->b, i, 0, len);
	expect_ok(fg_qp_destroy(&env->a.qp));
	fg_settle(env->host, 300 * FG_MS);
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
}

TEST(hosts, test_room_is_there_again_afterwards)
{
	fill(env, 4096);
	fill(env, 8);
	send_and_leave(env, 20);
	expect_after_reply(env, 20);
}

TEST(hosts, test_reset_of_the_adapter_drops_them)
{
	unsigned int asked;

	send_and_leave(env, 2);
	asked = fg_wire_resolves(env->wire, 0);
	pvr_adapter_reset(env->g[0]->adapter);
	/* No datagram is left that needs the destination. */
	fg_settle(env->host, 100 * FG_MS);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked);
	expect_after_reply(env, 0);
}

TEST(hosts, test_link_that_is_down_drops_them)
{
	send_and_leave(env, 2);
	pvr_adapter_set_link(env->g[0]->adapter, false);
	fg_settle(env->host, 10 * FG_MS);
	pvr_adapter_set_link(env->g[0]->adapter, true);
	expect_after_reply(env, 0);
}

/* A driver has written an invalid index to its ring: the destroyed QP gets no event. */
TEST(hosts, test_wild_index_is_no_event)
{
	env->a.qp.ring->tx.prod_tail = 0x7fffffff;
	expect_ok(fg_qp_destroy(&env->a.qp));
	await_no_event(env->g[0]);
}

/* --------------------------------------------------------------------- multicast */

static void join(struct fg_end *end, unsigned int num)
{
	expect_ok(fg_qp_attach(&end->qp, group));
	recv_many(end, num);
}

static void send_to_group_and_leave(struct t_env *env, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		t_send_group(&env->a, group, i, 0, LEN + i);
	expect_ok(fg_qp_destroy(&env->a.qp));
}

/*
 * A second member at the sender's host, which need not wait; and one at each other host.
 */
TEST(hosts, test_all_members_get_them_once)
{
	struct fg_end near, c;

	t_open_ready(&near, env->g[0], PVR_QPT_UD);
	t_open_ready(&c, env->g[2], PVR_QPT_UD);
	join(&near, 20);
	join(&env->b, 20);
	join(&c, 20);
	send_to_group_and_leave(env, 20);
	fg_settle(env->host, 20 * FG_MS);
	expect_in_order(&near, 20);
	expect_no_cqe(&c.rcq);
	expect_after_reply(env, 20);
	expect_in_order(&c, 20);
	expect_no_cqe(&near.rcq);
}

TEST(hosts, test_group_gets_them_in_order_when_it_becomes_reachable)
{
	struct fg_end second;

	t_open_ready(&second, env->g[0], PVR_QPT_UD);
	join(&env->b, 4);
	send_to_group_and_leave(env, 2);
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	for (unsigned int i = 2; i < 4; i++)
		t_send_group(&second, group, i, 0, LEN + i);
	expect_ok(fg_qp_destroy(&second.qp));
	fg_settle(env->host, 10 * FG_MS);
	expect_in_order(&env->b, 4);
}

TEST(hosts, test_members_that_can_be_reached_get_them_in_the_end)
{
	struct fg_end c;

	t_open_ready(&c, env->g[2], PVR_QPT_UD);
	fg_wire_directory(env->wire, true);
	join(&env->b, 2);
	join(&c, 2);
	fg_wire_cut(env->wire, 0, 1, 0);
	send_to_group_and_leave(env, 2);
	fg_settle(env->host, 190 * FG_MS);
	expect_no_cqe(&c.rcq);
	fg_settle(env->host, 20 * FG_MS);
	expect_in_order(&c, 2);
	expect_no_cqe(&env->b.rcq);
}
