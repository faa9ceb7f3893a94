/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's objects: one struct for each kind of ib_core object. */
#ifndef PVR_OBJECTS_H
#define PVR_OBJECTS_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "event.h"
#include "pdir.h"
#include "pvrdma_abi_cmd.h"
#include "pvrdma_abi_wqe.h"

struct pvr_ucontext {
	struct ib_ucontext ibuc;
	u32 handle;
	u32 features; /* PVR_EXT_* negotiated with the provider */
	int uar; /* index of the doorbell page */
	struct pvr_odp_queue *odp_queue; /* NULL without regions on demand */
};

struct pvr_pd {
	struct ib_pd ibpd;
	u32 handle;
	bool had_windows; /* memory windows, which may keep MRs busy; never cleared */
};

struct pvr_xrcd {
	struct ib_xrcd ibxrcd;
	u32 handle;
};

struct pvr_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem; /* NULL for kernel MRs */
	struct pvr_pdir pdir;
	u64 virt; /* user MRs: requested address of the first byte */
	int access; /* user MRs: requested IB_ACCESS_* */
	struct pvr_odp *odp; /* of regions on demand; else NULL */
	bool dm; /* of device memory: the pages belong to the DM */
	u8 page_shift; /* user MRs: log2 of the directory's page size */
	u32 handle;
	u32 npages; /* fast-reg: pages set by the last map */
};

struct pvr_mw {
	struct ib_mw ibmw;
	u32 handle;
};

/* Device memory: pages of the driver. A mapping holds references on them. */
struct pvr_dm {
	struct ib_dm ibdm;
	struct rdma_user_mmap_entry entry; /* its last put frees the object */
	struct pvr_dev *dev;
	u32 npages;
	struct page **pages;
	dma_addr_t *dma; /* of each page */
};

struct pvr_ah {
	struct ib_ah ibah;
	struct pvr_av av;
};

struct pvr_cq_buf {
	struct ib_umem *umem; /* NULL for kernel CQs */
	struct pvr_pdir pdir;
	struct pvr_ring *ring_shm; /* kernel CQs: the driver is the consumer */
	struct pvr_cq_arm_dbrec
		*arm_dbrec; /* arm record; NULL: arm by doorbell */
	u32 arm; /* last value of arm_dbrec->arm; under pvr_cq.lock */
	u32 n; /* entries, a power of two */
};

struct pvr_cq {
	struct ib_cq ibcq;
	struct pvr_ref ref;
	u32 handle;
	u32 vector; /* completion vector */
	u32 flags; /* PVR_CQ_* */
	struct mutex resize_lock; /* writers of buf hold it and lock */
	struct pvr_cq_buf buf;

	/* Kernel CQs only. */
	spinlock_t lock; /* protects head, the entries, frozen and missed */
	struct xarray qps; /* QPs that complete here: handle -> pvr_qp */
	u32 head;
	bool frozen; /* resize in progress, see cq_resize.c */
	bool missed; /* polled or armed while frozen */
};

/* A request that has ended, as its consumer posted it. */
struct pvr_done {
	u64 wr_id;
	u32 bytes; /* of its buffers */
};

/* A work request of a kernel SRQ. */
struct pvr_srq_wr {
	u64 wr_id; /* the consumer's */
	u32 bytes; /* of its buffers */
	u32 next; /* if free: the next free entry */
	bool posted;
	bool waits; /* on a dead device: no QP has taken it */
};

/* The queue of a kernel SRQ. The device gets an index as wr_id, as in struct pvr_wq. */
struct pvr_srq_wq {
	spinlock_t lock; /* protects this struct and the elements */
	struct pvr_ring *ring_shm; /* the driver produces */
	const __le32 *db_suppress_shm; /* see pvr_ring_waits() */
	struct pvr_srq_wr *wrs; /* indexed by the device's wr_id */
	u32 *slots; /* the number of the request in each slot */
	u32 nwrs; /* entries of wrs, at least n */
	u32 free; /* the first that is free, if used < nwrs */
	u32 used;
	u32 tail;
	u32 n; /* slots, a power of two */
	u32 max_sge;
	u32 stride;
	bool moving; /* the device is being given another ring */
	bool ended; /* of a dead device: flushing has begun */
	u32 flushed; /* no request below this number is left to flush */
};

struct pvr_srq_mem {
	struct ib_umem *umem; /* NULL for kernel SRQs */
	struct pvr_pdir pdir;
};

struct pvr_srq {
	struct ib_srq ibsrq;
	struct pvr_ref ref;
	struct mutex lock; /* serialises modify; protects mem */
	struct pvr_srq_mem mem;
	u32 max_sge;
	u32 handle;
	struct pvr_srq_wq wq; /* kernel SRQs only */
};

/*
 * The send or receive queue of a kernel QP. The consumer's wr_ids stay here, because most
 * are pointers. The device gets an index as wr_id and returns it, and the driver checks
 * it.
 */
struct pvr_wq {
	spinlock_t lock; /* protects tail and the elements */
	struct pvr_ring *ring_shm; /* the driver produces */
	const __le32 *db_suppress_shm; /* see pvr_ring_waits() */
	u64 *wr_ids; /* of elements done .. tail */
	u32 *bytes; /* of the buffers of the same elements */
	u32 tail;
	u32 done; /* next to complete; protected by pvr_cq.lock */
	u32 n; /* elements, a power of two */
	u32 max_sge;
	u32 stride;
	size_t offset; /* of element 0 in the QP's pages */
};

struct pvr_qp {
	struct ib_qp ibqp;
	struct pvr_ref ref;
	/* Serialises modify and query; protects state, qkey and access. */
	struct mutex lock;
	enum ib_qp_state state;
	u32 qkey;
	u32 access; /* flags of a second change to INIT */
	bool access_kept; /* the device does not have them yet */
	bool is_lost; /* its memory is gone: the device refuses changes, see cmd.c */
	u32 handle;
	u32 max_inline; /* bytes */
	struct mutex groups_lock;
	struct list_head groups; /* that it is attached to */
	struct pvr_counted *counted; /* NULL if not bound to a counter */
	struct ib_umem *sbuf; /* NULL for kernel QPs and XRC targets */
	/* Also NULL without a receive queue, or if sbuf has all pages. */
	struct ib_umem *rbuf;
	struct pvr_pdir pdir;
	struct pvr_wq sq; /* kernel QPs only, as rq */
	struct pvr_wq rq;
};

#define PVR_TO(what, member)                                                 \
	static inline struct pvr_##what *to_pvr_##what(struct ib_##what *ib) \
	{                                                                    \
		return container_of(ib, struct pvr_##what, member);          \
	}
PVR_TO(ucontext, ibuc)
PVR_TO(pd, ibpd)
PVR_TO(xrcd, ibxrcd)
PVR_TO(mr, ibmr)
PVR_TO(dm, ibdm)
PVR_TO(mw, ibmw)
PVR_TO(ah, ibah)
PVR_TO(cq, ibcq)
PVR_TO(srq, ibsrq)
PVR_TO(qp, ibqp)
#undef PVR_TO

/* A target receives by XRC SRQs, and posts nothing. */
static inline bool pvr_qp_is_target(const struct pvr_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* Return: whether its requests carry an address, and a GRH precedes what it receives. */
static inline bool pvr_qp_is_datagram(const struct pvr_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* Return: whether the driver fills and empties its queues. */
static inline bool pvr_qp_is_kernel(const struct pvr_qp *qp)
{
	return !qp->sbuf && !pvr_qp_is_target(qp);
}

#endif /* PVR_OBJECTS_H */
