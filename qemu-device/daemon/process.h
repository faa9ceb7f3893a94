/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon as a process: limits, privileges, service manager, stall guard. */
#ifndef PVR_DAEMON_PROCESS_H
#define PVR_DAEMON_PROCESS_H

#include <stdbool.h>
#include <time.h>

#include "base/error.h"

/* Every VM needs about ten descriptors: use all that we may. */
void pvr_raise_file_limit(void);

/* Become @user for good. */
bool pvr_drop_privileges(const char *user, struct pvr_error *err);

/* Tell the service manager ($NOTIFY_SOCKET), if there is one. */
void pvr_notify(const char *state);

/*
 * The stall guard of a thread: while its loop is busy, a signal comes to it twice a second,
 * so that a system call that a hostile QEMU has made to block returns with EINTR.
 */
struct pvr_stall_guard {
	timer_t timer;
	bool there, running;
};

/* Of the calling thread, as all of these. */
bool pvr_stall_guard_init(struct pvr_stall_guard *guard, struct pvr_error *err);
void pvr_stall_guard_busy(struct pvr_stall_guard *guard);
/* No signal wakes an idle thread. */
void pvr_stall_guard_idle(struct pvr_stall_guard *guard);
void pvr_stall_guard_exit(struct pvr_stall_guard *guard);

#endif /* PVR_DAEMON_PROCESS_H */
