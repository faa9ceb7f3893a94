// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Locks and walks of the search for a destination: one tenant does not slow others.
 *
 * A test holds locks itself. pvr_lock_wait() is wrapped (--wrap, see meson.build): it counts, and
 * returns as if the lock were free.
 */
#include "hosts.h"
#include "core/adapter.h"
#include "gid/dest.h"
#include "gid/fabric.h"
#include "gid/flow.h"

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

static void hold(struct t_env *env)
{
	pvr_lock(&env->host->engine->fabrics->lock);
	waits = 0;
}

static void expect_no_waits(struct t_env *env)
{
	pvr_unlock(&env->host->engine->fabrics->lock);
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
	hold(env);
	ping(env, 2);
	expect_no_waits(env);
}

TEST(hosts, test_datagram_to_a_known_host_takes_no_lock)
{
	ping(env, 1);
	hold(env);
	ping(env, 2);
	expect_no_waits(env);
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
	hold(env);
	pvr_engine_for_each_flow(env->host->engine, ignore, &n);
	expect_no_waits(env);
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
