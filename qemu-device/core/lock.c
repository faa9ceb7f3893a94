// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Waiting for a lock: spin for a short time, then sleep in the kernel. */
#include "core/lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC 1000000000ull
/* Most locks are free again sooner than a thread can go to sleep. */
#define SPINS 100
/* Calls of sched_yield() by a thread that lets waiting threads take a lock first. */
#define YIELDS 8

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static bool is_free(const struct pvr_lock *lock)
{
	return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) == PVR_LOCK_FREE;
}

static bool spin(struct pvr_lock *lock)
{
	unsigned int i;

	for (i = 0; i < SPINS; i++) {
		if (is_free(lock) && pvr_lock_take(lock))
			return true;
		relax();
	}
	return false;
}

/* @ns: UINT64_MAX means forever. May return early. */
static void sleep_while_held(struct pvr_lock *lock, uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC };

	syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, PVR_LOCK_HELD_ASLEEP,
		ns == UINT64_MAX ? NULL : &ts, NULL, 0);
}

/*
 * A thread that has slept takes the lock as HELD_ASLEEP, because other threads may still
 * sleep. At worst an unlock wakes no thread.
 */
static bool sleep_until_taken(struct pvr_lock *lock, uint64_t ns)
{
	uint64_t end = ns == UINT64_MAX ? UINT64_MAX : now() + ns, at;

	while (__atomic_exchange_n(&lock->state, PVR_LOCK_HELD_ASLEEP, __ATOMIC_ACQUIRE) !=
	       PVR_LOCK_FREE) {
		at = end == UINT64_MAX ? 0 : now();
		if (at > end)
			return false;
		sleep_while_held(lock, end == UINT64_MAX ? end : end - at + 1);
	}
	return true;
}

bool pvr_lock_wait(struct pvr_lock *lock, uint64_t ns)
{
	bool taken;

	__atomic_fetch_add(&lock->wanted, 1, __ATOMIC_RELAXED);
	taken = spin(lock) || sleep_until_taken(lock, ns);
	__atomic_fetch_sub(&lock->wanted, 1, __ATOMIC_RELAXED);
	return taken;
}

void pvr_lock_wake(struct pvr_lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Waiting threads may need this CPU, so this yields after a short spin. */
void pvr_lock_yield(const struct pvr_lock *lock)
{
	unsigned int i;

	for (i = 0; i < SPINS + YIELDS; i++) {
		if (!pvr_lock_is_wanted(lock) || !is_free(lock))
			return;
		if (i < SPINS)
			relax();
		else
			sched_yield();
	}
}
