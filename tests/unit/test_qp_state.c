// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* MODIFY_QP and QUERY_QP: transitions, required attributes, values. */
#include "objects.h"

#include "core/adapter.h"

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
	fg_mac_of_gid(attr.ah_attr.dmac, peer->gid);
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

/* From RESET through the states up to @last. */
static void advance(struct fg_end *end, struct pvr_qp_attr attr, enum pvr_qp_state last)
{
	for (uint32_t state = PVR_QPS_INIT; state <= last; state++) {
		attr.qp_state = state;
		expect_ok(fg_qp_modify(&end->qp, mask_to(state, end->qp.type), &attr));
	}
}

static void bring_to(struct t_env *env, enum pvr_qp_state state)
{
	expect_ok(fg_qp_to_reset(&env->a.qp));
	advance(&env->a, good_attr(&env->b), state == PVR_QPS_ERR ? PVR_QPS_INIT : state);
	if (state == PVR_QPS_ERR)
		expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_state(&env->a, state);
}

/* IBTA vol. 1, 10.3.1; SQE is reached by errors of UD QPs only, see test_ud.c. */
#define TO(state) (1u << PVR_QPS_##state)
static const uint32_t legal[PVR_QPS_NUM] = {
	[PVR_QPS_RESET] = TO(RESET) | TO(INIT),
	[PVR_QPS_INIT] = TO(RESET) | TO(INIT) | TO(RTR) | TO(ERR),
	[PVR_QPS_RTR] = TO(RESET) | TO(RTS) | TO(ERR),
	[PVR_QPS_RTS] = TO(RESET) | TO(RTS) | TO(SQD) | TO(ERR),
	[PVR_QPS_SQD] = TO(RESET) | TO(RTS) | TO(SQD) | TO(ERR),
	[PVR_QPS_ERR] = TO(RESET) | TO(ERR),
};
static const enum pvr_qp_state reachable[] = {
	PVR_QPS_RESET, PVR_QPS_INIT, PVR_QPS_RTR, PVR_QPS_RTS, PVR_QPS_SQD, PVR_QPS_ERR,
};

static void check_transitions(struct t_env *env, bool is_legal)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	for (size_t i = 0; i < COUNT(reachable); i++) {
		enum pvr_qp_state from = reachable[i];

		for (uint32_t to = 0; to < PVR_QPS_NUM; to++) {
			uint32_t err, mask = mask_between(from, to, env->a.qp.type);

			/* Harmless either way: "any state to ERR" reads both ways. */
			if (from == PVR_QPS_RESET && to == PVR_QPS_ERR)
				continue;
			if (!!(legal[from] & 1u << to) != is_legal)
				continue;
			bring_to(env, from);
			err = modify(env, mask, attr, to);
			assert_int_equal(err, is_legal ? 0 : EINVAL);
			expect_state(&env->a, is_legal ? to : from);
		}
	}
}

static const struct {
	const char *label;
	bool legal;
} transitions[] = {
	{ "legal", true },
	{ "illegal", false },
};

TEST_CASES(rc, test_transitions_of_an_rc_qp, transitions)
{
	check_transitions(env, row->legal);
}

TEST_CASES(ud_ready, test_transitions_of_a_ud_qp, transitions)
{
	check_transitions(env, row->legal);
}

TEST_CASES(uc, test_transitions_of_a_uc_qp, transitions)
{
	check_transitions(env, row->legal);
}

TEST(rc, test_unknown_states_are_rejected)
{
	static const uint32_t bad[] = { PVR_QPS_NUM, 8, 255, 0x10001, UINT32_MAX };

	bring_to(env, PVR_QPS_RTS);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(modify(env, PVR_QPA_STATE, good_attr(&env->b), bad[i]), EINVAL);
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

#define ATTR(member, value) T_MEMBER(struct pvr_qp_attr, member, value)

static const struct {
	const char *label;
	enum pvr_qp_state to; /* from the state before it */
	struct t_member wrong;
} bad_attributes[] = {
	{ "port 0", PVR_QPS_INIT, ATTR(port_num, 0) },
	{ "port 2", PVR_QPS_INIT, ATTR(port_num, 2) },
	{ "port 255", PVR_QPS_INIT, ATTR(port_num, 255) },
	{ "P_Key index 1", PVR_QPS_INIT, ATTR(pkey_index, 1) },
	{ "P_Key index 128", PVR_QPS_INIT, ATTR(pkey_index, 128) },
	{ "P_Key index 2^16 - 1", PVR_QPS_INIT, ATTR(pkey_index, 0xffff) },
	{ "MTU 0", PVR_QPS_RTR, ATTR(path_mtu, 0) },
	{ "MTU 6", PVR_QPS_RTR, ATTR(path_mtu, 6) },
	{ "MTU in bytes", PVR_QPS_RTR, ATTR(path_mtu, 1024) },
	{ "MTU 2^31", PVR_QPS_RTR, ATTR(path_mtu, 0x80000000) },
	{ "MTU 2^32 - 1", PVR_QPS_RTR, ATTR(path_mtu, UINT32_MAX) },
	{ "RNR timer 32", PVR_QPS_RTR, ATTR(min_rnr_timer, 32) },
	{ "RNR timer 255", PVR_QPS_RTR, ATTR(min_rnr_timer, 255) },
	{ "incoming reads above the caps", PVR_QPS_RTR,
	  ATTR(max_dest_rd_atomic, PVR_MAX_RD_ATOMIC + 1) },
	{ "255 incoming reads", PVR_QPS_RTR, ATTR(max_dest_rd_atomic, 255) },
	{ "destination QP number 2^24", PVR_QPS_RTR, ATTR(dest_qp_num, 1u << 24) },
	{ "destination QP number 2^32 - 1", PVR_QPS_RTR, ATTR(dest_qp_num, UINT32_MAX) },
	{ "source GID 1, not bound", PVR_QPS_RTR, ATTR(ah_attr.sgid_index, 1) },
	{ "source GID 127, not bound", PVR_QPS_RTR, ATTR(ah_attr.sgid_index, 127) },
	{ "source GID 128", PVR_QPS_RTR, ATTR(ah_attr.sgid_index, 128) },
	{ "source GID 255", PVR_QPS_RTR, ATTR(ah_attr.sgid_index, 255) },
	{ "address without GRH", PVR_QPS_RTR, ATTR(ah_attr.ah_flags, 0) },
	{ "timeout 32", PVR_QPS_RTS, ATTR(timeout, 32) },
	{ "timeout 255", PVR_QPS_RTS, ATTR(timeout, 255) },
	{ "outgoing reads above the caps", PVR_QPS_RTS,
	  ATTR(max_rd_atomic, PVR_MAX_RD_ATOMIC + 1) },
	{ "255 outgoing reads", PVR_QPS_RTS, ATTR(max_rd_atomic, 255) },
	{ "8 retries", PVR_QPS_RTS, ATTR(retry_cnt, 8) },
	{ "255 retries", PVR_QPS_RTS, ATTR(retry_cnt, 255) },
	{ "8 RNR retries", PVR_QPS_RTS, ATTR(rnr_retry, 8) },
	{ "255 RNR retries", PVR_QPS_RTS, ATTR(rnr_retry, 255) },
	{ "migration state REARM", PVR_QPS_RTS, ATTR(path_mig_state, PVR_MIG_REARM) },
	{ "migration state ARMED", PVR_QPS_RTS, ATTR(path_mig_state, PVR_MIG_ARMED) },
	{ "migration state 2^32 - 1", PVR_QPS_RTS, ATTR(path_mig_state, UINT32_MAX) },
	{ "current state RESET", PVR_QPS_RTS, ATTR(cur_qp_state, PVR_QPS_RESET) },
	{ "current state INIT", PVR_QPS_RTS, ATTR(cur_qp_state, PVR_QPS_INIT) },
	{ "current state 7", PVR_QPS_RTS, ATTR(cur_qp_state, PVR_QPS_NUM) },
	{ "current state 2^32 - 1", PVR_QPS_RTS, ATTR(cur_qp_state, UINT32_MAX) },
};

TEST_CASES(rc, test_bad_attributes_are_rejected, bad_attributes)
{
	struct pvr_qp_attr attr = good_attr(&env->b);
	uint32_t mask = mask_to(row->to, PVR_QPT_RC);

	assert_int_equal(env->g[0]->dsr->caps.max_qp_rd_atom, PVR_MAX_RD_ATOMIC);
	if (row->wrong.offset == offsetof(struct pvr_qp_attr, cur_qp_state))
		mask |= PVR_QPA_CUR_STATE;
	if (row->wrong.offset == offsetof(struct pvr_qp_attr, path_mig_state))
		mask |= PVR_QPA_PATH_MIG_STATE;
	t_store(&attr, &row->wrong);
	bring_to(env, row->to - 1);
	assert_int_equal(modify(env, mask, attr, row->to), EINVAL);
	expect_state(&env->a, row->to - 1);
}

TEST(rc, test_psns_have_24_bits)
{
	struct pvr_qp_attr attr = good_attr(&env->b), got;

	attr.rq_psn |= 0xbb000000;
	attr.sq_psn |= 0xcc000000;
	advance(&env->a, attr, PVR_QPS_RTS);
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.rq_psn, attr.rq_psn & 0xffffff);
	assert_int_equal(got.sq_psn, attr.sq_psn & 0xffffff);
}

TEST(rc, test_psns_wrap)
{
	struct fg_end *end[2] = { &env->a, &env->b };
	struct pvr_qp_attr attr;

	for (int i = 0; i < 2; i++) {
		attr = good_attr(end[1 - i]);
		attr.sq_psn = attr.rq_psn = 0xfffffd;
		advance(end[i], attr, PVR_QPS_RTS);
	}
	for (uint32_t i = 0; i < 10; i++) {
		t_ping_pong(env->host, &env->a, &env->b);
		expect_ok(fg_qp_query(&env->a.qp, &attr));
		assert_int_equal(attr.sq_psn, (0xfffffd + i + 1) & 0xffffff);
		assert_int_equal(attr.rq_psn, (0xfffffd + i + 1) & 0xffffff);
	}
}

TEST(rc, test_psns_that_do_not_match_are_never_answered)
{
	struct pvr_qp_attr attr = good_attr(&env->a);

	bring_to(env, PVR_QPS_RTS);
	attr.rq_psn = 0x222223; /* a sends from 0x222222 on */
	advance(&env->b, attr, PVR_QPS_RTR);
	t_recv(&env->b, 1, 0, 10);
	t_send(&env->a, 2, 0, 10);
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
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

TEST(rc, test_state_of_a_new_qp_is_reset)
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
		await_no_cqe(&env->a.rcq);
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

TEST(rc, test_sqd_drains_and_raises_an_event)
{
	struct pvr_qp_attr attr = good_attr(&env->b);

	fg_end_connect(&env->a, &env->b, NULL);
	attr.en_sqd_async_notify = 1;
	expect_ok(modify(env, PVR_QPA_STATE | PVR_QPA_EN_SQD_ASYNC, attr, PVR_QPS_SQD));
	fg_run(env->host);
	expect_one_event(env->g[0], PVR_EVENT_SQ_DRAINED, env->a.qp.handle);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_no_cqe(&env->a.scq);
	expect_ok(modify(env, PVR_QPA_STATE, attr, PVR_QPS_RTS));
	await_sent(&env->a, 2);
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
	await_no_event(env->g[0]);
	expect_ok(fg_qp_query(&env->a.qp, &got));
	assert_int_equal(got.qp_state, PVR_QPS_SQD);
	assert_int_equal(got.sq_draining, 1);

	t_recv(&env->b, 3, 0, 8);
	t_recv(&env->b, 4, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 1);
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
	await_sent(&env->a, 2);
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
			await_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
		}
		expect_ok(fg_qp_to_reset(&env->a.qp));
		expect_ok(fg_qp_to_reset(&env->b.qp));
		fg_settle(env->host, FG_SEC);
		expect_no_cqe(&env->a.scq);
	}
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
}
