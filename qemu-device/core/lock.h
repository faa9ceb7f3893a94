/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A lock that is cheap to take without contention, and that supports trylock.
 *
 * DOC: fairness
 *
 * - A thread holds a lock for a bounded time.
 * - A thread that holds a lock takes further ones only by pvr_trylock(). So no thread
 *   waits while it holds a lock: there is no lock order and no deadlock. Exceptions are
 *   the short locks of GIDs and workers, which are taken inside.
 * - @wanted counts waiting threads. While it is above 0, pvr_trylock() fails, so threads
 *   that try do not starve threads that wait.
 * - A thread that takes the same lock repeatedly calls pvr_lock_yield() in between.
 */
#ifndef PVR_LOCK_H
#define PVR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum pvr_lock_state {
	PVR_LOCK_FREE,
	PVR_LOCK_HELD,
	PVR_LOCK_HELD_ASLEEP, /* held, and a thread may sleep until it is free */
};

struct pvr_lock {
	uint32_t state; /* enum pvr_lock_state */
	uint32_t wanted; /* number of threads that wait for it */
};

/* The slow paths of pvr_lock(), pvr_lock_for() and pvr_unlock(). */
bool pvr_lock_wait(struct pvr_lock *lock, uint64_t ns);
void pvr_lock_wake(struct pvr_lock *lock);

static inline bool pvr_lock_take(struct pvr_lock *lock)
{
	uint32_t expected = PVR_LOCK_FREE;

	return __atomic_compare_exchange_n(&lock->state, &expected, PVR_LOCK_HELD, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void pvr_lock(struct pvr_lock *lock)
{
	if (!pvr_lock_take(lock))
		pvr_lock_wait(lock, UINT64_MAX);
}

/* Take the lock within @ns, or a little more. Return: false: not taken. */
static inline bool pvr_lock_for(struct pvr_lock *lock, uint64_t ns)
{
	return pvr_lock_take(lock) || pvr_lock_wait(lock, ns);
}

/* Take the lock without waiting. Return: false: not taken. */
static inline bool pvr_trylock(struct pvr_lock *lock)
{
	return !__atomic_load_n(&lock->wanted, __ATOMIC_RELAXED) && pvr_lock_take(lock);
}

static inline void pvr_unlock(struct pvr_lock *lock)
{
	if (__atomic_exchange_n(&lock->state, PVR_LOCK_FREE, __ATOMIC_RELEASE) ==
	    PVR_LOCK_HELD_ASLEEP)
		pvr_lock_wake(lock);
}

/* May have changed when the caller reads the result. */
static inline bool pvr_lock_is_held(const struct pvr_lock *lock)
{
	return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != PVR_LOCK_FREE;
}

static inline bool pvr_lock_is_wanted(const struct pvr_lock *lock)
{
	return __atomic_load_n(&lock->wanted, __ATOMIC_RELAXED);
}

/*
 * Let waiting threads take the lock first. The caller does not hold it, and takes it
 * afterwards.
 */
void pvr_lock_yield(const struct pvr_lock *lock);

#endif /* PVR_LOCK_H */
