/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Collects the values of the metrics, and owns their HTTP server. */
#ifndef PVR_DAEMON_METRICS_SOURCE_H
#define PVR_DAEMON_METRICS_SOURCE_H

#include "daemon/daemon.h"

/*
 * Starts the metrics if the settings configure them. Call before the system calls are limited.
 * Return: false with @err filled.
 */
bool pvr_metrics_start(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		       struct pvr_error *err);
/* Without a start, or a second time, it does nothing. */
void pvr_metrics_stop(struct pvr_daemon *daemon);

#endif /* PVR_DAEMON_METRICS_SOURCE_H */
