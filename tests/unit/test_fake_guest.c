// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Properties of the fake guest that the other tests rely on. */
#include "objects.h"

TEST_GUEST(unprobed, test_bus_addresses_are_no_host_addresses)
{
	const struct fg_ram *ram = &g->ram;

	for (uint32_t page = 0; page < ram->npages; page++) {
		uint64_t gpa = fg_page_gpa(ram, page);

		assert_true(gpa != (uintptr_t)fg_page_va(ram, page));
		assert_ptr_equal(fg_gpa_va(ram, gpa), fg_page_va(ram, page));
		assert_null(fg_gpa_va(&g->ram, gpa + (1ull << 40)));
	}
	assert_null(fg_gpa_va(ram, FG_MMIO_HOLE));
	assert_null(fg_gpa_va(ram, FG_BAR2_GPA));
	assert_null(fg_gpa_va(ram, FG_NOWHERE));
	assert_null(fg_gpa_va(ram, 0));
}

TEST_GUEST(unprobed, test_buffers_are_scattered_over_all_ram_regions)
{
	struct fg_buf buf;
	uint32_t runs = 1, seen[FG_RAM_REGIONS] = { 0 };

	fg_buf_init(&buf, &g->ram, 200, FG_SCATTERED);
	for (uint32_t i = 0; i < buf.npages; i++) {
		uint64_t gpa = fg_buf_gpa(&buf, (size_t)i * PVR_PAGE_SIZE);

		if (i)
			runs += gpa !=
				fg_buf_gpa(&buf, (size_t)(i - 1) * PVR_PAGE_SIZE) + PVR_PAGE_SIZE;
		for (int k = 0; k < FG_RAM_REGIONS; k++)
			seen[k] += gpa - g->ram.region[k].gpa < g->ram.region[k].size;
	}
	assert_true(runs > 190);
	for (int k = 0; k < FG_RAM_REGIONS; k++)
		assert_true(seen[k] > 0);
}

TEST_GUEST(unprobed, test_view_and_pages_are_the_same_memory)
{
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 20, FG_SCATTERED);
	fg_fill(buf.va, buf.size, 9);
	for (size_t offset = 0; offset < buf.size; offset += 1000)
		assert_int_equal(*(uint8_t *)fg_gpa_va(buf.ram, fg_buf_gpa(&buf, offset)),
				 buf.va[offset]);
}

TEST_GUEST(unprobed, test_linear_buffers_are_contiguous)
{
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 20, FG_LINEAR);
	assert_true(fg_buf_gpa(&buf, buf.size - 1) - fg_buf_gpa(&buf, 0) == buf.size - 1);
}

TEST_GUEST(guest, test_pages_are_given_back)
{
	uint32_t before = g->ram.nfree;
	struct fg_end end;

	fg_end_open(&end, g, PVR_QPT_RC);
	assert_true(g->ram.nfree < before);
	fg_end_close(&end);
	assert_int_equal(g->ram.nfree, before);
}

TEST(host, test_pattern_differs_by_position_and_seed)
{
	uint8_t buf[20000];

	fg_fill(buf, sizeof(buf), 1);
	assert_int_equal(fg_mismatch(buf, sizeof(buf), 1), sizeof(buf));
	assert_true(fg_mismatch(buf, sizeof(buf), 2) < 16);
	for (size_t shift = 1; shift < 10000; shift = shift * 2 + 1)
		assert_true(fg_mismatch(buf + shift, sizeof(buf) - shift, 1) < 64);
	assert_true(fg_mismatch(buf + 4096, sizeof(buf) - 4096, 1) < 64);
	buf[19999] ^= 1;
	assert_int_equal(fg_mismatch(buf, sizeof(buf), 1), 19999);
}

TEST(guest, test_the_clock_stands_still)
{
	uint64_t before = env->host->now;

	fg_run(env->host);
	assert_true(env->host->now == before);
	fg_advance(env->host, 5);
	assert_true(env->host->now == before + 5);
	assert_true(fg_settle(env->host, FG_SEC) == 0);
}
