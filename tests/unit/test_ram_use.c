// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The memory of a client's files: each page counts once. */
#include "attach/ram_use.h"
#include "test.h"

#define MIB (1ull << 20)

static const struct row {
	struct pvr_file_range ranges[4]; /* of 0 bytes: the end */
	uint64_t mib;
} rows[] = {
	{ { { 0 } }, 0 },
	{ { { 1, 1, 0, 2 * MIB } }, 2 },
	{ { { 1, 1, 0, 2 * MIB }, { 1, 1, 0, 2 * MIB } }, 2 },
	{ { { 1, 1, 0, 2 * MIB }, { 1, 1, 2 * MIB, 2 * MIB } }, 4 },
	{ { { 1, 1, 0, 2 * MIB }, { 1, 1, MIB, 2 * MIB } }, 3 },
	{ { { 1, 1, 4 * MIB, 2 * MIB }, { 1, 1, 0, MIB }, { 1, 1, 0, 8 * MIB } }, 8 },
	/* A range inside of another one, then one that begins in the longer one. */
	{ { { 1, 1, 0, 8 * MIB }, { 1, 1, MIB, MIB }, { 1, 1, 4 * MIB, 6 * MIB } }, 10 },
	/* Other files at the same offset. */
	{ { { 1, 1, 0, 2 * MIB }, { 1, 2, 0, 2 * MIB }, { 2, 1, 0, 2 * MIB } }, 6 },
	{ { { 2, 1, MIB, MIB }, { 1, 1, 0, MIB }, { 2, 1, 0, 2 * MIB }, { 1, 1, 0, MIB } }, 3 },
};

static unsigned int add_all(struct pvr_ram_use *use, const struct row *row, unsigned int first)
{
	unsigned int num = 0;

	while (num < COUNT(row->ranges) && row->ranges[num].size)
		num++;
	for (unsigned int i = 0; i < num; i++)
		pvr_ram_use_add(use, &row->ranges[(first + i) % num]);
	return num;
}

TEST_PLAIN(test_page_counts_once)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		for (unsigned int first = 0; first < COUNT(rows[i].ranges); first++) {
			struct pvr_ram_use use = { 0 };

			add_all(&use, &rows[i], first);
			assert_int_equal(pvr_ram_use_bytes(&use), rows[i].mib * MIB);
		}
	}
}

TEST_PLAIN(test_removed_ranges_do_not_count)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pvr_ram_use use = { 0 };
		unsigned int num = add_all(&use, &rows[i], 0);
		uint64_t bytes = rows[i].mib * MIB;

		while (num--) {
			pvr_ram_use_remove(&use, &rows[i].ranges[num]);
			assert_true(pvr_ram_use_bytes(&use) <= bytes);
			bytes = pvr_ram_use_bytes(&use);
			assert_int_equal(use.num, num);
		}
		assert_int_equal(bytes, 0);
	}
}

TEST_PLAIN(test_range_that_was_not_added)
{
	const struct pvr_file_range one = { 1, 1, 0, MIB }, other = { 1, 1, 0, 2 * MIB };
	struct pvr_ram_use use = { 0 };

	pvr_ram_use_add(&use, &one);
	pvr_ram_use_remove(&use, &other);
	assert_int_equal(pvr_ram_use_bytes(&use), MIB);
}

TEST_PLAIN(test_all_regions_of_a_client)
{
	struct pvr_ram_use use = { 0 };

	for (uint64_t i = 0; i < PVR_RAM_REGIONS; i++)
		pvr_ram_use_add(&use, &(struct pvr_file_range){ 1, 1, i % 2 * MIB, MIB });
	assert_int_equal(pvr_ram_use_bytes(&use), 2 * MIB);
}
