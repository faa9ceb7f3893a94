/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A socket that others dial. */
#ifndef PVR_NET_LISTENER_H
#define PVR_NET_LISTENER_H

#include "base/address.h"
#include "base/loop.h"

struct pvr_net;

struct pvr_listener {
	struct pvr_source source;
	struct pvr_loop_timer pause; /* accept() fails, and would at once again */
	struct pvr_net *net;
	struct pvr_address address;
};

/* pvr_listener_close() is needed in any case. */
bool pvr_listener_open(struct pvr_listener *listener, struct pvr_net *net,
		       const struct pvr_address *address, struct pvr_error *err);
void pvr_listener_close(struct pvr_listener *listener);

#endif /* PVR_NET_LISTENER_H */
