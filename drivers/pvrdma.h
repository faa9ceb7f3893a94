/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The adapter, its objects, and what the files of the driver offer each other. */
#ifndef PVR_PVRDMA_H
#define PVR_PVRDMA_H

#include <linux/build_bug.h>
#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/if_ether.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "pdir.h"
#include "pvrdma_abi.h"
#include "ring.h"

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
 * commands fail with -EIO at once, and destroying objects is local only. So
 * tear-down never waits for a dead device and never leaks.
 *
 * DOC: Locks
 *
 * Sleeping, outermost first: rtnl (core's) - pvr_qp.lock - pvr_dev.qp_lock -
 * pvr_cmd_chan.lock. Spinning, all with interrupts off: pvr_cq.lock, pvr_wq.lock
 * and the xarrays' own; none is taken inside another, except that polling a CQ
 * looks a QP up (RCU).
 */

/* One of the two rings on which the device reports: events, CQ notifications. */
struct pvr_evring {
	struct pvr_pdir pdir;
	struct pvr_ring *ring_shm; /* the driver consumes */
	u32 n; /* slots */
	u32 elem_size;
	u32 head; /* touched by the one interrupt handler only */
};

struct pvr_cmd_chan {
	struct mutex lock; /* one command at a time; protects all of this */
	struct completion done; /* vector 0 came; may be a late one */
	struct pvr_page req; /* command slot */
	struct pvr_page resp; /* response slot */
	u64 cookie; /* key of the last command */
};

/* pvr_dev.flags */
enum pvr_dev_flag {
	PVR_DEV_DEAD, /* see pvr_dev_fail(); never cleared */
	PVR_DEV_LIVE, /* registered with ib_core: events may be dispatched */
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
	struct pvr_evring cq_notes;

	struct ida uars; /* UAR pages in use, 0 is the driver's */
	struct xarray cqs; /* handle -> pvr_cq */
	struct xarray qps; /* handle -> pvr_qp */
	struct xarray srqs; /* handle -> pvr_srq */
	struct mutex qp_lock; /* a QP handle is not re-used while being purged */

	struct notifier_block netdev_nb;
	spinlock_t netdev_lock; /* protects netdev; writers also hold rtnl */
	struct net_device *netdev; /* the paired NIC (referenced), or NULL */
	struct work_struct port_work; /* re-reads the port, tells ib_core */
	bool port_up; /* what ib_core was told; port_work only */
};

/*
 * What async events and CQ notifications need to find an object by handle and
 * keep it while its handler runs.
 */
struct pvr_ref {
	refcount_t count;
	struct completion gone;
};

struct pvr_ucontext {
	struct ib_ucontext ibuc;
	u32 handle;
	int uar; /* index of the doorbell page */
};

struct pvr_pd {
	struct ib_pd ibpd;
	u32 handle;
};

struct pvr_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem; /* NULL for kernel MRs */
	struct pvr_pdir pdir;
	u32 handle;
	u32 npages; /* fast-reg: pages entered by the last map */
};

struct pvr_ah {
	struct ib_ah ibah;
	struct pvrdma_av av;
};

struct pvr_cq {
	struct ib_cq ibcq;
	struct pvr_ref ref;
	struct ib_umem *umem; /* NULL for kernel CQs */
	struct pvr_pdir pdir;
	u32 handle;
	u32 n; /* entries, a power of two */

	/* Kernel CQs only. */
	spinlock_t lock; /* protects head and the entries */
	struct pvr_ring *ring_shm; /* the driver consumes */
	u32 head;
};

struct pvr_srq {
	struct ib_srq ibsrq;
	struct pvr_ref ref;
	struct ib_umem *umem;
	struct pvr_pdir pdir;
	u32 handle;
};

/* The send or receive queue of a kernel QP. */
struct pvr_wq {
	spinlock_t lock; /* protects tail and the elements */
	struct pvr_ring *ring_shm; /* the driver produces */
	u32 tail;
	u32 n; /* elements, a power of two */
	u32 max_sge;
	u32 stride;
	size_t offset; /* of element 0 in the QP's pages */
};

struct pvr_qp {
	struct ib_qp ibqp;
	struct pvr_ref ref;
	struct mutex lock; /* serialises modify and query; protects state, qkey */
	enum ib_qp_state state;
	u32 qkey;
	u32 handle;
	struct ib_umem *sbuf; /* NULL for kernel QPs */
	struct ib_umem *rbuf; /* NULL for kernel QPs and with an SRQ */
	struct pvr_pdir pdir;
	struct pvr_wq sq; /* kernel QPs only, as rq */
	struct pvr_wq rq;
};

#define PVR_TO(what, member)                                                   \
	static inline struct pvr_##what *to_pvr_##what(                        \
		struct ib_##what *ib)                                          \
	{                                                                      \
		return container_of(ib, struct pvr_##what, member);            \
	}
PVR_TO(ucontext, ibuc)
PVR_TO(pd, ibpd)
PVR_TO(mr, ibmr)
PVR_TO(ah, ibah)
PVR_TO(cq, ibcq)
PVR_TO(srq, ibsrq)
PVR_TO(qp, ibqp)
#undef PVR_TO

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

/* main.c */

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

/* cmd.c */

int pvr_cmd_init(struct pvr_dev *dev);
void pvr_cmd_exit(struct pvr_dev *dev);

/**
 * pvr_cmd() - run one command and wait for its end
 * @dev: the adapter
 * @req: zeroed and filled by the caller; the key in the header is set here
 * @resp: private copy of the response, or NULL for commands that have none
 *
 * Waits uninterruptibly, at most 10 s, so that an object never exists on one side
 * only; a device that takes longer is declared dead.
 *
 * Context: may sleep.
 * Return: 0, the device's verdict as -errno, or -EIO if the device is dead.
 */
int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req,
	    union pvr_cmd_resp *resp);

/**
 * pvr_cmd_destroy() - run a DESTROY_* command that names only a handle
 * @dev: the adapter
 * @cmd: enum pvr_cmd
 * @handle: the object
 *
 * Cannot fail: on return the device does not know the object, because a device
 * that refuses is reset. So the caller may free what the device could reach.
 * Context: may sleep.
 */
void pvr_cmd_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle);

/**
 * pvr_cmd_ctl() - write the CTL register and read the verdict
 * @dev: the adapter
 * @ctl: enum pvr_ctl, but not RESET
 *
 * Context: may sleep.
 * Return: as pvr_cmd().
 */
int pvr_cmd_ctl(struct pvr_dev *dev, enum pvr_ctl ctl);

/* event.c */

int pvr_evring_init(struct pvr_dev *dev, struct pvr_evring *ring, u32 n,
		    u32 elem_size);
void pvr_evring_exit(struct pvr_evring *ring);
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
 * pvr_dispatch() - tell ib_core of an event of port 1 or of the device
 * @dev: the adapter; nothing happens unless it is registered
 * @type: enum ib_event_type
 *
 * Context: any.
 */
void pvr_dispatch(struct pvr_dev *dev, enum ib_event_type type);

/* ib.c */

int pvr_ib_register(struct pvr_dev *dev);
void pvr_ib_unregister(struct pvr_dev *dev);
int pvr_udata_in(struct ib_udata *udata, void *dst, size_t size);
int pvr_udata_out(struct ib_udata *udata, const void *src, size_t size);

/**
 * pvr_umem_get() - pin a page-aligned buffer of user space
 * @dev: the adapter
 * @addr: where; must be page-aligned, for its offset never reaches the device
 * @size: bytes
 * @min_size: what the object needs
 *
 * Context: process context of the owner, may sleep.
 * Return: the memory, to be given to ib_umem_release(), or an ERR_PTR.
 */
struct ib_umem *pvr_umem_get(struct pvr_dev *dev, u64 addr, u32 size,
			     u64 min_size);

/* port.c */

int pvr_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int pvr_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int pvr_port_immutable(struct ib_device *ibdev, u32 port,
		       struct ib_port_immutable *imm);
enum rdma_link_layer pvr_link_layer(struct ib_device *ibdev, u32 port);

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

/* gid.c */

int pvr_add_gid(const struct ib_gid_attr *attr, void **context);
int pvr_del_gid(const struct ib_gid_attr *attr, void **context);

/* ucontext.c, pd.c, mr.c, ah.c: see struct ib_device_ops for all verbs below */

int pvr_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void pvr_dealloc_ucontext(struct ib_ucontext *ibuc);
void pvr_disassociate_ucontext(struct ib_ucontext *ibuc);
int pvr_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
u32 pvr_udata_ctx(struct ib_udata *udata);

int pvr_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int pvr_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

struct ib_mr *pvr_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *pvr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access,
			      PVR_REG_MR_DMAH_PARAM struct ib_udata *udata);
struct ib_mr *pvr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg);
int pvr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset);
int pvr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

int pvr_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int pvr_destroy_ah(struct ib_ah *ibah, u32 flags);
void pvr_ah_attr_to_dev(struct pvr_ah_attr *to, const struct rdma_ah_attr *from);
void pvr_ah_attr_from_dev(struct rdma_ah_attr *to,
			  const struct pvr_ah_attr *from);

/* cq.c */

int pvr_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  PVR_CREATE_CQ_ARG *arg);
int pvr_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int pvr_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int pvr_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/**
 * pvr_cq_purge() - remove the completions of one QP from a kernel CQ
 * @cq: the CQ
 * @qp_handle: a QP of which the device adds no more completions
 *
 * Context: takes cq->lock.
 */
void pvr_cq_purge(struct pvr_cq *cq, u32 qp_handle);

/* qp.c */

int pvr_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int pvr_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void pvr_qp_purge(struct pvr_qp *qp);

/* qp_modify.c */

int pvr_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int pvr_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);

/* wr.c */

int pvr_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int pvr_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);

/* srq.c */

int pvr_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata);
int pvr_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int pvr_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int pvr_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

#endif /* PVR_PVRDMA_H */
