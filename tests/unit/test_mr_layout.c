// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_MR_LAYOUT: regions whose address, offset, page size and size are free. */
#include "ends.h"

#define IOVA 0x123456000000ull
#define KIB64_SHIFT 16
#define MIB2_SHIFT 21
#define MAX_PAGES 600
#define LINEAR_MIB 24 /* contiguous bus addresses, aligned to 4 MiB */

TEST_EXT(PVR_EXT_MR_LAYOUT)

/* A region of b's guest, which a writes. */
struct layout {
	struct t_env *env;
	struct fg_guest *g;
	uint64_t gpa[MAX_PAGES];
	uint32_t npages;
	uint32_t shift;
	struct pvr_cmd_create_mr req;
	struct fg_mr mr;
};

static int t_setup_big(void **state)
{
	struct fg_guest_config config;
	struct t_env *env;

	t_setup_host(state);
	env = *state;
	fg_guest_config_init(&config, 1);
	config.linear_mib = LINEAR_MIB;
	t_guest_as(env, 1, &config);
	t_open_pair(&env->a, env->g[0], &env->b, env->g[0]);
	return 0;
}

static void layout_init(struct layout *l, struct t_env *env, uint32_t shift)
{
	memset(l, 0, sizeof(*l));
	l->env = env;
	l->g = env->b.guest;
	l->shift = shift;
}

#define TEST_LAYOUT(shift, name) TEST_OBJECT(big, struct layout, l, layout_init, name, shift)

static void add_page(struct layout *l, uint64_t gpa)
{
	assert_in_range(l->npages, 0, MAX_PAGES - 1);
	l->gpa[l->npages++] = gpa;
}

static void add_scattered(struct layout *l, uint32_t n)
{
	while (n--)
		add_page(l, fg_page_gpa(&l->g->ram, fg_ram_get_page(&l->g->ram)));
}

/* @n pages that follow each other, and one behind them that is not of the region. */
static void add_run(struct layout *l, uint32_t n)
{
	uint32_t first = fg_ram_get_run(&l->g->ram, n + 1);

	while (n--)
		add_page(l, fg_page_gpa(&l->g->ram, first++));
}

/* Large pages, the last one first in memory, so that no two follow each other. */
static void add_large(struct layout *l, uint32_t n)
{
	uint64_t first = fg_page_gpa(&l->g->ram,
				     fg_ram_get_run(&l->g->ram, n << (l->shift - PVR_PAGE_SHIFT)));

	assert_int_equal(first & ((1ull << l->shift) - 1), 0);
	while (n--)
		add_page(l, first + ((uint64_t)n << l->shift));
}

static void request(struct layout *l, uint64_t start, uint64_t offset, uint64_t length)
{
	l->req = fg_layout_request(&l->env->b.pd, fg_pdir(&l->g->ram, 2, l->gpa, l->npages),
				   l->shift, start, offset, length);
}

static void created(struct layout *l)
{
	expect_ok(fg_mr_create_as(&l->env->b.pd, &l->req, &l->mr));
}

static void create(struct layout *l, uint64_t start, uint64_t offset, uint64_t length)
{
	request(l, start, offset, length);
	created(l);
}

static void refused(struct layout *l, uint32_t err)
{
	struct pvr_resp_create_mr resp;

	assert_int_equal(fg_create_mr(l->g, &l->req, &resp), err);
}

/* Where byte @at of the region really is. */
static const uint8_t *byte_va(const struct layout *l, uint64_t at)
{
	uint64_t pos = l->req.offset + at;

	return fg_gpa_va(&l->g->ram, l->gpa[pos >> l->shift] + (pos & ((1ull << l->shift) - 1)));
}

static void write_raw(struct layout *l, uint64_t addr, uint32_t len)
{
	t_write_to(l->env, l->mr.rkey, addr, len, PVRDMA_WC_SUCCESS);
}

/* a writes @len bytes at byte @at of the region, and they are where they belong. */
static void write_ok(struct layout *l, uint64_t at, uint32_t len, uint32_t seed)
{
	uint8_t *got = test_malloc(len);

	fg_fill(l->env->a.mr.va, len, seed);
	write_raw(l, l->req.start + at, len);
	for (uint32_t i = 0; i < len; i++)
		got[i] = *byte_va(l, at + i);
	assert_int_equal(fg_mismatch(got, len, seed), len);
	test_free(got);
}

static void write_refused(struct layout *l, uint64_t addr, uint32_t len)
{
	t_write_to(l->env, l->mr.rkey, addr, len, PVRDMA_WC_REM_ACCESS_ERR);
}

/* All of the region byte by byte, in pieces of an odd length; and nothing around it. */
static void write_all(struct layout *l)
{
	const uint64_t piece = 50021;

	for (uint64_t at = 0; at < l->req.length; at += piece)
		write_ok(l, at, (uint32_t)fg_sooner(l->req.length - at, piece), (uint32_t)at);
	write_refused(l, l->req.start - 1, 2);
	write_refused(l, l->req.start + l->req.length - 1, 2);
}

/* ---------------------------------------------------------- what is allowed */

TEST_LAYOUT(PVR_PAGE_SHIFT, test_address_is_independent_of_the_offset)
{
	add_scattered(l, 5);
	create(l, IOVA + 77, 100, 4 * PVR_PAGE_SIZE);
	write_all(l);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_zero_based_region)
{
	add_scattered(l, 3);
	request(l, 0, 4095, PVR_PAGE_SIZE + 2);
	l->req.access_flags |= PVR_ACCESS_ZERO_BASED;
	created(l);
	write_ok(l, 0, PVR_PAGE_SIZE + 2, 3);
	write_refused(l, UINT64_MAX, 2);
	write_refused(l, PVR_PAGE_SIZE + 1, 2);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_region_at_the_end_of_the_address_space)
{
	add_scattered(l, 2);
	create(l, -(uint64_t)5000, 96, 5000);
	write_ok(l, 0, 5000, 4);
	write_refused(l, UINT64_MAX, 2);
	write_refused(l, 0, 1);
}

TEST_LAYOUT(KIB64_SHIFT, test_large_pages_in_any_order)
{
	add_large(l, 5);
	create(l, IOVA + 5, 60001, (4ull << KIB64_SHIFT) + 3);
	write_all(l);
}

TEST_LAYOUT(MIB2_SHIFT, test_region_that_begins_deep_in_a_huge_page)
{
	add_large(l, 3);
	create(l, IOVA, (1u << MIB2_SHIFT) - 5, (1u << MIB2_SHIFT) + 10);
	write_ok(l, 0, 50000, 5);
	write_ok(l, (1u << MIB2_SHIFT) - 20000, 20010, 6);
	write_refused(l, IOVA + (1u << MIB2_SHIFT) + 9, 2);
	write_refused(l, IOVA - 1, 2);
}

/* Runs of many lengths are found by halving; those of one length by the first guess. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_uneven_runs)
{
	for (uint32_t run = 1; run < 29; run += 2)
		add_run(l, run);
	add_run(l, 330);
	create(l, IOVA, 3000, ((uint64_t)l->npages << PVR_PAGE_SHIFT) - 3000);
	write_all(l);
}

/* The translation of the first pages is rebuilt when scattered pages follow. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_runs_before_scattered_pages)
{
	add_run(l, 100);
	add_scattered(l, 450);
	create(l, IOVA, 1, ((uint64_t)l->npages << PVR_PAGE_SHIFT) - 1);
	write_all(l);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_three_levels_of_few_pages)
{
	add_scattered(l, 3);
	request(l, IOVA, 0, 3 * PVR_PAGE_SIZE);
	l->req.pdir_dma = fg_pdir(&l->g->ram, 3, l->gpa, l->npages);
	l->req.pdir_levels = 3;
	created(l);
	write_all(l);
}

/* More than two levels can name; most entries lead to one page. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_three_levels_beyond_two)
{
	const uint32_t npages = PVR_PDIR_MAX_PAGES + PVR_PDIR_ENTRIES + 2;
	uint64_t *gpa = test_malloc(npages * sizeof(*gpa)), last;

	add_scattered(l, 2);
	for (uint32_t i = 0; i < npages; i++)
		gpa[i] = l->gpa[0];
	gpa[npages - 1] = l->gpa[1];
	gpa[PVR_PDIR_MAX_PAGES + 1] = l->gpa[1];
	l->req = fg_layout_request(&env->b.pd, fg_pdir(&l->g->ram, 3, gpa, npages), l->shift, IOVA,
				   0, (uint64_t)npages * PVR_PAGE_SIZE);
	l->req.pdir_levels = 3;
	test_free(gpa);
	created(l);
	fg_fill(env->a.mr.va, 3 * PVR_PAGE_SIZE, 9);
	last = IOVA + (uint64_t)(npages - 1) * PVR_PAGE_SIZE;
	write_raw(l, last, 100);
	assert_int_equal(fg_mismatch(fg_gpa_va(&l->g->ram, l->gpa[1]), 100, 9), 100);
	write_raw(l, IOVA + (uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE, 2 * PVR_PAGE_SIZE);
	assert_memory_equal(fg_gpa_va(&l->g->ram, l->gpa[0]), env->a.mr.va, PVR_PAGE_SIZE);
	assert_memory_equal(fg_gpa_va(&l->g->ram, l->gpa[1]), env->a.mr.va + PVR_PAGE_SIZE,
			    PVR_PAGE_SIZE);
	write_refused(l, last + PVR_PAGE_SIZE, 1);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_access_is_checked_as_elsewhere)
{
	add_scattered(l, 1);
	request(l, IOVA, 0, 100);
	l->req.access_flags = PVR_ACCESS_REMOTE_WRITE;
	refused(l, EINVAL);
	l->req.access_flags = PVR_ACCESS_ON_DEMAND;
	refused(l, EOPNOTSUPP);
	l->req.access_flags = PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_READ | PVR_ACCESS_OPTIONAL;
	created(l);
	write_refused(l, IOVA, 1);
}

/* ---------------------------------------------------------- pieces of RAM */

#define PIECE_GPA 0x40000000ull /* in a hole of the fake guest's RAM */
#define PIECE_SIZE (1u << (KIB64_SHIFT - 1))

/* The two halves of one large page, far apart here. */
struct halves {
	uint8_t low[PIECE_SIZE + PVR_PAGE_SIZE], high[PIECE_SIZE];
};

static struct halves *halves_map(struct layout *l, bool writable)
{
	static struct halves halves __attribute__((aligned(PVR_PAGE_SIZE)));

	memset(&halves, 0, sizeof(halves));
	expect_ok((uint32_t)pvr_adapter_map_ram(l->g->adapter, PIECE_GPA, PIECE_SIZE, halves.low,
						true));
	expect_ok((uint32_t)pvr_adapter_map_ram(l->g->adapter, PIECE_GPA + PIECE_SIZE, PIECE_SIZE,
						halves.high, writable));
	add_page(l, PIECE_GPA);
	request(l, IOVA, 0, 1u << KIB64_SHIFT);
	return &halves;
}

TEST_LAYOUT(KIB64_SHIFT, test_large_page_spans_ram_regions)
{
	struct halves *halves = halves_map(l, true);

	created(l);
	fg_fill(env->a.mr.va, 1000, 11);
	write_raw(l, IOVA + PIECE_SIZE - 500, 1000);
	assert_memory_equal(halves->low + PIECE_SIZE - 500, env->a.mr.va, 500);
	assert_memory_equal(halves->high, env->a.mr.va + 500, 500);
	assert_int_equal(halves->low[PIECE_SIZE], 0);
}

TEST_LAYOUT(KIB64_SHIFT, test_unplugged_ram_region_breaks_the_mr)
{
	struct halves *halves = halves_map(l, true);

	created(l);
	pvr_adapter_unmap_ram(l->g->adapter, PIECE_GPA + PIECE_SIZE, PIECE_SIZE);
	env->a.mr.va[0] = 1;
	write_refused(l, IOVA + PIECE_SIZE, 1);
	write_refused(l, IOVA, 1);
	assert_int_equal(halves->high[0], 0);
	expect_ok(fg_mr_destroy(&l->mr));
}

TEST_LAYOUT(KIB64_SHIFT, test_hole_in_a_large_page_is_refused)
{
	halves_map(l, true);
	pvr_adapter_unmap_ram(l->g->adapter, PIECE_GPA + PIECE_SIZE, PIECE_SIZE);
	refused(l, EFAULT);
	/* One byte of the hole is too many, and none is not. */
	l->req.length = PIECE_SIZE + 1;
	refused(l, EFAULT);
	l->req.length = PIECE_SIZE;
	created(l);
}

TEST_LAYOUT(KIB64_SHIFT, test_hole_before_the_first_byte_does_not_matter)
{
	halves_map(l, true);
	pvr_adapter_unmap_ram(l->g->adapter, PIECE_GPA, PIECE_SIZE);
	l->req.offset = PIECE_SIZE + 10;
	l->req.length = PIECE_SIZE - 10;
	created(l);
	l->req.offset = PIECE_SIZE - 1;
	l->req.length = 2;
	refused(l, EFAULT);
}

TEST_LAYOUT(KIB64_SHIFT, test_read_only_part_of_a_large_page)
{
	halves_map(l, false);
	refused(l, EFAULT);
	l->req.access_flags = PVR_ACCESS_REMOTE_READ;
	created(l);
}

/* ------------------------------------------------------------ what is wrong */

/* A valid request for 100 bytes. */
static void layout_init_4k(struct layout *l, struct t_env *env)
{
	layout_init(l, env, PVR_PAGE_SHIFT);
	add_scattered(l, 2);
	request(l, IOVA, 0, 100);
}

#define TEST_LAYOUT_CASES(name, rows) \
	TEST_OBJECT_CASES(big, struct layout, l, layout_init_4k, name, rows)

static const struct t_case bad_page_shifts[] = { T_CASE(0),	    T_CASE(11), T_CASE(31),
						 T_CASE(32),	    T_CASE(63), T_CASE(64),
						 T_CASE(UINT32_MAX) };

TEST_LAYOUT_CASES(test_bad_page_shifts_are_refused, bad_page_shifts)
{
	l->req.page_shift = row->value;
	refused(l, EINVAL);
}

static const struct t_case bad_levels[] = { T_CASE(0), T_CASE(1), T_CASE(4), T_CASE(UINT32_MAX) };

TEST_LAYOUT_CASES(test_bad_numbers_of_levels_are_refused, bad_levels)
{
	l->req.pdir_levels = row->value;
	refused(l, EINVAL);
}

static const struct t_case bad_offsets[] = { T_CASE(PVR_PAGE_SIZE), T_CASE(1ull << 32),
					     T_CASE(1ull << 63), T_CASE(UINT64_MAX) };

TEST_LAYOUT_CASES(test_offset_beyond_the_first_page_is_refused, bad_offsets)
{
	l->req.offset = row->value;
	refused(l, EINVAL);
	l->req.nchunks = (uint32_t)((row->value + 99) / PVR_PAGE_SIZE + 1);
	refused(l, EINVAL);
}

TEST_LAYOUT(KIB64_SHIFT, test_page_counts_that_do_not_match_are_refused)
{
	static const uint32_t bad[] = { 0, 1, 2, 4, UINT32_MAX };

	add_large(l, 4);
	request(l, IOVA, 1, 2u << KIB64_SHIFT);
	assert_int_equal(l->req.nchunks, 3);
	for (size_t i = 0; i < COUNT(bad); i++) {
		l->req.nchunks = bad[i];
		refused(l, EINVAL);
	}
}

static const struct t_case bad_lengths[] = { { "beyond max_mr_size",
					       (uint64_t)PVR_PDIR3_MAX_PAGES *PVR_PAGE_SIZE + 1 },
					     T_CASE(1ull << 63),
					     T_CASE(UINT64_MAX) };

TEST_LAYOUT_CASES(test_bad_lengths_are_refused, bad_lengths)
{
	request(l, 0, 0, 1);
	l->req.length = row->value;
	refused(l, EINVAL);
	l->req.nchunks = (uint32_t)((row->value + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE);
	refused(l, EINVAL);
}

/* Without pages it would be a region of no bytes. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_pages_without_bytes_are_refused)
{
	add_scattered(l, 1);
	request(l, 0, 0, 1);
	l->req.length = 0;
	refused(l, EINVAL);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_range_that_wraps_is_refused)
{
	add_scattered(l, 2);
	request(l, UINT64_MAX, 0, 2);
	refused(l, EINVAL);
	request(l, -(uint64_t)PVR_PAGE_SIZE, 0, PVR_PAGE_SIZE + 1);
	refused(l, EINVAL);
}

static const struct t_case bad_flags[] = { T_CASE(PVR_MR_FLAG_DMA), T_CASE(PVR_MR_FLAG_FRMR),
					   T_CASE(1u << 31) };

TEST_LAYOUT_CASES(test_layout_goes_with_no_other_flag, bad_flags)
{
	l->req.flags |= row->value;
	refused(l, EINVAL);
}

TEST_LAYOUT(KIB64_SHIFT, test_large_pages_must_be_aligned)
{
	add_large(l, 3);
	l->gpa[1] += PVR_PAGE_SIZE;
	request(l, IOVA, 0, 2u << KIB64_SHIFT);
	refused(l, EFAULT);
}

static const struct t_case bad_addresses[] = {
	T_CASE(0),	    T_CASE(8),		T_CASE(FG_MMIO_HOLE),
	T_CASE(FG_NOWHERE), T_CASE(UINT64_MAX), T_CASE(-(uint64_t)PVR_PAGE_SIZE)
};

TEST_LAYOUT_CASES(test_bad_addresses_at_every_level_are_refused, bad_addresses)
{
	__u64 *entry = &l->req.pdir_dma;

	l->req.pdir_dma = fg_pdir(&l->g->ram, 3, l->gpa, l->npages);
	l->req.pdir_levels = 3;
	for (int level = 0; level <= 3; level++) {
		const uint64_t good = *entry;

		*entry = row->value;
		refused(l, EFAULT);
		*entry = good;
		entry = fg_gpa_va(&l->g->ram, good);
	}
	created(l);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_two_levels_hold_no_more_pages_than_ever)
{
	uint32_t page;

	l->req = fg_layout_request(&env->b.pd, t_wide_pdir(l->g, PVR_PDIR_MAX_PAGES, &page),
				   PVR_PAGE_SHIFT, IOVA, 0,
				   (uint64_t)(PVR_PDIR_MAX_PAGES + 1) * PVR_PAGE_SIZE);
	refused(l, EINVAL);
}

/* ------------------------------------------------------------------ limits */

TEST(big, test_caps_grow_with_the_extension_only)
{
	const struct pvr_caps *stock = &t_guest_with_ext(env, 2, 0)->dsr->caps;
	const struct pvr_caps *caps = &env->g[0]->dsr->caps;

	assert_true(stock->max_mr_size == 1ull << 30);
	assert_true(stock->page_size_cap == PVR_PAGE_SIZE);
	assert_true(caps->max_mr_size == (uint64_t)PVR_PDIR3_MAX_PAGES * PVR_PAGE_SIZE);
	assert_true(caps->page_size_cap == 0x7ffff000);
}

TEST_LAYOUT(PVR_PAGE_SHIFT, test_stock_drivers_have_no_layouts)
{
	struct fg_pd pd;

	l->g = t_guest_with_ext(env, 2, PVR_EXT_ALL & ~PVR_EXT_MR_LAYOUT);
	expect_ok(fg_pd_create(&l->g->kernel, &pd));
	add_scattered(l, 1);
	l->req = fg_layout_request(&pd, fg_pdir(&l->g->ram, 2, l->gpa, 1), PVR_PAGE_SHIFT, IOVA, 0,
				   100);
	refused(l, EINVAL);
	l->req.flags = 0;
	expect_ok(fg_mr_create_as(&pd, &l->req, &l->mr));
}

/* With one pointer a page, these would cost 16 MiB. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_contiguous_regions_cost_next_to_nothing)
{
	add_run(l, 512);
	request(l, IOVA, 0, 512 * PVR_PAGE_SIZE);
	t_leave_memory(l->g, 2 << 20);
	for (int i = 0; i < 4000; i++)
		created(l);
	write_ok(l, 100, 60000, 12);
}

TEST_LAYOUT(KIB64_SHIFT, test_large_pages_cost_by_the_page)
{
	add_large(l, 128);
	request(l, IOVA, 0, 128ull << KIB64_SHIFT);
	t_leave_memory(l->g, 5 << 19);
	for (int i = 0; i < 1000; i++)
		created(l);
	write_ok(l, 100, 60000, 13);
}

TEST_LAYOUT(KIB64_SHIFT, test_scattered_regions_do_not_eat_the_hosts_memory)
{
	uint32_t n = 0;

	add_large(l, 1);
	for (uint32_t i = 1; i < 500; i++)
		add_page(l, l->gpa[0]);
	request(l, IOVA, 0, 500ull << KIB64_SHIFT);
	t_leave_memory(l->g, 2 << 20); /* 8000 bytes each */
	while (n < 5000 && !fg_mr_create_as(&env->b.pd, &l->req, &l->mr))
		n++;
	assert_in_range(n, 200, 300);
	refused(l, ENOMEM);
	expect_ok(fg_mr_destroy(&l->mr));
	created(l);
}

/* 2^27 pages cost the guest three pages of tables: the device refuses them unread. */
TEST_LAYOUT(PVR_PAGE_SHIFT, test_region_of_many_times_the_guests_memory_is_refused)
{
	uint64_t gpa = fg_page_gpa(&l->g->ram, fg_ram_get_page(&l->g->ram));
	uint64_t *dir = fg_gpa_va(&l->g->ram, gpa);

	for (int i = 0; i < PVR_PDIR_ENTRIES; i++)
		dir[i] = gpa; /* a page of entries that lead to itself, at all levels */
	l->req = fg_layout_request(&env->b.pd, gpa, PVR_PAGE_SHIFT, 0, 0,
				   (uint64_t)PVR_PDIR3_MAX_PAGES * PVR_PAGE_SIZE);
	l->req.pdir_levels = 3;
	refused(l, ENOSPC);
	l->req = fg_layout_request(&env->b.pd, gpa, PVR_PAGE_SHIFT, 0, 0, 1 << 20);
	l->req.pdir_levels = 3;
	created(l);
}
