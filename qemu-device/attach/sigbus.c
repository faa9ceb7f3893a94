// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SIGBUS in guest RAM: its file was truncated, or its file system is full.
 *
 * The signal is synchronous: the handler runs in the thread that accessed the memory.
 * Any thread can access it that executes a request of this VM or of its peer VMs. The slot
 * of the memory does not change during the access, because it is freed after the last use.
 * Other slots may change, and the handler must not use a half-written slot. So each slot
 * has a sequence number, odd during a change, which the reader checks before and after.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#include "attach/attach.h"
#include "attach/sigbus.h"

#define GUARDS_MAX 4096
#define GUARD_PAGE 4096ul

struct guard {
	uintptr_t start, end; /* end 0: free */
	bool *broken;
	struct pvr_loop *wakes;
};

static struct {
	struct guard guard;
	unsigned int number;
} slots[GUARDS_MAX];

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER; /* not taken by the handler */

/* Called with slots_lock held. */
static void set_slot(int i, const struct guard *guard)
{
	struct guard *to = &slots[i].guard;

	__atomic_fetch_add(&slots[i].number, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->start, guard->start, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->end, guard->end, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->broken, guard->broken, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->wakes, guard->wakes, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&slots[i].number, 1, __ATOMIC_SEQ_CST);
}

/* Return: false if the slot is being changed. */
static bool get_slot(int i, struct guard *guard)
{
	const struct guard *from = &slots[i].guard;
	unsigned int number = __atomic_load_n(&slots[i].number, __ATOMIC_SEQ_CST);

	guard->start = __atomic_load_n(&from->start, __ATOMIC_SEQ_CST);
	guard->end = __atomic_load_n(&from->end, __ATOMIC_SEQ_CST);
	guard->broken = __atomic_load_n(&from->broken, __ATOMIC_SEQ_CST);
	guard->wakes = __atomic_load_n(&from->wakes, __ATOMIC_SEQ_CST);
	return !(number & 1) && number == __atomic_load_n(&slots[i].number, __ATOMIC_SEQ_CST);
}

int pvr_sigbus_guard(void *start, size_t size, bool *broken, struct pvr_loop *wakes)
{
	const struct guard guard = {
		.start = (uintptr_t)start,
		.end = (uintptr_t)start + size,
		.broken = broken,
		.wakes = wakes,
	};
	int i;

	pthread_mutex_lock(&slots_lock);
	for (i = 0; i < GUARDS_MAX && slots[i].guard.end; i++)
		;
	if (i < GUARDS_MAX)
		set_slot(i, &guard);
	pthread_mutex_unlock(&slots_lock);
	return i < GUARDS_MAX ? i : -1;
}

void pvr_sigbus_unguard(int handle)
{
	static const struct guard none;

	if (handle < 0)
		return;
	pthread_mutex_lock(&slots_lock);
	set_slot(handle, &none);
	pthread_mutex_unlock(&slots_lock);
}

static bool find_guard(uintptr_t addr, struct guard *guard)
{
	int i;

	for (i = 0; i < GUARDS_MAX; i++) {
		if (get_slot(i, guard) && addr >= guard->start && addr < guard->end)
			return true;
	}
	return false;
}

static bool put_anonymous(uintptr_t start, uintptr_t end)
{
	return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* mmap() is not listed as async-signal-safe; in practice it is a plain system call. */
static void on_sigbus(int signo, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr & ~(GUARD_PAGE - 1);
	struct guard guard;
	bool found = find_guard(addr, &guard);
	int saved = errno;

	/* A huge page can only be replaced as a whole: replace the rest of the region. */
	if (found && (put_anonymous(addr, guard.end) || put_anonymous(guard.start, guard.end))) {
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
