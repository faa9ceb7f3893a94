// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The files that a client sends as guest RAM: which are mapped, which part, and which are
 * persistent. A memory file stands for that of device DAX and of huge pages: fstat(), statx(),
 * fstatfs() and mmap() are wrapped (the symbols of three of them end with 64).
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "attach/message.h"
#include "attach/peer_maps.h"
#include "attach/ram.h"
#include "attach/sigbus.h"
#include "base/closer.h"
#include "test.h"

#define SIZE (8u * PVR_PAGE_SIZE)
#define GPA 0x100000000ull
#define DAX makedev(252, 5)

static struct {
	int fd; /* acts as a character device */
	bool is_dax;
	unsigned int mapped, persisted, synced; /* regions of the adapter; mappings by MAP_SYNC */
	long page; /* of hugetlbfs; 0: of tmpfs */
	struct { /* what the kernel, the guard and the adapter got */
		uint8_t *va;
		uint64_t offset, size;
	} mapping, guarded, unmapped, ram;
} host;

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __real_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx);
int __wrap_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx);
int __real_fstatfs64(int fd, struct statfs *sfs);
int __wrap_fstatfs64(int fd, struct statfs *sfs);
void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

int __wrap_fstat64(int fd, struct stat *st)
{
	assert_int_not_equal(fd, host.fd); /* it can wait for the server of such a file */
	return __real_fstat64(fd, st);
}

int __wrap_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx)
{
	int ret = __real_statx(folder, path, flags, mask, stx);

	if (folder == host.fd) {
		assert_true(flags & AT_STATX_DONT_SYNC);
		stx->stx_mode = S_IFCHR | 0600;
		stx->stx_rdev_major = major(DAX);
		stx->stx_rdev_minor = minor(DAX);
	}
	return ret;
}

int __wrap_fstatfs64(int fd, struct statfs *sfs)
{
	int ret = __real_fstatfs64(fd, sfs);

	if (host.page) {
		sfs->f_type = HUGETLBFS_MAGIC;
		sfs->f_bsize = host.page;
	}
	return ret;
}

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *va;

	if (fd == host.fd && (flags & MAP_SYNC)) {
		if (!host.is_dax) {
			errno = EOPNOTSUPP;
			return MAP_FAILED;
		}
		host.synced++;
		flags = MAP_SHARED;
	}
	va = __real_mmap64(addr, len, prot, flags, fd, offset);
	if (fd >= 0 && va != MAP_FAILED) {
		host.mapping.va = va;
		host.mapping.offset = (uint64_t)offset;
		host.mapping.size = len;
	}
	return va;
}

/* ------------------------------------------------------------- the rest of the daemon */

bool pvr_fd_is_memory(int fd)
{
	return fd != host.fd && fcntl(fd, F_GET_SEALS) >= 0;
}

bool pvr_peer_maps_privately(pid_t pid, dev_t dev, ino_t ino)
{
	return false;
}

struct pvr_sigbus_set *pvr_sigbus_open(void)
{
	return (struct pvr_sigbus_set *)&host;
}

void pvr_sigbus_close(struct pvr_sigbus_set *set)
{
}

int pvr_sigbus_guard(struct pvr_sigbus_set *set, void *start, size_t size, size_t page,
		     bool *broken, struct pvr_loop *loop)
{
	host.guarded.va = start;
	host.guarded.size = size;
	assert_int_equal(page, host.page ? host.page : PVR_PAGE_SIZE);
	return 0;
}

void pvr_sigbus_unguard(struct pvr_sigbus_set *set, int handle)
{
}

void pvr_closer_unmap(struct pvr_closer *closer, void *va, size_t size, int fd)
{
	host.unmapped.va = va;
	host.unmapped.size = size;
	munmap(va, size);
	if (fd >= 0)
		close(fd);
}

int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable)
{
	host.mapped++;
	host.ram.va = va;
	host.ram.size = size;
	return 0;
}

int pvr_adapter_persist_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	assert_int_equal(gpa, GPA);
	assert_int_equal(size, SIZE);
	host.persisted++;
	return 0;
}

void pvr_adapter_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	host.mapped--;
}

bool pvr_adapter_prepare_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	return true;
}

void pvr_adapter_count_ram(struct pvr_adapter *adapter, uint64_t bytes)
{
}

/* ------------------------------------------------------------- tests */

static struct pvr_vm_ram ram;
static struct pvr_error error;

/* @is_device: the file acts as a character device. Return: that of pvr_vm_ram_map(). */
static int map(bool is_device, uint64_t gpa, uint64_t limit)
{
	struct pvr_vm_ram_request req = { .gpa = gpa,
					  .size = SIZE,
					  .fd = memfd_create("ram", MFD_ALLOW_SEALING),
					  .readable = true,
					  .writable = true };
	int ret;

	assert_true(req.fd >= 0 && ftruncate(req.fd, SIZE) == 0);
	host.fd = is_device ? req.fd : -1;
	memset(&ram, 0, sizeof(ram));
	ram.limit = limit;
	ret = pvr_vm_ram_map(&ram, &req, &error);
	if (req.fd >= 0)
		close(req.fd);
	return ret;
}

static int begin(void **state)
{
	memset(&host, 0, sizeof(host));
	return 0;
}

static int end(void **state)
{
	pvr_vm_ram_unmap_all(&ram);
	assert_int_equal(host.mapped, 0);
	return 0;
}

#define TEST_HOST(test) TEST_SETUP(begin, end, test)

TEST_HOST(test_shared_memory_is_volatile)
{
	assert_int_equal(map(false, GPA, SIZE), 0);
	assert_int_equal(host.mapped, 1);
	assert_int_equal(host.persisted, 0);
}

TEST_HOST(test_device_dax_is_persistent)
{
	host.is_dax = true;
	assert_int_equal(map(true, GPA, SIZE), 0);
	assert_int_equal(host.mapped, 1);
	assert_int_equal(host.persisted, 1);
	assert_int_equal(host.synced, 2); /* to find out, and for use */
	assert_int_equal(ram.regions[0].file.dev, DAX);
}

TEST_HOST(test_other_devices_are_refused)
{
	assert_int_equal(map(true, GPA, SIZE), -EINVAL);
	assert_non_null(strstr(error.text, "is not memory"));
}

TEST_HOST(test_device_dax_off_a_page_is_refused)
{
	host.is_dax = true;
	assert_int_equal(map(true, GPA + 512, SIZE), -EINVAL);
	assert_non_null(strstr(error.text, "is not on a page boundary"));
}

TEST_HOST(test_device_dax_counts_as_memory_of_the_guest)
{
	host.is_dax = true;
	assert_int_equal(map(true, GPA, SIZE - PVR_PAGE_SIZE), -ENOSPC);
	assert_non_null(strstr(error.text, "see memory= in pvrdmad(8)"));
}

#define GIB (1ull << 30)

/* A region of a file of two pages of 1 GiB, of which @pages are mapped from @begin on. */
static void check_huge(uint64_t offset, uint64_t size, uint64_t begin, uint64_t pages)
{
	struct pvr_vm_ram_request req = { .gpa = GPA,
					  .size = size,
					  .offset = offset,
					  .fd = memfd_create("ram", MFD_ALLOW_SEALING),
					  .readable = true };

	assert_true(req.fd >= 0 && ftruncate(req.fd, 2 * GIB) == 0);
	memset(&ram, 0, sizeof(ram));
	host.fd = -1;
	host.page = GIB;
	ram.limit = 2 * GIB;
	assert_int_equal(pvr_vm_ram_map(&ram, &req, &error), 0);
	assert_int_equal(host.mapping.offset, begin);
	assert_int_equal(host.mapping.size, pages * GIB);
	assert_ptr_equal(host.ram.va, host.mapping.va + offset - begin);
	assert_int_equal(host.ram.size, size);
	assert_ptr_equal(host.guarded.va, host.mapping.va);
	assert_int_equal(host.guarded.size, host.mapping.size);
	assert_int_equal(ram.bytes, size);
	assert_int_equal(ram.counted, pages * GIB);
	assert_true(ram.has_huge);
	assert_int_equal(pvr_vm_ram_unmap(&ram, GPA, size, &error), 0);
	assert_ptr_equal(host.unmapped.va, host.mapping.va);
	assert_int_equal(host.unmapped.size, host.mapping.size);
	assert_int_equal(ram.bytes, 0);
}

TEST_HOST(test_huge_pages_are_mapped_as_a_whole)
{
	check_huge(0, PVR_PAGE_SIZE, 0, 1);
	check_huge(1ull << 20, 8 * PVR_PAGE_SIZE, 0, 1);
	check_huge(GIB - PVR_PAGE_SIZE, PVR_PAGE_SIZE, 0, 1);
	check_huge(GIB - PVR_PAGE_SIZE, 2 * PVR_PAGE_SIZE, 0, 2);
	check_huge(GIB, PVR_PAGE_SIZE, GIB, 1);
	check_huge(2 * GIB - PVR_PAGE_SIZE, PVR_PAGE_SIZE, GIB, 1);
	check_huge(1ull << 20, 2 * GIB - (1ull << 20), 0, 2);
}

TEST_HOST(test_huge_pages_count_once_for_all_regions)
{
	struct pvr_vm_ram_request req = { .size = PVR_PAGE_SIZE, .readable = true };
	int fd = memfd_create("ram", MFD_ALLOW_SEALING);
	unsigned int i;

	assert_int_equal(ftruncate(fd, 2 * GIB), 0);
	memset(&ram, 0, sizeof(ram));
	host.fd = -1;
	host.page = GIB;
	ram.limit = 2 * GIB;
	for (i = 0; i < 8; i++) {
		req.gpa = GPA + i * GIB;
		req.offset = i * (GIB / 4);
		req.fd = dup(fd);
		assert_int_equal(pvr_vm_ram_map(&ram, &req, &error), 0);
	}
	assert_int_equal(ram.counted, 2 * GIB);
	assert_int_equal(ram.bytes, 8 * PVR_PAGE_SIZE);
	close(fd);
}

/* A region that is refused for another reason does not make the RAM private. */
TEST_HOST(test_refused_memory_is_not_unshared)
{
	struct pvr_vm_ram_request vga = { .size = 16u << 20, .fd = -1, .readable = true };

	assert_int_equal(map(false, GPA, SIZE - PVR_PAGE_SIZE), -ENOSPC);
	assert_int_equal(pvr_vm_ram_map(&ram, &vga, &error), 0);
	assert_false(pvr_vm_ram_is_unshared(&ram, 0));
}

TEST_HOST(test_ram_without_a_descriptor_is_unshared)
{
	struct pvr_vm_ram_request private = { .size = 16u << 20, .fd = -1, .readable = true };

	memset(&ram, 0, sizeof(ram));
	assert_int_equal(pvr_vm_ram_map(&ram, &private, &error), 0);
	assert_true(pvr_vm_ram_is_unshared(&ram, 0));
}
