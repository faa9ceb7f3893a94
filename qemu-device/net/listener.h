/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Listening TCP sockets. */
#ifndef PVR_NET_LISTENER_H
#define PVR_NET_LISTENER_H

#include "base/address.h"
#include "base/loop.h"

struct pvr_net;

struct pvr_listener {
	struct pvr_source source;
	struct pvr_loop_timer pause; /* runs after accept() has failed */
	struct pvr_net *net;
	struct pvr_address address;
};

/* Call pvr_listener_close() also after a failure. */
bool pvr_listener_open(struct pvr_listener *listener, struct pvr_net *net,
		       const struct pvr_address *address, struct pvr_error *err);
void pvr_listener_close(struct pvr_listener *listener);

#endif /* PVR_NET_LISTENER_H */
