// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's counters, compiled for user space with the fuzzer's kernel. The device has
 * counters per QP and per adapter, and counts the commands.
 */
#include "pvrdma.h"
#include "test.h"

#define QPS 1000 /* handles are 1 .. QPS */
#define COUNTERS 3
#define STAT PVR_STAT_TX_MSGS

static struct {
	struct pvr_dev dev;
	struct pvr_qp qp[QPS + 1];
	struct rdma_counter counter[COUNTERS];
	u64 work[QPS + 1]; /* counted by the device */
	u64 adapter;
	u32 commands;
	bool dead;
} w;

unsigned long jiffies;

/* ------------------------------------------------------------------------- the device */

static u64 work_of(u32 qp_handle)
{
	assert_in_range(qp_handle, 1, QPS);
	return w.work[qp_handle];
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	u64 *stat = &resp->query_stats.stat[STAT];

	w.commands++;
	memset(resp, 0, sizeof(*resp));
	if (w.dead)
		return -EIO;
	if (req->hdr.cmd == PVR_CMD_QUERY_STATS) {
		*stat = req->query_stats.qp_handle ? work_of(req->query_stats.qp_handle)
						   : w.adapter;
		return 0;
	}
	assert_int_equal(req->hdr.cmd, PVR_CMD_SUM_STATS);
	assert_true(dev->features & PVR_EXT_SUM_STATS);
	assert_in_range(req->sum_stats.count, 1, PVR_SUM_STATS_MAX);
	for (u32 i = 0; i < req->sum_stats.count; i++)
		*stat += work_of(req->sum_stats.qp_handle[i]);
	return 0;
}

int pvr_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
		    const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index)
{
	abort();
}

/* ---------------------------------------------------------------------------- ib_core */

static void bind(u32 qp, struct rdma_counter *counter)
{
	assert_int_equal(pvr_stats_ops.counter_bind_qp(counter, &w.qp[qp].ibqp), 0);
	assert_ptr_equal(w.qp[qp].ibqp.counter, counter);
}

static void unbind(u32 qp)
{
	assert_int_equal(pvr_stats_ops.counter_unbind_qp(&w.qp[qp].ibqp), 0);
	assert_null(w.qp[qp].ibqp.counter);
}

static u64 value(struct rdma_counter *counter)
{
	if (!counter->id) /* never bound */
		return 0;
	assert_int_equal(pvr_stats_ops.counter_update_stats(counter), 0);
	return counter->stats->value[STAT];
}

/* What "rdma statistic" shows for the port: it updates all counters for each descriptor. */
static u64 port_value(void)
{
	struct rdma_hw_stats stats;
	u64 sum = 0;

	assert_int_equal(pvr_stats_ops.get_hw_stats(&w.dev.ibdev, &stats, 1, 0), PVR_STAT_NUM);
	for (int desc = 0; desc < PVR_STAT_NUM; desc++) {
		sum = stats.value[STAT];
		for (int i = 0; i < COUNTERS; i++)
			sum += value(&w.counter[i]);
	}
	return sum;
}

static void do_work(u32 qp, u64 n)
{
	w.work[qp] += n;
	w.adapter += n;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.features = PVR_EXT_STATS | PVR_EXT_SUM_STATS;
	pvr_stats_init(&w.dev.stats);
	for (u32 i = 1; i <= QPS; i++) {
		w.qp[i].ibqp.device = &w.dev.ibdev;
		w.qp[i].handle = i;
		do_work(i, i); /* before it is bound */
	}
	for (int i = 0; i < COUNTERS; i++) {
		w.counter[i].device = &w.dev.ibdev;
		w.counter[i].stats = pvr_stats_ops.counter_alloc_stats(&w.counter[i]);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (u32 i = 1; i <= QPS; i++)
		if (w.qp[i].ibqp.counter)
			unbind(i);
	for (int i = 0; i < COUNTERS; i++) {
		if (w.counter[i].id)
			pvr_stats_ops.counter_dealloc(&w.counter[i]);
		kfree(w.counter[i].stats);
	}
	pvr_stats_exit(&w.dev.stats);
	return 0;
}

#define TEST_COUNTERS(name) TEST_SETUP(set_up, tear_down, name)

static void later(void)
{
	jiffies += HZ;
}

TEST_COUNTERS(test_one_command_queries_many_queue_pairs)
{
	for (u32 i = 1; i <= QPS; i++)
		bind(i, &w.counter[0]);
	later();
	w.commands = 0;
	assert_int_equal(port_value(), w.adapter);
	assert_int_equal(w.commands, QPS / PVR_SUM_STATS_MAX + 1);
}

TEST_COUNTERS(test_device_without_sums_is_queried_once_per_queue_pair)
{
	w.dev.features = PVR_EXT_STATS;
	for (u32 i = 1; i <= QPS; i++)
		bind(i, &w.counter[i % COUNTERS]);
	later();
	w.commands = 0;
	assert_int_equal(port_value(), w.adapter);
	assert_int_equal(w.commands, QPS + 1);
}

TEST_COUNTERS(test_counter_has_the_work_since_the_bind)
{
	bind(1, &w.counter[0]);
	bind(2, &w.counter[0]);
	do_work(1, 10);
	do_work(2, 100);
	do_work(3, 1000);
	assert_int_equal(value(&w.counter[0]), 110);
	do_work(1, 5);
	later();
	assert_int_equal(value(&w.counter[0]), 115);
	unbind(1);
	do_work(1, 7);
	do_work(2, 1);
	assert_int_equal(value(&w.counter[0]), 116);
	assert_int_equal(port_value(), w.adapter);
	unbind(2);
	assert_int_equal(value(&w.counter[0]), 116);
	assert_int_equal(port_value(), w.adapter);
}

/* Binds, ends, work and reads in any order; only reads within the same moment may be old. */
TEST_COUNTERS(test_values_never_decrease)
{
	u64 before[COUNTERS] = { 0 }, port = 0;

	srandom(1);
	for (int round = 0; round < 20000; round++) {
		u32 qp = 1 + random() % 100;
		int i = random() % COUNTERS;
		u64 now;

		switch (random() % 6) {
		case 0:
			if (!w.qp[qp].ibqp.counter)
				bind(qp, &w.counter[i]);
			break;
		case 1:
			if (w.qp[qp].ibqp.counter)
				unbind(qp);
			break;
		case 2:
			do_work(qp, random() % 1000);
			break;
		case 3:
			jiffies += random() % HZ;
			break;
		case 4:
			now = value(&w.counter[i]);
			assert_true(now >= before[i] && now <= w.adapter);
			before[i] = now;
			break;
		default:
			now = port_value();
			assert_true(now >= port);
			assert_int_equal(now, w.adapter);
			port = now;
		}
	}
}

TEST_COUNTERS(test_values_of_a_dead_device_stay)
{
	u64 before[COUNTERS];

	for (u32 i = 1; i <= 90; i++)
		bind(i, &w.counter[i % COUNTERS]);
	for (u32 i = 1; i <= 90; i++)
		do_work(i, 10 * i);
	for (int i = 0; i < COUNTERS; i++)
		before[i] = value(&w.counter[i]);
	do_work(1, 1); /* is lost */
	unbind(4);
	later();
	w.dead = true;
	for (u32 i = 1; i <= 90; i++) {
		if (w.qp[i].ibqp.counter)
			unbind(i);
		for (int j = 0; j < COUNTERS; j++)
			assert_int_equal(value(&w.counter[j]), before[j]);
	}
}
