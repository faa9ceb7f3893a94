/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the daemon has of other hosts: connections (net/), a directory (directory/), and
 * who answers what the engine asks about them.
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

/* Before the first adapter; nothing if the settings want no network. False with @err filled. */
bool pvr_network_init(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		      struct pvr_error *err);
/* What may have changed in files, see pvr_reload(): all of it, or nothing. */
bool pvr_network_reload(struct pvr_daemon *daemon, const struct pvr_reload_ops *ops, void *opaque,
			struct pvr_error *err);
/* The workers do not run: all connections end. */
void pvr_network_stop(struct pvr_daemon *daemon);
/* The adapters are no more. */
void pvr_network_exit(struct pvr_daemon *daemon);

#endif /* PVR_DAEMON_NETWORK_H */
