// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The state of queue pairs: records QP, RESPONDER, MCAST. */
#include <errno.h>

#include "core/charge.h"
#include "core/state.h"
#include "core/wq.h"
#include "ctrl/ctrl.h"
#include "ctrl/uar_poll.h"
#include "gid/mcast_group.h"
#include "rdma/db_suppress.h"
#include "rdma/path.h"
#include "rdma/peer_gone.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/requester.h"
#include "rdma/responder_state.h"
#include "rdma/xrc.h"

#define PSN_MAX 0xffffffu
#define GSI_NUMBER 1u
#define NO_HANDLE UINT32_MAX

/* -------------------------------------------------------------------- fields */

/* As CREATE_QP names them. */
static void create_fields(struct pvr_codec *codec, struct pvr_cmd_create_qp *cmd)
{
	pvr_codec_u8(codec, "type", &cmd->qp_type);
	pvr_codec_u32(codec, "pd", &cmd->pd_handle);
	pvr_codec_u32(codec, "send cq", &cmd->send_cq_handle);
	pvr_codec_u32(codec, "recv cq", &cmd->recv_cq_handle);
	pvr_codec_u8(codec, "has srq", &cmd->is_srq);
	pvr_codec_u32(codec, "srq", &cmd->srq_handle);
	pvr_codec_u32(codec, "xrcd", &cmd->xrcd_handle);
	pvr_codec_u32(codec, "send requests", &cmd->max_send_wr);
	pvr_codec_u32(codec, "recv requests", &cmd->max_recv_wr);
	pvr_codec_u32(codec, "send SGEs", &cmd->max_send_sge);
	pvr_codec_u32(codec, "recv SGEs", &cmd->max_recv_sge);
	pvr_codec_u32(codec, "inline bytes", &cmd->max_inline_data);
	pvr_codec_u16(codec, "pages", &cmd->total_chunks);
	pvr_codec_u16(codec, "send pages", &cmd->send_chunks);
	pvr_codec_u8(codec, "sig all", &cmd->sq_sig_all);
	pvr_codec_u8(codec, "flags", &cmd->flags);
}

static uint8_t create_type(const struct pvr_qp *qp)
{
	if (qp->xrc_role == PVR_XRC_INI)
		return PVR_QPT_XRC_INI;
	return qp->xrc_role == PVR_XRC_TGT ? PVR_QPT_XRC_TGT : qp->type;
}

/* The command that would create it. */
static struct pvr_cmd_create_qp command_of(const struct pvr_qp *qp)
{
	bool target = qp->xrc_role == PVR_XRC_TGT;

	return (struct pvr_cmd_create_qp){
		.qp_type = create_type(qp),
		.pd_handle = target ? 0 : qp->pd->handle,
		.send_cq_handle = target ? 0 : qp->send_cq->handle,
		.recv_cq_handle = target ? 0 : qp->recv_cq->handle,
		.is_srq = !target && qp->srq,
		.srq_handle = !target && qp->srq ? qp->srq->handle : 0,
		.xrcd_handle = target ? qp->xrc_target->xrcd->handle : 0,
		.max_send_wr = qp->sq.count,
		.max_recv_wr = qp->rq.count,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->sq.max_inline,
		.total_chunks = qp->pages.size / PVR_PAGE_SIZE,
		.send_chunks = qp->rq.start / PVR_PAGE_SIZE - 1,
		.sq_sig_all = qp->sq_sig_all,
		.flags = qp->user_ops ? PVR_QP_USER_OPS : 0,
	};
}

static void running_time_field(struct pvr_codec *codec, const char *field, uint64_t *time)
{
	const struct pvr_timers *timers = &codec->adapter->timers;
	uint64_t at = *time ? pvr_timers_with_pauses(timers, *time) : 0;

	pvr_codec_time(codec, field, &at);
	if (codec->loads)
		*time = at ? pvr_timers_without_pauses(timers, at) : 0;
}

/* Those that depend on nothing else. */
static void plain_fields(struct pvr_codec *codec, struct pvr_qp *qp)
{
	uint32_t state = qp->state;

	pvr_codec_u32_max(codec, "state", &state, PVR_QPS_NUM - 1);
	qp->state = state;
	pvr_codec_bytes(codec, "attributes", &qp->attr, sizeof(qp->attr));
	pvr_codec_u32(codec, "send head", &qp->sq.head);
	pvr_codec_u32(codec, "recv head", &qp->rq.head);
	pvr_codec_u32_max(codec, "sq_psn", &qp->sq_psn, PSN_MAX);
	pvr_codec_u64_max(codec, "sq_offset", &qp->sq_offset, PVR_MAX_MSG_SIZE);
	pvr_codec_u16(codec, "local operations done", &qp->sq_local_done);
	pvr_codec_u32(codec, "epoch", &qp->epoch);
	pvr_codec_u8_max(codec, "retries left", &qp->retry_left, 7);
	pvr_codec_u8_max(codec, "RNR retries left", &qp->rnr_left, 7);
	pvr_codec_u32_max(codec, "rq_psn", &qp->rq_psn, PSN_MAX);
	pvr_codec_u64_max(codec, "rq_offset", &qp->rq_offset, PVR_MAX_MSG_SIZE);
	pvr_codec_u64(codec, "flushed", &qp->flushed);
	running_time_field(codec, "RNR timer", &qp->rnr_until);
	running_time_field(codec, "first RNR NAK", &qp->rnr_since);
	pvr_codec_u32(codec, "receives seen", &qp->rnr_seen);
	pvr_codec_u8_max(codec, "RNR polls", &qp->rnr_polls, 8);
	pvr_codec_bytes(codec, "counters", qp->stat, sizeof(qp->stat));
}

static void flag_fields(struct pvr_codec *codec, struct pvr_qp *qp)
{
	pvr_codec_bool(codec, "rnr_slow", &qp->rnr_slow);
	pvr_codec_bool(codec, "unanswered", &qp->unanswered);
	pvr_codec_bool(codec, "rnr_nak", &qp->rnr_nak);
	pvr_codec_bool(codec, "peer_gone", &qp->peer_gone);
	pvr_codec_bool(codec, "peer_qp_gone", &qp->peer_qp_gone);
	pvr_codec_bool(codec, "sq_draining", &qp->sq_draining);
	pvr_codec_bool(codec, "comm_est", &qp->comm_est);
	pvr_codec_bool(codec, "last_wqe", &qp->last_wqe);
	pvr_codec_bool(codec, "sq_db_suppressed", &qp->sq_db_suppressed);
	pvr_codec_bool(codec, "rq_db_suppressed", &qp->rq_db_suppressed);
	pvr_codec_bool(codec, "mcast_taken", &qp->mcast_taken);
}

/* The receive request that it has taken from its SRQ. @held: NULL without an SRQ. */
static void held_fields(struct pvr_codec *codec, struct pvr_srq_held *held, uint32_t max_sge)
{
	bool valid = held && held->valid;

	pvr_codec_bool(codec, "holds a receive", &valid);
	if (!valid || codec->err)
		return;
	if (!held) {
		pvr_codec_fault(codec, -EINVAL, "it holds a receive and has no SRQ");
		return;
	}
	held->valid = valid;
	pvr_codec_bytes(codec, "receive", &held->hdr, sizeof(held->hdr));
	pvr_codec_bytes(codec, "receive SGEs", held->sge, max_sge * sizeof(held->sge[0]));
}

/* ---------------------------------------------------------------------- save */

/* A wait of the pipe path begins anew after the load. */
static bool wait_is_saved(const struct pvr_qp *qp)
{
	return qp->wait != PVR_QP_WAIT_CONN && qp->wait != PVR_QP_WAIT_ACKS;
}

static uint32_t held_sges(const struct pvr_qp *qp)
{
	if (qp->xrc_role == PVR_XRC_TGT)
		return PVR_MAX_SGE;
	return qp->srq ? qp->srq->wq.max_sge : 0;
}

static void save_waits(struct pvr_codec *codec, const struct pvr_qp *qp)
{
	uint8_t wait = wait_is_saved(qp) ? qp->wait : PVR_QP_RUNNING;
	uint64_t deadline = 0;
	bool nak_sent = qp->rnr_nak_sent, resume = qp->rnr_resume_pending;
	/* A datagram to a group that some members have counts as sent. */
	bool mcast = qp->mcast_next != 0;

	if (wait_is_saved(qp) && pvr_timer_is_set(&qp->timer))
		deadline = pvr_timer_deadline(&qp->adapter->timers, &qp->timer);
	pvr_codec_u8(codec, "wait", &wait);
	pvr_codec_time(codec, "timer", &deadline);
	pvr_codec_bool(codec, "rnr_nak_sent", &nak_sent);
	pvr_codec_bool(codec, "rnr_resume_pending", &resume);
	pvr_codec_bool(codec, "mcast begun", &mcast);
}

void pvr_qp_save(struct pvr_codec *codec, void *object)
{
	struct pvr_qp *qp = object;
	struct pvr_cmd_create_qp cmd = command_of(qp);
	uint32_t target_srq = qp->xrc_target && qp->srq ? qp->srq->handle : NO_HANDLE;

	pvr_qp_end_connection(qp);
	pvr_peer_gone_settle(qp, &codec->living);
	pvr_codec_u32(codec, "handle", &qp->handle);
	pvr_codec_u32(codec, "number", &qp->qpn);
	create_fields(codec, &cmd);
	plain_fields(codec, qp);
	flag_fields(codec, qp);
	pvr_codec_u32(codec, "target's srq", &target_srq);
	held_fields(codec, qp->held, held_sges(qp));
	save_waits(codec, qp);
	pvr_codec_ring_pages(codec, &qp->pages, qp->pages.size / PVR_PAGE_SIZE);
}

/* ---------------------------------------------------------------------- load */

static void check_numbers(struct pvr_codec *codec, const struct pvr_qp *qp)
{
	bool gsi = qp->type == PVR_QPT_GSI;

	if (gsi ? qp->handle != GSI_NUMBER || qp->qpn != GSI_NUMBER
		: qp->handle <= GSI_NUMBER || (qp->qpn & 0xffff) != qp->handle || qp->qpn > PSN_MAX)
		pvr_codec_fault(codec, -EINVAL, "handle %u does not fit number 0x%x of type %u",
				qp->handle, qp->qpn, qp->type);
}

/* A queue without requests has never moved. */
static bool is_head_ok(uint32_t head, uint32_t count)
{
	return count ? head < 2 * count : !head;
}

static void check_fields(struct pvr_codec *codec, const struct pvr_qp *qp,
			 const struct pvr_cmd_create_qp *cmd)
{
	const char *why = pvr_qp_bad_attr(qp);

	if (why)
		pvr_codec_fault(codec, -EINVAL, "attributes: %s", why);
	if (!is_head_ok(qp->sq.head, cmd->max_send_wr) ||
	    !is_head_ok(qp->rq.head, cmd->max_recv_wr))
		pvr_codec_fault(codec, -EINVAL, "heads %u and %u are out of range", qp->sq.head,
				qp->rq.head);
	if (qp->sq_draining && qp->state != PVR_QPS_SQD)
		pvr_codec_fault(codec, -EINVAL, "it drains in state %u", qp->state);
	if (qp->state == PVR_QPS_SQE && qp->type == PVR_QPT_RC)
		pvr_codec_fault(codec, -EINVAL, "a reliable queue pair is in SQE");
}

/* The requester that waits for a receive is on the list of the SRQ, or reserves one of it. */
static void check_requester(struct pvr_codec *codec, const struct pvr_qp *qp, bool nak_sent,
			    bool resume)
{
	bool responds = qp->type == PVR_QPT_RC && qp->state >= PVR_QPS_RTR;

	if ((nak_sent || resume) && !responds)
		pvr_codec_fault(codec, -EINVAL, "its peer waits for a receive in state %u",
				qp->state);
	if (nak_sent && qp->xrc_target && !qp->srq)
		pvr_codec_fault(codec, -EINVAL, "its peer waits for a receive of no SRQ");
}

static void set_wait(struct pvr_codec *codec, struct pvr_qp *qp, uint8_t wait, uint64_t deadline)
{
	if (wait > PVR_QP_WAIT_PAGE) {
		pvr_codec_fault(codec, -EINVAL, "wait is %u, expected at most %u", wait,
				PVR_QP_WAIT_PAGE);
		return;
	}
	if (wait > PVR_QP_WAIT_RNR_POLL && !deadline) {
		pvr_codec_fault(codec, -EINVAL, "it waits without a timer");
		return;
	}
	pvr_qp_set_wait(qp, wait);
	if (deadline)
		pvr_timer_set(&codec->adapter->timers, &qp->timer, deadline);
}

/* The queue pair is in its tables. It becomes a member of the lists of its waits. */
static void load_waits(struct pvr_codec *codec, struct pvr_qp *qp)
{
	bool nak_sent, resume, mcast;
	uint64_t deadline = 0;
	uint8_t wait = 0;

	pvr_codec_u8(codec, "wait", &wait);
	pvr_codec_time(codec, "timer", &deadline);
	pvr_codec_bool(codec, "rnr_nak_sent", &nak_sent);
	pvr_codec_bool(codec, "rnr_resume_pending", &resume);
	pvr_codec_bool(codec, "mcast begun", &mcast);
	check_requester(codec, qp, nak_sent, resume);
	if (mcast && qp->type != PVR_QPT_UD)
		pvr_codec_fault(codec, -EINVAL, "only datagrams have groups");
	if (codec->err)
		return;
	set_wait(codec, qp, wait, deadline);
	pvr_qp_set_rnr_nak_sent(qp, nak_sent);
	pvr_qp_set_rnr_resume_pending(qp, resume);
	qp->mcast_next = mcast;
}

static void load_target_srq(struct pvr_codec *codec, struct pvr_qp *qp, uint32_t handle)
{
	struct pvr_srq *srq;

	if (handle == NO_HANDLE)
		return;
	srq = pvr_srq_get(codec->adapter, handle);
	if (!qp->xrc_target || !srq || srq->xrcd != qp->xrc_target->xrcd)
		pvr_codec_fault(codec, -EINVAL, "SRQ %u is not one of the target's domain", handle);
	else
		pvr_xrc_take_srq(qp, srq);
}

static bool enter_tables(struct pvr_codec *codec, struct pvr_qp *qp)
{
	struct pvr_adapter *adapter = codec->adapter;

	if (pvr_timer_init(&adapter->timers, &qp->timer, pvr_requester_timeout)) {
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
		return false;
	}
	if (pvr_table_add_at(&adapter->qps, qp, qp->handle)) {
		pvr_codec_fault(codec, -EINVAL, "handle %u is out of range or exists already",
				qp->handle);
		pvr_timer_exit(&adapter->timers, &qp->timer);
		return false;
	}
	if (qp->type == PVR_QPT_GSI)
		adapter->gsi = qp;
	pvr_qp_link(qp);
	return true;
}

/* Return: false if a fault leaves the queue pair outside of all tables. */
static bool qp_build(struct pvr_codec *codec, struct pvr_qp *qp)
{
	struct pvr_cmd_create_qp cmd = { 0 };
	uint32_t target_srq = NO_HANDLE, sq_head, rq_head;

	pvr_codec_u32(codec, "handle", &qp->handle);
	pvr_codec_u32(codec, "number", &qp->qpn);
	create_fields(codec, &cmd);
	pvr_qp_set_type(qp, &cmd);
	qp->cqe_qp = qp->handle;
	plain_fields(codec, qp);
	flag_fields(codec, qp);
	if (!codec->err)
		check_numbers(codec, qp);
	if (!codec->err)
		check_fields(codec, qp, &cmd);
	if (!codec->err && pvr_qp_check_create(codec->adapter, &cmd))
		pvr_codec_fault(codec, -EINVAL, "CREATE_QP refuses its type or sizes");
	if (!codec->err && pvr_qp_resolve(codec->adapter, &cmd, qp))
		pvr_codec_fault(codec, -EINVAL,
				"PD %u, CQs %u and %u, SRQ %u or XRC domain %u does not exist, or "
				"their contexts differ",
				cmd.pd_handle, cmd.send_cq_handle, cmd.recv_cq_handle,
				cmd.srq_handle, cmd.xrcd_handle);
	pvr_codec_u32(codec, "target's srq", &target_srq);
	if (codec->err)
		return false;
	held_fields(codec, qp->held, held_sges(qp));
	sq_head = qp->sq.head;
	rq_head = qp->rq.head;
	if (codec->err || !enter_tables(codec, qp))
		return false;
	load_target_srq(codec, qp, target_srq);
	if (qp->held && qp->held->valid && !qp->srq)
		pvr_codec_fault(codec, -EINVAL, "it holds a receive and has no SRQ");
	load_waits(codec, qp);
	pvr_codec_ring_pages(codec, &qp->pages, cmd.total_chunks);
	if (qp->pages.broken && qp->state != PVR_QPS_ERR && qp->state != PVR_QPS_RESET)
		pvr_codec_fault(codec, -EINVAL, "its pages are broken in state %u", qp->state);
	if (codec->err)
		return true;
	pvr_db_attach_qp(qp);
	pvr_qp_use_rings(qp, &cmd);
	qp->sq.head = sq_head;
	qp->rq.head = rq_head;
	return true;
}

/* After a fault in the tables the end of the load destroys it with all others. */
void pvr_qp_load(struct pvr_codec *codec)
{
	struct pvr_qp *qp = pvr_state_alloc(codec, sizeof(*qp));

	if (!qp)
		return;
	qp->adapter = codec->adapter;
	LIST_INIT(&qp->groups);
	if (!qp_build(codec, qp))
		pvr_qp_free(qp);
}
