// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which thread unmaps memory of other processes, and in which pieces. munmap() is wrapped. */
#include <pthread.h>
#include <stdlib.h>

#include "base/closer.h"
#include "test.h"

#define MIB (1ull << 20)
#define SLICE (32 * MIB)
#define BASE 0x700000000000ull /* no call reaches the kernel */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held; /* calls wait */
	bool large_pages; /* a slice is refused */
	unsigned int calls, by_caller;
	uint64_t bytes, longest, unaligned;
	pthread_t caller;
} unmapped = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int __real_munmap(void *va, size_t size);
int __wrap_munmap(void *va, size_t size);

static int count(uint64_t va, size_t size)
{
	while (unmapped.held)
		pthread_cond_wait(&unmapped.changed, &unmapped.lock);
	if (unmapped.large_pages && size == SLICE) {
		errno = EINVAL;
		return -1;
	}
	unmapped.calls++;
	unmapped.bytes += size;
	unmapped.by_caller += pthread_equal(unmapped.caller, pthread_self()) != 0;
	unmapped.longest = size > unmapped.longest ? size : unmapped.longest;
	unmapped.unaligned += va % SLICE != 0;
	pthread_cond_broadcast(&unmapped.changed);
	return 0;
}

int __wrap_munmap(void *va, size_t size)
{
	int ret;

	if ((uint64_t)va < BASE || (uint64_t)va >= 2 * BASE)
		return __real_munmap(va, size);
	pthread_mutex_lock(&unmapped.lock);
	ret = count((uint64_t)va, size);
	pthread_mutex_unlock(&unmapped.lock);
	return ret;
}

static void begin(bool held, bool large_pages)
{
	unmapped.held = held;
	unmapped.large_pages = large_pages;
	unmapped.calls = unmapped.by_caller = 0;
	unmapped.bytes = unmapped.longest = unmapped.unaligned = 0;
	unmapped.caller = pthread_self();
}

static void release(void)
{
	pthread_mutex_lock(&unmapped.lock);
	unmapped.held = false;
	pthread_cond_broadcast(&unmapped.changed);
	pthread_mutex_unlock(&unmapped.lock);
}

static void await_bytes(uint64_t bytes)
{
	pthread_mutex_lock(&unmapped.lock);
	while (unmapped.bytes < bytes)
		pthread_cond_wait(&unmapped.changed, &unmapped.lock);
	assert_int_equal(unmapped.bytes, bytes);
	pthread_mutex_unlock(&unmapped.lock);
}

static void unmap(struct pvr_closer *closer, uint64_t offset, uint64_t size)
{
	pvr_closer_unmap(closer, (void *)(BASE + offset), size, -1);
}

TEST_PLAIN(test_another_thread_unmaps_in_slices)
{
	struct pvr_closer *closer = pvr_closer_create();

	begin(false, false);
	/* The last slice of the range, whole ones, and the first. */
	unmap(closer, 5 * MIB, 1000 * MIB);
	await_bytes(1000 * MIB);
	assert_int_equal(unmapped.by_caller, 0);
	assert_int_equal(unmapped.longest, SLICE);
	assert_int_equal(unmapped.calls, 32);
	assert_int_equal(unmapped.unaligned, 1);
	pvr_closer_destroy(closer);
}

/* As of hugetlbfs with pages of 1 GiB: their mapping is unmapped in one piece. */
TEST_PLAIN(test_pages_larger_than_a_slice)
{
	struct pvr_closer *closer = pvr_closer_create();

	begin(false, true);
	unmap(closer, 0, 2048 * MIB);
	await_bytes(2048 * MIB);
	assert_int_equal(unmapped.calls, 1);
	assert_int_equal(unmapped.by_caller, 0);
	pvr_closer_destroy(closer);
}

static void await_end(struct pvr_closer *closer)
{
	while (pvr_closer_has_memory(closer, 0))
		;
}

TEST_PLAIN(test_mappings_that_wait_are_counted)
{
	struct pvr_closer *closer = pvr_closer_create();
	unsigned int i;

	begin(true, false);
	for (i = 0; i < 63; i++)
		unmap(closer, i * MIB, 4096);
	assert_false(pvr_closer_has_memory(closer, MIB));
	assert_true(pvr_closer_has_memory(closer, 63 * 4096 - 1));
	unmap(closer, i * MIB, 4096);
	assert_true(pvr_closer_has_memory(closer, MIB));
	/* Descriptors have a limit of their own. */
	assert_false(pvr_closer_is_full(closer));
	release();
	await_bytes(64 * 4096);
	await_end(closer);
	pvr_closer_destroy(closer);
}

/* The thread unmaps what is left, and frees the closer. */
TEST_PLAIN(test_memory_is_unmapped_after_the_end)
{
	struct pvr_closer *closer = pvr_closer_create();

	begin(true, false);
	unmap(closer, 0, MIB);
	unmap(closer, MIB, MIB);
	pvr_closer_destroy(closer);
	assert_int_equal(unmapped.bytes, 0);
	release();
	await_bytes(2 * MIB);
}
