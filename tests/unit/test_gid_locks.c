// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Locks and walks of the search for a destination: one tenant does not slow others.
 *
 * A test holds locks itself. pvr_lock_wait() is wrapped (--wrap, see meson.build): it counts, and
 * returns as if the lock were free.
 */
#include "ends.h"
#include "core/adapter.h"
#include "gid/fabric.h"
#include "gid/flow.h"

#define GRH 40u

static unsigned int waits;

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns);

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns)
{
	(void)lock;
	(void)ns;
	waits++;
	return true;
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
