// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SIGBUS in guest RAM: its file was truncated, or its file system is full.
 *
 * The signal is synchronous, so the handler runs in the thread that owns the table;
 * signal fences are all the ordering needed.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "attach.h"
#include "sigbus.h"

#define GUARDS_MAX 4096
#define GUARD_PAGE 4096ul

static struct guard {
	uintptr_t start, end; /* end 0: free */
	volatile sig_atomic_t *broken;
} guards[GUARDS_MAX];

int pvr_sigbus_guard(void *start, size_t size, volatile sig_atomic_t *broken)
{
	int i;

	for (i = 0; i < GUARDS_MAX; i++) {
		if (guards[i].end)
			continue;
		guards[i].start = (uintptr_t)start;
		guards[i].broken = broken;
		atomic_signal_fence(memory_order_release);
		guards[i].end = (uintptr_t)start + size;
		return i;
	}
	return -1;
}

void pvr_sigbus_unguard(int handle)
{
	if (handle < 0)
		return;
	guards[handle].end = 0;
	atomic_signal_fence(memory_order_release);
}

static const struct guard *find_guard(uintptr_t addr)
{
	int i;

	for (i = 0; i < GUARDS_MAX; i++) {
		if (addr >= guards[i].start && addr < guards[i].end)
			return &guards[i];
	}
	return NULL;
}

static bool put_anonymous(uintptr_t start, uintptr_t end)
{
	return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* mmap() is not on the list of async-signal-safe functions; it is a bare system call. */
static void on_sigbus(int signo, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr & ~(GUARD_PAGE - 1);
	const struct guard *guard = find_guard(addr);
	int saved = errno;

	/* The rest of a region of huge pages can only be replaced as a whole. */
	if (guard && (put_anonymous(addr, guard->end) || put_anonymous(guard->start, guard->end))) {
		*guard->broken = 1;
		errno = saved;
		return;
	}
	signal(signo, SIG_DFL); /* the access is repeated, and kills us */
}

int pvr_sigbus_init(void)
{
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}
