/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What changes in files while the daemon runs: SIGHUP, and 'pvrdmactl reload'. */
#ifndef PVR_DAEMON_RELOAD_H
#define PVR_DAEMON_RELOAD_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/*
 * Read the key files and the peers file again: all or nothing. The log tells what came of it, and so does
 * @reply: "read" with what is in which file, "cut_off" with the hosts that the new keys do not
 * let in, "warnings". False with @err filled: nothing has changed, and the log says so.
 */
bool pvr_reload(struct pvr_daemon *daemon, struct json_object *reply, struct pvr_error *err);

#endif /* PVR_DAEMON_RELOAD_H */
