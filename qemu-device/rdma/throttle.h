/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Peers of an adapter that wait for a part of the time.
 *
 * DOC: closed adapters
 *
 * - A period is PVR_THROTTLE_NS. In its first part the adapter is open, in the second one closed.
 * - A closed adapter runs, but pvr_adapter_serves() is false. RC requesters, and UC ones of this
 *   engine, try again when it is open. Requesters of hosts without PVR_HELLO_F_MOVE do not wait.
 * - Datagrams are not held, and neither are its own requests.
 */
#ifndef PVR_THROTTLE_H
#define PVR_THROTTLE_H

#include "core/adapter.h"

/* The adapter's lock is held in all functions. Return: 0 or -ENOMEM. */
int pvr_throttle_init(struct pvr_adapter *adapter);
void pvr_throttle_exit(struct pvr_adapter *adapter);

/* @percent of each period the adapter is closed, up to PVR_THROTTLE_MAX; 0: never. */
void pvr_throttle_set(struct pvr_adapter *adapter, unsigned int percent);
/* Return: ns until a closed adapter is open, not 0. */
uint64_t pvr_throttle_left(const struct pvr_adapter *adapter);

#endif /* PVR_THROTTLE_H */
