/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Getting hold of a peer's adapter during a turn. */
#include "rdma/hold.h"

bool pvr_hold_other(struct pvr_adapter *adapter, struct pvr_adapter *peer)
{
	pvr_hold_end(adapter);
	if (!pvr_trylock(&peer->lock)) {
		adapter->busy_peer = peer;
		return false;
	}
	adapter->held = peer;
	return true;
}

void pvr_hold_end(struct pvr_adapter *adapter)
{
	if (!adapter->held)
		return;
	pvr_adapter_leave(adapter->held, adapter->runner);
	adapter->held = NULL;
}
