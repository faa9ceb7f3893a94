/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Regions whose pages may be absent. */
#ifndef PVR_DEMAND_H
#define PVR_DEMAND_H

#include "core/sg.h"

struct pvr_page_range {
	uint64_t first; /* index of the page in its region */
	uint32_t npages;
};

/*
 * Find the first absent page of @len bytes from @offset on, and the absent pages behind it that
 * belong to the same bytes and region, at most PVR_SET_PAGES_MAX. Return: the region, or NULL if
 * no page is absent.
 */
struct pvr_mr *pvr_sg_absent(const struct pvr_sg *sg, uint64_t offset, uint64_t len,
			     struct pvr_page_range *range);

/*
 * Enter pages at @va; each that is present must have the same address. Return: 0, or -EINVAL with
 * nothing changed.
 */
int pvr_demand_enter(struct pvr_mr *mr, const struct pvr_page_range *range, uint8_t *const *va);
/* The pages are absent: nothing of this process, and no NIC, uses them after the return. */
void pvr_demand_remove(struct pvr_mr *mr, const struct pvr_page_range *range);

#endif /* PVR_DEMAND_H */
