/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Replies of the control socket about paths: between adapters, and to other hosts. */
#ifndef PVR_DAEMON_PATH_REQUESTS_H
#define PVR_DAEMON_PATH_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* Fills "paths" and "hosts" of @reply. */
void pvr_put_paths(struct pvr_daemon *daemon, struct json_object *reply);
/*
 * The same for one page, from *@cursor on. Return: false if this is the last page, else true, and
 * *@cursor is that of the next one.
 */
bool pvr_put_paths_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply);

#endif /* PVR_DAEMON_PATH_REQUESTS_H */
