// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Adapters that move to another host while their source still exists: TAKE, TAKEN and MOVED. */
#include <errno.h>
#include <stdio.h>

#include "hosts.h"

#include "core/adapter.h"
#include "core/objects.h"
#include "fg_link.h"
#include "fg_malformed.h"
#include "fg_migrate.h"
#include "gid/fabric.h"
#include "path/pipe/move.h"

#define PAGES 16
#define LEN 40000u
#define WORD 60000u

/* The peer a is at host 0, b at host 1. Host 2 has a guest without connections. */
T_SETUP_HOSTS(three, 3, .chunk = 4096)
{
	static const char *const names[] = { "host1", "host2", "host3" };

	hosts_connect(env, &env->a, &env->b, PAGES);
	for (unsigned int i = 0; i < 3; i++)
		pvr_engine_set_name(fg_wire_host(env->wire, i)->engine, names[i]);
	memset(env->b.buf.va, 0, PAGES * PVR_PAGE_SIZE);
}

static int start(struct t_env *env, struct fg_guest *guest)
{
	unsigned int ms;
	int err = hosts_start_in(env, guest, &ms);

	assert_in_range(ms, 0, 100);
	return err;
}

static void post_all(struct t_env *env)
{
	fg_fill(env->a.buf.va, LEN, 7);
	t_recv(&env->b, 9, PVR_PAGE_SIZE, LEN);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, WORD, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
	t_send(&env->a, 2, 0, LEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, PVR_PAGE_SIZE, LEN);
	t_post(&env->a, .wr_id = 4, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, WORD, 8), T_REMOTE(&env->b.mr, 0), .compare_add = 1);
}

static void expect_all(struct t_env *env)
{
	uint64_t value;
	uint32_t i;

	for (i = 1; i <= 4; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_SUCCESS);
	expect_no_cqe(&env->a.scq);
	expect_recv(&env->b.rcq, 9, LEN);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(fg_mismatch(env->b.buf.va + PVR_PAGE_SIZE, LEN, 7), LEN);
	memcpy(&value, env->b.buf.va, sizeof(value));
	assert_int_equal(value, 2);
	memcpy(&value, env->a.buf.va + WORD, sizeof(value));
	assert_int_equal(value, 1);
}

/* Both directions still work. */
static void expect_connected(struct t_env *env)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 20, 0, &env->b.mr, 0, 8);
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 21, 0, &env->a.mr, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 20);
	expect_written(&env->b, 21);
}

static const struct moment {
	const char *label;
	uint32_t steps;
} moments[] = {
	{ "at once", 0 },    { "after one step", 1 }, { "after two", 2 },
	{ "after four", 4 }, { "after seven", 7 },    { "after twelve", 12 },
	{ "after 20", 20 },  { "after 33", 33 },      { "after 60 steps", 60 },
};

TEST_CASES(three, test_peers_follow_an_adapter_to_another_host, moments)
{
	struct pvr_adapter *source;

	fg_wire_limit(env->wire, 3000, 1000);
	post_all(env);
	fg_wire_steps(env->wire, row->steps);
	source = hosts_send_state(env, env->g[1], 2);
	fg_settle(env->host, 3 * FG_SEC);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_MOVED);
	fg_settle(env->host, 5 * FG_SEC);
	expect_all(env);
	expect_connected(env);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
	pvr_adapter_destroy(source);
	expect_connected(env);
}

TEST_CASES(three, test_both_ends_move_at_once, moments)
{
	struct pvr_adapter *source[2];

	fg_wire_limit(env->wire, 3000, 1000);
	post_all(env);
	fg_wire_steps(env->wire, row->steps);
	source[1] = hosts_send_state(env, env->g[1], 2);
	source[0] = hosts_send_state(env, env->g[0], row->steps % 2 ? 1 : 2);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(start(env, env->g[0]), 0);
	fg_settle(env->host, 5 * FG_SEC);
	expect_all(env);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

/* The adapter is never at two places, and never lost. */
TEST(three, test_adapter_that_moves_to_and_fro)
{
	struct pvr_adapter *source;

	for (uint32_t i = 0; i < 20; i++) {
		memset(env->b.buf.va, 0, PAGES * PVR_PAGE_SIZE);
		post_all(env);
		fg_wire_steps(env->wire, 3 * i);
		source = hosts_send_state(env, env->g[1], 2 - i % 2);
		assert_int_equal(start(env, env->g[1]), 0);
		pvr_adapter_destroy(source);
		fg_settle(env->host, 5 * FG_SEC);
		expect_all(env);
	}
}

TEST(three, test_source_does_not_start_what_it_has_given)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(pvr_adapter_start(source), -EPERM);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_MOVED);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

TEST(three, test_reset_of_what_has_moved_is_not_told_to_its_peers)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env, env->g[1]), 0);
	pvr_adapter_reset(source);
	fg_settle(env->host, FG_SEC);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/* The migration was cancelled. */
TEST(three, test_source_that_runs_again_refuses)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(pvr_adapter_start(source), 0);
	assert_int_equal(start(env, env->g[1]), -EPERM);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_FAILED);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 20, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 20);
	pvr_adapter_destroy(source);
}

#define HOSTS 20000u

/* Those without a connection are not told, but each of them is looked at. */
TEST(three, test_many_hosts_are_told_of_a_move_in_steps)
{
	struct pvr_adapter *source;
	char name[32];

	for (unsigned int i = 0; i < HOSTS; i++) {
		snprintf(name, sizeof(name), "other%u", i);
		assert_non_null(pvr_host_get(fg_wire_host(env->wire, 1)->engine, name));
	}
	source = hosts_send_state(env, env->g[1], 2);
	source->job.longest = 0;
	assert_int_equal(start(env, env->g[1]), 0);
	fg_settle(env->host, FG_SEC);
	assert_false(pvr_adapter_busy(source));
	assert_in_range(source->job.longest, PVR_STEP_WORK, PVR_STEP_WORK + PVR_WORK_FRAME);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/* Its peer is at the source. */
TEST(three, test_local_peer_does_not_hear_of_the_end_of_the_source)
{
	struct pvr_adapter *source[2];

	source[0] = hosts_send_state(env, env->g[0], 1);
	assert_int_equal(start(env, env->g[0]), 0);
	expect_connected(env);
	source[1] = hosts_send_state(env, env->g[1], 2);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(pvr_adapter_drop(source[1]), 0);
	fg_settle(env->host, FG_SEC);
	pvr_adapter_reset(source[1]);
	fg_settle(env->host, FG_SEC);
	expect_connected(env);
	pvr_adapter_destroy(source[0]);
	pvr_adapter_destroy(source[1]);
}

/* Both hosts have had the adapter, so its peers take their word for the end of it. */
static struct pvr_adapter *move_and_load_back(struct t_env *env)
{
	struct pvr_adapter *first = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env, env->g[1]), 0);
	expect_connected(env);
	pvr_adapter_destroy(first);
	return hosts_send_state(env, env->g[1], 1);
}

static void expect_written_at_source(struct t_env *env)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 20, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 20);
}

TEST(three, test_peers_do_not_hear_of_the_end_of_a_cancelled_destination)
{
	struct pvr_adapter *source = move_and_load_back(env);

	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(pvr_adapter_start(source), 0);
	expect_written_at_source(env);
	pvr_adapter_destroy(source);
}

TEST(three, test_peers_do_not_hear_of_the_end_of_a_refused_destination)
{
	struct pvr_adapter *source = move_and_load_back(env);

	assert_int_equal(pvr_adapter_start(source), 0);
	assert_int_equal(start(env, env->g[1]), -EPERM);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, FG_SEC);
	expect_written_at_source(env);
	pvr_adapter_destroy(source);
}

/* A snapshot that is not the last one. */
TEST(three, test_wrong_token_ends_the_connections)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	env->g[1]->adapter->move.loaded[3] ^= 1;
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_ERR);
	pvr_adapter_destroy(source);
}

static bool never(void *opaque, const char *host, const char *fabric, const uint8_t gid[16])
{
	return false;
}

TEST(three, test_host_that_may_not_have_the_gids_is_refused)
{
	struct pvr_fabrics *fabrics = fg_wire_host(env->wire, 1)->engine->fabrics;
	const struct pvr_gid_ops *before = fabrics->gid_ops;
	struct pvr_gid_ops ops = *before;
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	ops.may_have = never;
	fabrics->gid_ops = &ops;
	assert_int_equal(start(env, env->g[1]), -EPERM);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	fabrics->gid_ops = before;
	assert_int_equal(pvr_adapter_start(source), 0);
	pvr_adapter_destroy(source);
}

/* The first host asks for the adapter whose state the third one has loaded. */
static struct pvr_taker second_taker(struct t_env *env, bool bound)
{
	return (struct pvr_taker){
		.fabric = "default",
		.mac = env->g[1]->config.mac,
		.token = env->g[1]->adapter->move.loaded,
		.host = fg_wire_remote_host(env->wire, 1, 0),
		.name = "host1",
		.bound = bound,
	};
}

TEST(three, test_one_of_two_destinations_is_refused)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct pvr_taker taker = second_taker(env, true);

	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_NO);
	taker.bound = false;
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_NO);
	taker.host = fg_wire_remote_host(env->wire, 1, 2);
	taker.load = env->g[1]->adapter->move.load;
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_YES);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/* Its client has left, so its run state does not tell that it was given. */
TEST(three, test_second_destination_of_a_dropped_source_is_refused)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct pvr_taker taker = second_taker(env, false);

	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(env->host);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_NO);
	taker.bound = true;
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_NO);
	pvr_adapter_destroy(source);
}

TEST(three, test_token_that_differs_in_one_byte_is_another_one)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	uint8_t token[PVR_TOKEN_BYTES];
	const struct pvr_taker taker = {
		.fabric = "default",
		.mac = env->g[1]->config.mac,
		.token = token,
		.host = fg_wire_remote_host(env->wire, 1, 2),
		.name = "host3",
	};

	for (unsigned int i = 0; i < 8 * sizeof(token); i++) {
		memcpy(token, env->g[1]->adapter->move.loaded, sizeof(token));
		token[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_STALE);
	}
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	pvr_adapter_destroy(source);
}

/* The guest comes to host 2, and its source is dead, or the way to it is cut. */
static int start_without_source(struct t_env *env)
{
	unsigned int ms;
	int err;

	fg_wire_hold(env->wire, 2, 1, true);
	err = hosts_start_in(env, env->g[1], &ms);
	fg_wire_hold(env->wire, 2, 1, false);
	assert_in_range(ms, 990, 1010);
	return err;
}

TEST(three, test_destination_of_a_silent_source_starts_after_a_second)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	pvr_adapter_destroy(source);
}

/* Until it is told, the directory and all peers find the GIDs there. */
TEST(three, test_slow_source_is_told_of_a_start_without_it)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env), 0);
	assert_true(env->g[1]->adapter->move.is_lone);
	fg_settle(env->host, 10 * FG_SEC);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_MOVED);
	assert_true(source->move.released);
	assert_false(env->g[1]->adapter->move.is_lone);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/* Two copies of the VM run: that of the source stays. */
TEST(three, test_source_that_runs_again_ends_a_start_without_it)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	/* That of the test would not find the GID at the source again. */
	fg_wire_directory(env->wire, false);
	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	assert_int_equal(pvr_adapter_start(source), 0);
	fg_wire_hold(env->wire, 2, 1, false);
	fg_settle(env->host, 10 * FG_SEC);
	fg_wire_directory(env->wire, true);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_FAILED);
	/* Peers may have executed requests of the destination. */
	assert_int_equal(pvr_qp_get(source, env->b.qp.handle)->state, PVR_QPS_ERR);
	pvr_adapter_destroy(source);
}

/* The directory still has the dead source, for instance until its lease in etcd ends. */
TEST(three, test_requests_of_a_start_without_the_source_wait_for_the_directory)
{
	struct pvr_adapter *source;

	expect_connected(env);
	fg_wire_directory(env->wire, false);
	source = hosts_send_state(env, env->g[1], 2);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_cut(env->wire, 1, 0, 0);
	assert_int_equal(start_without_source(env), 0);
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 30, 0, &env->a.mr, 0, 8);
	fg_settle(env->host, 10 * FG_SEC);
	expect_no_cqe(&env->b.scq);
	assert_int_equal(fg_stats(env->g[1]).ack_timeouts, 0);
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->b, 30);
	pvr_adapter_destroy(source);
}

static unsigned int doubts;

static void count_doubt(void *opaque, const struct pvr_host *host, const char *fabric,
			const uint8_t gid[16])
{
	assert_string_equal(pvr_host_name(host), "host3");
	doubts++;
}

/* The directory asks the host that it has for the GID. A sender can cause few of these questions. */
TEST(three, test_request_from_a_gid_of_another_host_is_reported)
{
	struct pvr_fabrics *fabrics = fg_wire_host(env->wire, 0)->engine->fabrics;
	const struct pvr_gid_ops *before = fabrics->gid_ops;
	struct pvr_gid_ops ops = *before;
	struct pvr_adapter *source;
	unsigned int ms;

	expect_connected(env);
	ops.doubt = count_doubt;
	fabrics->gid_ops = &ops;
	fg_wire_directory(env->wire, false);
	source = hosts_send_state(env, env->g[1], 2);
	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	doubts = 0;
	for (uint32_t i = 0; i < 20; i++)
		t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 30 + i, 0, &env->a.mr, 0, 8);
	fg_settle(env->host, 300 * FG_MS);
	assert_in_range(doubts, 1, 2);
	fabrics->gid_ops = before;
	fg_wire_hold(env->wire, 2, 1, false);
	fg_wire_directory(env->wire, true);
	fg_settle(env->host, 5 * FG_SEC);
	for (uint32_t i = 0; i < 20; i++)
		expect_written(&env->b, 30 + i);
	pvr_adapter_destroy(source);
}

/* The peers have gone on. The clocks of the hosts may differ, but not by that much. */
static void expect_end_of_old_state(struct t_env *env, uint64_t age_ns)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_true(env->g[1]->adapter->move.saved_at);
	env->g[1]->adapter->move.saved_at -= age_ns;
	assert_int_equal(start_without_source(env), 0);
	expect_state(&env->b, PVR_QPS_ERR);
	pvr_adapter_destroy(source);
}

TEST(three, test_old_state_of_a_silent_source_has_no_connections)
{
	expect_end_of_old_state(env, 120000 * FG_MS);
}

TEST(three, test_state_of_a_silent_source_from_the_future_has_no_connections)
{
	expect_end_of_old_state(env, (uint64_t)-120000 * FG_MS);
}

TEST(three, test_state_without_time_of_a_silent_source_keeps_its_connections)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	env->g[1]->adapter->move.saved_at = 0;
	assert_int_equal(start_without_source(env), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	pvr_adapter_destroy(source);
}

TEST(three, test_silent_source_can_be_a_reason_to_refuse)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	pvr_engine_set_needs_source(fg_wire_host(env->wire, 2)->engine, true);
	assert_int_equal(start_without_source(env), -EPERM);
	pvr_adapter_destroy(source);
}

TEST(three, test_source_that_is_not_known_is_not_taken_for_dead)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	strcpy(env->g[1]->adapter->move.source, "absent");
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), -EPERM);
	assert_in_range(ms, 990, 1010);
	assert_string_equal(env->g[1]->adapter->load_why,
			    "its state is from host absent, which cannot be asked: it is no peer "
			    "of this host");
	pvr_adapter_destroy(source);
}

/* ------------------------------------------- two destinations, and no directory that decides */

/* b is loaded at host 2, and another guest with its state at host 0. The source is silent to both. */
struct rivals {
	struct pvr_adapter *source;
	struct fg_guest *second;
};

static struct rivals load_twice(struct t_env *env)
{
	struct fg_guest_config config = env->g[1]->config;
	struct rivals rivals;
	struct fg_state state;

	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], &state), 0);
	rivals.source = hosts_load_at(env, env->g[1], 2, &state);
	rivals.second = fg_guest_create(fg_wire_host(env->wire, 0), &config);
	assert_int_equal(fg_state_load(rivals.second, &state), 0);
	fg_state_free(&state);
	fg_wire_hold(env->wire, 0, 1, true);
	fg_wire_hold(env->wire, 2, 1, true);
	return rivals;
}

static void end_rivals(struct rivals *rivals)
{
	pvr_adapter_destroy(rivals->source);
	fg_guest_destroy(rivals->second);
}

static void expect_rival(struct fg_guest *guest, int err, const char *why)
{
	char text[200];

	assert_int_equal(err, -EPERM);
	pvr_adapter_load_error(guest->adapter, text, sizeof(text));
	assert_string_equal(text, why);
}

TEST(three, test_destination_that_runs_refuses_another_one)
{
	struct rivals rivals = load_twice(env);
	unsigned int ms;

	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	assert_in_range(ms, 990, 1010);
	expect_rival(rivals.second, hosts_start_in(env, rivals.second, &ms),
		     "host host3 has started the adapter with this state");
	assert_in_range(ms, 200, 300);
	end_rivals(&rivals);
}

TEST(three, test_one_of_two_destinations_that_wait_starts)
{
	struct rivals rivals = load_twice(env);
	int first = -EINPROGRESS, second = -EINPROGRESS, ms;

	for (ms = 0; ms < 1500 && (first == -EINPROGRESS || second == -EINPROGRESS); ms++) {
		if (first == -EINPROGRESS)
			first = pvr_adapter_start(env->g[1]->adapter);
		if (second == -EINPROGRESS)
			second = pvr_adapter_start(rivals.second->adapter);
		fg_wire_advance(env->wire, FG_MS);
	}
	expect_rival(env->g[1], first, "host host1 has started the adapter with this state");
	assert_int_equal(second, 0);
	end_rivals(&rivals);
}

/* Its VM has left: the state may be loaded elsewhere. */
TEST(three, test_destination_that_has_ended_refuses_no_other_one)
{
	struct rivals rivals = load_twice(env);
	unsigned int ms;

	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_run(fg_wire_host(env->wire, 2));
	assert_int_equal(hosts_start_in(env, rivals.second, &ms), 0);
	end_rivals(&rivals);
}

/* Its client has ended before the destination asked. */
TEST(three, test_source_that_was_dropped_gives_the_adapter)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(env->host);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_RTS);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

TEST(three, test_operator_reclaims_an_adapter_of_a_dead_host)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(pvr_adapter_reclaim(source), -EINVAL);
	assert_int_equal(start(env, env->g[1]), 0);
	fg_guest_unplug(env->g[1]);
	assert_int_equal(pvr_adapter_reclaim(source), 0);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	assert_int_equal(pvr_adapter_start(source), 0);
	pvr_adapter_destroy(source);
}

/* The guest that has stayed behind with the adapter of its source. */
static struct fg_guest guest_at_source(struct t_env *env, struct pvr_adapter *source)
{
	struct fg_guest guest = *env->g[1];

	guest.adapter = source;
	guest.host = fg_wire_host(env->wire, 1);
	return guest;
}

/* Another VM has used it since the state was read, so its peers have heard of an end. */
TEST(three, test_source_whose_adapter_was_used_again_has_no_such_state)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct fg_guest next = guest_at_source(env, source);

	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(next.host);
	expect_ok(fg_guest_boot(&next));
	pvr_adapter_reset(source);
	fg_run(next.host);
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_ERR);
	pvr_adapter_destroy(source);
}

/* Its VM is paused. */
TEST(three, test_source_does_not_give_another_vm_than_that_of_the_state)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct fg_guest next = guest_at_source(env, source);

	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(next.host);
	expect_ok(fg_guest_boot(&next));
	fg_stop(&next);
	assert_int_equal(start(env, env->g[1]), -EPERM);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	assert_int_equal(pvr_adapter_start(source), 0);
	pvr_adapter_destroy(source);
}

/* The peers were told that the adapter is gone. */
TEST(three, test_source_that_was_reset_has_no_such_state)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	pvr_adapter_reset(source);
	fg_run(fg_wire_host(env->wire, 1));
	assert_int_equal(start(env, env->g[1]), 0);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_ERR);
	pvr_adapter_destroy(source);
}

/* ------------------------------------------------------------- a state that is loaded twice */

/* The state of b's adapter, which is stopped, in a file. Return: the adapter at the source. */
static struct pvr_adapter *save_to_file(struct t_env *env, struct fg_state *state)
{
	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], state), 0);
	return hosts_load_at(env, env->g[1], 2, state);
}

/* pvrdmad of the destination was killed: its adapter has a new life there, and the state again. */
static void load_again(struct t_env *env, const struct fg_state *state)
{
	fg_guest_unplug(env->g[1]);
	assert_true(fg_guest_plug(env->g[1]));
	assert_int_equal(fg_state_load(env->g[1], state), 0);
}

static void expect_ended(struct t_env *env)
{
	fg_settle(env->host, FG_SEC);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_ERR);
}

static const struct source_case {
	const char *label;
	bool drops; /* its client leaves before the destination asks */
	bool leaves; /* or after that */
} sources[] = {
	{ "whose client stays", false, false },
	{ "whose client has left", true, false },
	{ "whose client leaves then", false, true },
};

TEST_CASES(three, test_state_loaded_again_where_it_ran_ends_the_connections, sources)
{
	struct fg_state state;
	struct pvr_adapter *source = save_to_file(env, &state);

	if (row->drops)
		assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(env->host);
	assert_int_equal(start(env, env->g[1]), 0);
	expect_connected(env);
	if (row->leaves)
		assert_int_equal(pvr_adapter_drop(source), 0);
	load_again(env, &state);
	assert_int_equal(start(env, env->g[1]), 0);
	expect_ended(env);
	fg_state_free(&state);
	pvr_adapter_destroy(source);
}

/* No peer can tell it, and the state is young. */
TEST(three, test_state_loaded_again_without_its_source_ends_the_connections)
{
	struct fg_state state;
	struct pvr_adapter *source = save_to_file(env, &state);

	assert_int_equal(start_without_source(env), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	fg_stop(env->g[1]);
	fg_drop(env->g[1]);
	assert_int_equal(fg_state_load(env->g[1], &state), 0);
	assert_int_equal(start_without_source(env), 0);
	expect_ended(env);
	fg_state_free(&state);
	pvr_adapter_destroy(source);
}

/* As above, while the source says yes to each load, as pvrdmad did before it had their numbers. */
TEST(three, test_state_loaded_again_with_an_old_source_ends_the_connections)
{
	struct fg_state state;
	struct pvr_adapter *source = save_to_file(env, &state);

	assert_int_equal(start(env, env->g[1]), 0);
	expect_connected(env);
	source->move.done = false;
	fg_stop(env->g[1]);
	fg_drop(env->g[1]);
	assert_int_equal(fg_state_load(env->g[1], &state), 0);
	source->move.to_load = env->g[1]->adapter->move.load;
	assert_int_equal(start(env, env->g[1]), 0);
	expect_ended(env);
	fg_state_free(&state);
	pvr_adapter_destroy(source);
}

static enum pvr_take ask_for(struct t_env *env, uint64_t load, bool bound)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct pvr_taker taker = second_taker(env, bound);

	taker.load = load;
	return engine->move_ops->give(engine, &taker);
}

TEST(three, test_source_gives_a_state_to_one_load_only)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ask_for(env, 1, false), PVR_TAKE_YES);
	assert_int_equal(ask_for(env, 2, false), PVR_TAKE_STALE);
	assert_int_equal(ask_for(env, 2, true), PVR_TAKE_STALE);
	assert_int_equal(ask_for(env, 0, false), PVR_TAKE_STALE);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ask_for(env, 1, true), PVR_TAKE_DONE);
	assert_int_equal(ask_for(env, 2, false), PVR_TAKE_STALE);
	pvr_adapter_destroy(source);
}

static const struct t_case agreements[] = { T_CASE(true), T_CASE(false) };

TEST(three, test_old_destination_gets_a_state_until_it_has_bound_the_gids)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ask_for(env, 0, false), PVR_TAKE_YES);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ask_for(env, 0, true), PVR_TAKE_DONE);
	assert_int_equal(ask_for(env, 0, false), PVR_TAKE_STALE);
	assert_int_equal(ask_for(env, 3, false), PVR_TAKE_STALE);
	pvr_adapter_destroy(source);
}

/* Hosts that do not know numbers of loads. */
TEST(three, test_adapter_moves_between_old_hosts)
{
	struct pvr_adapter *source;

	for (unsigned int from = 0; from < 3; from++) {
		for (unsigned int to = 0; to < 3; to++) {
			if (from == to)
				continue;
			fg_wire_cut(env->wire, from, to, 0);
			fg_wire_link_env(env->wire)->no_load = true;
			fg_wire_mend(env->wire, from, to, 0);
		}
	}
	source = hosts_send_state(env, env->g[1], 2);
	assert_int_equal(start(env, env->g[1]), 0);
	expect_connected(env);
	assert_int_equal(source->move.to_load, 0);
	assert_true(source->move.done);
	pvr_adapter_destroy(source);
}

TEST_CASES(three, test_number_of_a_load_that_was_not_negotiated_ends_the_connection, agreements)
{
	struct {
		struct pvr_frame_take take;
		__le64 load;
	} frame = {
		.take.frame = FG_FRAME(PVR_FRAME_TAKE, sizeof(frame)),
		.take.token = { 1 },
		.load = htole64(7),
	};
	struct fg_malformed *peer;

	fg_wire_link_env(env->wire)->no_load = !row->value;
	peer = fg_malformed_create(env->wire, 1, 0);
	fg_malformed_send_fabric(peer, "default");
	fg_malformed_send(peer, &frame, sizeof(frame));
	assert_int_equal(fg_malformed_is_closed(peer), !row->value);
	if (!row->value)
		assert_string_equal(fg_wire_why(env->wire),
				    "number of a load, but that was not negotiated");
}

/* ----------------------------------------------------------------------------- MOVED */

static void tell_moved(struct pvr_adapter *adapter)
{
	struct pvr_host *told = NULL;
	uint32_t work;

	while ((told = pvr_pipe_tell_moved(adapter, told, &work)))
		assert_in_range(work, 1, PVR_STEP_WORK);
}

TEST(three, test_moved_of_the_host_with_the_gid_is_believed)
{
	expect_connected(env);
	tell_moved(env->g[1]->adapter);
	fg_run(env->host);
	assert_int_equal(fg_wire_moves(env->wire, 0), 1);
	expect_connected(env);
}

/*
 * A destination with peers has cached the GID at the source. When the guest leaves it for a third
 * host, its peers must not take that one for an impostor.
 */
TEST(three, test_destination_does_not_look_for_the_guest_at_the_source_any_more)
{
	struct pvr_adapter *source;

	expect_connected(env);
	source = hosts_send_state(env, env->g[1], 0);
	fg_wire_directory(env->wire, false); /* a real one does not tell departures */
	assert_int_equal(start(env, env->g[1]), 0);
	fg_settle(env->host, 10 * FG_MS);
	assert_int_equal(fg_wire_moves(env->wire, 0), 1);
	pvr_adapter_destroy(source);
}

TEST(three, test_moved_by_a_liar_is_ignored)
{
	struct pvr_gid_entry *entry = &env->g[2]->adapter->gids[0], before = *entry;

	expect_connected(env);
	*entry = env->g[1]->adapter->gids[0];
	tell_moved(env->g[2]->adapter);
	*entry = before;
	fg_run(env->host);
	assert_int_equal(fg_wire_moves(env->wire, 0), 0);
	expect_connected(env);
}

/* -------------------------------------------------------------------------- snapshots */

static void save(struct t_env *env, struct fg_state *state)
{
	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], state), 0);
}

static void save_and_run_on(struct t_env *env, struct fg_state *state)
{
	save(env, state);
	assert_int_equal(fg_start(env->g[1]), 0);
	expect_connected(env);
	fg_stop(env->g[1]);
}

static void load(struct t_env *env, struct fg_state *state)
{
	fg_drop(env->g[1]);
	assert_int_equal(fg_state_load(env->g[1], state), 0);
	fg_state_free(state);
}

static void start_and_expect(struct t_env *env, enum pvr_qp_state state)
{
	assert_int_equal(start(env, env->g[1]), 0);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(t_device_qp(&env->b)->state, state);
	if (state == PVR_QPS_RTS)
		expect_connected(env);
}

/* The adapter has run on, and its peers with it. */
TEST(three, test_old_state_of_the_same_host_ends_the_connections)
{
	struct fg_state state;

	save_and_run_on(env, &state);
	load(env, &state);
	start_and_expect(env, PVR_QPS_ERR);
}

TEST(three, test_last_state_of_the_same_host_keeps_the_connections)
{
	struct fg_state state;

	save(env, &state);
	load(env, &state);
	start_and_expect(env, PVR_QPS_RTS);
}

TEST(three, test_state_that_is_read_again_before_it_runs_keeps_the_connections)
{
	struct fg_state state, again;

	save(env, &state);
	load(env, &state);
	assert_int_equal(fg_state_save(env->g[1], &again), 0);
	fg_state_free(&again);
	start_and_expect(env, PVR_QPS_RTS);
}

TEST(three, test_state_of_the_same_host_before_its_last_one_ends_the_connections)
{
	struct fg_state first, second;

	save_and_run_on(env, &first);
	save(env, &second);
	fg_state_free(&second);
	load(env, &first);
	start_and_expect(env, PVR_QPS_ERR);
}

/* The daemon was restarted: it does not know whether the adapter has run since. */
TEST(three, test_state_of_an_earlier_daemon_of_the_same_host_ends_the_connections)
{
	struct fg_state state;

	save(env, &state);
	memset(env->g[1]->adapter->move.token, 0, PVR_TOKEN_BYTES);
	load(env, &state);
	start_and_expect(env, PVR_QPS_ERR);
}

/* The daemon is replaced by one that the host's new name is given to. */
TEST(three, test_process_with_another_name_starts_what_it_takes_over)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct fg_state state;
	unsigned int ms;

	save(env, &state);
	memset(env->g[1]->adapter->move.token, 0, PVR_TOKEN_BYTES);
	pvr_engine_set_name(engine, "renamed");
	load(env, &state);
	pvr_adapter_load_is_last(env->g[1]->adapter);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), 0);
	assert_int_equal(ms, 0);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_connected(env);
}

/* A host without a name cannot be asked. */
TEST(three, test_state_of_a_host_without_a_name_ends_the_connections)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct fg_state state;

	pvr_engine_set_name(engine, "");
	save(env, &state);
	pvr_engine_set_name(engine, "host2");
	load(env, &state);
	start_and_expect(env, PVR_QPS_ERR);
}

/* The guest and its adapter at the source, which is dropped; another host has its state. */
static struct pvr_adapter *drop_and_give(struct t_env *env, struct fg_state *state)
{
	struct pvr_adapter *source;

	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], state), 0);
	source = hosts_load_at(env, env->g[1], 2, state);
	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(env->host);
	assert_int_equal(start(env, env->g[1]), 0);
	return source;
}

static int load_and_start(struct t_env *env, struct pvr_adapter *adapter,
			  const struct fg_state *state)
{
	struct fg_guest at_source = *env->g[1];

	at_source.adapter = adapter;
	at_source.host = fg_wire_host(env->wire, 1);
	assert_int_equal(fg_state_load(&at_source, state), 0);
	return fg_start(&at_source);
}

TEST(three, test_state_that_was_given_does_not_start_at_its_source)
{
	struct fg_state state;
	struct pvr_adapter *source = drop_and_give(env, &state);
	char why[200];

	assert_int_equal(load_and_start(env, source, &state), -EPERM);
	fg_state_free(&state);
	pvr_adapter_load_error(source, why, sizeof(why));
	assert_string_equal(why, "host host3 has started the adapter with this state");
	expect_connected(env);
	pvr_adapter_destroy(source);
}

TEST(three, test_state_that_was_given_and_is_read_again_does_not_start_at_its_source)
{
	struct fg_state state, again;
	struct pvr_adapter *source = drop_and_give(env, &state);
	struct fg_guest at_source = *env->g[1];

	at_source.adapter = source;
	at_source.host = fg_wire_host(env->wire, 1);
	assert_int_equal(fg_state_load(&at_source, &state), 0);
	fg_state_free(&state);
	assert_int_equal(fg_state_save(&at_source, &again), 0);
	fg_state_free(&again);
	assert_int_equal(fg_start(&at_source), -EPERM);
	expect_connected(env);
	pvr_adapter_destroy(source);
}

/* The guest of a dropped source, which has loaded its last state again, as another host has. */
static struct fg_guest load_at_both(struct t_env *env, struct pvr_adapter **source)
{
	struct fg_guest at_source = *env->g[1];
	struct fg_state state;

	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], &state), 0);
	*source = hosts_load_at(env, env->g[1], 2, &state);
	assert_int_equal(pvr_adapter_drop(*source), 0);
	fg_run(env->host);
	at_source.adapter = *source;
	at_source.host = fg_wire_host(env->wire, 1);
	assert_int_equal(fg_state_load(&at_source, &state), 0);
	fg_state_free(&state);
	return at_source;
}

/* Else the VM would run twice. */
TEST(three, test_state_that_is_loaded_again_at_its_source_starts_there_only)
{
	struct pvr_adapter *source;
	struct fg_guest at_source = load_at_both(env, &source);

	assert_int_equal(start(env, env->g[1]), -EPERM);
	assert_int_equal(fg_start(&at_source), 0);
	assert_int_equal(source->state, PVR_ADAPTER_ACTIVE);
	pvr_adapter_destroy(source);
}

/* The destination has the source's word, and the source does not start this state. */
TEST(three, test_state_that_was_given_is_loaded_again_at_its_source)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct pvr_adapter *source;
	struct fg_guest at_source;
	struct pvr_taker taker;
	struct fg_state state;

	fg_stop(env->g[1]);
	assert_int_equal(fg_state_save(env->g[1], &state), 0);
	source = hosts_load_at(env, env->g[1], 2, &state);
	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(env->host);
	taker = second_taker(env, false);
	taker.host = fg_wire_remote_host(env->wire, 1, 2);
	taker.name = "host3";
	taker.load = env->g[1]->adapter->move.load;
	assert_int_equal(engine->move_ops->give(engine, &taker), PVR_TAKE_YES);
	at_source = guest_at_source(env, source);
	assert_int_equal(fg_state_load(&at_source, &state), 0);
	fg_state_free(&state);
	assert_int_equal(start(env, env->g[1]), 0);
	expect_connected(env);
	assert_int_equal(fg_start(&at_source), -EPERM);
	pvr_adapter_destroy(source);
}

TEST(three, test_state_of_a_dead_destination_starts_at_its_source_when_reclaimed)
{
	struct fg_state state;
	struct pvr_adapter *source = drop_and_give(env, &state);

	fg_guest_unplug(env->g[1]);
	assert_int_equal(pvr_adapter_reclaim(source), 0);
	assert_int_equal(pvr_adapter_reclaim(source), -EINVAL);
	assert_int_equal(load_and_start(env, source, &state), 0);
	fg_state_free(&state);
	pvr_adapter_destroy(source);
}
