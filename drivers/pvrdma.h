/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The adapter, and the interfaces between the driver's files. */
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
#include "place.h"
#include "pvrdma_abi.h"
#include "ring.h"
#include "vector.h"
#include "verbs.h"

/* PVR_EXT_MR_LAYOUT: supported page sizes of a region */
#define PVR_MR_PAGE_SIZES GENMASK(30, PVR_PAGE_SHIFT)

/* The interface has pages of 4 KiB. Those of CPUs other than x86 can be larger. */
#define PVR_PAGES_PER_CPU_PAGE (PAGE_SIZE / PVR_PAGE_SIZE)
static_assert(PAGE_SIZE >= PVR_PAGE_SIZE);

/*
 * DOC: Life of an adapter
 *
 * pvr_dev_start() starts these parts in order, pvr_dev_stop() stops them in the reverse
 * order:
 *
 *  PCI - BARs, bus mastering
 *  shared region - the device gets its address and reports the capabilities
 *  interrupts
 *  activation
 *  netdev notifier
 *  ib_device
 *
 * pvr_dev_fail() declares a device dead that breaks the protocol, times out or is
 * removed, and resets it. The shutdown of the system does the same, without a message.
 * This is final for this struct pvr_dev: a restart begins with a new one, see restart.c.
 * From then on the device does no DMA, commands
 * fail with -EIO at once, objects are destroyed only in the driver, and the driver
 * flushes the work requests of kernel QPs. So tear-down never waits for a dead device and
 * never leaks.
 *
 * A device that refuses to destroy an object is not dead. The object is gone for its
 * user, and its memory is kept until the device is reset, see pvr_keep().
 *
 * DOC: Locks
 *
 * Sleeping, outermost first:
 *  pvr_pci.lock
 *  rtnl (of the network core)
 *  pvr_qp.lock, pvr_qp.groups_lock
 *  pvr_dev.qp_lock
 *  pvr_cq.resize_lock, pvr_srq.lock, pvr_stats.lock
 *  pvr_odp.lock, ib_umem_odp.umem_mutex, pvr_odp.alive, see odp.h; memory reclaim takes the
 *    last two
 *  pvr_cmd_chan.lock, pvr_dev.clock_lock
 * Spinning, with interrupts off, outermost first:
 *  pvr_cq.lock
 *  pvr_wq.lock, pvr_srq_wq.lock
 *
 * The xarrays' own locks are innermost. pvr_poll_cq() looks up QPs under RCU.
 */

/* pvr_dev.flags */
enum pvr_dev_flag {
	PVR_DEV_DEAD, /* failed or shut down; never cleared */
	PVR_DEV_LIVE, /* registered with ib_core: events are dispatched */
	PVR_DEV_SRQS_ENDED, /* dead, and LAST_WQE_REACHED was sent */
	PVR_DEV_BOUNCES, /* refused user memory, and logged the reason */
	PVR_DEV_RESCAN_GIDS, /* port_work must rescan all netdevs */
};

/* All queues of page faults, see odp_queue.c. They may outlive the contexts and a restart. */
struct pvr_odp_queues {
	spinlock_t lock; /* protects the lists and pvr_odp_queue.contexts */
	struct list_head list;
	struct list_head unused;
	struct work_struct free_work; /* frees the unused ones */
	wait_queue_head_t fewer;
};

/* A PCI function. Its adapter comes and goes, see restart.c. */
struct pvr_pci {
	struct pci_dev *pdev;
	struct mutex lock; /* serialises start and stop; protects this struct */
	struct pvr_dev *dev; /* NULL while stopped */
	bool off; /* removed, suspended, in reset or shut down: no restarts */
	u32 restarts; /* since window */
	unsigned long window; /* in jiffies */
	/* a restart waits for consumers until then */
	unsigned long close_timeout;
	bool was_used; /* by kernel consumers, at the last poll */
	struct pci_saved_state *config; /* at the probe; NULL: no memory */
	struct pvr_place place; /* of the last ib_device, for the next one */
	struct delayed_work restart_work;
	struct pvr_odp_queues odp_queues;
};

/* The fields of struct pvr_caps that the driver uses, in the byte order of the CPU. */
struct pvr_dev_caps {
	u64 fw_ver;
	__be64 node_guid;
	__be64 sys_image_guid;
	u64 max_mr_size; /* bytes */
	u32 vendor_id;
	u32 hw_ver;
	u32 max_qp;
	u32 max_qp_wr;
	u32 device_cap_flags;
	u32 max_sge;
	u32 max_sge_rd;
	u32 max_cq;
	u32 max_cqe;
	u32 max_mr;
	u32 max_pd;
	u32 max_qp_rd_atom;
	u32 max_qp_init_rd_atom;
	u32 max_mw;
	u32 max_mcast_grp;
	u32 max_mcast_qp_attach;
	u32 max_total_mcast_qp_attach;
	u32 max_ah;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_srq_sge;
	u32 max_uar;
	u32 gid_tbl_len;
	u32 max_fast_reg_page_list_len;
	u16 max_pkeys;
	u8 local_ca_ack_delay;
	u8 phys_port_cnt;
	u8 mode; /* enum pvr_device_mode */
	u8 atomic_ops; /* PVR_ATOMIC_* */
	u8 bmme_flags; /* PVR_BMME_* */
	u8 gid_types; /* PVR_GID_TYPE_* */
};

struct pvr_dev {
	struct ib_device ibdev;
	struct pvr_pci *pci;
	struct pci_dev *pdev;
	unsigned long flags; /* enum pvr_dev_flag, atomic bit operations */

	void __iomem *regs;
	void __iomem *uar; /* doorbell page of the driver */
	u32 version; /* enum pvr_version, or newer */
	u32 features; /* PVR_EXT_* in effect */
	bool has_ext; /* the device has the extension registers */
	u8 mac[ETH_ALEN]; /* of the paired NIC; zero if unknown */

	struct pvr_page dsr; /* struct pvr_dsr */
	struct pvr_dev_caps caps; /* checked */
	u32 num_uars;
	struct pvr_cmd_chan cmd;
	struct pvr_evring events;
	struct pvr_comp_vector vectors[PVR_CQ_VECTORS_MAX];
	u32 num_vectors; /* completion vectors, at least 1 */
	bool one_irq; /* MSI: one vector for commands, events and completions */

	struct pvr_page_cache dir_pages;
	struct list_head kept; /* see kept.c */
	spinlock_t kept_lock; /* protects kept */
	atomic_t refusals; /* objects that the device did not destroy */
	struct ida uars; /* UAR pages in use; 0 is the driver's */
	struct xarray cqs; /* handle -> pvr_cq */
	struct xarray qps; /* handle -> pvr_qp */
	struct xarray srqs; /* handle -> pvr_srq */
	struct xarray odp_mrs; /* handle -> pvr_mr on demand */
	struct xarray odp_lkeys; /* lkey -> the same */
	atomic_t kernel_qps; /* of kernel consumers, except the GSI QP */
	atomic64_t dm_bytes; /* allocated device memory, at most PVR_DM_BYTES */
	struct pvr_stats stats;
	struct mutex qp_lock; /* a QP handle is not reused while it is purged */
	struct mutex clock_lock; /* between reads of the halves of the clock */

	struct notifier_block netdev_nb;
	spinlock_t netdev_lock; /* protects netdev; writers also hold rtnl */
	struct net_device *netdev; /* the paired NIC (referenced), or NULL */
	bool netdev_link; /* sysfs link to the NIC exists; under rtnl */
	struct work_struct port_work; /* reads the port and reports changes */
	struct delayed_work health_work; /* detects a removed device */
	struct work_struct flush_work; /* notifies all CQs of a dead device */
	bool port_up; /* last reported state; port_work only */
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
 * Write a doorbell of the driver's UAR page. writel() orders earlier stores to memory,
 * such as a ring index, before the doorbell.
 */
static inline void pvr_doorbell(struct pvr_dev *dev, u32 offset, u32 val)
{
	writel(val, dev->uar + offset);
}

/**
 * pvr_pdir_was_read() - free the lists of a directory after the command that named it
 * @dev: the adapter
 * @pdir: the directory of an object that exists, except a page list of fast registrations
 *
 * A device with the extension registers reads a directory only during the command
 * (docs/abi.rst, "Page directories"). Nothing is known of other devices.
 *
 * Context: may sleep.
 */
static inline void pvr_pdir_was_read(const struct pvr_dev *dev,
				     struct pvr_pdir *pdir)
{
	if (dev->has_ext && pdir->cache)
		pvr_pdir_free_lists(pdir);
}

/* main.c */

/*
 * Keep the configuration space of the function, as it is before its first start, until
 * pvr_pci_forget_config().
 */
void pvr_pci_keep_config(struct pvr_pci *pci);
void pvr_pci_forget_config(struct pvr_pci *pci);

/**
 * pvr_pci_remap() - map the BARs of a new device in the place of this one
 * @pci: a stopped PCI function; the caller holds the lock
 *
 * Return: whether the function had unmapped BARs, and has its first configuration space
 * again. So a start may succeed.
 */
bool pvr_pci_remap(struct pvr_pci *pci);

/**
 * pvr_dev_start() - create an adapter and register it with ib_core
 * @pci: its PCI function; the caller holds the lock
 *
 * Context: may sleep.
 * Return: the adapter or an ERR_PTR.
 */
struct pvr_dev *pvr_dev_start(struct pvr_pci *pci);
void pvr_dev_stop(struct pvr_dev *dev);

/**
 * pvr_dev_shutdown() - end all DMA; consumers may remain
 * @dev: the adapter, which is dead on return
 */
void pvr_dev_shutdown(struct pvr_dev *dev);

/**
 * pvr_dev_gone() - check whether the device is still there
 * @dev: the adapter
 *
 * VERSION reads all ones if the device was removed, and zero if its BARs are not mapped.
 * A QEMU that cannot migrate the device restores a VM with unmapped BARs.
 *
 * Context: any; one register read.
 * Return: the reason for pvr_dev_fail(), or NULL.
 */
const char *pvr_dev_gone(const struct pvr_dev *dev);

/**
 * pvr_dev_fail() - declare the device dead and reset it
 * @dev: the adapter
 * @why: for the log, as in "device failed: <why>"
 *
 * Only the first call has an effect; it dispatches IB_EVENT_DEVICE_FATAL and queues a
 * restart. On return the device does no more DMA.
 *
 * Context: any.
 */
void pvr_dev_fail(struct pvr_dev *dev, const char *why);

/**
 * pvr_health_work() - detect a removed device, even if no command runs
 * @work: pvr_dev.health_work; queues itself again until the device is dead
 */
void pvr_health_work(struct work_struct *work);

/* restart.c */

extern const struct dev_pm_ops pvr_pm_ops;
extern const struct pci_error_handlers pvr_pci_errors;
int pvr_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id);
void pvr_pci_remove(struct pci_dev *pdev);
void pvr_pci_shutdown(struct pci_dev *pdev);

/**
 * pvr_pci_begin_dma() - let the device access memory, in a start
 * @pci: the PCI function; the caller holds the lock
 *
 * Return: 0, or -ESHUTDOWN if the system shuts down, also if it did not wait for this start.
 * Then there is no DMA.
 */
int pvr_pci_begin_dma(struct pvr_pci *pci);

/**
 * pvr_restart_queue() - restart the adapter soon, if it is dead and not too often
 * @pci: the PCI function
 *
 * Context: any.
 */
void pvr_restart_queue(struct pvr_pci *pci);

/* shared.c */

/**
 * pvr_shared_init() - create the shared region, pass it to the device, read the caps
 * @dev: an adapter whose BARs are mapped
 *
 * Context: may sleep.
 * Return: 0, -ENODEV (unsupported device, logged) or -ENOMEM.
 */
int pvr_shared_init(struct pvr_dev *dev);

/**
 * pvr_shared_exit() - reset the device and free the shared region
 * @dev: the adapter
 *
 * Context: may sleep.
 */
void pvr_shared_exit(struct pvr_dev *dev);

/* kept.c */

/**
 * pvr_keep() - take over memory of an object that the device did not destroy
 * @dev: the adapter; declared dead if there is no memory for the list
 * @pdir: directory and pages; zeroed
 * @umem: pinned memory, or NULL; set to NULL
 *
 * Context: may sleep.
 */
void pvr_keep(struct pvr_dev *dev, struct pvr_pdir *pdir,
	      struct ib_umem **umem);

/**
 * pvr_is_kept() - whether the device may still use memory of an object that it did not destroy
 * @dev: the adapter
 * @umem: pinned memory of a user, page-aligned
 *
 * Context: may sleep.
 */
bool pvr_is_kept(struct pvr_dev *dev, struct ib_umem *umem);

/**
 * pvr_kept_free() - free all memory that was kept
 * @dev: the adapter, which was reset; there are no users
 *
 * Context: may sleep.
 */
void pvr_kept_free(struct pvr_dev *dev);

/* odp_queue.c */

void pvr_odp_queues_init(struct pvr_odp_queues *queues);
/* Wait for the page faults of regions that the device does not have any more. */
void pvr_odp_queues_exit(struct pvr_odp_queues *queues);

/* caps.c */

/**
 * pvr_caps_read() - copy the capabilities, in the byte order of the CPU
 * @to: set
 * @from: memory of the device, which is read once
 */
void pvr_caps_read(struct pvr_dev_caps *to, const struct pvr_caps *from);

/**
 * pvr_caps_check() - check the capabilities and limit them to those of the driver
 * @dev: the adapter; dev->caps is a private copy of the device's values
 *
 * Return: 0, or -ENODEV after logging the wrong value.
 */
int pvr_caps_check(struct pvr_dev *dev);

/* ib.c */

int pvr_ib_register(struct pvr_dev *dev);
void pvr_ib_unregister(struct pvr_dev *dev);

/* port.c */

/**
 * pvr_port_kick() - queue a check of the port's state
 * @dev: the adapter; does nothing unless it is registered
 *
 * Context: any.
 */
void pvr_port_kick(struct pvr_dev *dev);
void pvr_port_work(struct work_struct *work);

/* netdev.c */

int pvr_netdev_init(struct pvr_dev *dev);
void pvr_netdev_exit(struct pvr_dev *dev);

/**
 * pvr_netdev_ready() - state of the paired NIC
 * @dev: the adapter
 *
 * Context: process.
 * Return: whether there is a paired NIC that is up and has carrier.
 */
bool pvr_netdev_ready(struct pvr_dev *dev);
struct net_device *pvr_get_netdev(struct ib_device *ibdev, u32 port);

#endif /* PVR_PVRDMA_H */
