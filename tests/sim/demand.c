// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions on demand: the driver makes pages present when the device reports a fault, and takes them
 * away at any time. What it has taken away must not be used any more.
 */
#include <errno.h>
#include <string.h>

#include "sim.h"

static uint32_t set_pages(struct sim_end *end, uint32_t state, uint64_t first, uint32_t npages)
{
	struct fg_guest *guest = end->fg.guest;
	const struct pvr_cmd_set_pages req = {
		.hdr = FG_CMD_HDR(PVR_CMD_SET_PAGES),
		.mr_handle = end->fg.mr.handle,
		.npages = npages,
		.first = first,
		.list_dma = fg_page_gpa(&guest->ram, end->demand.list),
		.state = state,
	};

	return fg_cmd(guest, &req, sizeof(req), NULL, 0);
}

/* Of the absent pages, but for what the program itself writes: only the device writes the areas between. */
static uint64_t hash_of(const struct sim *sim, const struct sim_end *end)
{
	const struct sim_demand *demand = &end->demand;
	size_t at = sim_flow_at(sim, SIM_IN, 0), last = sim_flow_at(sim, SIM_BACK + 1, 0);
	size_t first = demand->first * 4096ull, past = first + demand->npages * 4096ull;

	at = at > first ? at : first;
	last = last < past ? last : past;
	return sim_hash(end->fg.buf.va + at, last > at ? last - at : 0);
}

static void expect_unused(struct sim *sim, struct sim_end *end)
{
	if (end->demand.npages && hash_of(sim, end) != end->demand.hash)
		sim_fail(sim, "absent", "vm%u: absent pages %u to %u of region %u have changed",
			 end->vm->number, end->demand.first,
			 end->demand.first + end->demand.npages - 1, end->fg.mr.handle);
	end->demand.npages = 0;
}

static bool overlaps(const struct sim_demand *demand, uint64_t first, uint32_t npages)
{
	return first < demand->first + demand->npages && demand->first < first + npages;
}

static void make_present(struct sim *sim, struct sim_end *end, uint64_t first, uint32_t npages)
{
	uint64_t *list = fg_page_va(&end->fg.guest->ram, end->demand.list);

	if (overlaps(&end->demand, first, npages))
		expect_unused(sim, end);
	for (uint32_t i = 0; i < npages; i++)
		list[i] = fg_buf_gpa(&end->fg.buf, (first + i) * 4096);
	if (set_pages(end, PVR_PAGES_PRESENT, first, npages))
		sim_fail(sim, "command", "vm%u: SET_PAGES fails", end->vm->number);
	sim_trace(&sim->trace, "vm%u: %u pages from %lu of region %u are present", end->vm->number,
		  npages, (unsigned long)first, end->fg.mr.handle);
}

void sim_demand_open(struct sim *sim, struct sim_end *end)
{
	struct fg_end *fg = &end->fg;
	struct pvr_cmd_create_mr req =
		fg_layout_request(&fg->pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, fg->buf.size);

	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	if (fg_mr_create_as(&fg->pd, &req, &fg->mr))
		sim_fail(sim, "command", "vm%u: no region on demand", end->vm->number);
	fg->mr.va = fg->buf.va;
	end->demand.list = fg_ram_get_page(&fg->guest->ram);
	end->demand.is = true;
}

/* QUERY_FAULT fails with ENOENT when no pages are missing. */
static void resolve(struct sim *sim, struct sim_end *end)
{
	const struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_FAULT),
					    .handle = end->fg.mr.handle };
	struct pvr_resp_query_fault fault;
	uint32_t err;

	while (!(err = fg_cmd(end->fg.guest, &req, sizeof(req), &fault, sizeof(fault))))
		make_present(sim, end, fault.first, fault.npages);
	if (err != ENOENT)
		sim_fail(sim, "command", "vm%u: QUERY_FAULT: ERR 0x%x", end->vm->number, err);
}

static struct sim_end *end_of(struct sim *sim, unsigned int i)
{
	return sim_flow_of(sim, i)->from;
}

void sim_demand_poll(struct sim *sim, struct sim_vm *vm)
{
	struct pvr_eqe eqe;

	while (fg_event_poll(vm->guest, &eqe))
		for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
			struct sim_end *end = end_of(sim, i);

			if (eqe.type == PVR_EVENT_PAGE_FAULT && end->vm == vm && end->demand.is &&
			    end->fg.mr.handle == eqe.info)
				resolve(sim, end);
		}
}

bool sim_demand_evict(struct sim *sim, struct sim_rng *rng)
{
	struct sim_end *end = end_of(sim, sim_below(rng, 2 * sim->config.pairs));
	uint32_t all = end->fg.buf.npages, first = sim_below(rng, all);
	uint32_t npages = 1 + sim_below(rng, all - first);

	if (!end->demand.is || !sim_vm_runs(end->vm))
		return false;
	expect_unused(sim, end);
	if (set_pages(end, PVR_PAGES_ABSENT, first, npages))
		sim_fail(sim, "command", "vm%u: SET_PAGES fails", end->vm->number);
	end->demand.first = first;
	end->demand.npages = npages;
	end->demand.hash = hash_of(sim, end);
	sim_trace(&sim->trace, "vm%u: %u pages from %u of region %u are absent", end->vm->number,
		  npages, first, end->fg.mr.handle);
	return true;
}
