/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the control socket tells of other hosts. */
#ifndef PVR_DAEMON_NETWORK_REQUESTS_H
#define PVR_DAEMON_NETWORK_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/* "host" is this one, or null if there is no network; "peers" are the others. */
void pvr_put_peers(struct pvr_daemon *daemon, struct json_object *reply);
/* "hosts": by which pipe each is reached, and why. */
void pvr_put_peer_paths(struct pvr_daemon *daemon, struct json_object *reply);

#endif /* PVR_DAEMON_NETWORK_REQUESTS_H */
