// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Probes: a lost tail of requests or answers costs milliseconds, not the guest's timeout. */
#include "core/objects.h"
#include "path/wire/internal.h"
#include "segment.h"

#define LEN 5000u /* 5 packets */
#define DELAY 20000u /* ns, one way */

/* The ends know how long an answer takes. The timeout is that of rdma_cm: 4 s. */
T_SETUP(measured, rc)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 20;
	fg_end_connect(&env->a, &env->b, &conn);
	fg_segment_rules(env->segment)->delay = DELAY;
	for (uint32_t i = 0; i < 8; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, LEN);
		fg_settle(env->host, FG_MS);
		expect_written(&env->a, i);
	}
}

static struct pvr_eth_sq *sq_of(struct t_env *env)
{
	return pvr_eth_sq(t_device_qp(&env->a));
}

static void post(struct t_env *env, enum pvrdma_wr_opcode opcode)
{
	fg_fill(env->a.mr.va, LEN, 3);
	fg_fill((uint8_t *)env->b.mr.va + LEN, LEN, 4);
	*(uint64_t *)(env->b.mr.va + 2 * LEN) = 7;
	switch (opcode) {
	case PVRDMA_WR_SEND:
		t_recv(&env->b, 2, 0, LEN);
		t_send(&env->a, 9, 0, LEN);
		break;
	case PVRDMA_WR_ATOMIC_FETCH_AND_ADD:
		t_post(&env->a, .wr_id = 9, .opcode = opcode, T_SGE(&env->a.mr, 0, 8),
		       T_REMOTE(&env->b.mr, 2 * LEN), .compare_add = 1);
		break;
	default:
		t_rdma(&env->a, opcode, 9, 0, &env->b.mr, opcode == PVRDMA_WR_RDMA_READ ? LEN : 0,
		       LEN);
	}
}

TEST(measured, test_time_of_an_answer_is_measured)
{
	assert_in_range(sq_of(env)->srtt, 2 * DELAY, 3 * DELAY);
}

static const struct {
	const char *label;
	enum pvrdma_wr_opcode opcode;
} requests[] = {
	{ "SEND", PVRDMA_WR_SEND },
	{ "WRITE", PVRDMA_WR_RDMA_WRITE },
	{ "READ", PVRDMA_WR_RDMA_READ },
	{ "FETCH_ADD", PVRDMA_WR_ATOMIC_FETCH_AND_ADD },
};

static void expect_done_soon(struct t_env *env, uint64_t begin)
{
	struct pvrdma_cqe cqe;

	while (!fg_cq_pending(&env->a.scq) && env->host->now - begin < FG_SEC)
		fg_advance(env->host, DELAY);
	assert_true(fg_cq_poll(&env->a.scq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	assert_in_range(env->host->now - begin, PVR_ETH_PROBE_MIN_NS, 3 * PVR_ETH_PROBE_MIN_NS);
	/* No retry was spent. */
	assert_int_equal(t_device_qp(&env->a)->retry_left, fg_conn_default.retry_cnt);
}

TEST_CASES(measured, test_lost_requests_are_noticed_soon, requests)
{
	uint64_t begin = env->host->now;

	fg_segment_rules(env->segment)->cut = true;
	post(env, row->opcode);
	fg_run(env->host);
	fg_segment_rules(env->segment)->cut = false;
	expect_done_soon(env, begin);
}

TEST_CASES(measured, test_lost_answers_are_noticed_soon, requests)
{
	uint64_t begin = env->host->now;

	post(env, row->opcode);
	fg_run(env->host);
	fg_segment_rules(env->segment)->cut = true;
	fg_advance(env->host, DELAY + 1); /* b has it, and answers */
	fg_advance(env->host, DELAY + 1);
	fg_segment_rules(env->segment)->cut = false;
	expect_no_cqe(&env->a.scq);
	expect_done_soon(env, begin);
	if (row->opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD)
		assert_int_equal(*(uint64_t *)(env->b.mr.va + 2 * LEN), 8); /* once */
}

TEST(measured, test_silence_gets_two_probes_until_the_timeout)
{
	uint64_t sent;

	fg_segment_rules(env->segment)->cut = true;
	post(env, PVRDMA_WR_RDMA_WRITE);
	fg_run(env->host);
	sent = fg_segment_sent(env->segment, 0);
	for (unsigned int i = 0; i < 4000; i++) /* just below the timeout */
		fg_advance(env->host, FG_MS);
	assert_int_equal(fg_segment_sent(env->segment, 0), sent + 2);
}

static struct pvr_qp_wire wire_of(struct fg_end *end)
{
	struct pvr_qp_detail detail;

	assert_true(pvr_adapter_get_qp(end->guest->adapter, end->qp.qpn, &detail));
	assert_string_equal(detail.path, "wire");
	return detail.wire;
}

TEST(measured, test_window_and_time_of_an_answer_are_shown)
{
	struct pvr_qp_wire shown = wire_of(&env->a);

	assert_true(shown.sends);
	assert_memory_equal(shown.dmac, env->g[1]->config.mac, 6);
	assert_int_equal(shown.window, PVR_ETH_WINDOW_FIRST);
	assert_int_equal(shown.packets_in_flight, 0);
	assert_in_range(shown.round_trip, 2 * DELAY, 3 * DELAY);
	assert_int_equal(shown.probe_after, PVR_ETH_PROBE_MIN_NS);
	assert_int_equal(shown.probes, 0);
	assert_int_equal(shown.go_backs, 0);
}

TEST(measured, test_probes_and_go_backs_are_shown)
{
	fg_segment_rules(env->segment)->cut = true;
	post(env, PVRDMA_WR_RDMA_WRITE);
	fg_run(env->host);
	assert_int_equal(wire_of(&env->a).packets_in_flight, 5);
	for (unsigned int i = 0; i < 5000; i++) /* one timeout */
		fg_advance(env->host, FG_MS);
	assert_int_equal(wire_of(&env->a).probes, PVR_ETH_PROBES);
	assert_int_equal(wire_of(&env->a).go_backs, 1);
	assert_int_equal(wire_of(&env->a).window, PVR_ETH_WINDOW_FIRST / 2);
}

/* The time of an answer is not measured yet, and the timeout is shorter than the first probe. */
TEST(rc_connected, test_no_probe_is_shown_where_the_timeout_is_shorter)
{
	struct fg_conn conn = fg_conn_default;
	struct pvr_qp_wire shown;

	conn.timeout = 12; /* 17 ms */
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &conn);
	fg_segment_rules(env->segment)->cut = true;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	shown = wire_of(&env->a);
	assert_true(shown.sends);
	assert_int_equal(shown.round_trip, 0);
	assert_int_equal(shown.probe_after, 0);
}

/* The first answer may take any time: no probe comes before 100 ms. */
TEST(rc_connected, test_unknown_peer_has_time_to_answer)
{
	uint64_t sent;

	fg_segment_rules(env->segment)->cut = true;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_advance(env->host, 50 * FG_MS);
	sent = fg_segment_sent(env->segment, 0);
	assert_int_equal(sent, 1);
}
