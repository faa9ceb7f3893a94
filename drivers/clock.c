// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The clock of the device, which stamps completions (PVR_EXT_CQ_TIMESTAMP). */
#include <linux/ktime.h>

#include "pvrdma.h"

#define READINGS 3

struct reading {
	u64 clock;
	u64 wallclock_ns;
	u64 took; /* ns: the device read its clock at some time in it */
};

/* The high half is that of the moment at which the low half was read. */
static struct reading read_locked(struct pvr_dev *dev)
{
	u64 before = ktime_get_real_ns();
	u32 low = pvr_reg_read(dev, PVR_REG_EXT_CLOCK_LOW);
	u64 took = ktime_get_real_ns() - before;
	u32 high = pvr_reg_read(dev, PVR_REG_EXT_CLOCK_HIGH);

	return (struct reading){
		.clock = (u64)high << 32 | low,
		.wallclock_ns = before + took / 2,
		.took = took,
	};
}

/* The registers of a device that is gone read as all ones, or as zeros. */
static bool is_clock(u64 clock)
{
	return clock && clock != U64_MAX;
}

/* The quickest reading counts: in others the vCPU or the device was interrupted. */
static int read_best_locked(struct pvr_dev *dev, struct reading *best)
{
	struct reading reading;
	int i;

	for (i = 0; i < READINGS; i++) {
		if (pvr_dev_dead(dev))
			return -EIO;
		reading = read_locked(dev);
		if (!is_clock(reading.clock))
			return -EIO;
		if (!i || reading.took < best->took)
			*best = reading;
	}
	return 0;
}

int pvr_clock_read(struct pvr_dev *dev, struct pvr_clock_query_resp *resp)
{
	struct reading best;
	int err;

	mutex_lock(&dev->clock_lock);
	err = read_best_locked(dev, &best);
	mutex_unlock(&dev->clock_lock);
	if (err)
		return err;
	resp->clock = best.clock;
	resp->wallclock_ns = best.wallclock_ns;
	return 0;
}
