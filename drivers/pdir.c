// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Page directories. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "pdir.h"
#include "pvrdma_abi.h"

static u32 pdir_num_tables(const struct pvr_pdir *pdir)
{
	return DIV_ROUND_UP(pdir->npages, PVR_PDIR_ENTRIES);
}

static u32 pdir_num_dirs(const struct pvr_pdir *pdir)
{
	return DIV_ROUND_UP(pdir_num_tables(pdir), PVR_PDIR_ENTRIES);
}

static int page_alloc(struct device *dma_dev, struct pvr_page *page)
{
	page->va = dma_alloc_coherent(dma_dev, PVR_PAGE_SIZE, &page->dma,
				      GFP_KERNEL);
	return page->va ? 0 : -ENOMEM;
}

static void page_free(struct device *dma_dev, struct pvr_page *page)
{
	if (page->va)
		dma_free_coherent(dma_dev, PVR_PAGE_SIZE, page->va, page->dma);
	page->va = NULL;
}

void pvr_page_cache_init(struct pvr_page_cache *cache, struct device *dma_dev)
{
	cache->dma_dev = dma_dev;
	spin_lock_init(&cache->lock);
	cache->num = 0;
}

void pvr_page_cache_exit(struct pvr_page_cache *cache)
{
	while (cache->num)
		page_free(cache->dma_dev, &cache->spare[--cache->num]);
}

/* Take a spare page, unless the page must be @zeroed. */
static int page_take(struct pvr_page_cache *cache, struct pvr_page *page,
		     bool zeroed)
{
	page->va = NULL;
	spin_lock(&cache->lock);
	if (cache->num && !zeroed)
		*page = cache->spare[--cache->num];
	spin_unlock(&cache->lock);
	return page->va ? 0 : page_alloc(cache->dma_dev, page);
}

static void page_put(struct pvr_page_cache *cache, struct pvr_page *page)
{
	if (!page->va)
		return;
	spin_lock(&cache->lock);
	if (cache->num < PVR_PAGE_CACHE_MAX) {
		cache->spare[cache->num++] = *page;
		page->va = NULL;
	}
	spin_unlock(&cache->lock);
	page_free(cache->dma_dev, page);
}

static void pages_free(struct pvr_page_cache *cache, struct pvr_page *pages,
		       u32 n)
{
	u32 i;

	for (i = 0; pages && i < n; i++) {
		page_put(cache, &pages[i]);
		cond_resched();
	}
	kvfree(pages);
}

/* Return: an array of @n coherent pages, or NULL. */
static struct pvr_page *pages_alloc(struct pvr_page_cache *cache, u32 n,
				    bool zeroed)
{
	struct pvr_page *pages = kvcalloc(n, sizeof(*pages), GFP_KERNEL);
	u32 i;

	for (i = 0; pages && i < n; i++) {
		if (page_take(cache, &pages[i], zeroed)) {
			pages_free(cache, pages, i);
			return NULL;
		}
		cond_resched();
	}
	return pages;
}

/* Enter @n pages of the next level into @pages, 512 per page. */
static void list_pages(struct pvr_page *pages, const struct pvr_page *next,
		       u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		__le64 *entries = pages[i / PVR_PDIR_ENTRIES].va;

		entries[i % PVR_PDIR_ENTRIES] = cpu_to_le64(next[i].dma);
	}
}

static int pdir_alloc_dirs(struct pvr_pdir *pdir)
{
	u32 ndirs = pdir_num_dirs(pdir);

	pdir->dirs = pages_alloc(pdir->cache, ndirs, false);
	if (!pdir->dirs)
		return -ENOMEM;
	list_pages(&pdir->dir, pdir->dirs, ndirs);
	return 0;
}

/* On failure the caller calls pvr_pdir_exit(). */
static int pdir_alloc_tables(struct pvr_pdir *pdir)
{
	u32 ntables = pdir_num_tables(pdir);
	int err = 0;

	if (page_take(pdir->cache, &pdir->dir, false))
		return -ENOMEM;
	if (pdir->npages > PVR_PDIR_MAX_PAGES)
		err = pdir_alloc_dirs(pdir);
	if (err)
		return err;
	pdir->tables = pages_alloc(pdir->cache, ntables, false);
	if (!pdir->tables)
		return -ENOMEM;
	list_pages(pdir->dirs ?: &pdir->dir, pdir->tables, ntables);
	return 0;
}

static int pdir_alloc_pages(struct pvr_pdir *pdir)
{
	u32 i;

	pdir->pages = pages_alloc(pdir->cache, pdir->npages, true);
	if (!pdir->pages)
		return -ENOMEM;
	for (i = 0; i < pdir->npages; i++)
		pvr_pdir_set(pdir, i, pdir->pages[i].dma);
	return 0;
}

int pvr_pdir_init(struct pvr_pdir *pdir, struct pvr_page_cache *cache,
		  u64 npages, bool own_pages)
{
	int err;

	if (!npages || npages > PVR_PDIR_MAX_PAGES)
		return -EINVAL;
	pdir->cache = cache;
	pdir->npages = npages;
	err = pdir_alloc_tables(pdir);
	if (!err && own_pages)
		err = pdir_alloc_pages(pdir);
	if (err)
		pvr_pdir_exit(pdir);
	return err;
}

int pvr_pdir_init_large(struct pvr_pdir *pdir, struct pvr_page_cache *cache,
			u64 npages)
{
	int err;

	if (!npages || npages > PVR_PDIR3_MAX_PAGES)
		return -EINVAL;
	pdir->cache = cache;
	pdir->npages = npages;
	err = pdir_alloc_tables(pdir);
	if (err)
		pvr_pdir_exit(pdir);
	return err;
}

void pvr_pdir_free_lists(struct pvr_pdir *pdir)
{
	pages_free(pdir->cache, pdir->tables, pdir_num_tables(pdir));
	pages_free(pdir->cache, pdir->dirs, pdir_num_dirs(pdir));
	page_put(pdir->cache, &pdir->dir);
	pdir->tables = NULL;
	pdir->dirs = NULL;
}

void pvr_pdir_exit(struct pvr_pdir *pdir)
{
	if (!pdir->cache)
		return;
	pages_free(pdir->cache, pdir->pages, pdir->npages);
	pvr_pdir_free_lists(pdir);
	memset(pdir, 0, sizeof(*pdir));
}

void pvr_pdir_set(struct pvr_pdir *pdir, u32 idx, dma_addr_t dma)
{
	__le64 *entries = pdir->tables[idx / PVR_PDIR_ENTRIES].va;

	entries[idx % PVR_PDIR_ENTRIES] = cpu_to_le64(dma);
}

void pvr_pdir_set_umem(struct pvr_pdir *pdir, u32 first, struct ib_umem *umem,
		       unsigned long page_size)
{
	struct ib_block_iter biter;
	u32 idx = first;

	rdma_umem_for_each_dma_block(umem, &biter, page_size) {
		if (WARN_ON_ONCE(idx >= pdir->npages))
			break;
		pvr_pdir_set(pdir, idx++, rdma_block_iter_dma_address(&biter));
		if (!(idx % PVR_PDIR_ENTRIES))
			cond_resched();
	}
}

void *pvr_pdir_at(const struct pvr_pdir *pdir, size_t offset)
{
	return pdir->pages[offset / PVR_PAGE_SIZE].va + offset % PVR_PAGE_SIZE;
}
