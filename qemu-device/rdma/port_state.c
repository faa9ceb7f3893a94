// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The state of an adapter's port: up, down, and down for a time. */
#include "rdma/port_state.h"

#include <stddef.h>

#include "rdma/event.h"

static void set_up(struct pvr_adapter *adapter, bool up)
{
	if (adapter->link_up == up)
		return;
	adapter->link_up = up;
	pvr_info(adapter, "link %s", up ? "up" : "down");
	pvr_event_async(adapter, up ? PVR_EVENT_PORT_ACTIVE : PVR_EVENT_PORT_ERR, 1);
}

static void expired(struct pvr_timer *timer)
{
	set_up((struct pvr_adapter *)((char *)timer - offsetof(struct pvr_adapter, port_up)), true);
}

int pvr_port_state_init(struct pvr_adapter *adapter)
{
	adapter->link_up = true;
	return pvr_timer_init(&adapter->timers, &adapter->port_up, expired);
}

void pvr_port_state_exit(struct pvr_adapter *adapter)
{
	pvr_timer_exit(&adapter->timers, &adapter->port_up);
}

void pvr_port_set_up(struct pvr_adapter *adapter, bool up)
{
	pvr_timer_cancel(&adapter->timers, &adapter->port_up);
	set_up(adapter, up);
}

void pvr_port_down_for(struct pvr_adapter *adapter, uint64_t ns)
{
	/* The operator has set it down for longer. */
	if (!adapter->link_up && !pvr_timer_is_set(&adapter->port_up))
		return;
	set_up(adapter, false);
	pvr_timer_set(&adapter->timers, &adapter->port_up, pvr_now(adapter->engine) + ns);
}
