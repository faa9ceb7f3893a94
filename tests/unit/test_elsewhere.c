// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An adapter that a VM which cannot be migrated uses at another host. */
#include <errno.h>

#include "hosts.h"

#include "core/adapter.h"
#include "gid/fabric.h"

static struct pvr_adapter *source;

/* The guest of host 1 uses its adapter. Host 2 has the same adapter, without a guest. */
T_SETUP_HOSTS(twice, 3)
{
	static const char *const names[] = { "host1", "host2", "host3" };
	struct fg_guest *guest = env->g[1];

	for (unsigned int i = 0; i < 3; i++)
		pvr_engine_set_name(fg_wire_host(env->wire, i)->engine, names[i]);
	source = guest->adapter;
	LIST_REMOVE(guest, of_host);
	guest->host = fg_wire_host(env->wire, 2);
	LIST_INSERT_HEAD(&guest->host->guests, guest, of_host);
	assert_true(fg_guest_plug(guest));
}

/* Return: as pvr_adapter_check_elsewhere(). *ms: until then. */
static int check_in(struct t_env *env, char host[64], unsigned int *ms)
{
	struct pvr_adapter *adapter = env->g[1]->adapter;
	int ret = pvr_adapter_check_elsewhere(adapter, true, host, 64);

	for (*ms = 0; ret == -EINPROGRESS && *ms < 3000; ++*ms) {
		fg_wire_advance(env->wire, FG_MS);
		ret = pvr_adapter_check_elsewhere(adapter, false, host, 64);
	}
	return ret;
}

static int check(struct t_env *env)
{
	char host[64];
	unsigned int ms;
	int ret = check_in(env, host, &ms);

	assert_in_range(ms, 0, 100);
	return ret;
}

TEST(twice, test_adapter_in_use_elsewhere_is_busy)
{
	char host[64];
	unsigned int ms;

	assert_int_equal(check_in(env, host, &ms), -EBUSY);
	assert_in_range(ms, 0, 100);
	assert_string_equal(host, "host2");
	/* It is asked anew each time. */
	pvr_adapter_set_migratable(source, true);
	assert_int_equal(check(env), 0);
	pvr_adapter_set_migratable(source, false);
	assert_int_equal(check(env), -EBUSY);
	pvr_adapter_destroy(source);
}

TEST(twice, test_adapter_whose_vm_is_paused_is_busy)
{
	assert_int_equal(pvr_adapter_stop(source), 0);
	assert_int_equal(check(env), -EBUSY);
	pvr_adapter_destroy(source);
}

TEST(twice, test_adapter_whose_driver_has_left_is_free)
{
	char host[64];
	unsigned int ms;

	assert_int_equal(check(env), -EBUSY);
	pvr_adapter_reset(source);
	assert_int_equal(check_in(env, host, &ms), 0);
	pvr_adapter_destroy(source);
}

TEST(twice, test_adapter_that_is_nowhere_else_is_free)
{
	char host[64];
	unsigned int ms;

	pvr_adapter_destroy(source);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(check_in(env, host, &ms), 0);
	assert_in_range(ms, 0, 100);
}

TEST(twice, test_host_that_does_not_respond_uses_no_adapter)
{
	char host[64];
	unsigned int ms;

	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(check_in(env, host, &ms), 0);
	fg_wire_hold(env->wire, 2, 1, false);
	assert_in_range(ms, 990, 1010);
	pvr_adapter_destroy(source);
}

TEST(twice, test_directory_that_does_not_respond_knows_no_host)
{
	uint8_t gid[16];
	char host[64];
	unsigned int ms;

	fg_wire_directory(env->wire, false);
	fg_gid_from_mac(gid, env->g[1]->config.mac);
	assert_int_equal(pvr_engine_set_gid(fg_wire_host(env->wire, 2)->engine, "default", gid, 0,
					    PVR_GID_UNKNOWN, NULL),
			 0);
	assert_int_equal(check_in(env, host, &ms), 0);
	fg_wire_directory(env->wire, true);
	assert_in_range(ms, 490, 510);
	pvr_adapter_destroy(source);
}

/* Only the host that was asked has a say, and only while it is asked. */
TEST(twice, test_answer_of_another_host_is_ignored)
{
	struct pvr_engine *engine = fg_wire_host(env->wire, 2)->engine;
	static const uint8_t none[PVR_TOKEN_BYTES];
	const uint8_t *mac = env->g[1]->config.mac;
	char host[64];
	unsigned int ms;

	engine->move_ops->taken(engine, "default", mac, none, fg_wire_remote_host(env->wire, 2, 1),
				PVR_TAKE_NO);
	pvr_adapter_set_migratable(source, true);
	fg_wire_hold(env->wire, 2, 1, true);
	for (ms = 0; ms < 100; ms++) {
		assert_int_equal(pvr_adapter_check_elsewhere(env->g[1]->adapter, !ms, host, 64),
				 -EINPROGRESS);
		engine->move_ops->taken(engine, "default", mac, none,
					fg_wire_remote_host(env->wire, 2, 0), PVR_TAKE_NO);
		fg_wire_advance(env->wire, FG_MS);
	}
	fg_wire_hold(env->wire, 2, 1, false);
	assert_int_equal(check(env), 0);
	pvr_adapter_destroy(source);
}

/* A question gives nothing away. */
TEST(twice, test_question_takes_no_adapter)
{
	assert_int_equal(pvr_adapter_stop(source), 0);
	pvr_adapter_set_migratable(source, true);
	assert_int_equal(check(env), 0);
	assert_int_equal(pvr_adapter_run_state(source), PVR_RUN_STOPPED);
	pvr_adapter_destroy(source);
}

/* The QEMU has left meanwhile. */
TEST(twice, test_question_that_was_abandoned_is_asked_anew)
{
	char host[64];

	fg_wire_hold(env->wire, 2, 1, true);
	assert_int_equal(pvr_adapter_check_elsewhere(env->g[1]->adapter, true, host, 64),
			 -EINPROGRESS);
	fg_wire_advance(env->wire, 10 * FG_SEC);
	fg_wire_hold(env->wire, 2, 1, false);
	assert_int_equal(check(env), -EBUSY);
	pvr_adapter_destroy(source);
}
