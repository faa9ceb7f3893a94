/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Mappings of files that others can truncate. */
#ifndef PVR_SIGBUS_H
#define PVR_SIGBUS_H

#include <signal.h>
#include <stddef.h>

/**
 * pvr_sigbus_guard() - contain SIGBUS in a mapping
 * @broken: set to 1 by the signal handler
 *
 * Return: a handle for pvr_sigbus_unguard(), or -1 if too many are guarded.
 */
int pvr_sigbus_guard(void *start, size_t size, volatile sig_atomic_t *broken);
void pvr_sigbus_unguard(int handle);

#endif /* PVR_SIGBUS_H */
