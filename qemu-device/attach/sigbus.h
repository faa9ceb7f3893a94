/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Mappings of files that another process can truncate. */
#ifndef PVR_ATTACH_SIGBUS_H
#define PVR_ATTACH_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"

#define PVR_SIGBUS_GUARDS 128 /* mappings of one client */

/* The guarded mappings of one client. One thread at a time calls the functions of a set. */
struct pvr_sigbus_set;

/* Return: NULL without memory. */
struct pvr_sigbus_set *pvr_sigbus_open(void);
/* Ends all guards of @set, which can be NULL. */
void pvr_sigbus_close(struct pvr_sigbus_set *set);

/**
 * pvr_sigbus_guard() - contain SIGBUS in a mapping
 * @start, @size: the whole mapping
 * @page: its pages have this size, a power of two; 4096 if they may be larger
 * @broken: set to true by the signal handler, in any thread
 * @wakes: woken by the signal handler
 *
 * Return: a handle for pvr_sigbus_unguard(), or -1 if all guards of @set are in use.
 */
int pvr_sigbus_guard(struct pvr_sigbus_set *set, void *start, size_t size, size_t page,
		     bool *broken, struct pvr_loop *wakes);
/* Changes @wakes of all guards of @set, which can be NULL. */
void pvr_sigbus_set_wakes(struct pvr_sigbus_set *set, struct pvr_loop *wakes);
/* Call after the last access to the mapping. */
void pvr_sigbus_unguard(struct pvr_sigbus_set *set, int handle);

#endif /* PVR_ATTACH_SIGBUS_H */
