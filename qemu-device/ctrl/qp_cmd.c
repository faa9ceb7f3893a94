// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands of queue pairs. */
#include <errno.h>
#include <string.h>

#include "core/charge.h"
#include "ctrl/uar_poll.h"
#include "core/wq.h"
#include "rdma/completer.h"
#include "rdma/db_suppress.h"
#include "rdma/requester.h"
#include "rdma/sched.h"
#include "core/objects.h"
#include "rdma/peer_gone.h"
#include "core/ext_dma.h"
#include "ctrl/ctrl.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/responder_state.h"
#include "rdma/path.h"
#include "rdma/xrc.h"
#include "gid/mcast_group.h"

#define GSI_NUMBER 1
/* -------------------------------------------------------------- creation */

static bool is_pow2(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* A target has no queues; its header page has the words of doorbell suppression. */
static int target_check_sizes(const struct pvr_cmd_create_qp *cmd)
{
	if (cmd->max_send_wr || cmd->max_recv_wr || cmd->max_send_sge || cmd->max_recv_sge ||
	    cmd->max_inline_data || cmd->is_srq || cmd->send_chunks || cmd->total_chunks != 1)
		return -EINVAL;
	return 0;
}

/* Check that the rings of these sizes fit in the given pages. */
static int qp_check_sizes(const struct pvr_cmd_create_qp *cmd)
{
	bool rq = !cmd->is_srq && cmd->max_recv_wr;
	uint32_t recv_chunks;

	if (!is_pow2(cmd->max_send_wr) || cmd->max_send_wr > PVR_MAX_QP_WR ||
	    cmd->max_send_sge > PVR_MAX_SGE || cmd->max_recv_sge > PVR_MAX_SGE)
		return -EINVAL;
	if (rq && (!is_pow2(cmd->max_recv_wr) || cmd->max_recv_wr > PVR_MAX_QP_WR))
		return -EINVAL;
	if (cmd->send_chunks + 1u > cmd->total_chunks)
		return -EINVAL;
	if (cmd->send_chunks <
	    pvr_wq_pages(cmd->max_send_wr, pvr_sq_stride(cmd->max_send_sge, cmd->max_inline_data)))
		return -EINVAL;
	recv_chunks = cmd->total_chunks - cmd->send_chunks - 1u;
	if (rq && recv_chunks < pvr_wq_pages(cmd->max_recv_wr, pvr_rq_stride(cmd->max_recv_sge)))
		return -EINVAL;
	return 0;
}

static bool type_ok(const struct pvr_adapter *adapter, uint8_t type)
{
	if (type == PVR_QPT_UC)
		return adapter->features & PVR_EXT_UC;
	if (type == PVR_QPT_XRC_INI || type == PVR_QPT_XRC_TGT)
		return adapter->features & PVR_EXT_XRC;
	return type == PVR_QPT_RC || type == PVR_QPT_UD || type == PVR_QPT_GSI;
}

int pvr_qp_check_create(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd)
{
	if (!type_ok(adapter, cmd->qp_type))
		return -EOPNOTSUPP;
	if (cmd->qp_type == PVR_QPT_GSI && adapter->gsi)
		return -EBUSY;
	if (cmd->is_srq > 1 || (cmd->is_srq && cmd->max_recv_wr))
		return -EINVAL;
	if (cmd->max_inline_data > (adapter->features & PVR_EXT_INLINE ? PVR_MAX_INLINE : 0))
		return -EINVAL;
	/* Stock drivers do not initialize cmd->flags. */
	if (adapter->features & PVR_EXT_USER_OPS && cmd->flags & ~PVR_QP_USER_OPS)
		return -EINVAL;
	if (cmd->qp_type == PVR_QPT_XRC_TGT)
		return target_check_sizes(cmd);
	if (cmd->qp_type == PVR_QPT_XRC_INI && (cmd->is_srq || cmd->max_recv_wr))
		return -EINVAL;
	return qp_check_sizes(cmd);
}

/* A target may use any SRQ of its domain. */
static size_t held_size(const struct pvr_qp *qp)
{
	uint32_t max_sge = qp->xrc_role == PVR_XRC_TGT ? PVR_MAX_SGE : qp->srq->wq.max_sge;

	return sizeof(struct pvr_srq_held) + max_sge * sizeof(struct pvrdma_sge);
}

static int target_resolve(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
			  struct pvr_qp *qp)
{
	struct pvr_xrcd *xrcd = pvr_xrcd_get(adapter, cmd->xrcd_handle);

	if (!xrcd)
		return -EINVAL;
	qp->xrc_target = pvr_charge_alloc(adapter, sizeof(*qp->xrc_target));
	if (!qp->xrc_target)
		return -ENOMEM;
	qp->xrc_target->qp = qp;
	qp->xrc_target->xrcd = xrcd;
	qp->pd = &xrcd->pd;
	qp->held = pvr_charge_alloc(adapter, held_size(qp));
	return qp->held ? 0 : -ENOMEM;
}

/* Find the objects that the command names; all must have the same context. */
int pvr_qp_resolve(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
		   struct pvr_qp *qp)
{
	if (qp->xrc_role == PVR_XRC_TGT)
		return target_resolve(adapter, cmd, qp);
	qp->pd = pvr_pd_get(adapter, cmd->pd_handle);
	qp->send_cq = pvr_cq_get(adapter, cmd->send_cq_handle);
	qp->recv_cq = pvr_cq_get(adapter, cmd->recv_cq_handle);
	if (!qp->pd || !qp->send_cq || !qp->recv_cq || qp->send_cq->uc != qp->pd->uc ||
	    qp->recv_cq->uc != qp->pd->uc)
		return -EINVAL;
	if (qp->type == PVR_QPT_GSI && qp->pd->uc != &adapter->kernel_uc)
		return -EPERM;
	if (!cmd->is_srq)
		return 0;
	qp->srq = pvr_srq_get(adapter, cmd->srq_handle);
	/*
	 * IBTA 10.2.9.1: SRQ and QP may have different PDs, but not different contexts.
	 */
	if (!qp->srq || qp->srq->pd->uc != qp->pd->uc)
		return -EINVAL;
	qp->held = pvr_charge_alloc(adapter, held_size(qp));
	return qp->held ? 0 : -ENOMEM;
}

void pvr_qp_use_rings(struct pvr_qp *qp, const struct pvr_cmd_create_qp *cmd)
{
	struct pvr_ring_state *state_shm;

	state_shm = (struct pvr_ring_state *)pvr_pages_ptr(&qp->pages, 0);
	pvr_wq_init(&qp->sq, &qp->pages, &state_shm->tx, 1, cmd->max_send_wr,
		    pvr_sq_stride(cmd->max_send_sge, cmd->max_inline_data), cmd->max_send_sge);
	qp->sq.max_inline = cmd->max_inline_data;
	pvr_wq_init(&qp->rq, &qp->pages, &state_shm->rx, 1 + cmd->send_chunks,
		    cmd->is_srq ? 0 : cmd->max_recv_wr, pvr_rq_stride(cmd->max_recv_sge),
		    cmd->max_recv_sge);
}

static int qp_attach(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
		     struct pvr_qp *qp)
{
	int err;

	err = pvr_pages_map(adapter, cmd->pdir_dma, cmd->total_chunks, true, &qp->pages);
	if (err)
		return err;
	pvr_db_init_qp(qp);
	pvr_qp_use_rings(qp, cmd);
	return 0;
}

/*
 * Allocate the handle, and the number that peers use. For a driver that supports handles,
 * each reuse of a handle changes the number: so late requests of old peers match no queue
 * pair.
 */
static int qp_number(struct pvr_adapter *adapter, struct pvr_qp *qp)
{
	int err;

	if (qp->type == PVR_QPT_GSI) {
		qp->handle = GSI_NUMBER;
		qp->qpn = GSI_NUMBER;
		err = pvr_table_add_at(&adapter->qps, qp, GSI_NUMBER);
		if (!err)
			adapter->gsi = qp;
		qp->cqe_qp = GSI_NUMBER;
		return err;
	}
	err = pvr_table_add(&adapter->qps, qp, &qp->handle);
	if (err)
		return err;
	qp->qpn = qp->handle;
	qp->cqe_qp = qp->handle;
	if (adapter->version >= PVR_VERSION_QPHANDLE)
		qp->qpn |= (uint32_t)adapter->qpn_generation++ << 16;
	return 0;
}

/* Count the uses of objects, so that they cannot be destroyed before the queue pair. */
void pvr_qp_link(struct pvr_qp *qp)
{
	pvr_uc_own(qp->pd->uc, PVR_OWNED_QP, &qp->owned);
	if (qp->xrc_target) {
		qp->xrc_target->xrcd->users++;
		return;
	}
	qp->pd->users++;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	if (qp->srq)
		qp->srq->users++;
}

static void qp_unlink(struct pvr_qp *qp)
{
	pvr_qp_drop_requester(qp);
	pvr_uc_disown(qp->pd->uc, PVR_OWNED_QP, &qp->owned);
	if (qp->xrc_target) {
		pvr_xrc_drop_srq(qp);
		qp->xrc_target->xrcd->users--;
		return;
	}
	if (qp->srq)
		qp->srq->users--;
	qp->recv_cq->users--;
	qp->send_cq->users--;
	qp->pd->users--;
}

static void qp_answer(const struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
		      const struct pvr_qp *qp, union pvr_cmd_resp *resp)
{
	if (adapter->version < PVR_VERSION_QPHANDLE) {
		struct pvr_resp_create_qp_v1 *v1 = &resp->create_qp_v1;

		v1->qpn = qp->qpn;
		v1->max_send_wr = cmd->max_send_wr;
		v1->max_recv_wr = cmd->max_recv_wr;
		v1->max_send_sge = cmd->max_send_sge;
		v1->max_recv_sge = cmd->max_recv_sge;
		v1->max_inline_data = cmd->max_inline_data;
		return;
	}
	resp->create_qp.qpn = qp->qpn;
	resp->create_qp.qp_handle = qp->handle;
	resp->create_qp.max_send_wr = cmd->max_send_wr;
	resp->create_qp.max_recv_wr = cmd->max_recv_wr;
	resp->create_qp.max_send_sge = cmd->max_send_sge;
	resp->create_qp.max_recv_sge = cmd->max_recv_sge;
	resp->create_qp.max_inline_data = cmd->max_inline_data;
}

void pvr_qp_free(struct pvr_qp *qp)
{
	pvr_path_close(qp);
	pvr_responder_state_free(qp);
	if (qp->held)
		pvr_charge_free(qp->adapter, qp->held, held_size(qp));
	if (qp->xrc_target)
		pvr_charge_free(qp->adapter, qp->xrc_target, sizeof(*qp->xrc_target));
	pvr_charge_free(qp->adapter, qp, sizeof(*qp));
}

static int qp_build(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
		    struct pvr_qp *qp)
{
	int err;

	err = pvr_qp_resolve(adapter, cmd, qp);
	if (err)
		return err;
	err = qp_attach(adapter, cmd, qp);
	if (err)
		return err;
	err = pvr_timer_init(&adapter->timers, &qp->timer, pvr_requester_timeout);
	if (err)
		goto err_unmap;
	err = qp_number(adapter, qp);
	if (err)
		goto err_timer;
	pvr_qp_link(qp);
	return 0;

err_timer:
	pvr_timer_exit(&adapter->timers, &qp->timer);
err_unmap:
	pvr_pages_unmap(adapter, &qp->pages);
	return err;
}

void pvr_qp_set_type(struct pvr_qp *qp, const struct pvr_cmd_create_qp *cmd)
{
	qp->sq_sig_all = cmd->sq_sig_all;
	qp->user_ops = qp->adapter->features & PVR_EXT_USER_OPS && cmd->flags & PVR_QP_USER_OPS;
	qp->type = cmd->qp_type;
	if (qp->type == PVR_QPT_XRC_INI)
		qp->xrc_role = PVR_XRC_INI;
	else if (qp->type == PVR_QPT_XRC_TGT)
		qp->xrc_role = PVR_XRC_TGT;
	/* All rules of RC that XRC does not change apply. */
	if (qp->xrc_role)
		qp->type = PVR_QPT_RC;
}

int pvr_cmd_create_qp(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_qp *cmd = &req->create_qp;
	struct pvr_qp *qp;
	int err;

	err = pvr_qp_check_create(adapter, cmd);
	if (err)
		return err;
	qp = pvr_charge_alloc(adapter, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->adapter = adapter;
	LIST_INIT(&qp->groups);
	pvr_qp_set_type(qp, cmd);
	err = qp_build(adapter, cmd, qp);
	if (err) {
		pvr_qp_free(qp);
		return err;
	}
	qp_answer(adapter, cmd, qp, resp);
	pvr_debug(adapter, "qp %u: created, number %#x, type %u", qp->handle, qp->qpn, qp->type);
	return 0;
}

/* ----------------------------------------------------------- destruction */

void pvr_qp_destroy(struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = qp->adapter;

	adapter->qp_gen++;
	pvr_ext_dma_revoke_qp(qp);
	pvr_group_detach_all(qp);
	pvr_sched_remove(qp);
	pvr_db_exit_qp(qp);
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_timer_exit(&adapter->timers, &qp->timer);
	pvr_table_del(&adapter->qps, qp->handle);
	if (adapter->gsi == qp)
		adapter->gsi = NULL;
	qp_unlink(qp);
	pvr_pages_unmap(adapter, &qp->pages);
	pvr_qp_free(qp);
}

/* Only commands destroy a QP, and none runs before this one ends. */
static int destroy_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, adapter->job.req.handle.handle);

	if (!pvr_qp_is_connected(qp)) {
		/*
		 * Programs may destroy a QP before its datagrams complete: send them now.
		 */
		qp->ud_closing = true;
		pvr_sched_last_quantum(qp);
	}
	/* After its last request, which may bind one. */
	if (!pvr_mw_unbind_some(adapter, &qp->windows))
		return -EINPROGRESS;
	pvr_debug(adapter, "qp %u: destroyed", qp->handle);
	pvr_flush_held(qp);
	pvr_qp_destroy(qp);
	return 0;
}

int pvr_cmd_destroy_qp(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	if (!pvr_qp_get(adapter, req->handle.handle))
		return -EINVAL;
	return pvr_cmd_begin(adapter, req, destroy_step, NULL, resp);
}

/* ------------------------------------------------------------------ state */

/* A NIC may use memory by a right that the queue pair loses. */
static void set_access(struct pvr_qp *qp, uint32_t access)
{
	if (qp->attr.qp_access_flags & ~access)
		pvr_ext_dma_revoke_responder(qp);
	qp->attr.qp_access_flags = access;
}

static void set_scalars(struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr)
{
	struct pvr_qp_attr *to = &qp->attr;

	if (mask & PVR_QPA_EN_SQD_ASYNC)
		to->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & PVR_QPA_ACCESS_FLAGS)
		set_access(qp, attr->qp_access_flags);
	if (mask & PVR_QPA_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & PVR_QPA_PORT)
		to->port_num = attr->port_num;
	if (mask & PVR_QPA_QKEY)
		to->qkey = attr->qkey;
	if (mask & PVR_QPA_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & PVR_QPA_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & PVR_QPA_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & PVR_QPA_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & PVR_QPA_MAX_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & PVR_QPA_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & PVR_QPA_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
}

static void set_attrs(struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr)
{
	set_scalars(qp, mask, attr);
	if (mask & PVR_QPA_AV)
		qp->attr.ah_attr = attr->ah_attr;
	if (mask & PVR_QPA_DEST_QPN)
		qp->attr.dest_qp_num = attr->dest_qp_num;
	/* In attr they stay the first ones. */
	if (mask & PVR_QPA_RQ_PSN) {
		qp->rq_psn = attr->rq_psn & 0xffffff;
		qp->attr.rq_psn = qp->rq_psn;
	}
	if (mask & PVR_QPA_SQ_PSN) {
		qp->sq_psn = attr->sq_psn & 0xffffff;
		qp->attr.sq_psn = qp->sq_psn;
	}
	if (mask & (PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY)) {
		qp->retry_left = qp->attr.retry_cnt;
		qp->rnr_left = qp->attr.rnr_retry;
	}
	/* A new epoch: responses to requests before this change are dropped. */
	if (mask & (PVR_QPA_AV | PVR_QPA_DEST_QPN | PVR_QPA_SQ_PSN))
		qp->epoch = __atomic_add_fetch(&qp->adapter->engine->epoch, 1, __ATOMIC_RELAXED);
	if (mask & (PVR_QPA_AV | PVR_QPA_DEST_QPN)) {
		qp->path_gen = 0;
		qp->adapter->qp_gen++;
		/* In SQD it gets another path, but keeps its PSNs. */
		if (qp->state == PVR_QPS_INIT)
			pvr_qp_note_connection(qp);
		pvr_peer_gone_watch(qp);
	}
}

static void modify(struct pvr_qp *qp, const struct pvr_cmd_modify_qp *cmd, enum pvr_qp_state next)
{
	/* IBTA 11.2.5.2: each transition to SQD must request the event again. */
	if (qp->state == PVR_QPS_RTS && next == PVR_QPS_SQD)
		qp->attr.en_sqd_async_notify = 0;
	set_attrs(qp, cmd->attr_mask, &cmd->attrs);
	if (next == PVR_QPS_ERR)
		pvr_path_end_answers(qp);
	if (next == PVR_QPS_RESET)
		pvr_qp_reset_queues(qp);
	if (qp->state == PVR_QPS_RTS && next == PVR_QPS_SQD)
		pvr_requester_drain(qp);
	else
		pvr_qp_set_state(qp, next);
	/*
	 * The query for the location of a peer on another host takes time: start it now.
	 */
	if (next == PVR_QPS_RTR && pvr_qp_is_connected(qp))
		pvr_path_refresh(qp);
}

/* Each state that the QP can get between the steps may change to RESET. */
static int reset_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_modify_qp *cmd = &adapter->job.req.modify_qp;
	struct pvr_qp *qp = pvr_qp_get(adapter, cmd->qp_handle);

	if (!pvr_mw_unbind_some(adapter, &qp->windows))
		return -EINPROGRESS;
	pvr_flush_held(qp);
	modify(qp, cmd, PVR_QPS_RESET);
	return 0;
}

int pvr_cmd_modify_qp(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_modify_qp *cmd = &req->modify_qp;
	struct pvr_qp *qp = pvr_qp_get(adapter, cmd->qp_handle);
	enum pvr_qp_state next;
	const char *why;

	if (!qp)
		return -EINVAL;
	if (pvr_qp_check_modify(qp, cmd->attr_mask, &cmd->attrs, &next, &why)) {
		pvr_log_guest(adapter, "qp %u: modify %s -> %u, attributes %#x: %s", qp->handle,
			      pvr_qp_state_name(qp->state),
			      cmd->attr_mask & PVR_QPA_STATE ? cmd->attrs.qp_state : qp->state,
			      cmd->attr_mask, why);
		return -EINVAL;
	}
	if (qp->pages.broken && next != PVR_QPS_RESET && next != PVR_QPS_ERR)
		return -EIO;
	if (next == PVR_QPS_RESET)
		return pvr_cmd_begin(adapter, req, reset_step, NULL, resp);
	modify(qp, cmd, next);
	return 0;
}

int pvr_cmd_query_qp(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		     union pvr_cmd_resp *resp)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, req->query_qp.qp_handle);
	struct pvr_qp_attr *attr = &resp->query_qp.attrs;

	if (!qp)
		return -EINVAL;
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->sq_draining = qp->sq_draining;
	attr->rq_psn = qp->rq_psn;
	attr->sq_psn = qp->sq_psn;
	attr->cap = (struct pvr_qp_cap){
		.max_send_wr = qp->sq.count,
		.max_recv_wr = qp->rq.count,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->sq.max_inline,
	};
	return 0;
}
