// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What it takes to register a region of 16 GiB: time, and memory of the host.
 *
 * The guest's RAM is address space that nobody touches; only the page directories are
 * written, so this runs on machines that have not as much.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "fake_guest.h"

#define REGION (16ull << 30)
#define RAM_GPA 0x1000000000ull /* behind what the fake guest has, aligned to 1 GiB */
#define ROUNDS 5

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static size_t heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Page @i of @n: in order, or far from its neighbours. */
static uint64_t page_gpa(uint64_t i, uint64_t n, uint32_t shift, bool scattered)
{
	return RAM_GPA + ((scattered ? i * 0x9e3779bbu % n : i) << shift);
}

static uint64_t *put_page(uint64_t *area, uint32_t *used, uint64_t area_gpa, uint64_t *gpa)
{
	uint64_t *page = area + (size_t)*used * PVR_PDIR_ENTRIES;

	*gpa = area_gpa + (uint64_t)*used * PVR_PAGE_SIZE;
	++*used;
	return page;
}

/* A directory of three levels, in @area, which lies at @area_gpa. Return: its address. */
static uint64_t build(uint64_t *area, uint64_t area_gpa, uint32_t shift, bool scattered)
{
	uint64_t n = REGION >> shift, root, gpa, *top, *dir = NULL, *table = NULL;
	uint32_t used = 0;

	top = put_page(area, &used, area_gpa, &root);
	for (uint64_t i = 0; i < n; i++) {
		if (i % PVR_PDIR_MAX_PAGES == 0) {
			dir = put_page(area, &used, area_gpa, &gpa);
			top[i / PVR_PDIR_MAX_PAGES] = gpa;
		}
		if (i % PVR_PDIR_ENTRIES == 0) {
			table = put_page(area, &used, area_gpa, &gpa);
			dir[i / PVR_PDIR_ENTRIES % PVR_PDIR_ENTRIES] = gpa;
		}
		table[i % PVR_PDIR_ENTRIES] = page_gpa(i, n, shift, scattered);
	}
	return root;
}

static void measure(const struct fg_pd *pd, uint64_t pdir, uint32_t shift, const char *what)
{
	struct pvr_cmd_create_mr req = fg_layout_request(pd, pdir, shift, 0, 0, REGION);
	double begin, time, best = 1e9;
	size_t before, bytes = 0;
	struct fg_mr mr;

	req.pdir_levels = 3;
	for (int i = 0; i < ROUNDS; i++) {
		before = heap();
		begin = now_ms();
		if (fg_mr_create_as(pd, &req, &mr))
			fg_die("%s: refused", what);
		time = now_ms() - begin;
		bytes = heap() - before;
		best = time < best ? time : best;
		if (fg_mr_destroy(&mr))
			fg_die("%s: not destroyed", what);
	}
	printf("%-20s %10.3f ms %12zu bytes\n", what, best, bytes);
}

int main(void)
{
	static const struct {
		uint32_t shift;
		bool scattered;
		const char *what;
	} cases[] = {
		{ 12, true, "4 KiB scattered" }, { 12, false, "4 KiB contiguous" },
		{ 21, true, "2 MiB scattered" }, { 21, false, "2 MiB contiguous" },
		{ 30, true, "1 GiB scattered" },
	};
	const size_t area_size = (REGION >> 21) * PVR_PAGE_SIZE + (1u << 20);
	struct fg_guest_config config;
	struct fg_host *host = fg_host_create();
	struct fg_guest *guest;
	struct fg_pd pd;
	uint8_t *ram;

	fg_default_ext = PVR_EXT_MR_LAYOUT;
	fg_guest_config_init(&config, 1);
	guest = fg_guest_create(host, &config);
	ram = mmap(NULL, REGION + area_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ram == MAP_FAILED)
		fg_die("no address space for 16 GiB");
	if (pvr_adapter_map_ram(guest->adapter, RAM_GPA, REGION + area_size, ram, true) ||
	    fg_guest_boot(guest) || fg_pd_create(&guest->kernel, &pd))
		fg_die("the guest does not start");
	printf("a region of 16 GiB, best of %d\n", ROUNDS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t *area = (uint64_t *)(ram + REGION);

		measure(&pd, build(area, RAM_GPA + REGION, cases[i].shift, cases[i].scattered),
			cases[i].shift, cases[i].what);
	}
	fg_guest_destroy(guest);
	munmap(ram, REGION + area_size);
	fg_host_destroy(host);
	return 0;
}
