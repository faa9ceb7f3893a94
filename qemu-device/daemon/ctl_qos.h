/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl qos: limits and weights of adapters and fabrics. */
#ifndef PVR_DAEMON_CTL_QOS_H
#define PVR_DAEMON_CTL_QOS_H

#include <json-c/json.h>

#include "base/error.h"

/*
 * Fill the request of "qos set" with its arguments. @words: "fabric=NAME" of the option --fabric,
 * or "". Return: false with @err filled.
 */
bool pvr_ctl_qos_request(struct json_object *request, char **args, int num, const char *words,
			 struct pvr_error *err);
/* The reply of "qos" without arguments; that of "qos set" has nothing to print. */
void pvr_print_qos(struct json_object *reply);

#endif /* PVR_DAEMON_CTL_QOS_H */
