/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory that the guest can change at any time. */
#ifndef PVR_SHM_H
#define PVR_SHM_H

#include <string.h>

/*
 * Copy out of guest memory. The barrier keeps the compiler from reading the guest's
 * memory again where the copy is used: what was checked is what is used.
 */
static inline void pvr_copy_once(void *to, const void *from_shm, size_t size)
{
	memcpy(to, from_shm, size);
	__asm__ volatile("" : : : "memory");
}

#endif /* PVR_SHM_H */
