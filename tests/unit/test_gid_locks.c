// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Locks and walks of the search for a destination: one tenant does not slow others.
 *
 * A test holds locks itself. pvr_lock_wait() is wrapped (--wrap, see meson.build): it counts, and
 * returns as if the lock were free.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hosts.h"
#include "core/adapter.h"
#include "gid/dest.h"
#include "gid/fabric.h"
#include "gid/flow.h"

TEST_EXT(PVR_EXT_MCAST)

static unsigned int waits;

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns);

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns)
{
	(void)lock;
	(void)ns;
	waits++;
	return true;
}

T_SETUP_HOSTS(hosts, 2)
{
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
}

static void lock_fabrics(struct pvr_engine *engine, const struct pvr_fabric *but,
			 void (*fn)(struct pvr_lock *lock))
{
	struct pvr_fabrics *fabrics = engine->fabrics;
	struct pvr_fabric *fabric;

	for (unsigned int i = 0; i < PVR_FABRIC_NAMES; i++)
		LIST_FOREACH(fabric, &fabrics->names[i], link)
			if (fabric != but)
				fn(&fabric->lock);
	for (unsigned int i = 0; i < PVR_GID_SHARDS; i++)
		if (!but || &fabrics->shards[i] != but->shard)
			fn(&fabrics->shards[i].lock);
}

/* Takes the locks of all GIDs, or of all but those of a guest's fabric. */
static void hold(struct t_env *env, const struct fg_guest *but)
{
	lock_fabrics(env->host->engine, but ? but->adapter->fabric : NULL, pvr_lock);
	waits = 0;
}

static void expect_no_waits(struct t_env *env, const struct fg_guest *but)
{
	lock_fabrics(env->host->engine, but ? but->adapter->fabric : NULL, pvr_unlock);
	assert_int_equal(waits, 0);
}

static void ping(struct t_env *env, uint64_t wr_id)
{
	t_recv(&env->b, wr_id, 0, 400);
	t_send_ud(&env->a, &env->b, wr_id, 0, 64);
	fg_run(env->host);
	expect_sent(&env->a, wr_id);
	expect_recv(&env->b.rcq, wr_id, 64 + GRH);
}

TEST(ud_ready, test_datagram_to_a_known_adapter_takes_no_lock)
{
	ping(env, 1);
	hold(env, NULL);
	ping(env, 2);
	expect_no_waits(env, NULL);
}

TEST(hosts, test_datagram_to_a_known_host_takes_no_lock)
{
	ping(env, 1);
	hold(env, NULL);
	ping(env, 2);
	expect_no_waits(env, NULL);
}

static void ignore(void *opaque, const struct pvr_flow_stats *stats)
{
	(void)stats;
	++*(unsigned int *)opaque;
}

TEST(ud_ready, test_paths_are_listed_without_a_lock)
{
	unsigned int n = 0;

	ping(env, 1);
	hold(env, NULL);
	pvr_engine_for_each_flow(env->host->engine, ignore, &n);
	expect_no_waits(env, NULL);
	assert_int_equal(n, 1);
}

/* The flows that a delivery of @from searches, at most. */
static unsigned int longest_walk(const struct pvr_adapter *from)
{
	unsigned int longest = 0, n, i;
	const struct pvr_flow *flow;

	for (i = 0; i < PVR_FLOW_LISTS; i++) {
		for (n = 0, flow = pvr_flow_first(from, i); flow; flow = flow->next, n++)
			assert_ptr_equal(flow->from, from);
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Of two fabrics with a thousand destinations, each adapter searches its own. */
TEST(ud_ready, test_datagram_searches_few_flows)
{
	struct pvr_adapter *from = env->g[0]->adapter, *other;
	unsigned int n = 0;

	ping(env, 1);
	other = t_guest_in_fabric(env, 3, "tenant2")->adapter;
	for (uintptr_t i = 1; i <= 1000; i++)
		assert_non_null(pvr_flow_get_host(other, (struct pvr_host *)(i * 192)));
	assert_int_equal(longest_walk(from), 1);
	assert_true(longest_walk(other) <= 4 * 1000 / PVR_FLOW_LISTS);
	for (unsigned int i = 0; i < PVR_FLOW_LISTS; i++)
		for (const struct pvr_flow *flow = pvr_flow_first(other, i); flow;
		     flow = flow->next)
			n++;
	assert_int_equal(n, 1000);
}

/* A datagram to @gid arrives at @to. */
static void ping_gid(struct t_env *env, struct fg_end *to, const uint8_t gid[16], uint64_t wr_id)
{
	struct pvrdma_av av = fg_av(&env->a.pd, gid, 0);

	t_recv(to, wr_id, 0, 400);
	t_post(&env->a, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, T_UD(&av, to),
	       T_SGE(&env->a.mr, 0, 64));
	fg_run(env->host);
	expect_sent(&env->a, wr_id);
	expect_recv(&to->rcq, wr_id, 64 + GRH);
}

TEST(ud_ready, test_datagram_follows_a_gid_that_moves)
{
	struct fg_end c;
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	t_open_ready(&c, t_guest_with_ext(env, 3, 0), PVR_QPT_UD);
	for (uint64_t n = 0; n < 3; n++) {
		expect_ok(fg_bind_gid(env->g[1], 1, gid));
		ping_gid(env, &env->b, gid, n);
		expect_ok(fg_unbind_gid(env->g[1], 1, gid));
		expect_ok(fg_bind_gid(env->g[2], 1, gid));
		ping_gid(env, &c, gid, n);
		expect_ok(fg_unbind_gid(env->g[2], 1, gid));
	}
	ping_gid(env, &c, c.gid, 4);
	fg_guest_destroy(env->g[2]);
	env->g[2] = NULL;
	t_send_ud(&env->a, &c, 5, 0, 64);
	fg_run(env->host);
	expect_sent(&env->a, 5);
	expect_no_cqe(&env->b.rcq);
}

#define OWN_GIDS (PVR_GID_TABLE_LEN - 1)

static void gid_of(uint8_t gid[16], uint32_t i)
{
	fg_gid_from_ipv4(gid, 10, 1, (uint8_t)(i >> 8), (uint8_t)i);
}

TEST(ud_ready, test_more_destinations_than_places)
{
	struct fg_end c, d, *ends[] = { &env->b, &c, &d };
	uint8_t gid[16];

	t_open_ready(&c, t_guest_with_ext(env, 3, 0), PVR_QPT_UD);
	t_open_ready(&d, t_guest_with_ext(env, 4, 0), PVR_QPT_UD);
	assert_true(COUNT(ends) * OWN_GIDS > PVR_DESTS);
	for (uint32_t i = 0; i < COUNT(ends) * OWN_GIDS; i++) {
		gid_of(gid, i);
		expect_ok(fg_bind_gid(ends[i / OWN_GIDS]->guest, 1 + i % OWN_GIDS, gid));
	}
	for (uint32_t n = 0, i = 0; n < 2 * COUNT(ends) * OWN_GIDS; n++, i += 97) {
		i %= COUNT(ends) * OWN_GIDS;
		gid_of(gid, i);
		ping_gid(env, ends[i / OWN_GIDS], gid, n);
	}
}

/* Another fabric on each host of the guests. */
static void add_tenants(struct t_env *env)
{
	struct fg_guest_config config;

	t_guest_in_fabric(env, 3, "tenant2");
	if (!env->wire)
		return;
	fg_guest_config_init(&config, 4);
	config.fabric = "tenant3";
	env->g[3] = fg_guest_create(t_other_host(env), &config);
	expect_ok(fg_guest_boot(env->g[3]));
}

static const uint8_t group[16] = { 0xff, 0x12, [15] = 9 };

static void send_first(struct t_env *env)
{
	ping(env, 1);
}

static void send_to_absent(struct t_env *env)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 9, 9, 9);
	memcpy(env->b.gid, gid, sizeof(gid));
	t_send_ud(&env->a, &env->b, 1, 0, 64);
	fg_run(env->host);
}

static void bind_and_unbind(struct t_env *env)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	expect_ok(fg_unbind_gid(env->g[0], 1, gid));
}

static void send_to_group(struct t_env *env)
{
	expect_ok(fg_qp_attach(&env->b.qp, group));
	t_recv(&env->b, 1, 0, 400);
	t_send_group(&env->a, group, 1, 0, 64);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 1, 64 + GRH);
	expect_ok(fg_qp_detach(&env->b.qp, group));
}

static void reset(struct t_env *env)
{
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
}

static const struct {
	const char *label;
	void (*act)(struct t_env *env);
} acts[] = {
	{ "first datagram", send_first },
	{ "absent destination", send_to_absent },
	{ "bind and unbind", bind_and_unbind },
	{ "group", send_to_group },
	{ "reset", reset },
};

TEST_CASES(ud_ready, test_guest_takes_no_lock_of_another_fabric, acts)
{
	add_tenants(env);
	hold(env, env->g[0]);
	row->act(env);
	expect_no_waits(env, env->g[0]);
}

TEST_CASES(hosts, test_guest_takes_no_lock_of_another_fabric_on_any_host, acts)
{
	struct pvr_engine *other = t_other_host(env)->engine;

	add_tenants(env);
	lock_fabrics(other, env->g[1]->adapter->fabric, pvr_lock);
	hold(env, env->g[0]);
	row->act(env);
	lock_fabrics(other, env->g[1]->adapter->fabric, pvr_unlock);
	expect_no_waits(env, env->g[0]);
}

/* What other fabrics wait for does not depend on the answer. */
TEST(hosts, test_answer_of_the_directory_takes_no_lock_of_another_fabric)
{
	struct pvr_adapter *other;

	add_tenants(env);
	other = env->g[2]->adapter;
	__atomic_store_n(&other->hosts.any, true, __ATOMIC_SEQ_CST);
	fg_wire_directory(env->wire, false);
	send_to_absent(env);
	expect_no_cqe(&env->a.scq);
	pvr_lock(&other->lock);
	waits = 0;
	expect_ok(pvr_engine_set_gid(env->host->engine, "default", env->b.gid, PVR_GID_TYPE_ROCE_V2,
				     PVR_GID_AT_HOST, fg_wire_remote_host(env->wire, 0, 1)));
	pvr_unlock(&other->lock);
	assert_int_equal(waits, 0);
	fg_run(env->host);
	expect_sent(&env->a, 1);
}

/* GIDs that a guest chooses do not meet in one bucket. */
TEST(guest, test_chosen_gids_are_spread)
{
	const struct pvr_fabric *fabric = env->g[0]->adapter->fabric;
	const struct pvr_gid_node *node;
	unsigned int longest = 0, n;
	uint8_t gid[16];

	for (uint32_t i = 1; i < PVR_GID_TABLE_LEN; i++) {
		/* 31 * gid[14] + gid[15] is constant, modulo 256. */
		fg_gid_from_ipv4(gid, 10, 0, (uint8_t)i, (uint8_t)(-31 * i));
		expect_ok(fg_bind_gid(env->g[0], i, gid));
	}
	for (unsigned int i = 0; i < PVR_FABRIC_BUCKETS; i++) {
		n = 0;
		LIST_FOREACH(node, &fabric->gids[i], link)
			n++;
		longest = n > longest ? n : longest;
	}
	assert_true(longest <= 12);
}

#define FLOWS 2000 /* many in each list */

static struct pvr_flow *flow_to(struct t_env *env, unsigned int number)
{
	char name[16];

	snprintf(name, sizeof(name), "h%u", number);
	return pvr_flow_get_host(env->g[0]->adapter, pvr_host_get(env->host->engine, name));
}

static void note_host(void *opaque, const struct pvr_flow_stats *stats)
{
	unsigned char *seen = opaque;

	if (stats->to[0] == 'h')
		seen[atoi(stats->to + 1)]++;
}

/* Return: the number of pages. @adds: a flow is added between two pages. */
static unsigned int read_pages(struct t_env *env, unsigned char *seen, bool adds)
{
	unsigned int pages = 1;
	uint32_t cursor = 0;

	while (pvr_adapter_page_flows(env->g[0]->adapter, &cursor, 7, note_host, seen)) {
		assert_in_range(cursor, 0, PVR_FLOW_CURSORS - 1);
		if (adds && pages < FLOWS / 2)
			assert_non_null(flow_to(env, FLOWS + pages));
		pages++;
	}
	return pages;
}

TEST(ud_ready, test_pages_have_each_flow_once)
{
	unsigned char seen[2 * FLOWS] = { 0 };
	unsigned int i;

	for (i = 0; i < FLOWS; i++)
		assert_non_null(flow_to(env, i));
	assert_in_range(read_pages(env, seen, false), FLOWS / 7, FLOWS / 7 + 2);
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(seen[i], 1);
}

TEST(ud_ready, test_flows_that_are_added_between_pages_repeat_none)
{
	unsigned char seen[2 * FLOWS] = { 0 };
	unsigned int i;

	for (i = 0; i < FLOWS; i++)
		assert_non_null(flow_to(env, i));
	read_pages(env, seen, true);
	for (i = 0; i < 2 * FLOWS; i++)
		assert_in_range(seen[i], i < FLOWS, 1);
}

TEST(ud_ready, test_last_cursors_report_no_flow)
{
	unsigned char seen[2 * FLOWS] = { 0 };
	uint32_t cursor = PVR_FLOW_CURSORS - 1;

	assert_false(pvr_adapter_page_flows(env->g[0]->adapter, &cursor, 7, note_host, seen));
}
