// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The files that a client sends as guest RAM: which are mapped, and which are persistent. A
 * memory file stands for that of device DAX: fstat(), statx() and mmap() are wrapped (the symbols
 * of two of them are fstat64 and mmap64).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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
} host;

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __real_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx);
int __wrap_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx);
void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

int __wrap_fstat64(int fd, struct stat *st)
{
	int ret = __real_fstat64(fd, st);

	if (fd == host.fd) {
		st->st_mode = S_IFCHR | 0600;
		st->st_rdev = DAX;
		st->st_size = 0;
	}
	return ret;
}

int __wrap_statx(int folder, const char *path, int flags, unsigned int mask, struct statx *stx)
{
	int ret = __real_statx(folder, path, flags, mask, stx);

	if (folder == host.fd)
		stx->stx_mode = S_IFCHR | 0600;
	return ret;
}

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd == host.fd && (flags & MAP_SYNC)) {
		if (!host.is_dax) {
			errno = EOPNOTSUPP;
			return MAP_FAILED;
		}
		host.synced++;
		flags = MAP_SHARED;
	}
	return __real_mmap64(addr, len, prot, flags, fd, offset);
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

int pvr_sigbus_guard(struct pvr_sigbus_set *set, void *start, size_t size, bool *broken,
		     struct pvr_loop *loop)
{
	return 0;
}

void pvr_sigbus_unguard(struct pvr_sigbus_set *set, int handle)
{
}

void pvr_closer_unmap(struct pvr_closer *closer, void *va, size_t size, int fd)
{
	munmap(va, size);
	if (fd >= 0)
		close(fd);
}

int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable)
{
	host.mapped++;
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
