// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions whose pages may be absent.
 *
 * The lock of the adapter protects the tree. Copies between adapters of this process hold it
 * from the lookup of a page to the end of the copy, so a page that is removed is not in use.
 */
#include "core/demand.h"

#include "core/charge.h"
#include "core/ext_dma.h"

/* Pages below a branch. */
#define BRANCH_PAGES ((uint64_t)PVR_DEMAND_NODE * PVR_DEMAND_NODE)

/* ------------------------------------------------------------------------- the tree */

static size_t root_bytes(uint64_t branches)
{
	return sizeof(struct pvr_demand) + branches * sizeof(struct pvr_demand_branch *);
}

struct pvr_demand *pvr_demand_create(struct pvr_adapter *adapter, uint64_t npages)
{
	uint64_t branches = (npages + BRANCH_PAGES - 1) / BRANCH_PAGES;
	struct pvr_demand *demand = pvr_charge_alloc(adapter, root_bytes(branches));

	if (demand)
		demand->count = branches;
	return demand;
}

static void branch_destroy(struct pvr_adapter *adapter, struct pvr_demand_branch *branch)
{
	for (uint32_t i = 0; branch->used; i++) {
		if (!branch->leaf[i])
			continue;
		pvr_charge_free(adapter, branch->leaf[i], sizeof(*branch->leaf[i]));
		branch->used--;
	}
	pvr_charge_free(adapter, branch, sizeof(*branch));
}

bool pvr_demand_clear_some(struct pvr_adapter *adapter, struct pvr_pages *pages)
{
	struct pvr_demand *demand = pages->demand;
	struct pvr_demand_branch **branch;

	if (!pages->on_demand)
		return true;
	for (; demand->cleared < demand->count; demand->cleared++) {
		branch = &demand->branch[demand->cleared];
		if (!*branch)
			continue;
		if (!pvr_job_may_go_on(adapter))
			return false;
		pvr_job_spend(adapter, (*branch)->used * PVR_WORK_WINDOW);
		branch_destroy(adapter, *branch);
		*branch = NULL;
	}
	return true;
}

void pvr_demand_destroy(struct pvr_adapter *adapter, struct pvr_demand *demand)
{
	for (uint64_t i = 0; i < demand->count; i++)
		if (demand->branch[i])
			branch_destroy(adapter, demand->branch[i]);
	pvr_charge_free(adapter, demand, root_bytes(demand->count));
}

static struct pvr_demand_branch *branch_of(const struct pvr_demand *demand, uint64_t page)
{
	return demand->branch[page / BRANCH_PAGES];
}

static uint32_t leaf_index(uint64_t page)
{
	return page / PVR_DEMAND_NODE % PVR_DEMAND_NODE;
}

/* Return: the leaf of a page, or NULL. */
static struct pvr_demand_leaf *leaf_of(const struct pvr_demand *demand, uint64_t page)
{
	const struct pvr_demand_branch *branch = branch_of(demand, page);

	return branch ? branch->leaf[leaf_index(page)] : NULL;
}

/* Return: where a page is, or NULL if it is absent. */
static uint8_t *page_va(const struct pvr_demand *demand, uint64_t page)
{
	const struct pvr_demand_leaf *leaf = leaf_of(demand, page);

	return leaf ? leaf->page[page % PVR_DEMAND_NODE] : NULL;
}

/* Return: the leaf of a page, made if necessary; or NULL. */
static struct pvr_demand_leaf *leaf_get(struct pvr_adapter *adapter, struct pvr_demand *demand,
					uint64_t page)
{
	struct pvr_demand_branch **branch = &demand->branch[page / BRANCH_PAGES];
	struct pvr_demand_leaf **leaf;

	if (!*branch) {
		*branch = pvr_charge_alloc(adapter, sizeof(**branch));
		if (!*branch)
			return NULL;
	}
	leaf = &(*branch)->leaf[leaf_index(page)];
	if (!*leaf) {
		*leaf = pvr_charge_alloc(adapter, sizeof(**leaf));
		(*branch)->used += *leaf != NULL;
	}
	return *leaf;
}

/* Free the nodes above a page that have no page. */
static void prune(struct pvr_adapter *adapter, struct pvr_demand *demand, uint64_t page)
{
	struct pvr_demand_branch *branch = branch_of(demand, page);
	struct pvr_demand_leaf *leaf = leaf_of(demand, page);

	if (leaf && !leaf->used) {
		pvr_charge_free(adapter, leaf, sizeof(*leaf));
		branch->leaf[leaf_index(page)] = NULL;
		branch->used--;
	}
	if (branch && !branch->used) {
		pvr_charge_free(adapter, branch, sizeof(*branch));
		demand->branch[page / BRANCH_PAGES] = NULL;
	}
}

/* The first page behind @page that has another leaf. */
static uint64_t next_leaf(uint64_t page)
{
	return (page / PVR_DEMAND_NODE + 1) * PVR_DEMAND_NODE;
}

/* -------------------------------------------------------------------------- lookups */

uint8_t *pvr_demand_run(const struct pvr_demand *demand, uint64_t offset, uint64_t len,
			uint64_t *contig)
{
	const struct pvr_demand_leaf *leaf = leaf_of(demand, offset / PVR_PAGE_SIZE);
	uint64_t run = PVR_PAGE_SIZE - offset % PVR_PAGE_SIZE;
	uint32_t i = offset / PVR_PAGE_SIZE % PVR_DEMAND_NODE;
	uint8_t *va = leaf ? leaf->page[i] : NULL;

	*contig = 0;
	if (!va)
		return NULL;
	for (; run < len && i + 1 < PVR_DEMAND_NODE; run += PVR_PAGE_SIZE, i++)
		if (leaf->page[i + 1] != leaf->page[i] + PVR_PAGE_SIZE)
			break;
	*contig = run < len ? run : len;
	return va + offset % PVR_PAGE_SIZE;
}

bool pvr_demand_check(struct pvr_pages *pages, const struct pvr_ram_region *region, uint64_t *at,
		      uint32_t *budget)
{
	const struct pvr_demand *demand = pages->demand;
	uint64_t parts = pages->size / PVR_PAGE_SIZE;
	const uint8_t *va;

	while (*at < parts && !pages->broken) {
		if (!*budget)
			return false;
		--*budget;
		if (!branch_of(demand, *at)) {
			*at = (*at / BRANCH_PAGES + 1) * BRANCH_PAGES;
			continue;
		}
		if (!leaf_of(demand, *at)) {
			*at = next_leaf(*at);
			continue;
		}
		va = page_va(demand, *at);
		pages->broken = va && va < region->va + region->size &&
				va + PVR_PAGE_SIZE > region->va;
		++*at;
	}
	*at = 0;
	return true;
}

uint64_t pvr_demand_next(const struct pvr_demand *demand, uint64_t page, uint64_t end)
{
	while (page < end && !page_va(demand, page)) {
		if (!branch_of(demand, page))
			page = (page / BRANCH_PAGES + 1) * BRANCH_PAGES;
		else if (!leaf_of(demand, page))
			page = next_leaf(page);
		else
			page++;
	}
	return page < end ? page : end;
}

static bool find_absent(const struct pvr_demand *demand, uint64_t offset, uint64_t len,
			struct pvr_page_range *range)
{
	uint64_t i = offset / PVR_PAGE_SIZE, end = (offset + len - 1) / PVR_PAGE_SIZE + 1;

	while (i < end && page_va(demand, i))
		i++;
	range->first = i;
	range->npages = 0;
	for (; i < end && !page_va(demand, i) && range->npages < PVR_SET_PAGES_MAX; i++)
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
		    find_absent(mr->where->demand,
				mr->offset + (sg->seg[i].addr + skip - mr->start), n, range))
			return pvr_table_get(&sg->adapter->mrs, mr->handle);
	}
	return NULL;
}

/* -------------------------------------------------------------------------- changes */

/* Make the leaves of a range. Return: false, with no leaf that is empty, or true. */
static bool make_leaves(struct pvr_adapter *adapter, struct pvr_demand *demand,
			const struct pvr_page_range *range)
{
	uint64_t end = range->first + range->npages, i, done;

	for (i = range->first; i < end; i = next_leaf(i)) {
		if (leaf_get(adapter, demand, i))
			continue;
		for (done = range->first; done <= i; done = next_leaf(done))
			prune(adapter, demand, done);
		return false;
	}
	return true;
}

int pvr_demand_enter(struct pvr_adapter *adapter, struct pvr_mr *mr,
		     const struct pvr_page_range *range, uint8_t *const *va)
{
	struct pvr_demand *demand = mr->pages.demand;
	struct pvr_demand_leaf *leaf;
	const uint8_t *old;
	uint8_t **page;
	uint32_t i;

	for (i = 0; i < range->npages; i++) {
		old = page_va(demand, range->first + i);
		if (old && old != va[i])
			return -EINVAL;
	}
	if (!make_leaves(adapter, demand, range))
		return -ENOMEM;
	for (i = 0; i < range->npages; i++) {
		leaf = leaf_of(demand, range->first + i);
		page = &leaf->page[(range->first + i) % PVR_DEMAND_NODE];
		leaf->used += !*page;
		*page = va[i];
	}
	return 0;
}

void pvr_demand_remove(struct pvr_adapter *adapter, struct pvr_mr *mr,
		       const struct pvr_page_range *range)
{
	struct pvr_demand *demand = mr->pages.demand;
	uint64_t i = range->first, end = range->first + range->npages, stop;
	struct pvr_demand_leaf *leaf;
	uint8_t **page;

	pvr_ext_dma_revoke_mr(mr);
	for (; i < end; i = stop) {
		stop = next_leaf(i) < end ? next_leaf(i) : end;
		leaf = leaf_of(demand, i);
		if (!leaf)
			continue;
		for (; i < stop; i++) {
			page = &leaf->page[i % PVR_DEMAND_NODE];
			leaf->used -= *page != NULL;
			*page = NULL;
		}
		prune(adapter, demand, i - 1);
	}
}
