// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Adapters that move while the directory does not respond: the hosts that they leave refer to others. */
#include <errno.h>
#include <stdio.h>

#include "hosts.h"

#include "core/adapter.h"
#include "ctrl/ctrl.h"
#include "fg_link.h"
#include "fg_malformed.h"
#include "gid/fabric.h"
#include "gid/referral.h"
#include "path/pipe/host.h"
#include "path/pipe/move.h"
#include "rdma/worker.h"

#define PAGES 4u
#define V2 PVR_GID_TYPE_ROCE_V2

static void expect_written_by(struct t_env *env, struct fg_end *from, struct fg_end *to,
			      uint64_t id)
{
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, id, 0, &to->mr, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(from, id);
}

static void expect_connected(struct t_env *env)
{
	expect_written_by(env, &env->a, &env->b, 20);
	expect_written_by(env, &env->b, &env->a, 21);
}

static struct pvr_engine *engine_of(struct t_env *env, unsigned int host)
{
	return fg_wire_host(env->wire, host)->engine;
}

/* The directory of a real host knows only what its guests have used. */
static void forget(struct t_env *env, unsigned int host, const uint8_t gid[16])
{
	assert_int_equal(
		pvr_engine_set_gid(engine_of(env, host), "default", gid, 0, PVR_GID_UNKNOWN, NULL),
		0);
}

/* The peer a is at host 0, b at host 1, and host 2 knows neither. The directory does not respond. */
T_SETUP_HOSTS(three, 3, .chunk = 4096)
{
	static const char *const names[] = { "host1", "host2", "host3" };

	hosts_connect(env, &env->a, &env->b, PAGES);
	for (unsigned int i = 0; i < 3; i++)
		pvr_engine_set_name(engine_of(env, i), names[i]);
	expect_connected(env);
	fg_wire_directory(env->wire, false);
	forget(env, 2, env->a.gid);
	forget(env, 2, env->b.gid);
}

static struct pvr_adapter *move(struct t_env *env, unsigned int guest, unsigned int host)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[guest], host);
	unsigned int ms;

	assert_int_equal(hosts_start_in(env, env->g[guest], &ms), 0);
	return source;
}

/* Return: the host that the engine finds the GID of @end at. */
static const struct pvr_host *where(struct t_env *env, unsigned int guest, const struct fg_end *end)
{
	struct pvr_adapter *adapter = env->g[guest]->adapter;
	struct pvr_host *host;

	pvr_adapter_lock(adapter);
	host = pvr_gid_find_host(adapter, end->gid);
	pvr_adapter_unlock(adapter);
	return host;
}

static const struct first {
	const char *label;
	bool peer; /* sends first */
} firsts[] = { { "the peer sends first", true }, { "the adapter sends first", false } };

TEST_CASES(three, test_peer_follows_an_adapter_without_the_directory, firsts)
{
	struct pvr_adapter *source = move(env, 1, 2);

	if (row->peer)
		expect_written_by(env, &env->a, &env->b, 30);
	else
		expect_written_by(env, &env->b, &env->a, 30);
	expect_connected(env);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
	assert_int_equal(fg_stats(env->g[1]).ack_timeouts, 0);
	pvr_adapter_destroy(source);
}

/* It has no connection of the source, so MOVED does not reach it. */
TEST_CASES(three, test_peer_that_is_not_told_follows_an_adapter, firsts)
{
	struct pvr_adapter *source;

	fg_wire_cut(env->wire, 1, 0, 0);
	source = move(env, 1, 2);
	if (row->peer)
		expect_written_by(env, &env->a, &env->b, 30);
	else
		expect_written_by(env, &env->b, &env->a, 30);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/*
 * The source's VM ends before the start at the destination, so for a time no host has its GIDs.
 */
TEST_CASES(three, test_peer_follows_an_adapter_whose_source_was_dropped, firsts)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	assert_int_equal(pvr_adapter_drop(source), 0);
	if (row->peer)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 30, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 100 * FG_MS);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	if (row->peer) {
		fg_settle(env->host, 5 * FG_SEC);
		expect_written(&env->a, 30);
	} else {
		expect_written_by(env, &env->b, &env->a, 30);
	}
	expect_connected(env);
	pvr_adapter_destroy(source);
}

static const struct timeout {
	const char *label;
	uint8_t timeout;
} timeouts[] = { { "an ACK timeout of 4.3 s", 20 }, { "no ACK timeout", 0 } };

/* Nothing tells the peer of the start. It need not wait for its ACK timeout. */
TEST_CASES(three, test_peer_looks_for_an_unknown_adapter_within_its_timeout, timeouts)
{
	struct pvr_qp *qp = pvr_qp_get(env->g[0]->adapter, env->a.qp.handle);
	struct pvr_adapter *source;
	unsigned int ms;

	qp->attr.timeout = row->timeout;
	source = hosts_send_state(env, env->g[1], 2);
	assert_int_equal(pvr_adapter_drop(source), 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 30, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 100 * FG_MS);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	fg_settle(env->host, 300 * FG_MS);
	expect_written(&env->a, 30);
	pvr_adapter_destroy(source);
}

/* The host of the peer has never lost the GID: it has the location of before, and refers to itself no host. */
TEST(three, test_adapter_that_was_at_a_host_is_found_from_there)
{
	struct pvr_adapter *source[2];

	fg_wire_cut(env->wire, 1, 0, 0);
	source[0] = move(env, 1, 0);
	fg_wire_mend(env->wire, 1, 0, 0);
	fg_settle(env->host, FG_SEC);
	source[1] = move(env, 1, 2);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

TEST(three, test_peer_at_the_source_follows_an_adapter_without_the_directory)
{
	struct pvr_adapter *source[2];

	source[0] = move(env, 0, 1);
	expect_connected(env);
	source[1] = move(env, 1, 2);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

/* A process that takes over the adapters of another one asks before it has them all. */
TEST(three, test_absence_that_the_directory_reported_before_is_no_news)
{
	struct pvr_adapter *source[2];

	source[0] = move(env, 0, 1);
	assert_int_equal(pvr_engine_set_gid(engine_of(env, 1), "default", env->b.gid, 0,
					    PVR_GID_ABSENT, NULL),
			 0);
	source[1] = move(env, 1, 2);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

TEST(three, test_both_ends_move_at_once_without_the_directory)
{
	struct pvr_adapter *source[2];
	unsigned int ms;

	source[1] = hosts_send_state(env, env->g[1], 2);
	source[0] = hosts_send_state(env, env->g[0], 1);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	assert_int_equal(hosts_start_in(env, env->g[0], &ms), 0);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

TEST(three, test_adapter_moves_to_and_fro_without_the_directory)
{
	for (unsigned int i = 0; i < 9; i++) {
		struct pvr_adapter *source = move(env, 1, (2 + i) % 3);

		expect_connected(env);
		pvr_adapter_destroy(source);
	}
}

/* Hosts of before find the adapter by the directory only. */
TEST(three, test_old_peer_does_not_find_an_adapter_without_the_directory)
{
	struct pvr_adapter *source;

	for (unsigned int other = 1; other < 3; other++) {
		fg_wire_link_env(env->wire)->no_refer = true;
		fg_wire_cut(env->wire, 0, other, 0);
		fg_wire_mend(env->wire, 0, other, 0);
		fg_wire_cut(env->wire, other, 0, 0);
		fg_wire_mend(env->wire, other, 0, 0);
	}
	source = move(env, 1, 2);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 30, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 60 * FG_SEC);
	expect_cqe(&env->a.scq, 30, PVRDMA_WC_RETRY_EXC_ERR);
	pvr_adapter_destroy(source);
}

T_SETUP_HOSTS(four, 4, .chunk = 4096)
{
	static const char *const names[] = { "host1", "host2", "host3", "host4" };

	hosts_connect(env, &env->a, &env->b, PAGES);
	for (unsigned int i = 0; i < 4; i++)
		pvr_engine_set_name(engine_of(env, i), names[i]);
	expect_connected(env);
	fg_wire_directory(env->wire, false);
	for (unsigned int i = 2; i < 4; i++) {
		forget(env, i, env->a.gid);
		forget(env, i, env->b.gid);
	}
}

/* The source of the peer only knows which host to ask. */
TEST(four, test_guide_refers_to_its_own_guide)
{
	struct pvr_adapter *source[2] = { NULL, hosts_send_state(env, env->g[1], 2) };
	unsigned int ms;

	assert_int_equal(pvr_adapter_drop(source[1]), 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 30, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 20 * FG_MS);
	source[0] = move(env, 0, 3);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 30);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

/* ------------------------------------------------------------------------- belief */

/* Host @from tells host 0 that the host of this name has the GID. */
static void refer_to(struct t_env *env, unsigned int from, const char *name, const uint8_t gid[16])
{
	struct pvr_frame_referral frame = { .gid_type = V2 };

	strcpy(frame.name, name);
	memcpy(frame.gid, gid, sizeof(frame.gid));
	pvr_pipe_recv_referral(fg_wire_remote_host(env->wire, 0, from), "default", &frame);
}

static void refer(struct t_env *env, unsigned int from, const uint8_t gid[16])
{
	refer_to(env, from, "host3", gid);
}

TEST(three, test_referral_of_the_host_with_the_gid_is_believed)
{
	refer(env, 1, env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 2));
	assert_int_equal(fg_wire_moves(env->wire, 0), 1);
}

TEST(three, test_referral_of_another_host_is_ignored)
{
	refer(env, 2, env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 1));
	/* Nor may it speak for a GID that no host is known to have. */
	forget(env, 0, env->b.gid);
	refer(env, 1, env->b.gid);
	refer(env, 2, env->b.gid);
	assert_null(where(env, 0, &env->b));
	assert_int_equal(fg_wire_moves(env->wire, 0), 0);
}

static bool is_not_host3(void *opaque, const char *host, const char *fabric, const uint8_t gid[16])
{
	return strncmp(host, "host3", 5) != 0;
}

TEST(three, test_referral_to_a_host_that_may_not_have_the_gid_is_ignored)
{
	struct pvr_fabrics *fabrics = engine_of(env, 0)->fabrics;
	const struct pvr_gid_ops *before = fabrics->gid_ops;
	struct pvr_gid_ops ops = *before;

	ops.may_have = is_not_host3;
	fabrics->gid_ops = &ops;
	refer(env, 1, env->b.gid);
	assert_null(where(env, 0, &env->b));
	/* Nor does it take the place of a host. The host is still believed, as it was asked. */
	refer_to(env, 1, "host3a", env->b.gid);
	assert_null(pvr_host_find(engine_of(env, 0), "host3a"));
	fabrics->gid_ops = before;
	refer_to(env, 1, "host3a", env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), pvr_host_find(engine_of(env, 0), "host3a"));
}

TEST(three, test_names_of_referrals_leave_places_for_hosts_that_connect)
{
	struct pvr_engine *engine = engine_of(env, 0);
	char name[PVR_HOST_NAME_MAX];
	size_t i;

	for (i = 0; i <= PVR_HOSTS_REFERRED_MAX; i++) {
		snprintf(name, sizeof(name), "other%zu", i);
		assert_int_equal(pvr_host_get_referred(engine, name) != NULL,
				 i < PVR_HOSTS_REFERRED_MAX);
	}
	assert_non_null(pvr_host_get_referred(engine, "other0"));
	assert_non_null(pvr_host_get(engine, name));
}

static struct asking {
	struct pvr_move_ops ops;
	unsigned int count;
} asking;

static void count_query(struct pvr_host *host, const char *fabric, const uint8_t gid[16])
{
	asking.count++;
}

/* Else a host would cause a query by each response to one. */
TEST(three, test_referral_causes_no_query_of_the_host_that_it_is_from)
{
	struct pvr_engine *engine = engine_of(env, 0);
	const struct pvr_move_ops *before = engine->move_ops;

	asking = (struct asking){ .ops = *before };
	asking.ops.query = count_query;
	engine->move_ops = &asking.ops;
	refer_to(env, 1, "host2", env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 1));
	refer(env, 1, env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 2));
	refer_to(env, 2, "host3", env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 2));
	assert_int_equal(asking.count, 0);
	engine->move_ops = before;
}

static const struct answer {
	const char *label;
	enum pvr_gid_state state;
} locations[] = { { "located elsewhere", PVR_GID_AT_HOST }, { "absent", PVR_GID_ABSENT } };

/* Also when the referral comes after it. */
TEST_CASES(three, test_location_of_the_directory_ends_a_referral, locations)
{
	struct pvr_host *host = row->state == PVR_GID_AT_HOST ? fg_wire_remote_host(env->wire, 0, 1)
							      : NULL;

	refer(env, 1, env->b.gid);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(pvr_engine_set_gid(engine_of(env, 0), "default", env->b.gid,
						    host ? V2 : 0, row->state, host),
				 0);
		assert_ptr_equal(where(env, 0, &env->b), host);
		refer(env, 2, env->b.gid);
		assert_ptr_equal(where(env, 0, &env->b), host);
	}
}

/* An unknown location, which a directory reports before it looks for the GID, is no answer. */
TEST(three, test_referral_is_used_while_the_directory_knows_nothing)
{
	refer(env, 1, env->b.gid);
	forget(env, 0, env->b.gid);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 2));
}

TEST(three, test_source_is_no_guide_when_the_directory_responds)
{
	struct pvr_adapter *source = move(env, 1, 2);

	expect_connected(env);
	assert_ptr_equal(env->g[1]->adapter->referrals->source,
			 fg_wire_remote_host(env->wire, 2, 1));
	assert_int_equal(pvr_engine_set_gid(engine_of(env, 2), "default", env->a.gid, V2,
					    PVR_GID_AT_HOST, fg_wire_remote_host(env->wire, 2, 0)),
			 0);
	assert_null(env->g[1]->adapter->referrals->source);
	pvr_adapter_destroy(source);
}

/* It came to host 2 with a connection to a. Other adapters there do not take its word. */
TEST(three, test_source_is_the_guide_of_its_adapter_only)
{
	struct pvr_adapter *source = move(env, 1, 2);

	expect_connected(env);
	assert_ptr_equal(where(env, 1, &env->a), fg_wire_remote_host(env->wire, 2, 0));
	assert_null(where(env, 2, &env->a));
	assert_int_equal(env->g[1]->adapter->fabric->shard->num_referring, 1);
	/* Until the adapter is another one. */
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, FG_SEC);
	assert_null(env->g[1]->adapter->referrals);
	assert_int_equal(env->g[1]->adapter->fabric->shard->num_referring, 0);
	pvr_adapter_destroy(source);
}

static struct pvr_gid_key key_of(const uint8_t gid[16])
{
	return (struct pvr_gid_key){ .fabric = "default", .gid = gid, .gid_type = V2 };
}

/* The VM has ended at the host that its source refers to. It can come back there, so that host is asked. */
TEST(three, test_host_without_the_adapter_stays_the_guide)
{
	const struct pvr_gid_key key = key_of(env->b.gid);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine_of(env, 0), "default");
	struct pvr_adapter *source = move(env, 1, 2);

	fg_settle(env->host, FG_SEC);
	assert_ptr_equal(where(env, 0, &env->b), fg_wire_remote_host(env->wire, 0, 2));
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, FG_SEC);
	/* As after NO_GID. It is asked, and refers to no host. */
	pvr_gid_left_host(engine_of(env, 0), fg_wire_remote_host(env->wire, 0, 2), "default",
			  env->b.gid);
	assert_ptr_equal(pvr_referral_guide(shard, NULL, &key),
			 fg_wire_remote_host(env->wire, 0, 2));
	fg_settle(env->host, FG_SEC);
	assert_null(where(env, 0, &env->b));
	assert_ptr_equal(pvr_referral_guide(shard, NULL, &key),
			 fg_wire_remote_host(env->wire, 0, 2));
	assert_int_equal(pvr_engine_set_gid(engine_of(env, 0), "default", env->b.gid, 0,
					    PVR_GID_ABSENT, NULL),
			 0);
	assert_null(pvr_referral_guide(shard, NULL, &key));
	pvr_adapter_destroy(source);
}

TEST(three, test_referrals_of_an_adapter_are_bounded)
{
	struct pvr_adapter *adapter = env->g[0]->adapter;
	struct pvr_host *guide = fg_wire_remote_host(env->wire, 0, 1);
	uint8_t gid[16] = { 0xfe, 0x80 };
	const struct pvr_gid_key key = key_of(gid);

	pvr_referral_set_source(adapter, guide, pvr_now(engine_of(env, 0)));
	for (uint32_t i = 0; i < PVR_REFERRALS_MAX + 10; i++) {
		memcpy(gid + 8, &i, sizeof(i));
		pvr_referral_answered(engine_of(env, 0), "default", gid, V2, guide, guide);
		assert_ptr_equal(pvr_referral_find(adapter->fabric->shard, adapter, &key),
				 i < PVR_REFERRALS_MAX ? guide : NULL);
	}
	assert_int_equal(adapter->referrals->count, PVR_REFERRALS_MAX);
	/* The earlier ones stay, and end as before. */
	memset(gid + 8, 0, sizeof(uint32_t));
	assert_ptr_equal(pvr_referral_find(adapter->fabric->shard, adapter, &key), guide);
	pvr_referral_answered(engine_of(env, 0), "default", gid, V2, guide, NULL);
	assert_null(pvr_referral_find(adapter->fabric->shard, adapter, &key));
	assert_int_equal(
		pvr_engine_set_gid(engine_of(env, 0), "default", gid, 0, PVR_GID_ABSENT, NULL), 0);
	assert_int_equal(adapter->referrals->count, PVR_REFERRALS_MAX - 1);
}

static const struct pvr_host *referred_to(struct t_env *env, unsigned int host,
					  const uint8_t gid[16])
{
	uint8_t gid_type;

	return pvr_referral_to(engine_of(env, host), "default", gid, &gid_type);
}

/* The host that has taken an adapter without VM may have lost it to another one since. */
TEST(three, test_host_that_takes_an_adapter_again_renews_no_referral)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct pvr_taker taker = {
		.fabric = "default",
		.mac = env->g[1]->config.mac,
		.token = source->move.token,
		.host = fg_wire_remote_host(env->wire, 1, 2),
		.name = "host3",
		.bound = true,
		.load = env->g[1]->adapter->move.load,
	};
	unsigned int ms;

	assert_int_equal(pvr_adapter_drop(source), 0);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	assert_ptr_equal(referred_to(env, 1, env->b.gid), fg_wire_remote_host(env->wire, 1, 2));
	pvr_engine_rules_changed(engine_of(env, 1));
	assert_null(referred_to(env, 1, env->b.gid));
	assert_int_equal(pvr_move_give(engine_of(env, 1), &taker), PVR_TAKE_DONE);
	assert_null(referred_to(env, 1, env->b.gid));
	pvr_adapter_destroy(source);
}

/* An adapter asks its source, too, if another guide knows nothing. */
TEST(three, test_guide_without_the_gid_leaves_the_source)
{
	struct pvr_adapter *adapter = env->g[0]->adapter;
	struct pvr_host *source = fg_wire_remote_host(env->wire, 0, 1);
	struct pvr_host *guide = fg_wire_remote_host(env->wire, 0, 2);
	uint8_t gid[16] = { 0xfe, 0x80, 1 };
	const struct pvr_gid_key key = key_of(gid);

	pvr_referral_set_source(adapter, source, pvr_now(engine_of(env, 0)));
	pvr_referral_answered(engine_of(env, 0), "default", gid, V2, source, guide);
	pvr_referral_answered(engine_of(env, 0), "default", gid, V2, guide, NULL);
	assert_ptr_equal(pvr_referral_guide(adapter->fabric->shard, adapter, &key), source);
}

TEST(three, test_new_rules_end_referrals)
{
	struct pvr_engine *engine = engine_of(env, 0);
	struct pvr_adapter *adapter = env->g[0]->adapter;

	refer(env, 1, env->b.gid);
	pvr_referral_set_source(adapter, fg_wire_remote_host(env->wire, 0, 1), pvr_now(engine));
	assert_int_equal(adapter->fabric->shard->num_referring, 1);
	pvr_engine_rules_changed(engine);
	assert_null(adapter->referrals);
	assert_int_equal(adapter->fabric->shard->num_referring, 0);
	assert_null(where(env, 0, &env->b));
}

TEST(three, test_adapter_that_comes_back_ends_the_referral_of_its_host)
{
	const struct pvr_gid_key key = key_of(env->b.gid);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine_of(env, 1), "default");
	struct pvr_adapter *source = move(env, 1, 2);

	fg_settle(env->host, FG_SEC);
	assert_ptr_equal(pvr_referral_find(shard, NULL, &key),
			 fg_wire_remote_host(env->wire, 1, 2));
	pvr_adapter_destroy(source);
	source = move(env, 1, 1);
	assert_null(pvr_referral_find(shard, NULL, &key));
	pvr_adapter_destroy(source);
}

/* The source responds late. */
TEST(three, test_source_is_no_guide_after_the_directory_has_responded)
{
	struct pvr_engine *engine = engine_of(env, 0);
	struct pvr_adapter *adapter = env->g[0]->adapter;
	struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	uint64_t since = pvr_now(engine) - 1;

	forget(env, 0, env->b.gid);
	assert_null(where(env, 0, &env->b));
	assert_int_equal(
		pvr_engine_set_gid(engine, "default", env->b.gid, V2, PVR_GID_AT_HOST, host), 0);
	pvr_referral_set_source(adapter, host, since);
	assert_null(adapter->referrals);
	pvr_referral_set_source(adapter, host, pvr_now(engine));
	assert_ptr_equal(adapter->referrals->source, host);
}

/* They name any GID, to any adapter. */
TEST(three, test_frames_of_other_hosts_take_no_queries_of_an_adapter)
{
	struct pvr_adapter *source = move(env, 1, 2), *adapter = env->g[1]->adapter;
	const struct pvr_host *other = fg_wire_remote_host(env->wire, 2, 0);
	struct pvr_engine *engine = engine_of(env, 2);
	const struct pvr_move_ops *before = engine->move_ops;
	uint8_t gid[16] = { 0xfe, 0x80 };
	uint32_t used = adapter->referrals->queries.used;

	asking = (struct asking){ .ops = *before };
	asking.ops.query = count_query;
	engine->move_ops = &asking.ops;
	for (gid[15] = 1; gid[15] <= 10; gid[15]++) {
		pvr_gid_check_host(engine, other, "default", gid, V2, env->b.gid, NULL);
		assert_int_equal(asking.count, gid[15]);
	}
	assert_int_equal(adapter->referrals->queries.used, used);
	/* Nor do they delay one for the same GID. */
	pvr_gid_check_host(engine, other, "default", gid, V2, gid, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		pvr_adapter_lock(adapter);
		assert_null(pvr_gid_find_host(adapter, gid));
		pvr_adapter_unlock(adapter);
		assert_int_equal(asking.count, 11);
	}
	engine->move_ops = before;
	pvr_adapter_destroy(source);
}

/* -------------------------------------------------------------------------- frames */

static const struct agreement {
	const char *label;
	bool agreed, asked;
	const char *why;
} agreements[] = {
	{ "not negotiated", false, true, "REFERRAL, but that was not negotiated" },
	{ "not asked", true, false, "REFERRAL, but no GID was queried" },
	{ "asked", true, true, NULL },
};

TEST_CASES(three, test_unexpected_referral_ends_the_connection, agreements)
{
	const struct pvr_frame_referral frame = {
		.frame = FG_FRAME(PVR_FRAME_REFERRAL, sizeof(frame)),
		.gid_type = V2,
		.name = "host3",
	};
	struct fg_malformed *peer;

	fg_wire_link_env(env->wire)->no_refer = !row->agreed;
	fg_wire_cut(env->wire, 0, 1, 0);
	peer = fg_malformed_accept(env->wire, 0, 1, PVR_PIPE_TCP);
	/* Declares the fabric, too. */
	for (unsigned int i = 0; i < 1u + row->asked; i++)
		assert_true(pvr_req_conn_gid_query(fg_wire_remote_host(env->wire, 0, 1),
						   PVR_PIPE_TCP, 0, "default", env->b.gid));
	if (row->agreed)
		fg_malformed_send(peer, &frame, sizeof(frame));
	fg_malformed_send(peer, &frame, sizeof(frame));
	assert_int_equal(fg_malformed_is_closed(peer), row->why != NULL);
	if (row->why)
		assert_string_equal(fg_wire_why(env->wire), row->why);
}

/* As hosts without the feature would close the connection. */
TEST_CASES(three, test_query_of_a_gid_that_has_moved, agreements)
{
	struct pvr_adapter *source = move(env, 1, 2);
	struct pvr_frame_gid_query query = { .frame =
						     FG_FRAME(PVR_FRAME_GID_QUERY, sizeof(query)) };
	union pvr_any_frame any;
	struct fg_malformed *peer;

	pvr_host_set_address(fg_wire_remote_host(env->wire, 1, 2), "192.0.2.3:7471");
	fg_wire_link_env(env->wire)->no_refer = !row->agreed;
	memcpy(query.gid, env->b.gid, sizeof(query.gid));
	peer = fg_malformed_create(env->wire, 1, 0);
	fg_malformed_send_fabric(peer, "default");
	fg_malformed_send(peer, &query, sizeof(query));
	if (row->agreed) {
		assert_int_equal(fg_malformed_recv(peer, &any, sizeof(any)), sizeof(any.referral));
		assert_int_equal(any.frame.type, PVR_FRAME_REFERRAL);
		assert_int_equal(any.referral.gid_type, V2);
		assert_memory_equal(any.referral.gid, env->b.gid, 16);
		assert_string_equal(any.referral.name, "host3");
		assert_string_equal(any.referral.address, "192.0.2.3:7471");
	} else {
		assert_int_equal(fg_malformed_recv(peer, &any, sizeof(any)), sizeof(any.gid_query));
		assert_int_equal(any.frame.type, PVR_FRAME_GID_REPLY);
		assert_int_equal(any.gid_query.gid_type, 0);
	}
	pvr_adapter_destroy(source);
}

static const struct known_address {
	const char *label, *address;
	bool told;
} known_addresses[] = {
	{ "IPv4", "192.0.2.3:7471", true },
	{ "IPv6", "[2001:db8::3]:7471", true },
	{ "with a zone", "[fe80::1%eth0]:7471", false },
	{ "not formatted", "?", false },
};

/* Else the REFERRAL would end the connection to an asking host. */
TEST_CASES(three, test_address_that_no_frame_can_have_is_not_told, known_addresses)
{
	struct pvr_host *host = fg_wire_remote_host(env->wire, 1, 2);
	char told[PVR_FRAME_ADDRESS_MAX];

	pvr_host_set_address(host, "[2001:db8:0:1::2]:10000");
	pvr_host_set_address(host, row->address);
	pvr_host_get_address(host, told);
	assert_string_equal(told, row->told ? row->address : "");
}

/* Of the last frame that told host 2 an address. */
static struct told {
	struct pvr_host_ops ops;
	const struct pvr_host *host;
	char address[PVR_FRAME_ADDRESS_MAX];
	unsigned int times;
} told;

static void note_address(void *opaque, struct pvr_host *host, const char *address)
{
	told.host = host;
	told.times++;
	strcpy(told.address, address);
}

static void listen_to_addresses(struct t_env *env)
{
	struct pvr_pipe *pipe = engine_of(env, 1)->pipe;

	told = (struct told){ .ops = *pipe->ops };
	told.ops.referred = note_address;
	pipe->ops = &told.ops;
}

/* It refers peers to that host, which has dialed this one. */
TEST(three, test_source_is_told_the_address_of_the_host_that_takes_its_adapter)
{
	const struct pvr_host_ops *before = engine_of(env, 1)->pipe->ops;
	struct pvr_adapter *source;

	listen_to_addresses(env);
	pvr_engine_set_address(engine_of(env, 2), "192.0.2.3:7471");
	source = move(env, 1, 2);
	assert_ptr_equal(told.host, fg_wire_remote_host(env->wire, 1, 2));
	assert_string_equal(told.address, "192.0.2.3:7471");
	engine_of(env, 1)->pipe->ops = before;
	pvr_adapter_destroy(source);
}

/* A host without an address, and one that speaks to an old one, tell none. */
TEST_CASES(three, test_address_that_is_not_told, agreements)
{
	const struct pvr_host_ops *before = engine_of(env, 1)->pipe->ops;
	struct pvr_adapter *source;

	listen_to_addresses(env);
	if (!row->agreed) {
		fg_wire_link_env(env->wire)->no_address = true;
		fg_wire_cut(env->wire, 2, 1, 0);
		fg_wire_mend(env->wire, 2, 1, 0);
		pvr_engine_set_address(engine_of(env, 2), "192.0.2.3:7471");
	}
	source = move(env, 1, 2);
	assert_null(told.host);
	engine_of(env, 1)->pipe->ops = before;
	pvr_adapter_destroy(source);
}

/* The directory's thread has work for each one that is used. */
TEST(three, test_addresses_have_a_rate)
{
	const struct pvr_frame_address frame = {
		.frame = FG_FRAME(PVR_FRAME_ADDRESS, sizeof(frame)),
		.address = "192.0.2.3:7471",
	};
	const struct pvr_host_ops *before = engine_of(env, 1)->pipe->ops;
	struct fg_malformed *peer = fg_malformed_create(env->wire, 1, 0);

	listen_to_addresses(env);
	fg_malformed_send_fabric(peer, "default");
	for (unsigned int i = 0; i < 100; i++)
		fg_malformed_send(peer, &frame, sizeof(frame));
	assert_int_equal(told.times, 1);
	fg_wire_advance(env->wire, 20 * FG_MS);
	fg_malformed_send(peer, &frame, sizeof(frame));
	assert_int_equal(told.times, 2);
	assert_false(fg_malformed_is_closed(peer));
	engine_of(env, 1)->pipe->ops = before;
}

TEST(three, test_address_that_was_not_negotiated_ends_the_connection)
{
	const struct pvr_frame_address frame = {
		.frame = FG_FRAME(PVR_FRAME_ADDRESS, sizeof(frame)),
		.address = "192.0.2.3:7471",
	};
	struct fg_malformed *peer;

	fg_wire_link_env(env->wire)->no_address = true;
	peer = fg_malformed_create(env->wire, 1, 0);
	fg_malformed_send_fabric(peer, "default");
	fg_malformed_send(peer, &frame, sizeof(frame));
	assert_true(fg_malformed_is_closed(peer));
	assert_string_equal(fg_wire_why(env->wire), "ADDRESS, but that was not negotiated");
}
