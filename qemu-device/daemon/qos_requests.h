/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Requests about quality of service: limits and weights. */
#ifndef PVR_DAEMON_QOS_REQUESTS_H
#define PVR_DAEMON_QOS_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* Return: limits and weight of an adapter, and its waits. */
struct json_object *pvr_describe_qos(const struct pvr_attach *attach);
/* Add "fabrics" to @reply: those with limits. */
void pvr_put_fabric_qos(const struct pvr_daemon *daemon, struct json_object *reply);

/*
 * Change the settings that @args has: "rate", "messages", "burst" and "weight" of the adapter
 * @name, or of @fabric; one of them is NULL. All or none. Return: false with @err filled.
 */
bool pvr_qos_change(struct pvr_daemon *daemon, struct json_object *args, const char *name,
		    const char *fabric, struct pvr_error *err);

/* Apply the settings of fabrics. No worker runs yet. */
bool pvr_qos_start(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		   struct pvr_error *err);

#endif /* PVR_DAEMON_QOS_REQUESTS_H */
