/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters of the device, PVR_EXT_STATS. */
#ifndef PVR_COUNTERS_H
#define PVR_COUNTERS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "pvrdma_abi_cmd.h"

struct pvr_dev;

/* Counters of QPs, see counters.c. */
struct pvr_stats {
	struct mutex lock; /* protects this struct and pvr_qp.counted */
	struct xarray counters; /* id -> pvr_counter */
	u64 history[PVR_STAT_NUM]; /* of freed counters */
};

void pvr_stats_init(struct pvr_stats *stats);
void pvr_stats_exit(struct pvr_stats *stats);

/**
 * pvr_stats_query() - read the counters of the adapter or of a QP
 * @dev: the adapter, which has PVR_EXT_STATS
 * @qp_handle: of a QP, or 0 for the adapter
 * @stat: set on success; indexed by enum pvr_stat
 *
 * Context: may sleep.
 * Return: 0 or -errno.
 */
int pvr_stats_query(struct pvr_dev *dev, u32 qp_handle, u64 stat[PVR_STAT_NUM]);

/* Operations for ib_set_device_ops() if the device has PVR_EXT_STATS. */
extern const struct ib_device_ops pvr_stats_ops;

#endif /* PVR_COUNTERS_H */
