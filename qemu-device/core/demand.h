/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions whose pages may be absent.
 *
 * DOC: the tree
 *
 * Programs register more than they use, up to all their addresses. So the pages are in a tree
 * of three levels: a root of the region's size, and nodes of 512 entries that exist while a page
 * below them is present. A region of 2^47 bytes without pages has a root of 1 MiB. Root and nodes
 * are charged to the adapter.
 */
#ifndef PVR_DEMAND_H
#define PVR_DEMAND_H

#include "core/sg.h"

#define PVR_DEMAND_NODE 512u

/* A page fault of a region, see rdma/page_fault.h. */
struct pvr_page_fault {
	enum {
		PVR_FAULT_IDLE,
		PVR_FAULT_REPORTED, /* by PVR_EVENT_PAGE_FAULT */
		PVR_FAULT_TAKEN, /* by QUERY_FAULT */
		PVR_FAULT_REFUSED,
	} state;
	uint32_t npages;
	uint64_t first; /* index of the page */
	uint64_t since, sent; /* when it began or was refused; its last event */
};

struct pvr_demand_leaf {
	uint32_t used;
	uint8_t *page[PVR_DEMAND_NODE]; /* NULL: absent */
};

struct pvr_demand_branch {
	uint32_t used;
	struct pvr_demand_leaf *leaf[PVR_DEMAND_NODE];
};

struct pvr_demand {
	struct pvr_page_fault fault;
	uint64_t count; /* branches ... */
	uint64_t cleared; /* ... of these, by pvr_demand_clear_some() */
	struct pvr_demand_branch *branch[];
};

struct pvr_page_range {
	uint64_t first; /* index of the page in its region */
	uint32_t npages;
};

/* All of @npages are absent. Return: NULL if the adapter's limit or the memory is reached. */
struct pvr_demand *pvr_demand_create(struct pvr_adapter *adapter, uint64_t npages);
void pvr_demand_destroy(struct pvr_adapter *adapter, struct pvr_demand *demand);
/*
 * The first part of pvr_demand_destroy(), in steps. No effect on other pages. Return: false if
 * the command needs more steps.
 */
bool pvr_demand_clear_some(struct pvr_adapter *adapter, struct pvr_pages *pages);

/* As pvr_pages_run() and pvr_pages_check(). A run may end where a node ends. */
uint8_t *pvr_demand_run(const struct pvr_demand *demand, uint64_t offset, uint64_t len,
			uint64_t *contig);
bool pvr_demand_check(struct pvr_pages *pages, const struct pvr_ram_region *region, uint64_t *at,
		      uint32_t *budget);

/* Return: the first page from @page on that is present; @end: none below @end. */
uint64_t pvr_demand_next(const struct pvr_demand *demand, uint64_t page, uint64_t end);

/*
 * Find the first absent page of @len bytes from @offset on, and the absent pages behind it that
 * belong to the same bytes and region, at most PVR_SET_PAGES_MAX. Return: the region, or NULL if
 * no page is absent.
 */
struct pvr_mr *pvr_sg_absent(const struct pvr_sg *sg, uint64_t offset, uint64_t len,
			     struct pvr_page_range *range);

/*
 * Enter pages at @va; each that is present must have the same address. Return: 0; -EINVAL or
 * -ENOMEM with nothing changed.
 */
int pvr_demand_enter(struct pvr_adapter *adapter, struct pvr_mr *mr,
		     const struct pvr_page_range *range, uint8_t *const *va);
/* The pages are absent: nothing of this process, and no NIC, uses them after the return. */
void pvr_demand_remove(struct pvr_adapter *adapter, struct pvr_mr *mr,
		       const struct pvr_page_range *range);

#endif /* PVR_DEMAND_H */
