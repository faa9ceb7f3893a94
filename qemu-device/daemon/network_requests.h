/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Replies of the control socket about other hosts. */
#ifndef PVR_DAEMON_NETWORK_REQUESTS_H
#define PVR_DAEMON_NETWORK_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* Adds "host", this host or null without a network, and "peers", the other hosts. */
void pvr_put_peers(struct pvr_daemon *daemon, struct json_object *reply);
/* Adds "hosts": the pipe that reaches each host, and why that one. */
void pvr_put_hosts(struct pvr_daemon *daemon, struct json_object *reply);

/*
 * The same for one page, from *@cursor on; 0: the first one. Only the first page has "host" and
 * "directory". Return: false if this is the last page, else true, and *@cursor is that of the next
 * one.
 */
bool pvr_put_peers_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply);
bool pvr_put_hosts_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply);

#endif /* PVR_DAEMON_NETWORK_REQUESTS_H */
