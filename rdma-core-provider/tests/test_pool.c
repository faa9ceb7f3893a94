// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of small queues. */
#include <stdlib.h>
#include <sys/mman.h>

#include "fake_kernel.h"
#include "pool.h"

#define FIRST_SLAB 64u /* pages */
#define LATER_SLAB 512u
#define HUGE_PAGE ((uintptr_t)2 << 20)

struct piece {
	void *addr;
	struct pvr_slab *slab;
	unsigned int pages;
};

static struct pvr_pool *pool; /* that of the context, too */

static void pool_end(void)
{
	pvr_pool_free(pool);
}

static void pool_begin(void)
{
	pool = pvr_pool_new();
	assert_non_null(pool);
	fake.ctx.pool = pool;
	fake.end = pool_end;
	fake.not_inherited = 0; /* without the fixture's CQs */
}

static struct piece take(unsigned int pages)
{
	struct piece piece = { .pages = pages };

	assert_int_equal(pvr_pool_take(pool, pages, &piece.addr, &piece.slab), 0);
	assert_int_equal((uintptr_t)piece.addr % pvr_page_size(), 0);
	return piece;
}

static void put(struct piece *piece)
{
	pvr_pool_put(pool, piece->slab, piece->addr, piece->pages);
	piece->pages = 0;
}

static struct pvr_buf alloc(unsigned int pages)
{
	struct pvr_buf buf = {};

	assert_int_equal(pvr_buf_alloc(&fake.ctx, &buf, pages * pvr_page_size(), NULL, PVR_RES_QP),
			 0);
	return buf;
}

/* Returns whether all pages are mapped; counts those that are present. */
static bool is_mapped(void *addr, unsigned int pages, unsigned int *present)
{
	unsigned char in_memory[LATER_SLAB];
	unsigned int i;

	if (mincore(addr, pages * pvr_page_size(), in_memory))
		return false;
	for (*present = 0, i = 0; i < pages; i++)
		*present += in_memory[i] & 1;
	return true;
}

static void assert_unmapped(void *addr)
{
	unsigned int present;

	assert_false(is_mapped(addr, 1, &present));
}

/* The pages that no child inherits are those of the slabs. */
static void assert_slab_pages(size_t pages)
{
	assert_int_equal(fake.not_inherited, pages * pvr_page_size());
}

TEST(pool, test_pages_of_a_destroyed_queue_are_used_again)
{
	struct piece first = take(3), second = take(3), again;
	void *addr = first.addr;

	assert_ptr_not_equal(first.addr, second.addr);
	put(&first);
	again = take(3);
	assert_ptr_equal(again.addr, addr);
	put(&again);
	put(&second);
}

TEST(pool, test_queue_in_used_pages_begins_with_zeros)
{
	struct pvr_buf buf = alloc(3), again;
	size_t i;

	memset(buf.addr, 0xff, buf.size);
	pvr_buf_free(&buf);
	again = alloc(3);
	assert_ptr_equal(again.addr, buf.addr);
	for (i = 0; i < pvr_page_size(); i++)
		assert_int_equal(((uint8_t *)again.addr)[i], 0);
	pvr_buf_free(&again);
}

TEST(pool, test_pages_of_a_queue_are_present)
{
	struct pvr_buf buf = alloc(PVR_POOL_MAX_PAGES);
	unsigned int present;

	assert_true(is_mapped(buf.addr, PVR_POOL_MAX_PAGES, &present));
	assert_int_equal(present, PVR_POOL_MAX_PAGES);
	pvr_buf_free(&buf);
}

/* A program with few queues has no huge page. */
TEST(pool, test_slabs_after_the_first_are_huge_pages)
{
	struct piece first = take(1), others[FIRST_SLAB];
	unsigned int i;

	assert_slab_pages(FIRST_SLAB);
	for (i = 0; i < FIRST_SLAB; i++)
		others[i] = take(1);
	assert_slab_pages(FIRST_SLAB + LATER_SLAB);
	assert_ptr_equal(others[FIRST_SLAB - 2].slab, first.slab);
	assert_int_equal((uintptr_t)others[FIRST_SLAB - 1].addr % HUGE_PAGE, 0);
	put(&first);
	for (i = 0; i < FIRST_SLAB; i++)
		put(&others[i]);
}

TEST(pool, test_one_slab_without_queues_is_kept)
{
	static struct piece pieces[(FIRST_SLAB + 2 * LATER_SLAB) / 16];
	unsigned int i, mapped = 0, present;

	for (i = 0; i < COUNT(pieces); i++)
		pieces[i] = take(16);
	assert_slab_pages(FIRST_SLAB + 2 * LATER_SLAB);
	for (i = 0; i < COUNT(pieces); i++)
		put(&pieces[i]);
	assert_slab_pages(FIRST_SLAB);
	for (i = 0; i < COUNT(pieces); i++)
		mapped += is_mapped(pieces[i].addr, 16, &present);
	assert_int_equal(mapped, FIRST_SLAB / 16);
}

TEST(pool, test_queue_that_comes_and_goes_needs_no_further_mapping)
{
	struct piece pieces[FIRST_SLAB / 16], one;
	unsigned int i, calls;

	for (i = 0; i < COUNT(pieces); i++)
		pieces[i] = take(16);
	one = take(1);
	calls = fake.dontfork_calls;
	for (i = 0; i < 10; i++) {
		put(&one);
		one = take(1);
	}
	assert_int_equal(fake.dontfork_calls, calls);
	put(&one);
	for (i = 0; i < COUNT(pieces); i++)
		put(&pieces[i]);
}

TEST(pool, test_large_queue_has_a_mapping_of_its_own)
{
	struct pvr_buf buf = alloc(PVR_POOL_MAX_PAGES + 1);

	assert_null(buf.pool);
	assert_slab_pages(PVR_POOL_MAX_PAGES + 1);
	pvr_buf_free(&buf);
	assert_slab_pages(0);
	assert_unmapped(buf.addr);
}

static const struct {
	const char *label;
	unsigned int pages;
} sizes[] = {
	{ "of the pool", 1 },
	{ "large", PVR_POOL_MAX_PAGES + 1 },
};

TEST_CASES(pool, test_memory_that_children_would_inherit_is_refused, sizes)
{
	struct pvr_buf buf = {};

	fake.fail_dontfork = ENOMEM;
	assert_int_equal(
		pvr_buf_alloc(&fake.ctx, &buf, row->pages * pvr_page_size(), NULL, PVR_RES_QP),
		ENOMEM);
	assert_int_equal(buf.size, 0);
	fake.fail_dontfork = 0;
	buf = alloc(row->pages);
	pvr_buf_free(&buf);
}

/* A program may close a device whose queues it still reads. */
TEST(pool, test_queues_outlive_the_pool)
{
	static struct piece piece; /* the slab stays reachable for LeakSanitizer */

	piece = take(2);
	pvr_pool_free(pool);
	memset(piece.addr, 1, piece.pages * pvr_page_size());
	fake.end = NULL;
}

/* --------------------------------------------------------- queues of all sizes */

#define PIECES 200

/* A page's content is its number. */
static void fill(const struct piece *piece, uint32_t number)
{
	unsigned int i;

	for (i = 0; i < piece->pages; i++)
		memcpy((uint8_t *)piece->addr + i * pvr_page_size(), &number, sizeof(number));
}

static void check(const struct piece *piece, uint32_t number)
{
	unsigned int i;

	for (i = 0; i < piece->pages; i++)
		assert_memory_equal((uint8_t *)piece->addr + i * pvr_page_size(), &number,
				    sizeof(number));
}

/* Takes and gives back pieces in a random order; none shares a page with another. */
static void use_pieces(struct piece *pieces, uint32_t first, unsigned int seed)
{
	unsigned int round, i;

	memset(pieces, 0, PIECES * sizeof(*pieces));
	for (round = 0; round < 5000; round++) {
		i = rand_r(&seed) % PIECES;
		check(&pieces[i], first + i);
		if (pieces[i].pages) {
			put(&pieces[i]);
			continue;
		}
		pieces[i] = take(1 + rand_r(&seed) % PVR_POOL_MAX_PAGES);
		fill(&pieces[i], first + i);
	}
	for (i = 0; i < PIECES; i++) {
		check(&pieces[i], first + i);
		if (pieces[i].pages)
			put(&pieces[i]);
	}
}

TEST(pool, test_no_two_queues_share_a_page)
{
	static struct piece pieces[PIECES];

	use_pieces(pieces, 1, 1);
}

static void run_thread(uintptr_t number)
{
	static struct piece pieces[FAKE_THREADS][PIECES];

	use_pieces(pieces[number], number * PIECES, number);
}

TEST(pool, test_no_two_queues_of_threads_share_a_page)
{
	fake_threads_start(run_thread);
	fake_threads_join();
}
