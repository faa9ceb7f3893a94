// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>

#include "fake_kernel.h"

static struct ibv_ah *create(const char *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.sl = 8 | 2, /* ibv_init_ah_from_wc() copies the packet type of a datagram */
		.grh = { .sgid_index = 3,
			 .hop_limit = 64,
			 .traffic_class = 0xab,
			 .flow_label = 0xfffff },
	};

	assert_int_equal(inet_pton(AF_INET6, gid, attr.grh.dgid.raw), 1);
	return pvr_create_ah(fake.ibpd, &attr);
}

TEST(fake, test_ah_has_the_address_vector_of_its_attributes)
{
	struct ibv_ah *ah = create("fe80::1");
	struct pvr_av *av = &to_pvr_ah(ah)->av;

	assert_int_equal(av->port_pd, FAKE_PD_HANDLE | 1 << 24);
	assert_int_equal(av->sl_tclass_flowlabel, 0xab << 20 | 0xfffff);
	assert_int_equal(av->src_path_bits, PVR_AV_GRH);
	assert_int_equal(av->gid_index, 3);
	assert_int_equal(av->hop_limit, 64);
	assert_int_equal(av->dgid[0], 0xfe);
	assert_int_equal(av->dgid[15], 1);
	pvr_destroy_ah(ah);
}

static const struct {
	const char *label; /* the GID */
	const char *mac;
	int resolved; /* by the kernel's tables */
} gids[] = {
	{ "::ffff:10.0.0.1", FAKE_RESOLVED_MAC, 1 },
	{ "2001:db8::1", FAKE_RESOLVED_MAC, 1 },
	{ "fd00::1", FAKE_RESOLVED_MAC, 1 },
	{ "fe80::1", FAKE_RESOLVED_MAC, 1 },
	{ "fe80::5054:ff:fe12:3456", "\x52\x54\x00\x12\x34\x56", 0 },
	{ "ff0e::ffff:e001:203", "\x33\x33\xe0\x01\x02\x03", 0 },
	{ "::ffff:239.129.2.3", "\x01\x00\x5e\x01\x02\x03", 0 },
};

TEST_CASES(fake, test_ah_has_the_mac_of_its_gid, gids)
{
	struct ibv_ah *ah = create(row->label);

	assert_non_null(ah);
	assert_memory_equal(to_pvr_ah(ah)->av.dmac, row->mac, 6);
	assert_int_equal(fake.resolved, row->resolved);
	pvr_destroy_ah(ah);
}

TEST(fake, test_ah_of_an_unresolved_gid_is_refused)
{
	fake.fail = EHOSTUNREACH;
	assert_fails(create("::ffff:10.0.0.1"), EHOSTUNREACH);
}

static const struct {
	const char *label;
	struct ibv_ah_attr attr;
} bad_attrs[] = {
	{ "no GID", { .dlid = 5, .port_num = 1 } },
	{ "port 0", { .is_global = 1, .grh.dgid.raw = { 0xff, 0x0e }, .port_num = 0 } },
	{ "port 2", { .is_global = 1, .grh.dgid.raw = { 0xff, 0x0e }, .port_num = 2 } },
};

TEST_CASES(fake, test_ah_with_bad_attributes_is_refused, bad_attrs)
{
	struct ibv_ah_attr attr = row->attr;

	assert_fails(pvr_create_ah(fake.ibpd, &attr), EINVAL);
}
