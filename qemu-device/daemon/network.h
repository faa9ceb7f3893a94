/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Other hosts: owns the connections (net/) and the directory (directory/), and connects
 * both to the engine's pvr_host_ops.
 */
#ifndef PVR_DAEMON_NETWORK_H
#define PVR_DAEMON_NETWORK_H

#include "daemon/daemon.h"
#include "directory/directory.h"
#include "net/net.h"

struct pvr_network {
	struct pvr_daemon *daemon;
	struct pvr_net *net;
	struct pvr_directory *directory;
};

/*
 * Call before the first adapter is created. Does nothing if the settings configure no
 * network. Return: false with @err filled.
 */
bool pvr_network_init(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		      struct pvr_error *err);
/* Reads the files again, see pvr_reload(). On failure nothing has changed. */
bool pvr_network_reload(struct pvr_daemon *daemon, const struct pvr_reload_ops *ops, void *opaque,
			struct pvr_error *err);
/* Ends all connections. Call while no worker runs. */
void pvr_network_stop(struct pvr_daemon *daemon);
/* Frees the network. Call after the last adapter is destroyed. */
void pvr_network_exit(struct pvr_daemon *daemon);

#endif /* PVR_DAEMON_NETWORK_H */
