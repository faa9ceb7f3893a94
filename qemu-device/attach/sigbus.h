/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Mappings of files that another process can truncate. */
#ifndef PVR_ATTACH_SIGBUS_H
#define PVR_ATTACH_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"

/**
 * pvr_sigbus_guard() - contain SIGBUS in a mapping
 * @broken: set to true by the signal handler, in any thread
 * @wakes: woken by the signal handler
 *
 * Context: any thread, as pvr_sigbus_unguard().
 *
 * Return: a handle for pvr_sigbus_unguard(), or -1 if all slots are in use.
 */
int pvr_sigbus_guard(void *start, size_t size, bool *broken, struct pvr_loop *wakes);
/* Call after the last access to the mapping. */
void pvr_sigbus_unguard(int handle);

#endif /* PVR_ATTACH_SIGBUS_H */
