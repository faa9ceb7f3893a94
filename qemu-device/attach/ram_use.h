/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How much memory a client's files hold, as far as it maps them.
 *
 * A page of a file counts once, at however many addresses it is mapped. The mappings keep the
 * inodes alive, so an inode number does not change its meaning while a range of it is listed.
 */
#ifndef PVR_ATTACH_RAM_USE_H
#define PVR_ATTACH_RAM_USE_H

#include <stdint.h>
#include <sys/types.h>

#define PVR_RAM_REGIONS 128

/* Bytes of a file. */
struct pvr_file_range {
	dev_t dev;
	ino_t ino;
	uint64_t offset, size;
};

struct pvr_ram_use {
	unsigned int num;
	struct pvr_file_range ranges[PVR_RAM_REGIONS]; /* sorted by file, then by offset */
};

/* Return: bytes of all ranges; those in several ranges count once. */
uint64_t pvr_ram_use_bytes(const struct pvr_ram_use *use);
/* There must be room: fewer than PVR_RAM_REGIONS ranges. */
void pvr_ram_use_add(struct pvr_ram_use *use, const struct pvr_file_range *range);
/* Remove one range that was added. */
void pvr_ram_use_remove(struct pvr_ram_use *use, const struct pvr_file_range *range);

#endif /* PVR_ATTACH_RAM_USE_H */
