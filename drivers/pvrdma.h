/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The adapter, its objects, and what the files of the driver offer each other. */
#ifndef PVR_PVRDMA_H
#define PVR_PVRDMA_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/idr.h>
#include <linux/if_ether.h>
#include <linux/io.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "cmd.h"
#include "compat.h"
#include "counters.h"
#include "event.h"
#include "pdir.h"
#include "pvrdma_abi.h"
#include "ring.h"
#include "vector.h"
#include "verbs.h"

/* PVR_EXT_MR_LAYOUT: sizes that the pages of a region may have. */
#define PVR_MR_PAGE_SIZES GENMASK(30, PVR_PAGE_SHIFT)

static_assert(PAGE_SIZE == PVR_PAGE_SIZE, "the interface has 4 KiB pages");

/*
 * DOC: Life of an adapter
 *
 * pvr_start() in main.c builds it up in this order, pvr_stop() takes it down in
 * the reverse order: PCI (BARs) - shared region (device learns where it is, caps
 * come back) - interrupts - activation - netdev notifier - ib_device.
 *
 * A device that breaks the protocol, times out or vanishes is declared dead once
 * and for all by pvr_dev_fail(), which resets it: from then on it does no DMA,
 * commands fail with -EIO at once, destroying objects is local only, and the work
 * requests of kernel QPs are flushed by the driver. So tear-down never waits for a
 * dead device and never leaks.
 *
 * DOC: Locks
 *
 * Sleeping, outermost first: rtnl (core's) - pvr_qp.lock - pvr_dev.qp_lock -
 * pvr_cq.resize_lock, pvr_srq.lock, pvr_stats.lock - pvr_cmd_chan.lock. Spinning, with
 * interrupts off: pvr_cq.lock - pvr_wq.lock, pvr_srq_wq.lock; the xarrays' own, in
 * which none is taken. Polling a CQ looks QPs up by RCU.
 */

/* pvr_dev.flags */
enum pvr_dev_flag {
	PVR_DEV_DEAD, /* see pvr_dev_fail(); never cleared */
	PVR_DEV_LIVE, /* registered with ib_core: events may be dispatched */
	PVR_DEV_SRQS_ENDED, /* it is dead, and QPs with an SRQ were told */
	PVR_DEV_RESCAN_GIDS, /* port_work shall look at all netdevs again */
};

struct pvr_dev {
	struct ib_device ibdev;
	struct pci_dev *pdev;
	unsigned long flags; /* enum pvr_dev_flag, atomic bit operations */

	void __iomem *regs;
	void __iomem *uar; /* the driver's own doorbell page */
	u32 version; /* enum pvr_version, or newer */
	u32 features; /* PVR_EXT_* in effect */
	bool has_ext; /* the extension registers exist */
	u8 mac[ETH_ALEN]; /* of the paired NIC; zero if unknown */

	struct pvr_page dsr; /* struct pvr_dsr */
	struct pvr_caps caps; /* checked copy */
	u32 num_uars;
	struct pvr_cmd_chan cmd;
	struct pvr_evring events;
	struct pvr_comp_vector vectors[PVR_CQ_VECTORS_MAX];
	u32 num_vectors; /* completion vectors, at least 1 */

	struct ida uars; /* UAR pages in use, 0 is the driver's */
	struct xarray cqs; /* handle -> pvr_cq */
	struct xarray qps; /* handle -> pvr_qp */
	struct xarray srqs; /* handle -> pvr_srq */
	atomic64_t dm_bytes; /* device memory handed out, of PVR_DM_BYTES */
	struct pvr_stats stats;
	struct mutex qp_lock; /* a QP handle is not re-used while being purged */

	struct notifier_block netdev_nb;
	spinlock_t netdev_lock; /* protects netdev; writers also hold rtnl */
	struct net_device *netdev; /* the paired NIC (referenced), or NULL */
	bool netdev_link; /* the PCI device has a link to it; rtnl */
	struct work_struct port_work; /* re-reads the port, tells ib_core */
	struct delayed_work health_work; /* looks for a vanished device */
	struct work_struct flush_work; /* wakes all CQs of a dead device */
	bool port_up; /* what ib_core was told; port_work only */
};

static inline struct pvr_dev *to_pvr_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct pvr_dev, ibdev);
}

static inline bool pvr_dev_dead(const struct pvr_dev *dev)
{
	return test_bit(PVR_DEV_DEAD, &dev->flags);
}

static inline u32 pvr_reg_read(const struct pvr_dev *dev, enum pvr_reg reg)
{
	return readl(dev->regs + reg);
}

static inline void pvr_reg_write(struct pvr_dev *dev, enum pvr_reg reg, u32 val)
{
	writel(val, dev->regs + reg);
}

/*
 * Ring a doorbell of the driver's own UAR page. writel() orders all earlier
 * stores to memory, such as a ring index, before the doorbell.
 */
static inline void pvr_doorbell(struct pvr_dev *dev, u32 offset, u32 val)
{
	writel(val, dev->uar + offset);
}

/* main.c */

/* To pvr_dev_fail() when pvr_dev_gone() */
#define PVR_GONE "registers read all ones, it is gone"

/**
 * pvr_dev_gone() - has the device left the bus?
 * @dev: the adapter
 */
bool pvr_dev_gone(const struct pvr_dev *dev);

/**
 * pvr_dev_fail() - declare the device dead, reset it and tell ib_core, once
 * @dev: the adapter
 * @why: for the log, as in "device failed: <why>"
 *
 * On return the device does no more DMA.
 * Context: any.
 */
void pvr_dev_fail(struct pvr_dev *dev, const char *why);

/**
 * pvr_health_work() - notice a device that left the bus without a command failing
 * @work: pvr_dev.health_work; queues itself again while the device is well
 */
void pvr_health_work(struct work_struct *work);

/* shared.c */

/**
 * pvr_shared_init() - make the shared region, hand it over, read the caps
 * @dev: an adapter whose BARs are mapped
 *
 * Context: may sleep.
 * Return: 0, -ENODEV (a device that we do not understand; said so) or -ENOMEM.
 */
int pvr_shared_init(struct pvr_dev *dev);

/**
 * pvr_shared_exit() - reset the device and free the shared region
 * @dev: the adapter
 */
void pvr_shared_exit(struct pvr_dev *dev);

/* caps.c */

/**
 * pvr_caps_check() - refuse impossible capabilities, cap those we cannot use
 * @dev: the adapter; dev->caps holds a private copy of what the device said
 *
 * Return: 0, or -ENODEV having said which value is wrong.
 */
int pvr_caps_check(struct pvr_dev *dev);

/* ib.c */

int pvr_ib_register(struct pvr_dev *dev);
void pvr_ib_unregister(struct pvr_dev *dev);

/* port.c */

/**
 * pvr_port_kick() - have the port's state looked at again
 * @dev: the adapter; nothing happens unless it is registered
 *
 * Context: any.
 */
void pvr_port_kick(struct pvr_dev *dev);
void pvr_port_work(struct work_struct *work);

/* netdev.c */

int pvr_netdev_init(struct pvr_dev *dev);
void pvr_netdev_exit(struct pvr_dev *dev);

/**
 * pvr_netdev_ready() - is there a paired NIC with carrier, and is it up?
 * @dev: the adapter
 */
bool pvr_netdev_ready(struct pvr_dev *dev);

#endif /* PVR_PVRDMA_H */
