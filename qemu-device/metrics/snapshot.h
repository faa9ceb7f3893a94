/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The values of one scrape: the embedder collects them, another thread formats them. */
#ifndef PVR_METRICS_SNAPSHOT_H
#define PVR_METRICS_SNAPSHOT_H

#include "engine.h"
#include "port.h"

struct pvr_metrics_adapter {
	char name[PVR_NAME_MAX], fabric[PVR_NAME_MAX];
	struct pvr_adapter_stats stats;
	struct pvr_adapter_limits limits;
	bool attached; /* a QEMU is connected */
	uint64_t ram_bytes, ram_limit; /* guest RAM, each page once */
	uint64_t clients, messages, refused; /* of QEMUs, in total */
	bool has_port; /* it has an Ethernet segment */
	struct pvr_port_stats port;
};

struct pvr_metrics_snapshot {
	/* Owned; room for max_adapters. */
	struct pvr_metrics_adapter *adapters;
	size_t num_adapters, max_adapters;
};

/* Return: an empty snapshot, or NULL without memory. */
struct pvr_metrics_snapshot *pvr_metrics_snapshot_create(void);
/* NULL is allowed. */
void pvr_metrics_snapshot_free(struct pvr_metrics_snapshot *snapshot);

/* Return: a new adapter, all zeros, at the end of the list; NULL without memory. */
struct pvr_metrics_adapter *pvr_metrics_add_adapter(struct pvr_metrics_snapshot *snapshot);

#endif /* PVR_METRICS_SNAPSHOT_H */
