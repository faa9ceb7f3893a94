/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guest RAM: translation of bus addresses to pointers. */
#ifndef PVR_RAM_H
#define PVR_RAM_H

#include <stdbool.h>
#include <stdint.h>

/* More regions than any machine has. The limit bounds the search. */
#define PVR_RAM_MAX_REGIONS 512

struct pvr_ram_region {
	uint64_t gpa, size;
	uint8_t *va;
	bool writable;
	bool persistent; /* see pvr_adapter_persist_ram() */
	uint64_t *dirty; /* a bit per page; NULL while the log is off, see core/dirty.h */
};

/* QEMU maps a few ranges in turn while a guest's firmware changes the memory below 1 MiB. */
#define PVR_RAM_GONE_MAX 32

struct pvr_ram {
	struct pvr_ram_region *region; /* sorted by gpa, disjoint */
	unsigned int count;
	unsigned int last; /* index of the region that was found last */
	bool dirty_on;
	unsigned int dirty_last; /* index of the region that was marked last */
	/* Regions that were removed since the log is on: only their logs are left. */
	struct pvr_ram_region gone[PVR_RAM_GONE_MAX];
	unsigned int gone_count;
	bool dirty_lost; /* the log of a removed region is gone, too */
};

void pvr_ram_init(struct pvr_ram *ram);
void pvr_ram_exit(struct pvr_ram *ram);

/* Return: 0, -EINVAL (empty, wraps, overlaps), -ENOSPC or -ENOMEM. */
int pvr_ram_add(struct pvr_ram *ram, uint64_t gpa, uint64_t size, void *va, bool writable);
/* Remove the region of exactly @gpa and @size to *region. Return: 0 or -ENOENT. */
int pvr_ram_del(struct pvr_ram *ram, uint64_t gpa, uint64_t size, struct pvr_ram_region *region);

/* All regions get an empty log, also those that are added later. Return: 0, -EALREADY or -ENOMEM. */
int pvr_ram_start_dirty(struct pvr_ram *ram);
void pvr_ram_stop_dirty(struct pvr_ram *ram);

/* The region of exactly @gpa and @size becomes persistent. Return: 0 or -ENOENT. */
int pvr_ram_persist(struct pvr_ram *ram, uint64_t gpa, uint64_t size);
/* Return: whether @gpa is in a persistent region. */
bool pvr_ram_is_persistent(struct pvr_ram *ram, uint64_t gpa);

/* Return: whether @ptr points into @region. */
static inline bool pvr_ram_contains(const struct pvr_ram_region *region, const void *ptr)
{
	const uint8_t *byte = ptr;

	return byte >= region->va && byte < region->va + region->size;
}

/* Return: bytes of RAM in all regions. */
uint64_t pvr_ram_size(const struct pvr_ram *ram);

/**
 * pvr_ram_ptr() - translate a bus address
 * @len: bytes that the caller needs; at least 1
 * @contig: set to the length of the contiguous run at @gpa, at most @len
 *
 * Return: the address, or NULL if @gpa is not RAM, or is ROM and @write is set.
 */
uint8_t *pvr_ram_ptr(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write, uint64_t *contig);

/*
 * The reverse: find the bus address of @va, and the length of the contiguous RAM there. Return:
 * false if it is not RAM.
 */
bool pvr_ram_gpa(const struct pvr_ram *ram, const void *va, uint64_t *gpa, uint64_t *contig);

/* Return: whether all of [gpa, gpa + len) is RAM, in one region or in adjacent ones. */
bool pvr_ram_covers(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write);

/*
 * Return: the address of the page at @gpa, or NULL: not RAM, or @gpa is not page-aligned.
 */
void *pvr_ram_page(struct pvr_ram *ram, uint64_t gpa, bool write);

#endif /* PVR_RAM_H */
