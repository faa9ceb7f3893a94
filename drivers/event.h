/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Interrupts, event rings, and the lookup of objects by handle. */
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

/*
 * Pages of an event ring: the header and one page of elements. Stock sizes are 2 pages
 * larger.
 */
#define PVR_EVRING_PAGES 2

/* A ring in which the device reports async events or CQ notifications. */
struct pvr_evring {
	struct pvr_pdir pdir;
	struct pvr_ring *ring_shm; /* the driver is the consumer */
	u32 n; /* slots */
	u32 elem_size;
	u32 head; /* used only by the ring's interrupt handler */
};

/*
 * Reference count of an object that event handlers find by handle. It keeps the object
 * until its handlers have returned.
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
 * pvr_evring_next() - copy the next element and free its slot
 * @ring: the ring; the caller is its only reader
 * @elem: buffer of ring->elem_size bytes, set if the return value is 1
 *
 * Return: 1, 0 (the ring is empty) or -EPROTO (the device overran the ring: elements are
 * lost).
 */
int pvr_evring_next(struct pvr_evring *ring, void *elem);
int pvr_irq_init(struct pvr_dev *dev);
void pvr_irq_exit(struct pvr_dev *dev);

/**
 * pvr_handle_insert() - enter an object into its handle table
 * @dev: the adapter
 * @table: one of its tables
 * @handle: from the device; declares the device dead if invalid or in use
 * @obj: the object, whose reference count is initialised
 *
 * Undo with xa_erase_irq() before the DESTROY command: after it the device may assign the
 * handle to another object at once.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM or -EIO.
 */
int pvr_handle_insert(struct pvr_dev *dev, struct xarray *table, u32 handle,
		      void *obj);

/**
 * pvr_cq_complete() - call a CQ's completion handler
 * @dev: the adapter
 * @handle: of the CQ; an unknown handle is ignored
 *
 * Context: any.
 */
void pvr_cq_complete(struct pvr_dev *dev, u32 handle);

/* Call the completion handlers of all CQs. Spurious notifications are harmless. */
void pvr_complete_all_cqs(struct pvr_dev *dev);

/* Notify all CQs of a dead device, so that consumers poll and pvr_poll_cq() flushes. */
void pvr_flush_work(struct work_struct *work);

/**
 * pvr_dispatch() - dispatch an event of port 1 or of the device to ib_core
 * @dev: the adapter; does nothing unless it is registered
 * @type: enum ib_event_type
 *
 * Context: any.
 */
void pvr_dispatch(struct pvr_dev *dev, enum ib_event_type type);

#endif /* PVR_EVENT_H */
