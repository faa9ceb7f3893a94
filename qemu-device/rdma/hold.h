/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Getting hold of a peer's adapter during a turn.
 *
 * A turn holds the lock of its own adapter, and of at most one peer's. It gets that at
 * its first message and keeps it until the turn ends, or until it needs another one's.
 */
#ifndef PVR_HOLD_H
#define PVR_HOLD_H

#include "core/adapter.h"

/**
 * pvr_hold_other() - get hold of another peer's adapter than the one held
 *
 * Return: false if somebody else has it: the turn cannot go on now, and has to be taken
 * again.
 */
bool pvr_hold_other(struct pvr_adapter *adapter, struct pvr_adapter *peer);
/* The turn of a queue pair of @adapter is over. */
void pvr_hold_end(struct pvr_adapter *adapter);

/* During a turn of @adapter: makes sure that all of @peer may be used. */
static inline bool pvr_hold(struct pvr_adapter *adapter, struct pvr_adapter *peer)
{
	return peer == adapter->held || peer == adapter || pvr_hold_other(adapter, peer);
}

#endif /* PVR_HOLD_H */
