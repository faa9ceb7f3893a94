/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What an engine knows of other hosts: its embedder's ops, the hosts, who has which GID. */
#ifndef PVR_PIPE_STATE_H
#define PVR_PIPE_STATE_H

#include <sys/queue.h>

#include "core/lock.h"
#include "pipe.h"

#define PVR_PIPE_BUCKETS 256

struct pvr_pipe {
	/* Never change once there are adapters. NULL: this host is by itself. */
	const struct pvr_host_ops *ops;
	void *opaque;
	struct pvr_lock lock; /* Protects what follows; nothing is taken inside it. */
	uint64_t generations; /* of outgoing connections that there ever were */
	/* By name; they stay until the engine goes. */
	LIST_HEAD(, pvr_host) hosts[PVR_PIPE_BUCKETS];
};

/* NULL: no memory. */
struct pvr_pipe *pvr_pipe_create(void);
/* No adapter is there any more, nor an incoming connection. */
void pvr_pipe_destroy(struct pvr_pipe *pipe); /* NULL is allowed */

#endif /* PVR_PIPE_STATE_H */
