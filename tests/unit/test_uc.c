// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_UC: unreliable connections. */
#include "transfer.h"

#define BIG ((1u << 20) + 100) /* goes in five pieces */

TEST_EXT(PVR_EXT_UC)

static void open_big(struct t_env *env)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UC, .sq_sge = 32, .rq_sge = 32 };

	t_open_connected(env, &spec, T_BIG_PAGES);
}

/* a's request completes, though it was dropped: no side gets an error. */
static void expect_dropped(struct t_env *env, uint64_t wr_id, uint32_t opcode)
{
	await_done(&env->a.scq, wr_id, opcode);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_event(env->g[0]);
	expect_no_event(env->g[1]);
	/* No acknowledgement, no retry: nothing is waited for (9.8.2). */
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}

static const struct t_case messages[] = { T_CASE(PVRDMA_WR_SEND), T_CASE(PVRDMA_WR_SEND_WITH_IMM),
					  T_CASE(PVRDMA_WR_RDMA_WRITE),
					  T_CASE(PVRDMA_WR_RDMA_WRITE_WITH_IMM) };

TEST_CASES(guests, test_messages_of_all_lengths, messages)
{
	open_big(env);
	t_transfer_lengths(env, row->value);
}

TEST(guests, test_messages_with_all_list_lengths)
{
	open_big(env);
	t_transfer_lists(env, PVRDMA_WR_SEND);
}

TEST(uc_connected, test_immediate_data_arrives)
{
	t_recv(&env->b, 1, 0, 100);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 200, 50);
	await_written(&env->a, 2);
	assert_int_equal(expect_done(&env->b.rcq, 1, PVRDMA_WC_RECV_RDMA_WITH_IMM).imm_data,
			 0x78563412);
}

TEST(uc_connected, test_message_without_a_receive_request_is_dropped)
{
	t_send(&env->a, 1, 0, 8);
	expect_dropped(env, 1, PVRDMA_WC_SEND);
	memset(env->b.buf.va, 0xcc, 100);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 0, 100);
	expect_dropped(env, 2, PVRDMA_WC_RDMA_WRITE);
	t_ping_pong(env->host, &env->a, &env->b);
	assert_int_equal(fg_stats(env->g[1]).rnr_naks, 0);
}

TEST(uc_connected, test_message_to_unknown_qpn_completes)
{
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, 0xabcdef));
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	expect_dropped(env, 2, PVRDMA_WC_SEND);
	assert_int_equal(fg_stats(env->g[0]).ack_timeouts, 0);
}

TEST(uc_connected, test_messages_while_a_link_is_down_are_dropped)
{
	t_expect_link_needed(env);
}

TEST(uc, test_receiver_that_is_not_ready_drops)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_sent(&env->a, 2);
	expect_no_cqe(&env->b.rcq);
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	t_send(&env->a, 3, 0, 8);
	await_recv(&env->b.rcq, 1, 8);
	expect_one_event(env->g[1], PVR_EVENT_COMM_EST, env->b.qp.handle);
}

TEST(uc_connected, test_a_first_packet_resynchronises_the_psn)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTS, .sq_psn = 0x777 };

	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE | PVR_QPA_SQ_PSN, &attr));
	for (uint32_t i = 0; i < 5; i++) {
		t_recv(&env->b, i, 0, 5000);
		t_send(&env->a, i, 0, 2500); /* 3 packets */
		await_recv(&env->b.rcq, i, 2500);
	}
	expect_ok(fg_qp_query(&env->b.qp, &attr));
	assert_int_equal(attr.rq_psn, 0x777 + 15);
}

TEST(uc_connected, test_bad_remote_access_is_dropped)
{
	struct fg_mr bad = env->b.mr;
	struct pvr_qp_attr attr = { .qp_access_flags = PVR_ACCESS_REMOTE_READ };

	memset(env->b.buf.va, 0xcc, 100);
	bad.rkey ^= 0x100;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &bad, 0, 50);
	expect_dropped(env, 1, PVRDMA_WC_RDMA_WRITE);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, env->b.mr.length - 49, 50);
	expect_dropped(env, 2, PVRDMA_WC_RDMA_WRITE);
	expect_ok(fg_qp_modify(&env->b.qp, PVR_QPA_ACCESS_FLAGS, &attr));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->b.mr, 0, 50);
	expect_dropped(env, 3, PVRDMA_WC_RDMA_WRITE);
	for (int i = 0; i < 100; i++)
		assert_int_equal(env->b.buf.va[i], 0xcc);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(uc_connected, test_message_that_does_not_fit_is_dropped)
{
	t_recv(&env->b, 1, 0, 99);
	t_send(&env->a, 2, 0, 100);
	expect_dropped(env, 2, PVRDMA_WC_SEND);
	t_send(&env->a, 3, 0, 99);
	await_recv(&env->b.rcq, 1, 99);
}

TEST(uc_connected, test_bad_receive_request_fails_the_receiver_alone)
{
	t_expect_receiver_fails(env);
}

static const struct t_case bad_opcodes[] = { T_CASE(PVRDMA_WR_RDMA_READ),
					     T_CASE(PVRDMA_WR_ATOMIC_CMP_AND_SWP),
					     T_CASE(PVRDMA_WR_ATOMIC_FETCH_AND_ADD),
					     T_CASE(PVRDMA_WR_SEND_WITH_INV),
					     T_CASE(PVRDMA_WR_LSO),
					     T_CASE(99),
					     T_CASE(UINT32_MAX) };

TEST_CASES(uc_connected, test_opcodes_that_uc_does_not_have_fail_the_send_queue, bad_opcodes)
{
	t_rdma(&env->a, row->value, 1, 0, &env->b.mr, 0, 8);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

TEST(uc_connected, test_forbidden_memory_fails_the_send_queue)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = &T_BAD_SGE, .num_sge = 1);
	t_expect_send_error(env, 1, PVRDMA_WC_LOC_PROT_ERR);
}

TEST(uc_connected, test_failed_local_operation_fails_the_send_queue)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_LOCAL_INV, .flags = 0, .imm = 0xbad);
	t_expect_send_error(env, 1, PVRDMA_WC_MW_BIND_ERR);
}

/* A damaged message is lost as a whole, and its receive request waits for the next one. */
static void interrupt_message(struct t_env *env)
{
	fg_fill(env->a.buf.va, BIG, 1);
	memset(env->b.buf.va, 0, BIG);
	/* One run does 32 pieces of 256 KiB. */
	for (int i = 0; i < 7; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 100, 0, &env->b.mr, 0, BIG - 1);
	t_send(&env->a, 2, 0, BIG);
	pvr_engine_run(env->host->engine, 0);
	assert_int_equal(fg_cq_drain(&env->a.scq), 7);
	pvr_adapter_set_link(env->g[1]->adapter, false);
	fg_run(env->host);
	pvr_adapter_set_link(env->g[1]->adapter, true);
	expect_sent(&env->a, 2);
	expect_no_cqe(&env->b.rcq);
	fg_fill(env->a.buf.va, BIG, 2);
	t_send(&env->a, 3, 0, BIG);
	await_sent(&env->a, 3);
	expect_recv(&env->b.rcq, 1, BIG);
	assert_int_equal(fg_mismatch(env->b.buf.va, BIG, 2), BIG);
}

TEST(guests, test_interrupted_message_is_dropped_as_a_whole)
{
	t_one_host_only(env, "it runs one engine by hand");
	open_big(env);
	t_recv(&env->b, 1, 0, BIG);
	interrupt_message(env);
}

TEST(guests, test_srq_request_of_a_dropped_message_is_not_lost)
{
	struct fg_srq srq;

	t_one_host_only(env, "it runs one engine by hand");
	open_big(env);
	t_srq_use(&env->b, 4, &srq);
	t_reconnect(env);
	t_srq_recv(&srq, 1, &env->b.mr, 0, BIG);
	interrupt_message(env);
}

TEST(uc_connected, test_responder_takes_messages_from_its_peer_only)
{
	struct fg_end c;

	t_not_on_segment(env, "packets of RC and UC do not have the number of their sender");
	fg_end_open(&c, env->g[0], PVR_QPT_UC);
	expect_ok(fg_qp_connect(&c.qp, NULL, env->b.gid, env->b.qp.qpn));
	t_recv(&env->b, 1, 0, 10);
	t_send(&c, 2, 0, 10);
	await_sent(&c, 2);
	expect_no_cqe(&env->b.rcq);
}

TEST(uc_connected, test_rc_and_uc_do_not_connect)
{
	struct fg_end c;

	fg_end_open(&c, env->g[1], PVR_QPT_RC);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	fg_end_connect(&env->a, &c, NULL);
	t_recv(&c, 1, 0, 10);
	t_send(&env->a, 2, 0, 10);
	await_sent(&env->a, 2);
	expect_no_cqe(&c.rcq);
	expect_no_event(env->g[1]);
}

TEST(uc_connected, test_qp_connected_to_itself)
{
	struct fg_end c;

	fg_end_open(&c, env->g[0], PVR_QPT_UC);
	fg_end_connect(&c, &c, NULL);
	t_ping_pong(env->host, &c, &c);
}

/* Of the attributes that RC needs, those of acknowledgement and of READ are none of UC. */
static const struct t_case rc_attributes[] = { T_CASE(PVR_QPA_TIMEOUT),
					       T_CASE(PVR_QPA_RETRY_CNT),
					       T_CASE(PVR_QPA_RNR_RETRY),
					       T_CASE(PVR_QPA_MAX_RD_ATOMIC),
					       T_CASE(PVR_QPA_MIN_RNR_TIMER),
					       T_CASE(PVR_QPA_MAX_DEST_RD_ATOMIC),
					       { "no SQ PSN", 0 } };

TEST_CASES(uc, test_attributes_of_reliability_are_rejected, rc_attributes)
{
	const uint32_t mask = PVR_QPA_STATE | (row->value ? PVR_QPA_SQ_PSN | row->value : 0);
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTS, .min_rnr_timer = 1 };

	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	assert_int_equal(fg_qp_modify(&env->a.qp, mask, &attr), EINVAL);
	expect_ok(fg_qp_to_rts(&env->a.qp, NULL));
}

static const struct t_case rtr_attributes[] = { T_CASE(PVR_QPA_AV), T_CASE(PVR_QPA_PATH_MTU),
						T_CASE(PVR_QPA_DEST_QPN), T_CASE(PVR_QPA_RQ_PSN) };

TEST_CASES(uc, test_rtr_needs_its_attributes, rtr_attributes)
{
	const uint32_t all = PVR_QPA_STATE | PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN |
			     PVR_QPA_RQ_PSN;
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTR,
				    .path_mtu = PVR_MTU_1024,
				    .ah_attr = { .ah_flags = PVR_AH_GRH, .port_num = 1 } };

	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	assert_int_equal(fg_qp_modify(&env->a.qp, all & ~row->value, &attr), EINVAL);
	expect_ok(fg_qp_modify(&env->a.qp, all, &attr));
}

TEST(host, test_without_the_extension_there_is_none)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_UC };
	struct fg_qp qp;

	fg_end_open(&env->a, t_guest_with_ext(env, 1, 0), PVR_QPT_RC);
	spec.pd = &env->a.pd;
	spec.scq = spec.rcq = &env->a.scq;
	assert_int_equal(fg_qp_create(&spec, &qp), EOPNOTSUPP);
}
