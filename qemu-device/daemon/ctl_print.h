/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tables and texts that pvrdmactl prints. */
#ifndef PVR_DAEMON_CTL_PRINT_H
#define PVR_DAEMON_CTL_PRINT_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_TABLE_CELL 128

/* Print @rows rows of at most 13 columns. @cell writes the text of one cell. */
void pvr_print_table(size_t rows, size_t columns,
		     void (*cell)(void *opaque, size_t row, size_t column, char *buf),
		     void *opaque);

/* Return: @buf, such as "1.5 GiB". */
const char *pvr_print_bytes(uint64_t bytes, char buf[32]);

void pvr_print_adapters(struct json_object *reply);
void pvr_print_stats(struct json_object *reply);
void pvr_print_qp(struct json_object *reply);
void pvr_print_qps(struct json_object *reply);
void pvr_print_peers(struct json_object *reply);
void pvr_print_paths(struct json_object *reply);
void pvr_print_workers(struct json_object *reply);
void pvr_print_fault(struct json_object *reply);
void pvr_print_reload(struct json_object *reply);
void pvr_print_version(struct json_object *reply);

#endif /* PVR_DAEMON_CTL_PRINT_H */
