/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The default path of the control socket. */
#ifndef PVR_DAEMON_CONTROL_PATH_H
#define PVR_DAEMON_CONTROL_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * $PVRDMA_CONTROL; without it /run/pvrdma/control for root, and
 * $XDG_RUNTIME_DIR/pvrdma/control for other users. Return: false if there is no default.
 */
bool pvr_control_default_path(char *path, size_t size);

#endif /* PVR_DAEMON_CONTROL_PATH_H */
