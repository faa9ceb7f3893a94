/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reload of files at run time: SIGHUP and 'pvrdmactl reload'. */
#ifndef PVR_DAEMON_RELOAD_H
#define PVR_DAEMON_RELOAD_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/*
 * Reads the key files and the peers file again: all of them or none. The log reports the
 * result, and so does @reply: "read" has the contents of each file, "disconnected" the hosts
 * that the new keys exclude, "warnings" the warnings. Return: false with @err filled:
 * nothing has changed.
 */
bool pvr_reload(struct pvr_daemon *daemon, struct json_object *reply, struct pvr_error *err);

#endif /* PVR_DAEMON_RELOAD_H */
