/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's objects and the interfaces between its files.
 *
 * Locks, outermost first:
 *  context.qp_mutex
 *  cq.lock of up to two CQs, that of the lower handle first
 *  wq.lock, cq.arm_lock
 *
 * Posting takes one wq.lock, polling one cq.lock, arming one cq.arm_lock. None of them
 * makes a system call. Resizing makes one under the locks of its object. So does a read of the
 * wall clock between start_poll and end_poll, once a second.
 */
#ifndef PVR_PVRDMA_H
#define PVR_PVRDMA_H

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <util/compiler.h>

#include "pvrdma_abi_wqe.h"
#include "ring.h"

/* A CQE has 16 bits for the QP handle. */
#define PVR_QP_HANDLES 0x10000u

/*
 * Upper bounds of the limits that a driver reports. No size computed from them overflows.
 */
#define PVR_MAX_ELEMENTS (1u << 22)
#define PVR_MAX_SGE 128u
#define PVR_MAX_SRQ (1u << 16)

/*
 * Limits of the device, see ibv_query_device(3). Larger sizes are refused before anything
 * is allocated.
 */
struct pvr_limits {
	uint32_t qp_wr, sge;
	uint32_t cqe;
	uint32_t srq, srq_wr, srq_sge; /* 0: the device has no SRQs */
};

struct pvr_device {
	struct verbs_device ibv_dev;
};

struct pvr_pool;
struct pvr_slab;
struct pvr_qp;
struct pvr_cq;

/*
 * What a poller needs of the send or receive side of a QP. The lock of the CQ protects it. left
 * lacks the requests that a poll in progress has taken. Then last + 1 - left is the next value
 * of wq->polled. Of an SRQ it is what must be added to that.
 */
struct pvr_qp_side {
	uint8_t pad[64]; /* pollers of other CQs and posters write to other cache lines */
	struct pvr_wq *wq; /* of the QP or its SRQ */
	uint64_t *wr_ids; /* those of wq */
	uint32_t mask; /* of slots in wr_ids */
	uint32_t left; /* outstanding requests up to last */
	uint32_t qp_num;
	uint32_t last; /* the last request that is known to be posted */
	struct pvr_qp_side *next; /* during a poll of several sides, see cq_poll.c; else NULL */
};

/*
 * A broken device can name a QP of other CQs, which any thread may destroy. So a poller reads
 * cq first, and side only if that is its own CQ, which it has locked.
 */
struct pvr_qp_entry {
	_Atomic(struct pvr_cq *) cq; /* NULL: no QP */
	struct pvr_qp_side *side;
};

enum pvr_side { PVR_SIDE_SEND, PVR_SIDE_RECV, PVR_SIDE_NUM };
#define PVR_NO_INDEX UINT32_MAX

struct pvr_context {
	struct verbs_context ibv_ctx;
	uint8_t *uar; /* doorbell page */
	uint32_t features; /* PVR_EXT_* in effect */
	_Atomic(bool) dead; /* the device is gone, see fatal.c; never cleared */
	uint32_t qp_tbl_size;
	uint8_t num_ports;
	struct pvr_limits limits;
	struct pvr_qp **qp_tbl; /* QPs by handle, protected by qp_mutex */
	/*
	 * For pollers, see pvr_qp_index() and pvr_srq_index(). An entry is set and cleared
	 * with that of qp_tbl. It is cleared with both CQs of the QP, or that of the XRC SRQ,
	 * locked, together with the CQEs.
	 */
	struct pvr_qp_entry *qp_entries;
	uint32_t num_entries;
	pthread_mutex_t qp_mutex; /* taken inside the lock of a CQ; nothing waits inside it */
	struct pvr_pool *pool; /* memory of small queues; NULL: each has a mapping of its own */
};

struct pvr_pd {
	struct ibv_pd ibv_pd;
	uint32_t handle;
	_Atomic(uint32_t) users; /* parent domains of it, buffers from its allocators */
	struct pvr_pd *base; /* PD of a parent domain; NULL: not a parent domain */
};

struct pvr_td {
	struct ibv_td ibv_td;
	_Atomic(uint32_t) users; /* parent domains */
};

struct pvr_parent_domain {
	struct pvr_pd pd; /* has the handles of pd.base */
	struct pvr_td *td; /* or NULL */
	/* The application's allocators, or NULL, see ibv_alloc_parent_domain(3) */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* Resource types for allocators. The high half is the driver's number. */
#define PVR_RES(n) ((uint64_t)RDMA_DRIVER_VMW_PVRDMA << 32 | (n))
#define PVR_RES_CQ PVR_RES(1)
#define PVR_RES_SRQ PVR_RES(2)
#define PVR_RES_QP PVR_RES(3)

struct pvr_ah {
	struct ibv_ah ibv_ah;
	struct pvr_av av;
};

struct pvr_dm {
	struct verbs_dm verbs_dm;
	uint8_t *addr; /* address of the mapping */
	size_t length, mapped;
};

/* Pages of a ring, the first zeroed: page-aligned and not inherited by children of fork(). */
struct pvr_buf {
	void *addr;
	size_t size; /* bytes, a multiple of the page size; 0: not allocated */
	struct pvr_parent_domain *parent; /* parent domain whose allocator it is from, or NULL */
	uint64_t resource_type; /* PVR_RES_*, if parent is set */
	struct pvr_pool *pool; /* pool that it is from, or NULL: a mapping of its own */
	struct pvr_slab *slab; /* of the pool */
};

/* A ring that the device does not know, for the CQEs of a dead device's requests. */
struct pvr_own_ring {
	struct pvr_ring_shm ring;
	struct pvr_cqe cqes[];
};

struct pvr_cq {
	struct verbs_cq verbs_cq;
	struct pvr_lock lock; /* protects the members below and the elements before prod_tail */
	bool single_threaded; /* one thread at a time: no locking */
	uint32_t handle;
	uint32_t head; /* next element, wraps at 2^32; cons_head may lag behind it */
	uint32_t tail; /* the end of the elements that the current poll has found */
	uint32_t index; /* that of side in qp_entries, or PVR_NO_INDEX */
	struct pvr_qp_side *side; /* that of the last CQE, or NULL; its QP exists */
	uint32_t num; /* elements, a power of two */
	uint32_t idx_mask; /* of indices: 2 * num - 1 */
	struct pvr_ring_shm *ring_shm;
	struct pvr_cqe *cqes_shm;
	struct pvr_own_ring *own_ring; /* the ring in use after the end of the device, or NULL */
	/*
	 * Protects arm and arm_dbrec, and ring_shm while a thread arms. Taken inside lock.
	 * A lock of its own, because a thread may arm between start_poll and end_poll.
	 */
	struct pvr_lock arm_lock;
	uint32_t arm; /* last value stored in arm_dbrec->arm */
	struct pvr_cq_arm_shm *arm_dbrec; /* NULL: arm by doorbell */
	uint32_t empty_polls;
	uint64_t looked; /* ms: time of the last check of the device */
	_Atomic(bool) notified; /* a notification arrived; accessed without the lock */
	_Atomic(bool) broken; /* in error, no CQE will follow; accessed without the lock */
	struct pvr_cqe cqe; /* current CQE between start_poll and end_poll */
	uint32_t qp_num; /* of the QP of cqe */
	struct pvr_clock_query_resp clocks; /* the last reading, see clock.c */
	uint64_t clocks_until; /* ms: when it is repeated */
	struct ibv_pd *parent; /* a parent domain, or NULL */
	struct pvr_buf buf;
};

/* State between wr_start and wr_complete or wr_abort; protected by sq.lock. */
struct pvr_batch {
	uint32_t first; /* sq.tail at wr_start */
	int err; /* the first errno */
	unsigned int setters; /* setters that the last request still accepts, see wr_ex.c */
	unsigned int address; /* the setter that each request needs, or 0; constant */
	struct pvr_sq_wqe *hdr; /* WQE of the last request */
};

struct pvr_qp {
	struct verbs_qp verbs_qp;
	uint32_t handle;
	struct pvr_wq sq;
	struct pvr_wq rq; /* unused with an SRQ */
	struct pvr_wq *recv_wq; /* rq, or that of the SRQ */
	struct ibv_qp_cap cap;
	uint32_t send_ops; /* 1 << ibv_wr_opcode of each supported opcode */
	uint32_t plain_ops; /* those of them that write_plain() writes, see post.c */
	bool sq_sig_all;
	struct pvr_batch batch;
	struct pvr_buf buf; /* header page, send queue, receive queue if there is no SRQ */
	size_t send_size; /* bytes of the first two of these */
	struct pvr_qp_side sides[PVR_SIDE_NUM];
};

struct pvr_srq {
	struct verbs_srq verbs_srq;
	uint32_t handle;
	struct pvr_wq wq;
	struct pvr_qp_side side; /* XRC: for the poller of its CQ */
	struct pvr_buf buf; /* header page, queue */
};

static inline struct pvr_context *to_pvr_context(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct pvr_context, ibv_ctx.context);
}

/* In qp_entries. */
static inline uint32_t pvr_qp_index(uint32_t handle, enum pvr_side side)
{
	return PVR_SIDE_NUM * handle + side;
}

/* The same of XRC SRQs. srqn is any number. */
static inline uint32_t pvr_srq_index(const struct pvr_context *ctx, uint32_t srqn)
{
	return pvr_qp_index(ctx->qp_tbl_size, 0) + srqn;
}

/* Returns whether it is an XRC target, which has no queues. */
static inline bool pvr_qp_is_target(const struct pvr_qp *qp)
{
	return qp->verbs_qp.qp.qp_type == IBV_QPT_XRC_RECV;
}

static inline struct pvr_pd *to_pvr_pd(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct pvr_pd, ibv_pd);
}

static inline struct pvr_td *to_pvr_td(struct ibv_td *ibtd)
{
	return container_of(ibtd, struct pvr_td, ibv_td);
}

/* Returns NULL for a plain PD and for NULL. */
static inline struct pvr_parent_domain *to_pvr_parent_domain(struct ibv_pd *ibpd)
{
	if (!ibpd || !to_pvr_pd(ibpd)->base)
		return NULL;
	return container_of(to_pvr_pd(ibpd), struct pvr_parent_domain, pd);
}

/* Returns whether one thread at a time uses the objects of this domain. */
static inline bool pvr_pd_is_threaded(struct ibv_pd *ibpd)
{
	const struct pvr_parent_domain *parent = to_pvr_parent_domain(ibpd);

	return parent && parent->td;
}

static inline struct pvr_ah *to_pvr_ah(struct ibv_ah *ibah)
{
	return container_of(ibah, struct pvr_ah, ibv_ah);
}

static inline struct pvr_dm *to_pvr_dm(struct ibv_dm *ibdm)
{
	return container_of(ibdm, struct pvr_dm, verbs_dm.dm);
}

static inline struct pvr_cq *to_pvr_cq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct pvr_cq, verbs_cq.cq);
}

static inline struct pvr_qp *to_pvr_qp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct pvr_qp, verbs_qp.qp);
}

static inline struct pvr_srq *to_pvr_srq(struct ibv_srq *ibsrq)
{
	return container_of(ibsrq, struct pvr_srq, verbs_srq.srq);
}

/* buf.c */

/* Bytes of a page of this system, at least PVR_PAGE_SIZE. */
size_t pvr_page_size(void);
/*
 * Returns 0 or an errno. On success the pages are present and private, see the source.
 * They come from the allocator of ibpd if it is a parent domain that has one; ibpd may be
 * NULL.
 */
int pvr_buf_alloc(const struct pvr_context *ctx, struct pvr_buf *buf, size_t size,
		  struct ibv_pd *ibpd, uint64_t resource_type);
/* buf may be zeroed. */
void pvr_buf_free(struct pvr_buf *buf);
/*
 * Sets num, stride and max_sge of a queue with elements of a header of hdr_size bytes and
 * max_sge entries. Returns the bytes of all elements.
 */
size_t pvr_wq_layout(struct pvr_wq *wq, uint32_t num, uint32_t max_sge, size_t hdr_size,
		     size_t min_stride);

static inline struct pvr_sge pvr_sge_of(const struct ibv_sge *sge)
{
	return (struct pvr_sge){
		.addr = htole64(sge->addr),
		.length = htole32(sge->length),
		.lkey = htole32(sge->lkey),
	};
}

/* A single entry is the most common case. */
static inline void pvr_copy_sges(struct pvr_sge *to, const struct ibv_sge *sges, size_t num)
{
	size_t i;

	if (likely(num == 1)) {
		*to = pvr_sge_of(sges);
		return;
	}
	for (i = 0; i < num; i++)
		to[i] = pvr_sge_of(&sges[i]);
}

/* Entry points of verbs, see struct verbs_context_ops. */
struct ibv_pd *pvr_alloc_pd(struct ibv_context *ibctx);
int pvr_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_pd *pvr_import_pd(struct ibv_context *ibctx, uint32_t handle);
void pvr_unimport_pd(struct ibv_pd *ibpd);

struct ibv_td *pvr_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr);
int pvr_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *pvr_alloc_parent_domain(struct ibv_context *ibctx,
				       struct ibv_parent_domain_init_attr *attr);
/* parent_domain.c: for pvr_dealloc_pd(); parent is unused. */
void pvr_free_parent_domain(struct pvr_parent_domain *parent);

struct ibv_mr *pvr_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova,
			  int access);
struct ibv_mr *pvr_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access);
int pvr_advise_mr(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sge, uint32_t num_sge);
int pvr_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd, void *addr, size_t length,
		 int access);
int pvr_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *pvr_import_mr(struct ibv_pd *ibpd, uint32_t handle);
void pvr_unimport_mr(struct ibv_mr *ibmr);

struct ibv_mw *pvr_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type);
int pvr_dealloc_mw(struct ibv_mw *mw);
int pvr_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

struct ibv_dm *pvr_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr);
int pvr_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *pvr_import_dm(struct ibv_context *ibctx, uint32_t handle);
void pvr_unimport_dm(struct ibv_dm *ibdm);
struct ibv_mr *pvr_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm, uint64_t offset,
			     size_t length, unsigned int access);

int pvr_query_rt_values(struct ibv_context *ibctx, struct ibv_values_ex *values);

struct ibv_cq *pvr_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector);
struct ibv_cq_ex *pvr_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr);
int pvr_destroy_cq(struct ibv_cq *ibcq);
int pvr_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int pvr_resize_cq(struct ibv_cq *ibcq, int cqe);
int pvr_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
int pvr_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void pvr_cq_event(struct ibv_cq *ibcq);
void pvr_async_event(struct ibv_context *ibctx, struct ibv_async_event *event);

struct ibv_qp *pvr_create_qp(struct ibv_pd *ibpd, struct ibv_qp_init_attr *attr);
struct ibv_qp *pvr_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr);
int pvr_destroy_qp(struct ibv_qp *ibqp);
int pvr_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask);
int pvr_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);

int pvr_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int pvr_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int pvr_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

int pvr_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);
int pvr_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);

struct ibv_srq *pvr_create_srq(struct ibv_pd *ibpd, struct ibv_srq_init_attr *attr);
struct ibv_srq *pvr_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr);
int pvr_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask);
int pvr_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int pvr_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num);
int pvr_destroy_srq(struct ibv_srq *ibsrq);

struct ibv_xrcd *pvr_open_xrcd(struct ibv_context *ibctx, struct ibv_xrcd_init_attr *attr);
int pvr_close_xrcd(struct ibv_xrcd *ibxrcd);
struct ibv_qp *pvr_open_qp(struct ibv_context *ibctx, struct ibv_qp_open_attr *attr);
/* xrc.c: for pvr_create_qp_ex(). */
struct ibv_qp *pvr_create_target(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr);

struct ibv_ah *pvr_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int pvr_destroy_ah(struct ibv_ah *ibah);

/*
 * wr_ex.c: checks the IBV_QP_EX_WITH_* of a new QP, returns 0 or EOPNOTSUPP; sets their
 * functions.
 */
int pvr_check_send_ops(const struct pvr_context *ctx, enum ibv_qp_type type, uint64_t ops);
void pvr_set_send_ops(struct pvr_qp *qp, uint64_t ops);

/*
 * cq.c: drops the CQEs of a QP. Returns the number of received messages among them. The
 * caller holds cq->lock, and the device adds no more of them.
 */
uint32_t pvr_cq_purge_locked(struct pvr_cq *cq, uint32_t qp_handle);
/* The same for the CQEs of an XRC SRQ. */
void pvr_cq_purge_srq_locked(struct pvr_cq *cq, uint32_t srqn);
/* cq.c: locks both CQs of a QP, which may be the same. */
void pvr_cq_lock_pair(struct pvr_cq *a, struct pvr_cq *b);
void pvr_cq_unlock_pair(struct pvr_cq *a, struct pvr_cq *b);

#endif /* PVR_PVRDMA_H */
