// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device and its contexts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "pool.h"
#include "pvrdma.h"
#include "uverbs_abi.h"

/* Extensions that this provider uses if driver and device have them. */
#define PROVIDER_FEATURES                                                                       \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_RESIZE | PVR_EXT_INLINE | PVR_EXT_UC | PVR_EXT_USER_OPS | \
	 PVR_EXT_MR_LAYOUT | PVR_EXT_MW | PVR_EXT_DB_SUPPRESS | PVR_EXT_CQ_ARM_DBREC |          \
	 PVR_EXT_ATOMIC_WRITE | PVR_EXT_FLUSH | PVR_EXT_CQ_TIMESTAMP | PVR_EXT_XRC |            \
	 PVR_EXT_ON_DEMAND)

static int query_device_ex(struct ibv_context *ibctx, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int err;

	err = ibv_cmd_query_device_any(ibctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	fw_ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%" PRIu64 ".%" PRIu64 ".%" PRIu64, fw_ver >> 32, (fw_ver >> 16) & 0xffff,
		 fw_ver & 0xffff);
	return 0;
}

static int query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

static int take_answer(struct pvr_context *ctx, const struct pvrdma_alloc_ucontext_resp *resp)
{
	ctx->qp_tbl_size = resp->qp_tab_size;
	ctx->features = resp->reserved & PROVIDER_FEATURES;
	if (!ctx->qp_tbl_size || ctx->qp_tbl_size > PVR_QP_HANDLES) {
		verbs_err(&ctx->ibv_ctx, "the driver reports %u QPs, expected 1 to %u\n",
			  ctx->qp_tbl_size, PVR_QP_HANDLES);
		return EPROTO;
	}
	return 0;
}

static int open_uverbs(struct pvr_context *ctx)
{
	struct pvr_uverbs_get_context cmd = {
		.drv_payload = { .magic = PVR_UCTX_MAGIC, .features = PROVIDER_FEATURES },
	};
	struct pvr_uverbs_stock_get_context_resp resp = {};
	int err;

	err = ibv_cmd_get_context(&ctx->ibv_ctx, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				  sizeof(resp));
	if (err)
		return err;
	return take_answer(ctx, &resp.drv_payload);
}

/* The file already has a context, which keeps the features of its creation. */
static int import_uverbs(struct pvr_context *ctx)
{
	DECLARE_COMMAND_BUFFER(driver, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct pvrdma_alloc_ucontext_resp resp = {};
	int err;

	fill_attr_out_ptr(driver, PVR_ATTR_QUERY_CONTEXT_RESP, &resp);
	err = ibv_cmd_query_context(&ctx->ibv_ctx.context, driver);
	return err ? err : take_answer(ctx, &resp);
}

static uint32_t limit(int reported, uint32_t max)
{
	if (reported < 0)
		return 0;
	return (uint32_t)reported < max ? (uint32_t)reported : max;
}

static int query_limits(struct pvr_context *ctx)
{
	struct ibv_device_attr_ex ex = {};
	const struct ibv_device_attr *attr = &ex.orig_attr;
	int err;

	err = query_device_ex(&ctx->ibv_ctx.context, NULL, &ex, sizeof(ex));
	ctx->num_ports = attr->phys_port_cnt;
	ctx->limits = (struct pvr_limits){
		.qp_wr = limit(attr->max_qp_wr, PVR_MAX_ELEMENTS),
		.sge = limit(attr->max_sge, PVR_MAX_SGE),
		.cqe = limit(attr->max_cqe, PVR_MAX_ELEMENTS),
		.srq = limit(attr->max_srq, PVR_MAX_SRQ),
		.srq_wr = limit(attr->max_srq_wr, PVR_MAX_ELEMENTS),
		.srq_sge = limit(attr->max_srq_sge, PVR_MAX_SGE),
	};
	return err;
}

static int map_doorbells(struct pvr_context *ctx)
{
	int fd = ctx->ibv_ctx.context.cmd_fd;

	ctx->uar = mmap(NULL, PVR_PAGE_SIZE, PROT_WRITE, MAP_SHARED, fd, 0);
	if (ctx->uar == MAP_FAILED) {
		verbs_err(&ctx->ibv_ctx, "cannot map the doorbell page: errno %d\n", errno);
		return errno;
	}
	return 0;
}

static int alloc_tables(struct pvr_context *ctx)
{
	ctx->qp_tbl = calloc(ctx->qp_tbl_size, sizeof(*ctx->qp_tbl));
	ctx->num_entries = pvr_qp_index(ctx->qp_tbl_size, 0);
	if (ctx->features & PVR_EXT_XRC)
		ctx->num_entries += ctx->limits.srq;
	ctx->qp_entries = calloc(ctx->num_entries, sizeof(*ctx->qp_entries));
	ctx->pool = pvr_pool_new();
	return ctx->qp_tbl && ctx->qp_entries && ctx->pool ? 0 : ENOMEM;
}

static void free_tables(struct pvr_context *ctx)
{
	free(ctx->qp_tbl);
	free(ctx->qp_entries);
	pvr_pool_free(ctx->pool);
}

static void free_context(struct ibv_context *ibctx)
{
	struct pvr_context *ctx = to_pvr_context(ibctx);

	munmap(ctx->uar, PVR_PAGE_SIZE);
	pthread_mutex_destroy(&ctx->qp_mutex);
	free_tables(ctx);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

/* Absent operations fail with EOPNOTSUPP. */
static const struct verbs_context_ops context_ops = {
	.alloc_dm = pvr_alloc_dm,
	.alloc_mw = pvr_alloc_mw,
	.alloc_parent_domain = pvr_alloc_parent_domain,
	.alloc_pd = pvr_alloc_pd,
	.alloc_td = pvr_alloc_td,
	.async_event = pvr_async_event,
	.attach_mcast = pvr_attach_mcast,
	.advise_mr = pvr_advise_mr,
	.bind_mw = pvr_bind_mw,
	.close_xrcd = pvr_close_xrcd,
	.cq_event = pvr_cq_event,
	.create_ah = pvr_create_ah,
	.create_cq = pvr_create_cq,
	.create_cq_ex = pvr_create_cq_ex,
	.create_qp = pvr_create_qp,
	.create_qp_ex = pvr_create_qp_ex,
	.create_srq = pvr_create_srq,
	.create_srq_ex = pvr_create_srq_ex,
	.dealloc_mw = pvr_dealloc_mw,
	.dealloc_pd = pvr_dealloc_pd,
	.dealloc_td = pvr_dealloc_td,
	.dereg_mr = pvr_dereg_mr,
	.destroy_ah = pvr_destroy_ah,
	.destroy_cq = pvr_destroy_cq,
	.destroy_qp = pvr_destroy_qp,
	.destroy_srq = pvr_destroy_srq,
	.detach_mcast = pvr_detach_mcast,
	.free_context = free_context,
	.free_dm = pvr_free_dm,
	.get_srq_num = pvr_get_srq_num,
	.import_dm = pvr_import_dm,
	.import_mr = pvr_import_mr,
	.import_pd = pvr_import_pd,
	.modify_cq = pvr_modify_cq,
	.modify_qp = pvr_modify_qp,
	.modify_srq = pvr_modify_srq,
	.open_qp = pvr_open_qp,
	.open_xrcd = pvr_open_xrcd,
	.poll_cq = pvr_poll_cq,
	.post_recv = pvr_post_recv,
	.post_send = pvr_post_send,
	.post_srq_recv = pvr_post_srq_recv,
	.query_device_ex = query_device_ex,
	.query_port = query_port,
	.query_qp = pvr_query_qp,
	.query_rt_values = pvr_query_rt_values,
	.query_srq = pvr_query_srq,
	.reg_dm_mr = pvr_reg_dm_mr,
	.reg_dmabuf_mr = pvr_reg_dmabuf_mr,
	.reg_mr = pvr_reg_mr,
	.req_notify_cq = pvr_req_notify_cq,
	.rereg_mr = pvr_rereg_mr,
	.resize_cq = pvr_resize_cq,
	.unimport_dm = pvr_unimport_dm,
	.unimport_mr = pvr_unimport_mr,
	.unimport_pd = pvr_unimport_pd,
};

/* open() creates the context in the kernel or queries that of the file; returns an errno. */
static struct verbs_context *context_new(struct ibv_device *ibdev, int cmd_fd,
					 int (*open)(struct pvr_context *ctx))
{
	struct pvr_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_VMW_PVRDMA);
	if (!ctx)
		return NULL;
	err = open(ctx);
	if (!err)
		err = query_limits(ctx);
	if (err)
		goto err_uninit;
	err = alloc_tables(ctx);
	if (err)
		goto err_free_tables;
	err = map_doorbells(ctx);
	if (err)
		goto err_free_tables;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->ibv_ctx, &context_ops);
	return &ctx->ibv_ctx;

err_free_tables:
	free_tables(ctx);
err_uninit:
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_context *alloc_context(struct ibv_device *ibdev, int cmd_fd, void *private_data)
{
	return context_new(ibdev, cmd_fd, open_uverbs);
}

static struct verbs_context *import_context(struct ibv_device *ibdev, int cmd_fd)
{
	return context_new(ibdev, cmd_fd, import_uverbs);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct pvr_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	return &dev->ibv_dev;
}

static void uninit_device(struct verbs_device *verbs_dev)
{
	free(container_of(verbs_dev, struct pvr_device, ibv_dev));
}

static const struct verbs_match_ent match_table[] = { VERBS_DRIVER_ID(RDMA_DRIVER_VMW_PVRDMA),
						      VERBS_PCI_MATCH(PVR_PCI_VENDOR_ID,
								      PVR_PCI_DEVICE_ID, NULL),
						      {} };

static const struct verbs_device_ops device_ops = {
	.name = "pvrdma",
	.match_min_abi_version = PVRDMA_UVERBS_ABI_VERSION,
	.match_max_abi_version = PVRDMA_UVERBS_ABI_VERSION,
	.match_table = match_table,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
	.import_context = import_context,
};
PROVIDER_DRIVER(pvrdma, device_ops);
