// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory. The kernel's pages are a file, so that two mappings share them. */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kernel.h"

#define LENGTH FAKE_DM_LENGTH

static void dm_begin(void)
{
	fake.ibctx->cmd_fd = memfd_create("dm", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fake.ibctx->cmd_fd, FAKE_DM_OFFSET + 2 * PVR_PAGE_SIZE), 0);
}

static struct ibv_dm *alloc(void)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH };

	return pvr_alloc_dm(fake.ibctx, &attr);
}

TEST(dm, test_copies_reach_the_memory_and_back)
{
	struct ibv_dm *dm = alloc();
	char back[16] = "", file[16] = "";

	assert_non_null(dm);
	assert_int_equal(dm->memcpy_to_dm(dm, 4088, "across a page\0\0", 16), 0);
	assert_int_equal(dm->memcpy_from_dm(back, dm, 4088, 16), 0);
	assert_string_equal(back, "across a page");
	assert_int_equal(pread(fake.ibctx->cmd_fd, file, 14, FAKE_DM_OFFSET + 4088), 14);
	assert_string_equal(file, "across a page");
	assert_int_equal(pvr_free_dm(dm), 0);
	assert_int_equal(fake.dms, 0);
}

/* The limit is exact, although the mapping has whole pages. */
static const struct {
	const char *label;
	uint64_t offset;
	size_t length;
	int err;
} copies[] = {
	{ "last word", LENGTH - 4, 4, 0 },
	{ "nothing at the end", LENGTH, 0, 0 },
	{ "word behind the end", LENGTH, 4, EFAULT },
	{ "all from the second word", 4, LENGTH, EFAULT },
	{ "offset that wraps", UINT64_MAX - 3, 8, EFAULT },
	{ "length that wraps", 4, SIZE_MAX - 3, EFAULT },
	{ "offset within a word", 2, 4, EFAULT },
	{ "length within a word", 4, 6, EFAULT },
};

TEST_CASES(dm, test_copies_are_of_whole_words_within_the_length, copies)
{
	struct ibv_dm *dm = alloc();
	uint32_t words[2] = { 0 };

	assert_int_equal(dm->memcpy_to_dm(dm, row->offset, words, row->length), row->err);
	assert_int_equal(dm->memcpy_from_dm(words, dm, row->offset, row->length), row->err);
	pvr_free_dm(dm);
}

TEST(dm, test_import_is_the_same_memory)
{
	struct ibv_dm *dm = alloc();
	struct ibv_dm *again = pvr_import_dm(fake.ibctx, FAKE_DM);
	char back[8];

	assert_non_null(again);
	assert_int_equal(dm->memcpy_to_dm(dm, 8, "shared\0", 8), 0);
	assert_int_equal(again->memcpy_from_dm(back, again, 8, 8), 0);
	assert_string_equal(back, "shared");
	pvr_unimport_dm(again);
	assert_int_equal(fake.dms, 1);
	pvr_free_dm(dm);
}

TEST(dm, test_failures_leave_no_device_memory)
{
	fake.fail = EOPNOTSUPP;
	assert_fails(alloc(), EOPNOTSUPP);
	fake.fail_query = EPROTONOSUPPORT;
	assert_fails(alloc(), EPROTONOSUPPORT);
	assert_null(pvr_import_dm(fake.ibctx, FAKE_DM));
	assert_int_equal(fake.dms, 0);
}

TEST(dm, test_unknown_attributes_are_refused)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH, .comp_mask = 1 };

	assert_fails(pvr_alloc_dm(fake.ibctx, &attr), EINVAL);
	assert_int_equal(fake.dms, 0);
}

TEST(dm, test_regions_of_device_memory)
{
	struct ibv_dm *dm = alloc();
	struct ibv_mr *mr = pvr_reg_dm_mr(fake.ibpd, dm, 100, 200, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_int_equal(fake.iova, 100);
	assert_int_equal(fake.length, 200);
	assert_int_equal(fake.access, IBV_ACCESS_ZERO_BASED);
	free(mr);
	assert_fails(pvr_reg_dm_mr(fake.ibpd, dm, 0, 1, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	assert_fails(pvr_reg_dm_mr(fake.ibpd, dm, LENGTH, 1, IBV_ACCESS_ZERO_BASED), EINVAL);
	pvr_free_dm(dm);
}
