// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The embedder's interface to adapters: plugging, statistics, paths. */
#include "common.h"

static void no_raise(void *host, uint32_t vector)
{
}

static const struct pvr_adapter_ops no_ops = { .raise = no_raise };

static char last_error[200];

static struct pvr_adapter *create_as(struct t_env *env, const struct pvr_adapter_config *config)
{
	return pvr_adapter_create(env->host->engine, config, &no_ops, NULL, last_error,
				  sizeof(last_error));
}

static struct pvr_adapter *create(struct t_env *env, const char *name, const char *fabric,
				  uint8_t last)
{
	const struct pvr_adapter_config config = {
		.name = name,
		.fabric = fabric,
		.mac = { 0x52, 0x54, 0, 0, 0, last },
	};

	return create_as(env, &config);
}

static void expect_refusal(struct t_env *env, const char *name, const char *fabric, uint8_t last)
{
	last_error[0] = '\0';
	assert_null(create(env, name, fabric, last));
	assert_true(strlen(last_error) > 5);
	assert_null(strchr(last_error, '\n'));
}

TEST(host, test_adapter_has_the_attributes_of_its_config)
{
	static const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, 9 };
	struct pvr_adapter *adapter = create(env, "a.B-c_1", "red", 9);

	assert_non_null(adapter);
	assert_string_equal(pvr_adapter_name(adapter), "a.B-c_1");
	assert_string_equal(pvr_adapter_fabric(adapter), "red");
	assert_memory_equal(pvr_adapter_mac(adapter), mac, 6);
	pvr_adapter_destroy(adapter);
	adapter = create(env, "x", NULL, 9);
	assert_string_equal(pvr_adapter_fabric(adapter), "default");
}

TEST(host, test_bad_names_are_refused)
{
	static const char *const bad[] = {
		"", "a b", "a/b", "a\n", "\xc3\xa4", "a:b", "%s", "12345678901234567890123456789012"
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		expect_refusal(env, bad[i], NULL, 1);
		expect_refusal(env, "good", bad[i], 1);
	}
}

TEST(host, test_longest_name_is_accepted)
{
	assert_non_null(create(env, "1234567890123456789012345678901", NULL, 1));
}

TEST(host, test_second_adapter_of_a_name_or_mac_is_refused)
{
	assert_non_null(create(env, "one", NULL, 1));
	expect_refusal(env, "one", NULL, 2);
	expect_refusal(env, "one", "other", 2);
	expect_refusal(env, "two", NULL, 1);
	/* Fabrics are separate, and "default" is the one without a name. */
	expect_refusal(env, "two", "default", 1);
	assert_non_null(create(env, "two", "other", 1));
}

static const struct {
	const char *label;
	struct pvr_adapter_config config;
} bad_macs[] = {
	{ "zero", { .name = "a" } },
	{ "broadcast", { .name = "a", .mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } },
	{ "IPv4 multicast", { .name = "a", .mac = { 0x01, 0x00, 0x5e, 0, 0, 1 } } },
	{ "local multicast", { .name = "a", .mac = { 0x53, 0x54, 0, 0, 0, 1 } } },
};

TEST_CASES(host, test_bad_macs_are_refused, bad_macs)
{
	last_error[0] = '\0';
	assert_null(create_as(env, &row->config));
	assert_true(strlen(last_error) > 5);
}

TEST(host, test_refusals_fit_a_small_buffer)
{
	const struct pvr_adapter_config config = { .name = "", .mac = { 0x52, 0x54, 0, 0, 0, 1 } };
	char err[8] = "1234567";

	assert_null(pvr_adapter_create(env->host->engine, &config, &no_ops, NULL, err, 4));
	assert_true(strlen(err) <= 3);
	assert_string_equal(err + 4, "567");
}

TEST(host, test_name_is_free_after_destruction)
{
	for (int i = 0; i < 1000; i++) {
		struct pvr_adapter *adapter = create(env, "one", "red", 1);

		assert_non_null(adapter);
		pvr_adapter_destroy(adapter);
	}
}

TEST(host, test_many_adapters_in_one_fabric)
{
	struct fg_guest *guest[20];
	struct fg_end end[20];

	for (uint32_t i = 0; i < 20; i++) {
		struct fg_guest_config config;
		uint8_t gid[16];

		fg_guest_config_init(&config, 100 + i);
		config.ram_mib = 5;
		config.linear_mib = 1;
		guest[i] = fg_guest_create(env->host, &config);
		expect_ok(fg_guest_boot(guest[i]));
		fg_gid_from_mac(gid, config.mac);
		expect_ok(fg_bind_gid(guest[i], 0, gid));
		fg_end_open(&end[i], guest[i], PVR_QPT_RC);
	}
	for (uint32_t i = 0; i < 20; i += 2) {
		fg_end_connect(&end[i], &end[19 - i], NULL);
		t_ping_pong(env->host, &end[i], &end[19 - i]);
	}
	for (uint32_t i = 0; i < 20; i++)
		fg_guest_destroy(guest[i]);
}

TEST(rc, test_engine_destroys_what_is_left)
{
	fg_end_connect(&env->a, &env->b, NULL);
	t_send(&env->a, 1, 0, 100); /* waits for a receive request */
	fg_run(env->host);
	t_send(&env->b, 2, 0, 100);
	/* The fixture's teardown pulls the plugs one after the other. */
}

TEST(rc_connected, test_unplugging_with_events_pending)
{
	fg_cq_arm(&env->a.scq);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	pvr_adapter_set_link(env->g[0]->adapter, false);
	fg_guest_unplug(env->g[0]);
	fg_settle(env->host, 10 * FG_SEC);
}

struct path_seen {
	const char *from, *to;
	uint32_t n;
	struct pvr_flow_stats stats;
};

static void see_path(void *opaque, const struct pvr_flow_stats *stats)
{
	struct path_seen *seen = opaque;

	assert_non_null(stats->why);
	if (strcmp(stats->from, seen->from) || strcmp(stats->to, seen->to))
		return;
	seen->n++;
	seen->stats = *stats;
}

static struct path_seen path(struct t_env *env, const char *from, const char *to)
{
	struct path_seen seen = { .from = from, .to = to };

	pvr_engine_for_each_flow(env->host->engine, see_path, &seen);
	return seen;
}

TEST(rc_connected, test_paths_count_messages_and_bytes)
{
	struct path_seen seen;

	assert_true(path(env, "vm1", "vm2").stats.messages == 0);
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, 1, 0, 1000);
		t_send(&env->a, 2, 0, 1000);
	}
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 60000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 4, 0, &env->b.mr, 0, 500);
	fg_run(env->host);
	seen = path(env, "vm1", "vm2");
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.stats.path, "local");
	assert_string_equal(seen.stats.fabric, "default");
	assert_int_equal(seen.stats.messages, 5);
	assert_int_equal(seen.stats.bytes, 3000 + 60000 + 500);
	assert_true(path(env, "vm2", "vm1").stats.messages == 0);
}

TEST(rc_loopback, test_path_to_oneself_is_counted)
{
	t_recv(&env->b, 1, 0, 1000);
	t_send(&env->a, 2, 0, 100);
	fg_run(env->host);
	assert_int_equal(path(env, "vm1", "vm1").stats.messages, 1);
}

TEST(ud_ready, test_datagrams_are_counted_on_their_path)
{
	t_recv(&env->b, 1, 0, 1000);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	fg_run(env->host);
	assert_int_equal(path(env, "vm1", "vm2").stats.messages, 1);
	assert_int_equal(path(env, "vm1", "vm2").stats.bytes, 100);
}

TEST(rc_connected, test_statistics_of_an_adapter)
{
	struct pvr_adapter_stats before = fg_stats(env->g[0]), after;

	t_recv(&env->b, 1, 0, 1000);
	t_send(&env->a, 2, 0, 1000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, 0, 500);
	fg_cq_arm(&env->a.scq);
	fg_run(env->host);
	after = fg_stats(env->g[0]);
	assert_int_equal(after.tx_messages - before.tx_messages, 2);
	assert_int_equal(after.tx_bytes - before.tx_bytes, 1500);
	assert_int_equal(after.doorbells - before.doorbells, 3);
	assert_true(after.interrupts > before.interrupts);
	assert_int_equal(after.pds, 1);
	assert_int_equal(after.mrs, 1);
	assert_int_equal(after.cqs, 2);
	assert_int_equal(after.qps, 1);
	assert_int_equal(after.gids, 1);
}

TEST(host, test_state_names)
{
	assert_string_equal(pvr_adapter_state_name(PVR_ADAPTER_IDLE), "idle");
	assert_string_equal(pvr_adapter_state_name(PVR_ADAPTER_READY), "ready");
	assert_string_equal(pvr_adapter_state_name(PVR_ADAPTER_ACTIVE), "active");
	assert_string_equal(pvr_adapter_state_name(PVR_ADAPTER_FAILED), "failed");
	assert_non_null(pvr_adapter_state_name(99));
}

TEST(host, test_destroying_no_engine_is_allowed)
{
	pvr_engine_destroy(NULL);
}

TEST(guest, test_log_lines_of_a_driver_have_the_adapters_name)
{
	const struct fg_log_line *line = &env->host->line[0];

	assert_true(env->host->logged[PVR_LOG_INFO] >= 2);
	for (uint32_t i = 0; i < env->host->nlines && i < FG_LOG_LINES; i++) {
		assert_null(strchr(line[i].text, '\n'));
		if (line[i].level == PVR_LOG_INFO)
			assert_string_equal(line[i].adapter, "vm1");
	}
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
	assert_true(fg_logged(env->host, "reset"));
}
