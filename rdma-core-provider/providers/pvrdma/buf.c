// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ring memory: layout, allocation, protection from fork(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <util/util.h>

#include "pool.h"
#include "pvrdma.h"

size_t pvr_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* The kernel pins whole pages, and MADV_DONTFORK applies to whole pages. */
static int keep_from_children(const struct pvr_buf *buf, size_t size)
{
	if ((uintptr_t)buf->addr % pvr_page_size())
		return EINVAL;
	return ibv_dontfork_range(buf->addr, size);
}

static int map_pages(struct pvr_buf *buf, size_t size)
{
	int err;

	buf->addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;
	err = keep_from_children(buf, size);
	if (err)
		munmap(buf->addr, size);
	return err;
}

static int alloc_default(struct pvr_buf *buf, size_t size, struct pvr_pool *pool)
{
	size_t pages = size / pvr_page_size();

	buf->parent = NULL;
	buf->pool = pages <= PVR_POOL_MAX_PAGES ? pool : NULL;
	if (!buf->pool)
		return map_pages(buf, size);
	return pvr_pool_take(pool, pages, &buf->addr, &buf->slab);
}

static void free_default(struct pvr_buf *buf)
{
	if (buf->pool) {
		pvr_pool_put(buf->pool, buf->slab, buf->addr, buf->size / pvr_page_size());
		return;
	}
	ibv_dofork_range(buf->addr, buf->size);
	munmap(buf->addr, buf->size);
}

/* The application's allocator may return IBV_ALLOCATOR_USE_DEFAULT. */
static int alloc_from(struct pvr_buf *buf, size_t size, struct pvr_parent_domain *parent,
		      uint64_t resource_type, struct pvr_pool *pool)
{
	struct ibv_pd *ibpd = &parent->pd.ibv_pd;
	int err;

	buf->addr = parent->alloc(ibpd, parent->pd_context, size, pvr_page_size(), resource_type);
	if (buf->addr == IBV_ALLOCATOR_USE_DEFAULT)
		return alloc_default(buf, size, pool);
	if (!buf->addr)
		return ENOMEM;
	err = keep_from_children(buf, size);
	if (err) {
		parent->free(ibpd, parent->pd_context, buf->addr, resource_type);
		return err;
	}
	buf->parent = parent;
	buf->resource_type = resource_type;
	atomic_fetch_add(&parent->pd.users, 1);
	return 0;
}

static void give_back(struct pvr_buf *buf)
{
	struct pvr_parent_domain *parent = buf->parent;

	ibv_dofork_range(buf->addr, buf->size);
	parent->free(&parent->pd.ibv_pd, parent->pd_context, buf->addr, buf->resource_type);
	atomic_fetch_sub(&parent->pd.users, 1);
}

/*
 * Clear the first page, which has the indices, and write once to each other page: what the
 * device finds behind the indices it does not read. Stock drivers pin work queues for reading
 * only, although the device writes cons_head into their first page. So all pages must be
 * private before that, and not the shared zero page.
 */
static void prepare_pages(uint8_t *addr, size_t size)
{
	size_t page = pvr_page_size(), at;

	memset(addr, 0, page);
	for (at = page; at < size; at += page)
		*(volatile uint8_t *)(addr + at) = 0;
}

int pvr_buf_alloc(const struct pvr_context *ctx, struct pvr_buf *buf, size_t size,
		  struct ibv_pd *ibpd, uint64_t resource_type)
{
	struct pvr_parent_domain *parent = to_pvr_parent_domain(ibpd);
	int err;

	size = align(size, pvr_page_size());
	err = parent && parent->alloc ? alloc_from(buf, size, parent, resource_type, ctx->pool)
				      : alloc_default(buf, size, ctx->pool);
	if (err)
		return err;
	prepare_pages(buf->addr, size);
	buf->size = size;
	return 0;
}

void pvr_buf_free(struct pvr_buf *buf)
{
	if (!buf->size)
		return;
	if (buf->parent)
		give_back(buf);
	else
		free_default(buf);
	buf->size = 0;
}

static uint32_t order_of(size_t size)
{
	uint32_t order = 0;

	while (((size_t)1 << order) < size)
		order++;
	return order;
}

size_t pvr_wq_layout(struct pvr_wq *wq, uint32_t num, uint32_t max_sge, size_t hdr_size,
		     size_t min_stride)
{
	size_t stride = hdr_size + max_sge * sizeof(struct pvr_sge);

	wq->num = 1u << order_of(num);
	wq->mask = wq->num - 1;
	wq->idx_mask = 2 * wq->num - 1;
	wq->max_sge = max_sge;
	wq->stride = (size_t)1 << order_of(stride < min_stride ? min_stride : stride);
	return wq->num * wq->stride;
}
