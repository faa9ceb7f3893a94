// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The guest RAM of one client: checks, mappings, registration with the engine. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "attach/message.h"
#include "attach/peer_maps.h"
#include "attach/ram.h"
#include "attach/sigbus.h"
#include "base/closer.h"

#define RAM_PAGE_MASK (PVR_PAGE_SIZE - 1ull)
#define MIB (1024.0 * 1024)

_Static_assert(PVR_SIGBUS_GUARDS == PVR_RAM_REGIONS, "each region has a guard");

/*
 * A file that is no memory can be of a server that does not respond, such as that of a FUSE file
 * system. fstat() waits for it. This call does not: the kernel answers from its own record.
 */
static bool get_type(int fd, struct statx *stx)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, stx) == 0;
}

/*
 * A device of device DAX: persistent memory without a file system. Only DAX accepts MAP_SYNC. The
 * pages of a regular file with DAX come from a file system, which may let a worker wait.
 */
static bool is_device_dax(const struct pvr_vm_ram_request *req)
{
	void *va = mmap(NULL, req->size, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, req->fd,
			(off_t)req->offset);

	if (va == MAP_FAILED)
		return false;
	munmap(va, req->size);
	return true;
}

static int check_place(const struct pvr_vm_ram *ram, const struct pvr_vm_ram_request *req,
		       struct pvr_error *err)
{
	if (!req->size || req->gpa + req->size < req->gpa) {
		pvr_fail(err, "a region of 0x%" PRIx64 " bytes at 0x%" PRIx64 " is empty or wraps",
			 req->size, req->gpa);
		return -EINVAL;
	}
	if (ram->num == PVR_RAM_REGIONS) {
		pvr_fail(err, "more than %d memory regions", PVR_RAM_REGIONS);
		return -ENOSPC;
	}
	return 0;
}

static int check_overlap(const struct pvr_vm_ram *ram, const struct pvr_vm_ram_request *req,
			 struct pvr_error *err)
{
	const struct pvr_vm_ram_region *region;
	unsigned int i;

	for (i = 0; i < ram->num; i++) {
		region = &ram->regions[i];
		if (req->gpa < region->gpa + region->size && region->gpa < req->gpa + req->size) {
			pvr_fail(err,
				 "region 0x%" PRIx64 "+0x%" PRIx64 " overlaps region "
				 "0x%" PRIx64 "+0x%" PRIx64,
				 req->gpa, req->size, region->gpa, region->size);
			return -EEXIST;
		}
	}
	return 0;
}

static int check_alignment(const struct pvr_vm_ram_request *req, struct pvr_error *err)
{
	if (!((req->offset | req->gpa) & RAM_PAGE_MASK))
		return 0;
	pvr_fail(err,
		 "region 0x%" PRIx64 "+0x%" PRIx64 " at file offset 0x%" PRIx64
		 " is not on a page boundary",
		 req->gpa, req->size, req->offset);
	return -EINVAL;
}

/*
 * st_blksize is not the size of a page: that of tmpfs is 2 MiB if the host has transparent huge
 * pages for it.
 */
static uint64_t file_page_size(int fd)
{
	struct statfs sfs;

	if (fstatfs(fd, &sfs) == 0 && sfs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)sfs.f_bsize;
	return PVR_PAGE_SIZE;
}

/*
 * Set the file of the region, in whole pages: the kernel maps, replaces and unmaps huge pages as a
 * whole only. The size of a file of huge pages is a multiple of them.
 */
static void set_file(struct pvr_vm_ram_region *region, int fd, const struct stat *st)
{
	uint64_t page = file_page_size(fd), begin, end;

	begin = region->offset & ~(page - 1);
	end = (region->offset + region->size + page - 1) & ~(page - 1);
	region->page_size = page;
	region->file = (struct pvr_file_range){ st->st_dev, st->st_ino, begin, end - begin };
}

static int refuse_file(const struct pvr_vm_ram_request *req, struct pvr_error *err)
{
	pvr_fail(err, "the descriptor for region 0x%" PRIx64 "+0x%" PRIx64 " is not memory",
		 req->gpa, req->size);
	return -EINVAL;
}

static int check_memory(const struct pvr_vm_ram_request *req, struct pvr_vm_ram_region *region,
			struct pvr_error *err)
{
	struct stat st;

	if (fstat(req->fd, &st) < 0)
		return refuse_file(req, err);
	if (check_alignment(req, err))
		return -EINVAL;
	if (req->offset > (uint64_t)st.st_size || req->size > (uint64_t)st.st_size - req->offset) {
		pvr_fail(err,
			 "region 0x%" PRIx64 "+0x%" PRIx64 " at file offset 0x%" PRIx64
			 " is beyond the file's 0x%" PRIx64 " bytes",
			 req->gpa, req->size, req->offset, (uint64_t)st.st_size);
		return -EINVAL;
	}
	set_file(region, req->fd, &st);
	return 0;
}

static int check_device(const struct pvr_vm_ram_request *req, dev_t device,
			struct pvr_vm_ram_region *region, struct pvr_error *err)
{
	region->file = (struct pvr_file_range){ device, 0, req->offset, req->size };
	region->page_size = PVR_PAGE_SIZE;
	region->persistent = true;
	return check_alignment(req, err);
}

/*
 * Set the file of the region, and whether it is persistent. QEMU announces regular files, too, such
 * as an NVDIMM on a disk. The device cannot access them.
 */
static int check_file(struct pvr_vm_ram *ram, const struct pvr_vm_ram_request *req,
		      struct pvr_vm_ram_region *region, struct pvr_error *err)
{
	struct statx stx;

	if (pvr_fd_is_memory(req->fd)) {
		ram->has_shared = true;
		return check_memory(req, region, err);
	}
	if (get_type(req->fd, &stx)) {
		if (S_ISREG(stx.stx_mode))
			return 0;
		if (S_ISCHR(stx.stx_mode) && is_device_dax(req))
			return check_device(req, makedev(stx.stx_rdev_major, stx.stx_rdev_minor),
					    region, err);
	}
	return refuse_file(req, err);
}

/* Count the region's bytes. pvr_ram_use_remove() must follow, also after a failure. */
static int count_bytes(struct pvr_vm_ram *ram, const struct pvr_vm_ram_region *region,
		       struct pvr_error *err)
{
	uint64_t counted;

	pvr_ram_use_add(&ram->use, &region->file);
	counted = pvr_ram_use_bytes(&ram->use);
	if (counted > ram->limit) {
		pvr_fail(err,
			 "region 0x%" PRIx64 "+0x%" PRIx64 " makes %.1f MiB of guest RAM, the "
			 "limit of this adapter is %.1f MiB: see memory= in pvrdmad(8)",
			 region->gpa, region->size, (double)counted / MIB,
			 (double)ram->limit / MIB);
		return -ENOSPC;
	}
	/* Both are below 2^63, see PVR_MEMORY_MAX. */
	if (region->size > 2 * ram->limit - ram->bytes) {
		pvr_fail(err,
			 "region 0x%" PRIx64 "+0x%" PRIx64 " makes %.1f MiB mapped in total, the "
			 "limit of this adapter is twice its %.1f MiB of guest RAM: see memory= in "
			 "pvrdmad(8)",
			 region->gpa, region->size, (double)(ram->bytes + region->size) / MIB,
			 (double)ram->limit / MIB);
		return -ENOSPC;
	}
	return 0;
}

/* The adapter's budget follows the RAM. */
static void count_ram(struct pvr_vm_ram *ram)
{
	ram->counted = pvr_ram_use_bytes(&ram->use);
	pvr_adapter_count_ram(ram->adapter, ram->counted);
}

static void record_file(struct pvr_vm_ram *ram, const struct pvr_file_range *file)
{
	if (file->size <= ram->file_size)
		return;
	ram->file_size = file->size;
	ram->file_dev = file->dev;
	ram->file_ino = file->ino;
}

/* Return: the begin of the mapping, which has the bytes of region->file. */
static void *mapping_of(const struct pvr_vm_ram_region *region)
{
	return (char *)region->va - (region->offset - region->file.offset);
}

static void remove_mapping(struct pvr_vm_ram *ram, struct pvr_vm_ram_region *region)
{
	pvr_sigbus_unguard(ram->guards, region->guard);
	pvr_closer_unmap(ram->closer, mapping_of(region), region->file.size, region->fd);
	ram->bytes -= region->size;
}

static int guard_region(struct pvr_vm_ram *ram, struct pvr_vm_ram_region *region,
			struct pvr_error *err)
{
	if (!ram->guards)
		ram->guards = pvr_sigbus_open();
	if (!ram->guards) {
		pvr_fail(err, "this daemon is out of memory");
		return -ENOMEM;
	}
	/* There is a guard for each region. */
	region->guard = pvr_sigbus_guard(ram->guards, mapping_of(region), region->file.size,
					 region->page_size, &ram->broken, ram->loop);
	return 0;
}

static int map_file(struct pvr_vm_ram *ram, struct pvr_vm_ram_region *region,
		    const struct pvr_vm_ram_request *req, struct pvr_error *err)
{
	int prot = PROT_READ | (req->writable ? PROT_WRITE : 0);
	int flags = region->persistent ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
	const struct pvr_file_range *file = &region->file;
	void *map =
		mmap(NULL, file->size, prot, flags | MAP_NORESERVE, req->fd, (off_t)file->offset);
	int ret;

	if (map == MAP_FAILED) {
		ret = -errno;
		pvr_fail(err, "cannot map region 0x%" PRIx64 "+0x%" PRIx64 ": %s", req->gpa,
			 req->size, strerror(-ret));
		return ret;
	}
	madvise(map, file->size, MADV_DONTDUMP); /* keeps guest data out of core dumps */
	madvise(map, file->size, MADV_DONTFORK);
	ram->bytes += req->size;
	region->va = (char *)map + (region->offset - file->offset);
	ret = guard_region(ram, region, err);
	if (!ret) {
		ret = pvr_adapter_map_ram(ram->adapter, req->gpa, req->size, region->va,
					  req->writable);
		if (ret)
			pvr_fail(err, "the device refuses region 0x%" PRIx64 "+0x%" PRIx64 ": %s",
				 req->gpa, req->size, strerror(-ret));
		else if (region->persistent)
			/* Elsewhere it is memory without that right. */
			(void)pvr_adapter_persist_ram(ram->adapter, req->gpa, req->size);
	}
	if (ret)
		remove_mapping(ram, region);
	return ret;
}

static int map_counted(struct pvr_vm_ram *ram, struct pvr_vm_ram_region *region,
		       const struct pvr_vm_ram_request *req, struct pvr_error *err)
{
	int ret = count_bytes(ram, region, err);

	if (!ret)
		ret = map_file(ram, region, req, err);
	if (ret)
		pvr_ram_use_remove(&ram->use, &region->file);
	else
		count_ram(ram);
	return ret;
}

int pvr_vm_ram_map(struct pvr_vm_ram *ram, struct pvr_vm_ram_request *req, struct pvr_error *err)
{
	struct pvr_vm_ram_region region = {
		.gpa = req->gpa,
		.size = req->size,
		.offset = req->offset,
		.writable = req->writable,
		.fd = -1,
		.guard = -1,
	};
	int ret = check_place(ram, req, err);

	if (!ret)
		ret = check_overlap(ram, req, err);
	if (!ret && req->fd >= 0)
		ret = check_file(ram, req, &region, err);
	if (!ret && region.file.size && req->readable)
		ret = map_counted(ram, &region, req, err);
	if (ret)
		return ret;
	if (region.va) {
		record_file(ram, &region.file);
		ram->has_huge |= region.page_size > PVR_PAGE_SIZE;
		region.fd = req->fd;
		req->fd = -1;
	}
	ram->regions[ram->num++] = region;
	return 0;
}

static void remove_region(struct pvr_vm_ram *ram, unsigned int i)
{
	struct pvr_vm_ram_region *region = &ram->regions[i];

	if (region->va) {
		pvr_adapter_unmap_ram(ram->adapter, region->gpa, region->size);
		remove_mapping(ram, region);
		pvr_ram_use_remove(&ram->use, &region->file);
		count_ram(ram);
	}
	*region = ram->regions[--ram->num];
}

bool pvr_vm_ram_prepare_unmap(struct pvr_vm_ram *ram, uint64_t gpa, uint64_t size, bool all)
{
	const struct pvr_vm_ram_region *region;
	unsigned int i;

	for (i = 0; i < ram->num; i++) {
		region = &ram->regions[i];
		if (!region->va || (!all && (region->gpa != gpa || region->size != size)))
			continue;
		if (!pvr_adapter_prepare_unmap_ram(ram->adapter, region->gpa, region->size))
			return false;
	}
	return true;
}

int pvr_vm_ram_unmap(struct pvr_vm_ram *ram, uint64_t gpa, uint64_t size, struct pvr_error *err)
{
	unsigned int i;

	for (i = 0; i < ram->num; i++) {
		if (ram->regions[i].gpa == gpa && ram->regions[i].size == size) {
			remove_region(ram, i);
			return 0;
		}
	}
	pvr_fail(err, "there is no region 0x%" PRIx64 "+0x%" PRIx64 " to unmap", gpa, size);
	return -ENOENT;
}

void pvr_vm_ram_unmap_all(struct pvr_vm_ram *ram)
{
	while (ram->num)
		remove_region(ram, ram->num - 1);
	pvr_sigbus_close(ram->guards);
	ram->guards = NULL;
}

bool pvr_vm_ram_is_unshared(const struct pvr_vm_ram *ram, pid_t client)
{
	bool has_ram = false;
	unsigned int i;

	for (i = 0; i < ram->num; i++) {
		if (ram->regions[i].size < PVR_RAM_SMALLEST)
			continue;
		if (ram->regions[i].va)
			return pvr_peer_maps_privately(client, ram->file_dev, ram->file_ino);
		has_ram = true;
	}
	return has_ram && !ram->has_shared;
}
