// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QP1, as ib_mad and rdma_cm use it. */
#include "ends.h"

#define GRH 40u
#define MAD 256u

TEST_EXT(PVR_EXT_VLAN | PVR_EXT_CQ_TIMESTAMP)

/* ib_mad's way: a header and a data entry, number 1, a Q_Key with the top bit. */
static void send_mad(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	struct pvrdma_av av = fg_av(&from->pd, to->gid, 0);
	struct pvrdma_sge sge[2] = { fg_sge(&from->mr, 0, 64), fg_sge(&from->mr, 8192, 192) };

	t_post(from, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, .sge = sge, .num_sge = 2, .av = &av,
	       .remote_qpn = 1, .remote_qkey = FG_GSI_QKEY);
}

/* A MAD from a arrives at b. */
static struct pvrdma_cqe exchange_mad(struct t_env *env)
{
	t_recv(&env->b, 1, 0, GRH + MAD);
	send_mad(&env->a, &env->b, 2);
	await_sent(&env->a, 2);
	return expect_recv(&env->b.rcq, 1, GRH + MAD);
}

TEST(gsi_ready, test_mads_travel_between_qp1s)
{
	struct pvrdma_cqe cqe;

	fg_fill(env->a.mr.va, 64, 1);
	fg_fill(env->a.mr.va + 8192, 192, 2);
	cqe = exchange_mad(env);
	assert_int_equal(cqe.src_qp, 1);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_GRH, PVRDMA_WC_GRH);
	assert_int_equal(cqe.wc_flags & (PVRDMA_WC_WITH_SMAC | PVRDMA_WC_WITH_VLAN), 0);
	assert_int_equal(cqe.pkey_index, 0);
	assert_memory_equal(env->b.mr.va + 8, env->a.gid, 16);
	assert_memory_equal(env->b.mr.va + 24, env->b.gid, 16);
	assert_int_equal(fg_mismatch(env->b.mr.va + GRH, 64, 1), 64);
	assert_int_equal(fg_mismatch(env->b.mr.va + GRH + 64, 192, 2), 192);
}

TEST(gsi_ready, test_many_mads_both_ways)
{
	for (uint32_t i = 0; i < 500; i++) {
		t_recv(&env->a, i, 0, GRH + MAD);
		t_recv(&env->b, i, 0, GRH + MAD);
		send_mad(&env->a, &env->b, i);
		send_mad(&env->b, &env->a, i);
		await_sent(&env->a, i);
		expect_sent(&env->b, i);
		expect_recv(&env->a.rcq, i, GRH + MAD);
		expect_recv(&env->b.rcq, i, GRH + MAD);
	}
}

TEST(gsi_ready, test_mad_to_oneself)
{
	t_recv(&env->a, 1, 0, GRH + MAD);
	send_mad(&env->a, &env->a, 2);
	await_sent(&env->a, 2);
	expect_recv(&env->a.rcq, 1, GRH + MAD);
}

TEST(gsi_ready, test_mad_to_a_guest_without_qp1_is_dropped)
{
	expect_ok(fg_qp_destroy(&env->b.qp));
	send_mad(&env->a, &env->b, 1);
	await_sent(&env->a, 1);
	expect_state(&env->a, PVR_QPS_RTS);
}

TEST(gsi_ready, test_ud_qps_do_not_reach_qp1_without_its_qkey)
{
	struct fg_end ud;

	t_open_ready(&ud, env->g[0], PVR_QPT_UD);
	t_recv(&env->b, 2, 0, GRH + MAD);
	/* The top bit of its Q_Key makes it the UD QP's own, which is another. */
	t_send_ud(&ud, &env->b, 1, 0, 0);
	await_sent(&ud, 1);
	expect_no_cqe(&env->b.rcq);
}

TEST(guest, test_user_contexts_get_no_qp1)
{
	struct fg_ctx ctx;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_qp qp;
	struct fg_qp_spec spec = { .pd = &pd, .scq = &cq, .rcq = &cq, .type = PVR_QPT_GSI };

	expect_ok(fg_ctx_create(env->g[0], &ctx));
	expect_ok(fg_pd_create(&ctx, &pd));
	expect_ok(fg_cq_create(&ctx, 64, &cq));
	expect_refused(fg_qp_create(&spec, &qp));
}

TEST(gsi_ready, test_qp1_can_be_created_again_after_reset)
{
	expect_ok(fg_guest_boot(env->g[1]));
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
	fg_end_open(&env->b, env->g[1], PVR_QPT_GSI);
	assert_int_equal(env->b.qp.qpn, 1);
	fg_end_ready(&env->b);
	exchange_mad(env);
}

#define VLAN_INDEX 7 /* in the GID table */

/* b has an address more, and is sent a MAD there. */
/* b has another address, which is of @vlan, and receives a MAD there. */
static struct pvrdma_cqe at_vlan(struct t_env *env, uint32_t vlan)
{
	fg_gid_from_ipv4(env->b.gid, 10, 78, 0, 2);
	expect_ok(fg_bind_gid_vlan(env->g[1], VLAN_INDEX, env->b.gid, vlan));
	return exchange_mad(env);
}

static void expect_vlan(struct pvrdma_cqe cqe, uint16_t want)
{
	uint16_t vlan;

	assert_true(cqe.wc_flags & PVRDMA_WC_WITH_VLAN);
	memcpy(&vlan, cqe.reserved2 + PVR_CQE_VLAN, sizeof(vlan));
	assert_int_equal(vlan, want);
}

static void expect_no_vlan(struct pvrdma_cqe cqe)
{
	static const uint8_t zeros[sizeof(cqe.reserved2)];

	assert_false(cqe.wc_flags & PVRDMA_WC_WITH_VLAN);
	assert_memory_equal(cqe.reserved2, zeros, sizeof(zeros));
}

TEST(gsi_ready, test_mad_has_the_vlan_of_its_gid)
{
	t_not_on_segment(env, "frames of a segment have the VLAN of their sender");
	expect_vlan(at_vlan(env, 4094), 4094);
	/* The index may become that of another VLAN. */
	expect_ok(fg_unbind_gid(env->g[1], VLAN_INDEX, env->b.gid));
	expect_vlan(at_vlan(env, 0), 0);
	expect_ok(fg_unbind_gid(env->g[1], VLAN_INDEX, env->b.gid));
	expect_no_vlan(at_vlan(env, PVR_VLAN_NONE));
}

/* Both have the same bytes of the completion. */
TEST(gsi_ready, test_timestamp_replaces_the_vlan)
{
	struct pvrdma_cqe cqe;
	struct fg_cq cq;

	t_not_on_segment(env, "frames of a segment have the VLAN of their sender");
	expect_ok(fg_cq_create_timestamp(&env->g[1]->kernel, FG_END_CQE, &cq));
	t_qp_replace(&env->b, (struct fg_qp_spec){ .rcq = &cq });
	expect_ok(fg_cq_destroy(&env->b.rcq));
	env->b.rcq = cq;
	fg_end_ready(&env->b);
	fg_advance(env->host, 1234567890);
	cqe = at_vlan(env, 4094);
	assert_false(cqe.wc_flags & PVRDMA_WC_WITH_VLAN);
	assert_int_equal(fg_cqe_timestamp(&cqe), 1234567890);
}

/* As link-local ones: the sender's VLAN is not known, and the NIC itself comes first. */
TEST(gsi_ready, test_gid_of_a_nic_and_its_vlan_has_none)
{
	t_not_on_segment(env, "frames of a segment have the VLAN of their sender");
	fg_gid_from_ipv4(env->b.gid, 10, 78, 0, 2);
	expect_ok(fg_bind_gid(env->g[1], VLAN_INDEX + 1, env->b.gid));
	expect_no_vlan(at_vlan(env, 5));
	/* Once the NIC has lost it, the VLAN has it alone. */
	expect_ok(fg_unbind_gid(env->g[1], VLAN_INDEX + 1, env->b.gid));
	expect_vlan(exchange_mad(env), 5);
}

static const struct t_case bad_vlans[] = { T_CASE(PVR_VLAN_NONE + 1), T_CASE(0x10005),
					   T_CASE(UINT32_MAX) };

TEST_CASES(gsi_ready, test_vlans_that_do_not_exist_are_rejected, bad_vlans)
{
	uint8_t gid[16];

	fg_gid_from_ipv4(gid, 10, 78, 0, 2);
	assert_int_equal(fg_bind_gid_vlan(env->g[1], VLAN_INDEX, gid, row->value), EINVAL);
}

T_SETUP_EXT(stock, 0, gsi_ready)

/* They write what they like there. */
TEST(stock, test_vlan_of_a_stock_driver_is_ignored)
{
	expect_no_vlan(at_vlan(env, 5));
	expect_ok(fg_unbind_gid(env->g[1], VLAN_INDEX, env->b.gid));
	expect_ok(fg_bind_gid_vlan(env->g[1], VLAN_INDEX, env->b.gid, UINT32_MAX));
}
