// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RAM of a fake guest: a memfd, mapped in pieces, and its page allocator. */
#include "fg_ram.h"

#include "fg_buf.h"
#include "fg_trap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB_PAGES (1u << (20 - PVR_PAGE_SHIFT))
#define SHUFFLE_SEED 0x9e3779b97f4a7c15ull

static const uint64_t piece_gpa[FG_RAM_REGIONS] = {
	0x00100000, /* below the first hole */
	0x80000000, /* below the MMIO hole */
	0x100000000, /* above 4 GiB: the only one that grows */
};
#define LOW_PIECE_PAGES (2 * MIB_PAGES)

struct kept {
	SLIST_ENTRY(kept) link;
	struct fg_ram ram;
};

bool fg_ram_keeps;
static SLIST_HEAD(, kept) all_kept = SLIST_HEAD_INITIALIZER(all_kept);

void fg_die(const char *fmt, ...)
{
	va_list ap;

	fputs("fake guest: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

static void *memory_of(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		fg_die("out of memory");
	return memory;
}

static void piece_map(struct fg_ram *ram, struct fg_ram_region *region, uint32_t pages)
{
	size_t size = (size_t)pages << PVR_PAGE_SHIFT;
	uint8_t *guard = mmap(NULL, size + 2 * PVR_PAGE_SIZE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (guard == MAP_FAILED)
		fg_die("no address space for %zu bytes of RAM", size);
	region->va = mmap(guard + PVR_PAGE_SIZE, size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, ram->fd, (off_t)region->page0 << PVR_PAGE_SHIFT);
	if (region->va == MAP_FAILED)
		fg_die("cannot map %zu bytes of RAM", size);
	region->size = size;
	if (fg_traps_on && size)
		region->trap =
			fg_trap_map(ram->fd, (uint64_t)region->page0 << PVR_PAGE_SHIFT, size);
	region->device_va = region->trap ? fg_trap_va(region->trap) : region->va;
	/* cppcheck-suppress memleak ; the guard pages stay at both ends of the region. */
}

/* The pages of a size in a random order, always the same one; until the next call. */
static const uint32_t *shuffled(uint32_t num)
{
	static uint32_t *order, size;
	uint64_t rnd = SHUFFLE_SEED;

	if (size == num)
		return order;
	free(order);
	order = memory_of(num * sizeof(*order));
	size = num;
	order[0] = 0;
	for (uint32_t i = 0; i < num; i++) {
		uint32_t j;

		rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
		j = (uint32_t)((rnd >> 33) % (i + 1));
		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static void free_list_fill(struct fg_ram *ram)
{
	ram->free = memory_of(ram->linear0 * sizeof(*ram->free));
	memcpy(ram->free, shuffled(ram->linear0), ram->linear0 * sizeof(*ram->free));
	ram->nfree = ram->linear0;
}

static void keep(const struct fg_ram *ram)
{
	struct kept *kept = memory_of(sizeof(*kept));

	kept->ram = *ram;
	SLIST_INSERT_HEAD(&all_kept, kept, link);
}

/* Runs must be zero; a single page becomes so when it is handed out. */
static void zero_runs(struct fg_ram *ram, uint32_t end)
{
	for (uint32_t page = ram->linear0; page < end; page++)
		memset(fg_page_va(ram, page), 0, PVR_PAGE_SIZE);
}

/* Return: false: there is none of this size. */
static bool take_kept(struct fg_ram *ram)
{
	struct kept *kept;

	SLIST_FOREACH(kept, &all_kept, link)
	if (kept->ram.npages == ram->npages && kept->ram.linear0 == ram->linear0)
		break;
	if (!kept)
		return false;
	SLIST_REMOVE(&all_kept, kept, kept, link);
	ram->fd = kept->ram.fd;
	memcpy(ram->region, kept->ram.region, sizeof(ram->region));
	zero_runs(ram, kept->ram.linear_next);
	free(kept);
	return true;
}

static void map_new(struct fg_ram *ram)
{
	uint32_t pages[FG_RAM_REGIONS] = { LOW_PIECE_PAGES, LOW_PIECE_PAGES,
					   ram->npages - 2 * LOW_PIECE_PAGES };

	ram->fd = memfd_create("fake-guest-ram", MFD_CLOEXEC);
	if (ram->fd < 0 || ftruncate(ram->fd, (off_t)ram->npages << PVR_PAGE_SHIFT))
		fg_die("cannot make a memfd of %u pages", ram->npages);
	for (int i = 0, page = 0; i < FG_RAM_REGIONS; i++) {
		ram->region[i].gpa = piece_gpa[i];
		ram->region[i].page0 = page;
		piece_map(ram, &ram->region[i], pages[i]);
		page += pages[i];
	}
}

void fg_ram_init(struct fg_ram *ram, uint32_t mib, uint32_t linear_mib)
{
	memset(ram, 0, sizeof(*ram));
	LIST_INIT(&ram->views);
	ram->npages = (mib + linear_mib) * MIB_PAGES;
	ram->linear0 = mib * MIB_PAGES;
	ram->linear_next = ram->linear0;
	if (mib < 5)
		fg_die("a guest needs 5 MiB of RAM");
	if (fg_traps_on || !take_kept(ram))
		map_new(ram);
	free_list_fill(ram);
}

void fg_ram_exit(struct fg_ram *ram)
{
	fg_view_free_all(ram);
	free(ram->free);
	if (fg_ram_keeps && !fg_traps_on) {
		keep(ram);
		return;
	}
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		fg_trap_unmap(ram->region[i].trap);
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		munmap(ram->region[i].va - PVR_PAGE_SIZE, ram->region[i].size + 2 * PVR_PAGE_SIZE);
	close(ram->fd);
}

uint32_t fg_ram_get_page(struct fg_ram *ram)
{
	uint32_t page;

	if (!ram->nfree)
		fg_die("guest out of pages");
	page = ram->free[--ram->nfree];
	memset(fg_page_va(ram, page), 0, PVR_PAGE_SIZE);
	return page;
}

void fg_ram_put_page(struct fg_ram *ram, uint32_t page)
{
	if (page < ram->linear0)
		ram->free[ram->nfree++] = page;
}

void fg_ram_get_used(const struct fg_ram *ram, bool *used)
{
	for (uint32_t page = 0; page < ram->npages; page++)
		used[page] = page < ram->linear_next;
	for (uint32_t i = 0; i < ram->nfree; i++)
		used[ram->free[i]] = false;
}

uint32_t fg_ram_get_run(struct fg_ram *ram, uint32_t n)
{
	uint32_t page = ram->linear_next;

	if (n > ram->npages - page)
		fg_die("guest out of contiguous pages");
	/* Zero: it is never given back, so it was not used before. */
	ram->linear_next += n;
	return page;
}

static const struct fg_ram_region *piece_of(const struct fg_ram *ram, uint32_t page)
{
	int i = FG_RAM_REGIONS - 1;

	if (page >= ram->npages)
		fg_die("page %u of %u", page, ram->npages);
	while (ram->region[i].page0 > page)
		i--;
	return &ram->region[i];
}

uint64_t fg_page_gpa(const struct fg_ram *ram, uint32_t page)
{
	const struct fg_ram_region *region = piece_of(ram, page);

	return region->gpa + ((uint64_t)(page - region->page0) << PVR_PAGE_SHIFT);
}

void *fg_page_va(const struct fg_ram *ram, uint32_t page)
{
	const struct fg_ram_region *region = piece_of(ram, page);

	return region->va + ((size_t)(page - region->page0) << PVR_PAGE_SHIFT);
}

void *fg_gpa_va(const struct fg_ram *ram, uint64_t gpa)
{
	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *region = &ram->region[i];

		if (gpa >= region->gpa && gpa - region->gpa < region->size)
			return region->va + (gpa - region->gpa);
	}
	return NULL;
}
