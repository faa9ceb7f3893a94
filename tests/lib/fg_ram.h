/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* RAM of a fake guest: where it is on the bus, and which pages of it are free. */
#ifndef FG_RAM_H
#define FG_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pvrdma_abi_cmd.h"

#define FG_RAM_REGIONS 3

/* Bus addresses that are never RAM. */
#define FG_MMIO_HOLE 0xc0000000ull /* between the second and the third piece */
#define FG_BAR2_GPA 0xfe000000ull /* where the guest has put the doorbell pages */
#define FG_NOWHERE 0x7fff00000000ull /* far above all RAM */

struct fg_ram_region {
	uint64_t gpa;
	uint64_t size; /* bytes */
	uint8_t *va; /* in this process; PROT_NONE pages on both sides */
	uint8_t *device_va; /* the device's mapping: @va, or that of @trap */
	struct fg_trap *trap; /* NULL: none, see fg_trap.h */
	uint32_t page0; /* number of its first page */
};

/*
 * Pages are numbered through all pieces. Those below linear0 are handed out one by
 * one in random (but repeatable) order, the rest in runs for what must be contiguous.
 */
struct fg_view; /* of an fg_buf */

struct fg_ram {
	LIST_HEAD(, fg_view) views; /* of buffers that are still in use */
	int fd; /* the memfd behind all pieces: page n is at offset n * 4096 */
	struct fg_ram_region region[FG_RAM_REGIONS];
	uint32_t npages;
	uint32_t *free; /* stack of free page numbers below linear0 */
	uint32_t nfree;
	uint32_t linear0, linear_next;
};

/* For what only a broken test or machine can cause: prints the line and aborts. */
void fg_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/*
 * If true, RAM of guests that have ended is used by later ones of the same size: a page that was
 * mapped once costs no page fault again. RAM with traps is never kept. One thread.
 */
extern bool fg_ram_keeps;

void fg_ram_init(struct fg_ram *ram, uint32_t mib, uint32_t linear_mib);
/* Buffers that are left go too. */
void fg_ram_exit(struct fg_ram *ram);

/* One page, zeroed; its number. */
uint32_t fg_ram_get_page(struct fg_ram *ram);
void fg_ram_put_page(struct fg_ram *ram, uint32_t page);
/* Whether each page is in use; @used: an element for each. */
void fg_ram_get_used(const struct fg_ram *ram, bool *used);
/* A run of @n pages with consecutive bus addresses; never given back. */
uint32_t fg_ram_get_run(struct fg_ram *ram, uint32_t n);

uint64_t fg_page_gpa(const struct fg_ram *ram, uint32_t page);
void *fg_page_va(const struct fg_ram *ram, uint32_t page);
/* The host address of a bus address, or NULL if that is not RAM. */
void *fg_gpa_va(const struct fg_ram *ram, uint64_t gpa);

#endif /* FG_RAM_H */
