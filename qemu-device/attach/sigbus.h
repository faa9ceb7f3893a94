/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Mappings of files that others can truncate. */
#ifndef PVR_ATTACH_SIGBUS_H
#define PVR_ATTACH_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"

/**
 * pvr_sigbus_guard() - contain SIGBUS in a mapping
 * @broken: set to true by the signal handler, in whatever thread
 * @wakes: woken then
 *
 * Any thread, as the rest of this.
 *
 * Return: a handle for pvr_sigbus_unguard(), or -1 if too many are guarded.
 */
int pvr_sigbus_guard(void *start, size_t size, bool *broken, struct pvr_loop *wakes);
/* No thread uses the mapping any more. */
void pvr_sigbus_unguard(int handle);

#endif /* PVR_ATTACH_SIGBUS_H */
