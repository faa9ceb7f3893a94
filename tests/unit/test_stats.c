// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_STATS: counters that are true. */
#include "objects.h"

TEST_EXT(PVR_EXT_STATS | PVR_EXT_SUM_STATS | PVR_EXT_MCAST)

struct counter {
	enum pvr_stat stat;
	uint64_t value;
};

/* Exactly these have counted, all others are 0; the same in the adapter's counters. */
static void expect_stats(struct fg_end *end, const struct counter *counted, size_t n)
{
	uint64_t stat[PVR_STAT_NUM], adapter[PVR_STAT_NUM], expected[PVR_STAT_NUM] = { 0 };

	for (size_t i = 0; i < n; i++)
		expected[counted[i].stat] = counted[i].value;
	expect_ok(fg_qp_stats(&end->qp, stat));
	expect_ok(fg_query_stats(end->guest, 0, adapter));
	for (uint32_t i = 0; i < PVR_STAT_NUM; i++) {
		if (i == PVR_STAT_DOORBELLS)
			continue; /* depends on how requests are posted */
		if (stat[i] != expected[i] || adapter[i] != expected[i])
			print_error("counter %u\n", i);
		assert_int_equal(stat[i], expected[i]);
		assert_int_equal(adapter[i], expected[i]);
	}
}

#define EXPECT_STATS(end, ...)                                         \
	do {                                                           \
		const struct counter counter_list[] = { __VA_ARGS__ }; \
                                                                       \
		expect_stats(end, counter_list, COUNT(counter_list));  \
	} while (0)

TEST(rc, test_new_qp_has_counted_nothing)
{
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 0 });
}

TEST(rc_connected, test_sends_and_writes_count_at_both_ends)
{
	t_recv(&env->b, 1, 0, 1000);
	t_recv(&env->b, 2, 0, 1000);
	t_send(&env->a, 3, 0, 700);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 4, 0, &env->b.mr, 0, 50);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 5, 0, &env->b.mr, 0, 5);
	fg_run(env->host);
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 3 }, { PVR_STAT_TX_BYTES, 755 },
		     { PVR_STAT_LOCAL_BYTES, 755 });
	EXPECT_STATS(&env->b, { PVR_STAT_RX_MSGS, 3 }, { PVR_STAT_RX_BYTES, 755 });
}

TEST(rc_connected, test_the_host_sees_the_bytes_of_each_path)
{
	struct pvr_adapter_stats stats;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 50);
	fg_run(env->host);
	pvr_adapter_get_stats(env->a.guest->adapter, &stats);
	assert_int_equal(stats.local_bytes, 50);
	assert_int_equal(stats.verbs_bytes, 0);
	assert_int_equal(stats.tcp_bytes, 0);
}

TEST(rc_connected, test_reads_and_atomics_count)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 300);
	t_post(&env->a, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD, T_SGE(&env->a.mr, 0, 8),
	       T_REMOTE(&env->b.mr, 0));
	fg_run(env->host);
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 2 }, { PVR_STAT_TX_BYTES, 308 },
		     { PVR_STAT_TX_READS, 1 }, { PVR_STAT_TX_ATOMICS, 1 },
		     { PVR_STAT_LOCAL_BYTES, 308 });
	EXPECT_STATS(&env->b, { PVR_STAT_RX_MSGS, 2 }, { PVR_STAT_RX_BYTES, 308 });
}

TEST(rc_connected, test_rnr_naks_count_at_the_responder)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	EXPECT_STATS(&env->b, { PVR_STAT_RNR_NAKS, 1 });
	/* Nothing is completed yet. */
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 0 });
}

TEST(rc, test_timeouts_count_at_the_requester)
{
	struct fg_conn conn = fg_conn_default;

	conn.retry_cnt = 2;
	expect_ok(fg_qp_connect(&env->a.qp, &conn, env->b.gid, 0xabcdef));
	t_send(&env->a, 1, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	EXPECT_STATS(&env->a, { PVR_STAT_ACK_TIMEOUTS, 3 }, { PVR_STAT_RETRIES_EXCEEDED, 1 });
}

TEST(rc_connected, test_access_errors_count_at_the_responder)
{
	struct fg_mr bad = env->b.mr;

	bad.rkey ^= 0x100;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &bad, 0, 8);
	fg_run(env->host);
	EXPECT_STATS(&env->b, { PVR_STAT_ACCESS_ERRORS, 1 });
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 0 });
}

TEST(rc_connected, test_request_errors_count_at_the_responder)
{
	struct fg_conn conn = fg_conn_default;

	t_recv(&env->b, 1, 0, 7);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	EXPECT_STATS(&env->b, { PVR_STAT_REQUEST_ERRORS, 1 });
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	conn.access = 0;
	fg_end_connect(&env->a, &env->b, &conn);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	/* RESET is no new QP: its counters go on. */
	EXPECT_STATS(&env->b, { PVR_STAT_REQUEST_ERRORS, 2 });
}

TEST(ud_ready, test_datagrams_count)
{
	t_recv(&env->b, 1, 0, 1000);
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	t_send_ud(&env->a, &env->b, 3, 0, 30); /* finds no receive request */
	fg_run(env->host);
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 2 }, { PVR_STAT_TX_BYTES, 130 },
		     { PVR_STAT_LOCAL_BYTES, 100 });
	EXPECT_STATS(&env->b, { PVR_STAT_RX_MSGS, 1 }, { PVR_STAT_RX_BYTES, 100 },
		     { PVR_STAT_UD_DROPPED, 1 });
}

TEST(ud_ready, test_multicast_counts)
{
	static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };

	expect_ok(fg_qp_attach(&env->b.qp, group));
	t_recv(&env->b, 1, 0, 1000);
	t_send_group(&env->a, group, 2, 0, 100);
	fg_run(env->host);
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 1 }, { PVR_STAT_TX_BYTES, 100 },
		     { PVR_STAT_TX_MCAST, 1 }, { PVR_STAT_LOCAL_BYTES, 100 });
	EXPECT_STATS(&env->b, { PVR_STAT_RX_MSGS, 1 }, { PVR_STAT_RX_BYTES, 100 },
		     { PVR_STAT_RX_MCAST, 1 });
}

TEST(uc, test_dropped_unreliable_messages_count_as_sent)
{
	fg_end_connect(&env->a, &env->b, NULL);
	t_recv(&env->b, 1, 0, 100);
	t_send(&env->a, 2, 0, 100);
	t_send(&env->a, 3, 0, 10); /* finds no receive request */
	fg_run(env->host);
	EXPECT_STATS(&env->a, { PVR_STAT_TX_MSGS, 2 }, { PVR_STAT_TX_BYTES, 110 },
		     { PVR_STAT_LOCAL_BYTES, 100 });
	EXPECT_STATS(&env->b, { PVR_STAT_RX_MSGS, 1 }, { PVR_STAT_RX_BYTES, 100 });
}

TEST(rc, test_cq_overflows_count)
{
	uint64_t stat[PVR_STAT_NUM];
	struct fg_cq small;

	expect_ok(fg_cq_create(&env->g[0]->kernel, 2, &small));
	t_qp_replace(&env->a, (struct fg_qp_spec){ .scq = &small, .sig_all = true });
	expect_ok(fg_qp_to_err(&env->a.qp));
	for (int i = 0; i < 3; i++)
		t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_ok(fg_qp_stats(&env->a.qp, stat));
	assert_int_equal(stat[PVR_STAT_CQ_OVERFLOWS], 1);
}

TEST(rc, test_doorbells_count)
{
	uint64_t before[PVR_STAT_NUM], after[PVR_STAT_NUM], qp[PVR_STAT_NUM];

	expect_ok(fg_query_stats(env->g[0], 0, before));
	for (int i = 0; i < 3; i++)
		fg_ring_send(&env->a.qp);
	fg_uar_write(env->g[0], 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | 5000);
	expect_ok(fg_query_stats(env->g[0], 0, after));
	expect_ok(fg_qp_stats(&env->a.qp, qp));
	assert_int_equal(after[PVR_STAT_DOORBELLS] - before[PVR_STAT_DOORBELLS], 4);
	assert_int_equal(after[PVR_STAT_DOORBELLS_IGNORED] - before[PVR_STAT_DOORBELLS_IGNORED], 1);
	assert_int_equal(qp[PVR_STAT_DOORBELLS], 3);
	assert_int_equal(qp[PVR_STAT_DOORBELLS_IGNORED], 0);
}

TEST(rc_connected, test_adapter_is_the_sum_of_its_qps)
{
	uint64_t a[PVR_STAT_NUM], b[PVR_STAT_NUM], sum[PVR_STAT_NUM];
	struct fg_end c;

	t_open_self(&c, env->g[0]);
	t_ping_pong(env->host, &c, &c);
	t_ping_pong(env->host, &env->a, &env->b);
	expect_ok(fg_qp_stats(&env->a.qp, a));
	expect_ok(fg_qp_stats(&c.qp, b));
	expect_ok(fg_query_stats(env->g[0], 0, sum));
	for (uint32_t i = 0; i < PVR_STAT_NUM; i++)
		if (i != PVR_STAT_DOORBELLS)
			assert_int_equal(sum[i], a[i] + b[i]);
	/* The counts of a destroyed QP stay. */
	fg_end_close(&c);
	expect_ok(fg_query_stats(env->g[0], 0, b));
	assert_memory_equal(b, sum, sizeof(b));
}

TEST(rc_connected, test_counters_of_guest_and_host_are_equal)
{
	uint64_t stat[PVR_STAT_NUM];
	struct pvr_adapter_stats host;

	t_ping_pong(env->host, &env->a, &env->b);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 77);
	fg_run(env->host);
	host = fg_stats(env->g[0]);
	expect_ok(fg_query_stats(env->g[0], 0, stat));
	assert_int_equal(host.tx_messages, stat[PVR_STAT_TX_MSGS]);
	assert_int_equal(host.tx_bytes, stat[PVR_STAT_TX_BYTES]);
	assert_int_equal(host.rx_messages, stat[PVR_STAT_RX_MSGS]);
	assert_int_equal(host.rx_bytes, stat[PVR_STAT_RX_BYTES]);
	assert_int_equal(host.tx_reads, 1);
	assert_int_equal(host.doorbells, stat[PVR_STAT_DOORBELLS]);
}

/* In parts of one, as a caller with little room gets them. */
static uint32_t count_listed(struct pvr_adapter *adapter, uint32_t qpn)
{
	uint32_t cursor = 0, count = 0;
	struct pvr_qp_info info;
	size_t num;
	bool more;

	do {
		more = pvr_adapter_get_qps(adapter, &cursor, &info, 1, &num);
		count += num && info.qpn == qpn;
	} while (more);
	return count;
}

TEST(gsi_ready, test_each_queue_pair_is_listed_once)
{
	struct fg_end ud;

	t_open_ready(&ud, env->g[0], PVR_QPT_UD);
	assert_int_equal(count_listed(env->g[0]->adapter, 1), 1);
	assert_int_equal(count_listed(env->g[0]->adapter, ud.qp.qpn), 1);
	fg_end_close(&ud);
}

TEST(rc, test_unknown_handles_are_rejected)
{
	static const uint32_t bad[] = { 1, 500, 0x10000, UINT32_MAX };
	uint64_t stat[PVR_STAT_NUM];

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fg_query_stats(env->g[0], bad[i], stat), EINVAL);
}

/* A QP counts as often as it is named. */
TEST(rc_loopback, test_sum_of_queue_pairs)
{
	uint32_t handle[PVR_SUM_STATS_MAX];
	uint64_t a[PVR_STAT_NUM], b[PVR_STAT_NUM], sum[PVR_STAT_NUM];

	t_ping_pong(env->host, &env->a, &env->b);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, 77);
	fg_run(env->host);
	expect_ok(fg_qp_stats(&env->a.qp, a));
	expect_ok(fg_qp_stats(&env->b.qp, b));
	assert_int_not_equal(a[PVR_STAT_TX_BYTES], b[PVR_STAT_TX_BYTES]);
	for (uint32_t i = 0; i < PVR_SUM_STATS_MAX; i++)
		handle[i] = i % 4 ? env->a.qp.handle : env->b.qp.handle;
	for (uint32_t n = 1; n <= PVR_SUM_STATS_MAX; n++) {
		uint32_t bs = (n + 3) / 4;

		expect_ok(fg_sum_stats(env->g[0], handle, n, sum));
		for (uint32_t i = 0; i < PVR_STAT_NUM; i++)
			assert_int_equal(sum[i], (n - bs) * a[i] + bs * b[i]);
	}
}

TEST(rc, test_bad_sums_are_rejected)
{
	static const uint32_t bad_handles[] = { 0, 1, 500, 0x10000, UINT32_MAX };
	static const uint32_t bad_counts[] = { 0, PVR_SUM_STATS_MAX + 1, 0x40000000, UINT32_MAX };
	uint32_t handle[PVR_SUM_STATS_MAX];
	uint64_t stat[PVR_STAT_NUM];

	for (uint32_t i = 0; i < PVR_SUM_STATS_MAX; i++)
		handle[i] = env->a.qp.handle;
	for (size_t i = 0; i < COUNT(bad_counts); i++)
		assert_int_equal(fg_sum_stats(env->g[0], handle, bad_counts[i], stat), EINVAL);
	for (size_t i = 0; i < COUNT(bad_handles); i++) {
		handle[PVR_SUM_STATS_MAX - 1] = bad_handles[i];
		expect_ok(fg_sum_stats(env->g[0], handle, PVR_SUM_STATS_MAX - 1, stat));
		assert_int_equal(fg_sum_stats(env->g[0], handle, PVR_SUM_STATS_MAX, stat), EINVAL);
	}
}

T_SETUP_EXT(no_extensions, 0, guest)

TEST(no_extensions, test_without_the_extension_there_is_no_such_command)
{
	uint64_t stat[PVR_STAT_NUM];
	uint32_t handle = 1;

	assert_int_equal(fg_query_stats(env->g[0], 0, stat), ENOSYS);
	assert_int_equal(fg_sum_stats(env->g[0], &handle, 1, stat), ENOSYS);
}
