/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guest RAM: bus addresses to pointers. */
#ifndef PVR_RAM_H
#define PVR_RAM_H

#include <stdbool.h>
#include <stdint.h>

/* More pieces than any machine has; a client cannot make us search longer. */
#define PVR_RAM_MAX_REGIONS 512

struct pvr_ram_region {
	uint64_t gpa, size;
	uint8_t *va;
	bool writable;
};

struct pvr_ram {
	struct pvr_ram_region *region; /* sorted by gpa, disjoint */
	unsigned int count;
	unsigned int last; /* the piece that was hit last */
};

void pvr_ram_init(struct pvr_ram *ram);
void pvr_ram_exit(struct pvr_ram *ram);

/* Return: 0, -EINVAL (empty, wraps, overlaps), -ENOSPC or -ENOMEM. */
int pvr_ram_add(struct pvr_ram *ram, uint64_t gpa, uint64_t size, void *va, bool writable);
/* Removes the piece that is exactly this. Return: 0 and the piece, or -ENOENT. */
int pvr_ram_del(struct pvr_ram *ram, uint64_t gpa, uint64_t size, struct pvr_ram_region *region);

/* Whether what @ptr points to lies in @region. */
static inline bool pvr_ram_contains(const struct pvr_ram_region *region, const void *ptr)
{
	const uint8_t *byte = ptr;

	return byte >= region->va && byte < region->va + region->size;
}

/* Bytes of RAM in all pieces. */
uint64_t pvr_ram_size(const struct pvr_ram *ram);

/**
 * pvr_ram_ptr() - find @gpa
 * @len: how much the caller needs; at least 1
 * @contig: how much of @len lies there in one run
 *
 * Return: its address, or NULL if @gpa is no RAM, or ROM and @write.
 */
uint8_t *pvr_ram_ptr(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write, uint64_t *contig);

/* All of [gpa, gpa + len) is RAM, also across adjacent pieces. */
bool pvr_ram_covers(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write);

/* A whole page, or NULL also if @gpa is not the address of a page. */
void *pvr_ram_page(struct pvr_ram *ram, uint64_t gpa, bool write);

#endif /* PVR_RAM_H */
