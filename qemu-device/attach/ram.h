/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The guest RAM of one client.
 *
 * Pieces come with a descriptor when QEMU can share them. Those that are no RAM (the
 * VGA frame buffer, for one) come without, and are remembered only to be forgotten.
 */
#ifndef PVR_ATTACH_RAM_H
#define PVR_ATTACH_RAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"
#include "engine.h"

#define PVR_RAM_PIECES 128
#define PVR_RAM_BYTES_MAX (16ull << 40)
#define PVR_RAM_SMALLEST (1ull << 20) /* a piece below this is not "the" RAM */

struct pvr_vm_ram_piece {
	uint64_t gpa, size;
	void *va; /* NULL: not mapped */
	int guard;
};

struct pvr_vm_ram {
	struct pvr_adapter *adapter;
	unsigned int num;
	struct pvr_vm_ram_piece pieces[PVR_RAM_PIECES];
	uint64_t bytes; /* mapped */
	/* The file behind the largest piece so far, for pvr_vm_ram_is_unshared(). */
	uint64_t file_size;
	dev_t file_dev;
	ino_t file_ino;
	bool broken; /* set by the SIGBUS handler, see sigbus.h */
	struct pvr_loop *loop; /* that looks at it */
};

struct pvr_vm_ram_request {
	uint64_t gpa, size;
	uint64_t offset; /* into fd */
	int fd; /* -1: none; stays the caller's */
	bool readable, writable;
};

/**
 * pvr_vm_ram_map() - a client announces a piece of guest memory
 *
 * Return: 0, or -errno for the client, with @err filled.
 */
int pvr_vm_ram_map(struct pvr_vm_ram *ram, const struct pvr_vm_ram_request *req,
		   struct pvr_error *err);

/* The piece must be one that was announced. Return: 0 or -ENOENT. */
int pvr_vm_ram_unmap(struct pvr_vm_ram *ram, uint64_t gpa, uint64_t size, struct pvr_error *err);
void pvr_vm_ram_unmap_all(struct pvr_vm_ram *ram);

/*
 * The client has RAM and shares none of it: it gives no memory, or memory of which it
 * has a private copy itself (share=off), as far as /proc tells.
 */
bool pvr_vm_ram_is_unshared(const struct pvr_vm_ram *ram, pid_t client);

#endif /* PVR_ATTACH_RAM_H */
