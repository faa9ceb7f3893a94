/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A lock that is cheap to take when nobody else wants it, and that others can try.
 *
 * DOC: fairness
 *
 * Who holds such a lock holds it for a bounded time, and holds several of them only if
 * it has got the further ones by pvr_trylock(): nobody ever waits while it holds one
 * (the fabrics' and the workers' own short locks, which are taken inside, excepted), so
 * there is no order to keep and no deadlock.
 *
 * Somebody who waits counts in @wanted. pvr_trylock() then fails, so those who come by
 * with something else in hand do not starve those who wait; and a thread that takes the
 * same lock again and again calls pvr_lock_give_way() in between.
 */
#ifndef PVR_LOCK_H
#define PVR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum pvr_lock_state {
	PVR_LOCK_FREE,
	PVR_LOCK_HELD,
	PVR_LOCK_HELD_ASLEEP, /* held, and somebody may be asleep until it is free */
};

struct pvr_lock {
	uint32_t state; /* enum pvr_lock_state */
	uint32_t wanted; /* threads that wait for it */
};

/* The slow halves of what follows. */
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

/* Waits at most so long, or somewhat longer. Return: whether it is held now. */
static inline bool pvr_lock_for(struct pvr_lock *lock, uint64_t ns)
{
	return pvr_lock_take(lock) || pvr_lock_wait(lock, ns);
}

/* Never waits. Return: whether it is held now. */
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

static inline bool pvr_lock_is_wanted(const struct pvr_lock *lock)
{
	return __atomic_load_n(&lock->wanted, __ATOMIC_RELAXED);
}

/* The caller, who does not hold it, wants it again: lets those who wait go first. */
void pvr_lock_give_way(const struct pvr_lock *lock);

#endif /* PVR_LOCK_H */
