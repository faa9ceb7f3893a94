/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the compiler has to know: functions to inline, memory that a guest can change. */
#ifndef PVR_COMPILER_H
#define PVR_COMPILER_H

#include <string.h>

/* Where the call takes a good part of what the body does, as callgrind counts it. */
#define pvr_always_inline inline __attribute__((always_inline))

/* For what a message rarely needs: inlined, it would take registers from the common way. */
#define pvr_noinline __attribute__((noinline))

/*
 * Copy out of guest memory. The barrier keeps the compiler from reading the guest's
 * memory again where the copy is used: what was checked is what is used.
 */
static inline void pvr_copy_once(void *to, const void *from_shm, size_t size)
{
	memcpy(to, from_shm, size);
	__asm__ volatile("" : : : "memory");
}

#endif /* PVR_COMPILER_H */
