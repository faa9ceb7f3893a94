// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Timestamps of completions, their wall clock, and the clock of the device. */
#include <time.h>

#include "cq.h"
#include "fake_kernel.h"

#define BOTH (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define SECOND 1000000000ull
#define DAY (24 * 3600 * SECOND)
#define NOW 1800000000000000000ull /* wall clock of the readings */
#define WRAP (1ull << PVR_TIMESTAMP_BITS)

static struct ibv_poll_cq_attr no_attr;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;

static void set_clocks(uint64_t clock, uint64_t wallclock_ns)
{
	fake.clocks = (struct pvr_clock_query_resp){ .clock = clock, .wallclock_ns = wallclock_ns };
}

static void create(uint64_t wc_flags)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8 },
	};

	cq = FAKE_CQ_EX(.cqe = 8, .wc_flags = wc_flags);
	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = fake_create_qp(&attr);
	assert_non_null(qp);
}

static void clock_begin(void)
{
	fake.ctx.features = PVR_EXT_NO_POLL_DB | PVR_EXT_CQ_TIMESTAMP;
	set_clocks(DAY, NOW);
	create(BOTH);
}

static struct pvr_cq *pcq(void)
{
	return to_pvr_cq(ibv_cq_ex_to_cq(cq));
}

static void complete(uint64_t timestamp)
{
	struct pvr_cqe cqe = { .qp = fake_handle(qp) };

	memcpy(cqe.reserved2, &timestamp, sizeof(cqe.reserved2));
	fake_complete(ibv_cq_ex_to_cq(cq), &cqe);
}

static uint64_t wallclock_of(uint64_t timestamp)
{
	uint64_t wallclock_ns;

	complete(timestamp);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(ibv_wc_read_completion_ts(cq), timestamp & (WRAP - 1));
	wallclock_ns = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	return wallclock_ns;
}

/* By the clock of the process, the reading is old, or new for as long as the test runs. */
static void make_old(void)
{
	pcq()->clocks_until = 0;
}

static void make_new(void)
{
	pcq()->clocks_until = UINT64_MAX;
}

TEST(clock, test_kernel_creates_the_cq_with_timestamps)
{
	assert_int_equal(fake.cq_attr.wc_flags & BOTH, BOTH);
	create(IBV_WC_STANDARD_FLAGS);
	assert_int_equal(fake.cq_attr.wc_flags & BOTH, 0);
	fake_cq(8);
	assert_int_equal(fake.cq_attr.wc_flags, 0);
}

TEST(clock, test_only_requested_times_can_be_read)
{
	create(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	assert_non_null(cq->read_completion_ts);
	assert_null(cq->read_completion_wallclock_ns);
	create(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	assert_null(cq->read_completion_ts);
	assert_non_null(cq->read_completion_wallclock_ns);
	create(IBV_WC_STANDARD_FLAGS);
	assert_null(cq->read_completion_ts);
	assert_null(cq->read_completion_wallclock_ns);
}

static const struct {
	const char *label;
	uint64_t clock; /* of the reading */
	int64_t since; /* from the reading to the completion */
} times[] = {
	{ "at the reading", DAY, 0 },
	{ "after it", DAY, 999999999 },
	{ "before it", DAY, -1 },
	{ "a day before it", DAY, -(int64_t)DAY },
	{ "the timestamp wraps", WRAP - 5, 10 },
	{ "it wrapped before the reading", WRAP + 5, -10 },
	{ "the clock has wrapped often", 77 * WRAP + DAY, 10 },
};

TEST_CASES(clock, test_wall_clock_follows_from_the_reading, times)
{
	set_clocks(row->clock, NOW);
	create(BOTH);
	make_new();
	fake.clock_queries = 0;
	assert_int_equal(wallclock_of(row->clock + row->since), NOW + row->since);
	assert_int_equal(fake.clock_queries, 0);
}

/* An hour of a CQ without completions, and an hour in which the guest was suspended. */
TEST(clock, test_old_readings_are_repeated)
{
	const uint64_t hour = 3600 * SECOND;

	make_old();
	set_clocks(DAY + hour, NOW + hour + 5);
	assert_int_equal(wallclock_of(DAY + hour - 100), NOW + hour + 5 - 100);
	assert_int_equal(fake.clock_queries, 2);
	make_new();
	set_clocks(DAY + 2 * hour, NOW + 2 * hour + 7);
	assert_int_equal(wallclock_of(DAY + 2 * hour - 100), NOW + 2 * hour + 7 - 100);
	assert_int_equal(fake.clock_queries, 3);
	make_new();
	assert_int_equal(wallclock_of(DAY + 2 * hour), NOW + 2 * hour + 7);
	assert_int_equal(fake.clock_queries, 3);
}

/* A day and a half later timestamps are ambiguous without another reading. */
TEST(clock, test_long_idle_cq_reads_the_clocks)
{
	make_old();
	set_clocks(DAY + WRAP, NOW + WRAP);
	assert_int_equal(wallclock_of(DAY + WRAP - 1), NOW + WRAP - 1);
}

/* A device that is gone has no clock, but completions are left. */
TEST(clock, test_failed_reading_keeps_the_former)
{
	fake.fail_query = EIO;
	make_old();
	assert_int_equal(wallclock_of(DAY + 7), NOW + 7);
	assert_int_equal(fake.clock_queries, 2);
	make_new();
	assert_int_equal(wallclock_of(DAY + 8), NOW + 8);
	assert_int_equal(fake.clock_queries, 2);
}

TEST(clock, test_flushed_request_of_a_dead_device_has_the_present_time)
{
	struct timespec before, after;
	uint64_t wallclock_ns;

	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
	atomic_store(&fake.ctx.dead, true);
	clock_gettime(CLOCK_REALTIME, &before);
	assert_int_equal(ibv_start_poll(cq, &no_attr), 0);
	assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_wc_read_completion_ts(cq), 0);
	wallclock_ns = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	clock_gettime(CLOCK_REALTIME, &after);
	assert_in_range(wallclock_ns, before.tv_sec * SECOND + before.tv_nsec,
			after.tv_sec * SECOND + after.tv_nsec);
	assert_int_equal(fake.clock_queries, 1);
}

/* ------------------------------------------------------------------------ bad input */

static const struct {
	const char *label;
	uint64_t wc_flags;
	uint32_t features;
	int fail_query;
	int err;
} refused[] = {
	{ "timestamp without the extension", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0,
	  EOPNOTSUPP },
	{ "wall clock without the extension", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0, 0,
	  EOPNOTSUPP },
	{ "VLAN", BOTH | IBV_WC_EX_WITH_CVLAN, PVR_EXT_CQ_TIMESTAMP, 0, EOPNOTSUPP },
	{ "the clocks cannot be read", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	  PVR_EXT_CQ_TIMESTAMP, EIO, EIO },
};

TEST_CASES(clock, test_create_cq_with_times_refuses, refused)
{
	const size_t cqs = fake.cqs.num;

	fake.ctx.features = row->features;
	fake.fail_query = row->fail_query;
	assert_fails(FAKE_CQ_EX(.cqe = 8, .wc_flags = row->wc_flags), row->err);
	assert_int_equal(fake.cqs.num, cqs);
}

/* ------------------------------------------------------------------- real time values */

static struct ibv_values_ex query(uint32_t comp_mask, int err)
{
	struct ibv_values_ex values = { .comp_mask = comp_mask, .raw_clock = { 1, 2 } };

	assert_int_equal(pvr_query_rt_values(fake.ibctx, &values), err);
	return values;
}

TEST(clock, test_query_rt_values_returns_the_clock)
{
	struct ibv_values_ex values;

	set_clocks(3 * WRAP + DAY, NOW);
	values = query(IBV_VALUES_MASK_RAW_CLOCK, 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	assert_int_equal(values.raw_clock.tv_nsec, DAY);
}

TEST(clock, test_unknown_rt_values_are_not_returned)
{
	struct ibv_values_ex values = query(~IBV_VALUES_MASK_RAW_CLOCK, 0);

	assert_int_equal(values.comp_mask, 0);
	assert_int_equal(values.raw_clock.tv_nsec, 2);
	assert_int_equal(query(UINT32_MAX, 0).comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
}

TEST(clock, test_query_rt_values_fails_without_a_clock)
{
	fake.fail_query = EIO;
	query(IBV_VALUES_MASK_RAW_CLOCK, EIO);
	fake.ctx.features = 0;
	query(IBV_VALUES_MASK_RAW_CLOCK, EOPNOTSUPP);
}
