/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The control socket: one JSON object per line in each direction.
 *
 * DOC: control protocol
 *
 * A request is {"command": "...", ...}. A reply is {"ok": true, ...} or {"ok": false,
 * "error": "one line of text"}. requests.c lists the commands. A process that can open
 * the socket (mode 0600) is trusted; the bounds here guard against accidents.
 *
 * A request for adapters, stats, paths, peers, workers or qps that has "cursor": 0 gets a page of its
 * list. If the reply has "next", the same request with this value as "cursor" gets the next page.
 */
#ifndef PVR_DAEMON_CONTROL_H
#define PVR_DAEMON_CONTROL_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/*
 * @path "": the default path, whose folder is created. Return: NULL with @err filled on
 * failure.
 */
struct pvr_control *pvr_control_create(struct pvr_daemon *daemon, const char *path,
				       struct pvr_error *err);
void pvr_control_destroy(struct pvr_control *control);

struct pvr_capture_session;
struct pvr_upgrade;

struct pvr_request_effect {
	struct pvr_upgrade *upgrade; /* gets the connection, and replies later; or NULL */
	struct pvr_capture_session *capture; /* gets the connection after the reply; or NULL */
	bool is_change; /* the command is one that changes something, done or refused */
};

/* Executes a request. Return: the reply, which the caller puts; NULL without memory. */
struct json_object *pvr_request_run(struct pvr_daemon *daemon, struct json_object *request,
				    struct pvr_request_effect *effect);

#endif /* PVR_DAEMON_CONTROL_H */
