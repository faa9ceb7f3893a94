/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What an engine knows of other hosts: its embedder's ops, the remotes, who has which GID. */
#ifndef PVR_NET_H
#define PVR_NET_H

#include <sys/queue.h>

#include "core/lock.h"
#include "pipe.h"

#define PVR_NET_BUCKETS 256

struct pvr_net {
	/* Never change once there are adapters. NULL: this host is by itself. */
	const struct pvr_net_ops *ops;
	void *opaque;
	struct pvr_lock lock; /* Protects what follows; nothing is taken inside it. */
	uint64_t generations; /* of outgoing connections that there ever were */
	/* By name; they stay until the engine goes. */
	LIST_HEAD(, pvr_remote) remotes[PVR_NET_BUCKETS];
};

/* NULL: no memory. */
struct pvr_net *pvr_pipe_create(void);
/* No adapter is there any more, nor an incoming connection. */
void pvr_pipe_destroy(struct pvr_net *net); /* NULL is allowed */

#endif /* PVR_NET_H */
