// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/util.h>

#include "cq.h"
#include "fake_kernel.h"
#include "uverbs_abi.h"

struct fake fake;

static int answer(void)
{
	int err = fake.fail;

	if (fake.fails_again)
		fake.fails_again--;
	else
		fake.fail = 0;
	return err;
}

/* The answer to a command that creates an object. */
static int created(struct fake_objects *objects, void *object)
{
	int err = answer();

	assert_true(objects->num < FAKE_MAX_OBJECTS);
	if (!err)
		objects->object[objects->num++] = object;
	return err;
}

/* The same of an object that the provider may create again before it destroys the first. */
static int recreated(struct fake_objects *objects, void *object)
{
	size_t i;

	for (i = 0; i < objects->num; i++)
		if (objects->object[i] == object)
			return answer();
	return created(objects, object);
}

/* The answer to a command that destroys an object. */
static int destroyed(struct fake_objects *objects, const void *object)
{
	int err = answer();
	size_t i;

	for (i = 0; !err && i < objects->num; i++)
		if (objects->object[i] == object)
			objects->object[i] = objects->object[--objects->num];
	return err;
}

void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
}

int ibv_dontfork_range(void *base, size_t size)
{
	if (fake.fail_dontfork)
		return fake.fail_dontfork;
	fake.dontfork_calls++;
	fake.not_inherited += size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	fake.not_inherited -= size;
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	fake.resolved++;
	memcpy(eth_mac, FAKE_RESOLVED_MAC, ETHERNET_LL_SIZE);
	return -answer();
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr, struct ibv_query_port *cmd, size_t cmd_size)
{
	fake.port_queries++;
	return answer();
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_alloc_pd_resp *drv =
		container_of(resp, struct pvr_uverbs_alloc_pd_resp, ibv_resp);

	pd->context = context;
	pd->handle = 0x77;
	drv->pdn = FAKE_PD_HANDLE;
	fake.pds++;
	return answer();
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	fake.pds--;
	return answer();
}

int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags)
{
	struct pvr_uverbs_create_cq_resp *drv =
		container_of(resp, struct pvr_uverbs_create_cq_resp, ibv_resp);

	assert_int_equal(attr->comp_mask, 0);
	fake.cq_attr = *attr;
	cq->cq.context = context;
	cq->cq.cqe = attr->cqe;
	drv->cqn = fake.next_handle++;
	return created(&fake.cqs, &cq->cq);
}

/* Moves elements into another ring, as the device does: the old ring is not changed. */
static int move(const struct pvr_ring_shm *ring_shm, uint32_t num, const void *elements,
		uint32_t stride, void *buf, uint32_t new_num)
{
	struct pvr_ring_state_shm *state_shm = buf;
	uint8_t *to = (uint8_t *)buf + PVR_PAGE_SIZE;
	uint32_t idx, n = 0;

	if (pvr_ring_used(ring_shm->prod_tail, ring_shm->cons_head, num) > new_num)
		return EINVAL;
	for (idx = ring_shm->cons_head; idx != ring_shm->prod_tail; idx = pvr_ring_next(idx, num))
		memcpy(to + n++ * stride, elements + (idx & (num - 1)) * stride, stride);
	state_shm->rx.prod_tail = fake.resized_tail ? *fake.resized_tail : n;
	return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *ibcq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_resize_cq *drv = container_of(cmd, struct pvr_uverbs_resize_cq, ibv_cmd);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	int err = answer();

	assert_int_equal(cmd_size, sizeof(*drv));
	assert_int_equal(drv->buf_size,
			 PVR_PAGE_SIZE + align(cqe * sizeof(struct pvr_cqe), PVR_PAGE_SIZE));
	fake.resized_locked = pvr_lock_is_held(&cq->lock) && pvr_lock_is_held(&cq->arm_lock);
	if (!err)
		err = move(cq->ring_shm, cq->num, cq->cqes_shm, sizeof(struct pvr_cqe),
			   (void *)(uintptr_t)drv->buf_addr, cqe);
	if (!err)
		ibcq->cqe = cqe;
	return err;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr, struct ibv_modify_cq *cmd,
		      size_t cmd_size)
{
	assert_int_equal(cmd_size, sizeof(*cmd));
	fake.modified_cq = *attr;
	return answer();
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return destroyed(&fake.cqs, cq);
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *vqp,
			 struct ibv_qp_init_attr_ex *attr, struct ibv_create_qp *cmd,
			 size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_create_qp_resp *drv =
		container_of(resp, struct pvr_uverbs_create_qp_resp, ibv_resp);
	struct ibv_qp *qp = &vqp->qp;

	fake.asked = attr->cap;
	vqp->comp_mask = 0;
	qp->context = context;
	qp->pd = attr->pd;
	qp->qp_type = attr->qp_type;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->state = IBV_QPS_RESET;
	drv->qp_handle = fake.next_handle++;
	qp->qp_num = 0x100 + drv->qp_handle;
	if (fake.in_create_qp)
		fake.in_create_qp();
	return answer();
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct verbs_qp *vqp = container_of(qp, struct verbs_qp, qp);
	uint32_t mask;

	memcpy(&mask, (char *)vqp + fake.qp_ex_mark, sizeof(mask));
	return mask & VERBS_QP_EX ? &vqp->qp_ex : NULL;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	int err = answer();

	fake.destroyed_qps += !err;
	if (fake.in_destroy_qp)
		fake.in_destroy_qp();
	return err;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	return answer();
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr, struct ibv_query_qp *cmd, size_t cmd_size)
{
	return answer();
}

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_create_srq_resp *drv =
		container_of(resp, struct pvr_uverbs_create_srq_resp, ibv_resp);

	srq->context = pd->context;
	srq->pd = pd; /* as ibv_create_srq() does before it returns */
	drv->srqn = fake.next_handle++;
	return created(&fake.srqs, srq);
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr, struct ibv_create_xsrq *cmd,
			  size_t cmd_size, struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_create_xsrq_resp *drv =
		container_of(resp, struct pvr_uverbs_create_xsrq_resp, ibv_resp);

	srq->srq.context = context;
	srq->cq = attr->cq;
	drv->srqn = fake.xrc_srqn;
	fake.xrc_srqn += !fake.repeats_srqn;
	srq->srq.handle = ++fake.xrc_srqs;
	return recreated(&fake.srqs, &srq->srq);
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd, int vxrcd_size,
		      struct ibv_xrcd_init_attr *attr, struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	int err = answer();

	xrcd->xrcd.context = context;
	fake.xrcds += !err;
	return err;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	int err = answer();

	fake.xrcds -= !err;
	return err;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp, int vqp_sz,
		    struct ibv_qp_open_attr *attr, struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.qp_type = attr->qp_type;
	return answer();
}

static int resize_srq(const struct ibv_srq_attr *attr, const struct pvr_uverbs_modify_srq *cmd,
		      struct pvr_wq *wq)
{
	assert_int_equal(cmd->buf_size,
			 PVR_PAGE_SIZE + align(attr->max_wr * wq->stride, PVR_PAGE_SIZE));
	fake.resized_locked = pvr_lock_is_held(&wq->lock);
	return move(wq->ring_shm, wq->num, wq->wqes, wq->stride, (void *)(uintptr_t)cmd->buf_addr,
		    attr->max_wr);
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	int err = answer();

	fake.srq_mask = mask;
	fake.srq_attr = *attr;
	if (err)
		return err;
	/* Without a buffer, as for a stock driver */
	if (cmd_size == sizeof(*cmd))
		return mask & IBV_SRQ_MAX_WR ? EOPNOTSUPP : 0;
	assert_int_equal(cmd_size, sizeof(struct pvr_uverbs_modify_srq));
	return resize_srq(attr, container_of(cmd, struct pvr_uverbs_modify_srq, ibv_cmd),
			  &to_pvr_srq(srq)->wq);
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	return answer();
}

/* An XRC SRQ may be a copy of the object that the provider created. Returns that, or its copy. */
static const struct ibv_srq *original_of(const struct ibv_srq *srq)
{
	const struct ibv_srq *object;
	size_t i;

	for (i = 0; srq->handle && i < fake.srqs.num; i++) {
		object = fake.srqs.object[i];
		if (object->handle == srq->handle)
			return object;
	}
	return srq;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	fake.destroyed_srqs++;
	if (fake.in_destroy_srq)
		fake.in_destroy_srq();
	return destroyed(&fake.srqs, original_of(srq));
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.lkey = vmr->ibv_mr.rkey = fake.next_handle++ << 8;
	vmr->access = access;
	fake.iova = hca_va;
	return created(&fake.mrs, vmr);
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  int access, struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->access = access;
	fake.iova = iova;
	fake.length = length;
	return created(&fake.mrs, vmr);
}

int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge)
{
	(void)pd;
	(void)advice;
	(void)flags;
	fake.iova = sg_list->addr;
	fake.length = num_sge;
	return fake.fail;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t mr_handle)
{
	if (mr_handle != FAKE_KERNEL_MR)
		return ENOENT;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.handle = mr_handle;
	vmr->ibv_mr.lkey = vmr->ibv_mr.rkey = FAKE_MR_KEY;
	vmr->mr_type = IBV_MR_TYPE_IMPORTED_MR;
	return 0;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length,
		     uint64_t hca_va, int access, struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp, size_t resp_size)
{
	fake.iova = hca_va;
	fake.rereg_flags = flags;
	return answer();
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return answer();
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return answer();
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return destroyed(&fake.mrs, vmr);
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
		     struct ibv_alloc_mw *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = fake.next_handle++ << 8;
	return created(&fake.mws, mw);
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	return destroyed(&fake.mws, mw);
}

int ibv_cmd_alloc_dm(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
		     struct verbs_dm *dm, struct ibv_command_buffer *link)
{
	int err = answer();

	dm->handle = FAKE_DM;
	fake.dms += !err;
	return err;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	assert_int_equal(dm->handle, FAKE_DM);
	fake.dms--;
	return answer();
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset, size_t length,
		      unsigned int access, struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
	fake.iova = offset;
	fake.length = length;
	fake.access = access;
	return answer();
}

static void query_pd(const struct ib_uverbs_attr *attrs)
{
	struct pvrdma_alloc_pd_resp *resp = (void *)(uintptr_t)attrs[1].data;

	assert_int_equal(attrs[0].attr_id, PVR_ATTR_PD_QUERY_HANDLE);
	assert_int_equal(attrs[1].attr_id, PVR_ATTR_PD_QUERY_RESP);
	assert_int_equal(attrs[1].len, sizeof(*resp));
	resp->pdn = FAKE_PDN;
}

static void query_dm(const struct ib_uverbs_attr *attrs)
{
	struct pvr_dm_query_resp *resp = (void *)(uintptr_t)attrs[1].data;

	resp->length = FAKE_DM_LENGTH;
	resp->mmap_offset = FAKE_DM_OFFSET;
}

static int query_clock(const struct ib_uverbs_attr *attrs)
{
	assert_int_equal(attrs[0].attr_id, PVR_ATTR_CLOCK_QUERY_RESP);
	assert_int_equal(attrs[0].len, sizeof(fake.clocks));
	fake.clock_queries++;
	if (fake.fail_query)
		return fake.fail_query;
	memcpy((void *)(uintptr_t)attrs[0].data, &fake.clocks, sizeof(fake.clocks));
	return 0;
}

/* Queries, which find one PD and one DM. */
static int query_object(const struct ibv_command_buffer *cmd, uint32_t handle, uint16_t method,
			void (*query)(const struct ib_uverbs_attr *attrs))
{
	const struct ib_uverbs_attr *attrs = cmd->hdr.attrs;

	assert_int_equal(cmd->hdr.method_id, method);
	if (fake.fail_query || attrs[0].data != handle)
		return fake.fail_query ? fake.fail_query : ENOENT;
	query(attrs);
	return 0;
}

int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	switch (cmd->hdr.object_id) {
	case UVERBS_OBJECT_PD:
		return query_object(cmd, FAKE_KERNEL_PD, PVR_METHOD_PD_QUERY, query_pd);
	case UVERBS_OBJECT_DM:
		return query_object(cmd, FAKE_DM, PVR_METHOD_DM_QUERY, query_dm);
	default:
		assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_DEVICE);
		assert_int_equal(cmd->hdr.method_id, PVR_METHOD_CLOCK_QUERY);
		return query_clock(cmd->hdr.attrs);
	}
}

int fake_setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.ibctx = &fake.ctx.ibv_ctx.context;
	fake.ibctx->device = &fake.dev.device;
	fake.ibctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	fake.ibctx->cmd_fd = -1;
	fake.ctx.uar = (uint8_t *)fake.uar;
	if (pipe(fake.async))
		return -1;
	fake.ibctx->async_fd = fake.async[0];
	fake.ctx.num_ports = 1;
	fake.qp_ex_mark = offsetof(struct verbs_qp, comp_mask);
	fake.ctx.limits = (struct pvr_limits){
		.qp_wr = FAKE_MAX_WR,
		.sge = FAKE_MAX_SGE,
		.cqe = FAKE_MAX_CQE,
		.srq = FAKE_MAX_SRQ,
		.srq_wr = FAKE_MAX_WR,
		.srq_sge = FAKE_MAX_SGE,
	};
	fake.ctx.qp_tbl_size = FAKE_QP_TBL_SIZE;
	fake.ctx.qp_tbl = test_calloc(FAKE_QP_TBL_SIZE, sizeof(*fake.ctx.qp_tbl));
	fake.ctx.num_entries = FAKE_QP_TBL_SIZE * PVR_SIDE_NUM + FAKE_MAX_SRQ;
	fake.ctx.qp_entries = test_calloc(fake.ctx.num_entries, sizeof(*fake.ctx.qp_entries));
	pthread_mutex_init(&fake.ctx.qp_mutex, NULL);
	fake.ibpd = &fake.pd.ibv_pd;
	fake.ibpd->context = fake.ibctx;
	fake.pd.handle = FAKE_PD_HANDLE;
	fake.next_handle = 1;
	fake.send_cq = fake_cq(8);
	fake.recv_cq = fake_cq(5);
	return 0;
}

int fake_teardown(void **state)
{
	uint32_t i;

	fake.fail = 0;
	if (fake.end)
		fake.end();
	for (i = 0; i < FAKE_QP_TBL_SIZE; i++)
		if (fake.ctx.qp_tbl[i])
			pvr_destroy_qp(&fake.ctx.qp_tbl[i]->verbs_qp.qp);
	while (fake.srqs.num)
		pvr_destroy_srq(fake.srqs.object[0]);
	while (fake.cqs.num)
		pvr_destroy_cq(fake.cqs.object[0]);
	while (fake.mws.num)
		pvr_dealloc_mw(fake.mws.object[0]);
	while (fake.mrs.num)
		pvr_dereg_mr(fake.mrs.object[0]);
	pthread_mutex_destroy(&fake.ctx.qp_mutex);
	close(fake.async[0]);
	close(fake.async[1]);
	if (fake.ibctx->cmd_fd >= 0)
		close(fake.ibctx->cmd_fd);
	test_free(fake.ctx.qp_tbl);
	test_free(fake.ctx.qp_entries);
	return 0;
}

/* ------------------------------------------------------------------ objects */

struct ibv_qp *fake_create_qp(struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;

	attr->send_cq = attr->send_cq ?: fake.send_cq;
	attr->recv_cq = attr->recv_cq ?: fake.recv_cq;
	qp = pvr_create_qp(fake.ibpd, attr);
	if (qp)
		qp->state = IBV_QPS_RTS;
	return qp;
}

struct ibv_qp *fake_create_qp_ex(struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	attr->send_cq = attr->send_cq ?: fake.send_cq;
	attr->recv_cq = attr->recv_cq ?: fake.recv_cq;
	attr->pd = fake.ibpd;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	qp = pvr_create_qp_ex(fake.ibctx, attr);
	if (qp)
		qp->state = IBV_QPS_RTS;
	return qp;
}

struct ibv_qp *fake_qp(enum ibv_qp_type type, uint32_t send_wr, uint32_t send_sge, uint32_t recv_wr,
		       uint32_t recv_sge)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.cap = { .max_send_wr = send_wr,
			 .max_send_sge = send_sge,
			 .max_recv_wr = recv_wr,
			 .max_recv_sge = recv_sge },
	};
	struct ibv_qp *qp = fake_create_qp(&attr);

	assert_non_null(qp);
	return qp;
}

int fake_reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return pvr_modify_qp(qp, &attr, IBV_QP_STATE);
}

struct ibv_srq *fake_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *srq = pvr_create_srq(fake.ibpd, &attr);

	assert_non_null(srq);
	return srq;
}

struct ibv_cq *fake_cq(int cqe)
{
	struct ibv_cq *cq = pvr_create_cq(fake.ibctx, cqe, NULL, 0);

	assert_non_null(cq);
	return cq;
}

struct ibv_cq_ex *fake_single_threaded_cq(void)
{
	struct ibv_cq_ex *cq = FAKE_CQ_EX(.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED);

	assert_non_null(cq);
	return cq;
}

struct fake_db_suppress *fake_db_suppress(const struct pvr_buf *buf)
{
	static_assert(sizeof(struct fake_db_suppress) == sizeof(struct pvr_db_suppress),
		      "the words of the ABI");
	return (void *)((uint8_t *)buf->addr + PVR_DB_SUPPRESS_OFFSET);
}

/* ------------------------------------------------------------------ posting */

struct ibv_sge fake_sges[3] = {
	{ .addr = 0x1000, .length = 10, .lkey = 1 },
	{ .addr = 0x2000, .length = 20, .lkey = 2 },
	{ .addr = 0x3000, .length = 30, .lkey = 3 },
};

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = pvr_post_send(qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad = NULL;
	int err = pvr_post_recv(qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad = NULL;
	int err = pvr_post_srq_recv(srq, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

uint32_t fake_rung(size_t offset)
{
	uint32_t value = fake.uar[offset / 4];

	fake.uar[offset / 4] = 0;
	return value;
}

/* --------------------------------------------------------------- the device */

void fake_write_cqe(struct ibv_cq *ibcq, const struct pvr_cqe *cqe)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	uint32_t tail = cq->ring_shm->prod_tail;

	cq->cqes_shm[tail & (cq->num - 1)] = *cqe;
	cq->ring_shm->prod_tail = pvr_ring_next(tail, cq->num);
}

/* Returns the wr_id that the device gets for the request. */
static uint64_t post(struct pvr_wq *wq, uint64_t wr_id)
{
	uint32_t number = wq->tail++;

	wq->limit = wq->tail;
	wq->ring_shm->prod_tail = wq->tail & (2 * wq->num - 1);
	wq->ring_shm->cons_head = wq->ring_shm->prod_tail;
	if (!wq->wr_ids)
		return wr_id;
	wq->wr_ids[number & (wq->num - 1)] = wr_id;
	return number;
}

void fake_complete(struct ibv_cq *ibcq, const struct pvr_cqe *cqe)
{
	uint32_t handle = pvr_cqe_qp_handle(cqe);
	struct pvr_qp *qp = handle < FAKE_QP_TBL_SIZE ? fake.ctx.qp_tbl[handle] : NULL;
	struct pvr_cqe done = *cqe;

	if (qp)
		done.wr_id = post(pvr_cqe_side(cqe) == PVR_SIDE_RECV ? qp->recv_wq : &qp->sq,
				  cqe->wr_id);
	fake_write_cqe(ibcq, &done);
}

void fake_start_at(struct ibv_cq *ibcq, uint32_t idx)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);

	cq->head = cq->tail = idx;
	cq->ring_shm->prod_tail = idx;
	cq->ring_shm->cons_head = idx;
}

void fake_take(struct pvr_wq *wq, uint32_t n)
{
	while (n--)
		wq->ring_shm->cons_head = pvr_ring_next(wq->ring_shm->cons_head, wq->num);
}

/* For the next poll of their completions. */
static void update_sides(const struct pvr_wq *wq)
{
	struct pvr_qp_side *side;
	int i;

	for (i = 0; i < PVR_SIDE_NUM * FAKE_QP_TBL_SIZE; i++) {
		side = fake.ctx.qp_entries[i].cq ? fake.ctx.qp_entries[i].side : NULL;
		if (side && side->wq == wq && !wq->is_shared) {
			side->last = wq->tail - 1;
			side->left = wq->tail - wq->polled;
		}
	}
}

void fake_consume(struct pvr_wq *wq, uint32_t n)
{
	fake_take(wq, n);
	wq->polled += n;
	update_sides(wq);
}

struct pvr_sq_wqe *fake_send_wqe(struct ibv_qp *ibqp, uint32_t slot)
{
	struct pvr_wq *sq = fake_sq(ibqp);

	return (void *)(sq->wqes + slot * sq->stride);
}

void fake_expect_wqe(struct ibv_qp *qp, uint32_t slot, const struct ibv_sge *sges,
		     const struct pvr_sq_wqe *expected)
{
	const struct pvr_sq_wqe *hdr = fake_send_wqe(qp, slot);
	struct pvr_sq_wqe numbered = *expected;

	assert_int_equal(fake_send_wr_id(qp, slot), expected->wr_id);
	assert_int_equal(hdr->wr_id & (fake_sq(qp)->num - 1), slot);
	numbered.wr_id = hdr->wr_id;
	assert_memory_equal(hdr, &numbered, sizeof(*hdr));
	if (sges)
		assert_memory_equal(hdr + 1, sges, hdr->num_sge * sizeof(*sges));
}

void fake_expect_bind(struct ibv_qp *qp, uint32_t slot, uint64_t wr_id, uint32_t flags,
		      const struct pvr_wqe_bind_mw *bind)
{
	struct pvr_sq_wqe expected = { .wr_id = wr_id,
				       .opcode = PVRDMA_WR_BIND_MW,
				       .send_flags = flags };

	memcpy(&expected.wr, bind, sizeof(*bind));
	fake_expect_wqe(qp, slot, NULL, &expected);
}

/* ------------------------------------------------------------------ threads */

static struct {
	void (*run)(uintptr_t number);
	pthread_t id[FAKE_THREADS];
	pthread_barrier_t start;
	_Atomic unsigned int running;
} threads;

static void *thread_main(void *arg)
{
	pthread_barrier_wait(&threads.start);
	threads.run((uintptr_t)arg);
	threads.running--;
	return NULL;
}

void fake_threads_start(void (*run)(uintptr_t number))
{
	uintptr_t i;

	threads.run = run;
	threads.running = FAKE_THREADS;
	pthread_barrier_init(&threads.start, NULL, FAKE_THREADS);
	for (i = 0; i < FAKE_THREADS; i++)
		assert_int_equal(pthread_create(&threads.id[i], NULL, thread_main, (void *)i), 0);
}

bool fake_threads_running(void)
{
	return threads.running;
}

void fake_threads_join(void)
{
	int i;

	for (i = 0; i < FAKE_THREADS; i++)
		pthread_join(threads.id[i], NULL);
	pthread_barrier_destroy(&threads.start);
}

#define RACE_SECONDS 5 /* an idle machine needs less than one */
#define RACE_SPINS 1000

static struct {
	void (*round)(void);
	pthread_t thread;
	_Atomic uint32_t begun, ended; /* rounds */
	_Atomic bool over;
	time_t end;
} race;

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Yields after a while: the awaited thread may need this CPU. */
static void await_round(const _Atomic uint32_t *count, uint32_t round)
{
	uint32_t spins;

	for (spins = 1; atomic_load(count) != round; spins++)
		if (spins % RACE_SPINS == 0)
			sched_yield();
}

static void *race_main(void *arg)
{
	uint32_t round;

	for (round = 1;; round++) {
		await_round(&race.begun, round);
		if (race.over)
			return NULL;
		race.round();
		atomic_store(&race.ended, round);
	}
}

void fake_race_start(void (*round)(void))
{
	memset(&race, 0, sizeof(race));
	race.round = round;
	race.end = now() + RACE_SECONDS;
	assert_int_equal(pthread_create(&race.thread, NULL, race_main, NULL), 0);
}

bool fake_race_next(void)
{
	if (race.begun < FAKE_RACE_ROUNDS && now() < race.end)
		return true;
	race.over = true;
	fake_race_begin();
	pthread_join(race.thread, NULL);
	return false;
}

void fake_race_begin(void)
{
	race.begun++;
}

void fake_race_wait(void)
{
	await_round(&race.ended, race.begun);
}
