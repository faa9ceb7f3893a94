// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <errno.h>

#include "fake_kernel.h"

static struct ibv_ah *create(const char *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .sgid_index = 3,
			 .hop_limit = 64,
			 .traffic_class = 0xab,
			 .flow_label = 0xfffff },
	};

	assert_int_equal(inet_pton(AF_INET6, gid, attr.grh.dgid.raw), 1);
	return pvr_create_ah(&fake.pd.ibv_pd, &attr);
}

static void assert_mac(const char *gid, const char *mac, int resolved)
{
	struct ibv_ah *ah = create(gid);

	assert_non_null(ah);
	assert_memory_equal(to_pvr_ah(ah)->av.dmac, mac, 6);
	assert_int_equal(fake.resolved, resolved);
	fake.resolved = 0;
	pvr_destroy_ah(ah);
}

TEST(fake, test_vector_has_what_the_device_needs)
{
	struct ibv_ah *ah = create("fe80::1");
	struct pvrdma_av *av = &to_pvr_ah(ah)->av;

	assert_int_equal(av->port_pd, FAKE_PD_HANDLE | 1 << 24);
	assert_int_equal(av->sl_tclass_flowlabel, 0xab << 20 | 0xfffff);
	assert_int_equal(av->src_path_bits, PVR_AV_GRH);
	assert_int_equal(av->gid_index, 3);
	assert_int_equal(av->hop_limit, 64);
	assert_int_equal(av->dgid[0], 0xfe);
	assert_int_equal(av->dgid[15], 1);
	pvr_destroy_ah(ah);
}

TEST(fake, test_every_kind_of_gid_has_a_mac)
{
	assert_mac("::ffff:10.0.0.1", FAKE_RESOLVED_MAC, 1);
	assert_mac("2001:db8::1", FAKE_RESOLVED_MAC, 1);
	assert_mac("fd00::1", FAKE_RESOLVED_MAC, 1);
	assert_mac("fe80::1", FAKE_RESOLVED_MAC, 1);
	assert_mac("fe80::5054:ff:fe12:3456", "\x52\x54\x00\x12\x34\x56", 0);
	assert_mac("ff0e::ffff:e001:203", "\x33\x33\xe0\x01\x02\x03", 0);
	assert_mac("::ffff:239.129.2.3", "\x01\x00\x5e\x01\x02\x03", 0);
}

TEST(fake, test_unresolved_is_an_error)
{
	fake.fail = EHOSTUNREACH;
	assert_fails(create("::ffff:10.0.0.1"), EHOSTUNREACH);
}

TEST(fake, test_without_gid_is_refused)
{
	struct ibv_ah_attr attr = { .dlid = 5, .port_num = 1 };

	assert_fails(pvr_create_ah(&fake.pd.ibv_pd, &attr), EINVAL);
}

TEST(fake, test_ports_are_counted_from_one)
{
	struct ibv_ah_attr attr = { .is_global = 1, .grh.dgid.raw = { 0xff, 0x0e } };
	struct ibv_ah *ah;

	assert_fails(pvr_create_ah(&fake.pd.ibv_pd, &attr), EINVAL);
	attr.port_num = 2;
	assert_fails(pvr_create_ah(&fake.pd.ibv_pd, &attr), EINVAL);
	attr.port_num = 1;
	ah = pvr_create_ah(&fake.pd.ibv_pd, &attr);
	assert_non_null(ah);
	pvr_destroy_ah(ah);
}
