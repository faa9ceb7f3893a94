/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The connections of one worker that are up: input, output, keep-alive. */
#ifndef PVR_NET_TRAFFIC_H
#define PVR_NET_TRAFFIC_H

#include <sys/queue.h>

#include "net/conn.h"

struct pvr_traffic {
	struct pvr_net *net;
	struct pvr_loop *loop;
	struct pvr_workq workq;
	struct pvr_loop_timer tick; /* armed while there are connections */
	LIST_HEAD(, pvr_conn) conns;
};

/* Return: 0 or -errno. Call pvr_traffic_exit() also after a failure. */
int pvr_traffic_init(struct pvr_traffic *traffic, struct pvr_net *net, struct pvr_loop *loop);
/*
 * Call while the worker does not run: closes all connections with CLOSE and passes them
 * back.
 */
void pvr_traffic_stop(struct pvr_traffic *traffic);
void pvr_traffic_exit(struct pvr_traffic *traffic);

/* First thread: passes the connection to the worker @conn->worker. */
void pvr_traffic_give(struct pvr_conn *conn);
/* First thread: requests that the worker closes the connection and passes it back. */
void pvr_traffic_close(struct pvr_conn *conn, enum pvr_close_reason reason, const char *text);

/* Requests a call of output when the socket is writable. Any thread. */
void pvr_traffic_want_output(struct pvr_conn *conn);

#endif /* PVR_NET_TRAFFIC_H */
