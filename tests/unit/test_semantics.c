// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rules of docs/semantics.md that belong to no other unit's tests. */
#include "common.h"

/* ------------------------------------------------- IBTA vol. 1, table 11.2.5.2 */

#define ACC PVR_QPA_ACCESS_FLAGS
#define PKEY PVR_QPA_PKEY_INDEX
#define QKEY PVR_QPA_QKEY
#define PORT PVR_QPA_PORT
#define ADDR (PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN)
#define TIMERS (PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY)
#define RNR_TIMER PVR_QPA_MIN_RNR_TIMER
#define MAX_RD PVR_QPA_MAX_RD_ATOMIC
#define MAX_DEST PVR_QPA_MAX_DEST_RD_ATOMIC
#define PSN PVR_QPA_SQ_PSN
#define NOTIFY PVR_QPA_EN_SQD_ASYNC
#define MIG PVR_QPA_PATH_MIG_STATE

struct rule {
	enum pvr_qp_state from, to;
	uint32_t need, may;
};

static const struct rule rc_rules[] = {
	{ PVR_QPS_RESET, PVR_QPS_INIT, PKEY | PORT | ACC, 0 },
	{ PVR_QPS_INIT, PVR_QPS_INIT, 0, PKEY | PORT | ACC },
	{ PVR_QPS_INIT, PVR_QPS_RTR, ADDR | MAX_DEST | RNR_TIMER, PKEY | ACC },
	{ PVR_QPS_RTR, PVR_QPS_RTS, TIMERS | PSN | MAX_RD, ACC | RNR_TIMER | MIG },
	{ PVR_QPS_RTS, PVR_QPS_RTS, 0, ACC | RNR_TIMER | MIG },
	{ PVR_QPS_RTS, PVR_QPS_SQD, 0, NOTIFY },
	{ PVR_QPS_SQD, PVR_QPS_RTS, 0, ACC | RNR_TIMER | MIG },
	{ PVR_QPS_SQD, PVR_QPS_SQD, 0,
	  PORT | PVR_QPA_AV | TIMERS | MAX_RD | MAX_DEST | ACC | PKEY | RNR_TIMER | MIG },
};

static const struct rule uc_rules[] = {
	{ PVR_QPS_RESET, PVR_QPS_INIT, PKEY | PORT | ACC, 0 },
	{ PVR_QPS_INIT, PVR_QPS_INIT, 0, PKEY | PORT | ACC },
	{ PVR_QPS_INIT, PVR_QPS_RTR, ADDR, PKEY | ACC },
	{ PVR_QPS_RTR, PVR_QPS_RTS, PSN, ACC | MIG },
	{ PVR_QPS_RTS, PVR_QPS_RTS, 0, ACC | MIG },
	{ PVR_QPS_RTS, PVR_QPS_SQD, 0, NOTIFY },
	{ PVR_QPS_SQD, PVR_QPS_RTS, 0, ACC | MIG },
	{ PVR_QPS_SQD, PVR_QPS_SQD, 0, PVR_QPA_AV | ACC | PKEY | MIG },
	{ PVR_QPS_SQE, PVR_QPS_RTS, 0, ACC },
};

static const struct rule ud_rules[] = {
	{ PVR_QPS_RESET, PVR_QPS_INIT, PKEY | PORT | QKEY, 0 },
	{ PVR_QPS_INIT, PVR_QPS_INIT, 0, PKEY | PORT | QKEY },
	{ PVR_QPS_INIT, PVR_QPS_RTR, 0, PKEY | QKEY },
	{ PVR_QPS_RTR, PVR_QPS_RTS, PSN, QKEY },
	{ PVR_QPS_RTS, PVR_QPS_RTS, 0, QKEY },
	{ PVR_QPS_RTS, PVR_QPS_SQD, 0, NOTIFY },
	{ PVR_QPS_SQD, PVR_QPS_RTS, 0, QKEY },
	{ PVR_QPS_SQD, PVR_QPS_SQD, 0, PKEY | QKEY },
	{ PVR_QPS_SQE, PVR_QPS_RTS, 0, QKEY },
};

static void break_send_queue(struct t_env *env)
{
	env->a.mr.lkey ^= 0x100;
	if (env->a.qp.type == PVR_QPT_UD)
		t_send_ud(&env->a, &env->b, 1, 0, 8);
	else
		t_send(&env->a, 1, 0, 8);
	env->a.mr.lkey ^= 0x100;
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}

static void to_sqd(struct fg_end *end)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	expect_ok(fg_qp_modify(&end->qp, PVR_QPA_STATE, &attr));
}

static void bring_to(struct t_env *env, enum pvr_qp_state state)
{
	struct fg_qp *qp = &env->a.qp;
	expect_ok(fg_qp_to_reset(qp));
	if (state >= PVR_QPS_INIT)
		expect_ok(fg_qp_to_init(qp, NULL));
	if (state >= PVR_QPS_RTR)
		expect_ok(fg_qp_to_rtr(qp, NULL, env->b.gid, env->b.qp.qpn));
	if (state >= PVR_QPS_RTS)
		expect_ok(fg_qp_to_rts(qp, NULL));
	if (state == PVR_QPS_SQD)
		to_sqd(&env->a);
	if (state == PVR_QPS_SQE)
		break_send_queue(env);
	assert_int_equal(fg_qp_state(qp), state);
}

static void try(struct t_env *env, const struct rule *rule, uint32_t mask, bool ok)
{
	struct pvr_qp_attr attr = {
		.qp_state = rule->to,
		.cur_qp_state = rule->from,
		.path_mtu = PVR_MTU_1024,
		.qkey = FG_QKEY,
		.dest_qp_num = env->b.qp.qpn,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.port_num = 1,
		.timeout = 14,
		.ah_attr = { .ah_flags = PVR_AH_GRH, .port_num = 1 },
	};
	uint32_t err;

	memcpy(attr.ah_attr.dgid, env->b.gid, 16);
	bring_to(env, rule->from);
	err = fg_qp_modify(&env->a.qp, PVR_QPA_STATE | mask, &attr);
	if (err != (ok ? 0 : EINVAL))
		print_error("%u -> %u, attributes %#x\n", rule->from, rule->to, mask);
	assert_int_equal(err, ok ? 0 : EINVAL);
	assert_int_equal(fg_qp_state(&env->a.qp), ok ? rule->to : rule->from);
}

/* Each attribute alone: those needed left out, all others put in. */
static void check_rules(struct t_env *env, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *rule = &rules[i];

		try(env, rule, rule->need, true);
		try(env, rule, rule->need | rule->may | PVR_QPA_CUR_STATE, true);
		for (uint32_t bit = 2; bit <= PVR_QPA_ALL; bit <<= 1) {
			if (rule->need & bit)
				try(env, rule, rule->need & ~bit, false);
			else if (bit != PVR_QPA_CUR_STATE)
				try(env, rule, rule->need | bit, rule->may & bit);
		}
	}
}

TEST(rc, test_attributes_of_rc_transitions)
{
	check_rules(env, rc_rules, COUNT(rc_rules));
}

TEST(uc, test_attributes_of_uc_transitions)
{
	check_rules(env, uc_rules, COUNT(uc_rules));
}

TEST(ud_ready, test_attributes_of_ud_transitions)
{
	check_rules(env, ud_rules, COUNT(ud_rules));
}

/* --------------------------------------------------------------------- states */

TEST(rc_connected, test_responder_continues_in_sqd)
{
	to_sqd(&env->b);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, 0, 8);
	await_recv(&env->b.rcq, 1, 8);
	expect_sent(&env->a, 2);
	expect_done(&env->a.scq, 3, PVRDMA_WC_RDMA_READ);
	expect_state(&env->b, PVR_QPS_SQD);
}

TEST(rc_connected, test_attributes_stay_until_the_send_queue_has_drained)
{
	struct pvr_qp_attr attr = { .timeout = 1 };

	t_send(&env->a, 1, 0, 8); /* waits for a receive request */
	fg_run(env->host);
	to_sqd(&env->a);
	assert_int_equal(fg_qp_modify(&env->a.qp, PVR_QPA_TIMEOUT, &attr), EINVAL);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_TIMEOUT, &attr));
}

TEST(rc, test_send_queue_does_not_run_before_rts)
{
	expect_ok(fg_qp_connect(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	await_no_cqe(&env->a.scq);
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	fg_ring_send(&env->a.qp);
	await_no_cqe(&env->a.scq);
	expect_ok(fg_qp_to_rts(&env->a.qp, NULL));
	await_written(&env->a, 1);
}

/* ----------------------------------------------------------------------- wire */

static uint32_t sq_psn(struct fg_end *end)
{
	struct pvr_qp_attr attr;

	expect_ok(fg_qp_query(&end->qp, &attr));
	return attr.sq_psn;
}

TEST(rc_connected, test_each_packet_has_a_psn)
{
	static const struct {
		uint32_t len, packets;
	} cases[] = { { 0, 1 }, { 1, 1 }, { 1024, 1 }, { 1025, 2 }, { 4096, 4 }, { 5000, 5 } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint32_t before = sq_psn(&env->a);

		t_rdma(&env->a, i % 2 ? PVRDMA_WR_RDMA_READ : PVRDMA_WR_RDMA_WRITE, i, 0,
		       &env->b.mr, 0, cases[i].len);
		fg_run(env->host);
		assert_int_equal(sq_psn(&env->a) - before, cases[i].packets);
	}
}

/* An RNR NAK is an answer: a silence after it is given its whole time. */
TEST(rc, test_rnr_nak_ends_a_silence)
{
	struct fg_conn conn = fg_conn_default;
	uint64_t timeout;

	t_not_on_segment(env, "a try takes the timeout exactly");
	conn.retry_cnt = 0;
	conn.timeout = 18;
	timeout = 4096ull << conn.timeout;
	fg_end_connect(&env->a, &env->b, &conn);
	pvr_adapter_set_link(env->g[1]->adapter, false);
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host); /* silence */
	pvr_adapter_set_link(env->g[1]->adapter, true);
	fg_advance(env->host, timeout); /* RNR NAK */
	expect_no_cqe(&env->a.scq);
	pvr_adapter_set_link(env->g[1]->adapter, false);
	fg_settle(env->host, timeout / 2); /* silence again */
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, timeout);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
}

/* ----------------------------------------------------------------- completions */

/* All opcodes of one queue, long and short, complete as they were posted. */
TEST(rc_connected, test_completions_are_in_the_order_of_the_queue)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_RDMA_READ, PVRDMA_WR_SEND,
						     PVRDMA_WR_RDMA_WRITE };

	for (uint32_t i = 0; i < 30; i++) {
		uint32_t len = i % 4 ? 8 : 60000;

		if (ops[i % 3] == PVRDMA_WR_SEND)
			t_recv(&env->b, i, 0, len);
		t_rdma(&env->a, ops[i % 3], i, 0, &env->b.mr, 0, len);
	}
	fg_run(env->host);
	for (uint32_t i = 0; i < 30; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_SUCCESS);
	for (uint32_t i = 1; i < 30; i += 3)
		expect_cqe(&env->b.rcq, i, PVRDMA_WC_SUCCESS);
}

/* An error completes even an unsignaled request; success does not. */
TEST(rc_connected, test_errors_complete_unsignaled_requests)
{
	const struct pvrdma_sge bad = { FG_USER_VA, 8, 0xbad };

	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .flags = 0,
	       T_SGE(&env->a.mr, 0, 8), T_REMOTE(&env->b.mr, 0));
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_RDMA_WRITE, .flags = 0, .sge = &bad,
	       .num_sge = 1, T_REMOTE(&env->b.mr, 0));
	await_cqe(&env->a.scq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_no_cqe(&env->a.scq);
}

/* The Q_Key decides at the receiver, and may change while it runs. */
TEST(ud_ready, test_qkey_of_the_receiver_counts_now)
{
	struct pvr_qp_attr attr = { .qkey = 0x77 };

	t_recv(&env->b, 1, 0, 100);
	expect_ok(fg_qp_modify(&env->b.qp, PVR_QPA_QKEY, &attr));
	t_send_ud(&env->a, &env->b, 2, 0, 8);
	await_no_cqe(&env->b.rcq);
	attr.qkey = FG_QKEY;
	expect_ok(fg_qp_modify(&env->b.qp, PVR_QPA_QKEY, &attr));
	t_send_ud(&env->a, &env->b, 3, 0, 8);
	await_recv(&env->b.rcq, 1, 48);
}
