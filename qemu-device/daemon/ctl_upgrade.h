/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl upgrade. */
#ifndef PVR_DAEMON_CTL_UPGRADE_H
#define PVR_DAEMON_CTL_UPGRADE_H

#include <json-c/json.h>
#include <stdbool.h>

#include "base/error.h"

/*
 * Let the installed pvrdmad replace the one at @control; with @if_changed, only if its file is
 * another one. Return: the reply, the caller's, after the new process has answered; or NULL with
 * @err filled.
 */
struct json_object *pvr_ctl_upgrade(const char *control, bool if_changed, struct pvr_error *err);
void pvr_print_upgrade(struct json_object *reply);

#endif /* PVR_DAEMON_CTL_UPGRADE_H */
