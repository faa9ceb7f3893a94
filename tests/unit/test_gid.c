// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs: CREATE_BIND, DESTROY_BIND, and the owners of GIDs. */
#include "common.h"

TEST(guest, test_bind_the_default_gid)
{
	assert_int_equal(fg_stats(env->g[0]).gids, 1);
}

TEST(guest, test_bind_ipv4_and_ipv6_gids)
{
	uint8_t v4[16], v6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

	fg_gid_from_ipv4(v4, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, v4));
	expect_ok(fg_bind_gid(env->g[0], 2, v6));
	assert_int_equal(fg_stats(env->g[0]).gids, 3);
	expect_ok(fg_unbind_gid(env->g[0], 1, v4));
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
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(fg_bind_gid(env->g[0], bad[i], gid), EINVAL);
		assert_int_equal(fg_unbind_gid(env->g[0], bad[i], gid), EINVAL);
	}
}

TEST(guests, test_gid_of_another_adapter_is_rejected)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	assert_int_equal(fg_bind_gid(env->g[1], 1, gid), EADDRINUSE);
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

TEST(guests, test_unbound_gid_is_free_for_others)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	expect_ok(fg_unbind_gid(env->g[0], 1, gid));
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
}

TEST(guests, test_gid_of_a_reset_adapter_is_free_for_others)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	fg_reg_write(env->g[0], PVR_REG_CTL, PVR_CTL_RESET);
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
}

TEST(guests, test_gid_of_an_unplugged_adapter_is_free_for_others)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	fg_guest_unplug(env->g[0]);
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
}

TEST(guest, test_another_fabric_may_use_the_same_gids)
{
	struct fg_guest_config config;
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	fg_guest_config_init(&config, 1);
	config.name = "other";
	config.fabric = "tenant2";
	env->g[2] = fg_guest_create(env->host, &config);
	expect_ok(fg_guest_boot(env->g[2]));
	expect_ok(fg_bind_gid(env->g[2], 1, gid));
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(env->g[2], 0, gid));
}

TEST(guests, test_binding_another_gid_at_a_used_index_is_rejected)
{
	uint8_t a[16], b[16];

	fg_gid_from_ipv4(a, 10, 0, 0, 1);
	fg_gid_from_ipv4(b, 10, 0, 0, 2);
	expect_ok(fg_bind_gid(env->g[0], 1, a));
	expect_ok(fg_bind_gid(env->g[0], 1, a));
	assert_int_equal(fg_bind_gid(env->g[0], 1, b), EBUSY);
	assert_int_equal(fg_stats(env->g[0]).gids, 2);
	expect_ok(fg_bind_gid(env->g[1], 1, b));
	assert_int_equal(fg_bind_gid(env->g[1], 2, a), EADDRINUSE);
	/* Twice bound at one index is once bound. */
	expect_ok(fg_unbind_gid(env->g[0], 1, a));
	expect_ok(fg_bind_gid(env->g[1], 2, a));
}

/* A VLAN interface has the link-local address of the one under it. */
TEST(guests, test_one_gid_at_two_indices)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	expect_ok(fg_bind_gid(env->g[0], 2, gid));
	expect_ok(fg_unbind_gid(env->g[0], 1, gid));
	assert_int_equal(fg_bind_gid(env->g[1], 1, gid), EADDRINUSE);
	expect_ok(fg_unbind_gid(env->g[0], 2, gid));
	expect_ok(fg_bind_gid(env->g[1], 1, gid));
}

TEST(guest, test_invalid_gids_are_rejected)
{
	static const uint8_t zero[16], loopback[16] = { [15] = 1 },
				       multicast[16] = { 0xff, 0x02, [15] = 1 };
	uint8_t v4_multicast[16], v4_any[16], v4_broadcast[16], v4_loopback[16];

	fg_gid_from_ipv4(v4_multicast, 224, 0, 0, 1);
	fg_gid_from_ipv4(v4_any, 0, 0, 0, 0);
	fg_gid_from_ipv4(v4_broadcast, 255, 255, 255, 255);
	fg_gid_from_ipv4(v4_loopback, 127, 0, 0, 1);
	assert_int_equal(fg_bind_gid(env->g[0], 1, v4_loopback), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, zero), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, loopback), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, multicast), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, v4_multicast), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, v4_any), EINVAL);
	assert_int_equal(fg_bind_gid(env->g[0], 1, v4_broadcast), EINVAL);
}

TEST(guest, test_gid_types_that_are_not_offered_are_rejected)
{
	static const uint8_t bad[] = { 0, PVR_GID_TYPE_ROCE_V1, 3, 4, 255 };

	for (size_t i = 0; i < sizeof(bad); i++) {
		struct pvr_cmd_create_bind req = {
			.hdr = FG_CMD_HDR(PVR_CMD_CREATE_BIND),
			.mtu = 1024,
			.vlan = PVR_VLAN_NONE,
			.index = 1,
			.gid_type = bad[i],
		};

		fg_gid_from_ipv4(req.new_gid, 10, 0, 0, 1);
		expect_refused(fg_cmd(env->g[0], &req, sizeof(req), NULL, 0));
	}
}

TEST(guest, test_unbind_of_what_is_not_bound_is_rejected)
{
	uint8_t a[16], b[16];

	fg_gid_from_ipv4(a, 10, 0, 0, 1);
	fg_gid_from_ipv4(b, 10, 0, 0, 2);
	assert_int_equal(fg_unbind_gid(env->g[0], 1, a), EINVAL);
	expect_ok(fg_bind_gid(env->g[0], 1, a));
	assert_int_equal(fg_unbind_gid(env->g[0], 1, b), EINVAL);
	expect_ok(fg_unbind_gid(env->g[0], 1, a));
	assert_int_equal(fg_unbind_gid(env->g[0], 1, a), EINVAL);
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
	uint8_t mac_gid[16], gid[16];

	fg_gid_from_mac(mac_gid, env->g[0]->config.mac);
	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 9, gid));
	pvr_adapter_for_each_gid(env->g[0]->adapter, list_gid, &listed);
	assert_int_equal(listed.n, 2);
	assert_int_equal(listed.index[0], 0);
	assert_int_equal(listed.index[1], 9);
	assert_memory_equal(listed.gid[0], mac_gid, 16);
	assert_memory_equal(listed.gid[1], gid, 16);
}

TEST(rc, test_rc_over_ipv4_gids)
{
	struct fg_conn conn = fg_conn_default;
	uint8_t a[16], b[16];

	fg_gid_from_ipv4(a, 10, 0, 0, 1);
	fg_gid_from_ipv4(b, 10, 0, 0, 2);
	expect_ok(fg_bind_gid(env->g[0], 3, a));
	expect_ok(fg_bind_gid(env->g[1], 3, b));
	conn.sgid_index = 3;
	expect_ok(fg_qp_connect(&env->a.qp, &conn, b, env->b.qp.qpn));
	expect_ok(fg_qp_connect(&env->b.qp, &conn, a, env->a.qp.qpn));
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
