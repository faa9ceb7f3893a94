// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Claims of states: two destinations of one state, and a source that does not respond to both. */
#include <errno.h>

#include "hosts.h"

#include "core/adapter.h"
#include "core/objects.h"
#include "fg_migrate.h"
#include "gid/fabric.h"
#include "path/pipe/move.h"

/* What the adapter at host 2 has claimed. A result follows by report(). */
static struct {
	struct pvr_state_claim last, own; /* own: of a source whose VM runs on */
	unsigned int num;
	enum pvr_claim answer;
	struct pvr_gid_ops ops;
} claims;

static enum pvr_claim claim_state(void *opaque, const struct pvr_state_claim *claim)
{
	claims.last = *claim;
	if (claim->runs_on)
		claims.own = *claim;
	claims.num++;
	return claims.answer;
}

/* The peer a is at host 0. b is loaded at host 2, and its source at host 1 is stopped. */
T_SETUP_HOSTS(moving, 3)
{
	static const char *const names[] = { "host1", "host2", "host3" };
	struct pvr_fabrics *fabrics = fg_wire_host(env->wire, 2)->engine->fabrics;

	hosts_connect(env, &env->a, &env->b, 4);
	for (unsigned int i = 0; i < 3; i++)
		pvr_engine_set_name(fg_wire_host(env->wire, i)->engine, names[i]);
	memset(&claims, 0, sizeof(claims));
	claims.answer = PVR_CLAIM_ASKED;
	claims.ops = *fabrics->gid_ops;
	claims.ops.claim_state = claim_state;
	fabrics->gid_ops = &claims.ops;
}

static void report(struct t_env *env, enum pvr_claim result, const char *detail)
{
	pvr_engine_state_claimed(fg_wire_host(env->wire, 2)->engine, &claims.last, result, detail);
}

/* The way to the source is cut, and the result of the claim comes half a second after the claim. */
static int start_without_source(struct t_env *env, enum pvr_claim result, const char *detail)
{
	unsigned int ms;
	int err;

	fg_wire_hold(env->wire, 2, 1, true);
	for (ms = 0; ms < 2000 && !claims.num; ms++) {
		assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EINPROGRESS);
		fg_wire_advance(env->wire, FG_MS);
	}
	assert_in_range(ms, 990, 1010);
	assert_true(claims.last.waits);
	for (ms = 0; ms < 500; ms++) {
		assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EINPROGRESS);
		fg_wire_advance(env->wire, FG_MS);
	}
	assert_int_equal(claims.num, 1);
	report(env, result, detail);
	err = pvr_adapter_start(env->g[1]->adapter);
	fg_wire_hold(env->wire, 2, 1, false);
	return err;
}

static int start(struct t_env *env)
{
	unsigned int ms;
	int err = hosts_start_in(env, env->g[1], &ms);

	assert_in_range(ms, 0, 100);
	return err;
}

static void expect_failed(struct t_env *env, const char *why)
{
	char text[200];

	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_FAILED);
	pvr_adapter_load_error(env->g[1]->adapter, text, sizeof(text));
	assert_string_equal(text, why);
}

/* ------------------------------------------------------- the source does not respond */

TEST(moving, test_destination_that_wins_starts)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env, PVR_CLAIM_WON, ""), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_string_equal(claims.last.fabric, "default");
	assert_memory_equal(claims.last.mac, env->g[1]->config.mac, 6);
	assert_memory_equal(claims.last.token, source->move.token, PVR_TOKEN_BYTES);
	/* The default of the time that peers wait is 60 s. */
	assert_int_equal(claims.last.life, 180);
	pvr_adapter_destroy(source);
}

TEST(moving, test_destination_that_loses_is_refused)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env, PVR_CLAIM_LOST, "host4"), -EPERM);
	expect_failed(env, "host host4 has started the adapter with this state");
	pvr_adapter_destroy(source);
}

/* An earlier load at this host has run. */
TEST(moving, test_destination_that_has_won_before_starts_without_connections)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env, PVR_CLAIM_STALE, ""), 0);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
	pvr_adapter_destroy(source);
}

/* The source runs on with another state, and is silent until the claim is made. */
TEST(moving, test_loser_whose_source_calls_the_state_stale_starts_without_connections)
{
	pvr_adapter_destroy(hosts_send_state(env, env->g[1], 2));
	fg_wire_hold(env->wire, 2, 1, true);
	for (unsigned int ms = 0; ms < 2000 && !claims.num; ms++) {
		assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EINPROGRESS);
		fg_wire_advance(env->wire, FG_MS);
	}
	fg_wire_hold(env->wire, 2, 1, false);
	assert_int_equal(start(env), 0);
	expect_state(&env->b, PVR_QPS_ERR);
	report(env, PVR_CLAIM_LOST, "host2");
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
}

/* The directory is down. */
TEST(moving, test_destination_that_does_not_know_the_winner_is_refused)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start_without_source(env, PVR_CLAIM_FAILED, "etcd does not respond"),
			 -EPERM);
	expect_failed(env, "the host that its state is from does not respond, and it is unknown "
			   "whether another host has started with this state (etcd does not "
			   "respond)");
	pvr_adapter_destroy(source);
}

static const struct answer {
	const char *label;
	enum pvr_claim answer;
	int err;
} answers[] = {
	{ "hosts cannot agree", PVR_CLAIM_NONE, 0 },
	{ "no memory", PVR_CLAIM_FAILED, -EPERM },
};

TEST_CASES(moving, test_claim_that_is_answered_at_once, answers)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	claims.answer = row->answer;
	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), row->err);
	fg_wire_hold(env->wire, 2, 1, false);
	assert_in_range(ms, 990, 1010);
	pvr_adapter_destroy(source);
}

/* Its operator has chosen that it never starts without the source. */
TEST(moving, test_destination_that_needs_its_source_claims_nothing)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	unsigned int ms;

	pvr_engine_set_needs_source(fg_wire_host(env->wire, 2)->engine, true);
	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(hosts_start_in(env, env->g[1], &ms), -EPERM);
	fg_wire_hold(env->wire, 2, 1, false);
	assert_int_equal(claims.num, 0);
	pvr_adapter_destroy(source);
}

/* --------------------------------------------------------------- the source responds */

/* The result, which may take long, never comes. */
TEST(moving, test_start_with_the_source_does_not_wait_for_the_claim)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	assert_int_equal(claims.num, 1);
	assert_false(claims.last.waits);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 20, 0, &env->b.mr, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_written(&env->a, 20);
	pvr_adapter_destroy(source);
}

TEST(moving, test_start_that_the_source_refuses_claims_nothing)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(pvr_adapter_start(source), 0);
	assert_int_equal(start(env), -EPERM);
	assert_int_equal(claims.num, 0);
	expect_failed(env, "its VM runs at the host that its state is from");
	pvr_adapter_destroy(source);
}

/* Another destination has started before, to which the source was silent. */
static void expect_late_loser(struct t_env *env)
{
	report(env, PVR_CLAIM_LOST, "host4");
	expect_failed(env, "host host4 has started the adapter with this state");
	assert_true(env->g[1]->adapter->move.refused);
}

TEST(moving, test_running_adapter_that_has_lost_fails)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	expect_late_loser(env);
	assert_int_equal(pvr_adapter_run_state(env->g[1]->adapter), PVR_RUN_RUNNING);
	pvr_adapter_destroy(source);
}

TEST(moving, test_stopped_adapter_that_has_lost_fails)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	fg_stop(env->g[1]);
	expect_late_loser(env);
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), 0);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_FAILED);
	pvr_adapter_destroy(source);
}

/* The source gives it, and falls silent before it has heard that the GIDs are bound. */
TEST(moving, test_adapter_that_was_given_and_has_lost_does_not_start)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	for (unsigned int i = 0; i < 100 && !claims.num; i++) {
		assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EINPROGRESS);
		fg_wire_advance(env->wire, FG_MS);
	}
	assert_int_equal(claims.num, 1);
	report(env, PVR_CLAIM_LOST, "host4");
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EPERM);
	expect_failed(env, "host host4 has started the adapter with this state");
	pvr_adapter_destroy(source);
}

/* ------------------------------------------------------------- results that are late */

/* The source has said yes, as it does not know of the load that has won. */
TEST(moving, test_running_adapter_that_has_won_before_loses_its_connections)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	report(env, PVR_CLAIM_STALE, "");
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
	pvr_adapter_destroy(source);
}

TEST(moving, test_each_load_has_its_number)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	uint64_t load;

	assert_int_equal(start_without_source(env, PVR_CLAIM_WON, ""), 0);
	load = claims.last.load;
	assert_true(load);
	assert_int_equal(load, env->g[1]->adapter->move.load);
	fg_stop(env->g[1]);
	fg_migrate(env->g[1]);
	assert_true(env->g[1]->adapter->move.load != load);
	pvr_adapter_destroy(source);
}

TEST(moving, test_result_after_a_reset_is_ignored)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, FG_SEC);
	report(env, PVR_CLAIM_LOST, "host4");
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_IDLE);
	pvr_adapter_destroy(source);
}

TEST(moving, test_result_for_another_state_or_adapter_is_ignored)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);

	assert_int_equal(start(env), 0);
	claims.last.token[15] ^= 1;
	report(env, PVR_CLAIM_LOST, "host4");
	claims.last.token[15] ^= 1;
	claims.last.mac[5] ^= 0x80;
	report(env, PVR_CLAIM_LOST, "host4");
	claims.last.mac[5] ^= 0x80;
	strcpy(claims.last.fabric, "absent");
	report(env, PVR_CLAIM_LOST, "host4");
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
	pvr_adapter_destroy(source);
}

/* ------------------------------------------------------------- a source whose VM runs on */

/* A state of a live VM: its source can die before another host starts with this state. */
TEST(moving, test_source_that_runs_on_claims_its_state)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct fg_guest *guest = env->g[1];
	struct fg_state state;

	engine->fabrics->gid_ops = &claims.ops;
	fg_stop(guest);
	assert_int_equal(fg_start(guest), 0);
	assert_int_equal(claims.num, 0);
	fg_stop(guest);
	assert_int_equal(fg_state_save(guest, &state), 0);
	fg_state_free(&state);
	assert_int_equal(claims.num, 0);
	assert_int_equal(fg_start(guest), 0);
	assert_int_equal(claims.num, 1);
	assert_true(claims.last.runs_on);
	assert_false(claims.last.waits);
	assert_memory_equal(claims.last.token, guest->adapter->move.token, PVR_TOKEN_BYTES);
	/* A host that has won before has found this one silent, and has started: its peers have gone on. */
	pvr_engine_state_claimed(engine, &claims.last, PVR_CLAIM_LOST, "host4");
	assert_int_equal(fg_stats(guest).state, PVR_ADAPTER_ACTIVE);
	assert_int_equal(t_device_qp(&env->b)->state, PVR_QPS_ERR);
	fg_stop(guest);
	assert_int_equal(fg_start(guest), 0);
	assert_int_equal(claims.num, 1);
}

/* The adapter of a source, whose VM has left. */
static void leave(struct fg_guest *guest, struct pvr_adapter *source, struct fg_host *host)
{
	pvr_adapter_set_bus_master(source, false);
	assert_int_equal(pvr_adapter_drop(source), 0);
	fg_run(host);
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		if (guest->ram.region[i].size)
			pvr_adapter_unmap_ram(source, guest->ram.region[i].gpa,
					      guest->ram.region[i].size);
}

/* As hosts_send_state(), to an adapter that is there. */
static struct pvr_adapter *send_state_back(struct fg_guest *guest, struct pvr_adapter *to,
					   struct fg_host *host)
{
	struct pvr_adapter *from = guest->adapter;
	struct fg_state state;

	fg_stop(guest);
	assert_int_equal(fg_state_save(guest, &state), 0);
	LIST_REMOVE(guest, of_host);
	guest->host = host;
	LIST_INSERT_HEAD(&host->guests, guest, of_host);
	guest->adapter = to;
	assert_true(fg_guest_attach(guest));
	assert_int_equal(fg_state_load(guest, &state), 0);
	fg_state_free(&state);
	return from;
}

/*
 * The source was silent when its VM started elsewhere. The VM comes back before the source is told: it has
 * not run on with the state of then.
 */
TEST(moving, test_vm_that_has_come_back_keeps_its_connections)
{
	struct fg_host *host = fg_wire_host(env->wire, 1);
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2), *before;

	assert_int_equal(start_without_source(env, PVR_CLAIM_WON, ""), 0);
	/* It is not told. */
	fg_wire_cut(env->wire, 2, 1, 0);
	leave(env->g[1], source, host);
	host->engine->fabrics->gid_ops = &claims.ops;
	before = send_state_back(env->g[1], source, host);
	assert_int_equal(start(env), 0);
	pvr_adapter_destroy(before);
	assert_true(claims.own.runs_on);
	pvr_engine_state_claimed(host->engine, &claims.own, PVR_CLAIM_LOST, "host3");
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
	expect_state(&env->b, PVR_QPS_RTS);
}

/* The source is told while the VM's new state is loaded there. The migration back may be cancelled. */
TEST(moving, test_vm_that_is_about_to_come_back_goes_on)
{
	struct fg_host *host = fg_wire_host(env->wire, 1);
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2), *before;

	assert_int_equal(start_without_source(env, PVR_CLAIM_WON, ""), 0);
	fg_wire_hold(env->wire, 2, 1, true);
	fg_settle(env->host, 100 * FG_MS);
	leave(env->g[1], source, host);
	before = send_state_back(env->g[1], source, host);
	/* Before that it is unknown which state it is. */
	source->run_state = PVR_RUN_LOADING;
	fg_wire_hold(env->wire, 2, 1, false);
	fg_settle(env->host, 10 * FG_MS);
	assert_true(before->move.is_lone);
	source->run_state = PVR_RUN_LOADED;
	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(before->state, PVR_ADAPTER_ACTIVE);
	pvr_pipe_ask(before, "host2", before->move.loaded, true);
	fg_wire_hold(env->wire, 2, 1, false);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(before->state, PVR_ADAPTER_ACTIVE);
	assert_false(before->move.is_lone);
	assert_int_equal(start(env), 0);
	expect_state(&env->b, PVR_QPS_RTS);
	pvr_adapter_destroy(before);
}

/*
 * Another destination has lost, and its request arrives first at the source, which was silent to both. The
 * requests of before the start get NO.
 */
TEST(moving, test_destination_that_has_started_counts_more_than_one_that_asked_first)
{
	struct pvr_adapter *source = hosts_send_state(env, env->g[1], 2);
	struct pvr_engine *engine = fg_wire_host(env->wire, 1)->engine;
	struct pvr_taker loser = {
		.fabric = "default",
		.mac = env->g[1]->config.mac,
		.token = source->move.token,
		.host = fg_wire_remote_host(env->wire, 1, 0),
		.name = "host1",
		.load = 7,
	};

	fg_wire_hold(env->wire, 2, 1, true);
	for (unsigned int ms = 0; ms < 2000 && !claims.num; ms++) {
		assert_int_equal(pvr_adapter_start(env->g[1]->adapter), -EINPROGRESS);
		fg_wire_advance(env->wire, FG_MS);
	}
	report(env, PVR_CLAIM_WON, "");
	assert_int_equal(start(env), 0);
	assert_int_equal(engine->move_ops->give(engine, &loser), PVR_TAKE_YES);
	fg_wire_hold(env->wire, 2, 1, false);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(fg_stats(env->g[1]).state, PVR_ADAPTER_ACTIVE);
	assert_false(env->g[1]->adapter->move.is_lone);
	expect_state(&env->b, PVR_QPS_RTS);
	loser.bound = true;
	assert_int_equal(engine->move_ops->give(engine, &loser), PVR_TAKE_NO);
	pvr_adapter_destroy(source);
}
