/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state of an adapter's port. The adapter's lock is held in all functions. */
#ifndef PVR_PORT_STATE_H
#define PVR_PORT_STATE_H

#include "core/adapter.h"

/* Return: 0 or -ENOMEM. */
int pvr_port_state_init(struct pvr_adapter *adapter);
void pvr_port_state_exit(struct pvr_adapter *adapter);

/* Set the state, with its event to the guest. Ends the time of pvr_port_down_for(). */
void pvr_port_set_up(struct pvr_adapter *adapter, bool up);
/* Set the port down, and up again after @ns. */
void pvr_port_down_for(struct pvr_adapter *adapter, uint64_t ns);

#endif /* PVR_PORT_STATE_H */
