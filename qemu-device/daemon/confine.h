/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Limits that the daemon sets to itself, against an attacker that executes code in it.
 *
 * DOC: confinement
 *
 * At its start, after it has changed its user, the process gives up new privileges, core
 * files, and the access of processes of the same user to its memory. After its set-up, and
 * before it reads a guest's or a host's first byte, it limits all its threads to a list of
 * system calls. This does not depend on the service manager.
 *
 * DOC: memory
 *
 * RLIMIT_DATA bounds the memory of the daemon's own, so that a leak does not take that of the host:
 * an allocation then fails, as the code expects it. Guests' RAM, which is shared, does not count. A
 * control group counts it for the process that touches a page first, and MemoryMax= would kill the
 * daemon for pages of its guests.
 */
#ifndef PVR_DAEMON_CONFINE_H
#define PVR_DAEMON_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum pvr_seccomp_mode {
	PVR_SECCOMP_ON, /* other system calls end the process */
	PVR_SECCOMP_LOG, /* the kernel's audit log has them, and they are executed */
	PVR_SECCOMP_OFF,
};

/* Before any thread is started. */
bool pvr_confine_process(struct pvr_error *err);

/*
 * Limits the private memory of the process to @bytes; a lower hard limit stays. Return: false with
 * @err filled.
 */
bool pvr_confine_data(uint64_t bytes, struct pvr_error *err);

/* Limits the system calls of all threads, later ones included. False with @err filled. */
bool pvr_confine_syscalls(enum pvr_seccomp_mode mode, struct pvr_error *err);

#endif /* PVR_DAEMON_CONFINE_H */
