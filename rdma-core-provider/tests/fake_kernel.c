// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_kernel.h"
#include "uverbs_abi.h"

struct fake fake;

/* Returns the size of num elements in bytes, rounded up to whole pages. */
static uint32_t fake_pages_of(uint32_t num, uint32_t size)
{
	return (num * size + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE * PVR_PAGE_SIZE;
}

static int answer(void)
{
	int err = fake.fail;

	fake.fail = 0;
	return err;
}

void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
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

int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_create_cq_resp *drv =
		container_of(resp, struct pvr_uverbs_create_cq_resp, ibv_resp);

	cq->context = context;
	cq->cqe = cqe;
	drv->cqn = fake.next_handle++;
	return answer();
}

/* Moves CQEs as RESIZE_CQ of the ABI does: the old ring is not changed. */
static int move_cqes(struct pvr_cq *cq, void *buf, uint32_t num)
{
	struct pvr_ring_state_shm *state_shm = buf;
	struct pvrdma_cqe *cqes_shm = (void *)((uint8_t *)buf + PVR_PAGE_SIZE);
	uint32_t idx, n = 0;

	if (pvr_ring_used(cq->ring_shm->prod_tail, cq->ring_shm->cons_head, cq->num) > num)
		return EINVAL;
	for (idx = cq->ring_shm->cons_head; idx != cq->ring_shm->prod_tail;
	     idx = pvr_ring_next(idx, cq->num))
		cqes_shm[n++] = cq->cqes_shm[idx & (cq->num - 1)];
	state_shm->rx.prod_tail = n;
	return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	struct pvr_uverbs_resize_cq *drv = container_of(cmd, struct pvr_uverbs_resize_cq, ibv_cmd);
	int err = answer();

	assert_int_equal(cmd_size, sizeof(*drv));
	assert_int_equal(drv->buf_size,
			 PVR_PAGE_SIZE + fake_pages_of(cqe, sizeof(struct pvrdma_cqe)));
	fake.resized_locked = pvr_lock_is_held(&to_pvr_cq(cq)->lock) &&
			      pvr_lock_is_held(&to_pvr_cq(cq)->arm_lock);
	if (!err)
		err = move_cqes(to_pvr_cq(cq), (void *)(uintptr_t)drv->buf_addr, cqe);
	if (!err)
		cq->cqe = cqe;
	return err;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return answer();
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
	qp->state = IBV_QPS_RESET;
	drv->qp_handle = fake.next_handle++;
	qp->qp_num = 0x100 + drv->qp_handle;
	return answer();
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct verbs_qp *vqp = container_of(qp, struct verbs_qp, qp);
	uint32_t mask = vqp->comp_mask;

	if (fake.short_qp_ex)
		memcpy(&mask, &vqp->qp_ex.wr_atomic_write, sizeof(mask));
	return mask & VERBS_QP_EX ? &vqp->qp_ex : NULL;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return answer();
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
	return answer();
}

/* Moves requests as PVR_SRQ_MAX_WR of the ABI does. */
static int move_wqes(struct pvr_wq *wq, void *buf, uint32_t num)
{
	struct pvr_ring_state_shm *state_shm = buf;
	uint8_t *wqes_shm = (uint8_t *)buf + PVR_PAGE_SIZE;
	uint32_t idx, n = 0, stride = 1u << wq->stride_shift;

	if (pvr_ring_used(wq->ring_shm->prod_tail, wq->ring_shm->cons_head, wq->num) > num)
		return EINVAL;
	for (idx = wq->ring_shm->cons_head; idx != wq->ring_shm->prod_tail;
	     idx = pvr_ring_next(idx, wq->num))
		memcpy(wqes_shm + n++ * stride, wq->wqes + (idx & (wq->num - 1)) * stride, stride);
	state_shm->rx.prod_tail = n;
	return 0;
}

static int resize_srq(struct pvr_srq *srq, const struct ibv_srq_attr *attr,
		      const struct pvr_uverbs_modify_srq *cmd)
{
	assert_int_equal(cmd->buf_size,
			 PVR_PAGE_SIZE + fake_pages_of(attr->max_wr, 1u << srq->wq.stride_shift));
	fake.resized_locked = pvr_lock_is_held(&srq->wq.lock);
	return move_wqes(&srq->wq, (void *)(uintptr_t)cmd->buf_addr, attr->max_wr);
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
	return resize_srq(to_pvr_srq(srq), attr,
			  container_of(cmd, struct pvr_uverbs_modify_srq, ibv_cmd));
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	return answer();
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return answer();
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
	return answer();
}

/* Only test_import.c has MRs to import. */
__attribute__((weak)) int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr,
					   uint32_t mr_handle)
{
	return EOPNOTSUPP;
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
	return answer();
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
		     struct ibv_alloc_mw *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = fake.next_handle++ << 8;
	return answer();
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	return answer();
}

/* Only test_dm.c has device memory. */
__attribute__((weak)) int ibv_cmd_alloc_dm(struct ibv_context *ctx,
					   const struct ibv_alloc_dm_attr *attr,
					   struct verbs_dm *dm, struct ibv_command_buffer *link)
{
	return EOPNOTSUPP;
}

__attribute__((weak)) int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	return EOPNOTSUPP;
}

__attribute__((weak)) int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
					    size_t length, unsigned int access,
					    struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
	return EOPNOTSUPP;
}

__attribute__((weak)) int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	return EOPNOTSUPP;
}

int fake_setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.ctx.ibv_ctx.context.device = &fake.dev.device;
	fake.ctx.ibv_ctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	fake.ctx.uar = (uint8_t *)fake.uar;
	if (pipe(fake.async))
		return -1;
	fake.ctx.ibv_ctx.context.async_fd = fake.async[0];
	fake.ctx.num_ports = 1;
	fake.ctx.qp_tbl_size = FAKE_QP_TBL_SIZE;
	fake.ctx.qp_tbl = test_calloc(FAKE_QP_TBL_SIZE, sizeof(*fake.ctx.qp_tbl));
	pthread_mutex_init(&fake.ctx.qp_mutex, NULL);
	fake.pd.ibv_pd.context = &fake.ctx.ibv_ctx.context;
	fake.pd.handle = FAKE_PD_HANDLE;
	fake.next_handle = 1;
	fake.send_cq = pvr_create_cq(&fake.ctx.ibv_ctx.context, 8, NULL, 0);
	fake.recv_cq = pvr_create_cq(&fake.ctx.ibv_ctx.context, 5, NULL, 0);
	return fake.send_cq && fake.recv_cq ? 0 : -1;
}

int fake_teardown(void **state)
{
	uint32_t i;

	for (i = 0; i < FAKE_QP_TBL_SIZE; i++)
		if (fake.ctx.qp_tbl[i])
			pvr_destroy_qp(&fake.ctx.qp_tbl[i]->verbs_qp.qp);
	pvr_destroy_cq(fake.send_cq);
	pvr_destroy_cq(fake.recv_cq);
	pthread_mutex_destroy(&fake.ctx.qp_mutex);
	close(fake.async[0]);
	close(fake.async[1]);
	test_free(fake.ctx.qp_tbl);
	return 0;
}

struct ibv_qp *fake_qp(enum ibv_qp_type type, uint32_t send_wr, uint32_t send_sge, uint32_t recv_wr,
		       uint32_t recv_sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = type,
		.cap = { .max_send_wr = send_wr,
			 .max_send_sge = send_sge,
			 .max_recv_wr = recv_wr,
			 .max_recv_sge = recv_sge },
	};
	struct ibv_qp *qp = pvr_create_qp(&fake.pd.ibv_pd, &attr);

	assert_non_null(qp);
	qp->state = IBV_QPS_RTS;
	return qp;
}

void fake_destroy_qp(struct ibv_qp *qp)
{
	assert_int_equal(pvr_destroy_qp(qp), 0);
	fake.next_handle--;
}

void fake_check_err(const char *what, int err, int expected)
{
	if (err != expected)
		fail_msg("%s: %d, expected %d", what, err, expected);
}

uint32_t fake_rung(size_t offset)
{
	uint32_t value = fake.uar[offset / 4];

	fake.uar[offset / 4] = 0;
	return value;
}

void fake_complete(struct ibv_cq *ibcq, const struct pvrdma_cqe *cqe)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	uint32_t tail = cq->ring_shm->prod_tail;

	cq->cqes_shm[tail & (cq->num - 1)] = *cqe;
	cq->ring_shm->prod_tail = pvr_ring_next(tail, cq->num);
}

void fake_consume(struct pvr_wq *wq, uint32_t n)
{
	while (n--)
		wq->ring_shm->cons_head = pvr_ring_next(wq->ring_shm->cons_head, wq->num);
}

struct pvrdma_sq_wqe_hdr *fake_send_wqe(struct ibv_qp *ibqp, uint32_t slot)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);

	return (void *)(qp->sq.wqes + ((size_t)slot << qp->sq.stride_shift));
}
