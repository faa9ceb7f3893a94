/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Upgrade of a running daemon: it hands its VMs over to a new process of the installed program,
 * see handover_message.h. Until the new process has all of them, this one can go on.
 *
 * Context: the first thread.
 */
#ifndef PVR_DAEMON_UPGRADE_H
#define PVR_DAEMON_UPGRADE_H

#include "daemon/daemon.h"

struct pvr_upgrade;

/*
 * Starts the new process. Then pvr_upgrade_give_client() must be called. Return: NULL with @err
 * filled. One upgrade at a time: it is daemon->upgrade until its end.
 */
struct pvr_upgrade *pvr_upgrade_begin(struct pvr_daemon *daemon, struct pvr_error *err);
/* @fd: a connection of the control socket; it gets the reply at the end, and is closed then. */
void pvr_upgrade_give_client(struct pvr_upgrade *upgrade, int fd);
/* The daemon ends: so does the new process. NULL is allowed. */
void pvr_upgrade_cancel(struct pvr_upgrade *upgrade);

#endif /* PVR_DAEMON_UPGRADE_H */
