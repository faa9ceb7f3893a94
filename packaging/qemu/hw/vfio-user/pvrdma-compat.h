/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between the versions of QEMU that pvrdma.c is compiled with. */
#ifndef HW_VFIO_USER_PVRDMA_COMPAT_H
#define HW_VFIO_USER_PVRDMA_COMPAT_H

#include "migration/blocker.h"

#define PVRDMA_QEMU(major, minor) ((major)*100 + (minor))
#define PVRDMA_QEMU_VERSION PVRDMA_QEMU(QEMU_VERSION_MAJOR, QEMU_VERSION_MINOR)

/*
 * Modes that start another QEMU on this host with the descriptors of the old
 * one.
 */
static inline int pvrdma_block_cpr(Error **reason, Error **errp)
{
#if PVRDMA_QEMU_VERSION >= PVRDMA_QEMU(10, 2)
    return migrate_add_blocker_modes(
        reason, BIT(MIG_MODE_CPR_TRANSFER) | BIT(MIG_MODE_CPR_EXEC), errp);
#else
    return migrate_add_blocker_modes(reason, errp, MIG_MODE_CPR_TRANSFER, -1);
#endif
}

#endif /* HW_VFIO_USER_PVRDMA_COMPAT_H */
