// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Opening and importing the device. The uverbs file is a memfd, so that the doorbell page
 * maps.
 */
#define _GNU_SOURCE /* memfd_create */
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kernel.h"

#include "context.c"

#define MAX_QP 512u
#define UNKNOWN_EXT (1u << 30) /* a bit that the provider does not support */

static struct {
	struct pvrdma_alloc_ucontext_resp resp; /* response of the driver */
	int fail; /* errno of get_context and query_context */
	int opened, imported; /* number of calls */
	int contexts; /* existing contexts of libibverbs */
	const struct verbs_context_ops *ops;
} kernel;

static const struct verbs_device_ops *registered;

void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	registered = ops;
}

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id)
{
	char *ctx = calloc(1, alloc_size); /* freed by the provider */
	struct verbs_context *vctx = (void *)(ctx + (uintptr_t)context_offset);

	assert_int_equal(driver_id, RDMA_DRIVER_VMW_PVRDMA);
	vctx->context.device = device;
	vctx->context.cmd_fd = cmd_fd;
	kernel.contexts++;
	return ctx;
}

void verbs_uninit_context(struct verbs_context *vctx)
{
	close(vctx->context.cmd_fd);
	kernel.contexts--;
}

void verbs_set_ops(struct verbs_context *vctx, const struct verbs_context_ops *ops)
{
	kernel.ops = ops;
}

int ibv_cmd_get_context(struct verbs_context *vctx, struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp, size_t resp_size)
{
	const struct pvr_uverbs_get_context *req =
		container_of(cmd, struct pvr_uverbs_get_context, ibv_cmd);

	assert_int_equal(req->drv_payload.magic, PVR_UCTX_MAGIC);
	assert_int_equal(cmd_size, sizeof(*req));
	kernel.opened++;
	memcpy(resp + 1, &kernel.resp, sizeof(kernel.resp));
	return kernel.fail;
}

int ibv_cmd_query_context(struct ibv_context *ibctx, struct ibv_command_buffer *driver)
{
	const struct ib_uverbs_attr *attr = driver->hdr.attrs;

	assert_int_equal(driver->next_attr - attr, 1);
	assert_int_equal(attr->attr_id, PVR_ATTR_QUERY_CONTEXT_RESP);
	assert_int_equal(attr->len, sizeof(kernel.resp));
	kernel.imported++;
	memcpy((void *)(uintptr_t)attr->data, &kernel.resp, sizeof(kernel.resp));
	return kernel.fail;
}

int ibv_cmd_query_device_any(struct ibv_context *ibctx,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size)
{
	memset(resp, 0, *resp_size);
	attr->orig_attr = (struct ibv_device_attr){
		.phys_port_cnt = 1,
		.max_qp_wr = 1000,
		.max_sge = INT_MAX,
		.max_cqe = -1,
		.max_srq_wr = INT_MAX,
		.max_srq_sge = 7,
	};
	return 0;
}

static void context_begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.resp.qp_tab_size = MAX_QP;
	kernel.resp.reserved = PVR_EXT_INLINE | PVR_EXT_UC | UNKNOWN_EXT;
}

static int new_file(void)
{
	int fd = memfd_create("uverbs", MFD_CLOEXEC);

	assert_return_code(fd, errno);
	assert_return_code(ftruncate(fd, PVR_PAGE_SIZE), errno);
	return fd;
}

static struct pvr_context *of_verbs(struct verbs_context *vctx)
{
	return vctx ? container_of(vctx, struct pvr_context, ibv_ctx) : NULL;
}

static struct pvr_context *open_file(int fd)
{
	return of_verbs(registered->alloc_context(&fake.dev.device, fd, NULL));
}

static struct pvr_context *import_file(int fd)
{
	return of_verbs(registered->import_context(&fake.dev.device, fd));
}

static void check_context(struct pvr_context *ctx)
{
	assert_non_null(ctx);
	assert_int_equal(ctx->qp_tbl_size, MAX_QP);
	assert_int_equal(ctx->features, PVR_EXT_INLINE | PVR_EXT_UC);
	assert_int_equal(ctx->num_ports, 1);
	assert_int_equal(ctx->limits.qp_wr, 1000);
	assert_int_equal(ctx->limits.sge, PVR_MAX_SGE);
	assert_int_equal(ctx->limits.cqe, 0);
	assert_int_equal(ctx->limits.srq_wr, PVR_MAX_ELEMENTS);
	assert_int_equal(ctx->limits.srq_sge, 7);
	assert_null(ctx->qp_tbl[MAX_QP - 1]);
	assert_null(ctx->qp_entries[pvr_qp_index(MAX_QP - 1, PVR_SIDE_RECV)].cq);
}

static void close_context(struct pvr_context *ctx)
{
	kernel.ops->free_context(&ctx->ibv_ctx.context);
}

TEST(context, test_opening_negotiates_features)
{
	struct pvr_context *ctx = open_file(new_file());

	check_context(ctx);
	assert_int_equal(kernel.opened, 1);
	assert_int_equal(kernel.imported, 0);
	close_context(ctx);
	assert_int_equal(kernel.contexts, 0);
}

/* The same response and doorbell page, and no second context in the kernel. */
TEST(context, test_importing_has_the_features_of_opening)
{
	int fd = new_file();
	struct pvr_context *one = open_file(fd), *two = import_file(dup(fd));
	uint32_t rung;

	check_context(two);
	assert_int_equal(kernel.opened, 1);
	assert_int_equal(kernel.imported, 1);
	assert_ptr_not_equal(one->qp_tbl, two->qp_tbl);
	*(volatile uint32_t *)two->uar = 77;
	close_context(two);
	assert_int_equal(kernel.contexts, 1);
	assert_int_equal(pread(fd, &rung, sizeof(rung), 0), sizeof(rung));
	assert_int_equal(rung, 77);
	close_context(one);
	assert_int_equal(kernel.contexts, 0);
}

/* A context of the stock provider has no features. */
TEST(context, test_importing_a_stock_context_has_no_features)
{
	struct pvr_context *ctx;

	kernel.resp.reserved = 0;
	ctx = import_file(new_file());
	assert_non_null(ctx);
	assert_int_equal(ctx->features, 0);
	close_context(ctx);
}

TEST(context, test_failures_leave_no_context)
{
	kernel.fail = EOPNOTSUPP;
	assert_fails(import_file(new_file()), EOPNOTSUPP);
	assert_fails(open_file(new_file()), EOPNOTSUPP);
	kernel.fail = 0;
	kernel.resp.qp_tab_size = PVR_QP_HANDLES + 1;
	assert_fails(import_file(new_file()), EPROTO);
	assert_int_equal(kernel.contexts, 0);
}
