/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Requests that stop and start adapters. */
#ifndef PVR_DAEMON_RUN_REQUESTS_H
#define PVR_DAEMON_RUN_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* Add "run_state" and, for an adapter that is stopped, "stopped_ms" to @obj. */
void pvr_put_run_state(struct json_object *obj, const struct pvr_adapter_stats *stats);

/* @action: "stop", "start" or "reclaim". Return: false with @err filled. */
bool pvr_run_change(struct pvr_daemon *daemon, struct pvr_attach *attach, const char *action,
		    struct pvr_error *err);

#endif /* PVR_DAEMON_RUN_REQUESTS_H */
