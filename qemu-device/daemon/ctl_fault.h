/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl fault: requests of its sub-commands. */
#ifndef PVR_DAEMON_CTL_FAULT_H
#define PVR_DAEMON_CTL_FAULT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "base/error.h"

/**
 * pvr_ctl_fault_request() - build the request of a sub-command
 * @request: gets its members
 * @args: the sub-command and its arguments
 * @words: KEY=VALUE words of options such as --from, for "add" only; may be empty
 *
 * Return: false with @err filled.
 */
bool pvr_ctl_fault_request(struct json_object *request, char **args, int num, const char *words,
			   struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_FAULT_H */
