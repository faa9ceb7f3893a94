/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon as a process: limits, privileges, service manager, stall guard. */
#ifndef PVR_DAEMON_PROCESS_H
#define PVR_DAEMON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

/*
 * Raises the limit of open files to its maximum: each VM needs about 30 descriptors. The table of
 * descriptors has its size then. Before any thread is started.
 */
void pvr_raise_file_limit(void);

/* Switches to the user @user permanently. */
bool pvr_drop_privileges(const char *user, struct pvr_error *err);

#define PVR_NOTIFY_FDS 2

/* Return: the variable @name of the environment as a number; 0: absent or invalid. */
uint64_t pvr_environment_number(const char *name);

/* Return: whether there is a service manager, at $NOTIFY_SOCKET. */
bool pvr_is_managed(void);
/*
 * Notifies the service manager, if there is one. If it does not read for @timeout_ns, this message
 * is lost. Return: whether it was sent.
 */
bool pvr_notify(const char *state, uint64_t timeout_ns);
/* The same with descriptors, at most PVR_NOTIFY_FDS, which stay the caller's. */
bool pvr_notify_fds(const char *state, const int *fds, size_t num_fds, uint64_t timeout_ns);

/*
 * The stall guard of a thread: while its loop is busy, a signal interrupts it twice per
 * second. So a system call that a hostile QEMU makes block returns with EINTR.
 */
struct pvr_stall_guard {
	timer_t timer;
	bool there, running;
};

/* For the calling thread, as all of these. */
bool pvr_stall_guard_init(struct pvr_stall_guard *guard, struct pvr_error *err);
void pvr_stall_guard_busy(struct pvr_stall_guard *guard);
/* Stops the timer: signals would wake an idle thread. */
void pvr_stall_guard_idle(struct pvr_stall_guard *guard);
void pvr_stall_guard_exit(struct pvr_stall_guard *guard);

#endif /* PVR_DAEMON_PROCESS_H */
