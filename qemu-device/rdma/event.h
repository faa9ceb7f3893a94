/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device-wide rings, events and interrupts. */
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

/* Once per adapter. Return: 0 or -ENOMEM. */
int pvr_events_init(struct pvr_adapter *adapter);
void pvr_events_exit(struct pvr_adapter *adapter);

/* At DSRHIGH: finds the rings. Return: 0, -EINVAL or -EFAULT. */
int pvr_events_attach(struct pvr_adapter *adapter, const struct pvr_dsr *dsr);
/* The same of a completion vector that has no ring yet. */
int pvr_events_attach_vector(struct pvr_adapter *adapter, uint32_t comp_vector,
			     const struct pvr_ring_pages *info);
/* Forgets the rings and what waits for them. */
void pvr_events_detach(struct pvr_adapter *adapter);

/* Whether a completion vector exists and has a ring. */
bool pvr_events_have_vector(const struct pvr_adapter *adapter, uint32_t comp_vector);
/* Whether a ring lies in @region. */
bool pvr_events_lie_in(const struct pvr_adapter *adapter, const struct pvr_ram_region *region);

/* Queues an async event, if the driver is there to see it. */
void pvr_event_async(struct pvr_adapter *adapter, enum pvr_eqe_type type, uint32_t info);
/* Queues a CQ notification on the CQ's vector; the CQ must have been armed. */
void pvr_event_cq(struct pvr_adapter *adapter, struct pvr_cq *cq);
/* The CQ is about to go. */
void pvr_event_forget_cq(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * The adapter's lock is about to be given back: @runner, a worker or NULL, sees to it that
 * what is pending gets raised.
 */
void pvr_interrupt_hand_over(struct pvr_adapter *adapter, struct pvr_worker *runner);
/* Raises a vector now. */
void pvr_interrupt(struct pvr_adapter *adapter, uint32_t vector);
/* Raises what is pending and not masked: one interrupt per vector. */
void pvr_interrupt_flush(struct pvr_adapter *adapter);

#endif /* PVR_EVENT_H */
