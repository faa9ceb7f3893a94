/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Where pvrdmad and pvrdmactl meet when nobody says otherwise. */
#ifndef PVR_DAEMON_CONTROL_PATH_H
#define PVR_DAEMON_CONTROL_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * $PVRDMA_CONTROL, else /run/pvrdma/control for root, else
 * $XDG_RUNTIME_DIR/pvrdma/control. False if there is none.
 */
bool pvr_control_default_path(char *path, size_t size);

#endif /* PVR_DAEMON_CONTROL_PATH_H */
