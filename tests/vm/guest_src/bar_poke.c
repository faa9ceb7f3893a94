// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A hostile guest's root: writes random values of all sizes to the registers and doorbells of a
 * PVRDMA device without a driver, and lets it find garbage in the shared region, or a proper
 * region with random commands.
 *
 * Usage: bar_poke /sys/bus/pci/devices/ADDRESS SECONDS SEED
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pvrdma_abi_cmd.h"

#define PAGE 4096u
#define PAGES 64u

/* The pages of a proper shared region; what follows them is tables and data for commands. */
enum { DSR, COMMAND, RESPONSE, EVENTS, NOTIFICATIONS, DIRECTORY, TABLE, DATA };

struct bar {
	volatile uint8_t *base;
	size_t size;
	uint64_t physical;
};

static uint64_t random_state;

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static int open_in(const char *device, const char *file)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", device, file);
	fd = open(path, O_RDWR | O_SYNC);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* Where the guest's kernel put BAR `number`. */
static uint64_t bar_address(const char *device, int number)
{
	unsigned long long start = 0;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/resource", device);
	file = fopen(path, "r");
	for (int i = 0; i <= number; i++)
		if (!file || fscanf(file, "%llx %*x %*x", &start) != 1)
			err(1, "%s", path);
	fclose(file);
	return start;
}

static struct bar map_bar(const char *device, int number)
{
	struct bar bar = { .physical = bar_address(device, number) };
	struct stat st;
	char file[16];
	int fd;

	snprintf(file, sizeof(file), "resource%d", number);
	fd = open_in(device, file);

	if (fstat(fd, &st))
		err(1, "%s", file);
	bar.size = st.st_size;
	bar.base = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bar.base == MAP_FAILED)
		err(1, "%s", file);
	return bar;
}

/* Enable memory decoding and bus mastering, which the driver has disabled. */
static void enable_device(const char *device)
{
	int fd = open_in(device, "config");
	uint16_t command = 0x6;

	if (pwrite(fd, &command, sizeof(command), 4) != sizeof(command))
		err(1, "config");
	close(fd);
	fd = open_in(device, "enable");
	if (write(fd, "1", 1) != 1)
		err(1, "enable");
	close(fd);
}

static uint64_t physical(const void *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)page / PAGE * 8) != 8 || !(entry >> 63))
		err(1, "pagemap");
	close(fd);
	return (entry & ((1ull << 55) - 1)) * PAGE;
}

/* Never an address of guest memory outside @pages: the device would write there. */
static uint64_t random_address(const uint64_t *pages)
{
	switch (next() % 4) {
	case 0:
		return next() | 1ull << 63;
	case 1:
		return 0;
	case 2:
		return pages[next() % PAGES] + next() % PAGE;
	default:
		return pages[next() % PAGES];
	}
}

static void fill(uint8_t *memory, const uint64_t *pages)
{
	for (unsigned int i = 0; i < PAGES * PAGE / 8; i++) {
		uint64_t value = next() % 3 ? random_address(pages)
					    : next() % 1024 | (next() % 64) << 32;

		((volatile uint64_t *)memory)[i] = value;
	}
}

static void write_reg(const struct bar *bar, uint32_t at, uint32_t value)
{
	*(volatile uint32_t *)(bar->base + at) = value;
}

static void poke(const struct bar *bar)
{
	size_t size = 1u << next() % 4, at = next() % (bar->size / size) * size;
	uint64_t value = next() % 2 ? next() : next() % 64;

	if (next() % 8 == 0)
		at = bar->size - size;
	/* The DSR's address has a function of its own. */
	if (bar->size == PAGE && at < PVR_REG_CTL && at + size > PVR_REG_DSRLOW)
		return;
	switch (size) {
	case 1:
		bar->base[at] = value;
		break;
	case 2:
		*(volatile uint16_t *)(bar->base + at) = value;
		break;
	case 4:
		write_reg(bar, at, value);
		break;
	default:
		*(volatile uint64_t *)(bar->base + at) = value;
		break;
	}
}

static void announce(const struct bar *regs, uint64_t address)
{
	write_reg(regs, PVR_REG_DSRLOW, address);
	write_reg(regs, PVR_REG_DSRHIGH, address >> 32);
}

static void poke_dsr(const struct bar *regs, const uint64_t *pages)
{
	announce(regs, random_address(pages));
	write_reg(regs, PVR_REG_CTL, next() % 4);
	write_reg(regs, PVR_REG_REQUEST, next() % 4 ? 0 : next());
}

static void fill_directory(uint8_t *memory, const uint64_t *pages, unsigned int page)
{
	uint64_t *directory = (uint64_t *)(memory + page * PAGE);

	for (unsigned int i = 0; i < PAGE / 8; i++)
		directory[i] = pages[TABLE];
}

static void fill_region(uint8_t *memory, const uint64_t *pages, const struct bar *uar)
{
	struct pvr_dsr *dsr = (struct pvr_dsr *)(memory + DSR * PAGE);
	uint64_t *table = (uint64_t *)(memory + TABLE * PAGE);

	memset(dsr, 0, sizeof(*dsr));
	dsr->driver_version = PVR_VERSION;
	dsr->gos_info = PVR_GOS_INFO(PVR_GOS_BITS_64, PVR_GOS_TYPE_LINUX, 1);
	dsr->cmd_slot_dma = pages[COMMAND];
	dsr->resp_slot_dma = pages[RESPONSE];
	dsr->uar_pfn = uar->physical / PAGE;
	dsr->async_ring.num_pages = dsr->cq_ring.num_pages = 4;
	dsr->async_ring.pdir_dma = pages[EVENTS];
	dsr->cq_ring.pdir_dma = pages[NOTIFICATIONS];
	for (unsigned int i = 0; i < PAGE / 8; i++)
		table[i] = pages[DATA + next() % (PAGES - DATA)];
	fill_directory(memory, pages, EVENTS);
	fill_directory(memory, pages, NOTIFICATIONS);
	fill_directory(memory, pages, DIRECTORY);
}

static uint32_t random_field(void)
{
	switch (next() % 6) {
	case 0:
		return next();
	case 1:
		return 1u << next() % 32;
	case 2:
		return -1;
	default:
		return next() % 8;
	}
}

/* A region that the device accepts, then commands with valid numbers and random fields. */
static void poke_commands(const struct bar *regs, const struct bar *uar, uint8_t *memory,
			  const uint64_t *pages)
{
	volatile uint32_t *command = (volatile uint32_t *)(memory + COMMAND * PAGE);

	fill_region(memory, pages, uar);
	write_reg(regs, PVR_REG_CTL, PVR_CTL_RESET);
	announce(regs, pages[DSR]);
	write_reg(regs, PVR_REG_CTL, PVR_CTL_ACTIVATE);
	for (int i = 0; i < 64; i++) {
		for (unsigned int field = 0; field < 64; field++)
			command[field] = random_field();
		command[2] = next() % 24;
		command[3] = 0;
		if (next() % 2)
			*(volatile uint64_t *)(command + 4) = pages[DIRECTORY];
		if (command[2] == PVR_CMD_CREATE_UC)
			*(volatile uint64_t *)(command + 4) = uar->physical / PAGE + next() % 4;
		write_reg(regs, PVR_REG_REQUEST, 0);
		/* Doorbells for what the commands may have made. */
		write_reg(uar, next() % 4 * PAGE + next() % 3 * 4, next() % 4 << 30 | next() % 16);
		if (i % 8 == 0)
			(void)*(volatile uint32_t *)(regs->base + PVR_REG_ERR);
	}
}

int main(int argc, char **argv)
{
	uint64_t pages[PAGES], writes = 0;
	struct bar regs, uar;
	uint8_t *memory;
	time_t end;

	if (argc != 4)
		return 2;
	random_state = strtoull(argv[3], NULL, 0);
	enable_device(argv[1]);
	regs = map_bar(argv[1], PVR_BAR_REGS);
	uar = map_bar(argv[1], PVR_BAR_UAR);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	memset(memory, 1, PAGES * PAGE);
	for (unsigned int i = 0; i < PAGES; i++)
		pages[i] = physical(memory + i * PAGE);
	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
		if (writes % 4096 == 0)
			fill(memory, pages);
		if (writes % 64 == 0)
			poke_dsr(&regs, pages);
		if (writes % 1024 == 0)
			poke_commands(&regs, &uar, memory, pages);
		poke(next() % 2 ? &regs : &uar);
		writes++;
	}
	printf("bar_poke: %llu writes, version register reads %u\n", (unsigned long long)writes,
	       *(volatile uint32_t *)regs.base);
	return 0;
}
