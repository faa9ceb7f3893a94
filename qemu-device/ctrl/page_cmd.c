// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands about the pages of regions on demand. */
#include <errno.h>

#include "core/demand.h"
#include "ctrl/ctrl.h"

static struct pvr_mr *get(struct pvr_adapter *adapter, uint32_t handle)
{
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, handle);

	return mr && mr->pages.on_demand ? mr : NULL;
}

int pvr_cmd_query_fault(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	struct pvr_mr *mr = get(adapter, req->handle.handle);

	if (!mr)
		return -EINVAL;
	if (mr->pages.demand->fault.state != PVR_FAULT_REPORTED)
		return -ENOENT;
	mr->pages.demand->fault.state = PVR_FAULT_TAKEN;
	resp->query_fault.first = mr->pages.demand->fault.first;
	resp->query_fault.npages = mr->pages.demand->fault.npages;
	return 0;
}

/* Each entry of the list is read once. */
static int set_present(struct pvr_adapter *adapter, struct pvr_mr *mr,
		       const struct pvr_page_range *range, uint64_t list_dma)
{
	const volatile uint64_t *list_shm = pvr_ram_page(&adapter->ram, list_dma, false);
	bool write = mr->access & PVR_ACCESS_LOCAL_WRITE;
	uint8_t *va[PVR_SET_PAGES_MAX];
	uint32_t i;
	int err;

	if (range->npages > PVR_SET_PAGES_MAX)
		return -EINVAL;
	if (!list_shm)
		return -EFAULT;
	for (i = 0; i < range->npages; i++) {
		va[i] = pvr_ram_page(&adapter->ram, list_shm[i], write);
		if (!va[i])
			return -EFAULT;
	}
	err = pvr_demand_enter(adapter, mr, range, va);
	if (!err && mr->pages.demand->fault.first - range->first < range->npages)
		mr->pages.demand->fault.state = PVR_FAULT_IDLE;
	return err;
}

static int set_absent(struct pvr_adapter *adapter, struct pvr_mr *mr,
		      const struct pvr_page_range *range)
{
	if (range->npages > PVR_SET_ABSENT_MAX)
		return -EINVAL;
	pvr_demand_remove(adapter, mr, range);
	return 0;
}

static int set_refused(struct pvr_adapter *adapter, struct pvr_mr *mr,
		       const struct pvr_page_range *range)
{
	if (mr->pages.demand->fault.state != PVR_FAULT_TAKEN ||
	    mr->pages.demand->fault.first != range->first)
		return -EINVAL;
	mr->pages.demand->fault.state = PVR_FAULT_REFUSED;
	mr->pages.demand->fault.since = pvr_now(adapter->engine);
	return 0;
}

int pvr_cmd_set_pages(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_set_pages *cmd = &req->set_pages;
	const struct pvr_page_range range = { cmd->first, cmd->npages };
	struct pvr_mr *mr = get(adapter, cmd->mr_handle);
	uint64_t pages;

	if (!mr || !range.npages)
		return -EINVAL;
	pages = mr->pages.size / PVR_PAGE_SIZE;
	if (range.first >= pages || range.npages > pages - range.first)
		return -EINVAL;
	switch (cmd->state) {
	case PVR_PAGES_PRESENT:
		return set_present(adapter, mr, &range, cmd->list_dma);
	case PVR_PAGES_ABSENT:
		return set_absent(adapter, mr, &range);
	case PVR_PAGES_REFUSED:
		return set_refused(adapter, mr, &range);
	default:
		return -EINVAL;
	}
}
