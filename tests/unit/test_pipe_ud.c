// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams between hosts: what differs from those on one host. See also the -wire tests. */
#include "gid/fabric.h"
#include "hosts.h"
#include "fg_malformed.h"
#include "path/pipe/frame.h"
#include "rdma/ud.h"

#define LEN 256u /* of a datagram, as a MAD */

static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };

TEST_EXT(PVR_EXT_MCAST)

static const struct type {
	const char *label;
	enum pvr_qp_type type;
} types[] = {
	{ "UD", PVR_QPT_UD },
	{ "MAD", PVR_QPT_GSI },
};

/* Three hosts with a guest each: a's, b's and one more. The ends are UD but for rows of types[]. */
T_SETUP_HOSTS(hosts, 3, .buffer = 65536)
{
	const struct type *row = t_row();

	t_open_ready(&env->a, env->g[0], row ? row->type : PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], row ? row->type : PVR_QPT_UD);
}

/* The cache of a's host does not have b's GID. */
T_SETUP(hidden, hosts)
{
	hosts_hide_b(env);
}

static void post_group(struct fg_end *from, uint64_t wr_id)
{
	t_send_group(from, group, wr_id, 0, 100);
}

static void send_group(struct t_env *env, struct fg_end *from)
{
	post_group(from, 99);
	await_sent(from, 99);
}

/* A datagram, or a MAD, from a to b. */
static void post(struct t_env *env, uint64_t wr_id)
{
	t_recv(&env->b, wr_id, 0, 400);
	t_send_ud(&env->a, &env->b, wr_id, 0, LEN);
	fg_run(env->host);
}

static void ping(struct t_env *env, uint64_t wr_id)
{
	post(env, wr_id);
	expect_sent(&env->a, wr_id);
}

/* The datagram is not sent yet. */
static void ping_waits(struct t_env *env, uint64_t wr_id)
{
	post(env, wr_id);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
}

/* The datagram of ping_waits() is. */
static void expect_ping(struct t_env *env, uint64_t wr_id)
{
	expect_sent(&env->a, wr_id);
	expect_recv(&env->b.rcq, wr_id, LEN + GRH);
	expect_no_cqe(&env->b.rcq);
}

TEST_CASES(hidden, test_unknown_destination_is_asked_for_and_waited_for, types)
{
	unsigned int asked = fg_wire_resolves(env->wire, 0);

	ping_waits(env, 1);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked + 1);
	/* Not each time that it is tried again; but once more after a while. */
	fg_settle(env->host, 8 * FG_MS);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked + 1);
	fg_settle(env->host, 8 * FG_MS);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked + 2);
	expect_no_cqe(&env->a.scq);
	fg_wire_directory(env->wire, true);
	/* Without advancing the clock: the reply wakes the waiting QP. */
	fg_run(env->host);
	expect_ping(env, 1);
}

TEST(hidden, test_all_that_waits_is_sent_in_order)
{
	for (unsigned int i = 0; i < 20; i++) {
		t_recv(&env->b, i, 0, 200);
		t_send_ud(&env->a, &env->b, i, 0, 20 + i);
	}
	fg_settle(env->host, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	for (unsigned int i = 0; i < 20; i++) {
		expect_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 20 + i + GRH);
	}
}

/* A sender of many datagrams to an unknown GID does not wait for each of them. */
TEST(hidden, test_waits_in_vain_become_rare)
{
	const unsigned int pause_ms[] = { 1000, 2000, 4000, 8000, 8000 };

	for (unsigned int i = 0; i < COUNT(pause_ms); i++) {
		ping_waits(env, 1);
		fg_settle(env->host, 190 * FG_MS);
		expect_no_cqe(&env->a.scq);
		fg_settle(env->host, 15 * FG_MS);
		expect_sent(&env->a, 1);
		expect_state(&env->a, PVR_QPS_RTS);
		/* All others get lost at once. */
		ping(env, 2);
		fg_advance(env->host, (pause_ms[i] - 50) * FG_MS);
		ping(env, 3);
		expect_no_cqe(&env->b.rcq);
		fg_advance(env->host, 100 * FG_MS);
	}
	ping_waits(env, 4);
	fg_wire_directory(env->wire, true);
	await_sent(&env->a, 4);
	assert_int_equal(fg_cq_drain(&env->b.rcq), 1);
	/* That one was worth it, and so may be the next. */
	fg_wire_cut(env->wire, 0, 1, 0);
	ping_waits(env, 5);
}

TEST(hosts, test_absent_gid_is_not_queried_again)
{
	unsigned int asked;

	fg_gid_from_ipv4(env->b.gid, 10, 9, 9, 9);
	t_send_ud(&env->a, &env->b, 1, 0, 100);
	fg_settle(env->host, 5 * FG_MS);
	expect_sent(&env->a, 1);
	asked = fg_wire_resolves(env->wire, 0);
	fg_advance(env->host, FG_SEC);
	ping(env, 2);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked);
}

TEST_CASES(hosts, test_connection_is_wanted_and_waited_for, types)
{
	fg_wire_cut(env->wire, 0, 1, 0);
	ping_waits(env, 1);
	assert_true(fg_wire_wants(env->wire, 0) > 0);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_run(env->host);
	expect_ping(env, 1);
}

/* Its memory, its ring and its worker are free at once. */
TEST(hidden, test_queue_pair_that_waits_can_be_reset_and_destroyed)
{
	ping_waits(env, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	await_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_ok(fg_qp_destroy(&env->a.qp));
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->b.rcq);
}

TEST_CASES(hosts, test_connection_is_waited_for_200_ms_only, types)
{
	fg_wire_cut(env->wire, 0, 1, 0);
	post(env, 1);
	fg_settle(env->host, 190 * FG_MS);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, 30 * FG_MS);
	expect_sent(&env->a, 1);
	/* Later datagrams do not wait for each failed connection. */
	ping(env, 2);
	fg_advance(env->host, 2 * FG_SEC);
	ping_waits(env, 3);
	/* Nor for an absent GID. */
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_settle(env->host, 10 * FG_MS);
	expect_sent(&env->a, 3);
	fg_gid_from_ipv4(env->b.gid, 10, 9, 9, 9);
	fg_advance(env->host, 2 * FG_SEC);
	post(env, 4);
	fg_settle(env->host, 10 * FG_MS);
	expect_sent(&env->a, 4);
}

/* All three are in the group, and have receives for @num. */
static void join_all(struct t_env *env, struct fg_end *c, unsigned int num)
{
	struct fg_end *const ends[] = { &env->a, &env->b, c };

	t_open_ready(c, env->g[2], PVR_QPT_UD);
	for (unsigned int i = 0; i < COUNT(ends); i++) {
		expect_ok(fg_qp_attach(&ends[i]->qp, group));
		for (unsigned int j = 0; j < num; j++)
			t_recv(ends[i], j, 0, 200);
	}
}

static void expect_all(struct t_env *env, struct fg_end *c, unsigned int num)
{
	struct fg_end *const ends[] = { &env->a, &env->b, c };

	for (unsigned int i = 0; i < COUNT(ends); i++) {
		for (unsigned int j = 0; j < num; j++)
			expect_recv(&ends[i]->rcq, j, 100 + GRH);
		expect_no_cqe(&ends[i]->rcq);
	}
}

TEST(hosts, test_group_reaches_each_host_once)
{
	struct fg_end c;

	join_all(env, &c, 2);
	send_group(env, &env->b);
	/* No host forwards the datagram: one copy for each member. */
	expect_all(env, &c, 1);
	/* A host without members gets no frame. */
	expect_ok(fg_qp_detach(&c.qp, group));
	send_group(env, &env->b);
	expect_recv(&env->a.rcq, 1, 100 + GRH);
	expect_no_cqe(&c.rcq);
	assert_int_equal(fg_stats(env->g[2]).ud_dropped, 0);
}

/*
 * As a program that sends all at once, to a group without earlier sends from this host.
 */
TEST(hosts, test_first_datagrams_to_a_group_arrive)
{
	struct fg_end c;

	fg_wire_directory(env->wire, false);
	join_all(env, &c, 20);
	for (unsigned int i = 0; i < 20; i++)
		post_group(&env->a, i);
	fg_settle(env->host, 100 * FG_MS);
	expect_no_cqe(&env->a.scq);
	/* Local members need not wait. */
	assert_int_equal(fg_cq_pending(&env->a.rcq), 1);
	expect_no_cqe(&c.rcq);
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	for (unsigned int i = 0; i < 20; i++)
		expect_sent(&env->a, i);
	expect_all(env, &c, 20);
}

TEST(hosts, test_group_waits_until_all_hosts_can_be_reached)
{
	struct fg_end c;

	join_all(env, &c, 2);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_cut(env->wire, 0, 2, 0);
	post_group(&env->a, 0);
	fg_run(env->host);
	/* Both connections are made at the same time. */
	assert_true(fg_wire_wants(env->wire, 0) >= 2);
	fg_wire_mend(env->wire, 0, 2, 0);
	fg_settle(env->host, 10 * FG_MS);
	expect_no_cqe(&c.rcq);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_run(env->host);
	post_group(&env->a, 1);
	fg_run(env->host);
	expect_all(env, &c, 2);
}

TEST(hosts, test_members_that_can_be_reached_wait_for_no_others_for_long)
{
	struct fg_end c;

	join_all(env, &c, 2);
	fg_wire_cut(env->wire, 0, 1, 0);
	post_group(&env->a, 0);
	fg_settle(env->host, 190 * FG_MS);
	expect_no_cqe(&c.rcq);
	fg_settle(env->host, 20 * FG_MS);
	expect_recv(&c.rcq, 0, 100 + GRH);
	post_group(&env->a, 1);
	await_recv(&c.rcq, 1, 100 + GRH);
	expect_no_cqe(&env->b.rcq);
}

/* The directory reports PVR_GID_ABSENT for both versions of RoCE. */
TEST(hosts, test_group_without_members_elsewhere_costs_no_wait)
{
	unsigned int asked;

	post_group(&env->a, 0);
	fg_settle(env->host, 5 * FG_MS);
	expect_sent(&env->a, 0);
	asked = fg_wire_resolves(env->wire, 0);
	fg_advance(env->host, FG_SEC);
	post_group(&env->a, 1);
	await_sent(&env->a, 1);
	assert_int_equal(fg_wire_resolves(env->wire, 0), asked);
}

/* Until the directory has reported all members, the group counts as unknown. */
TEST(hosts, test_half_a_group_is_waited_for)
{
	struct pvr_engine *engine = env->host->engine;
	struct fg_end c;

	fg_wire_directory(env->wire, false);
	join_all(env, &c, 1);
	expect_ok(pvr_engine_set_gid(engine, "default", group, PVR_GID_TYPE_ROCE_V2,
				     PVR_GID_AT_HOST_MORE, fg_wire_remote_host(env->wire, 0, 1)));
	post_group(&env->a, 0);
	fg_settle(env->host, 20 * FG_MS);
	expect_no_cqe(&env->a.scq);
	expect_ok(pvr_engine_set_gid(engine, "default", group, PVR_GID_TYPE_ROCE_V2,
				     PVR_GID_AT_HOST, fg_wire_remote_host(env->wire, 0, 2)));
	fg_settle(env->host, 5 * FG_MS);
	expect_all(env, &c, 1);
}

TEST(hosts, test_small_datagrams_get_through_while_bulk_data_block)
{
	/* The receiver takes nothing: the stream is full soon, and some more is kept. */
	fg_wire_hold(env->wire, 0, 1, true);
	for (unsigned int i = 0; i < 60; i++) {
		t_recv(&env->b, i, 0, 5000);
		t_send_ud(&env->a, &env->b, i, 0, 4096);
		fg_run(env->host);
	}
	assert_int_equal(fg_cq_drain(&env->a.scq), 60);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_run(env->host);
	/* 64 KiB on their way, and those that were kept; the others are lost. */
	assert_in_range(fg_cq_drain(&env->b.rcq), 15 + 15, 59);
	ping(env, 101);
	assert_int_equal(fg_cq_pending(&env->b.rcq), 1);
}

/* -------------------------------------------------------------------- forged ones */

struct forged {
	struct pvr_frame_datagram dgram;
	uint8_t payload[8];
};

/* As host 1 would send it to host 2 for a, to b. */
static struct forged forge(struct t_env *env)
{
	struct forged forged = {
		.dgram = { .frame = FG_FRAME(PVR_FRAME_DATAGRAM, sizeof(forged.dgram) + 8),
			   .gid_type = PVR_GID_TYPE_ROCE_V2,
			   .src_qpn = env->a.qp.qpn,
			   .dst_qpn = env->b.qp.qpn,
			   .qkey = FG_QKEY },
	};

	memcpy(forged.dgram.sgid, env->a.gid, 16);
	memcpy(forged.dgram.dgid, env->b.gid, 16);
	return forged;
}

/* From host number @other to host 2. Return: whether b received it. */
static bool arrives_in(struct t_env *env, const char *fabric, unsigned int other,
		       const struct forged *forged)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, other);
	uint32_t before = fg_cq_pending(&env->b.rcq);

	t_recv(&env->b, 1, 0, 200);
	fg_malformed_send_fabric(malformed, fabric);
	fg_malformed_send(malformed, forged, sizeof(*forged));
	fg_settle(env->host, FG_SEC);
	fg_malformed_recv(malformed, NULL, 0);
	fg_run(env->host);
	assert_false(fg_malformed_is_closed(malformed));
	return fg_cq_pending(&env->b.rcq) != before;
}

static bool arrives(struct t_env *env, unsigned int other, const struct forged *forged)
{
	return arrives_in(env, "default", other, forged);
}

TEST(hosts, test_datagram_of_a_host_that_has_the_gid_is_taken)
{
	const struct forged forged = forge(env);

	assert_true(arrives(env, 0, &forged));
}

TEST(hosts, test_datagram_in_the_name_of_another_host_is_dropped)
{
	struct forged forged = forge(env);

	/* Host 3 sends with the GID of host 1, then with the receiver's own, then with a group's. */
	assert_false(arrives(env, 2, &forged));
	memcpy(forged.dgram.sgid, env->b.gid, 16);
	assert_false(arrives(env, 0, &forged));
	memcpy(forged.dgram.sgid, group, 16);
	assert_false(arrives(env, 0, &forged));
	assert_int_equal(fg_stats(env->g[1]).rx_messages, 0);
}

static unsigned int doubts;

static void count_doubt(void *opaque, const struct pvr_host *host, const char *fabric,
			const uint8_t gid[16])
{
	assert_string_equal(pvr_host_name(host), "host3");
	doubts++;
}

/* The GID may be there since: the directory asks the host that it has for it, at a limited rate. */
TEST(hosts, test_datagram_in_the_name_of_another_host_is_reported)
{
	struct pvr_fabrics *fabrics = fg_wire_host(env->wire, 1)->engine->fabrics;
	const struct pvr_gid_ops *before = fabrics->gid_ops;
	struct pvr_gid_ops ops = *before;
	const struct forged forged = forge(env);

	ops.doubt = count_doubt;
	fabrics->gid_ops = &ops;
	doubts = 0;
	assert_true(arrives(env, 0, &forged));
	assert_int_equal(doubts, 0);
	assert_false(arrives(env, 2, &forged));
	assert_int_equal(doubts, 1);
	fabrics->gid_ops = before;
}

TEST(hosts, test_datagram_of_another_fabric_or_roce_is_dropped)
{
	struct forged forged = forge(env);

	assert_false(arrives_in(env, "tenant2", 0, &forged));
	forged.dgram.gid_type = PVR_GID_TYPE_ROCE_V1;
	assert_false(arrives(env, 0, &forged));
}

TEST(hosts, test_datagram_to_absent_qp_or_gid_is_dropped)
{
	struct forged forged = forge(env);
	uint64_t dropped = fg_stats(env->g[1]).ud_dropped;

	forged.dgram.dst_qpn = 0xabcdef;
	assert_false(arrives(env, 0, &forged));
	assert_int_equal(fg_stats(env->g[1]).ud_dropped, dropped + 1);
	/* No adapter has the GID; and a group's number to a GID that is none. */
	forged.dgram.dst_qpn = env->b.qp.qpn;
	memcpy(forged.dgram.dgid, env->a.gid, 16);
	assert_false(arrives(env, 0, &forged));
	forged = forge(env);
	forged.dgram.dst_qpn = PVR_MULTICAST_QPN;
	assert_false(arrives(env, 0, &forged));
}

TEST(hosts, test_sender_that_is_not_known_yet_is_waited_for)
{
	struct forged forged = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_wire_directory(env->wire, false);
	fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 0, 7);
	expect_ok(fg_bind_gid(env->g[0], 3, forged.dgram.sgid));
	t_recv(&env->b, 1, 0, 200);
	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &forged, sizeof(forged));
	expect_no_cqe(&env->b.rcq);
	assert_true(fg_wire_resolves(env->wire, 1) > 0);
	fg_wire_directory(env->wire, true);
	fg_advance(env->host, 20 * FG_MS);
	fg_malformed_recv(malformed, NULL, 0);
	await_recv(&env->b.rcq, 1, 8 + GRH);
}

static void receive_for(struct t_env *env, struct fg_malformed *malformed, unsigned int ms)
{
	for (; ms; ms -= 10) {
		fg_advance(env->host, 10 * FG_MS);
		fg_malformed_recv(malformed, NULL, 0);
	}
}

TEST(hosts, test_unknown_sender_delays_others_briefly)
{
	struct forged forged = forge(env), good = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_wire_directory(env->wire, false);
	fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 0, 7);
	t_recv(&env->b, 1, 0, 200);
	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &forged, sizeof(forged));
	fg_malformed_send(malformed, &good, sizeof(good));
	receive_for(env, malformed, 400);
	expect_no_cqe(&env->b.rcq);
	receive_for(env, malformed, 200);
	await_recv(&env->b.rcq, 1, 8 + GRH);
	/* The next one does not wait again at once. */
	t_recv(&env->b, 2, 0, 200);
	fg_malformed_send(malformed, &forged, sizeof(forged));
	fg_malformed_send(malformed, &good, sizeof(good));
	await_recv(&env->b.rcq, 2, 8 + GRH);
}

#define VANISHED 20u

/*
 * A guest binds GIDs, sends a datagram from each, and removes them. The directory reports each
 * to be absent after 100 ms.
 */
TEST(hosts, test_gids_that_vanish_share_one_delay)
{
	struct forged forged = forge(env), good = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	unsigned int ms = 0;

	fg_wire_directory(env->wire, false);
	t_recv(&env->b, 1, 0, 200);
	fg_malformed_send_fabric(malformed, "default");
	for (uint8_t i = 0; i < VANISHED; i++) {
		fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 1, i);
		fg_malformed_send(malformed, &forged, sizeof(forged));
	}
	fg_malformed_send(malformed, &good, sizeof(good));
	while (!fg_cq_pending(&env->b.rcq) && ms < 100 * VANISHED) {
		receive_for(env, malformed, 100);
		fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 1, (uint8_t)(ms / 100));
		ms += 100;
		pvr_engine_set_gid(env->g[1]->host->engine, "default", forged.dgram.sgid,
				   PVR_GID_TYPE_ROCE_V2, PVR_GID_ABSENT, NULL);
	}
	assert_in_range(ms, 400, 600);
	expect_recv(&env->b.rcq, 1, 8 + GRH);
}

/* The time for delays returns slowly. */
TEST(hosts, test_unknown_sender_may_delay_others_again_later)
{
	struct forged forged = forge(env), good = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_wire_directory(env->wire, false);
	fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 0, 7);
	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &forged, sizeof(forged));
	receive_for(env, malformed, 600);
	fg_advance(env->host, 4 * FG_SEC);
	t_recv(&env->b, 1, 0, 200);
	fg_malformed_send(malformed, &forged, sizeof(forged));
	fg_malformed_send(malformed, &good, sizeof(good));
	receive_for(env, malformed, 100);
	expect_no_cqe(&env->b.rcq);
	receive_for(env, malformed, 50);
	await_recv(&env->b.rcq, 1, 8 + GRH);
}

/* Lookups that the frames of a connection cause have a rate; guests of this host have their own. */
TEST(hosts, test_lookups_of_random_senders_have_a_rate)
{
	struct forged forged = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	unsigned int before, asked;

	fg_wire_directory(env->wire, false);
	fg_malformed_send_fabric(malformed, "default");
	fg_gid_from_ipv4(forged.dgram.sgid, 10, 0, 0, 7);
	fg_malformed_send(malformed, &forged, sizeof(forged));
	receive_for(env, malformed, 600); /* no frame may stall the connection now */
	before = fg_wire_resolves(env->wire, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		fg_gid_from_ipv4(forged.dgram.sgid, 10, 1, (uint8_t)(i >> 8), (uint8_t)i);
		fg_malformed_send(malformed, &forged, sizeof(forged));
	}
	asked = fg_wire_resolves(env->wire, 1) - before;
	assert_in_range(asked, 1, 64);
	/* The rate is that of the connection. */
	fg_advance(env->host, FG_SEC);
	before = fg_wire_resolves(env->wire, 1);
	forged.dgram.sgid[15] ^= 0x80;
	fg_malformed_send(malformed, &forged, sizeof(forged));
	assert_int_equal(fg_wire_resolves(env->wire, 1), before + 1);
	assert_false(fg_malformed_is_closed(malformed));
}

/* Datagrams with a DSCP that no connection has, or with no connection, as fast as a guest can. */
TEST(hosts, test_connections_are_wanted_at_a_limited_rate)
{
	struct pvrdma_av av = fg_av(&env->a.pd, env->b.gid, 0);
	unsigned int wants = fg_wire_wants(env->wire, 0);

	av.sl_tclass_flowlabel = 0xb8u << 20;
	for (unsigned int i = 0; i < 200; i++) {
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_SEND, T_UD(&av, &env->b),
		       T_SGE(&env->a.mr, 0, 64));
		fg_run(env->host);
		expect_sent(&env->a, i);
		fg_advance(env->host, FG_MS / 10);
	}
	assert_in_range(fg_wire_wants(env->wire, 0) - wants, 1, 3);
	fg_wire_cut(env->wire, 0, 1, 0);
	wants = fg_wire_wants(env->wire, 0);
	ping_waits(env, 1);
	assert_true(fg_wire_wants(env->wire, 0) > wants);
	fg_settle(env->host, 210 * FG_MS);
	expect_sent(&env->a, 1);
	wants = fg_wire_wants(env->wire, 0);
	for (unsigned int i = 0; i < 200; i++) {
		t_send_ud(&env->a, &env->b, i, 0, LEN);
		fg_run(env->host);
		expect_sent(&env->a, i);
		fg_advance(env->host, FG_MS / 10);
	}
	assert_in_range(fg_wire_wants(env->wire, 0) - wants, 1, 3);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_advance(env->host, 2 * FG_SEC);
	ping(env, 3);
	assert_true(fg_cq_drain(&env->b.rcq) > 0);
}
