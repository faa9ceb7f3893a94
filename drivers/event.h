/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Interrupts, the rings behind them, and objects named by handle. */
#ifndef PVR_EVENT_H
#define PVR_EVENT_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "pdir.h"
#include "pvrdma_abi.h"

struct pvr_dev;

/* A page of the header and one of elements: stock sizes waste two more. */
#define PVR_EVRING_PAGES 2

/* One of the rings on which the device reports: events, CQ notifications. */
struct pvr_evring {
	struct pvr_pdir pdir;
	struct pvr_ring *ring_shm; /* the driver consumes */
	u32 n; /* slots */
	u32 elem_size;
	u32 head; /* touched by the one interrupt handler only */
};

/*
 * What async events and CQ notifications need to find an object by handle and
 * keep it while its handler runs.
 */
struct pvr_ref {
	refcount_t count;
	struct completion gone;
};

static inline void pvr_ref_init(struct pvr_ref *ref)
{
	refcount_set(&ref->count, 1);
	init_completion(&ref->gone);
}

static inline void pvr_ref_put(struct pvr_ref *ref)
{
	if (refcount_dec_and_test(&ref->count))
		complete(&ref->gone);
}

/* Drop the creator's reference and wait for running event handlers. May sleep. */
static inline void pvr_ref_drain(struct pvr_ref *ref)
{
	pvr_ref_put(ref);
	wait_for_completion(&ref->gone);
}

/* event.c */

int pvr_evring_init(struct pvr_dev *dev, struct pvr_evring *ring, u32 n,
		    u32 elem_size);
void pvr_evring_exit(struct pvr_evring *ring);

/**
 * pvr_evring_next() - copy the next element out and free its slot
 * @ring: the ring; nobody else reads it
 * @elem: room for an element
 *
 * Return: 1, 0 (none) or -EPROTO (the device overran the ring: elements are lost).
 */
int pvr_evring_next(struct pvr_evring *ring, void *elem);
int pvr_irq_init(struct pvr_dev *dev);
void pvr_irq_exit(struct pvr_dev *dev);

/**
 * pvr_handle_insert() - make an object known by the handle that the device gave it
 * @dev: the adapter
 * @table: one of its tables
 * @handle: as the device said; a bad or a taken one ends the device
 * @obj: the object, whose reference count is initialised
 *
 * Undo with xa_erase_irq(), before the device is told to destroy the object: it may
 * give the same handle to another one at once.
 * Context: may sleep.
 * Return: 0, -ENOMEM or -EIO.
 */
int pvr_handle_insert(struct pvr_dev *dev, struct xarray *table, u32 handle,
		      void *obj);

/**
 * pvr_cq_complete() - call a CQ's completion handler
 * @dev: the adapter
 * @handle: of the CQ; nothing happens if there is none
 *
 * Context: any.
 */
void pvr_cq_complete(struct pvr_dev *dev, u32 handle);

/* The same for all; a notification too many is harmless. */
void pvr_complete_all_cqs(struct pvr_dev *dev);

/* Wakes all CQs of a dead device, so that pvr_poll_cq() can flush. */
void pvr_flush_work(struct work_struct *work);

/**
 * pvr_dispatch() - tell ib_core of an event of port 1 or of the device
 * @dev: the adapter; nothing happens unless it is registered
 * @type: enum ib_event_type
 *
 * Context: any.
 */
void pvr_dispatch(struct pvr_dev *dev, enum ib_event_type type);

#endif /* PVR_EVENT_H */
