// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pages that a device writes, found by the MMU. */
#include "fg_trap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "fg_ram.h"

struct fg_trap {
	LIST_ENTRY(fg_trap) link;
	uint8_t *va;
	size_t size;
	uint8_t written[]; /* a byte per page */
};

bool fg_traps_on;
static LIST_HEAD(, fg_trap) traps;
static struct sigaction others;

static struct fg_trap *find(const uint8_t *va)
{
	struct fg_trap *trap;

	LIST_FOREACH(trap, &traps, link)
		if (va >= trap->va && va < trap->va + trap->size)
			return trap;
	return NULL;
}

static void on_store(int number, siginfo_t *info, void *context)
{
	struct fg_trap *trap = find(info->si_addr);
	size_t page;

	page = trap ? ((uint8_t *)info->si_addr - trap->va) / PVR_PAGE_SIZE : 0;
	/* The access fails again, and then the other handler has it. */
	if (!trap || trap->written[page]) {
		sigaction(SIGSEGV, &others, NULL);
		return;
	}
	trap->written[page] = true;
	mprotect(trap->va + page * PVR_PAGE_SIZE, PVR_PAGE_SIZE, PROT_READ | PROT_WRITE);
}

void fg_trap_install(void)
{
	struct sigaction now, ours = { .sa_sigaction = on_store, .sa_flags = SA_SIGINFO };

	if (!fg_traps_on)
		return;
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_store)
		return;
	others = now;
	sigaction(SIGSEGV, &ours, NULL);
}

struct fg_trap *fg_trap_map(int fd, uint64_t offset, size_t size)
{
	struct fg_trap *trap = calloc(1, sizeof(*trap) + size / PVR_PAGE_SIZE);

	if (!trap)
		fg_die("out of memory");
	trap->size = size;
	trap->va = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	if (trap->va == MAP_FAILED)
		fg_die("cannot map %zu bytes of RAM for the device", size);
	LIST_INSERT_HEAD(&traps, trap, link);
	return trap;
}

void fg_trap_unmap(struct fg_trap *trap)
{
	if (!trap)
		return;
	LIST_REMOVE(trap, link);
	munmap(trap->va, trap->size);
	free(trap);
}

uint8_t *fg_trap_va(const struct fg_trap *trap)
{
	return trap->va;
}

bool fg_trap_was_written(const struct fg_trap *trap, size_t offset)
{
	return trap->written[offset / PVR_PAGE_SIZE];
}

void fg_trap_reset(struct fg_trap *trap)
{
	mprotect(trap->va, trap->size, PROT_READ);
	memset(trap->written, 0, trap->size / PVR_PAGE_SIZE);
}
