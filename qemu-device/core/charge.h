/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory of the process that one guest makes the engine allocate. */
#ifndef PVR_CHARGE_H
#define PVR_CHARGE_H

#include <stddef.h>
#include <stdint.h>

struct pvr_adapter;

/*
 * DOC: what is charged
 *
 * - Charged to the adapter: translations (core/pages.h), all objects, the in-flight WRs of
 *   a QP whose peer is on another host (path/pipe/sq.h), and the state of a responder to
 *   another host (rdma/responder_state.h). These are allocated by a command, by the first
 *   quantum or by the first request of a connection, and never for a message.
 * - Bounded by constants, so not charged: tables of handles and the heap of timers (4 MiB
 *   if all handles are in use), lingering datagrams (90 KiB), multicast groups (300 KiB),
 *   GIDs, event backlogs.
 * - Buffers of messages belong to a connection between hosts, and have a fixed size.
 * - The limit grows with the guest's RAM. The operator may set another limit.
 *
 * The adapter's lock is held in all functions.
 */

/* The default limit: these bytes, and this share of the guest's RAM. */
#define PVR_CHARGE_FLOOR (64ull << 20)
#define PVR_CHARGE_RAM_SHARE 32

/* Return: bytes of the guest's RAM; memory that is mapped at several addresses counts once. */
uint64_t pvr_charge_ram(const struct pvr_adapter *adapter);
/* Return: the limit in bytes. It can fall below the charge when RAM is removed. */
uint64_t pvr_charge_limit(const struct pvr_adapter *adapter);

/*
 * Charge @bytes. A refusal is logged at a limited rate. Return: 0, or -ENOMEM if the limit
 * would be exceeded.
 */
int pvr_charge(struct pvr_adapter *adapter, uint64_t bytes);
void pvr_uncharge(struct pvr_adapter *adapter, uint64_t bytes);

/* Return: charged and zeroed memory, or NULL: over the limit, or out of memory. */
void *pvr_charge_alloc(struct pvr_adapter *adapter, size_t bytes);
/* @bytes: as in pvr_charge_alloc(). @object may be NULL. */
void pvr_charge_free(struct pvr_adapter *adapter, void *object, size_t bytes);

#endif /* PVR_CHARGE_H */
