// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections between hosts: routes, GID_QUERY and PING, the directory, and forged frames. */
#include <endian.h>
#include <stdio.h>

#include "hosts.h"
#include "gid/resolve.h"
#include "fg_malformed.h"
#include "core/adapter.h"
#include "path/pipe/internal.h"

T_SETUP_HOSTS(hosts, 2)
{
}

T_SETUP_HOSTS(slots, 2, .slots = 4)
{
}

/* Host @host's record of the other one. */
static struct pvr_host *other(struct t_env *env, unsigned int host)
{
	return fg_wire_remote_host(env->wire, host, !host);
}

static struct pvr_host_stats stats_of(struct t_env *env, unsigned int host)
{
	struct pvr_host_stats stats;

	pvr_host_get_stats(other(env, host), &stats);
	return stats;
}

/* ------------------------------------------------------------- asking each other */

/* Host 1 sends host 2 a GID_QUERY for the GID of vm@guest. Return: whether it was sent. */
static bool query(struct t_env *env, unsigned int slot, const char *fabric, unsigned int guest)
{
	bool sent;
	uint8_t gid[16];

	fg_gid_from_mac(gid, env->g[guest - 1]->config.mac);
	sent = pvr_req_conn_gid_query(other(env, 0), PVR_PIPE_TCP, slot, fabric, gid);
	fg_wire_run(env->wire);
	return sent;
}

TEST(hosts, test_gid_query_gets_the_type_of_the_gid)
{
	const struct fg_located *here = fg_wire_located(env->wire, 0);
	uint8_t gid[16];

	assert_true(query(env, 0, "default", 2));
	assert_int_equal(here->count, 1);
	assert_ptr_equal(here->host, other(env, 0));
	assert_string_equal(here->fabric, "default");
	fg_gid_from_mac(gid, env->g[1]->config.mac);
	assert_memory_equal(here->gid, gid, 16);
	assert_int_equal(here->gid_type, PVR_GID_TYPE_ROCE_V2);
}

TEST(hosts, test_gid_query_of_an_absent_gid_gets_type_0)
{
	const struct fg_located *here = fg_wire_located(env->wire, 0);

	/* Not there, and there but in another fabric. */
	assert_true(query(env, 0, "default", 1));
	assert_int_equal(here->count, 1);
	assert_int_equal(here->gid_type, 0);
	assert_true(query(env, 0, "tenant2", 2));
	assert_int_equal(here->count, 2);
	assert_string_equal(here->fabric, "tenant2");
	assert_int_equal(here->gid_type, 0);
}

/* A reply of the malformed peer, which host 1 has dialled. */
static void send_reply(struct fg_malformed *malformed)
{
	const struct pvr_frame_gid_query reply = {
		.frame = { .type = PVR_FRAME_GID_REPLY,
			   .size = htole32(sizeof(reply)),
			   .fabric = htole16(1) },
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.gid = { 0xfe, 0x80, [15] = 1 },
	};

	fg_malformed_send(malformed, &reply, sizeof(reply));
}

TEST(hosts, test_unrequested_gid_reply_closes_the_connection)
{
	const struct fg_located *here = fg_wire_located(env->wire, 0);
	struct fg_malformed *malformed;

	fg_wire_cut(env->wire, 0, 1, 0);
	malformed = fg_malformed_accept(env->wire, 0, 1, PVR_PIPE_TCP);
	for (unsigned int i = 1; i <= 3; i++) {
		assert_true(query(env, 0, "default", 2));
		send_reply(malformed);
		assert_int_equal(here->count, i);
	}
	assert_false(fg_malformed_is_closed(malformed));
	send_reply(malformed);
	assert_int_equal(here->count, 3);
	assert_true(fg_malformed_is_closed(malformed));
	assert_string_equal(fg_wire_why(env->wire), "GID_REPLY, but no GID was queried");
	/* A query of a lost connection is not answered on the next one. */
	malformed = fg_malformed_accept(env->wire, 0, 1, PVR_PIPE_TCP);
	assert_true(query(env, 0, "default", 2));
	fg_malformed_destroy(malformed);
	malformed = fg_malformed_accept(env->wire, 0, 1, PVR_PIPE_TCP);
	send_reply(malformed);
	assert_int_equal(here->count, 3);
}

TEST(hosts, test_gid_query_needs_a_connection)
{
	assert_false(query(env, 1, "default", 2));
	fg_wire_cut(env->wire, 0, 1, 0);
	assert_false(query(env, 0, "default", 2));
	fg_wire_mend(env->wire, 0, 1, 0);
	assert_true(query(env, 0, "default", 2));
	assert_int_equal(fg_wire_located(env->wire, 0)->count, 1);
}

TEST(hosts, test_ping_measures_the_way)
{
	assert_int_equal(stats_of(env, 0).rtt_ns, 0);
	fg_wire_delay(env->wire, FG_MS);
	pvr_req_conn_ping(other(env, 0), PVR_PIPE_TCP, 0);
	fg_wire_settle(env->wire, FG_SEC);
	assert_int_equal(stats_of(env, 0).rtt_ns, 2 * FG_MS);
	assert_int_equal(stats_of(env, 1).rtt_ns, 0);
}

TEST(hosts, test_statistics_count_both_ways)
{
	struct pvr_host_stats before = stats_of(env, 0), stats;
	uint64_t now = env->host->now;

	fg_wire_advance(env->wire, 5 * FG_SEC);
	assert_true(query(env, 0, "default", 2));
	stats = stats_of(env, 0);
	assert_string_equal(stats.name, "host2");
	assert_true(stats.up[PVR_PIPE_TCP]);
	assert_false(stats.up[PVR_PIPE_VERBS]);
	assert_int_equal(stats.heard, now + 5 * FG_SEC);
	/* FABRIC and GID_QUERY; HERE. */
	assert_int_equal(stats.tx_frames - before.tx_frames, 2);
	assert_int_equal(stats.tx_bytes - before.tx_bytes, 40 + 32);
	assert_int_equal(stats.rx_frames - before.rx_frames, 1);
	assert_int_equal(stats.rx_bytes - before.rx_bytes, 32);
	/* The connection goes, its counters stay. */
	fg_wire_cut(env->wire, 0, 1, 0);
	assert_int_equal(stats_of(env, 0).tx_bytes, stats.tx_bytes);
	assert_int_equal(stats_of(env, 1).rx_bytes, stats.tx_bytes);
	assert_false(stats_of(env, 0).up[PVR_PIPE_TCP]);
}

/* ------------------------------------------------------------------------- routes */

/* The route of host 1's queue pair @qpn to host 2, which must be up. */
static struct pvr_route route_of(struct t_env *env, uint32_t qpn)
{
	struct pvr_route route;

	assert_true(pvr_link_route(other(env, 0), qpn, 0, &route));
	return route;
}

TEST(slots, test_queue_pairs_are_spread_over_the_slots)
{
	unsigned int used = 0;

	for (uint32_t qpn = 2; qpn < 6; qpn++) {
		struct pvr_route route = route_of(env, qpn), again = route_of(env, qpn);

		assert_int_equal(again.slot, route.slot);
		assert_int_equal(again.kind, route.kind);
		assert_true(again.generation == route.generation);
		assert_false(pvr_link_route_changed(&route, qpn));
		assert_int_equal(route.chunk, 65536);
		used |= 1u << route.slot;
	}
	assert_int_equal(used, 0xf);
}

TEST(slots, test_route_changes_with_its_connection)
{
	struct pvr_route first = route_of(env, 7), second, again;

	/* What others do does not matter. */
	fg_wire_cut(env->wire, 0, 1, (first.slot + 1) % 4);
	assert_false(pvr_link_route_changed(&first, 7));
	fg_wire_cut(env->wire, 0, 1, first.slot);
	assert_true(pvr_link_route_changed(&first, 7));
	second = route_of(env, 7);
	assert_int_not_equal(second.slot, first.slot);
	/* It is up again: another connection, in the place of the first one. */
	fg_wire_mend(env->wire, 0, 1, first.slot);
	assert_true(pvr_link_route_changed(&second, 7));
	assert_true(pvr_link_route_changed(&first, 7));
	again = route_of(env, 7);
	assert_int_equal(again.slot, first.slot);
	assert_int_not_equal(again.generation, first.generation);
}

TEST(slots, test_no_route_without_connections)
{
	struct pvr_route route = route_of(env, 7);
	unsigned int wants;

	for (unsigned int slot = 0; slot < 4; slot++)
		fg_wire_cut(env->wire, 0, 1, slot);
	assert_true(pvr_link_route_changed(&route, 7));
	wants = fg_wire_wants(env->wire, 0);
	assert_false(pvr_link_route(other(env, 0), 7, 0, &route));
	assert_int_equal(route.generation, 0);
	assert_ptr_equal(route.host, other(env, 0));
	assert_int_equal(fg_wire_wants(env->wire, 0), wants + 1);
	assert_false(pvr_link_route_changed(&route, 7));
	fg_wire_mend(env->wire, 0, 1, 2);
	assert_true(pvr_link_route_changed(&route, 7));
	route = route_of(env, 7);
	assert_int_equal(route.slot, 2);
}

TEST(slots, test_better_kind_of_pipe_is_preferred)
{
	struct pvr_route route = route_of(env, 7);

	assert_int_equal(route.kind, PVR_PIPE_TCP);
	fg_wire_verbs(env->wire, 0, 1, true);
	assert_true(pvr_link_route_changed(&route, 7));
	route = route_of(env, 7);
	assert_int_equal(route.kind, PVR_PIPE_VERBS);
	fg_wire_verbs(env->wire, 0, 1, false);
	assert_true(pvr_link_route_changed(&route, 7));
	route = route_of(env, 7);
	assert_int_equal(route.kind, PVR_PIPE_TCP);
}

static enum pvr_sent send_datagram(struct t_env *env, const struct pvr_route *route)
{
	union pvr_any_frame any = {
		.datagram = { .frame = { .type = PVR_FRAME_DATAGRAM },
			      .gid_type = PVR_GID_TYPE_ROCE_V2,
			      .dst_qpn = 77 },
	};
	enum pvr_sent sent;

	fg_gid_from_mac(any.datagram.sgid, env->g[0]->config.mac);
	fg_gid_from_mac(any.datagram.dgid, env->g[1]->config.mac);
	sent = pvr_link_send(route, env->g[0]->adapter->fabric, &any, sizeof(any.datagram), NULL,
			     NULL, 0, 0);
	pvr_link_flush(route);
	return sent;
}

TEST(slots, test_nothing_is_sent_on_a_connection_that_was_replaced)
{
	uint64_t before = fg_stats(env->g[1]).ud_dropped;
	struct pvr_route route = route_of(env, 7);

	assert_int_equal(send_datagram(env, &route), PVR_SENT);
	fg_wire_run(env->wire);
	assert_int_equal(fg_stats(env->g[1]).ud_dropped, before + 1);
	fg_wire_mend(env->wire, 0, 1, route.slot);
	assert_int_equal(send_datagram(env, &route), PVR_SENT_DOWN);
	assert_int_equal(fg_wire_in_flight(env->wire, 0, 1), 0);
	route = route_of(env, 7);
	assert_int_equal(send_datagram(env, &route), PVR_SENT);
	fg_wire_run(env->wire);
	assert_int_equal(fg_stats(env->g[1]).ud_dropped, before + 2);
}

/* -------------------------------------------------------------------- malformed peers */

static struct pvr_frame_fabric fabric_frame(unsigned int number, const char *name)
{
	struct pvr_frame_fabric frame = { .frame = { .size = sizeof(frame),
						     .type = PVR_FRAME_FABRIC,
						     .fabric = (uint16_t)number } };

	strncpy(frame.name, name, sizeof(frame.name) - 1);
	return frame;
}

static void send_fabric(struct fg_malformed *malformed, unsigned int number, const char *name)
{
	const struct pvr_frame_fabric frame = fabric_frame(number, name);

	fg_malformed_send(malformed, &frame, sizeof(frame));
}

static struct pvr_frame_ping ping_frame(uint64_t cookie)
{
	return (struct pvr_frame_ping){ .frame = { .size = sizeof(struct pvr_frame_ping),
						   .type = PVR_FRAME_PING },
					.cookie = cookie };
}

/* The connection is closed after a CLOSE with that reason; other connections stay open. */
static void expect_close(struct t_env *env, struct fg_malformed *malformed, const char *why)
{
	union pvr_any_frame any = { 0 };

	assert_true(fg_malformed_is_closed(malformed));
	assert_true(strstr(fg_wire_why(env->wire), why));
	assert_int_equal(fg_malformed_recv(malformed, &any, sizeof(any)), sizeof(any.close));
	assert_int_equal(any.frame.type, PVR_FRAME_CLOSE);
	assert_int_equal(any.close.reason, PVR_CLOSE_PROTOCOL);
	assert_true(strstr(any.close.text, why));
	assert_true(fg_wire_is_up(env->wire, 0, 1, 0));
	assert_true(fg_wire_is_up(env->wire, 1, 0, 0));
	assert_true(query(env, 0, "default", 2));
	assert_int_equal(fg_wire_located(env->wire, 0)->gid_type, PVR_GID_TYPE_ROCE_V2);
}

static void expect_closed_by(struct t_env *env, const void *bytes, size_t size, const char *why)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_malformed_send(malformed, bytes, size);
	expect_close(env, malformed, why);
}

TEST(hosts, test_forged_ping_is_answered)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_ping ping = ping_frame(0x1234);
	union pvr_any_frame any = { 0 };

	fg_malformed_send(malformed, &ping, sizeof(ping));
	assert_int_equal(fg_malformed_recv(malformed, &any, sizeof(any)), sizeof(ping));
	assert_int_equal(any.frame.type, PVR_FRAME_PONG);
	assert_int_equal(any.ping.cookie, 0x1234);
	assert_false(fg_malformed_is_closed(malformed));
}

TEST(hosts, test_unknown_frames_close_the_connection)
{
	struct pvr_frame frame = { .size = 8 };
	static const uint8_t types[] = { 0, 7, 23, 128, 255 };

	for (size_t i = 0; i < COUNT(types); i++) {
		frame.type = types[i];
		expect_closed_by(env, &frame, sizeof(frame), "unknown");
	}
	assert_int_equal(fg_wire_refused(env->wire), COUNT(types));
}

TEST(hosts, test_second_hello_closes_the_connection)
{
	const struct pvr_frame_hello hello = {
		.frame = { .size = sizeof(hello), .type = PVR_FRAME_HELLO },
		.magic = PVR_FRAME_MAGIC,
		.version_min = 1,
		.version_max = 1,
		.chunk = 65536,
		.count = 1,
		.name = "host1",
	};

	expect_closed_by(env, &hello, sizeof(hello), "second HELLO");
}

TEST(hosts, test_fabrics_that_were_not_declared_close_the_connection)
{
	struct pvr_frame_gid_query frame = {
		.frame = { .size = sizeof(frame), .type = PVR_FRAME_GID_QUERY, .fabric = 1 }
	};

	expect_closed_by(env, &frame, sizeof(frame), "not declared");
	frame.frame.fabric = PVR_FRAME_FABRICS;
	expect_closed_by(env, &frame, sizeof(frame), "not declared");
}

TEST(hosts, test_fabrics_are_declared_one_after_the_other)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_fabric frame = fabric_frame(2, "default");

	send_fabric(malformed, 1, "default");
	send_fabric(malformed, 2, "tenant2");
	assert_false(fg_malformed_is_closed(malformed));
	/* The fabric of a number never changes. */
	send_fabric(malformed, 1, "tenant3");
	expect_close(env, malformed, "not the next one");
	expect_closed_by(env, &frame, sizeof(frame), "not the next one");
}

TEST(hosts, test_as_many_fabrics_as_there_are_numbers)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	char name[16];

	for (unsigned int i = 1; i <= PVR_FRAME_FABRICS; i++) {
		snprintf(name, sizeof(name), "tenant%u", i);
		send_fabric(malformed, i, name);
		assert_false(fg_malformed_is_closed(malformed));
	}
	send_fabric(malformed, PVR_FRAME_FABRICS + 1, "one more");
	expect_close(env, malformed, "out of range");
}

/* At the limit a new fabric is refused; queries in declared fabrics still work. */
TEST(hosts, test_our_side_declares_no_more_fabrics_than_a_connection_may_have)
{
	char name[16];

	for (unsigned int i = 1; i <= PVR_FRAME_FABRICS; i++) {
		snprintf(name, sizeof(name), "tenant%u", i);
		assert_true(query(env, 0, name, 2));
	}
	assert_false(query(env, 0, "one-more", 2));
	assert_true(fg_logged(env->host, "one-more is cut off"));
	assert_true(query(env, 0, "tenant1", 2));
	assert_string_equal(fg_wire_located(env->wire, 0)->fabric, "tenant1");
	assert_true(fg_wire_is_up(env->wire, 0, 1, 0));
}

TEST(hosts, test_fragments_longer_than_agreed_close_the_connection)
{
	struct {
		struct pvr_frame_fabric fabric;
		struct pvr_frame_request request;
	} forged = {
		.fabric = fabric_frame(1, "default"),
		.request = { .frame = { .size = sizeof(struct pvr_frame_request),
					.type = PVR_FRAME_REQUEST,
					.flags = PVR_REQUEST_F_LAST,
					.fabric = 1 },
			     .op = PVR_FRAME_OP_READ,
			     .gid_type = PVR_GID_TYPE_ROCE_V2,
			     .psns = 1,
			     .length = 65537,
			     .chunk = 65537 },
	};

	expect_closed_by(env, &forged, sizeof(forged), "above the negotiated chunk size");
}

/* Each frame that a connection may end in, each byte of it. */
TEST(hosts, test_truncated_frames_wait_for_the_rest_and_do_no_harm)
{
	const struct pvr_frame_ping ping = ping_frame(1);

	for (size_t size = 1; size < sizeof(ping); size++) {
		struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
		uint8_t answer[sizeof(ping)];

		fg_malformed_send(malformed, &ping, size);
		assert_int_equal(fg_malformed_recv(malformed, answer, sizeof(answer)), 0);
		assert_false(fg_malformed_is_closed(malformed));
		if (size % 2)
			fg_malformed_send(malformed, (const uint8_t *)&ping + size,
					  sizeof(ping) - size);
		assert_int_equal(fg_malformed_recv(malformed, answer, sizeof(answer)),
				 size % 2 ? sizeof(ping) : 0);
	}
}

TEST(hosts, test_close_ends_the_connection_without_another)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_close close = { .frame = { .size = sizeof(close),
							  .type = PVR_FRAME_CLOSE },
					       .reason = PVR_CLOSE_REPLACED,
					       .text = "by me" };
	union pvr_any_frame any;

	fg_malformed_send(malformed, &close, sizeof(close));
	assert_true(fg_malformed_is_closed(malformed));
	assert_int_equal(fg_wire_refused(env->wire), 0);
	assert_int_equal(fg_malformed_recv(malformed, &any, sizeof(any)), 0);
}

/* Answers are small; so are questions, and there are many of them. */
TEST(hosts, test_peer_that_reads_no_answers_is_not_read)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_ping ping = ping_frame(1);
	struct pvr_frame_ping many[1024];
	size_t got = 0, n;

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = ping;
	/* 1.6 MB of questions; on their way are 256 KiB in each direction and what is gathered. */
	for (unsigned int i = 0; i < 100; i++)
		fg_malformed_send(malformed, many, sizeof(many));
	assert_false(fg_malformed_is_closed(malformed));
	while ((n = fg_malformed_recv(malformed, many, sizeof(many)))) {
		got += n;
		fg_wire_run(env->wire);
	}
	assert_in_range(got, 400000, 900000);
}
