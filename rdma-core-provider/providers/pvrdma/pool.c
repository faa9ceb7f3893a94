// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of small queues, see pool.h. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <ccan/list.h>

#include "pool.h"
#include "pvrdma.h"

#define ROW_PAGES 64u
#define ROWS_MAX 8u /* of 4 KiB pages these are 2 MiB, a huge page */
/* Slabs that a request tries before it maps a new one. */
#define SLABS_TRIED 8u
/* Pages that one system call makes present. */
#define PAGES_AT_ONCE 16u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* A queue has pages of one row. */
struct pvr_slab {
	struct list_node entry; /* in slabs of the pool, if a page is free */
	uint8_t *addr;
	unsigned int rows;
	unsigned int used; /* pages */
	unsigned int present; /* pages before this one are present */
	uint64_t free[ROWS_MAX]; /* bit n of row r: page r * ROW_PAGES + n is free */
};

struct pvr_pool {
	pthread_mutex_t lock; /* protects all members and the slabs; innermost */
	struct list_head slabs; /* with a free page */
	unsigned int slab_num; /* those without a free page included */
	unsigned int idle; /* slabs without a queue, at most one */
};

static size_t slab_size(const struct pvr_slab *slab)
{
	return (size_t)slab->rows * ROW_PAGES * pvr_page_size();
}

static bool is_full(const struct pvr_slab *slab)
{
	return slab->used == slab->rows * ROW_PAGES;
}

static uint64_t bits(unsigned int pages)
{
	return (UINT64_C(1) << pages) - 1;
}

/* A huge page needs an address that is a multiple of its size. size: a power of two. */
static void *map_aligned(size_t size)
{
	void *addr =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before = -(uintptr_t)addr & (size - 1);
	uint8_t *aligned = (uint8_t *)addr + before;

	if (addr == MAP_FAILED)
		return NULL;
	if (before)
		munmap(addr, before);
	munmap(aligned + size, size - before);
	return aligned;
}

static int map_slab(struct pvr_slab *slab)
{
	size_t size = slab_size(slab);
	int err;

	slab->addr = map_aligned(size);
	if (!slab->addr)
		return ENOMEM;
	err = ibv_dontfork_range(slab->addr, size);
	if (err) {
		munmap(slab->addr, size);
		return err;
	}
	/* One fault for all pages. Without huge pages it fails, which is harmless. */
	if (slab->rows == ROWS_MAX)
		madvise(slab->addr, size, MADV_HUGEPAGE);
	return 0;
}

static void unmap_slab(struct pvr_slab *slab)
{
	ibv_dofork_range(slab->addr, slab_size(slab));
	munmap(slab->addr, slab_size(slab));
	free(slab);
}

static int add_slab_locked(struct pvr_pool *pool)
{
	struct pvr_slab *slab = calloc(1, sizeof(*slab));
	unsigned int row;
	int err;

	if (!slab)
		return ENOMEM;
	slab->rows = pool->slab_num ? ROWS_MAX : 1;
	for (row = 0; row < slab->rows; row++)
		slab->free[row] = UINT64_MAX;
	err = map_slab(slab);
	if (err) {
		free(slab);
		return err;
	}
	list_add(&pool->slabs, &slab->entry);
	pool->slab_num++;
	pool->idle++;
	return 0;
}

/* Returns the first of these pages of a row that begins a run of free ones, or ROW_PAGES. */
static unsigned int find_run(uint64_t row, unsigned int pages)
{
	unsigned int length;

	for (length = 1; length < pages; length++)
		row &= row >> 1;
	return row ? (unsigned int)__builtin_ctzll(row) : ROW_PAGES;
}

/* Fails on older systems. Then each page becomes present at its first use. */
static void make_present(struct pvr_slab *slab, unsigned int end)
{
	size_t page = pvr_page_size();

	while (slab->present < end) {
		madvise(slab->addr + slab->present * page, PAGES_AT_ONCE * page,
			MADV_POPULATE_WRITE);
		slab->present += PAGES_AT_ONCE;
	}
}

/* Returns whether the slab has a run of as many free pages. */
static bool take_from_slab(struct pvr_slab *slab, unsigned int pages, void **addr)
{
	unsigned int row, page;

	for (row = 0; row < slab->rows; row++) {
		page = find_run(slab->free[row], pages);
		if (page == ROW_PAGES)
			continue;
		slab->free[row] &= ~(bits(pages) << page);
		page += row * ROW_PAGES;
		make_present(slab, page + pages);
		*addr = slab->addr + page * pvr_page_size();
		return true;
	}
	return false;
}

static void count_use_locked(struct pvr_pool *pool, struct pvr_slab *slab, unsigned int pages)
{
	if (!slab->used)
		pool->idle--;
	slab->used += pages;
	if (is_full(slab))
		list_del(&slab->entry);
}

/* Returns the slab, or NULL. */
static struct pvr_slab *take_locked(struct pvr_pool *pool, unsigned int pages, void **addr)
{
	struct pvr_slab *slab;
	unsigned int tried = 0;

	list_for_each(&pool->slabs, slab, entry) {
		/* cppcheck-suppress uninitvar ; list_for_each() sets slab */
		if (take_from_slab(slab, pages, addr)) {
			count_use_locked(pool, slab, pages);
			return slab;
		}
		if (++tried == SLABS_TRIED)
			break;
	}
	return NULL;
}

int pvr_pool_take(struct pvr_pool *pool, unsigned int pages, void **addr, struct pvr_slab **slab)
{
	int err = 0;

	pthread_mutex_lock(&pool->lock);
	*slab = take_locked(pool, pages, addr);
	if (!*slab) {
		err = add_slab_locked(pool);
		if (!err)
			*slab = take_locked(pool, pages, addr);
	}
	pthread_mutex_unlock(&pool->lock);
	return err;
}

/* One idle slab stays, so that a single queue can come and go without a new mapping. */
static void idle_locked(struct pvr_pool *pool, struct pvr_slab *slab)
{
	if (!pool->idle) {
		pool->idle = 1;
		return;
	}
	list_del(&slab->entry);
	unmap_slab(slab);
	pool->slab_num--;
}

void pvr_pool_put(struct pvr_pool *pool, struct pvr_slab *slab, void *addr, unsigned int pages)
{
	unsigned int page = (unsigned int)(((uint8_t *)addr - slab->addr) / pvr_page_size());

	pthread_mutex_lock(&pool->lock);
	if (is_full(slab))
		list_add(&pool->slabs, &slab->entry);
	slab->free[page / ROW_PAGES] |= bits(pages) << page % ROW_PAGES;
	slab->used -= pages;
	if (!slab->used)
		idle_locked(pool, slab);
	pthread_mutex_unlock(&pool->lock);
}

struct pvr_pool *pvr_pool_new(void)
{
	struct pvr_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	list_head_init(&pool->slabs);
	return pool;
}

void pvr_pool_free(struct pvr_pool *pool)
{
	struct pvr_slab *slab;

	if (!pool)
		return;
	list_for_each(&pool->slabs, slab, entry) {
		/* cppcheck-suppress uninitvar ; list_for_each() sets slab */
		if (slab->used)
			continue;
		unmap_slab(slab); /* the only idle one */
		break;
	}
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
