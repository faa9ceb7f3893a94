// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SIGBUS in guest RAM: its file was truncated, or its file system is full.
 *
 * The signal is synchronous: the handler runs in the thread that accessed the memory.
 * Any thread can access it that executes a request of this VM or of its peer VMs. The slot
 * of the memory does not change during the access, because it is freed after the last use.
 * Other slots may change, and the handler must not use a half-written slot. So each slot
 * has a sequence number, odd during a change, which the reader checks before and after.
 *
 * Each client has a set of slots, so no client takes those of another. The handler reads the
 * list of all sets without a lock: a set is never removed or freed. The next client uses it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "attach/attach.h"
#include "attach/sigbus.h"

#define GUARD_PIECE (32ul << 20)

struct guard {
	uintptr_t start, end; /* end 0: free */
	uintptr_t page;
	bool *broken;
	struct pvr_loop *wakes;
};

struct slot {
	struct guard guard;
	unsigned int number;
};

struct pvr_sigbus_set {
	struct pvr_sigbus_set *next; /* does not change once the set is in the list */
	bool used; /* with sets_lock held */
	struct slot slots[PVR_SIGBUS_GUARDS]; /* written by the client's worker only */
};

static struct pvr_sigbus_set *sets; /* atomic: the handler reads it without sets_lock */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER; /* not taken by the handler */

static void set_slot(struct slot *slot, const struct guard *guard)
{
	struct guard *to = &slot->guard;

	__atomic_fetch_add(&slot->number, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->start, guard->start, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->end, guard->end, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->page, guard->page, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->broken, guard->broken, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->wakes, guard->wakes, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&slot->number, 1, __ATOMIC_SEQ_CST);
}

/* Return: false if the slot is being changed. */
static bool get_slot(const struct slot *slot, struct guard *guard)
{
	const struct guard *from = &slot->guard;
	unsigned int number = __atomic_load_n(&slot->number, __ATOMIC_SEQ_CST);

	guard->start = __atomic_load_n(&from->start, __ATOMIC_SEQ_CST);
	guard->end = __atomic_load_n(&from->end, __ATOMIC_SEQ_CST);
	guard->page = __atomic_load_n(&from->page, __ATOMIC_SEQ_CST);
	guard->broken = __atomic_load_n(&from->broken, __ATOMIC_SEQ_CST);
	guard->wakes = __atomic_load_n(&from->wakes, __ATOMIC_SEQ_CST);
	return !(number & 1) && number == __atomic_load_n(&slot->number, __ATOMIC_SEQ_CST);
}

/* Called with sets_lock held. Return: NULL without memory. */
static struct pvr_sigbus_set *find_set(void)
{
	struct pvr_sigbus_set *set = sets;

	while (set && set->used)
		set = set->next;
	if (set)
		return set;
	set = calloc(1, sizeof(*set));
	if (set) {
		set->next = sets;
		__atomic_store_n(&sets, set, __ATOMIC_RELEASE); /* pairs with find_guard() */
	}
	return set;
}

struct pvr_sigbus_set *pvr_sigbus_open(void)
{
	struct pvr_sigbus_set *set;

	pthread_mutex_lock(&sets_lock);
	set = find_set();
	if (set)
		set->used = true;
	pthread_mutex_unlock(&sets_lock);
	return set;
}

void pvr_sigbus_close(struct pvr_sigbus_set *set)
{
	int i;

	if (!set)
		return;
	for (i = 0; i < PVR_SIGBUS_GUARDS; i++)
		pvr_sigbus_unguard(set, i);
	pthread_mutex_lock(&sets_lock);
	set->used = false;
	pthread_mutex_unlock(&sets_lock);
}

int pvr_sigbus_guard(struct pvr_sigbus_set *set, void *start, size_t size, size_t page,
		     bool *broken, struct pvr_loop *wakes)
{
	const struct guard guard = {
		.start = (uintptr_t)start,
		.end = (uintptr_t)start + size,
		.page = page,
		.broken = broken,
		.wakes = wakes,
	};
	int i;

	for (i = 0; i < PVR_SIGBUS_GUARDS && set->slots[i].guard.end; i++)
		;
	if (i == PVR_SIGBUS_GUARDS)
		return -1;
	set_slot(&set->slots[i], &guard);
	return i;
}

void pvr_sigbus_set_wakes(struct pvr_sigbus_set *set, struct pvr_loop *wakes)
{
	struct guard guard;
	int i;

	for (i = 0; set && i < PVR_SIGBUS_GUARDS; i++) {
		guard = set->slots[i].guard;
		guard.wakes = wakes;
		if (guard.end)
			set_slot(&set->slots[i], &guard);
	}
}

void pvr_sigbus_unguard(struct pvr_sigbus_set *set, int handle)
{
	static const struct guard none;

	if (handle >= 0)
		set_slot(&set->slots[handle], &none);
}

static bool find_guard(uintptr_t addr, struct guard *guard)
{
	const struct pvr_sigbus_set *set = __atomic_load_n(&sets, __ATOMIC_ACQUIRE);
	int i;

	for (; set; set = set->next) {
		for (i = 0; i < PVR_SIGBUS_GUARDS; i++) {
			if (get_slot(&set->slots[i], guard) && addr >= guard->start &&
			    addr < guard->end)
				return true;
		}
	}
	return false;
}

/* Shared, because private memory counts for RLIMIT_DATA (daemon/confine.h) and may be refused. */
static bool put_anonymous(uintptr_t start, uintptr_t end)
{
	return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/*
 * Replaces a piece of the memory, to the next boundary of pieces: the kernel removes what was
 * mapped there, while a request of another VM waits. The kernel replaces whole pages only, so the
 * piece has whole pages. Those of device DAX have an unknown size: then all of the mapping.
 */
static bool replace(uintptr_t addr, const struct guard *guard)
{
	uintptr_t piece = guard->page > GUARD_PIECE ? guard->page : GUARD_PIECE;
	uintptr_t start = addr & ~(guard->page - 1), end = (addr / piece + 1) * piece;

	if (end > guard->end)
		end = guard->end;
	return put_anonymous(start, end) || put_anonymous(guard->start, guard->end);
}

/* mmap() is not listed as async-signal-safe; in practice it is a plain system call. */
static void on_sigbus(int signo, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	struct guard guard;
	bool found = find_guard(addr, &guard);
	int saved = errno;

	if (found && replace(addr, &guard)) {
		__atomic_store_n(guard.broken, true, __ATOMIC_RELEASE);
		pvr_loop_wake(guard.wakes);
		errno = saved;
		return;
	}
	signal(signo, SIG_DFL); /* the access repeats and kills the process */
}

int pvr_sigbus_init(void)
{
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}
