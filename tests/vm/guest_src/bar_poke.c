/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A hostile guest's root: writes random values of all sizes to the registers and doorbells of a
 * PVRDMA device without a driver, and lets it find garbage in the shared region.
 *
 * Usage: bar_poke /sys/bus/pci/devices/ADDRESS SECONDS SEED
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 64u
#define REG_DSRLOW 0x04
#define REG_DSRHIGH 0x08
#define REG_CTL 0x0c
#define REG_REQUEST 0x10

struct bar {
	volatile uint8_t *base;
	size_t size;
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

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int open_in(const char *device, const char *file)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", device, file);
	fd = open(path, O_RDWR | O_SYNC);
	if (fd < 0)
		die(path);
	return fd;
}

static struct bar map_bar(const char *device, const char *file)
{
	int fd = open_in(device, file);
	struct bar bar;
	struct stat st;

	if (fstat(fd, &st))
		die("fstat");
	bar.size = st.st_size;
	bar.base = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bar.base == MAP_FAILED)
		die(file);
	return bar;
}

/* Memory decoding and bus mastering, which the driver took with it. */
static void enable_device(const char *device)
{
	int fd = open_in(device, "config");
	uint16_t command = 0x6;

	if (pwrite(fd, &command, sizeof(command), 4) != sizeof(command))
		die("config");
	close(fd);
	fd = open_in(device, "enable");
	if (write(fd, "1", 1) != 1)
		die("enable");
	close(fd);
}

static uint64_t physical(const void *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)page / PAGE * 8) != 8 || !(entry >> 63))
		die("pagemap");
	close(fd);
	return (entry & ((1ull << 55) - 1)) * PAGE;
}

/* What only looks like memory of this guest would be overwritten by the device: it is left alone. */
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
		uint64_t value = next() % 3 ? random_address(pages) : next() % 1024 | (next() % 64) << 32;

		((volatile uint64_t *)memory)[i] = value;
	}
}

static void poke(const struct bar *bar)
{
	size_t size = 1u << next() % 4, at = next() % (bar->size / size) * size;
	uint64_t value = next() % 2 ? next() : next() % 64;

	if (next() % 8 == 0)
		at = bar->size - size;
	/* The DSR's address has a function of its own. */
	if (bar->size == PAGE && at < REG_CTL && at + size > REG_DSRLOW)
		return;
	switch (size) {
	case 1:
		bar->base[at] = value;
		break;
	case 2:
		*(volatile uint16_t *)(bar->base + at) = value;
		break;
	case 4:
		*(volatile uint32_t *)(bar->base + at) = value;
		break;
	default:
		*(volatile uint64_t *)(bar->base + at) = value;
		break;
	}
}

static void poke_dsr(const struct bar *regs, const uint64_t *pages)
{
	uint64_t address = random_address(pages);

	*(volatile uint32_t *)(regs->base + REG_DSRLOW) = address;
	*(volatile uint32_t *)(regs->base + REG_DSRHIGH) = address >> 32;
	*(volatile uint32_t *)(regs->base + REG_CTL) = next() % 4;
	*(volatile uint32_t *)(regs->base + REG_REQUEST) = next() % 4 ? 0 : next();
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
	regs = map_bar(argv[1], "resource1");
	uar = map_bar(argv[1], "resource2");
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	memset(memory, 1, PAGES * PAGE);
	for (unsigned int i = 0; i < PAGES; i++)
		pages[i] = physical(memory + i * PAGE);
	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
		if (writes % 4096 == 0)
			fill(memory, pages);
		if (writes % 64 == 0)
			poke_dsr(&regs, pages);
		poke(next() % 2 ? &regs : &uar);
		writes++;
	}
	printf("bar_poke: %llu writes, version register reads %u\n", (unsigned long long)writes,
	       *(volatile uint32_t *)regs.base);
	return 0;
}
