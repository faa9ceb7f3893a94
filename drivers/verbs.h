/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Operations for ib_core. See struct ib_device_ops for their contracts. */
#ifndef PVR_VERBS_H
#define PVR_VERBS_H

#include <rdma/ib_verbs.h>

#include "compat.h"
#include "objects.h"

struct pvr_dev;

/* ib.c */

int pvr_udata_in(struct ib_udata *udata, void *dst, size_t size);
int pvr_udata_out(struct ib_udata *udata, const void *src, size_t size);

/**
 * pvr_umem_pin() - pin memory of user space
 * @dev: the adapter
 * @addr: user address
 * @size: bytes
 * @access: IB_ACCESS_*
 *
 * Context: process context of the owner, may sleep.
 * Return: the memory, which the caller frees by ib_umem_release(), or an ERR_PTR:
 * -EOPNOTSUPP (logged once) if the device would access bounce buffers instead.
 */
struct ib_umem *pvr_umem_pin(struct pvr_dev *dev, u64 addr, u64 size,
			     int access);

struct ib_device_attr;
struct mmu_interval_notifier_ops;

/* Memory of user space that is not pinned. Return: as pvr_umem_pin(). */
struct ib_umem *pvr_umem_odp(struct pvr_dev *dev, u64 addr, u64 size,
			     int access,
			     const struct mmu_interval_notifier_ops *ops);

/* All addresses of the process. */
struct ib_umem *pvr_umem_odp_implicit(struct pvr_dev *dev, int access);

/* odp.c: regions on demand */

struct ib_mr *pvr_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			  int access, struct ib_udata *udata);
/* At the device, at once. The driver frees @mr once its last page fault has ended. */
void pvr_odp_destroy(struct pvr_mr *mr);
/* Free what pvr_odp_reg() has given @mr, its memory too. */
void pvr_odp_exit(struct pvr_mr *mr);
/* Context: process or interrupt. */
void pvr_odp_event(struct pvr_dev *dev, u32 handle);
void pvr_odp_caps(const struct pvr_dev *dev, struct ib_device_attr *attr);
int pvr_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		  u32 flags, struct ib_sge *sg_list, u32 num_sge,
		  struct uverbs_attr_bundle *attrs);

/* mr.c */

union pvr_cmd_req;
/* Run the CREATE_MR of @req and store the region's handle and keys in @mr. */
int pvr_create_mr(struct pvr_mr *mr, struct ib_pd *ibpd,
		  union pvr_cmd_req *req);
/* Free a region that the device does not have. */
void pvr_mr_free(struct pvr_mr *mr);
/* The rights of regions that the device supports. */
u32 pvr_mr_access(const struct pvr_dev *dev);
/* The address of the first byte in work requests. */
u64 pvr_mr_iova(const struct pvr_mr *mr);

/**
 * pvr_umem_dmabuf_pin() - pin memory of a dma-buf
 * @dev: the adapter
 * @offset: in the dma-buf
 * @size: bytes
 * @fd: descriptor of the dma-buf
 * @access: IB_ACCESS_*
 *
 * Return: as pvr_umem_pin().
 */
struct ib_umem *pvr_umem_dmabuf_pin(struct pvr_dev *dev, u64 offset, u64 size,
				    int fd, int access);

/**
 * pvr_umem_get() - pin a page-aligned buffer of user space
 * @dev: the adapter
 * @addr: user address; must be page-aligned, because the device gets no offset
 * @size: bytes
 * @min_size: bytes that the object needs
 *
 * Context: process context of the owner, may sleep.
 * Return: the memory, which the caller frees by ib_umem_release(), or an ERR_PTR.
 * -EADDRINUSE: the device did not destroy an object that had this memory.
 */
struct ib_umem *pvr_umem_get(struct pvr_dev *dev, u64 addr, u32 size,
			     u64 min_size);

/* Return: whether they have the first page in common that is in both ranges; @new is page-aligned. */
bool pvr_umem_is_same(struct ib_umem *old, struct ib_umem *new);

/* port.c */

int pvr_query_port(struct ib_device *ibdev, u32 port,
		   struct ib_port_attr *attr);
int pvr_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int pvr_port_immutable(struct ib_device *ibdev, u32 port,
		       struct ib_port_immutable *imm);
enum rdma_link_layer pvr_link_layer(struct ib_device *ibdev, u32 port);
void pvr_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			   unsigned long event);

/* gid.c */

int pvr_add_gid(const struct ib_gid_attr *attr, void **context);
int pvr_del_gid(const struct ib_gid_attr *attr, void **context);

/* ucontext.c, pd.c, xrcd.c, mr.c, mw.c, ah.c */

extern const struct uapi_definition pvr_ucontext_uapi[];
extern const struct uapi_definition pvr_pd_uapi[];

int pvr_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
int pvr_query_ucontext(struct ib_ucontext *ibuc,
		       struct uverbs_attr_bundle *attrs);
void pvr_dealloc_ucontext(struct ib_ucontext *ibuc);
void pvr_disassociate_ucontext(struct ib_ucontext *ibuc);
int pvr_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
u32 pvr_udata_ctx(struct ib_udata *udata);
u32 pvr_udata_features(struct ib_udata *udata);

/*
 * clock.c: reads the clock of the device, and the wall clock at the same time.
 * Return: 0, or -EIO if the device is gone.
 */
int pvr_clock_read(struct pvr_dev *dev, struct pvr_clock_query_resp *resp);

int pvr_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int pvr_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int pvr_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int pvr_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

struct ib_mr *pvr_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *pvr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access,
			      PVR_REG_MR_DMAH_PARAM struct ib_udata *udata);
struct ib_mr *pvr_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				     u64 virt, int fd, int access,
				     PVR_REG_DMABUF_ARG attrs);
struct ib_mr *pvr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg);
int pvr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset);
struct ib_mr *pvr_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 virt, int access,
				struct ib_pd *ibpd, struct ib_udata *udata);
int pvr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

int pvr_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int pvr_dealloc_mw(struct ib_mw *ibmw);

/* dm.c */

#define PVR_DM_BYTES (16u << 20) /* bytes per adapter */

extern const struct uapi_definition pvr_dm_uapi[];

struct ib_dm *pvr_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			   struct ib_dm_alloc_attr *attr,
			   struct uverbs_attr_bundle *attrs);
int pvr_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *pvr_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			    struct ib_dm_mr_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int pvr_dm_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void pvr_mmap_free(struct rdma_user_mmap_entry *entry);

/**
 * pvr_mr_of_pages() - create a zero-based region of the driver's own pages
 * @ibpd: the protection domain
 * @dma: bus addresses of the pages
 * @offset: of the first byte in the first page
 * @length: bytes
 * @access: as for reg_user_mr
 *
 * Return: the region, which does not own the pages, or an ERR_PTR.
 */
struct ib_mr *pvr_mr_of_pages(struct ib_pd *ibpd, const dma_addr_t *dma,
			      u64 offset, u64 length, int access);

int pvr_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int pvr_destroy_ah(struct ib_ah *ibah, u32 flags);
void pvr_ah_attr_to_dev(struct pvr_ah_attr *to,
			const struct rdma_ah_attr *from);
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
 * @qp: a QP of which the device adds no more completions
 *
 * Context: may sleep, takes cq->resize_lock and cq->lock.
 */
void pvr_cq_purge(struct pvr_cq *cq, struct pvr_qp *qp);

/**
 * pvr_cq_attach() - enable pvr_poll_cq() to find a QP by its handle
 * @cq: a kernel CQ
 * @qp: a QP that has its handle
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int pvr_cq_attach(struct pvr_cq *cq, struct pvr_qp *qp);

/**
 * pvr_cq_detach() - undo pvr_cq_attach() and purge the QP's completions
 * @cq: the CQ
 * @qp: a QP of which the device adds no more completions
 *
 * On return no poller of this CQ uses the QP.
 * Context: may sleep.
 */
void pvr_cq_detach(struct pvr_cq *cq, struct pvr_qp *qp);

/* cq_resize.c */

int pvr_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int pvr_resize_cq(struct ib_cq *ibcq, PVR_RESIZE_CQE cqe,
		  struct ib_udata *udata);

/* qp.c */

int pvr_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int pvr_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* mcast.c */

int pvr_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int pvr_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* mad.c */

int pvr_process_mad(struct ib_device *ibdev, int flags, u32 port,
		    const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index);

/* restrack.c */

int pvr_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int pvr_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int pvr_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int pvr_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);
int pvr_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int pvr_fill_res_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

/* qp_modify.c */

int pvr_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
/**
 * pvr_qp_end_srq_request() - end the request that a kernel QP took from its SRQ
 * @qp: any QP, about to be destroyed
 *
 * Context: may sleep.
 */
void pvr_qp_end_srq_request(struct pvr_qp *qp);
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

/* srq_wq.c */

int pvr_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

#endif /* PVR_VERBS_H */
