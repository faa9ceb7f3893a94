/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Start of a daemon that replaces a running one, see handover_message.h. */
#ifndef PVR_DAEMON_TAKEOVER_H
#define PVR_DAEMON_TAKEOVER_H

#include "daemon/daemon.h"

struct pvr_takeover;

/*
 * Return: the take-over that the environment requests, or NULL: none. Call before any other
 * function opens a descriptor.
 */
struct pvr_takeover *pvr_takeover_find(void);

/*
 * Gets the listening sockets and the adapters of the running daemon. They replace the adapters of
 * @settings. False with @err filled.
 *
 * After any failure the process must end by _exit(): it has sockets that the running daemon uses.
 */
bool pvr_takeover_prepare(struct pvr_takeover *takeover, struct pvr_settings *settings,
			  struct pvr_error *err);

/*
 * Gets the VMs, and starts the adapters once the running daemon has stopped. The workers are
 * paused. False with @err filled.
 */
bool pvr_takeover_run(struct pvr_takeover *takeover, struct pvr_daemon *daemon,
		      struct pvr_error *err);

#endif /* PVR_DAEMON_TAKEOVER_H */
