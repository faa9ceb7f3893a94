/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Differences between the kernels that this driver builds on, and nothing else. */
#ifndef PVR_COMPAT_H
#define PVR_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* The iterator over blocks of user memory got a header of its own, in 6.1.y too. */
#ifdef PVR_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

/* In 7.2 a buffer can also come from an attribute; ours are addresses. */
#ifdef PVR_HAVE_UMEM_GET_VA
#define pvr_ib_umem_get ib_umem_get_va
#else
#define pvr_ib_umem_get ib_umem_get
#endif

/*
 * Since 6.11 create_cq receives the attribute bundle that holds the udata.
 * PVR_CREATE_CQ_ARG is the type of the third argument, pvr_cq_udata() its udata.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define PVR_CREATE_CQ_ARG struct uverbs_attr_bundle
static inline struct ib_udata *pvr_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define PVR_CREATE_CQ_ARG struct ib_udata
static inline struct ib_udata *pvr_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* In 7.2 only CQs of user space can be resized, and the operation says so. */
#ifdef PVR_HAVE_RESIZE_USER_CQ
#define PVR_RESIZE_CQ_OP(fn) .resize_user_cq = fn,
#define PVR_RESIZE_CQE unsigned int
#else
#define PVR_RESIZE_CQ_OP(fn) .resize_cq = fn,
#define PVR_RESIZE_CQE int
#endif

/* Block devices over RDMA asked for the CPUs of completion vectors until 7.x. */
#ifdef PVR_HAVE_VECTOR_AFFINITY
#define PVR_VECTOR_AFFINITY_OP(fn) .get_vector_affinity = fn,
#else
#define PVR_VECTOR_AFFINITY_OP(fn)
#endif

/*
 * Later kernels bind QPs to counters of a port, and counters are objects of drivers.
 * They come zeroed, and ib_core calls counter_init without looking for it.
 */
#ifdef PVR_HAVE_COUNTER_INIT
#define PVR_COUNTER_PORT_PARAM , u32 port
struct pvr_rdma_counter {
	struct rdma_counter core;
};
static inline void pvr_counter_init(struct rdma_counter *core)
{
}
#define PVR_COUNTER_OBJ                   \
	.counter_init = pvr_counter_init, \
	INIT_RDMA_OBJ_SIZE(rdma_counter, pvr_rdma_counter, core),
#else
#define PVR_COUNTER_PORT_PARAM
#define PVR_COUNTER_OBJ
#endif

/* Since 6.17 reg_user_mr has an argument for DMA handles, which we refuse. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define PVR_REG_MR_DMAH_PARAM struct ib_dmah *dmah,
#define PVR_REG_MR_DMAH_SET (dmah != NULL)
#else
#define PVR_REG_MR_DMAH_PARAM
#define PVR_REG_MR_DMAH_SET false
#endif

/* Later kernels report events of the NIC themselves, unless the driver wants to. */
#ifdef PVR_HAVE_REPORT_PORT_EVENT
#define PVR_REPORT_PORT_EVENT(fn) .report_port_event = fn,
#else
#define PVR_REPORT_PORT_EVENT(fn)
#endif

#endif /* PVR_COMPAT_H */
