/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The families of metrics: names, help texts and values. docs/metrics.md has the same list. */
#ifndef PVR_METRICS_FORMAT_H
#define PVR_METRICS_FORMAT_H

#include "metrics/snapshot.h"
#include "metrics/text.h"

/* Each function writes its families, each with its samples together. */
void pvr_metrics_format_adapters(struct pvr_metrics_text *text,
				 const struct pvr_metrics_snapshot *snapshot);
void pvr_metrics_format_hosts(struct pvr_metrics_text *text,
			      const struct pvr_metrics_snapshot *snapshot);
void pvr_metrics_format_daemon(struct pvr_metrics_text *text,
			       const struct pvr_metrics_snapshot *snapshot);

#endif /* PVR_METRICS_FORMAT_H */
