/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl upgrade. */
#ifndef PVR_DAEMON_CTL_UPGRADE_H
#define PVR_DAEMON_CTL_UPGRADE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Lets the installed pvrdmad replace the running one, and prints the result when the new one
 * answers. @if_changed: only if its file is another one. Return: false with @err filled.
 */
bool pvr_ctl_upgrade(const char *control, bool if_changed, bool json, struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_UPGRADE_H */
