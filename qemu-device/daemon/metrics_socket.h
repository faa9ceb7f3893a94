/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The listening socket of the metrics, by the setting "metrics". */
#ifndef PVR_DAEMON_METRICS_SOCKET_H
#define PVR_DAEMON_METRICS_SOCKET_H

#include "base/error.h"

/* @text: "192.0.2.1:9471", "[2001:db8::1]:9471" or "unix:/path". False: @err is filled. */
bool pvr_metrics_address_check(const char *text, struct pvr_error *err);

/* Return: a listening, non-blocking socket, or -1 with @err filled. */
int pvr_metrics_listen(const char *text, struct pvr_error *err);
/* The socket has been closed: removes its file, if there is one. */
void pvr_metrics_unlink(const char *text);

#endif /* PVR_DAEMON_METRICS_SOCKET_H */
