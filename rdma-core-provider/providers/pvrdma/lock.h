/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Spinlocks that are cheap without contention.
 *
 * The exchange that takes a lock costs as much as the rest of a post. A process of one
 * thread needs no exchange, nor does an object of a thread domain, which the application
 * uses by one thread at a time. In both cases the lock is only marked as held. A thread
 * that is created meanwhile sees the mark.
 */
#ifndef PVR_LOCK_H
#define PVR_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define PVR_ONE_THREAD __libc_single_threaded
#endif
#endif
#ifndef PVR_ONE_THREAD /* glibc before 2.32 has no such variable */
#define PVR_ONE_THREAD false
#endif

struct pvr_lock {
	_Atomic(bool) held;
	bool alone; /* one thread at a time: no exchange needed */
};

static inline void pvr_lock_init(struct pvr_lock *lock, bool alone)
{
	atomic_init(&lock->held, false);
	lock->alone = alone;
}

/* Tells the CPU that this thread waits. */
static inline void pvr_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static inline bool pvr_lock_is_held(struct pvr_lock *lock)
{
	return atomic_load_explicit(&lock->held, memory_order_relaxed);
}

static inline void pvr_lock(struct pvr_lock *lock)
{
	if (__builtin_expect(PVR_ONE_THREAD || lock->alone, true)) {
		atomic_store_explicit(&lock->held, true, memory_order_relaxed);
		return;
	}
	while (atomic_exchange_explicit(&lock->held, true, memory_order_acquire))
		while (pvr_lock_is_held(lock))
			pvr_cpu_relax();
}

static inline void pvr_unlock(struct pvr_lock *lock)
{
	atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif /* PVR_LOCK_H */
