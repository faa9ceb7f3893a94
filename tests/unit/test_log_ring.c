// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The ring of log lines: order, full ring, producers in threads. */
#include <stdio.h>

#include "daemon/log_ring.h"
#include "test.h"

#define PRODUCERS 4
#define EACH 500

static struct pvr_log_ring ring;
static struct pvr_log_slot slot;

static int fresh(void **state)
{
	ring = (struct pvr_log_ring)PVR_LOG_RING_INIT;
	return 0;
}

static void put(unsigned int producer, unsigned int i)
{
	char text[32];

	pvr_log_ring_put(&ring, text,
			 (size_t)snprintf(text, sizeof(text), "%u %u", producer, i) + 1);
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

	pvr_log_ring_put(&ring, text, sizeof(text));
	assert_true(pvr_log_ring_take(&ring, &slot));
	assert_int_equal(slot.len, PVR_LOG_LINE);
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
