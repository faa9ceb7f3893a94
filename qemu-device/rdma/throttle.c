// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Peers of an adapter that wait for a part of the time. */
#include "rdma/throttle.h"

#include <stddef.h>

static void set_part(struct pvr_adapter *adapter, bool is_closed, uint64_t from)
{
	struct pvr_throttle *throttle = &adapter->throttle;
	unsigned int percent = is_closed ? throttle->percent : 100 - throttle->percent;

	throttle->is_closed = is_closed;
	pvr_adapter_update_dma(adapter);
	pvr_timer_set(&adapter->timers, &throttle->timer, from + percent * PVR_THROTTLE_NS / 100);
}

/* A part has its whole length, also if the worker is late: the peers have time to use an open one. */
static void expired(struct pvr_timer *timer)
{
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)timer -
				       offsetof(struct pvr_adapter, throttle.timer));

	set_part(adapter, !adapter->throttle.is_closed, pvr_now(adapter->engine));
}

int pvr_throttle_init(struct pvr_adapter *adapter)
{
	return pvr_timer_init(&adapter->timers, &adapter->throttle.timer, expired);
}

void pvr_throttle_exit(struct pvr_adapter *adapter)
{
	pvr_timer_exit(&adapter->timers, &adapter->throttle.timer);
}

uint64_t pvr_throttle_left(const struct pvr_adapter *adapter)
{
	uint64_t deadline = pvr_timer_deadline(&adapter->timers, &adapter->throttle.timer);
	uint64_t now = pvr_now(adapter->engine);

	return deadline > now ? deadline - now : 1;
}

void pvr_throttle_set(struct pvr_adapter *adapter, unsigned int percent)
{
	struct pvr_throttle *throttle = &adapter->throttle;

	if (percent == throttle->percent)
		return;
	throttle->percent = percent;
	pvr_info(adapter, "peers wait for %u %% of the time, while its VM migrates", percent);
	if (percent) {
		set_part(adapter, throttle->is_closed, pvr_now(adapter->engine));
		return;
	}
	pvr_timer_cancel(&adapter->timers, &throttle->timer);
	throttle->is_closed = false;
	pvr_adapter_update_dma(adapter);
}
