// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QUERY_PORT, QUERY_PKEY, and the link. */
#include "objects.h"

static struct pvr_port_attr query(struct fg_guest *g)
{
	struct pvr_port_attr attr;

	expect_ok(fg_query_port(g, 1, &attr));
	return attr;
}

TEST_GUEST(guest, test_query_port_of_an_active_port)
{
	struct pvr_port_attr attr = query(g);

	assert_int_equal(attr.state, PVR_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, PVR_PORT_PHYS_LINK_UP);
	assert_in_range(attr.max_mtu, PVR_MTU_256, PVR_MTU_4096);
	assert_in_range(attr.active_mtu, PVR_MTU_256, attr.max_mtu);
	assert_in_range(attr.gid_tbl_len, 1, g->dsr->caps.gid_tbl_len);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_true(attr.max_msg_sz >= 1u << 30);
	assert_true(attr.active_width == 1 || attr.active_width == 2 || attr.active_width == 4 ||
		    attr.active_width == 8);
	assert_true(attr.active_speed != 0);
	assert_int_equal(attr.reserved[0] | attr.reserved[1], 0);
}

TEST_GUEST(guest, test_query_port_rejects_other_ports)
{
	static const uint8_t bad[] = { 0, 2, 128, 255 };
	struct pvr_port_attr attr;

	for (size_t i = 0; i < sizeof(bad); i++)
		assert_int_equal(fg_query_port(g, bad[i], &attr), EINVAL);
}

TEST_GUEST(guest, test_query_pkey)
{
	uint16_t pkey = 0;

	expect_ok(fg_query_pkey(g, 1, 0, &pkey));
	assert_int_equal(pkey, 0xffff);
}

TEST_GUEST(guest, test_query_pkey_rejects_other_indices_and_ports)
{
	uint16_t pkey;

	assert_int_equal(fg_query_pkey(g, 1, 1, &pkey), EINVAL);
	assert_int_equal(fg_query_pkey(g, 1, 255, &pkey), EINVAL);
	assert_int_equal(fg_query_pkey(g, 0, 0, &pkey), EINVAL);
	assert_int_equal(fg_query_pkey(g, 2, 0, &pkey), EINVAL);
}

TEST_GUEST(guest, test_link_down_and_up_are_events)
{
	t_set_link(g, false);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
	assert_int_equal(g->irq[PVR_VEC_ASYNC], 1);
	assert_int_equal(query(g).state, PVR_PORT_DOWN);
	assert_int_equal(query(g).phys_state, PVR_PORT_PHYS_DISABLED);
	assert_false(fg_stats(g).link_up);

	t_set_link(g, true);
	expect_one_event(g, PVR_EVENT_PORT_ACTIVE, 1);
	assert_int_equal(g->irq[PVR_VEC_ASYNC], 2);
	assert_int_equal(query(g).state, PVR_PORT_ACTIVE);
	assert_true(fg_stats(g).link_up);
}

TEST_GUEST(guest, test_unchanged_link_is_no_event)
{
	t_set_link(g, true);
	expect_no_event(g);
	pvr_adapter_set_link(g->adapter, false);
	t_set_link(g, false);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(unprobed, test_link_change_before_probe_is_remembered)
{
	t_set_link(g, false);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(query(g).state, PVR_PORT_DOWN);
}

TEST_GUEST(guest, test_link_survives_a_reset)
{
	pvr_adapter_set_link(g->adapter, false);
	pvr_adapter_reset(g->adapter);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(query(g).state, PVR_PORT_DOWN);
}

TEST(guests, test_link_of_one_adapter_is_not_that_of_another)
{
	t_set_link(env->g[0], false);
	expect_no_event(env->g[1]);
	assert_int_equal(query(env->g[1]).state, PVR_PORT_ACTIVE);
}
