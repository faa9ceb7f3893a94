/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Requests for the counters of adapters. */
#ifndef PVR_DAEMON_STATS_REQUESTS_H
#define PVR_DAEMON_STATS_REQUESTS_H

#include <json-c/json.h>

#include "attach/attach.h"

/* Return: the counters of the adapter, of its QEMU and of its wire, as pvrdmactl stats has them. */
struct json_object *pvr_describe_stats(const struct pvr_attach *attach);

#endif /* PVR_DAEMON_STATS_REQUESTS_H */
