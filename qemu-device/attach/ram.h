/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The guest RAM of one client.
 *
 * A region has a descriptor if QEMU shares it. A region that is no RAM (such as the VGA
 * frame buffer) has none; it is recorded for the later unmap only.
 */
#ifndef PVR_ATTACH_RAM_H
#define PVR_ATTACH_RAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/ram_use.h"
#include "base/error.h"
#include "base/loop.h"
#include "engine.h"

struct pvr_closer;
struct pvr_sigbus_set;

#define PVR_RAM_SMALLEST (1ull << 20) /* a smaller region is not counted as RAM */

struct pvr_vm_ram_region {
	uint64_t gpa, size;
	uint64_t offset; /* in the file */
	void *va; /* NULL: not mapped */
	/*
	 * Keeps the file if a SIGBUS replaces the mapping. The kernel would free all pages of the
	 * file then, in the thread that has accessed the memory.
	 */
	int fd;
	int guard; /* of pvr_vm_ram.guards */
	bool writable;
	bool persistent; /* device DAX */
	/* The mapping: whole pages of the file, so it can begin before @va and end after @size. */
	struct pvr_file_range file;
	uint64_t page_size;
};

struct pvr_vm_ram {
	struct pvr_adapter *adapter;
	struct pvr_closer *closer; /* unmaps */
	unsigned int num;
	struct pvr_vm_ram_region regions[PVR_RAM_REGIONS];
	uint64_t bytes; /* bytes mapped, without the rest of huge pages at the ends of regions */
	/*
	 * The limit of @counted. Twice as much may be mapped: address space of the daemon is
	 * finite, too.
	 */
	uint64_t limit;
	struct pvr_ram_use use;
	uint64_t counted; /* bytes of @use */
	/* The file of the largest region so far, for pvr_vm_ram_is_unshared(). */
	uint64_t file_size;
	dev_t file_dev;
	ino_t file_ino;
	struct pvr_sigbus_set *guards; /* NULL until a region is mapped */
	bool broken; /* set by the SIGBUS handler, see sigbus.h */
	bool has_shared; /* a descriptor of memory has come */
	bool has_huge; /* in huge pages */
	struct pvr_loop *loop; /* woken after a SIGBUS */
};

struct pvr_vm_ram_request {
	uint64_t gpa, size;
	uint64_t offset; /* into fd */
	int fd; /* -1: none; set to -1 if the region keeps it, else the caller does */
	bool readable, writable;
};

/**
 * pvr_vm_ram_map() - map a region of guest memory that the client announces
 *
 * Return: 0, or -errno for the client, with @err filled.
 */
int pvr_vm_ram_map(struct pvr_vm_ram *ram, struct pvr_vm_ram_request *req, struct pvr_error *err);

/*
 * Call this before pvr_vm_ram_unmap(), or pvr_vm_ram_unmap_all() if @all, until it returns
 * true: the engine stops the use of the region in steps.
 */
bool pvr_vm_ram_prepare_unmap(struct pvr_vm_ram *ram, uint64_t gpa, uint64_t size, bool all);
/* The region must equal an announced one. Return: 0 or -ENOENT. */
int pvr_vm_ram_unmap(struct pvr_vm_ram *ram, uint64_t gpa, uint64_t size, struct pvr_error *err);
void pvr_vm_ram_unmap_all(struct pvr_vm_ram *ram);

/*
 * Return: whether the client has RAM and shares none of it: it sends no descriptor of memory, or
 * maps the memory itself with MAP_PRIVATE (share=off), as /proc reports.
 */
bool pvr_vm_ram_is_unshared(const struct pvr_vm_ram *ram, pid_t client);

#endif /* PVR_ATTACH_RAM_H */
