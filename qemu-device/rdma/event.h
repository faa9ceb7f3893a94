/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Event rings, async events, CQ notifications and interrupts. */
#ifndef PVR_EVENT_H
#define PVR_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pvrdma_abi.h"
#include "core/adapter.h"

struct pvr_adapter;
struct pvr_ram_region;
struct pvr_cq;
struct pvr_worker;

/* Called once per adapter. Return: 0 or -ENOMEM. */
int pvr_events_init(struct pvr_adapter *adapter);
void pvr_events_exit(struct pvr_adapter *adapter);

/* Bounds of pvr_event_rings.retry_ns. A guest that never reads causes one wake-up per second. */
#define PVR_EVENT_RETRY_MIN_NS 1000000ull
#define PVR_EVENT_RETRY_MAX_NS 1000000000ull

/* Map the rings that the DSR names. Return: 0, -EINVAL or -EFAULT. */
int pvr_events_attach(struct pvr_adapter *adapter, const struct pvr_dsr *dsr);
/* Map the ring of a completion vector that has none. Return: the same. */
int pvr_events_attach_vector(struct pvr_adapter *adapter, uint32_t comp_vector,
			     const struct pvr_ring_pages *info);
/* Drop the rings and all waiting events. */
void pvr_events_detach(struct pvr_adapter *adapter);

/* True if the completion vector exists and has a ring. */
bool pvr_events_have_vector(const struct pvr_adapter *adapter, uint32_t comp_vector);
/* True if a ring lies in @region. */
bool pvr_events_lie_in(const struct pvr_adapter *adapter, const struct pvr_ram_region *region);

/* Queue an async event. Without a driver it is dropped. */
void pvr_event_async(struct pvr_adapter *adapter, enum pvr_eqe_type type, uint32_t info);
/* Queue a CQ notification on the CQ's vector. */
void pvr_event_cq(struct pvr_adapter *adapter, struct pvr_cq *cq);
/* Remove the CQ from the backlog: it is destroyed, or its ring is. */
void pvr_event_forget_cq(struct pvr_adapter *adapter, struct pvr_cq *cq);

/* Write waiting events to their rings, as far as there is room. Without DMA they stay. */
void pvr_events_push_backlog(struct pvr_adapter *adapter);

/* Raise the vectors of all rings with entries that the guest has not read. */
void pvr_event_raise_unread(struct pvr_adapter *adapter);

/*
 * Called before the adapter's lock is released: hand pending interrupts to @runner, the
 * worker that holds the lock, or to the adapter's own worker if @runner is NULL.
 */
void pvr_interrupt_hand_over(struct pvr_adapter *adapter, struct pvr_worker *runner);
/* Raise a vector now; a masked vector becomes pending. */
void pvr_interrupt(struct pvr_adapter *adapter, uint32_t vector);
/* Raise each vector that is pending and not masked, once. */
void pvr_interrupt_flush(struct pvr_adapter *adapter);

#endif /* PVR_EVENT_H */
