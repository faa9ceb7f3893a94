// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Page faults of regions whose pages may be absent. */
#include "rdma/page_fault.h"

#include "core/demand.h"
#include "rdma/completer.h"
#include "rdma/event.h"

#define REPEAT_NS 100000000ull
#define REFUSAL_NS 1000000000ull

static void report(struct pvr_adapter *adapter, struct pvr_mr *mr, uint64_t now)
{
	mr->pages.demand->fault.sent = now;
	pvr_event_async(adapter, PVR_EVENT_PAGE_FAULT, mr->handle);
}

static void begin(struct pvr_adapter *adapter, struct pvr_mr *mr,
		  const struct pvr_page_range *range, uint64_t now)
{
	struct pvr_page_fault *fault = &mr->pages.demand->fault;

	fault->state = PVR_FAULT_REPORTED;
	fault->first = range->first;
	fault->npages = range->npages;
	fault->since = now;
	report(adapter, mr, now);
}

/* Return: whether the guest has refused the first page of @range. */
static bool take_refusal(struct pvr_page_fault *fault, const struct pvr_page_range *range,
			 uint64_t now)
{
	bool is_same = range->first - fault->first < fault->npages;
	bool is_old = now - fault->since > REFUSAL_NS;

	if (fault->state != PVR_FAULT_REFUSED || !(is_same || is_old))
		return false;
	fault->state = PVR_FAULT_IDLE;
	return !is_old;
}

static uint32_t wait_of(const struct pvr_page_fault *fault, uint64_t now)
{
	uint64_t ns = (now - fault->since) / 2;

	if (ns < PVR_PAGE_WAIT_MIN_NS)
		return PVR_PAGE_WAIT_MIN_NS;
	return ns < PVR_PAGE_WAIT_MAX_NS ? (uint32_t)ns : PVR_PAGE_WAIT_MAX_NS;
}

enum pvr_page_state pvr_page_fault(const struct pvr_sg *sg, uint64_t offset, uint64_t len,
				   uint32_t *wait_ns)
{
	uint64_t now = pvr_now(sg->adapter->engine);
	struct pvr_page_range range;
	struct pvr_mr *mr = pvr_sg_absent(sg, offset, len, &range);
	struct pvr_page_fault *fault;
	uint32_t ns;

	if (!mr)
		return PVR_PAGE_FOUND;
	fault = &mr->pages.demand->fault;
	if (take_refusal(fault, &range, now))
		return PVR_PAGE_REFUSED;
	if (fault->state == PVR_FAULT_IDLE)
		begin(sg->adapter, mr, &range, now);
	else if (fault->state == PVR_FAULT_REPORTED && now - fault->sent >= REPEAT_NS)
		report(sg->adapter, mr, now);
	ns = wait_of(fault, now);
	if (*wait_ns < ns)
		*wait_ns = ns;
	return PVR_PAGE_ABSENT;
}

enum pvr_page_state pvr_requester_page_fault(struct pvr_qp *qp, const struct pvr_sg *sg,
					     uint64_t offset, uint64_t len)
{
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;
	enum pvr_page_state state;

	/* Most requests have one run. */
	if (sg->flat)
		return PVR_PAGE_FOUND;
	state = pvr_page_fault(sg, offset, len, &wait_ns);
	if (state == PVR_PAGE_ABSENT)
		pvr_requester_wait_page(qp, wait_ns);
	return state;
}
