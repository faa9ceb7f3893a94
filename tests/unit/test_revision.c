// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Revisions of the device, by VMware's virtual hardware versions. */
#include "common.h"

static struct fg_guest *plug(struct t_env *env, int number, const char *hwversion, uint8_t gid_type)
{
	struct fg_guest_config config;
	struct fg_guest *g;
	uint8_t gid[16];

	fg_guest_config_init(&config, number);
	config.hwversion = hwversion;
	config.gid_type = gid_type;
	g = fg_guest_create(env->host, &config);
	env->g[number - 1] = g;
	expect_ok(fg_guest_boot(g));
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(g, 0, gid));
	return g;
}

static const struct {
	const char *label, *hwversion;
	uint32_t version;
	uint8_t gid_type;
	bool srq, ext;
} revisions[] = {
	{ "13", "13", 17, PVR_GID_TYPE_ROCE_V1, false, false },
	{ "14", "14", 18, PVR_GID_TYPE_ROCE_V2, true, false },
	{ "18", "18", 19, PVR_GID_TYPE_ROCE_V2, true, false },
	{ "20", "20", 20, PVR_GID_TYPE_ROCE_V2, true, false },
	{ "latest", "latest", 20, PVR_GID_TYPE_ROCE_V2, true, true },
	{ "default", NULL, 20, PVR_GID_TYPE_ROCE_V2, true, true },
};

TEST_CASES(host, test_version_register, revisions)
{
	struct fg_guest *g = plug(env, 1, row->hwversion, 0);

	assert_int_equal(fg_reg_read(g, PVR_REG_VERSION), row->version);
}

TEST_CASES(host, test_only_the_latest_offers_extensions, revisions)
{
	struct fg_guest *g = plug(env, 1, row->hwversion, 0);

	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_MAGIC), row->ext ? PVR_EXT_MAGIC : 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_FEATURES), row->ext ? PVR_ENGINE_EXT : 0);
	fg_reg_write(g, PVR_REG_EXT_ACK, UINT32_MAX);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(fg_stats(g).features, row->ext ? PVR_ENGINE_EXT : 0);
}

TEST_CASES(host, test_only_the_latest_has_a_clock, revisions)
{
	struct fg_guest *g = plug(env, 1, row->hwversion, 0);

	fg_advance(env->host, FG_SEC);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_LOW), row->ext ? FG_SEC : 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_HIGH), 0);
}

TEST_CASES(host, test_default_kind_of_roce, revisions)
{
	struct fg_guest *g = plug(env, 1, row->hwversion, 0);

	assert_int_equal(g->dsr->caps.gid_types, row->gid_type);
}

TEST_CASES(host, test_srqs_begin_with_hardware_version_14, revisions)
{
	struct fg_guest *g = plug(env, 1, row->hwversion, 0);
	struct fg_srq srq;
	struct fg_pd pd;

	assert_int_equal(g->dsr->caps.max_srq != 0, row->srq);
	assert_int_equal(g->dsr->caps.max_srq_wr != 0, row->srq);
	expect_ok(fg_pd_create(&g->kernel, &pd));
	if (row->srq)
		expect_ok(fg_srq_create(&pd, 16, 1, &srq));
	else
		expect_refused(fg_srq_create(&pd, 16, 1, &srq));
}

TEST(host, test_gids_of_the_other_roce_are_refused)
{
	struct fg_guest *g = plug(env, 1, "14", PVR_GID_TYPE_ROCE_V1);
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	g->dsr->caps.gid_types = PVR_GID_TYPE_ROCE_V2; /* fg_bind_gid() requests this type */
	expect_refused(fg_bind_gid(g, 1, gid));
	g->dsr->caps.gid_types = PVR_GID_TYPE_ROCE_V1;
	expect_ok(fg_bind_gid(g, 1, gid));
}

/* Below version 20 a QP number is a handle, independent of the driver's version. */
TEST(host, test_older_device_gives_a_new_driver_plain_numbers)
{
	struct fg_end end;

	for (int i = 0; i < 3; i++) {
		fg_end_open(&end, plug(env, 1, "18", 0), PVR_QPT_RC);
		assert_int_equal(end.qp.qpn, end.qp.handle);
		fg_end_close(&end);
		fg_guest_destroy(env->g[0]);
		env->g[0] = NULL;
	}
}

static const struct {
	const char *label, *hwversion;
	uint8_t gid_type; /* of the other guest, which has the latest revision */
} pairs[] = {
	{ "14 and the latest", "14", 0 },
	{ "13 and the latest by RoCE v1", "13", PVR_GID_TYPE_ROCE_V1 },
};

TEST_CASES(host, test_rc_between_revisions, pairs)
{
	t_open_pair(&env->a, plug(env, 1, row->hwversion, 0), &env->b,
		    plug(env, 2, NULL, row->gid_type));
	t_exchange(env, 1, 100);
}

/* From a guest of revision 13 to one of @hwversion. */
static void send_datagram(struct t_env *env, const char *hwversion)
{
	fg_end_open(&env->a, plug(env, 1, "13", 0), PVR_QPT_UD);
	fg_end_open(&env->b, plug(env, 2, hwversion, 0), PVR_QPT_UD);
	fg_end_ready(&env->a);
	fg_end_ready(&env->b);
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	fg_run(env->host);
}

TEST(host, test_roce_v1_and_v2_do_not_meet)
{
	send_datagram(env, "20");
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(fg_cq_pending(&env->a.scq), 1); /* sent, and lost */
}

TEST(host, test_grh_of_roce_v1)
{
	struct pvrdma_cqe cqe;
	const uint8_t *grh;

	send_datagram(env, "13");
	cqe = expect_recv(&env->b.rcq, 1, 140);
	assert_int_equal(cqe.network_hdr_type, PVRDMA_NETWORK_ROCE_V1);
	grh = env->b.buf.va;
	assert_int_equal(grh[0] >> 4, 6);
	assert_int_equal(grh[6], 0x1b);
	/* BTH, DETH, payload, ICRC: no UDP */
	assert_int_equal(grh[4] << 8 | grh[5], 12 + 8 + 100 + 4);
	assert_memory_equal(grh + 8, env->a.gid, 16);
	assert_memory_equal(grh + 24, env->b.gid, 16);
}

static bool can_plug(struct t_env *env, const char *hwversion, uint8_t gid_type)
{
	struct fg_guest_config config;
	struct fg_guest *g;

	fg_guest_config_init(&config, 1);
	config.hwversion = hwversion;
	config.gid_type = gid_type;
	g = fg_guest_try_create(env->host, &config);
	fg_guest_destroy(g);
	return g;
}

TEST(host, test_configurations_that_do_not_exist)
{
	assert_true(can_plug(env, "14", PVR_GID_TYPE_ROCE_V1));
	assert_false(can_plug(env, "15", 0));
	assert_false(can_plug(env, "", 0));
	assert_false(can_plug(env, "13", PVR_GID_TYPE_ROCE_V2));
	assert_false(can_plug(env, "14", PVR_GID_TYPE_ROCE_V1 | PVR_GID_TYPE_ROCE_V2));
	assert_false(can_plug(env, "14", 4));
}
