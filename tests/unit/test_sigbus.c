// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What replaces guest RAM that cannot be accessed. mmap() is wrapped: its symbol is mmap64. */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/sigbus.h"
#include "base/loop.h"
#include "test.h"

#define MIB (1ull << 20)
#define SIZE (100 * MIB)
#define PIECE (32 * MIB)
#define LARGEST (2 * PIECE) /* page */

static unsigned int replaced, woken;
static size_t longest;
static size_t page; /* of the mapping: only whole pages can be replaced */

void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (!(flags & MAP_FIXED))
		return __real_mmap64(addr, len, prot, flags, fd, offset);
	if ((uintptr_t)addr % page || len % page) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	replaced++;
	longest = len > longest ? len : longest;
	return __real_mmap64(addr, len, prot, flags, fd, offset);
}

void pvr_loop_wake(struct pvr_loop *loop)
{
	woken++;
}

/* Memory whose file was truncated, from a multiple of the piece on. */
struct ram {
	uint8_t *reserved, *va;
	size_t size; /* of @reserved */
	struct pvr_sigbus_set *set;
	bool broken;
};

/* @pages: their size. @known: what the caller of pvr_sigbus_guard() knows of it. */
static void ram_open(struct ram *ram, size_t size, size_t pages, size_t known)
{
	int fd = memfd_create("ram", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	ram->size = size + LARGEST;
	ram->reserved = mmap(NULL, ram->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ram->reserved, MAP_FAILED);
	ram->va = ram->reserved + (LARGEST - (uintptr_t)ram->reserved % LARGEST) % LARGEST;
	assert_ptr_equal(
		__real_mmap64(ram->va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		ram->va);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	ram->broken = false;
	ram->set = pvr_sigbus_open();
	assert_int_equal(pvr_sigbus_init(), 0);
	assert_int_equal(pvr_sigbus_guard(ram->set, ram->va, size, known, &ram->broken, NULL), 0);
	replaced = woken = 0;
	longest = 0;
	page = pages;
}

static void ram_close(struct ram *ram)
{
	pvr_sigbus_close(ram->set);
	munmap(ram->reserved, ram->size);
}

static void touch(struct ram *ram, uint64_t offset)
{
	volatile uint8_t *byte = ram->va + offset;

	*byte = 1;
	assert_int_equal(*byte, 1);
	assert_true(ram->broken);
}

TEST_PLAIN(test_memory_is_replaced_in_pieces)
{
	struct ram ram;

	ram_open(&ram, SIZE, 4096, 4096);
	touch(&ram, 5 * MIB);
	assert_int_equal(longest, PIECE - 5 * MIB);
	touch(&ram, PIECE - 1); /* the same piece */
	assert_int_equal(replaced, 1);
	touch(&ram, PIECE);
	touch(&ram, 0);
	touch(&ram, SIZE - 1); /* the last piece is shorter */
	assert_int_equal(replaced, 4);
	assert_int_equal(woken, 4);
	assert_int_equal(longest, PIECE);
	ram_close(&ram);
}

TEST_PLAIN(test_limit_of_private_memory_does_not_keep_memory_from_being_replaced)
{
	struct rlimit before, limit;
	struct ram ram;

	ram_open(&ram, SIZE, 4096, 4096);
	assert_return_code(getrlimit(RLIMIT_DATA, &before), errno);
	limit = before;
	limit.rlim_cur = 4096; /* less than the process has */
	assert_return_code(setrlimit(RLIMIT_DATA, &limit), errno);
	touch(&ram, 5 * MIB);
	assert_return_code(setrlimit(RLIMIT_DATA, &before), errno);
	ram_close(&ram);
}

TEST_PLAIN(test_huge_pages_are_replaced_in_pieces_of_whole_pages)
{
	struct ram ram;

	ram_open(&ram, SIZE, 2 * MIB, 2 * MIB);
	touch(&ram, 5 * MIB + 4096);
	assert_int_equal(longest, PIECE - 4 * MIB);
	touch(&ram, SIZE - 1);
	assert_int_equal(replaced, 2);
	assert_int_equal(woken, 2);
	ram_close(&ram);
}

TEST_PLAIN(test_pages_larger_than_a_piece_are_replaced_one_by_one)
{
	struct ram ram;

	ram_open(&ram, 2 * LARGEST, LARGEST, LARGEST);
	touch(&ram, PIECE + 5 * MIB);
	assert_int_equal(replaced, 1);
	assert_int_equal(longest, LARGEST);
	touch(&ram, LARGEST);
	assert_int_equal(replaced, 2);
	ram_close(&ram);
}

/* As those of device DAX. */
TEST_PLAIN(test_pages_of_unknown_size_are_replaced_as_a_whole)
{
	struct ram ram;

	ram_open(&ram, LARGEST, LARGEST, 4096);
	touch(&ram, 5 * MIB);
	assert_int_equal(replaced, 1);
	assert_int_equal(longest, LARGEST);
	ram_close(&ram);
}
