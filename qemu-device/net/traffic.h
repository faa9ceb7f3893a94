/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The connections that are up, of one worker: input, output, keep-alive. */
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

/* 0 or -errno; pvr_traffic_exit() is needed in any case. */
int pvr_traffic_init(struct pvr_traffic *traffic, struct pvr_net *net, struct pvr_loop *loop);
/* The worker does not run: what it has is handed back, with BYE. */
void pvr_traffic_stop(struct pvr_traffic *traffic);
void pvr_traffic_exit(struct pvr_traffic *traffic);

/* First thread: the worker @conn->worker gets it. */
void pvr_traffic_give(struct pvr_conn *conn);
/* First thread: it will come back, as soon as the worker gets to it. */
void pvr_traffic_close(struct pvr_conn *conn, enum pvr_bye reason, const char *text);

/* Somebody wants to know when the socket takes more. Any thread. */
void pvr_traffic_want_output(struct pvr_conn *conn);

#endif /* PVR_NET_TRAFFIC_H */
