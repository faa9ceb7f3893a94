// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: registration of 1 GiB, and look-up among 100,000. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "load.h"

#define GIB (1ull << 30)
#define RAM_GPA 0x1000000000ull /* behind the memory of fake guests, aligned to 1 GiB */
#define MANY 100000

/* --------------------------------------------------------- registration */

/*
 * Guest RAM that is only address space: only the page directory behind it is accessed, so
 * the machine needs less memory.
 */
struct area {
	struct bench_pair pair;
	uint8_t *ram;
	uint64_t size; /* of the region */
	uint32_t shift; /* of its pages */
	bool scattered;
	struct pvr_cmd_create_mr req;
};

static size_t directory_size(uint64_t region)
{
	return (region / PVR_PAGE_SIZE / PVR_PDIR_ENTRIES + 1024) * PVR_PAGE_SIZE;
}

/* Address of page @i: in order, or far from its neighbours. */
static uint64_t page_gpa(const struct area *area, uint64_t i)
{
	uint64_t n = area->size >> area->shift;

	return RAM_GPA + ((area->scattered ? i * 0x9e3779bbu % n : i) << area->shift);
}

static uint64_t *put_page(const struct area *area, uint32_t *used, uint64_t *gpa)
{
	uint64_t offset = area->size + (uint64_t)(*used)++ * PVR_PAGE_SIZE;

	*gpa = RAM_GPA + offset;
	return (uint64_t *)(area->ram + offset);
}

/* A directory of three levels. Return: its address. */
static uint64_t build(const struct area *area)
{
	uint64_t root, gpa, *top, *dir = NULL, *table = NULL;
	uint32_t used = 0;

	top = put_page(area, &used, &root);
	for (uint64_t i = 0; i < area->size >> area->shift; i++) {
		if (i % PVR_PDIR_MAX_PAGES == 0) {
			dir = put_page(area, &used, &gpa);
			top[i / PVR_PDIR_MAX_PAGES] = gpa;
		}
		if (i % PVR_PDIR_ENTRIES == 0) {
			table = put_page(area, &used, &gpa);
			dir[i / PVR_PDIR_ENTRIES % PVR_PDIR_ENTRIES] = gpa;
		}
		table[i % PVR_PDIR_ENTRIES] = page_gpa(area, i);
	}
	return root;
}

/* Registers once. Return: seconds. */
static double registration_time(void *arg, uint64_t ns)
{
	struct area *area = arg;
	struct bench_watch watch = { 0 };
	struct fg_mr mr;
	uint32_t err;

	bench_watch_start(&watch);
	err = fg_mr_create_as(&area->pair.a.pd, &area->req, &mr);
	bench_watch_stop(&watch);
	if (err || fg_mr_destroy(&mr))
		fg_die("a region of %llu bytes: ERR 0x%x", (unsigned long long)area->size, err);
	return (double)watch.sum / FG_SEC;
}

/* Host memory per region. */
static double registration_bytes(void *arg, uint64_t ns)
{
	struct area *area = arg;
	size_t before = bench_heap(), after;
	struct fg_mr mr;

	if (fg_mr_create_as(&area->pair.a.pd, &area->req, &mr))
		fg_die("a region that was refused");
	after = bench_heap();
	if (fg_mr_destroy(&mr))
		fg_die("a region that stays");
	return after - before;
}

static void registration(const char *name, uint64_t size, uint32_t shift, bool scattered)
{
	struct area area = { .size = size, .shift = shift, .scattered = scattered };
	struct bench_side time = { "device", registration_time, &area };
	struct bench_side bytes = { "device", registration_bytes, &area };
	size_t all = size + directory_size(size);
	char bytes_name[64];

	bench_pair_open(&area.pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	area.ram = mmap(NULL, all, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area.ram == MAP_FAILED)
		fg_die("no address space for %zu bytes", all);
	if (pvr_adapter_map_ram(area.pair.guest[0]->adapter, RAM_GPA, all, area.ram, true))
		fg_die("cannot add RAM");
	area.req = fg_layout_request(&area.pair.a.pd, build(&area), shift, 0, 0, size);
	area.req.pdir_levels = 3;
	bench_row(name, "s", &time, NULL);
	snprintf(bytes_name, sizeof(bytes_name), "%s_bytes", name);
	bench_row(bytes_name, "B", &bytes, NULL);
	bench_pair_close(&area.pair);
	munmap(area.ram, all);
}

/* --------------------------------------------------------------- look-up */

/* Regions of b that cover the same page; requests use one after the other. */
struct regions {
	struct bench_pair pair;
	struct fg_mr *mr;
	uint32_t next;
};

/* A side of a row: the number of regions to use. */
struct some {
	struct regions *regions;
	uint32_t used;
};

static void regions_open(struct regions *regions)
{
	regions->mr = calloc(MANY, sizeof(*regions->mr));
	regions->next = 0;
	if (!regions->mr)
		fg_die("no memory for %u regions", MANY);
	bench_pair_open(&regions->pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
}

static void regions_close(struct regions *regions)
{
	bench_pair_close(&regions->pair);
	free(regions->mr);
}

static void regions_fill(struct regions *regions)
{
	struct bench_pair *pair = &regions->pair;

	for (uint32_t i = 0; i < bench_count(MANY); i++)
		if (fg_mr_create_part(&pair->b.pd, &pair->dst, 0, PVR_PAGE_SIZE, FG_ACCESS_ALL,
				      &regions->mr[i]))
			fg_die("cannot register region %u", i);
}

static void fill(struct bench_load *load, void *arg)
{
	const struct some *some = arg;
	struct regions *regions = some->regions;

	for (uint32_t i = 1; i <= load->batch; i++) {
		/* A step that a prefetcher cannot predict. */
		regions->next = (regions->next + 61819) % some->used;
		load->rkey = regions->mr[regions->next].rkey;
		bench_load_put(load, i % load->signal_every == 0);
	}
}

/* As bench_load_rate(), with another region for each request. */
static double regions_rate(void *arg, uint64_t ns)
{
	struct bench_load load;

	bench_load_init(&load, &((struct some *)arg)->regions->pair, PVRDMA_WR_RDMA_WRITE, 8);
	load.span = PVR_PAGE_SIZE;
	return bench_load_rate_of(&load, ns, fill, arg);
}

static void look_up(void)
{
	struct regions one, many;
	struct some only = { &one, 1 }, first = { &many, 1 }, all = { &many, bench_count(MANY) };
	struct bench_side peer = { "one region", regions_rate, &only };
	struct bench_side us = { "100,000 regions", regions_rate, &first };
	struct bench_side each = { "100,000 regions", regions_rate, &all };

	regions_open(&one);
	one.mr[0] = one.pair.dst_mr;
	regions_open(&many);
	regions_fill(&many);
	bench_row("mr_lookup", "1/s", &us, &peer);
	bench_row("mr_lookup_each", "1/s", &each, &peer);
	regions_close(&one);
	regions_close(&many);
}

void bench_regions(void)
{
	registration("mr_reg_1g", GIB, 12, false);
	registration("mr_reg_1g_scattered", GIB, 12, true);
	if (!bench_options.small)
		registration("mr_reg_16g_scattered", 16 * GIB, 12, true);
	registration("mr_reg_16g_2m_scattered", 16 * GIB, 21, true);
	look_up();
}
