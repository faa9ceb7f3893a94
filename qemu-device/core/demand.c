// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions whose pages may be absent.
 *
 * The lock of the adapter protects the table. Copies between adapters of this process hold it
 * from the lookup of a page to the end of the copy, so a page that is removed is not in use.
 */
#include "core/demand.h"

#include "core/ext_dma.h"

static bool find_absent(const struct pvr_pages *pages, uint64_t offset, uint64_t len,
			struct pvr_page_range *range)
{
	uint8_t *const *page = pages->demand->page;
	uint64_t i = offset / PVR_PAGE_SIZE, end = (offset + len - 1) / PVR_PAGE_SIZE + 1;

	while (i < end && page[i])
		i++;
	range->first = i;
	range->npages = 0;
	for (; i < end && !page[i] && range->npages < PVR_SET_PAGES_MAX; i++)
		range->npages++;
	return range->npages;
}

struct pvr_mr *pvr_sg_absent(const struct pvr_sg *sg, uint64_t offset, uint64_t len,
			     struct pvr_page_range *range)
{
	const struct pvr_mr *mr;
	uint64_t skip, n;
	uint32_t i;

	if (sg->flat)
		return NULL;
	for (i = 0; i < sg->count && len; i++) {
		skip = offset < sg->seg[i].len ? offset : sg->seg[i].len;
		n = sg->seg[i].len - skip < len ? sg->seg[i].len - skip : len;
		offset -= skip;
		len -= n;
		mr = sg->seg[i].mr;
		if (n && mr->where && mr->where->on_demand &&
		    find_absent(mr->where, mr->offset + (sg->seg[i].addr + skip - mr->start), n,
				range))
			return pvr_table_get(&sg->adapter->mrs, mr->handle);
	}
	return NULL;
}

int pvr_demand_enter(struct pvr_mr *mr, const struct pvr_page_range *range, uint8_t *const *va)
{
	uint8_t **page = mr->pages.demand->page + range->first;
	uint32_t i;

	for (i = 0; i < range->npages; i++)
		if (page[i] && page[i] != va[i])
			return -EINVAL;
	memcpy(page, va, range->npages * sizeof(*va));
	return 0;
}

void pvr_demand_remove(struct pvr_mr *mr, const struct pvr_page_range *range)
{
	pvr_ext_dma_revoke_mr(mr);
	memset(mr->pages.demand->page + range->first, 0,
	       range->npages * sizeof(*mr->pages.demand->page));
}
