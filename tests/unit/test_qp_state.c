// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* MODIFY_QP and QUERY_QP: transitions, required attributes, values. */
#include "common.h"

/* Valid attributes of all kinds for an RC QP, from which any mask may select. */
static struct pvr_qp_attr good_attr(const struct fg_end *peer)
{
	struct pvr_qp_attr attr = {
		.path_mtu = PVR_MTU_1024,
		.qkey = FG_QKEY,
		.rq_psn = 0x111111,
		.sq_psn = 0x222222,
		.dest_qp_num = peer->qp.qpn,
		.qp_access_flags = PVR_ACCESS_REMOTE_WRITE,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .hop_limit = 64, .ah_flags = PVR_AH_GRH, .port_num = 1 },
	};

	memcpy(attr.ah_attr.dgid, peer->gid, 16);
	return attr;
}

#define RC_INIT (PVR_QPA_STATE | PVR_QPA_PKEY_INDEX | PVR_QPA_PORT | PVR_QPA_ACCESS_FLAGS)
#define RC_RTR                                                                               \
	(PVR_QPA_STATE | PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN | \
	 PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_MIN_RNR_TIMER)
#define RC_RTS                                                                     \
	(PVR_QPA_STATE | PVR_QPA_TIMEOUT | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY | \
	 PVR_QPA_SQ_PSN | PVR_QPA_MAX_RD_ATOMIC)
#define UC_RTR (PVR_QPA_STATE | PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN)
#define UD_INIT (PVR_QPA_STATE | PVR_QPA_PKEY_INDEX | PVR_QPA_PORT | PVR_QPA_QKEY)

static uint32_t modify(struct t_env *env, uint32_t mask, struct pvr_qp_attr attr,
		       enum pvr_qp_state next)
{
	attr.qp_state = next;
	return fg_qp_modify(&env->a.qp, mask, &attr);
}

static uint32_t mask_to(enum pvr_qp_state next, enum pvr_qp_type type)
{
	switch (next) {
	case PVR_QPS_INIT:
		return type == PVR_QPT_UD ? UD_INIT : RC_INIT;
	case PVR_QPS_RTR:
		return type == PVR_QPT_RC ? RC_RTR : type == PVR_QPT_UC ? UC_RTR : PVR_QPA_STATE;
	case PVR_QPS_RTS:
		return type == PVR_QPT_RC ? RC_RTS : PVR_QPA_STATE | PVR_QPA_SQ_PSN;
	default:
		return PVR_QPA_STATE;
	}
}

/* From RTR. From RTS, SQD and SQE no attribute is needed. */
static uint32_t mask_between(enum pvr_qp_state from, enum pvr_qp_state to, enum pvr_qp_type type)
{
	if (to == PVR_QPS_RTS && from != PVR_QPS_RTR)
		return PVR_QPA_STATE;
	if (to == PVR_QPS_INIT && from == PVR_QPS_INIT)
		return PVR_QPA_STATE;
	return mask_to(to, type);
}

static void bring_to(struct t_env *env, enum pvr_qp_state state)
{
	struct pvr_qp_attr attr = good_attr(&env->b);
	enum pvr_qp_type type = env->a.qp.type;

	expect_ok(fg_qp_to_reset(&env->a.qp));
	if (state == PVR_QPS_RESET)
		return;
	expect_ok(modify(env, mask_to(PVR_QPS_INIT, type), attr, PVR_QPS_INIT));
	if (state >= PVR_QPS_RTR && state <= PVR_QPS_SQD)
		expect_ok(modify(env, mask_to(PVR_QPS_RTR, type), attr, PVR_QPS_RTR));
	if (state >= PVR_QPS_RTS && state <= PVR_QPS_SQD)
		expect_ok(modify(env, mask_to(PVR_QPS_RTS, type), attr, PVR_QPS_RTS));
	if (state == PVR_QPS_SQD)
		expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_SQD));
	if (state == PVR_QPS_ERR)
		expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_ERR));
	fg_run(env->host);
	assert_int_equal(fg_qp_state(&env->a.qp), state);
}

/* IBTA vol. 1, 10.3.1; SQE is reached by errors of UD QPs only, see test_ud.c. */
static const bool legal[PVR_QPS_NUM][PVR_QPS_NUM] = {
	[PVR_QPS_RESET] = { [PVR_QPS_RESET] = true, [PVR_QPS_INIT] = true },
	[PVR_QPS_INIT] = { [PVR_QPS_RESET] = true,
			   [PVR_QPS_INIT] = true,
			   [PVR_QPS_RTR] = true,
			   [PVR_QPS_ERR] = true },
	[PVR_QPS_RTR] = { [PVR_QPS_RESET] = true, [PVR_QPS_RTS] = true, [PVR_QPS_ERR] = true },
	[PVR_QPS_RTS] = { [PVR_QPS_RESET] = true,
			  [PVR_QPS_RTS] = true,
			  [PVR_QPS_SQD] = true,
			  [PVR_QPS_ERR] = true },
	[PVR_QPS_SQD] = { [PVR_QPS_RESET] = true,
			  [PVR_QPS_RTS] = true,
			  [PVR_QPS_SQD] = true,
			  [PVR_QPS_ERR] = true },
	[PVR_QPS_ERR] = { [PVR_QPS_RESET] = true, [PVR_QPS_ERR] = true },
};
static const enum pvr_qp_state reachable[] = {
	PVR_QPS_RESET, PVR_QPS_INIT, PVR_QPS_RTR, PVR_QPS_RTS, PVR_QPS_SQD, PVR_QPS_ERR,
};

static void check_transitions(struct t_env *env, bool want)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	for (size_t i = 0; i < COUNT(reachable); i++) {
		enum pvr_qp_state from = reachable[i];

		for (uint32_t to = 0; to < PVR_QPS_NUM; to++) {
			uint32_t err, mask = mask_between(from, to, env->a.qp.type);

			/* Harmless either way: "any state to ERR" reads both ways. */
			if (from == PVR_QPS_RESET && to == PVR_QPS_ERR)
				continue;
			if (legal[from][to] != want)
				continue;
			bring_to(env, from);
			err = modify(env, mask, attr, to);
			if (want)
				assert_int_equal(err, 0);
			else
				assert_int_equal(err, EINVAL);
			assert_int_equal(fg_qp_state(&env->a.qp), want ? to : from);
		}
	}
}

TEST(rc, test_legal_transitions_of_an_rc_qp)
{
	check_transitions(env, true);
}

TEST(rc, test_illegal_transitions_of_an_rc_qp)
{
	check_transitions(env, false);
}

TEST(ud_ready, test_legal_transitions_of_a_ud_qp)
{
	check_transitions(env, true);
}

TEST(ud_ready, test_illegal_transitions_of_a_ud_qp)
{
	check_transitions(env, false);
}

TEST(uc, test_legal_transitions_of_a_uc_qp)
{
	check_transitions(env, true);
}

TEST(uc, test_illegal_transitions_of_a_uc_qp)
{
	check_transitions(env, false);
}

TEST(rc, test_unknown_states_are_rejected)
{
	static const uint32_t bad[] = { PVR_QPS_NUM, 8, 255, 0x10001, UINT32_MAX };

	bring_to(env, PVR_QPS_RTS);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(modify(env, PVR_QPA_STATE, good_attr(&env->b), bad[i]), EINVAL);
	expect_state(&env->a, PVR_QPS_RTS);
}

static const struct {
	const char *label;
	enum pvr_qp_state from;
	enum pvr_qp_state to;
} needs[] = {
	{ "init needs its attributes", PVR_QPS_RESET, PVR_QPS_INIT },
	{ "rtr needs its attributes", PVR_QPS_INIT, PVR_QPS_RTR },
	{ "rts needs its attributes", PVR_QPS_RTR, PVR_QPS_RTS },
};

/* Every required attribute missing once. */
TEST_CASES(rc, test_state_needs_its_attributes, needs)
{
	uint32_t full = mask_between(row->from, row->to, env->a.qp.type);

	for (uint32_t bit = 1; bit <= full; bit <<= 1) {
		if (!(full & bit) || bit == PVR_QPA_STATE)
			continue;
		bring_to(env, row->from);
		assert_int_equal(modify(env, full & ~bit, good_attr(&env->b), row->to), EINVAL);
		assert_int_equal(fg_qp_state(&env->a.qp), row->from);
	}
}

TEST(rc, test_attributes_that_do_not_fit_the_transition_are_rejected)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	bring_to(env, PVR_QPS_RESET);
	expect_refused(modify(env, RC_INIT | PVR_QPA_DEST_QPN, attr, PVR_QPS_INIT));
	bring_to(env, PVR_QPS_RTS);
	expect_refused(modify(env, PVR_QPA_STATE | PVR_QPA_DEST_QPN, attr, PVR_QPS_RTS));
	expect_refused(modify(env, PVR_QPA_STATE | PVR_QPA_SQ_PSN, attr, PVR_QPS_RTS));
	expect_state(&env->a, PVR_QPS_RTS);
}

TEST(rc, test_all_mask_bits_are_rejected)
{
	for (size_t i = 0; i < COUNT(reachable); i++) {
		bring_to(env, reachable[i]);
		for (uint32_t to = PVR_QPS_INIT; to < PVR_QPS_NUM; to++) {
			if (to == PVR_QPS_ERR)
				continue; /* nothing is read there */
			expect_refused(modify(env, UINT32_MAX, good_attr(&env->b), to));
			expect_refused(modify(env, PVR_QPA_ALL, good_attr(&env->b), to));
		}
		assert_int_equal(fg_qp_state(&env->a.qp), reachable[i]);
	}
}

TEST(rc, test_unknown_handles_are_rejected)
{
	static const uint32_t bad[] = { 0, 500, 0x10000, UINT32_MAX };
	const uint32_t good = env->a.qp.handle;

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pvr_qp_attr attr;

		env->a.qp.handle = bad[i];
		assert_int_equal(fg_qp_to_err(&env->a.qp), EINVAL);
		assert_int_equal(fg_qp_query(&env->a.qp, &attr), EINVAL);
	}
	env->a.qp.handle = good;
}

/* Sets one attribute to a bad value on the way to @to; the QP must stay in @from. */
#define EXPECT_BAD(env, from, to, extra, field, ...)                                            \
	do {                                                                                    \
		const uint32_t bad_values[] = { __VA_ARGS__ };                                  \
                                                                                                \
		for (size_t bad_i = 0; bad_i < COUNT(bad_values); bad_i++) {                    \
			struct pvr_qp_attr bad_attr = good_attr(&(env)->b);                     \
			uint32_t bad_mask = mask_between(from, to, (env)->a.qp.type) | (extra); \
                                                                                                \
			bring_to(env, from);                                                    \
			bad_attr.field = (__typeof__(bad_attr.field))bad_values[bad_i];         \
			assert_int_equal(modify(env, bad_mask, bad_attr, to), EINVAL);          \
			assert_int_equal(fg_qp_state(&(env)->a.qp), from);                      \
		}                                                                               \
	} while (0)

TEST(rc, test_bad_ports_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_RESET, PVR_QPS_INIT, 0, port_num, 0, 2, 255);
}

TEST(rc, test_bad_pkey_indices_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_RESET, PVR_QPS_INIT, 0, pkey_index, 1, 128, 0xffff);
}

TEST(rc, test_bad_mtus_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, path_mtu, 0, 6, 1024, 0x80000000, UINT32_MAX);
}

TEST(rc, test_bad_rnr_timers_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, min_rnr_timer, 32, 255);
}

TEST(rc, test_bad_timeouts_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_RTR, PVR_QPS_RTS, 0, timeout, 32, 255);
}

TEST(rc, test_read_depths_above_the_caps_are_rejected)
{
	uint32_t max = env->g[0]->dsr->caps.max_qp_rd_atom;

	assert_in_range(max, 1, 254);
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, max_dest_rd_atomic, max + 1, 255);
	EXPECT_BAD(env, PVR_QPS_RTR, PVR_QPS_RTS, 0, max_rd_atomic, max + 1, 255);
}

TEST(rc, test_bad_retry_counts_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_RTR, PVR_QPS_RTS, 0, retry_cnt, 8, 255);
	EXPECT_BAD(env, PVR_QPS_RTR, PVR_QPS_RTS, 0, rnr_retry, 8, 255);
}

TEST(rc, test_bad_destination_numbers_are_rejected)
{
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, dest_qp_num, 1u << 24, UINT32_MAX);
}

TEST(rc, test_psns_have_24_bits)
{
	struct pvr_qp_attr attr = good_attr(&env->b), got;

	attr.rq_psn |= 0xbb000000;
	attr.sq_psn |= 0xcc000000;
	bring_to(env, PVR_QPS_INIT);
	expect_ok(modify(env, RC_RTR, attr, PVR_QPS_RTR));
	expect_ok(modify(env, RC_RTS, attr, PVR_QPS_RTS));
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.rq_psn, attr.rq_psn & 0xffffff);
	assert_int_equal(got.sq_psn, attr.sq_psn & 0xffffff);
}

TEST(rc, test_psns_wrap)
{
	struct fg_end *end[2] = { &env->a, &env->b };

	for (int i = 0; i < 2; i++) {
		struct pvr_qp_attr attr = good_attr(end[1 - i]);

		attr.sq_psn = attr.rq_psn = 0xfffffd;
		attr.qp_state = PVR_QPS_INIT;
		expect_ok(fg_qp_modify(&end[i]->qp, RC_INIT, &attr));
		attr.qp_state = PVR_QPS_RTR;
		expect_ok(fg_qp_modify(&end[i]->qp, RC_RTR, &attr));
		attr.qp_state = PVR_QPS_RTS;
		expect_ok(fg_qp_modify(&end[i]->qp, RC_RTS, &attr));
	}
	for (uint32_t i = 0; i < 10; i++) {
		struct pvr_qp_attr attr;

		t_ping_pong(env->host, &env->a, &env->b);
		expect_ok(fg_qp_query(&env->a.qp, &attr));
		assert_int_equal(attr.sq_psn, (0xfffffd + i + 1) & 0xffffff);
		assert_int_equal(attr.rq_psn, (0xfffffd + i + 1) & 0xffffff);
	}
}

TEST(rc, test_psns_that_do_not_match_are_never_answered)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	bring_to(env, PVR_QPS_RTS);
	attr = good_attr(&env->a);
	attr.rq_psn = 0x222223; /* a sends from 0x222222 on */
	attr.qp_state = PVR_QPS_INIT;
	expect_ok(fg_qp_modify(&env->b.qp, RC_INIT, &attr));
	attr.qp_state = PVR_QPS_RTR;
	expect_ok(fg_qp_modify(&env->b.qp, RC_RTR, &attr));
	t_recv(&env->b, 1, 0, 10);
	t_send(&env->a, 2, 0, 10);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
}

TEST(rc, test_bad_source_gids_are_rejected)
{
	/* 1 exists but nothing is bound there. */
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, ah_attr.sgid_index, 1, 127, 128, 255);
}

TEST(rc, test_address_without_grh_is_rejected)
{
	EXPECT_BAD(env, PVR_QPS_INIT, PVR_QPS_RTR, 0, ah_attr.ah_flags, 0);
}

TEST(rc, test_wrong_current_state_is_rejected)
{
	EXPECT_BAD(env, PVR_QPS_RTR, PVR_QPS_RTS, PVR_QPA_CUR_STATE, cur_qp_state, PVR_QPS_RESET,
		   PVR_QPS_INIT, PVR_QPS_NUM, UINT32_MAX);
}

TEST(rc, test_alternate_paths_are_refused)
{
	bring_to(env, PVR_QPS_INIT);
	expect_refused(modify(env, RC_RTR | PVR_QPA_ALT_PATH, good_attr(&env->b), PVR_QPS_RTR));
}

TEST(guest, test_minimal_masks_of_ib_mad_bring_the_gsi_qp_up)
{
	struct pvr_qp_attr attr = { .qkey = FG_GSI_QKEY };
	struct fg_end gsi;

	fg_end_open(&gsi, env->g[0], PVR_QPT_GSI);
	attr.qp_state = PVR_QPS_INIT;
	expect_ok(fg_qp_modify(&gsi.qp, PVR_QPA_STATE | PVR_QPA_PKEY_INDEX | PVR_QPA_QKEY, &attr));
	attr.qp_state = PVR_QPS_RTR;
	expect_ok(fg_qp_modify(&gsi.qp, PVR_QPA_STATE, &attr));
	attr.qp_state = PVR_QPS_RTS;
	expect_ok(fg_qp_modify(&gsi.qp, PVR_QPA_STATE | PVR_QPA_SQ_PSN, &attr));
	assert_int_equal(fg_qp_state(&gsi.qp), PVR_QPS_RTS);
}

TEST(rc, test_query_returns_what_was_set)
{
	struct pvr_qp_attr set = good_attr(&env->b), got;

	bring_to(env, PVR_QPS_RTS);
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.qp_state, PVR_QPS_RTS);
	assert_int_equal(got.cur_qp_state, PVR_QPS_RTS);
	assert_int_equal(got.path_mtu, set.path_mtu);
	assert_int_equal(got.rq_psn, set.rq_psn);
	assert_int_equal(got.sq_psn, set.sq_psn);
	assert_int_equal(got.dest_qp_num, set.dest_qp_num);
	assert_int_equal(got.qp_access_flags, set.qp_access_flags);
	assert_int_equal(got.pkey_index, 0);
	assert_int_equal(got.port_num, 1);
	assert_int_equal(got.timeout, set.timeout);
	assert_int_equal(got.retry_cnt, set.retry_cnt);
	assert_int_equal(got.rnr_retry, set.rnr_retry);
	assert_int_equal(got.min_rnr_timer, set.min_rnr_timer);
	assert_int_equal(got.max_rd_atomic, set.max_rd_atomic);
	assert_int_equal(got.max_dest_rd_atomic, set.max_dest_rd_atomic);
	assert_memory_equal(got.ah_attr.dgid, set.ah_attr.dgid, 16);
	assert_int_equal(got.ah_attr.sgid_index, 0);
	assert_int_equal(got.ah_attr.hop_limit, 64);
	assert_int_equal(got.cap.max_send_wr, 64);
	assert_int_equal(got.cap.max_recv_wr, 64);
	assert_int_equal(got.cap.max_send_sge, 4);
	assert_int_equal(got.cap.max_recv_sge, 4);
	assert_int_equal(got.cap.max_inline_data, 0);
}

TEST(rc, test_query_of_a_new_qp_says_reset)
{
	expect_state(&env->a, PVR_QPS_RESET);
}

TEST(rc, test_unnamed_attributes_are_not_changed)
{
	struct pvr_qp_attr attr = good_attr(&env->b), before, after;

	bring_to(env, PVR_QPS_RTS);
	expect_ok(fg_qp_query(&env->a.qp, &before));
	attr.min_rnr_timer = 20;
	expect_ok(modify(env, PVR_QPA_STATE | PVR_QPA_MIN_RNR_TIMER, attr, PVR_QPS_RTS));
	expect_ok(fg_qp_query(&env->a.qp, &after));
	assert_int_equal(after.min_rnr_timer, 20);
	before.min_rnr_timer = 20;
	assert_memory_equal(&before, &after, sizeof(before));
}

TEST(rc, test_failed_modify_changes_nothing)
{
	struct pvr_qp_attr attr = good_attr(&env->b), before, after;

	bring_to(env, PVR_QPS_INIT);
	expect_ok(fg_qp_query(&env->a.qp, &before));
	attr.path_mtu = 77;
	attr.dest_qp_num = 0x555;
	assert_int_equal(modify(env, RC_RTR, attr, PVR_QPS_RTR), EINVAL);
	expect_ok(fg_qp_query(&env->a.qp, &after));
	assert_memory_equal(&before, &after, sizeof(before));
}

TEST(rc, test_modify_without_state_stays_in_the_state)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	bring_to(env, PVR_QPS_RTS);
	attr.qp_access_flags = PVR_ACCESS_REMOTE_READ;
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_ACCESS_FLAGS, &attr));
	expect_state(&env->a, PVR_QPS_RTS);
}

TEST(rc, test_reset_and_reconnect)
{
	for (int i = 0; i < 50; i++) {
		fg_end_connect(&env->a, &env->b, NULL);
		t_ping_pong(env->host, &env->a, &env->b);
		t_recv(&env->a, 1, 0, 8); /* left over */
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->b.qp));
		fg_run(env->host);
		expect_no_cqe(&env->a.rcq);
	}
}

TEST(rc, test_reset_qp_leaves_its_ring_state_alone)
{
	fg_end_connect(&env->a, &env->b, NULL);
	t_recv(&env->a, 1, 0, 8);
	t_send(&env->a, 1, 0, 8);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	t_send(&env->b, 1, 0, 8);
	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	fg_settle(env->host, FG_SEC);
	assert_int_equal(env->a.qp.ring->tx.prod_tail, 0);
	assert_int_equal(env->a.qp.ring->tx.cons_head, 0);
	assert_int_equal(env->a.qp.ring->rx.prod_tail, 0);
	assert_int_equal(env->a.qp.ring->rx.cons_head, 0);
}

TEST(rc, test_first_message_establishes_communication)
{
	expect_ok(fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	expect_ok(fg_qp_to_init(&env->b.qp, NULL));
	t_recv(&env->b, 1, 0, 8);
	t_recv(&env->b, 1, 0, 8);
	expect_ok(fg_qp_to_rtr(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	t_send(&env->a, 2, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 1, 8);
	expect_recv(&env->b.rcq, 1, 8);
	expect_one_event(env->g[1], PVR_EVENT_COMM_EST, env->b.qp.handle);
}

TEST(rc, test_sqd_drains_and_tells)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	fg_end_connect(&env->a, &env->b, NULL);
	attr.en_sqd_async_notify = 1;
	expect_ok(modify(env, PVR_QPA_STATE | PVR_QPA_EN_SQD_ASYNC, attr, PVR_QPS_SQD));
	fg_run(env->host);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
	expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_RTS));
	fg_run(env->host);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
}

TEST(rc, test_sqd_lets_the_request_in_progress_finish)
{
	struct pvr_qp_attr attr = good_attr(&env->b), got;

	t_one_host_only(env, "between hosts both requests have begun");
	fg_end_connect(&env->a, &env->b, NULL);
	t_send(&env->a, 1, 0, 8); /* waits for a receive request */
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	attr.en_sqd_async_notify = 1;
	expect_ok(modify(env, PVR_QPA_STATE | PVR_QPA_EN_SQD_ASYNC, attr, PVR_QPS_SQD));
	fg_run(env->host);
	expect_no_event(env->g[0]);
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.qp_state, PVR_QPS_SQD);
	assert_int_equal(got.sq_draining, 1);

	t_recv(&env->b, 3, 0, 8);
	t_recv(&env->b, 4, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_no_cqe(&env->a.scq);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.sq_draining, 0);

	/* Drained means that doorbells start nothing. */
	t_send(&env->a, 5, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_no_cqe(&env->a.scq);
	expect_no_event(env->g[0]);
	expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_RTS));
	fg_run(env->host);
	expect_done(&env->a.scq, 2, PVRDMA_WC_SEND);
}

TEST(rc, test_draining_qp_can_go_to_reset_and_error)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	for (int i = 0; i < 2; i++) {
		fg_end_connect(&env->a, &env->b, NULL);
		t_send(&env->a, 1, 0, 8);
		fg_run(env->host);
		expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_SQD));
		fg_run(env->host);
		if (i) {
			expect_ok(fg_qp_to_err(&env->a.qp));
			fg_run(env->host);
			expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
		}
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->b.qp));
		fg_settle(env->host, FG_SEC);
		expect_no_cqe(&env->a.scq);
	}
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
}
