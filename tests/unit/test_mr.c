// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: CREATE_MR and DESTROY_MR. Checks of keys are in test_keys.c. */
#include "common.h"

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

TEST_MR(test_create_mr_of_one_byte)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&m->pd, &m->buf, PVR_PAGE_SIZE - 1, 1, 0, &mr));
}

TEST_MR(test_create_mr_that_crosses_pages_at_odd_offsets)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&m->pd, &m->buf, PVR_PAGE_SIZE - 1, 2, 0, &mr));
	expect_ok(fg_mr_create_part(&m->pd, &m->buf, 1, 4 * PVR_PAGE_SIZE, 0, &mr));
	expect_ok(fg_mr_create_part(&m->pd, &m->buf, 4095, m->buf.size - 4095, 0, &mr));
}

TEST_MR(test_create_mr_rejects_length_zero)
{
	m->req.length = 0;
	expect_mr_refused(m);
	m->req.length = 0;
	m->req.nchunks = 0;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_huge_lengths)
{
	static const uint64_t bad[] = { 1ull << 31, 1ull << 32, (1ull << 32) + 5 * PVR_PAGE_SIZE,
					1ull << 44, 1ull << 63, UINT64_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		m->req.length = bad[i];
		expect_mr_refused(m);
		m->req.length = bad[i];
		m->req.nchunks = (uint32_t)(bad[i] / PVR_PAGE_SIZE);
		expect_mr_refused(m);
	}
}

TEST_MR(test_create_mr_rejects_a_range_that_wraps)
{
	m->req.start = UINT64_MAX - 2 * PVR_PAGE_SIZE + 1;
	expect_mr_refused(m);
	m->req.start = UINT64_MAX;
	m->req.length = 2;
	m->req.nchunks = 2;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_accepts_the_end_of_the_address_space)
{
	m->req.start = -(uint64_t)m->buf.size;
	m->req.length = m->buf.size - 1;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_rejects_page_counts_that_do_not_match)
{
	static const uint32_t bad[] = { 0, 1, BUF_PAGES - 1, BUF_PAGES + 1, 512, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		m->req.nchunks = bad[i];
		expect_mr_refused(m);
	}
	/* One byte into the next page needs one page more. */
	m->req.start += 1;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_a_page_count_whose_bytes_wrap_32_bits)
{
	m->req.nchunks = (1u << 20) + BUF_PAGES;
	expect_mr_refused(m);
	m->req.nchunks = (1u << 20) + BUF_PAGES;
	m->req.length = (1ull << 32) + m->buf.size;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_of_the_largest_size)
{
	uint32_t page;

	m->req.pdir_dma = t_wide_pdir(m->g, PVR_PDIR_MAX_PAGES, &page);
	m->req.nchunks = PVR_PDIR_MAX_PAGES;
	m->req.length = (uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE;
	if (m->req.length > m->g->dsr->caps.max_mr_size)
		expect_mr_refused(m);
	else
		expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_rejects_one_page_more_than_a_directory_holds)
{
	uint32_t page;

	m->req.pdir_dma = t_wide_pdir(m->g, PVR_PDIR_MAX_PAGES, &page);
	m->req.nchunks = PVR_PDIR_MAX_PAGES + 1;
	m->req.length = (uint64_t)(PVR_PDIR_MAX_PAGES + 1) * PVR_PAGE_SIZE;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_with_several_tables)
{
	struct fg_buf big;
	struct fg_mr mr;

	fg_buf_init(&big, &m->g->ram, 2 * PVR_PDIR_ENTRIES + 1, FG_SCATTERED);
	expect_ok(fg_mr_create(&m->pd, &big, FG_ACCESS_ALL, &mr));
	expect_ok(fg_mr_destroy(&mr));
}

TEST_MR(test_create_mr_rejects_unknown_pds)
{
	m->req.pd_handle = m->pd.handle + 1;
	expect_mr_refused(m);
	m->req.pd_handle = UINT32_MAX;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_a_destroyed_pd)
{
	expect_ok(fg_pd_destroy(&m->pd));
	assert_int_equal(fg_create_mr(m->g, &m->req, &m->resp), EINVAL);
}

TEST_MR(test_create_mr_rejects_unknown_flags)
{
	m->req.flags = 4;
	expect_mr_refused(m);
	m->req.flags = 0x80000000;
	expect_mr_refused(m);
}

TEST_MR(test_create_mr_rejects_dma_and_fast_reg_at_once)
{
	m->req.flags = PVR_MR_FLAG_DMA | PVR_MR_FLAG_FRMR;
	expect_mr_refused(m);
}

TEST_MR(test_create_fast_reg_mr)
{
	m->req = (struct pvr_cmd_create_mr){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = m->pd.handle,
		.flags = PVR_MR_FLAG_FRMR,
		.nchunks = 16,
	};
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
	expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
}

TEST_MR(test_create_dma_mr)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_dma(&m->pd, &mr));
	expect_ok(fg_mr_destroy(&mr));
}

TEST_MR(test_create_mr_needs_local_write_for_remote_write)
{
	m->req.access_flags = PVR_ACCESS_REMOTE_WRITE;
	expect_mr_refused(m);
	m->req.access_flags = PVR_ACCESS_REMOTE_ATOMIC;
	expect_mr_refused(m);
	m->req.access_flags = PVR_ACCESS_REMOTE_READ;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_ignores_optional_access_flags)
{
	m->req.access_flags |= PVR_ACCESS_OPTIONAL;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

/* Stock drivers hand the flag on, and only then tell the program that there are no windows. */
TEST_MR(test_create_mr_takes_the_right_to_bind_windows)
{
	m->req.access_flags = PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_MW_BIND;
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_create_mr_rejects_access_it_cannot_honour)
{
	static const uint32_t bad[] = { PVR_ACCESS_ON_DEMAND, 1u << 7, 1u << 19, 1u << 30,
					1u << 31 };

	for (size_t i = 0; i < COUNT(bad); i++) {
		m->req.access_flags = PVR_ACCESS_LOCAL_WRITE | bad[i];
		expect_mr_refused(m);
	}
}

TEST_MR(test_create_mr_rejects_bad_directories)
{
	const uint64_t bad[] = { 0,	     FG_MMIO_HOLE, FG_BAR2_GPA,
				 FG_NOWHERE, UINT64_MAX,   m->buf.pdir + 8 };

	for (size_t i = 0; i < COUNT(bad); i++) {
		m->req.pdir_dma = bad[i];
		expect_mr_refused(m);
	}
}

TEST_MR(test_create_mr_rejects_bad_tables)
{
	static const uint64_t bad[] = { 0, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		fg_buf_dir(&m->buf)[0] = bad[i];
		expect_mr_refused(m);
	}
}

TEST_MR(test_create_mr_rejects_bad_pages_at_every_place)
{
	static const uint64_t bad[] = { 0, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };

	for (uint32_t page = 0; page < BUF_PAGES; page++) {
		const uint64_t good = fg_buf_table(&m->buf, 0)[page];

		for (size_t i = 0; i < COUNT(bad); i++) {
			fg_buf_table(&m->buf, 0)[page] = bad[i];
			expect_mr_refused(m);
		}
		fg_buf_table(&m->buf, 0)[page] = good + 1;
		expect_mr_refused(m);
		fg_buf_table(&m->buf, 0)[page] = good;
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
	static uint8_t rom[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));

	expect_ok(
		(uint32_t)pvr_adapter_map_ram(m->g->adapter, 0xf0000000, sizeof(rom), rom, false));
	fg_buf_table(&m->buf, 0)[2] = 0xf0000000;
	expect_mr_refused(m);
}

TEST_MR(test_destroy_mr_rejects_unknown_handles)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&m->pd, &m->buf, 0, &mr));
	assert_int_equal(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, mr.handle + 1), EINVAL);
	assert_int_equal(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, UINT32_MAX), EINVAL);
	expect_ok(fg_mr_destroy(&mr));
}

TEST_MR(test_destroy_mr_twice_is_rejected)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&m->pd, &m->buf, 0, &mr));
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
	uint32_t max, n = 0;
	uint32_t *handle;

	max = m->g->dsr->caps.max_mr;
	handle = test_calloc(max + 1, sizeof(*handle));
	m->req.length = 1;
	m->req.nchunks = 1;
	while (n <= max && !fg_create_mr(m->g, &m->req, &m->resp))
		handle[n++] = m->resp.mr_handle;
	assert_in_range(n, 1, max);
	expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, handle[n / 2]));
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
	handle[n / 2] = m->resp.mr_handle;
	while (n--)
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, handle[n]));
	assert_int_equal(fg_stats(m->g).mrs, 0);
	test_free(handle);
}

/* 1 GiB per request costs the guest three pages: the device must not pay without end. */
TEST_MR(test_wide_mrs_do_not_eat_the_hosts_memory)
{
	uint32_t page, n = 0;

	m->req.pdir_dma = t_wide_pdir(m->g, PVR_PDIR_MAX_PAGES, &page);
	m->req.nchunks = PVR_PDIR_MAX_PAGES;
	m->req.length = (uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE;
	while (n < 4096 && !fg_create_mr(m->g, &m->req, &m->resp))
		n++;
	assert_true(n < 4096);
	m->req = fg_mr_request(&m->pd, &m->buf, 0, m->buf.size, FG_ACCESS_ALL);
	if (n)
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
	expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
}

TEST_MR(test_destroyed_mrs_give_their_share_of_memory_back)
{
	uint32_t page;

	m->req.pdir_dma = t_wide_pdir(m->g, PVR_PDIR_MAX_PAGES, &page);
	m->req.nchunks = PVR_PDIR_MAX_PAGES;
	m->req.length = (uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE;
	for (int i = 0; i < 20; i++) {
		expect_ok(fg_create_mr(m->g, &m->req, &m->resp));
		expect_ok(fg_cmd_destroy(m->g, PVR_CMD_DESTROY_MR, m->resp.mr_handle));
	}
}
