/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The control socket: one JSON object per line in, one per line out.
 *
 * DOC: control protocol
 *
 * A request is {"command": "...", ...}, a reply is {"ok": true, ...} or
 * {"ok": false, "error": "one line for people"}. requests.c lists the commands. Who can
 * open the socket (mode 0600) is trusted; the bounds here are against accidents.
 */
#ifndef PVR_DAEMON_CONTROL_H
#define PVR_DAEMON_CONTROL_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* @path "": the default, whose folder is made. NULL with @err filled on failure. */
struct pvr_control *pvr_control_create(struct pvr_daemon *daemon, const char *path,
				       struct pvr_error *err);
void pvr_control_destroy(struct pvr_control *control);

/* Executes a request. Return: the reply, to be put by the caller; NULL: no memory. */
struct json_object *pvr_request_run(struct pvr_daemon *daemon, struct json_object *request);

#endif /* PVR_DAEMON_CONTROL_H */
