/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tables and texts that pvrdmactl prints. */
#ifndef PVR_DAEMON_CTL_PRINT_H
#define PVR_DAEMON_CTL_PRINT_H

#include <json-c/json.h>

void pvr_print_adapters(struct json_object *reply);
void pvr_print_stats(struct json_object *reply);
void pvr_print_qps(struct json_object *reply);
void pvr_print_peers(struct json_object *reply);
void pvr_print_paths(struct json_object *reply);
void pvr_print_workers(struct json_object *reply);
void pvr_print_fault(struct json_object *reply);
void pvr_print_reload(struct json_object *reply);
void pvr_print_version(struct json_object *reply);

#endif /* PVR_DAEMON_CTL_PRINT_H */
