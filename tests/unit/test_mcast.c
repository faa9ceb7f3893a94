// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_MCAST: multicast groups. */
#include "ends.h"
#include "rdma/ud.h"

#define GRH 40u

static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };
static const uint8_t group_v4[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

TEST_EXT(PVR_EXT_MCAST)

static uint64_t dropped(const struct fg_guest *g)
{
	return fg_stats(g).ud_dropped;
}

static void post_to(struct fg_end *from, const uint8_t mgid[16], uint32_t qpn, uint32_t len)
{
	struct pvrdma_av av = fg_av(&from->pd, mgid, 0);

	t_post(from, .wr_id = 99, .opcode = PVRDMA_WR_SEND_WITH_IMM, T_SGE(&from->mr, 0, len),
	       .imm = 0x11223344, .av = &av, .remote_qpn = qpn, .remote_qkey = FG_QKEY);
	t_run_ud(from->guest->host);
	expect_sent(from, 99);
	expect_state(from, PVR_QPS_RTS);
}

static void send_group(struct fg_end *from, const uint8_t mgid[16], uint32_t len)
{
	post_to(from, mgid, PVR_MULTICAST_QPN, len);
}

/* @end becomes a member, with a receive request number 1. */
static void join(struct fg_end *end, const uint8_t mgid[16])
{
	expect_ok(fg_qp_attach(&end->qp, mgid));
	t_recv(end, 1, 1000, 200);
}

/* Another member. */
static void open_member(struct fg_end *end, struct fg_guest *guest)
{
	t_open_ready(end, guest, PVR_QPT_UD);
	join(end, group);
}

/* The member has received one datagram of @len bytes. */
static struct pvrdma_cqe expect_datagram(struct fg_end *end, uint32_t len)
{
	struct pvrdma_cqe cqe = expect_recv(&end->rcq, 1, len + GRH);

	expect_no_cqe(&end->rcq);
	return cqe;
}

TEST(ud_ready, test_datagram_reaches_all_of_the_group_behind_a_grh)
{
	struct fg_end c, *end[3] = { &env->a, &env->b, &c };

	fg_fill(env->a.buf.va, 100, 1);
	join(&env->a, group);
	join(&env->b, group);
	open_member(&c, env->g[1]);
	send_group(&env->a, group, 100);
	/* The sender too, which is attached itself (HCAs loop back). */
	for (size_t i = 0; i < COUNT(end); i++) {
		struct pvrdma_cqe cqe = expect_datagram(end[i], 100);

		assert_int_equal(cqe.src_qp, env->a.qp.qpn);
		assert_int_equal(cqe.imm_data, 0x11223344);
		assert_int_equal(cqe.wc_flags & PVRDMA_WC_GRH, PVRDMA_WC_GRH);
		assert_int_equal(cqe.network_hdr_type, PVRDMA_NETWORK_IPV6);
		assert_memory_equal(end[i]->buf.va + 1000 + 8, env->a.gid, 16);
		assert_memory_equal(end[i]->buf.va + 1000 + 24, group, 16);
		assert_int_equal(fg_mismatch(end[i]->buf.va + 1000 + GRH, 100, 1), 100);
	}
}

TEST(ud_ready, test_ipv4_group)
{
	join(&env->b, group_v4);
	send_group(&env->a, group_v4, 100);
	assert_int_equal(expect_datagram(&env->b, 100).network_hdr_type, PVRDMA_NETWORK_IPV4);
	assert_memory_equal(env->b.buf.va + 1036, group_v4 + 12, 4);
}

TEST(ud_ready, test_sender_need_not_be_attached)
{
	join(&env->b, group);
	t_recv(&env->a, 1, 0, 200);
	send_group(&env->a, group, 10);
	expect_datagram(&env->b, 10);
	expect_no_cqe(&env->a.rcq);
}

TEST(ud_ready, test_other_groups_get_nothing)
{
	static const uint8_t other[16] = { 0xff, 0x12, [14] = 1, [15] = 7 };

	join(&env->b, other);
	send_group(&env->a, group, 10);
	send_group(&env->a, group_v4, 10);
	expect_no_cqe(&env->b.rcq);
	send_group(&env->a, other, 10);
	expect_datagram(&env->b, 10);
}

TEST(ud_ready, test_other_numbers_than_that_of_multicast_get_nothing)
{
	join(&env->b, group);
	post_to(&env->a, group, env->b.qp.qpn, 10);
	post_to(&env->a, group, 0, 10);
	expect_no_cqe(&env->b.rcq);
}

TEST(ud_ready, test_number_of_multicast_at_a_unicast_gid_gets_nothing)
{
	join(&env->b, group);
	send_group(&env->a, env->b.gid, 10);
	expect_no_cqe(&env->b.rcq);
}

/* One that cannot take it does not keep it from the others. */
TEST(ud_ready, test_members_drop_for_themselves)
{
	struct fg_end c, d;
	struct pvr_qp_attr attr = { .qkey = FG_QKEY ^ 1 };
	uint64_t before = dropped(env->g[1]);

	open_member(&c, env->g[1]);
	open_member(&d, env->g[1]);
	expect_ok(fg_qp_modify(&c.qp, PVR_QPA_QKEY, &attr));
	expect_ok(fg_qp_attach(&env->b.qp, group)); /* no receive request */
	send_group(&env->a, group, 10);
	expect_datagram(&d, 10);
	expect_no_cqe(&c.rcq);
	assert_int_equal(dropped(env->g[1]) - before, 2);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(ud_ready, test_member_with_a_bad_receive_request_fails_alone)
{
	struct fg_end c;

	expect_ok(fg_qp_attach(&env->b.qp, group));
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	open_member(&c, env->g[1]);
	send_group(&env->a, group, 10);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_datagram(&c, 10);
}

TEST(ud_ready, test_adapter_with_link_down_takes_no_part)
{
	join(&env->b, group);
	for (int i = 0; i < 2; i++) {
		pvr_adapter_set_link(env->g[i]->adapter, false);
		send_group(&env->a, group, 10);
		expect_no_cqe(&env->b.rcq);
		pvr_adapter_set_link(env->g[i]->adapter, true);
	}
	send_group(&env->a, group, 10);
	expect_datagram(&env->b, 10);
}

TEST(ud_ready, test_attaching_twice_is_attaching_once)
{
	join(&env->b, group);
	join(&env->b, group);
	send_group(&env->a, group, 10);
	expect_datagram(&env->b, 10);
	expect_ok(fg_qp_detach(&env->b.qp, group));
	assert_int_equal(fg_qp_detach(&env->b.qp, group), EINVAL);
}

TEST(ud_ready, test_detached_qp_gets_nothing)
{
	join(&env->b, group);
	expect_ok(fg_qp_detach(&env->b.qp, group));
	send_group(&env->a, group, 10);
	expect_no_cqe(&env->b.rcq);
}

TEST(ud_ready, test_detaching_what_is_not_attached_is_rejected)
{
	assert_int_equal(fg_qp_detach(&env->b.qp, group), EINVAL);
	expect_ok(fg_qp_attach(&env->a.qp, group));
	assert_int_equal(fg_qp_detach(&env->b.qp, group), EINVAL);
	expect_ok(fg_qp_attach(&env->b.qp, group_v4));
	assert_int_equal(fg_qp_detach(&env->b.qp, group), EINVAL);
}

static const struct {
	const char *label;
	uint8_t gid[16];
} no_groups[] = { { "zero", { 0 } },
		  { "link-local", { 0xfe, 0x80, [15] = 1 } },
		  { "10.0.0.1", { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
		  { "223.255.255.255", { [10] = 0xff, 0xff, 223, 255, 255, 255 } },
		  { "240.0.0.1", { [10] = 0xff, 0xff, 240, 0, 0, 1 } },
		  { "broadcast", { [10] = 0xff, 0xff, 255, 255, 255, 255 } },
		  { "not IPv4-mapped", { [11] = 0xff, 224, 0, 0, 1 } } };

TEST_CASES(ud_ready, test_gids_that_are_no_groups_are_rejected, no_groups)
{
	assert_int_equal(fg_qp_attach(&env->a.qp, row->gid), EINVAL);
}

TEST(ud_ready, test_only_ud_qps_can_attach)
{
	static const enum pvr_qp_type bad[] = { PVR_QPT_RC, PVR_QPT_GSI };
	struct fg_end end;

	for (size_t i = 0; i < COUNT(bad); i++) {
		fg_end_open(&end, env->g[0], bad[i]);
		assert_int_equal(fg_qp_attach(&end.qp, group), EINVAL);
	}
	env->a.qp.handle = 5000;
	assert_int_equal(fg_qp_attach(&env->a.qp, group), EINVAL);
	assert_int_equal(fg_qp_detach(&env->a.qp, group), EINVAL);
}

TEST(ud_ready, test_qp_stays_attached_through_reset)
{
	expect_ok(fg_qp_attach(&env->b.qp, group));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	send_group(&env->a, group, 10);
	fg_end_ready(&env->b);
	t_recv(&env->b, 1, 0, 200);
	send_group(&env->a, group, 10);
	expect_datagram(&env->b, 10);
}

TEST(ud_ready, test_destroyed_qp_leaves_its_groups)
{
	struct fg_end c;

	open_member(&c, env->g[1]);
	expect_ok(fg_qp_attach(&c.qp, group_v4));
	join(&env->b, group);
	fg_end_close(&c);
	send_group(&env->a, group, 10);
	send_group(&env->a, group_v4, 10);
	expect_datagram(&env->b, 10);
}

TEST(ud_ready, test_reset_adapter_leaves_its_groups)
{
	expect_ok(fg_qp_attach(&env->b.qp, group));
	fg_reg_write(env->g[1], PVR_REG_CTL, PVR_CTL_RESET);
	send_group(&env->a, group, 10);
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
	send_group(&env->a, group, 10);
}

TEST(ud_ready, test_roce_v1_and_v2_never_meet)
{
	struct fg_guest_config config;
	struct fg_end v1, near;

	fg_guest_config_init(&config, 3);
	config.gid_type = PVR_GID_TYPE_ROCE_V1;
	t_open_ready(&v1, t_guest_as(env, 3, &config), PVR_QPT_UD);
	open_member(&near, env->g[2]);
	join(&env->b, group);
	send_group(&v1, group, 10);
	expect_no_cqe(&env->b.rcq);
	expect_datagram(&near, 10);
	t_recv(&near, 2, 0, 200);
	send_group(&env->a, group, 10);
	expect_datagram(&env->b, 10);
	expect_no_cqe(&near.rcq);
	expect_ok(fg_qp_detach(&near.qp, group));
	expect_ok(fg_qp_detach(&env->b.qp, group));
}

TEST(ud_ready, test_fabrics_never_meet)
{
	struct fg_end c;

	t_not_on_segment(env, "a segment separates tenants by VLANs, not by fabrics");
	open_member(&c, t_guest_in_fabric(env, 3, "tenant2"));
	join(&env->b, group);
	send_group(&env->a, group, 10);
	expect_no_cqe(&c.rcq);
	expect_datagram(&env->b, 10);
	t_recv(&env->b, 2, 0, 200);
	send_group(&c, group, 20);
	expect_datagram(&c, 20);
	expect_no_cqe(&env->b.rcq);
}

/* Another UD QP of @like's objects, with a receive queue of one element. */
static void open_small(struct fg_end *like, struct fg_qp *qp)
{
	*qp = t_qp_create(like, (struct fg_qp_spec){ .sq_wr = 1, .rq_wr = 1 });
	expect_ok(fg_qp_connect(qp, NULL, NULL, 0));
}

TEST(guest, test_caps_tell_the_limits)
{
	const struct pvr_caps *caps = &env->g[0]->dsr->caps;

	assert_int_equal(caps->max_mcast_grp, 256);
	assert_int_equal(caps->max_mcast_qp_attach, 64);
	assert_int_equal(caps->max_total_mcast_qp_attach, 4096);
}

/* One guest that takes all it can get leaves the other one all of its own share. */
TEST(ud_ready, test_limit_of_a_group_is_each_adapters_own)
{
	uint32_t max = env->g[0]->dsr->caps.max_mcast_qp_attach;
	struct fg_qp qp[65];

	for (uint32_t i = 0; i <= max; i++) {
		open_small(&env->a, &qp[i]);
		assert_int_equal(fg_qp_attach(&qp[i], group), i < max ? 0 : ENOMEM);
	}
	expect_ok(fg_qp_attach(&env->b.qp, group));
	expect_ok(fg_qp_detach(&qp[0], group));
	expect_ok(fg_qp_attach(&qp[max], group));
}

static void number_group(uint8_t mgid[16], uint32_t n)
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	memcpy(mgid + 8, &n, sizeof(n));
}

TEST(ud_ready, test_limit_of_groups)
{
	uint32_t max = env->g[0]->dsr->caps.max_mcast_grp;
	uint8_t mgid[16];

	for (uint32_t i = 0; i <= max; i++) {
		number_group(mgid, i);
		assert_int_equal(fg_qp_attach(&env->a.qp, mgid), i < max ? 0 : ENOMEM);
	}
	/* The refused attaches left no state. */
	expect_ok(fg_qp_attach(&env->b.qp, mgid));
	number_group(mgid, 0);
	expect_ok(fg_qp_detach(&env->a.qp, mgid));
	number_group(mgid, max);
	expect_ok(fg_qp_attach(&env->a.qp, mgid));
}

TEST(ud_ready, test_limit_of_attachments)
{
	uint32_t max = env->g[0]->dsr->caps.max_total_mcast_qp_attach, n = 0;
	struct fg_qp qp[17];
	uint8_t mgid[16];

	for (uint32_t i = 0; i < COUNT(qp); i++) {
		open_small(&env->a, &qp[i]);
		for (uint32_t k = 0; k < 256; k++, n++) {
			number_group(mgid, k);
			assert_int_equal(fg_qp_attach(&qp[i], mgid), n < max ? 0 : ENOMEM);
		}
	}
	for (uint32_t i = 0; i < COUNT(qp); i++)
		expect_ok(fg_qp_destroy(&qp[i]));
	expect_ok(fg_qp_attach(&env->a.qp, group));
}

/* 20 adapters with 64 queue pairs each would be 1280 copies: each adapter gets 1024 / 20. */
TEST(ud_ready, test_fan_out_is_bounded_and_shared_fairly)
{
	struct fg_guest *g[20];
	struct fg_end end[COUNT(g)];
	struct fg_qp(*qp)[64] = test_malloc(sizeof(*qp) * COUNT(g));

	for (uint32_t i = 0; i < COUNT(g); i++) {
		g[i] = fg_guest_start(env->host, 10 + i);
		fg_end_open(&end[i], g[i], PVR_QPT_UD);
		for (uint32_t k = 0; k < 64; k++) {
			struct pvrdma_sge sge = fg_sge(&end[i].mr, 0, 100);

			open_small(&end[i], &qp[i][k]);
			expect_ok(fg_qp_attach(&qp[i][k], group));
			assert_true(fg_post_recv(&qp[i][k], k, &sge, 1));
		}
	}
	send_group(&env->a, group, 10);
	for (uint32_t i = 0; i < COUNT(g); i++) {
		assert_int_equal(fg_cq_drain(&end[i].rcq), 1024 / COUNT(g));
		assert_int_equal(dropped(g[i]), 0);
		fg_guest_destroy(g[i]);
	}
	test_free(qp);
}

/* 60 datagrams of 4 KiB to 64 receivers are 15 MiB: more than one run's turns of one QP. */
TEST(ud_ready, test_copies_count_as_work)
{
	struct fg_qp qp[64];

	for (uint32_t i = 0; i < COUNT(qp); i++) {
		open_small(&env->b, &qp[i]);
		expect_ok(fg_qp_attach(&qp[i], group));
	}
	for (uint32_t i = 0; i < 60; i++)
		t_send_group(&env->a, group, i, 0, 4096);
	/* Those on another host are another worker's. */
	if (!env->wire && !env->segment) {
		assert_true(pvr_engine_run(env->host->engine, 0));
		assert_in_range(fg_cq_drain(&env->a.scq), 1, 59);
	}
	fg_run(env->host);
}

TEST(ud_ready, test_without_the_extension_there_are_no_groups)
{
	t_open_ready(&env->a, t_guest_with_ext(env, 3, 0), PVR_QPT_UD);
	assert_int_equal(env->g[2]->dsr->caps.max_mcast_grp, 0);
	assert_int_equal(fg_qp_attach(&env->a.qp, group), ENOSYS);
	assert_int_equal(fg_qp_detach(&env->a.qp, group), ENOSYS);
	join(&env->b, group);
	send_group(&env->a, group, 10);
	expect_no_cqe(&env->b.rcq);
}
