/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Page directories: the lists of an object's pages that the device reads. */
#ifndef PVR_PDIR_H
#define PVR_PDIR_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct device;
struct ib_umem;

/*
 * One coherent page. The address is kept here, because the device can write its own copy.
 */
struct pvr_page {
	void *va;
	dma_addr_t dma;
};

#define PVR_PAGE_CACHE_MAX 16

/**
 * struct pvr_page_cache - pages for directories and tables
 * @dma_dev: the PCI device
 * @lock: protects the rest
 * @num: spare pages
 * @spare: these pages
 *
 * Most directories live only as long as the command that names them. A spare page need not
 * be cleared, because the device reads only the entries that were written.
 */
struct pvr_page_cache {
	struct device *dma_dev;
	spinlock_t lock; /* protects num and spare */
	u32 num;
	struct pvr_page spare[PVR_PAGE_CACHE_MAX];
};

void pvr_page_cache_init(struct pvr_page_cache *cache, struct device *dma_dev);
/**
 * pvr_page_cache_exit() - free the spare pages
 * @cache: no directory has pages of it any more
 */
void pvr_page_cache_exit(struct pvr_page_cache *cache);

/**
 * struct pvr_pdir - a page directory and, for kernel objects, the pages in it
 * @cache: where the pages of the lists are from; NULL if unused
 * @dir: the first page, whose address the device gets
 * @dirs: with three levels: the directory pages, which @dir lists; or NULL
 * @tables: the table pages; NULL after pvr_pdir_free_lists()
 * @pages: the data pages that the directory owns, or NULL
 * @npages: number of data pages in the directory
 */
struct pvr_pdir {
	struct pvr_page_cache *cache;
	struct pvr_page dir;
	struct pvr_page *dirs;
	struct pvr_page *tables;
	struct pvr_page *pages;
	u32 npages;
};

/**
 * pvr_pdir_init() - allocate a directory of two levels for @npages pages
 * @pdir: zeroed by the caller
 * @cache: the adapter's
 * @npages: 1 .. PVR_PDIR_MAX_PAGES
 * @own_pages: also allocate @npages zeroed pages and enter them
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (bad @npages) or -ENOMEM; @pdir owns nothing on failure.
 */
int pvr_pdir_init(struct pvr_pdir *pdir, struct pvr_page_cache *cache,
		  u64 npages, bool own_pages);

/**
 * pvr_pdir_init_large() - allocate a directory of two or, if needed, three levels
 * @pdir: zeroed by the caller
 * @cache: the adapter's
 * @npages: 1 .. PVR_PDIR3_MAX_PAGES
 *
 * Context: may sleep.
 * Return: as pvr_pdir_init().
 */
int pvr_pdir_init_large(struct pvr_pdir *pdir, struct pvr_page_cache *cache,
			u64 npages);

/**
 * pvr_pdir_levels() - number of levels of a directory
 * @pdir: an initialised directory
 *
 * Return: 3 after pvr_pdir_init_large() of more than PVR_PDIR_MAX_PAGES pages, else 2.
 */
static inline u32 pvr_pdir_levels(const struct pvr_pdir *pdir)
{
	return pdir->dirs ? 3 : 2;
}

/**
 * pvr_pdir_free_lists() - free a directory, but not the data pages that it owns
 * @pdir: an initialised directory; the device must not read it any more
 *
 * npages, and pvr_pdir_at() if the directory owns pages, stay valid until pvr_pdir_exit().
 *
 * Context: may sleep.
 */
void pvr_pdir_free_lists(struct pvr_pdir *pdir);

/**
 * pvr_pdir_exit() - free a directory and the pages it owns
 * @pdir: may be zeroed; the device must not use it any more
 *
 * Context: may sleep.
 */
void pvr_pdir_exit(struct pvr_pdir *pdir);

/**
 * pvr_pdir_set() - enter a data page
 * @pdir: an initialised directory
 * @idx: less than npages
 * @dma: bus address of the page
 */
void pvr_pdir_set(struct pvr_pdir *pdir, u32 idx, dma_addr_t dma);

/**
 * pvr_pdir_set_umem() - enter all pages of pinned user memory
 * @pdir: an initialised directory, large enough from @first on
 * @first: index of the first page's entry
 * @umem: the memory
 * @page_size: bytes per page, from ib_umem_find_best_pgoff(), or PVR_PAGE_SIZE
 *
 * Context: may sleep.
 */
void pvr_pdir_set_umem(struct pvr_pdir *pdir, u32 first, struct ib_umem *umem,
		       unsigned long page_size);

/**
 * pvr_pdir_at() - address of byte @offset in the pages that the directory owns
 * @pdir: initialised with own_pages
 * @offset: less than npages * PVR_PAGE_SIZE; an access must not cross a page
 */
void *pvr_pdir_at(const struct pvr_pdir *pdir, size_t offset);

#endif /* PVR_PDIR_H */
