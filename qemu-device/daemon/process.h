/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon as a process: limits, privileges, service manager, stall guard. */
#ifndef PVR_PROCESS_H
#define PVR_PROCESS_H

#include <stdbool.h>

#include "error.h"

/* Every VM needs about ten descriptors: use all that we may. */
void pvr_raise_file_limit(void);

/* Become @user for good. */
bool pvr_drop_privileges(const char *user, struct pvr_error *err);

/* Tell the service manager ($NOTIFY_SOCKET), if there is one. */
void pvr_notify(const char *state);

/*
 * The stall guard: while the loop is busy, a signal comes twice a second, so that a
 * system call that a hostile QEMU has made to block returns with EINTR.
 */
bool pvr_stall_guard_init(struct pvr_error *err);
void pvr_stall_guard_busy(void);
/* No signal wakes an idle daemon. */
void pvr_stall_guard_idle(void);
void pvr_stall_guard_exit(void);

#endif /* PVR_PROCESS_H */
