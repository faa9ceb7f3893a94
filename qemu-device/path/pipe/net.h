/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An engine's state of other hosts: the embedder's ops, the hosts, and which host has
 * which GID.
 */
#ifndef PVR_PIPE_STATE_H
#define PVR_PIPE_STATE_H

#include <sys/queue.h>

#include "core/lock.h"
#include "pipe.h"

#define PVR_PIPE_BUCKETS 256

struct pvr_pipe {
	/* Constant while adapters exist. NULL: no other hosts. */
	const struct pvr_host_ops *ops;
	void *opaque;
	struct pvr_lock lock; /* Protects the members below. No lock is taken inside it. */
	uint64_t generations; /* last generation given to a req_conn */
	/* Hash table by name. A host exists until the engine is destroyed. */
	LIST_HEAD(, pvr_host) hosts[PVR_PIPE_BUCKETS];
};

/* Return: NULL if out of memory. */
struct pvr_pipe *pvr_pipe_create(void);
/* Called without adapters and rsp_conns. */
void pvr_pipe_destroy(struct pvr_pipe *pipe); /* NULL is allowed */

#endif /* PVR_PIPE_STATE_H */
