/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * On-demand paging: regions whose memory is not pinned.
 *
 * DOC: pages of a region on demand
 *
 * The device reports a page fault by an event. A work item then makes the pages resident and
 * enters them at the device. Before the kernel takes a page away, its notifier removes it from
 * the device. umem_mutex orders both: the device never keeps a page that the kernel has taken.
 *
 * An explicit region has one ib_umem_odp. An implicit region is all addresses of its process: it
 * has an ib_umem_odp, a child, for each PVR_ODP_CHILD_BYTES that a request has touched. A page of
 * the device is an address divided by PAGE_SIZE then.
 *
 * A page can come from a file system that does not respond, so a fault lasts without a limit. It
 * is resolved by a queue of its context, never by a thread that others need, and nothing waits
 * for it but the removal of the driver or of the PCI function. A region that the device has no
 * more lives until its last work item ends. A queue resolves some faults at a time. The queues of
 * a user are limited, and so are those whose contexts have ended: so few threads wait for the
 * memory of one user that threads of others never wait for it.
 *
 * A region that may be written gets only pages that its process may write: the device has no
 * rights of single pages. The others stay absent, and a fault asks the kernel for a writable page.
 *
 * Locks, outermost first: pvr_odp.lock, ib_umem_odp.umem_mutex, pvr_odp.alive,
 * pvr_cmd_chan.lock. No holder of the last two allocates memory, so a notifier that memory
 * reclaim calls makes progress.
 */
#ifndef PVR_ODP_H
#define PVR_ODP_H

#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "pvrdma.h"

#define PVR_ODP_CHILD_PAGES 512u
#define PVR_ODP_CHILD_BYTES (PVR_ODP_CHILD_PAGES * PAGE_SIZE)
#define PVR_ODP_IMPLICIT_BYTES BIT_ULL(47)

/* The workqueue of the page faults and advice of a context, or of some contexts of a user. */
struct pvr_odp_queue {
	struct workqueue_struct *wq;
	refcount_t users; /* each context, and each region until it is freed */
	struct pvr_odp_queues *queues;
	struct list_head entry; /* of queues->list, or unused; under its lock */
	kuid_t user; /* its limit has this queue */
	u32 contexts; /* under queues->lock: contexts that have not ended */
};

/* What a region on demand has beyond pvr_mr. */
struct pvr_odp {
	struct pvr_mr *mr;
	struct mutex lock; /* of list and children */
	struct pvr_page list; /* addresses of pages to enter */
	struct xarray
		children; /* implicit: address / CHILD_BYTES -> ib_umem_odp */
	unsigned long num_children;
	unsigned long sweep_at; /* number of children */
	struct rw_semaphore alive; /* readers send commands about the region */
	bool gone; /* with alive: the device does not have it */
	struct pvr_odp_queue *queue;
	bool own_queue; /* of a kernel consumer, which has no context */
	struct work_struct fault_work;
	/* The region at the device, and each work item. The last one frees the region. */
	refcount_t users;
};

/* odp_queue.c */

/**
 * pvr_odp_queue_get() - get a queue for a context
 * @dev: the adapter
 *
 * Context: may sleep, for some seconds if the faults of ended contexts of this user are many.
 * Return: the queue, which pvr_odp_queue_end() ends, or an ERR_PTR: -EAGAIN if they stay many.
 */
struct pvr_odp_queue *pvr_odp_queue_get(struct pvr_dev *dev);
/* A context has ended. The queue stays until its regions are freed. */
void pvr_odp_queue_end(struct pvr_odp_queue *queue);
/* Context: any process. */
void pvr_odp_queue_put(struct pvr_odp_queue *queue);

/* odp_pages.c */
extern const struct mmu_interval_notifier_ops pvr_odp_ops;

/* Takes over one use of @queue, except on failure. Return: NULL without memory. */
struct pvr_odp *pvr_odp_alloc(struct pvr_dev *dev, struct pvr_odp_queue *queue);
/* With its memory. */
void pvr_odp_free(struct pvr_mr *mr);
bool pvr_odp_is_implicit(const struct pvr_mr *mr);
/* Give a region its memory, which pvr_odp_free() releases. */
void pvr_odp_set_umem(struct pvr_mr *mr, struct ib_umem *umem);
/* Notifiers may now find the region. */
void pvr_odp_set_private(struct ib_umem_odp *umem, struct pvr_mr *mr);
/**
 * pvr_odp_resolve() - enter pages at the device
 * @mr: the region
 * @first: index of the first page in the region
 * @npages: at most PVR_SET_PAGES_MAX
 * @fault: make absent pages resident; else only those that are resident are entered
 * Context: process; takes pvr_odp.lock
 *
 * Return: 0 or -errno. Pages before the one that failed may have been entered.
 */
int pvr_odp_resolve(struct pvr_mr *mr, u64 first, u32 npages, bool fault);
/* Return: the device's answer, or -ECANCELED if it does not have the region any more. */
int pvr_odp_cmd(struct pvr_mr *mr, union pvr_cmd_req *req,
		union pvr_cmd_resp *resp);
/* Tell the device that a queried fault cannot be resolved. */
void pvr_odp_refuse(struct pvr_mr *mr, u64 first);

#endif /* PVR_ODP_H */
