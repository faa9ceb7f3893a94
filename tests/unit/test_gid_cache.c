// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs of other hosts: the cache, and its results for queue pairs and directories. */
#include "common.h"
#include "gid/fabric.h"
#include "gid/gid_cache.h"
#include "gid/referral.h"
#include "gid/resolve.h"
#include "core/adapter.h"

#include <stdlib.h>

#define MANY 200000u

static struct pvr_host *const one = (struct pvr_host *)16;
static struct pvr_host *const two = (struct pvr_host *)32;

static int setup(void **state)
{
	static uint32_t total;

	total = 0;
	*state = pvr_gid_cache_new(12345, &total);
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	pvr_gid_cache_free(*state);
	return 0;
}

#define TEST_CACHE(name) TEST_WITH(struct pvr_gid_cache *cache, setup, teardown, name)

/* As hosts of a subnet have them. */
static struct pvr_gid_key key(uint8_t gid[16], const char *fabric, uint32_t number)
{
	memset(gid, 0, 16);
	gid[0] = 0x20;
	memcpy(gid + 12, &number, 4);
	return (struct pvr_gid_key){ .fabric = fabric, .gid = gid, .gid_type = 2 };
}

static int set(struct pvr_gid_cache *cache, const struct pvr_gid_key *k, enum pvr_gid_state state,
	       struct pvr_host *host, bool news)
{
	bool changed;
	int err = pvr_gid_cache_set(cache, k, state, host, &changed);

	assert_int_equal(changed, news);
	return err;
}

static void expect_at(struct pvr_gid_cache *cache, const struct pvr_gid_key *k,
		      struct pvr_host *host)
{
	struct pvr_gid_location location;

	assert_true(pvr_gid_cache_find(cache, k, &location));
	assert_int_equal(location.state, PVR_GID_AT_HOST);
	assert_int_equal(location.count, 1);
	assert_ptr_equal(location.hosts[0], host);
}

TEST_CACHE(test_last_report_counts)
{
	struct pvr_gid_location location;
	uint8_t gid[16];
	struct pvr_gid_key k = key(gid, "default", 1);

	assert_false(pvr_gid_cache_find(cache, &k, &location));
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
	expect_at(cache, &k, one);
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, false));
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, two, true));
	expect_at(cache, &k, two);
	/* LEFT_HOST of a previous host does not change the present host. */
	expect_ok(set(cache, &k, PVR_GID_LEFT_HOST, one, false));
	expect_at(cache, &k, two);
	expect_ok(set(cache, &k, PVR_GID_LEFT_HOST, two, true));
	assert_false(pvr_gid_cache_find(cache, &k, &location));
	expect_ok(set(cache, &k, PVR_GID_ABSENT, NULL, false));
	assert_true(pvr_gid_cache_find(cache, &k, &location));
	assert_int_equal(location.state, PVR_GID_ABSENT);
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
	expect_ok(set(cache, &k, PVR_GID_ABSENT, NULL, true));
	/* UNKNOWN replaces ABSENT: the next sender sends a new query. */
	expect_ok(set(cache, &k, PVR_GID_UNKNOWN, NULL, true));
	assert_int_equal(pvr_gid_cache_count(cache), 0);
}

TEST_CACHE(test_change_of_roce_is_news)
{
	uint8_t gid[16];
	struct pvr_gid_key k = key(gid, "default", 1);

	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
	k.gid_type = PVR_GID_TYPE_ROCE_V1;
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
	assert_int_equal(pvr_gid_cache_count(cache), 1);
}

TEST_CACHE(test_fabrics_have_gids_of_their_own)
{
	struct pvr_gid_location location;
	uint8_t gid[16];
	struct pvr_gid_key a = key(gid, "a", 1), b = key(gid, "b", 1), c = key(gid, "c", 1);

	expect_ok(set(cache, &a, PVR_GID_AT_HOST, one, true));
	expect_ok(set(cache, &b, PVR_GID_AT_HOST, two, true));
	expect_at(cache, &a, one);
	expect_at(cache, &b, two);
	assert_false(pvr_gid_cache_find(cache, &c, &location));
}

TEST_CACHE(test_group_has_many_members)
{
	struct pvr_gid_location location;
	uint8_t gid[16];
	struct pvr_gid_key k = key(gid, "default", 1), v1;

	k.multicast = true;
	v1 = k;
	v1.gid_type = PVR_GID_TYPE_ROCE_V1;
	for (uintptr_t i = 1; i <= 100; i++)
		expect_ok(set(cache, &k, PVR_GID_AT_HOST, (struct pvr_host *)(i * 16), true));
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, false));
	assert_true(pvr_gid_cache_find(cache, &k, &location));
	assert_int_equal(location.count, 100);
	assert_false(pvr_gid_cache_find(cache, &v1, &location));
	for (uintptr_t i = 100; i >= 1; i--)
		expect_ok(set(cache, &k, PVR_GID_LEFT_HOST, (struct pvr_host *)(i * 16), true));
	assert_int_equal(pvr_gid_cache_count(cache), 0);
}

TEST_CACHE(test_many_gids_are_found)
{
	struct pvr_gid_location location;
	struct pvr_gid_key k;
	uint8_t gid[16];

	for (uint32_t i = 0; i < MANY; i++) {
		k = key(gid, i % 3 ? "default" : "tenant2", i);
		expect_ok(set(cache, &k, PVR_GID_AT_HOST, i % 2 ? one : two, true));
	}
	assert_int_equal(pvr_gid_cache_count(cache), MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		k = key(gid, i % 3 ? "default" : "tenant2", i);
		expect_at(cache, &k, i % 2 ? one : two);
		k = key(gid, i % 3 ? "tenant2" : "default", i);
		assert_false(pvr_gid_cache_find(cache, &k, &location));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		k = key(gid, i % 3 ? "default" : "tenant2", i);
		expect_ok(set(cache, &k, PVR_GID_UNKNOWN, NULL, true));
	}
	assert_int_equal(pvr_gid_cache_count(cache), 0);
}

TEST_CACHE(test_full_gid_cache_takes_no_more)
{
	struct pvr_gid_key k;
	uint8_t gid[16];

	for (uint32_t i = 0; i < PVR_GID_CACHE_MAX; i++) {
		k = key(gid, "default", i);
		expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
	}
	k = key(gid, "default", PVR_GID_CACHE_MAX);
	assert_int_equal(set(cache, &k, PVR_GID_AT_HOST, one, false), -ENOSPC);
	assert_int_equal(set(cache, &k, PVR_GID_ABSENT, NULL, false), -ENOSPC);
	/* Present entries can be changed, and their removal makes room. */
	k = key(gid, "default", 5);
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, two, true));
	expect_ok(set(cache, &k, PVR_GID_UNKNOWN, NULL, true));
	k = key(gid, "default", PVR_GID_CACHE_MAX);
	expect_ok(set(cache, &k, PVR_GID_AT_HOST, one, true));
}

TEST_CACHE(test_queries_have_an_interval)
{
	uint8_t gid[16], other_gid[16];
	struct pvr_gid_key k = key(gid, "default", 1), other = key(other_gid, "default", 2);

	assert_true(pvr_gid_cache_query(cache, &k, 1000, 100));
	assert_false(pvr_gid_cache_query(cache, &k, 1099, 100));
	assert_true(pvr_gid_cache_query(cache, &k, 1100, 100));
	assert_int_equal(pvr_gid_cache_was_queried(cache, &other), PVR_GID_NOT_QUERIED);
	assert_int_equal(pvr_gid_cache_was_queried(cache, &k), PVR_GID_QUERIED);
	assert_int_equal(pvr_gid_cache_was_queried(cache, &k), PVR_GID_NOT_QUERIED);
	assert_true(pvr_gid_cache_query(cache, &k, 1101, 100));
}

/* The records of queries are few, and a guest can query any number of GIDs. */
TEST_CACHE(test_query_is_remembered_beside_any_others)
{
	uint8_t gid[16], other_gid[16];
	struct pvr_gid_key k = key(gid, "default", 0), other;

	assert_true(pvr_gid_cache_query(cache, &k, 1000, 100));
	for (uint32_t i = 1; i < 20000; i++) {
		other = key(other_gid, "default", i);
		pvr_gid_cache_query(cache, &other, 1000, 100);
	}
	assert_int_equal(pvr_gid_cache_was_queried(cache, &k), PVR_GID_PERHAPS_QUERIED);
}

/* ------------------------------------------------------------------ with an engine */

static int t_setup_wire(void **state)
{
	setenv("FG_WIRE", "1", 1);
	t_setup_guests(state);
	unsetenv("FG_WIRE");
	return 0;
}

/* Whether @host may be the source of @gid. */
static enum pvr_gid_state check(struct t_env *env, struct pvr_host *host, const uint8_t gid[16])
{
	return pvr_gid_check_host(env->host->engine, host, "default", gid, PVR_GID_TYPE_ROCE_V2,
				  gid, NULL);
}

TEST(wire, test_remote_is_the_source_of_its_own_gids_only)
{
	struct pvr_engine *engine = env->host->engine;
	struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	uint8_t mine[16], its[16], group[16] = { 0xff };
	const uint8_t v2 = PVR_GID_TYPE_ROCE_V2, v1 = PVR_GID_TYPE_ROCE_V1;

	fg_gid_from_mac(mine, env->g[0]->config.mac);
	fg_gid_from_mac(its, env->g[1]->config.mac);
	assert_int_equal(check(env, host, its), PVR_GID_AT_HOST);
	assert_int_equal(pvr_gid_check_host(engine, host, "default", its, v1, its, NULL),
			 PVR_GID_ABSENT);
	assert_int_equal(check(env, host, mine), PVR_GID_ABSENT);
	assert_int_equal(check(env, host, group), PVR_GID_ABSENT);
	/* A fabric without local adapters answers no query. */
	assert_int_equal(pvr_gid_check_host(engine, host, "tenant2", its, v2, its, NULL),
			 PVR_GID_ABSENT);
	assert_int_equal(check(env, pvr_host_get(engine, "host9"), its), PVR_GID_ABSENT);
	its[15] ^= 1;
	assert_int_equal(fg_wire_resolves(env->wire, 0), 0);
	assert_int_equal(check(env, host, its), PVR_GID_UNKNOWN);
	assert_int_equal(fg_wire_resolves(env->wire, 0), 1);
	/* A local adapter takes precedence over the directory. */
	expect_ok(pvr_engine_set_gid(engine, "default", mine, v2, PVR_GID_AT_HOST, host));
	assert_int_equal(check(env, host, mine), PVR_GID_ABSENT);
}

TEST(wire, test_removed_gid_is_resolved_again)
{
	struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	struct pvr_host *other = pvr_host_get(env->host->engine, "host9");
	uint64_t gid_gen = env->g[0]->adapter->fabric->gid_gen;
	uint8_t its[16];

	fg_gid_from_mac(its, env->g[1]->config.mac);
	/* A host that does not have the GID cannot remove it. */
	pvr_gid_left_host(env->host->engine, other, "default", its);
	assert_int_equal(fg_wire_moves(env->wire, 0), 0);
	assert_ptr_equal(pvr_gid_find_host(env->g[0]->adapter, its), host);
	fg_wire_directory(env->wire, false);
	pvr_gid_left_host(env->host->engine, host, "default", its);
	assert_int_equal(fg_wire_moves(env->wire, 0), 1);
	assert_true(env->g[0]->adapter->fabric->gid_gen > gid_gen);
	assert_null(pvr_gid_find_host(env->g[0]->adapter, its));
	assert_int_equal(fg_wire_resolves(env->wire, 0), 1);
	fg_wire_directory(env->wire, true);
	fg_run(env->host);
	assert_ptr_equal(pvr_gid_find_host(env->g[0]->adapter, its), host);
}

static bool set_wakes(struct t_env *env, const uint8_t gid[16], enum pvr_gid_state state,
		      struct pvr_host *host)
{
	bool wake;

	expect_ok(pvr_host_gid_set(env->host->engine, "default", gid, PVR_GID_TYPE_ROCE_V2, state,
				   host, &wake));
	return wake;
}

/* Queue pairs wait for it since they were told that no host has it. */
TEST(wire, test_absent_gid_that_is_found_wakes)
{
	struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 3);
	fg_wire_directory(env->wire, false);
	assert_null(pvr_gid_find_host(env->g[0]->adapter, gid));
	assert_true(set_wakes(env, gid, PVR_GID_ABSENT, NULL));
	assert_true(set_wakes(env, gid, PVR_GID_AT_HOST, host));
	/* The same again, and a GID that was not asked for, are no news. */
	assert_false(set_wakes(env, gid, PVR_GID_AT_HOST, host));
	fg_gid_from_ipv4(gid, 10, 0, 0, 4);
	assert_false(set_wakes(env, gid, PVR_GID_AT_HOST, host));
}

/* Queue pairs may wait for a connection to the first host, which has lost the GID. */
TEST(wire, test_gid_that_is_found_at_another_host_wakes)
{
	struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	struct pvr_host *other = pvr_host_get(env->host->engine, "host9");
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 3);
	assert_false(set_wakes(env, gid, PVR_GID_AT_HOST, host));
	assert_true(set_wakes(env, gid, PVR_GID_AT_HOST, other));
	/* So does the first location by the directory, after one that a host has told. */
	fg_gid_from_ipv4(gid, 10, 0, 0, 4);
	pvr_referral_set(env->host->engine, "default", gid, PVR_GID_TYPE_ROCE_V2, host);
	assert_true(set_wakes(env, gid, PVR_GID_AT_HOST, other));
	assert_false(set_wakes(env, gid, PVR_GID_AT_HOST, other));
}

TEST(wire, test_reset_and_unplugged_adapters_are_announced_as_gone)
{
	uint8_t its[16], gid_type, mac[6];

	fg_gid_from_mac(its, env->g[1]->config.mac);
	assert_non_null(pvr_gid_find_host(env->g[0]->adapter, its));
	assert_true(pvr_engine_find_gid(env->g[1]->host->engine, "default", its, &gid_type, mac));
	assert_int_equal(gid_type, PVR_GID_TYPE_ROCE_V2);
	assert_memory_equal(mac, env->g[1]->config.mac, 6);
	fg_reg_write(env->g[1], PVR_REG_CTL, PVR_CTL_RESET);
	fg_run(env->host);
	assert_null(pvr_gid_find_host(env->g[0]->adapter, its));
	assert_false(pvr_engine_find_gid(env->g[1]->host->engine, "default", its, &gid_type, mac));
	expect_ok(fg_guest_boot(env->g[1]));
	expect_ok(fg_bind_gid(env->g[1], 0, its));
	assert_non_null(pvr_gid_find_host(env->g[0]->adapter, its));
	fg_guest_unplug(env->g[1]);
	fg_run(env->host);
	assert_null(pvr_gid_find_host(env->g[0]->adapter, its));
}

TEST(wire, test_gid_bound_twice_is_announced_once)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 2);
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
	expect_ok(fg_bind_gid(env->g[1], 2, gid));
	assert_non_null(pvr_gid_find_host(env->g[0]->adapter, gid));
	expect_ok(fg_unbind_gid(env->g[1], 1, gid));
	assert_non_null(pvr_gid_find_host(env->g[0]->adapter, gid));
	expect_ok(fg_unbind_gid(env->g[1], 2, gid));
	assert_null(pvr_gid_find_host(env->g[0]->adapter, gid));
}
