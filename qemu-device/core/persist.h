/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Persistent memory: stores that are in the caches of the CPUs. */
#ifndef PVR_PERSIST_H
#define PVR_PERSIST_H

#include <stdbool.h>
#include <stddef.h>

/* Return: whether this CPU has instructions for pvr_persist(). */
bool pvr_can_persist(void);

/*
 * Write the cache lines of @len bytes at @start to their memory. pvr_persist_end() must follow:
 * when it returns, the bytes survive a loss of power. Any CPU may have stored them. Call both
 * only if pvr_can_persist().
 */
void pvr_persist(const void *start, size_t len);
void pvr_persist_end(void);

#endif /* PVR_PERSIST_H */
