// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The ring of log lines: order, full ring, producers in threads. */
#include <stdio.h>
#include <string.h>

#include "daemon/log_ring.h"
#include "test.h"

#define PRODUCERS 4
#define EACH 2000

#define SOON_NS 1000000ull
#define NEVER_NS 3600000000000ull /* the test's own time limit is lower */

static struct pvr_log_ring ring;
static struct pvr_log_slot slot;

static int fresh(void **state)
{
	memset(&ring, 0, sizeof(ring));
	return pvr_log_ring_init(&ring) ? 0 : -1;
}

static void put_of(uint32_t source, unsigned int producer, unsigned int i)
{
	char text[32];

	pvr_log_ring_put(&ring, source, text,
			 (size_t)snprintf(text, sizeof(text), "%u %u", producer, i) + 1);
}

static void put(unsigned int producer, unsigned int i)
{
	put_of(0, producer, i);
}

static void assert_next(unsigned int i, uint64_t dropped)
{
	char text[32];

	snprintf(text, sizeof(text), "0 %u", i);
	assert_true(pvr_log_ring_take(&ring, &slot));
	assert_string_equal(slot.text, text);
	assert_int_equal(slot.dropped, dropped);
}

TEST_SETUP(fresh, NULL, test_order_and_wrap_around)
{
	unsigned int i;

	put(0, 0);
	for (i = 0; i < 3 * PVR_LOG_LINES; i++) {
		put(0, i + 1);
		assert_next(i, 0);
	}
}

TEST_SETUP(fresh, NULL, test_full_ring_counts_drops)
{
	unsigned int i;

	for (i = 0; i < PVR_LOG_LINES + 7; i++)
		put(0, i);
	assert_next(0, 0);
	put(0, 1000);
	for (i = 1; i < PVR_LOG_LINES; i++)
		assert_next(i, 0);
	assert_next(1000, 7);
}

TEST_SETUP(fresh, NULL, test_drops_are_reported_without_a_next_line)
{
	unsigned int i;

	for (i = 0; i < PVR_LOG_LINES + 1; i++)
		put(0, i);
	pvr_log_ring_end(&ring);
	for (i = 0; i < PVR_LOG_LINES; i++)
		assert_next(i, 0);
	assert_true(pvr_log_ring_take(&ring, &slot));
	assert_int_equal(slot.len, 0);
	assert_int_equal(slot.dropped, 1);
	assert_false(pvr_log_ring_take(&ring, &slot));
}

TEST_SETUP(fresh, NULL, test_long_lines_are_cut)
{
	static char text[2 * PVR_LOG_LINE];

	pvr_log_ring_put(&ring, 0, text, sizeof(text));
	assert_true(pvr_log_ring_take(&ring, &slot));
	assert_int_equal(slot.len, PVR_LOG_LINE);
}

static unsigned int drain(uint64_t *dropped)
{
	unsigned int lines = 0;

	*dropped = 0;
	pvr_log_ring_end(&ring);
	while (pvr_log_ring_take(&ring, &slot)) {
		lines += slot.len > 0;
		*dropped += slot.dropped;
	}
	return lines;
}

TEST_SETUP(fresh, NULL, test_storm_of_one_adapter_leaves_space_for_others)
{
	uint32_t noisy = pvr_log_ring_source("noisy"), quiet = pvr_log_ring_source("quiet");
	uint64_t dropped;
	unsigned int i;

	for (i = 0; i < 10 * PVR_LOG_LINES; i++)
		put_of(noisy, 0, i);
	for (i = 0; i < PVR_LOG_ADAPTER_LINES; i++)
		put_of(quiet, 1, i);
	put(2, 0);
	assert_int_equal(drain(&dropped), 2 * PVR_LOG_ADAPTER_LINES + 1);
	assert_int_equal(dropped, 10 * PVR_LOG_LINES - PVR_LOG_ADAPTER_LINES);
}

TEST_SETUP(fresh, NULL, test_storms_of_all_adapters_leave_space_for_the_daemon)
{
	uint64_t dropped;
	unsigned int i;

	for (i = 0; i < 10 * PVR_LOG_LINES; i++)
		put_of(1 + i % 100, 0, i);
	for (i = 0; i < PVR_LOG_DAEMON_LINES; i++)
		put(1, i);
	assert_int_equal(drain(&dropped), PVR_LOG_LINES);
	assert_int_equal(dropped, 9 * PVR_LOG_LINES + PVR_LOG_DAEMON_LINES);
}

TEST_SETUP(fresh, NULL, test_space_of_an_adapter_returns_when_its_lines_are_written)
{
	uint32_t source = pvr_log_ring_source("vm1");
	unsigned int i;

	for (i = 0; i < PVR_LOG_ADAPTER_LINES + 1; i++)
		put_of(source, 0, i);
	for (i = 0; i < PVR_LOG_ADAPTER_LINES; i++)
		assert_next(i, 0);
	for (i = 0; i < PVR_LOG_ADAPTER_LINES; i++)
		put_of(source, 0, i);
	assert_next(0, 1);
	for (i = 1; i < PVR_LOG_ADAPTER_LINES; i++)
		assert_next(i, 0);
}

TEST_SETUP(fresh, NULL, test_flush_of_an_empty_ring_does_not_wait)
{
	assert_true(pvr_log_ring_flush(&ring, NEVER_NS));
}

TEST_SETUP(fresh, NULL, test_flush_of_a_line_that_is_taken_but_not_written)
{
	put(0, 0);
	assert_next(0, 0);
	assert_false(pvr_log_ring_flush(&ring, SOON_NS));
}

TEST_SETUP(fresh, NULL, test_stuck_writer_costs_one_timeout)
{
	put(0, 0);
	assert_false(pvr_log_ring_flush(&ring, SOON_NS));
	assert_false(pvr_log_ring_flush(&ring, NEVER_NS));
	put(0, 1);
	assert_next(0, 0);
	assert_false(pvr_log_ring_flush(&ring, NEVER_NS));
	/* This take shows that line 0 is written. */
	assert_next(1, 0);
	assert_false(pvr_log_ring_flush(&ring, SOON_NS));
}

static void *write_all(void *opaque)
{
	unsigned int *written = opaque;

	while (pvr_log_ring_take(&ring, &slot))
		*written += slot.len > 0 ? 1 + (unsigned int)slot.dropped : slot.dropped;
	return NULL;
}

TEST_SETUP(fresh, NULL, test_flush_waits_for_the_writer)
{
	unsigned int written = 0, i;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_all, &written), 0);
	for (i = 1; i <= EACH; i++) {
		put(0, i);
		if (i % 100)
			continue;
		assert_true(pvr_log_ring_flush(&ring, NEVER_NS));
		assert_int_equal(written, i);
	}
	pvr_log_ring_end(&ring);
	pthread_join(thread, NULL);
}

static void *produce(void *opaque)
{
	unsigned int i;

	for (i = 0; i < EACH; i++)
		put(*(unsigned int *)opaque, i);
	return NULL;
}

TEST_SETUP(fresh, NULL, test_many_producers)
{
	unsigned int next[PRODUCERS] = { 0 }, ids[PRODUCERS], i, producer, number;
	pthread_t threads[PRODUCERS];
	uint64_t seen = 0;

	for (i = 0; i < PRODUCERS; i++) {
		ids[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &ids[i]), 0);
	}
	while (seen < PRODUCERS * EACH) {
		assert_true(pvr_log_ring_take(&ring, &slot));
		seen += slot.dropped + (slot.len > 0);
		if (!slot.len)
			continue;
		assert_int_equal(sscanf(slot.text, "%u %u", &producer, &number), 2);
		assert_true(number >= next[producer]);
		next[producer] = number + 1;
	}
	assert_int_equal(seen, PRODUCERS * EACH);
	for (i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
}
