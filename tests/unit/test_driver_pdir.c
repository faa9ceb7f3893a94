// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The driver's page directories, compiled for user space with the fuzzer's kernel. */
#include "pvrdma.h"
#include "test.h"

#define PAGES 3
#define TABLES_MANY (2 * PVR_PAGE_CACHE_MAX)

static struct {
	struct device dma_dev;
	struct pvr_page_cache cache;
	struct pvr_pdir pdir;
} w;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	pvr_page_cache_init(&w.cache, &w.dma_dev);
	return 0;
}

/* The sanitizer reports pages that are not freed. */
static int tear_down(void **state)
{
	(void)state;
	pvr_pdir_exit(&w.pdir);
	pvr_page_cache_exit(&w.cache);
	return 0;
}

#define TEST_PDIR(name) TEST_SETUP(set_up, tear_down, name)

static void init(u64 npages)
{
	assert_int_equal(pvr_pdir_init(&w.pdir, &w.cache, npages, false), 0);
}

/* The entry that the device finds for page @i. */
static u64 entry(u32 i)
{
	const __le64 *dir = (const __le64 *)w.pdir.dir.dma;
	const __le64 *table = (const __le64 *)(dma_addr_t)le64_to_cpu(dir[i / PVR_PDIR_ENTRIES]);

	return le64_to_cpu(table[i % PVR_PDIR_ENTRIES]);
}

TEST_PDIR(test_pages_of_freed_lists_are_used_again)
{
	const void *dir, *table;

	init(PAGES);
	dir = w.pdir.dir.va;
	table = w.pdir.tables[0].va;
	pvr_pdir_exit(&w.pdir);
	assert_int_equal(w.cache.num, 2);
	init(PAGES);
	assert_int_equal(w.cache.num, 0);
	assert_true(w.pdir.dir.va == dir || w.pdir.dir.va == table);
	assert_true(w.pdir.tables[0].va == dir || w.pdir.tables[0].va == table);
	assert_ptr_not_equal(w.pdir.dir.va, w.pdir.tables[0].va);
}

TEST_PDIR(test_lists_on_used_pages_have_the_new_entries)
{
	u32 i, round;

	for (round = 1; round < 4; round++) {
		init(PAGES);
		for (i = 0; i < PAGES; i++)
			pvr_pdir_set(&w.pdir, i, round * PVR_PAGE_SIZE * (i + 1));
		for (i = 0; i < PAGES; i++)
			assert_int_equal(entry(i), round * PVR_PAGE_SIZE * (i + 1));
		pvr_pdir_exit(&w.pdir);
	}
}

TEST_PDIR(test_number_of_spare_pages_is_bounded)
{
	init((u64)TABLES_MANY * PVR_PDIR_ENTRIES);
	pvr_pdir_exit(&w.pdir);
	assert_int_equal(w.cache.num, PVR_PAGE_CACHE_MAX);
}

/* Rings must be zeroed, and the spare pages are not. */
TEST_PDIR(test_data_pages_are_no_spare_pages)
{
	u32 i;

	init((u64)TABLES_MANY * PVR_PDIR_ENTRIES);
	for (i = 0; i < TABLES_MANY; i++)
		pvr_pdir_set(&w.pdir, i * PVR_PDIR_ENTRIES, UINT64_MAX);
	pvr_pdir_exit(&w.pdir);
	assert_int_equal(pvr_pdir_init(&w.pdir, &w.cache, PAGES, true), 0);
	for (i = 0; i < PAGES; i++) {
		assert_int_equal(*(u64 *)pvr_pdir_at(&w.pdir, (size_t)i * PVR_PAGE_SIZE), 0);
		assert_int_equal(entry(i), w.pdir.pages[i].dma);
	}
}

TEST_PDIR(test_freed_lists_leave_the_data_pages)
{
	u64 *data;

	assert_int_equal(pvr_pdir_init(&w.pdir, &w.cache, PAGES, true), 0);
	data = pvr_pdir_at(&w.pdir, 0);
	*data = 1;
	pvr_pdir_free_lists(&w.pdir);
	assert_int_equal(w.cache.num, 2);
	assert_int_equal(*data, 1);
}
