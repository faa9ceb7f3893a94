/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The HTTP server of the metrics.
 *
 * DOC: threads of the metrics
 *
 * The server has a thread of its own, which speaks HTTP and formats the text. The embedder
 * collects the values in a thread that may read them. The server asks for one snapshot at a
 * time, at most ten times per second. All clients that wait get the same text. So the number of
 * clients does not change the work of the embedder.
 *
 * DOC: hostile clients
 *
 * A client can make the server hold PVR_METRICS_CLIENTS connections, each with
 * PVR_METRICS_CLIENT_MEMORY bytes of headers and for PVR_METRICS_CLIENT_NS. Further connections
 * wait in the backlog of the socket. A connection gets one response and is closed.
 */
#ifndef PVR_METRICS_SERVER_H
#define PVR_METRICS_SERVER_H

#include "base/error.h"
#include "metrics/snapshot.h"

#define PVR_METRICS_CLIENTS 16
#define PVR_METRICS_CLIENT_MEMORY 16384
#define PVR_METRICS_CLIENT_NS 20000000000ull

struct pvr_metrics;

struct pvr_metrics_env {
	/*
	 * Collect a snapshot, then call pvr_metrics_deliver(). Context: the server's thread. The
	 * function does not block.
	 */
	void (*collect)(void *opaque);
	void *opaque;
};

/**
 * pvr_metrics_create() - start the server
 * @fd: a listening, non-blocking stream socket, which the server owns from now on
 *
 * Return: the server, or NULL with @err filled.
 */
struct pvr_metrics *pvr_metrics_create(const struct pvr_metrics_env *env, int fd,
				       struct pvr_error *err);
/* Ends the thread. No call of collect() follows. NULL is allowed. */
void pvr_metrics_destroy(struct pvr_metrics *metrics);

/*
 * Answer a call of collect(). @snapshot belongs to the server from now on. NULL: there is no memory.
 * Any thread.
 */
void pvr_metrics_deliver(struct pvr_metrics *metrics, struct pvr_metrics_snapshot *snapshot);

#endif /* PVR_METRICS_SERVER_H */
