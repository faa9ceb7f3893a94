// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CRC-32: all lengths and alignments, in parts, and of copies. */
#include <string.h>

#include "roce/crc.h"
#include "test.h"

#define MAX 1200u /* several steps of the loop */
#define LARGE 4200u
#define AROUND 64u

static uint8_t from[LARGE + AROUND], to[LARGE + 2 * AROUND];

static int setup_bytes(void **state)
{
	uint32_t value = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++) {
		value = value * 1664525u + 1013904223u;
		from[i] = (uint8_t)(value >> 24);
	}
	return 0;
}

/* Bit by bit, by the definition. */
static uint32_t expected(uint32_t crc, const uint8_t *p, size_t bytes)
{
	crc = ~crc;
	while (bytes--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

TEST_WITH(void **state, setup_bytes, NULL, test_crc_of_all_lengths)
{
	uint32_t crc = 0;

	(void)state;
	assert_int_equal(pvr_roce_crc(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	for (size_t bytes = 0; bytes <= MAX; bytes++) {
		assert_int_equal(pvr_roce_crc(0, from, bytes), crc);
		crc = expected(crc, from + bytes, 1);
	}
	assert_int_equal(pvr_roce_crc(0, from, LARGE), expected(0, from, LARGE));
}

TEST_WITH(void **state, setup_bytes, NULL, test_crc_of_all_alignments)
{
	(void)state;
	for (size_t at = 0; at < AROUND; at++)
		assert_int_equal(pvr_roce_crc(0, from + at, MAX), expected(0, from + at, MAX));
}

TEST_WITH(void **state, setup_bytes, NULL, test_crc_continues_behind_other_bytes)
{
	uint32_t whole = expected(0, from, MAX), crc;

	(void)state;
	for (size_t first = 0; first <= MAX; first++) {
		crc = pvr_roce_crc(0, from, first);
		assert_int_equal(pvr_roce_crc(crc, from + first, MAX - first), whole);
		crc = pvr_roce_crc_copy(crc, to, from + first, MAX - first, NULL);
		assert_int_equal(crc, whole);
	}
}

/* Nothing around the copy is written. */
TEST_WITH(void **state, setup_bytes, NULL, test_copy_of_all_lengths)
{
	uint32_t crc = 0;

	(void)state;
	for (size_t bytes = 0; bytes <= MAX; bytes++) {
		uint8_t *at = to + 1 + bytes % AROUND;

		memset(to, 0x55, sizeof(to));
		assert_int_equal(pvr_roce_crc_copy(0, at, from, bytes, NULL), crc);
		assert_memory_equal(at, from, bytes);
		assert_int_equal(at[-1], 0x55);
		assert_int_equal(at[bytes], 0x55);
		crc = expected(crc, from + bytes, 1);
	}
}

TEST_WITH(void **state, setup_bytes, NULL, test_each_bit_changes_the_crc)
{
	uint32_t crc = pvr_roce_crc(0, from, MAX);

	(void)state;
	for (size_t bit = 0; bit < 8 * MAX; bit++) {
		from[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(pvr_roce_crc(0, from, MAX), crc);
		from[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}
