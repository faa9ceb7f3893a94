// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RAM of which single pages can be unplugged. */
#include "slots.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fg_dirty.h"
#include "fg_gid.h"
#include "fg_trap.h"

void t_slots_init(void)
{
	signal(SIGSEGV, SIG_DFL);
	fg_trap_install();
}

uint32_t t_first_slot(const struct fg_ram *ram)
{
	return ram->linear0 - T_SLOTS;
}

/* A fixed order in which neighbors are far from each other. */
static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a * 37 % T_SLOTS,
		       y = *(const uint32_t *)b * 37 % T_SLOTS;

	return x < y ? -1 : x > y;
}

void t_prefer_slots(struct fg_ram *ram, bool prefer)
{
	uint32_t last[T_SLOTS], n = 0, rest = 0;

	for (uint32_t i = 0; i < ram->nfree; i++) {
		if (ram->free[i] >= t_first_slot(ram))
			last[n++] = ram->free[i];
		else
			ram->free[rest++] = ram->free[i];
	}
	qsort(last, n, sizeof(last[0]), compare);
	if (!prefer)
		memmove(ram->free + n, ram->free, rest * sizeof(last[0]));
	memcpy(ram->free + (prefer ? rest : 0), last, n * sizeof(last[0]));
}

bool t_slot_is_used(const struct fg_ram *ram, uint32_t page)
{
	for (uint32_t i = 0; i < ram->nfree; i++)
		if (ram->free[i] == page)
			return false;
	return true;
}

static void map(struct fg_guest *g, uint32_t page, uint32_t npages)
{
	expect_ok(pvr_adapter_map_ram(g->adapter, fg_page_gpa(&g->ram, page),
				      (uint64_t)npages << PVR_PAGE_SHIFT, fg_page_va(&g->ram, page),
				      true));
}

/* The last piece of RAM becomes a region, the slots, and a region. */
static void split_ram(struct fg_guest *g)
{
	const struct fg_ram_region *last = &g->ram.region[FG_RAM_REGIONS - 1];
	uint32_t first = t_first_slot(&g->ram), page;

	fg_dirty_unmap(g, last);
	map(g, last->page0, first - last->page0);
	for (page = first; page < g->ram.linear0; page++)
		map(g, page, 1);
	map(g, page, g->ram.npages - page);
}

struct fg_guest *t_split_guest(struct fg_host *host, uint32_t number)
{
	struct fg_guest_config config;
	struct fg_guest *g;
	uint8_t gid[16];

	fg_guest_config_init(&config, number);
	g = fg_guest_create(host, &config);
	split_ram(g);
	expect_ok(fg_guest_boot(g));
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(g, 0, gid));
	return g;
}

static void *slot_va(struct fg_guest *g, uint32_t page)
{
	assert_in_range(page, t_first_slot(&g->ram), g->ram.linear0 - 1);
	return fg_page_va(&g->ram, page);
}

/* The address stays taken, so that no other memory is there. */
void t_unplug_slot(struct fg_guest *g, uint32_t page)
{
	void *va = slot_va(g, page);

	pvr_adapter_unmap_ram(g->adapter, fg_page_gpa(&g->ram, page), PVR_PAGE_SIZE);
	assert_ptr_equal(
		mmap(va, PVR_PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		va);
}

void t_plug_slot(struct fg_guest *g, uint32_t page)
{
	void *va = slot_va(g, page);

	assert_ptr_equal(mmap(va, PVR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      g->ram.fd, (off_t)page << PVR_PAGE_SHIFT),
			 va);
	map(g, page, 1);
}
