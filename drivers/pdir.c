// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Page directories. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched.h>

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

/* Return: an array of @n coherent pages, or NULL. */
static struct pvr_page *pages_alloc(struct device *dma_dev, u32 n)
{
	struct pvr_page *pages = kvcalloc(n, sizeof(*pages), GFP_KERNEL);
	u32 i;

	if (!pages)
		return NULL;
	for (i = 0; i < n; i++) {
		if (page_alloc(dma_dev, &pages[i]))
			goto err_free;
		cond_resched();
	}
	return pages;

err_free:
	while (i--)
		page_free(dma_dev, &pages[i]);
	kvfree(pages);
	return NULL;
}

static void pages_free(struct device *dma_dev, struct pvr_page *pages, u32 n)
{
	u32 i;

	for (i = 0; pages && i < n; i++) {
		page_free(dma_dev, &pages[i]);
		cond_resched();
	}
	kvfree(pages);
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

	pdir->dirs = pages_alloc(pdir->dma_dev, ndirs);
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

	if (page_alloc(pdir->dma_dev, &pdir->dir))
		return -ENOMEM;
	if (pdir->npages > PVR_PDIR_MAX_PAGES)
		err = pdir_alloc_dirs(pdir);
	if (err)
		return err;
	pdir->tables = pages_alloc(pdir->dma_dev, ntables);
	if (!pdir->tables)
		return -ENOMEM;
	list_pages(pdir->dirs ?: &pdir->dir, pdir->tables, ntables);
	return 0;
}

static int pdir_alloc_pages(struct pvr_pdir *pdir)
{
	u32 i;

	pdir->pages = pages_alloc(pdir->dma_dev, pdir->npages);
	if (!pdir->pages)
		return -ENOMEM;
	for (i = 0; i < pdir->npages; i++)
		pvr_pdir_set(pdir, i, pdir->pages[i].dma);
	return 0;
}

int pvr_pdir_init(struct pvr_pdir *pdir, struct device *dma_dev, u64 npages,
		  bool own_pages)
{
	int err;

	if (!npages || npages > PVR_PDIR_MAX_PAGES)
		return -EINVAL;
	pdir->dma_dev = dma_dev;
	pdir->npages = npages;
	err = pdir_alloc_tables(pdir);
	if (!err && own_pages)
		err = pdir_alloc_pages(pdir);
	if (err)
		pvr_pdir_exit(pdir);
	return err;
}

int pvr_pdir_init_large(struct pvr_pdir *pdir, struct device *dma_dev,
			u64 npages)
{
	int err;

	if (!npages || npages > PVR_PDIR3_MAX_PAGES)
		return -EINVAL;
	pdir->dma_dev = dma_dev;
	pdir->npages = npages;
	err = pdir_alloc_tables(pdir);
	if (err)
		pvr_pdir_exit(pdir);
	return err;
}

void pvr_pdir_free_lists(struct pvr_pdir *pdir)
{
	pages_free(pdir->dma_dev, pdir->tables, pdir_num_tables(pdir));
	pages_free(pdir->dma_dev, pdir->dirs, pdir_num_dirs(pdir));
	page_free(pdir->dma_dev, &pdir->dir);
	pdir->tables = NULL;
	pdir->dirs = NULL;
}

void pvr_pdir_exit(struct pvr_pdir *pdir)
{
	if (!pdir->dma_dev)
		return;
	pages_free(pdir->dma_dev, pdir->pages, pdir->npages);
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
