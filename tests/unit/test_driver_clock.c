// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's reading of the device's clock, compiled for user space with the fuzzer's
 * kernel. The clocks are the test's: only reads of registers take time.
 */
#include "pvrdma.h"
#include "test.h"

#define NOW 1800000000000000000ull /* wall clock at the start */
#define CLOCK 0x123fffff000ull /* device: the low half wraps after 1 MiB ns */
#define MAX_READINGS 16

static struct {
	struct pvr_dev dev;
	u8 regs[256];
	u64 ns; /* since the start */
	u32 high; /* latched by the device */
	u64 took[MAX_READINGS]; /* ns of each read of the low half, half of it there; 0: 100 */
	u32 readings;
	u32 gone_value; /* of the registers, if is_gone */
	bool is_gone;
	u32 dies_at; /* the device is declared dead in this reading; 0: never */
} w;

unsigned long jiffies;

u64 ktime_get_real_ns(void)
{
	return NOW + w.ns;
}

static u32 read_low(void)
{
	u64 took = w.took[w.readings % MAX_READINGS] ?: 100;
	u64 clock;

	w.ns += took / 2;
	clock = CLOCK + w.ns;
	w.high = clock >> 32;
	w.ns += took / 2;
	if (++w.readings == w.dies_at)
		test_and_set_bit(PVR_DEV_DEAD, &w.dev.flags);
	return (u32)clock;
}

u32 readl(const void *reg)
{
	size_t offset = (size_t)((const u8 *)reg - w.regs);

	assert_true(w.dev.clock_lock.lock.held);
	if (w.is_gone)
		return w.gone_value;
	if (offset == PVR_REG_EXT_CLOCK_LOW)
		return read_low();
	assert_int_equal(offset, PVR_REG_EXT_CLOCK_HIGH);
	w.ns += 100000; /* it is no matter when the high half is read */
	return w.high;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.regs = w.regs;
	mutex_init(&w.dev.clock_lock);
	return 0;
}

#define TEST_DEVICE(name) TEST_SETUP(set_up, NULL, name)

TEST_DEVICE(test_both_clocks_are_read_at_the_same_time)
{
	struct pvr_clock_query_resp resp;

	assert_int_equal(pvr_clock_read(&w.dev, &resp), 0);
	assert_int_equal(resp.clock - CLOCK, resp.wallclock_ns - NOW);
	assert_false(w.dev.clock_lock.lock.held);
}

TEST_DEVICE(test_quickest_reading_counts)
{
	struct pvr_clock_query_resp resp;

	w.took[0] = 7000;
	w.took[1] = 40;
	w.took[2] = 9000;
	assert_int_equal(pvr_clock_read(&w.dev, &resp), 0);
	assert_int_equal(resp.clock, CLOCK + 7000 + 100000 + 20);
	assert_int_equal(resp.wallclock_ns, NOW + 7000 + 100000 + 20);
	assert_int_equal(w.readings, 3);
}

TEST_DEVICE(test_halves_are_of_one_moment)
{
	struct pvr_clock_query_resp resp;
	int i;

	for (i = 0; i < 100; i++) {
		w.ns = (1 << 20) - 200 + 4 * i;
		assert_int_equal(pvr_clock_read(&w.dev, &resp), 0);
		assert_int_equal(resp.clock - CLOCK, resp.wallclock_ns - NOW);
	}
}

/* ------------------------------------------------------------------------- bad input */

TEST_DEVICE(test_device_that_is_gone_has_no_clock)
{
	static const u32 values[] = { U32_MAX, 0 };
	struct pvr_clock_query_resp resp;
	size_t i;

	w.is_gone = true;
	for (i = 0; i < COUNT(values); i++) {
		w.gone_value = values[i];
		assert_int_equal(pvr_clock_read(&w.dev, &resp), -EIO);
		assert_false(w.dev.clock_lock.lock.held);
	}
}

TEST_DEVICE(test_dead_device_is_not_read)
{
	struct pvr_clock_query_resp resp;

	w.dies_at = 2;
	assert_int_equal(pvr_clock_read(&w.dev, &resp), -EIO);
	assert_int_equal(w.readings, 2);
	assert_int_equal(pvr_clock_read(&w.dev, &resp), -EIO);
	assert_int_equal(w.readings, 2);
}
