// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs: CREATE_BIND, DESTROY_BIND, and the owners of GIDs. */
#include "ends.h"

/* 10.0.0.1 and 10.0.0.2 */
static const uint8_t ip1[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t ip2[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

TEST(guest, test_bind_ipv4_and_ipv6_gids)
{
	static const uint8_t v6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	expect_ok(fg_bind_gid(env->g[0], 2, v6));
	assert_int_equal(fg_stats(env->g[0]).gids, 3);
	expect_ok(fg_unbind_gid(env->g[0], 1, ip1));
	expect_ok(fg_unbind_gid(env->g[0], 2, v6));
	assert_int_equal(fg_stats(env->g[0]).gids, 1);
}

TEST(guest, test_bind_at_every_index)
{
	uint8_t gid[16];

	for (uint32_t i = 1; i < env->g[0]->dsr->caps.gid_tbl_len; i++) {
		fg_gid_from_ipv4(gid, 10, 0, 1, (uint8_t)i);
		expect_ok(fg_bind_gid(env->g[0], i, gid));
	}
	assert_int_equal(fg_stats(env->g[0]).gids, env->g[0]->dsr->caps.gid_tbl_len);
}

TEST(guest, test_bind_beyond_the_table_is_rejected)
{
	const uint32_t len = env->g[0]->dsr->caps.gid_tbl_len;
	const uint32_t bad[] = { len, len + 1, 256, 0x10000, 0x80000000, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(fg_bind_gid(env->g[0], bad[i], ip1), EINVAL);
		assert_int_equal(fg_unbind_gid(env->g[0], bad[i], ip1), EINVAL);
	}
}

TEST(guests, test_gid_of_another_adapter_is_rejected)
{
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	assert_int_equal(fg_bind_gid(env->g[1], 1, ip1), EADDRINUSE);
	assert_int_equal(fg_stats(env->g[1]).gids, 1);
}

TEST(guests, test_gid_from_the_mac_of_another_adapter_is_rejected)
{
	struct fg_guest_config config;
	uint8_t gid[16];

	fg_gid_from_mac(gid, env->g[1]->config.mac);
	assert_int_equal(fg_bind_gid(env->g[0], 1, gid), EPERM);
	expect_ok(fg_unbind_gid(env->g[1], 0, gid));
	assert_int_equal(fg_bind_gid(env->g[0], 1, gid), EPERM);
	/* Any prefix: the interface identifier is what is made from the MAC. */
	gid[0] = 0x20;
	assert_int_equal(fg_bind_gid(env->g[0], 1, gid), EPERM);
	/* Also while its driver has not come yet. */
	fg_guest_config_init(&config, 3);
	env->g[2] = fg_guest_create(env->host, &config);
	fg_gid_from_mac(gid, config.mac);
	assert_int_equal(fg_bind_gid(env->g[0], 1, gid), EPERM);
}

static void unbind(struct fg_guest *guest)
{
	expect_ok(fg_unbind_gid(guest, 1, ip1));
}

static void reset(struct fg_guest *guest)
{
	fg_reg_write(guest, PVR_REG_CTL, PVR_CTL_RESET);
}

static const struct {
	const char *label;
	void (*release)(struct fg_guest *guest);
} releases[] = { { "unbound", unbind },
		 { "reset adapter", reset },
		 { "unplugged adapter", fg_guest_unplug } };

TEST_CASES(guests, test_released_gid_is_free_for_others, releases)
{
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	row->release(env->g[0]);
	expect_ok(fg_bind_gid(env->g[1], 1, ip1));
}

TEST(guest, test_another_fabric_may_use_the_same_gids)
{
	struct fg_guest_config config;

	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	fg_guest_config_init(&config, 1);
	config.name = "other";
	config.fabric = "tenant2";
	t_guest_as(env, 3, &config); /* binds the same default GID, too */
	expect_ok(fg_bind_gid(env->g[2], 1, ip1));
}

TEST(guests, test_binding_another_gid_at_a_used_index_is_rejected)
{
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	assert_int_equal(fg_bind_gid(env->g[0], 1, ip2), EBUSY);
	assert_int_equal(fg_stats(env->g[0]).gids, 2);
	expect_ok(fg_bind_gid(env->g[1], 1, ip2));
	assert_int_equal(fg_bind_gid(env->g[1], 2, ip1), EADDRINUSE);
	/* Twice bound at one index is once bound. */
	expect_ok(fg_unbind_gid(env->g[0], 1, ip1));
	expect_ok(fg_bind_gid(env->g[1], 2, ip1));
}

/* A VLAN interface has the link-local address of the one under it. */
TEST(guests, test_one_gid_at_two_indices)
{
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	expect_ok(fg_bind_gid(env->g[0], 2, ip1));
	expect_ok(fg_unbind_gid(env->g[0], 1, ip1));
	assert_int_equal(fg_bind_gid(env->g[1], 1, ip1), EADDRINUSE);
	expect_ok(fg_unbind_gid(env->g[0], 2, ip1));
	expect_ok(fg_bind_gid(env->g[1], 1, ip1));
}

static const struct {
	const char *label;
	uint8_t gid[16];
} bad_gids[] = { { "zero", { 0 } },
		 { "loopback", { [15] = 1 } },
		 { "multicast", { 0xff, 0x02, [15] = 1 } },
		 { "IPv4 multicast", { [10] = 0xff, 0xff, 224, 0, 0, 1 } },
		 { "IPv4 any", { [10] = 0xff, 0xff, 0, 0, 0, 0 } },
		 { "IPv4 broadcast", { [10] = 0xff, 0xff, 255, 255, 255, 255 } },
		 { "IPv4 loopback", { [10] = 0xff, 0xff, 127, 0, 0, 1 } } };

TEST_CASES(guest, test_invalid_gids_are_rejected, bad_gids)
{
	assert_int_equal(fg_bind_gid(env->g[0], 1, row->gid), EINVAL);
}

static const struct t_case bad_types[] = { T_CASE(0), T_CASE(PVR_GID_TYPE_ROCE_V1), T_CASE(3),
					   T_CASE(4), T_CASE(255) };

TEST_CASES(guest, test_gid_types_that_are_not_offered_are_rejected, bad_types)
{
	struct pvr_cmd_create_bind req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_BIND),
		.mtu = 1024,
		.vlan = PVR_VLAN_NONE,
		.index = 1,
		.gid_type = row->value,
	};

	memcpy(req.new_gid, ip1, sizeof(req.new_gid));
	expect_refused(fg_cmd(env->g[0], &req, sizeof(req), NULL, 0));
}

TEST(guest, test_unbind_of_an_unbound_gid_is_rejected)
{
	assert_int_equal(fg_unbind_gid(env->g[0], 1, ip1), EINVAL);
	expect_ok(fg_bind_gid(env->g[0], 1, ip1));
	assert_int_equal(fg_unbind_gid(env->g[0], 1, ip2), EINVAL);
	expect_ok(fg_unbind_gid(env->g[0], 1, ip1));
	assert_int_equal(fg_unbind_gid(env->g[0], 1, ip1), EINVAL);
}

struct listed {
	uint32_t n;
	uint32_t index[4];
	uint8_t gid[4][16];
};

static void list_gid(void *opaque, uint32_t index, const uint8_t gid[16], uint8_t gid_type)
{
	struct listed *listed = opaque;

	assert_true(listed->n < 4);
	assert_int_equal(gid_type, PVR_GID_TYPE_ROCE_V2);
	listed->index[listed->n] = index;
	memcpy(listed->gid[listed->n++], gid, 16);
}

TEST(guest, test_bound_gids_are_listed)
{
	struct listed listed = { 0 };
	uint8_t mac_gid[16];

	fg_gid_from_mac(mac_gid, env->g[0]->config.mac);
	expect_ok(fg_bind_gid(env->g[0], 9, ip1));
	pvr_adapter_for_each_gid(env->g[0]->adapter, list_gid, &listed);
	assert_int_equal(listed.n, 2);
	assert_int_equal(listed.index[0], 0);
	assert_int_equal(listed.index[1], 9);
	assert_memory_equal(listed.gid[0], mac_gid, 16);
	assert_memory_equal(listed.gid[1], ip1, 16);
}

TEST(rc, test_rc_over_ipv4_gids)
{
	struct fg_conn conn = fg_conn_default;

	expect_ok(fg_bind_gid(env->g[0], 3, ip1));
	expect_ok(fg_bind_gid(env->g[1], 3, ip2));
	conn.sgid_index = 3;
	expect_ok(fg_qp_connect(&env->a.qp, &conn, ip2, env->b.qp.qpn));
	expect_ok(fg_qp_connect(&env->b.qp, &conn, ip1, env->a.qp.qpn));
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_messages_stop_when_the_gid_is_unbound)
{
	t_ping_pong(env->host, &env->a, &env->b);
	expect_ok(fg_unbind_gid(env->g[1], 0, env->b.gid));
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
}
