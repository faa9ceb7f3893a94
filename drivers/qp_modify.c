// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: states and attributes. */
#include "pvrdma.h"
#include "wq.h"

static_assert(IB_QP_DEST_QPN == PVR_QPA_DEST_QPN &&
		      IB_QPS_ERR == (enum ib_qp_state)PVR_QPS_ERR &&
		      IB_QP_MAX_DEST_RD_ATOMIC == PVR_QPA_MAX_DEST_RD_ATOMIC,
	      "masks and states are numbered alike");

/*
 * Kernel consumers leave fields outside the mask uninitialised. None of them may reach
 * the device.
 */
static void attr_to_dev(struct pvr_qp_attr *to, const struct ib_qp_attr *from,
			int mask)
{
#define COPY(bit, field, order)                         \
	do {                                            \
		if (mask & (bit))                       \
			to->field = order(from->field); \
	} while (0)
#define COPY8(bit, field) COPY(bit, field, (u8))
#define COPY16(bit, field) COPY(bit, field, cpu_to_le16)
#define COPY32(bit, field) COPY(bit, field, cpu_to_le32)
	COPY32(IB_QP_STATE, qp_state);
	COPY32(IB_QP_CUR_STATE, cur_qp_state);
	COPY32(IB_QP_PATH_MTU, path_mtu);
	COPY32(IB_QP_QKEY, qkey);
	COPY32(IB_QP_RQ_PSN, rq_psn);
	COPY32(IB_QP_SQ_PSN, sq_psn);
	COPY32(IB_QP_DEST_QPN, dest_qp_num);
	COPY32(IB_QP_ACCESS_FLAGS, qp_access_flags);
	COPY16(IB_QP_PKEY_INDEX, pkey_index);
	COPY8(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	COPY8(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY8(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY8(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	COPY8(IB_QP_PORT, port_num);
	COPY8(IB_QP_TIMEOUT, timeout);
	COPY8(IB_QP_RETRY_CNT, retry_cnt);
	COPY8(IB_QP_RNR_RETRY, rnr_retry);
#undef COPY32
#undef COPY16
#undef COPY8
#undef COPY
	if (mask & IB_QP_AV)
		pvr_ah_attr_to_dev(&to->ah_attr, &from->ah_attr);
}

/*
 * Check the attributes that the driver and ib_core can check; the device checks the rest.
 */
static int check_attr(struct pvr_dev *dev, struct pvr_qp *qp,
		      const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur, next;

	if (mask & (~IB_QP_ATTR_STANDARD_BITS | IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PATH_MIG_STATE) &&
	    attr->path_mig_state != IB_MIG_MIGRATED)
		return -EINVAL;
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	if ((mask & IB_QP_PORT) && attr->port_num != 1)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) &&
	    attr->pkey_index >= dev->caps.max_pkeys)
		return -EINVAL;
	if ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	    attr->max_rd_atomic > dev->caps.max_qp_init_rd_atom)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	    attr->max_dest_rd_atomic > dev->caps.max_qp_rd_atom)
		return -EINVAL;
	return 0;
}

/*
 * DOC: A second change to INIT
 *
 * librdmacm changes each QP to INIT twice, and then to RTR. Of the second change only the
 * access flags can differ. No peer can use them before RTR, so the driver keeps them, and
 * the command of the change to RTR has them, too.
 */
static bool is_kept(const struct pvr_qp *qp, const struct ib_qp_attr *attr,
		    int mask)
{
	return qp->state == IB_QPS_INIT && attr->qp_state == IB_QPS_INIT &&
	       (qp->ibqp.qp_type == IB_QPT_RC ||
		qp->ibqp.qp_type == IB_QPT_UC) &&
	       (mask & IB_QP_ACCESS_FLAGS) &&
	       !(mask & ~(IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
			  IB_QP_ACCESS_FLAGS));
}

static void add_kept_access(const struct pvr_qp *qp,
			    const struct ib_qp_attr *attr, int mask,
			    struct pvr_cmd_modify_qp *cmd)
{
	if (!qp->access_kept || !(mask & IB_QP_STATE) ||
	    attr->qp_state != IB_QPS_RTR || (mask & IB_QP_ACCESS_FLAGS))
		return;
	cmd->attr_mask |= cpu_to_le32(IB_QP_ACCESS_FLAGS);
	cmd->attrs.qp_access_flags = cpu_to_le32(qp->access);
}

static void fill_req(struct pvr_qp *qp, const struct ib_qp_attr *attr, int mask,
		     union pvr_cmd_req *req)
{
	memset(req, 0, sizeof(*req));
	req->hdr.cmd = cpu_to_le32(PVR_CMD_MODIFY_QP);
	req->modify_qp.qp_handle = cpu_to_le32(qp->handle);
	/* MIGRATED changes nothing. Older devices refuse it. */
	mask &= ~IB_QP_PATH_MIG_STATE;
	req->modify_qp.attr_mask = cpu_to_le32(mask);
	attr_to_dev(&req->modify_qp.attrs, attr, mask);
	add_kept_access(qp, attr, mask, &req->modify_qp);
}

static int modify_qp(struct pvr_dev *dev, struct pvr_qp *qp,
		     const struct ib_qp_attr *attr, int mask)
{
	union pvr_cmd_req req;
	union pvr_cmd_resp resp;

	fill_req(qp, attr, mask, &req);
	return pvr_cmd(dev, &req, &resp);
}

/* Of these attributes the driver knows all values that a device accepts. */
#define POSTED_ATTRS                                                         \
	(IB_QP_STATE | IB_QP_PORT | IB_QP_QKEY | IB_QP_ACCESS_FLAGS |        \
	 IB_QP_PKEY_INDEX | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | \
	 IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define TIMEOUT_MAX 31
#define RETRIES_MAX 7

static bool values_ok(const struct ib_qp_attr *attr, int mask)
{
	return !(mask & ~POSTED_ATTRS) &&
	       !((mask & IB_QP_PKEY_INDEX) && attr->pkey_index) &&
	       !((mask & IB_QP_TIMEOUT) && attr->timeout > TIMEOUT_MAX) &&
	       !((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > RETRIES_MAX) &&
	       !((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > RETRIES_MAX);
}

/* Of these types ib_core and the device allow the same attributes for each change. */
static bool is_type_posted(enum ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_UD ||
	       type == IB_QPT_GSI;
}

/*
 * Changes to INIT and RTS, which peers do not notice. A device refuses one of them only if
 * the QP has failed. After a change to RTR the peer may send, and after one to ERR or
 * RESET, or to fewer rights, a program uses memory that the peer must not access any
 * more. So these must be complete. @attr has passed check_attr().
 */
static bool is_postable(const struct pvr_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	if (!(mask & IB_QP_STATE) || !is_type_posted(qp->ibqp.qp_type) ||
	    READ_ONCE(qp->is_lost))
		return false;
	switch (attr->qp_state) {
	case IB_QPS_INIT:
		return values_ok(attr, mask);
	case IB_QPS_RTS:
		return qp->state == IB_QPS_RTR &&
		       !(mask & IB_QP_ACCESS_FLAGS) && values_ok(attr, mask);
	default:
		return false;
	}
}

static int run_or_post(struct pvr_dev *dev, struct pvr_qp *qp,
		       const struct ib_qp_attr *attr, int mask)
{
	union pvr_cmd_req req;

	if (!is_postable(qp, attr, mask))
		return modify_qp(dev, qp, attr, mask);
	fill_req(qp, attr, mask, &req);
	return pvr_cmd_post_modify_qp(dev, &req);
}

/* Whether the device has newer access flags than the kept ones, or needs none. */
static bool ends_keeping(const struct ib_qp_attr *attr, int mask)
{
	return (mask & IB_QP_ACCESS_FLAGS) ||
	       ((mask & IB_QP_STATE) && (attr->qp_state == IB_QPS_RESET ||
					 attr->qp_state == IB_QPS_RTR));
}

static int modify_or_keep(struct pvr_dev *dev, struct pvr_qp *qp,
			  const struct ib_qp_attr *attr, int mask)
{
	int err;

	if (is_postable(qp, attr, mask) && is_kept(qp, attr, mask)) {
		qp->access = attr->qp_access_flags;
		qp->access_kept = true;
		return pvr_dev_dead(dev) ? -EIO : 0;
	}
	err = run_or_post(dev, qp, attr, mask);
	if (!err && ends_keeping(attr, mask))
		qp->access_kept = false;
	return err;
}

/*
 * A request that a QP took from its SRQ ends with a completion if the QP fails. If the QP
 * is reset or destroyed, the request is dropped, and its number would never become free.
 * So fail the QP first.
 */
static void end_srq_request(struct pvr_dev *dev, struct pvr_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (pvr_qp_is_kernel(qp) && qp->ibqp.srq)
		modify_qp(dev, qp, &attr, IB_QP_STATE);
}

void pvr_qp_end_srq_request(struct pvr_qp *qp)
{
	mutex_lock(&qp->lock);
	end_srq_request(to_pvr_dev(qp->ibqp.device), qp);
	mutex_unlock(&qp->lock);
}

/* User QPs: the provider does the same. */
static void reset_rings(struct pvr_qp *qp)
{
	struct pvr_cq *send_cq, *recv_cq;

	if (!pvr_qp_is_kernel(qp))
		return;
	send_cq = to_pvr_cq(qp->ibqp.send_cq);
	recv_cq = to_pvr_cq(qp->ibqp.recv_cq);
	pvr_cq_purge(send_cq, qp);
	if (recv_cq != send_cq)
		pvr_cq_purge(recv_cq, qp);
	pvr_wq_reset(&qp->sq, send_cq);
	pvr_wq_reset(&qp->rq, recv_cq);
}

/* Call last: post_send() and post_recv() depend on the state. */
static void set_state_locked(struct pvr_qp *qp, enum ib_qp_state next)
{
	lockdep_assert_held(&qp->lock);
	if (qp->state == next)
		return;
	ibdev_dbg(qp->ibqp.device, "qp %u: state %d -> %d\n", qp->ibqp.qp_num,
		  qp->state, next);
	WRITE_ONCE(qp->state, next);
}

static int modify_locked(struct pvr_dev *dev, struct pvr_qp *qp,
			 const struct ib_qp_attr *attr, int mask)
{
	int err;

	if (qp->state == IB_QPS_RESET && (mask & IB_QP_STATE) &&
	    attr->qp_state == IB_QPS_RESET)
		return 0;
	err = check_attr(dev, qp, attr, mask);
	if (!err && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET)
		end_srq_request(dev, qp);
	if (!err)
		err = modify_or_keep(dev, qp, attr, mask);
	/* QPs of a dead device are already in the error state */
	if (err && !(pvr_dev_dead(dev) && (mask & IB_QP_STATE) &&
		     attr->qp_state == IB_QPS_ERR))
		return err;
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(qp->qkey, attr->qkey);
	if (!(mask & IB_QP_STATE))
		return 0;
	set_state_locked(qp, attr->qp_state);
	if (attr->qp_state == IB_QPS_RESET)
		reset_rings(qp);
	return 0;
}

int pvr_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	int err;

	mutex_lock(&qp->lock);
	err = modify_locked(to_pvr_dev(ibqp->device), qp, attr, mask);
	mutex_unlock(&qp->lock);
	if (err)
		ibdev_dbg(ibqp->device, "qp %u: modify %#x in state %d: %pe\n",
			  ibqp->qp_num, mask, qp->state, ERR_PTR(err));
	return err;
}

static void attr_from_dev(struct ib_qp_attr *to, const struct pvr_qp_attr *from)
{
	to->qp_state = le32_to_cpu(from->qp_state);
	to->cur_qp_state = le32_to_cpu(from->qp_state);
	to->path_mtu = le32_to_cpu(from->path_mtu);
	to->path_mig_state = IB_MIG_MIGRATED;
	to->qkey = le32_to_cpu(from->qkey);
	to->rq_psn = le32_to_cpu(from->rq_psn);
	to->sq_psn = le32_to_cpu(from->sq_psn);
	to->dest_qp_num = le32_to_cpu(from->dest_qp_num);
	to->qp_access_flags = le32_to_cpu(from->qp_access_flags);
	to->pkey_index = le16_to_cpu(from->pkey_index);
	to->en_sqd_async_notify = from->en_sqd_async_notify;
	to->sq_draining = from->sq_draining;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = 1;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->cap.max_send_wr = le32_to_cpu(from->cap.max_send_wr);
	to->cap.max_recv_wr = le32_to_cpu(from->cap.max_recv_wr);
	to->cap.max_send_sge = le32_to_cpu(from->cap.max_send_sge);
	to->cap.max_recv_sge = le32_to_cpu(from->cap.max_recv_sge);
	pvr_ah_attr_from_dev(&to->ah_attr, &from->ah_attr);
}

/* The device may have moved the QP to SQE or ERR. */
static int query_locked(struct pvr_dev *dev, struct pvr_qp *qp,
			struct ib_qp_attr *attr, int mask)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_QP);
	req.query_qp.qp_handle = cpu_to_le32(qp->handle);
	req.query_qp.attr_mask = cpu_to_le32(mask & IB_QP_ATTR_STANDARD_BITS);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	if (le32_to_cpu(resp.query_qp.attrs.qp_state) >= PVR_QPS_NUM)
		return -EIO;
	attr_from_dev(attr, &resp.query_qp.attrs);
	if (qp->access_kept)
		attr->qp_access_flags = qp->access;
	set_state_locked(qp, attr->qp_state);
	return 0;
}

int pvr_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	int err;

	memset(attr, 0, sizeof(*attr));
	mutex_lock(&qp->lock);
	err = query_locked(to_pvr_dev(ibqp->device), qp, attr, mask);
	mutex_unlock(&qp->lock);
	if (err)
		return err;
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->qp_type = ibqp->qp_type;
	attr->cap.max_inline_data = qp->max_inline;
	init->cap = attr->cap;
	return 0;
}
