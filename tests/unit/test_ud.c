// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unreliable datagrams. */
#include "ends.h"

#define GRH 40u

static uint64_t dropped(const struct fg_guest *g)
{
	return fg_stats(g).ud_dropped;
}

/* a has sent and b has got nothing; both can go on. */
static void expect_dropped(struct t_env *env, uint64_t wr_id)
{
	t_run_ud(env->host);
	expect_sent(&env->a, wr_id);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
}

/* An empty datagram number 1 from a to b, but for these fields. */
#define POST(env, ...)                                                                          \
	do {                                                                                    \
		struct pvrdma_av to_b = fg_av(&(env)->a.pd, (env)->b.gid, 0);                   \
                                                                                                \
		t_post(&(env)->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_UD(&to_b, &(env)->b), \
		       ##__VA_ARGS__);                                                          \
	} while (0)

TEST(ud_ready, test_datagram_arrives_behind_a_grh)
{
	struct pvrdma_cqe cqe;

	fg_fill(env->a.mr.va, 1000, 1);
	memset(env->b.mr.va, 0xcc, 2000);
	t_recv(&env->b, 1, 0, 2000);
	t_send_ud(&env->a, &env->b, 2, 0, 1000);
	await_sent(&env->a, 2);
	cqe = expect_recv(&env->b.rcq, 1, 1000 + GRH);
	assert_int_equal(cqe.src_qp, env->a.qp.qpn);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_GRH, PVRDMA_WC_GRH);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_WITH_IMM, 0);
	assert_int_equal(cqe.port_num, 1);
	assert_int_equal(cqe.pkey_index, 0);
	assert_int_equal(cqe.qp & 0xffff, env->b.qp.handle);
	assert_int_equal(fg_mismatch(env->b.mr.va + GRH, 1000, 1), 1000);
	for (int i = 1000 + GRH; i < 2000; i++)
		assert_int_equal(env->b.mr.va[i], 0xcc);
}

TEST(ud_ready, test_grh_over_ipv6)
{
	struct pvrdma_av av = fg_av(&env->a.pd, env->b.gid, 0);
	const uint8_t *grh = env->b.mr.va;
	struct pvrdma_cqe cqe;

	av.sl_tclass_flowlabel = 0xb4 << 20 | 0x12345;
	av.hop_limit = 33;
	t_recv(&env->b, 2, 0, 200);
	POST(env, T_SGE(&env->a.mr, 0, 100), .av = &av);
	cqe = await_recv(&env->b.rcq, 2, 140);
	assert_int_equal(grh[0] >> 4, 6);
	assert_int_equal((grh[0] & 15) << 4 | grh[1] >> 4, 0xb4);
	assert_int_equal((grh[1] & 15) << 16 | grh[2] << 8 | grh[3], 0x12345);
	assert_int_equal(grh[6], 17); /* UDP: RoCE v2 */
	assert_int_equal(grh[7], 33);
	/* UDP header, BTH, DETH, payload and ICRC. */
	assert_int_equal(grh[4] << 8 | grh[5], 8 + 12 + 8 + 100 + 4);
	assert_memory_equal(grh + 8, env->a.gid, 16);
	assert_memory_equal(grh + 24, env->b.gid, 16);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_WITH_NETWORK_HDR_TYPE,
			 PVRDMA_WC_WITH_NETWORK_HDR_TYPE);
	assert_int_equal(cqe.network_hdr_type, PVRDMA_NETWORK_IPV6);
}

TEST(ud_ready, test_grh_over_ipv4)
{
	uint8_t a[16], b[16];
	struct pvrdma_av av;
	const uint8_t *ip = env->b.mr.va + 20;
	struct pvrdma_cqe cqe;
	uint32_t sum = 0;

	fg_gid_from_ipv4(a, 10, 0, 0, 1);
	fg_gid_from_ipv4(b, 10, 0, 0, 2);
	expect_ok(fg_bind_gid(env->g[0], 5, a));
	expect_ok(fg_bind_gid(env->g[1], 6, b));
	av = fg_av(&env->a.pd, b, 5);
	t_recv(&env->b, 2, 0, 200);
	POST(env, T_SGE(&env->a.mr, 0, 100), .av = &av);
	cqe = await_recv(&env->b.rcq, 2, 140);
	assert_int_equal(cqe.network_hdr_type, PVRDMA_NETWORK_IPV4);
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + 100 + 4);
	assert_int_equal(ip[8], 64);
	assert_int_equal(ip[9], 17);
	assert_memory_equal(ip + 12, a + 12, 4);
	assert_memory_equal(ip + 16, b + 12, 4);
	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
}

/* User space numbers the flags above bit 1 differently, and stock providers copy them. */
TEST(guests, test_user_cqs_get_no_flags_but_grh_and_imm)
{
	struct fg_ctx ctx;

	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_user(&env->b, &ctx, env->g[1], &(struct fg_qp_spec){ .type = PVR_QPT_UD });
	fg_end_ready(&env->b);
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	fg_run(env->host);
	assert_int_equal(expect_recv(&env->b.rcq, 1, 140).wc_flags, PVRDMA_WC_GRH);
}

TEST(ud_ready, test_datagram_with_imm)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 2, 0, 200);
	POST(env, .opcode = PVRDMA_WR_SEND_WITH_IMM, .imm = 0xaabbccdd);
	cqe = await_recv(&env->b.rcq, 2, GRH);
	assert_int_equal(cqe.wc_flags & PVRDMA_WC_WITH_IMM, PVRDMA_WC_WITH_IMM);
	assert_int_equal(cqe.imm_data, 0xaabbccdd);
}

TEST(ud_ready, test_datagrams_of_all_sizes_up_to_the_mtu)
{
	static const uint32_t lens[] = { 0, 1, 39, 40, 41, 255, 1024, 2048, 4055, 4095, 4096 };

	for (size_t i = 0; i < COUNT(lens); i++) {
		fg_fill(env->a.mr.va + 77, lens[i], (uint32_t)i);
		t_recv(&env->b, i, 4000, 5000);
		t_send_ud(&env->a, &env->b, 100 + i, 77, lens[i]);
		await_sent(&env->a, 100 + i);
		expect_recv(&env->b.rcq, i, lens[i] + GRH);
		assert_int_equal(fg_mismatch(env->b.mr.va + 4000 + GRH, lens[i], (uint32_t)i),
				 lens[i]);
	}
}

TEST(ud_ready, test_grh_may_be_split_over_entries)
{
	struct pvrdma_sge sge[4] = {
		fg_sge(&env->b.mr, 4090, 10),
		fg_sge(&env->b.mr, 100, 35),
		fg_sge(&env->b.mr, 8191, 2),
		fg_sge(&env->b.mr, 0, 100),
	};
	uint8_t flat[147];

	fg_fill(env->a.mr.va, 100, 1);
	assert_true(fg_post_recv(&env->b.qp, 1, sge, 4));
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	await_recv(&env->b.rcq, 1, 140);
	memcpy(flat, env->b.mr.va + 4090, 10);
	memcpy(flat + 10, env->b.mr.va + 100, 35);
	memcpy(flat + 45, env->b.mr.va + 8191, 2);
	memcpy(flat + 47, env->b.mr.va, 100);
	assert_memory_equal(flat + 8, env->a.gid, 16);
	assert_int_equal(fg_mismatch(flat + GRH, 100, 1), 100);
}

TEST(ud_ready, test_datagram_to_oneself)
{
	fg_fill(env->a.mr.va, 100, 1);
	t_recv(&env->a, 1, 1000, 200);
	t_send_ud(&env->a, &env->a, 2, 0, 100);
	await_sent(&env->a, 2);
	expect_recv(&env->a.rcq, 1, 140);
	assert_int_equal(fg_mismatch(env->a.mr.va + 1000 + GRH, 100, 1), 100);
}

TEST(ud_ready, test_one_qp_sends_to_many)
{
	struct fg_end c;

	t_open_ready(&c, env->g[1], PVR_QPT_UD);
	t_recv(&env->b, 1, 0, 200);
	t_recv(&c, 2, 0, 200);
	t_send_ud(&env->a, &c, 3, 0, 10);
	t_send_ud(&env->a, &env->b, 4, 0, 20);
	await_recv(&c.rcq, 2, 50);
	expect_recv(&env->b.rcq, 1, 60);
}

TEST(ud_ready, test_datagram_without_a_receive_request_is_dropped)
{
	uint64_t before = dropped(env->g[1]);

	t_send_ud(&env->a, &env->b, 1, 0, 100);
	expect_dropped(env, 1);
	assert_int_equal(dropped(env->g[1]) - before, 1);
	t_recv(&env->b, 1, 0, 1000);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	await_recv(&env->b.rcq, 1, 100 + GRH);
}

static const struct t_case absent_qpns[] = { T_CASE(0), T_CASE(1), T_CASE(0x1234), T_CASE(0xffffff),
					     T_CASE(0x1000000) };

TEST_CASES(ud_ready, test_datagram_to_an_absent_number_is_dropped, absent_qpns)
{
	assert_int_not_equal(row->value, env->b.qp.qpn);
	t_recv(&env->b, 1, 0, 200);
	POST(env, .remote_qpn = row->value);
	expect_dropped(env, 1);
}

static const struct {
	const char *label;
	uint8_t gid[16];
} absent_gids[] = {
	{ "not bound", { [10] = 0xff, 0xff, 10, 9, 9, 9 } },
	{ "zero", { 0 } },
	{ "multicast", { [0 ... 15] = 0xff } },
};

TEST_CASES(ud_ready, test_datagram_to_an_unknown_gid_is_dropped, absent_gids)
{
	struct fg_end absent = env->b;

	memcpy(absent.gid, row->gid, sizeof(absent.gid));
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &absent, 2, 0, 10);
	expect_dropped(env, 2);
}

static const struct t_case wrong_qkeys[] = { T_CASE(0), T_CASE(FG_QKEY ^ 1),
					     T_CASE(FG_QKEY ^ 0x40000000), T_CASE(0x7fffffff) };

TEST_CASES(ud_ready, test_wrong_qkey_is_dropped, wrong_qkeys)
{
	t_recv(&env->b, 1, 0, 200);
	POST(env, .remote_qkey = row->value);
	expect_dropped(env, 1);
}

/* IBTA 10.2.5: the top bit selects the QP's own Q_Key. */
TEST(ud_ready, test_qkey_with_the_top_bit_means_the_qps_own)
{
	t_recv(&env->b, 2, 0, 200);
	POST(env, .remote_qkey = 0xdeadbeef);
	await_recv(&env->b.rcq, 2, GRH);
}

TEST(ud_ready, test_datagram_larger_than_the_mtu_is_dropped)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 10000);
	t_send_ud(&env->a, &env->b, 2, 0, 4097);
	t_send_ud(&env->a, &env->b, 3, 0, 9000);
	fg_run(env->host);
	for (int i = 2; i <= 3; i++) {
		assert_true(fg_cq_poll(&env->a.scq, &cqe));
		assert_int_equal(cqe.wr_id, i);
	}
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_RTS);
	t_send_ud(&env->a, &env->b, 4, 0, 100);
	await_recv(&env->b.rcq, 1, 140);
}

TEST(ud_ready, test_datagram_larger_than_the_receive_buffer_is_dropped)
{
	fg_fill(env->b.buf.va, env->b.buf.size, 3);
	t_recv(&env->b, 1, 0, 139); /* one byte short, and GRH alone too */
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	expect_dropped(env, 2);
	assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 3), env->b.buf.size);
	t_send_ud(&env->a, &env->b, 3, 0, 99);
	await_recv(&env->b.rcq, 1, 139);
}

TEST(ud_ready, test_receiver_that_is_not_ready_drops)
{
	expect_ok(fg_qp_to_reset(&env->b.qp));
	t_send_ud(&env->a, &env->b, 1, 0, 10);
	await_sent(&env->a, 1);
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	t_recv(&env->b, 2, 0, 100);
	t_send_ud(&env->a, &env->b, 3, 0, 10);
	await_sent(&env->a, 3);
	expect_no_cqe(&env->b.rcq);
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, NULL, 0));
	t_send_ud(&env->a, &env->b, 4, 0, 10);
	await_recv(&env->b.rcq, 2, 50);
}

TEST(ud_ready, test_rc_qp_takes_no_datagrams)
{
	struct fg_end rc;

	t_open_self(&rc, env->g[1]);
	t_recv(&rc, 1, 0, 200);
	t_send_ud(&env->a, &rc, 2, 0, 10);
	await_sent(&env->a, 2);
	expect_no_cqe(&rc.rcq);
}

static const struct t_case bad_opcodes[] = { T_CASE(PVRDMA_WR_RDMA_WRITE),
					     T_CASE(PVRDMA_WR_RDMA_WRITE_WITH_IMM),
					     T_CASE(PVRDMA_WR_RDMA_READ),
					     T_CASE(PVRDMA_WR_ATOMIC_CMP_AND_SWP),
					     T_CASE(PVRDMA_WR_ATOMIC_FETCH_AND_ADD),
					     T_CASE(PVRDMA_WR_LSO),
					     T_CASE(PVRDMA_WR_SEND_WITH_INV),
					     T_CASE(PVRDMA_WR_LOCAL_INV),
					     T_CASE(PVRDMA_WR_FAST_REG_MR),
					     T_CASE(99),
					     T_CASE(UINT32_MAX) };

TEST_CASES(ud_ready, test_opcodes_that_datagrams_do_not_have_fail_the_send_queue, bad_opcodes)
{
	POST(env, .opcode = row->value, .flags = 0);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

static const struct t_case bad_numbers[] = { T_CASE(5), T_CASE(33), T_CASE(255),
					     T_CASE(UINT32_MAX) };

TEST_CASES(ud_ready, test_too_many_entries_fail_the_send_queue, bad_numbers)
{
	const struct pvrdma_sge sge[4] = { { 0 } };

	POST(env, .flags = 0, .sge = sge, .num_sge = row->value);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(ud_ready, test_forbidden_memory_fails_the_send_queue)
{
	POST(env, .flags = 0, .sge = &T_BAD_SGE, .num_sge = 1);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_PROT_ERR);
}

TEST(ud_ready, test_address_of_another_pd_fails_the_send_queue)
{
	struct fg_pd other;
	struct pvrdma_av av;

	expect_ok(fg_pd_create(&env->g[0]->kernel, &other));
	av = fg_av(&other, env->b.gid, 0);
	POST(env, .flags = 0, .av = &av);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

static const struct t_case bad_source_gids[] = { T_CASE(1), T_CASE(127), T_CASE(128), T_CASE(255) };

TEST_CASES(ud_ready, test_source_gid_that_is_not_bound_sends_nothing, bad_source_gids)
{
	struct pvrdma_av av = fg_av(&env->a.pd, env->b.gid, row->value);

	t_recv(&env->b, 1, 0, 200);
	POST(env, .av = &av);
	await_no_cqe(&env->b.rcq);
}

TEST(ud_ready, test_bad_receive_request_fails_the_receiver_alone)
{
	t_expect_receiver_fails(env);
}

TEST(guest, test_datagrams_do_not_cross_fabrics)
{
	t_guest_in_fabric(env, 2, "tenant2");
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
	t_recv(&env->b, 1, 0, 200);
	t_send_ud(&env->a, &env->b, 2, 0, 10);
	t_run_ud(env->host);
	expect_sent(&env->a, 2);
	expect_no_cqe(&env->b.rcq);
}

TEST(ud_ready, test_datagrams_while_a_link_is_down_are_dropped)
{
	t_expect_link_needed(env);
}

TEST(ud_ready, test_flood_to_a_slow_receiver_loses_but_does_not_block)
{
	for (uint32_t i = 0; i < 60; i++)
		t_recv(&env->b, i, 0, 200);
	for (uint32_t i = 0; i < 1000; i++) {
		t_send_ud(&env->a, &env->b, i, 0, 10);
		await_sent(&env->a, i);
	}
	assert_int_equal(fg_cq_drain(&env->b.rcq), 60);
	assert_int_equal(dropped(env->g[1]), 940);
}

TEST(guests, test_srq_can_receive_datagrams)
{
	struct fg_srq srq;

	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	fg_end_open(&env->b, env->g[1], PVR_QPT_UD);
	t_srq_use(&env->b, 16, &srq);
	fg_end_ready(&env->b);
	for (uint32_t i = 0; i < 40; i++) {
		t_srq_recv(&srq, i, &env->b.mr, 0, 100);
		t_send_ud(&env->a, &env->b, i, 0, 61); /* one byte too long */
		t_send_ud(&env->a, &env->b, i, 0, 60);
		await_recv(&env->b.rcq, i, 100);
		assert_int_equal(fg_cq_drain(&env->a.scq), 2);
	}
}
