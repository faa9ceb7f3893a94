// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: CREATE_MR and DESTROY_MR. Checks of keys are in test_keys.c. */
#include "objects.h"
#include "core/charge.h"
#include "rndv.h"

struct mr_env {
	struct fg_guest *g;
	struct fg_pd pd;
	struct fg_buf buf;
	struct pvr_cmd_create_mr req; /* valid: all of buf */
	struct pvr_resp_create_mr resp;
};

#define BUF_PAGES 5

static void mr_env_init(struct mr_env *m, struct t_env *env)
{
	m->g = env->g[0];
	expect_ok(fg_pd_create(&m->g->kernel, &m->pd));
	fg_buf_init(&m->buf, &m->g->ram, BUF_PAGES, FG_SCATTERED);
	m->req = fg_mr_request(&m->pd, &m->buf, 0, m->buf.size, FG_ACCESS_ALL);
}

#define TEST_MR(name) TEST_OBJECT(guest, struct mr_env, m, mr_env_init, name)
#define TEST_MR_CASES(name, rows) \
	TEST_OBJECT_CASES(guest, struct mr_env, m, mr_env_init, name, rows)

/* The request as it stands must be refused; nothing may be left of it. */
static void expect_mr_refused(struct mr_env *m)
{
	uint32_t before = fg_stats(m->g).mrs;

	expect_refused(fg_create_mr(m->g, &m->req, &m->resp));
	assert_int_equal(fg_stats(m->g).mrs, before);
	m->req = fg_mr_request(&m->pd, &m->buf, 0, m->buf.size, FG_ACCESS_ALL);
}

TEST_MR(test_create_mr)
{
	struct fg_mr a, b;

	expect_ok(fg_mr_create(&m->pd, &m->buf, FG_ACCESS_ALL, &a));
	expect_ok(fg_mr_create(&m->pd, &m->buf, FG_ACCESS_ALL, &b));
	assert_int_equal(fg_stats(m->g).mrs, 2);
	assert_int_not_equal(a.handle, b.handle);
	assert_int_not_equal(a.lkey, b.lkey);
	assert_int_not_equal(a.rkey, b.rkey);
	expect_ok(fg_mr_destroy(&a));
	expect_ok(fg_mr_destroy(&b));
	assert_int_equal(fg_stats(m->g).mrs, 0);
}

static const struct {
	const char *label;
	uint32_t offset, length;
} parts[] = { { "last byte of a page", PVR_PAGE_SIZE - 1, 1 },
	      { "two bytes in two pages", PVR_PAGE_SIZE - 1, 2 },
	      { "four pages from byte 1", 1, 4 * PVR_PAGE_SIZE },
	      { "all behind byte 4095", 4095, BUF_PAGES *PVR_PAGE_SIZE - 4095 } };

TEST_MR_CASES(test_create_mr_of_a_part, parts)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&m->pd, &m->buf, row->offset, row->length, 0, &mr));
}

#define SIZE (BUF_PAGES * PVR_PAGE_SIZE)
#define GIB4 (1ull << 32)

static const struct {
	const char *label;
	uint64_t start, length;
	uint32_t nchunks;
} bad_ranges[] = {
	{ "length 0", FG_USER_VA, 0, BUF_PAGES },
	{ "length and page count 0", FG_USER_VA, 0, 0 },
	{ "2 GiB", FG_USER_VA, 1ull << 31, BUF_PAGES },
	{ "2 GiB with its pages", FG_USER_VA, 1ull << 31, 1u << 19 },
	{ "4 GiB", FG_USER_VA, GIB4, BUF_PAGES },
	{ "4 GiB with its pages", FG_USER_VA, GIB4, 1u << 20 },
	{ "4 GiB too long", FG_USER_VA, GIB4 + SIZE, BUF_PAGES },
	{ "4 GiB too long with its pages", FG_USER_VA, GIB4 + SIZE, (1u << 20) + BUF_PAGES },
	{ "1 << 44", FG_USER_VA, 1ull << 44, BUF_PAGES },
	{ "1 << 44, page count wraps to 0", FG_USER_VA, 1ull << 44, 0 },
	{ "1 << 63", FG_USER_VA, 1ull << 63, BUF_PAGES },
	{ "1 << 63, page count wraps to 0", FG_USER_VA, 1ull << 63, 0 },
	{ "UINT64_MAX", FG_USER_VA, UINT64_MAX, BUF_PAGES },
	{ "UINT64_MAX, UINT32_MAX pages", FG_USER_VA, UINT64_MAX, UINT32_MAX },
	{ "wraps after two pages", UINT64_MAX - 2 * PVR_PAGE_SIZE + 1, SIZE, BUF_PAGES },
	{ "wraps after a byte", UINT64_MAX, 2, 2 },
	{ "page count 0", FG_USER_VA, SIZE, 0 },
	{ "page count 1", FG_USER_VA, SIZE, 1 },
	{ "one page too few", FG_USER_VA, SIZE, BUF_PAGES - 1 },
	{ "one page too many", FG_USER_VA, SIZE, BUF_PAGES + 1 },
	{ "512 pages", FG_USER_VA, SIZE, 512 },
	{ "UINT32_MAX pages", FG_USER_VA, SIZE, UINT32_MAX },
	{ "last byte in one page more", FG_USER_VA + 1, SIZE, BUF_PAGES },
	{ "page count wraps 32 bits of bytes", FG_USER_VA, SIZE, (1u << 20) + BUF_PAGES }
};

TEST_MR_CASES(test_create_mr_rejects_bad_ranges, bad_ranges)
{
	m->req.start = row->start;
	m->req.length = row->length;
	m->req.nchunks = row->nchunks;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_accepts_the_end_of_the_address_space)
{
	m->req.start = -(uint64_t)m->buf.size;
	m->req.length = m->buf.size - 1;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

/* A request for @npages pages that are one page of RAM. */
static void request_wide(struct mr_env *m, uint32_t npages)
{
	uint32_t page;

	m->req.pdir_dma = t_wide_pdir(m->g, PVR_PDIR_MAX_PAGES, &page);
	m->req.nchunks = npages;
	m->req.length = (uint64_t)npages * PVR_PAGE_SIZE;
}

TEST_MR(test_create_mr_of_the_largest_size)
{
	request_wide(m, PVR_PDIR_MAX_PAGES);
	if (m->req.length > m->g->dsr->caps.max_mr_size)
		expect_mr_refused(m);
	else
		expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_rejects_one_page_more_than_a_directory_holds)
{
	request_wide(m, PVR_PDIR_MAX_PAGES + 1);
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_with_several_tables)
{
	struct fg_buf big;
	struct fg_mr mr;

	fg_buf_init(&big, &m->g->ram, 2 * PVR_PDIR_ENTRIES + 1, FG_SCATTERED);
	expect_ok(fg_mr_create(&m->pd, &big, FG_ACCESS_ALL, &mr));
}

TEST_MR(test_create_mr_rejects_unknown_pds)
{
	m->req.pd_handle = m->pd.handle + 1;
	expect_mr_refused(m);
	m->req.pd_handle = UINT32_MAX;
	expect_mr_refused(m);
	expect_ok(fg_pd_destroy(&m->pd));
	assert_int_equal(fg_create_mr(m->g, &m->req, &m->resp), EINVAL);
}

static const struct t_case bad_flags[] = { T_CASE(4), T_CASE(0x80000000),
					   T_CASE(PVR_MR_FLAG_DMA | PVR_MR_FLAG_FRMR) };

TEST_MR_CASES(test_create_mr_rejects_unknown_flags, bad_flags)
{
	m->req.flags = row->value;
	expect_mr_refused(m);
}

TEST_MR(test_create_fast_reg_mr)
{
	struct fg_mr mr;

	expect_ok(fast_mr_create(&m->pd, 16, &mr));
	expect_ok(fg_mr_destroy(&mr));
}

TEST_MR(test_create_dma_mr)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_dma(&m->pd, &mr));
	expect_ok(fg_mr_destroy(&mr));
}

/* Stock drivers send the right to bind windows before they refuse windows. */
static const struct t_case good_access[] = { T_CASE(0), T_CASE(PVR_ACCESS_REMOTE_READ),
					     T_CASE(FG_ACCESS_ALL | PVR_ACCESS_OPTIONAL),
					     T_CASE(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_MW_BIND) };

TEST_MR_CASES(test_create_mr_accepts_access, good_access)
{
	m->req.access_flags = row->value;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

static const struct t_case without_local_write[] = { T_CASE(PVR_ACCESS_REMOTE_WRITE),
						     T_CASE(PVR_ACCESS_REMOTE_ATOMIC) };

TEST_MR_CASES(test_create_mr_needs_local_write_for_remote_write, without_local_write)
{
	m->req.access_flags = row->value;
	expect_mr_refused(m);
}

static const struct t_case bad_access[] = { T_CASE(PVR_ACCESS_ON_DEMAND), T_CASE(1u << 7),
					    T_CASE(1u << 19), T_CASE(1u << 30), T_CASE(1u << 31) };

TEST_MR_CASES(test_create_mr_rejects_access_it_cannot_honour, bad_access)
{
	m->req.access_flags = PVR_ACCESS_LOCAL_WRITE | row->value;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_an_unaligned_directory)
{
	m->req.pdir_dma += 8;
	expect_mr_refused(m);
}

TEST_MR_CASES(test_create_mr_rejects_bad_tables, t_bad_gpa)
{
	fg_buf_dir(&m->buf)[0] = row->gpa;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_bad_directories_and_pages)
{
	struct t_bad_page bad = { .buf = &m->buf,
				  .npages = BUF_PAGES,
				  .pdir_dma = &m->req.pdir_dma };

	while (t_next_bad_page(&bad))
		expect_mr_refused(m);
	for (uint32_t page = 0; page < BUF_PAGES; page++) {
		fg_buf_table(&m->buf, 0)[page]++;
		expect_mr_refused(m);
		fg_buf_table(&m->buf, 0)[page]--;
	}
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_rejects_a_bad_page_in_the_second_table)
{
	struct fg_buf big;

	fg_buf_init(&big, &m->g->ram, PVR_PDIR_ENTRIES + 2, FG_SCATTERED);
	fg_buf_table(&big, 1)[1] = FG_MMIO_HOLE;
	m->req = fg_mr_request(&m->pd, &big, 0, big.size, FG_ACCESS_ALL);
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_with_a_directory_that_points_to_itself_is_safe)
{
	for (int i = 0; i < PVR_PDIR_ENTRIES; i++)
		fg_buf_dir(&m->buf)[i] = m->buf.pdir;
	if (!fg_create_mr(m->g, &m->req, &m->resp))
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
}

TEST_MR(test_create_mr_of_read_only_memory)
{
	t_map_rom(m->g);
	fg_buf_table(&m->buf, 0)[2] = T_ROM_GPA;
	expect_mr_refused(m);
}

TEST_MR(test_destroy_mr_rejects_unknown_handles)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&m->pd, &m->buf, 0, &mr));
	assert_int_equal(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, mr.handle + 1), EINVAL);
	assert_int_equal(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, UINT32_MAX), EINVAL);
	expect_ok(fg_mr_destroy(&mr));
	assert_int_equal(fg_mr_destroy(&mr), EINVAL);
}

TEST_MR(test_keys_are_not_given_out_again_at_once)
{
	struct fg_mr first, next;

	expect_ok(fg_mr_create(&m->pd, &m->buf, 0, &first));
	expect_ok(fg_mr_destroy(&first));
	for (int i = 0; i < 100; i++) {
		expect_ok(fg_mr_create(&m->pd, &m->buf, 0, &next));
		assert_int_not_equal(next.lkey, first.lkey);
		expect_ok(fg_mr_destroy(&next));
	}
}

TEST_MR(test_all_mrs_can_be_used_up_and_used_again)
{
	struct t_use_up use = { .guest = m->g,
				.max = m->g->dsr->caps.max_mr,
				.destroy = PVR_CMD_DESTROY_MR };

	m->req.length = 1;
	m->req.nchunks = 1;
	while (t_use_up(&use, fg_create_mr(m->g, &m->req, &m->resp), &m->resp.mr_handle))
		;
	assert_int_equal(fg_stats(m->g).mrs, 0);
}

/* 1 GiB per request costs the guest three pages: the device must not pay without end. */
TEST_MR(test_wide_mrs_do_not_eat_the_hosts_memory)
{
	uint32_t n = 0;

	request_wide(m, PVR_PDIR_MAX_PAGES);
	t_leave_memory(m->g, 5 << 20);
	while (n < 4096 && !fg_create_mr(m->g, &m->req, &m->resp))
		n++;
	assert_int_equal(n, 2);
	m->req = fg_mr_request(&m->pd, &m->buf, 0, m->buf.size, FG_ACCESS_ALL);
	expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

static uint32_t wide_mrs_that_fit(struct mr_env *m)
{
	uint32_t handles[64], n = 0, i;

	request_wide(m, PVR_PDIR_MAX_PAGES / 32);
	for (; n < COUNT(handles) && !fg_create_mr(m->g, &m->req, &m->resp); n++)
		handles[n] = m->resp.mr_handle;
	assert_true(n < COUNT(handles));
	for (i = 0; i < n; i++)
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, handles[i]));
	return n;
}

/* Regions of RAM that lie in the same pages of a file do not add to the limit. */
TEST_MR(test_limit_follows_the_memory_behind_ram)
{
	const uint64_t others = PVR_CHARGE_FLOOR - (1 << 20);
	uint32_t all, none;

	expect_ok(pvr_charge(m->g->adapter, others));
	all = wide_mrs_that_fit(m);
	pvr_adapter_count_ram(m->g->adapter, 0);
	none = wide_mrs_that_fit(m);
	assert_in_range(none, 1, all - 1);
	/* More than the regions have is not believed. */
	pvr_adapter_count_ram(m->g->adapter, 1ull << 50);
	assert_int_equal(wide_mrs_that_fit(m), all);
	pvr_uncharge(m->g->adapter, others);
}

TEST_MR(test_destroyed_mrs_give_their_share_of_memory_back)
{
	request_wide(m, PVR_PDIR_MAX_PAGES);
	t_leave_memory(m->g, 3 << 20);
	for (int i = 0; i < 20; i++) {
		expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
	}
}
