// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The lies. */
#include "lies.h"

#include <errno.h>
#include <string.h>

#include "rdma/cq.h"
#include "rdma/event.h"

#define WILD 0xdeadbeefu

static void caps_zero(const struct lie_moment *moment)
{
	memset(moment->told, 0, sizeof(struct pvr_caps));
}

static void caps_ones(const struct lie_moment *moment)
{
	memset(moment->told, 0xff, sizeof(struct pvr_caps));
}

/* Every number as large as can be, on a device that is of the right kind. */
static void caps_huge(const struct lie_moment *moment)
{
	struct pvr_caps *caps = moment->told;
	struct pvr_caps old = *caps;

	caps_ones(moment);
	caps->node_guid = old.node_guid;
	caps->sys_image_guid = old.sys_image_guid;
	caps->phys_port_cnt = old.phys_port_cnt;
	caps->mode = old.mode;
	caps->gid_types = old.gid_types;
}

static void port_ones(const struct lie_moment *moment)
{
	union pvr_cmd_resp *resp = moment->told;

	memset(&resp->query_port.attrs, 0xff, sizeof(resp->query_port.attrs));
}

static void wrong_key(const struct lie_moment *moment)
{
	union pvr_cmd_resp *resp = moment->told;

	resp->hdr.response ^= 1;
}

/* --------------------------------------------------------- completions */

static void push(const struct lie_moment *moment, struct pvrdma_cqe *cqe)
{
	__real_pvr_cq_push(moment->qp, moment->cq, cqe, moment->solicited);
}

/* One too many, of a QP that there is not; the true one follows. */
static void unknown_qp(const struct lie_moment *moment)
{
	uint32_t handle = moment->qp->handle;
	struct pvrdma_cqe cqe = *moment->cqe;

	moment->qp->handle = 0xfffe;
	push(moment, &cqe);
	moment->qp->handle = handle;
	push(moment, moment->cqe);
}

static void wild_request(const struct lie_moment *moment)
{
	struct pvrdma_cqe cqe = *moment->cqe;

	cqe.wr_id |= 0x7fffffff;
	push(moment, &cqe);
	push(moment, moment->cqe);
}

static void told_twice(const struct lie_moment *moment)
{
	struct pvrdma_cqe cqe = *moment->cqe;

	push(moment, &cqe);
	push(moment, moment->cqe);
}

static void wild_opcode(const struct lie_moment *moment)
{
	moment->cqe->opcode = 200;
	push(moment, moment->cqe);
}

static void wild_flags(const struct lie_moment *moment)
{
	moment->cqe->wc_flags = WILD;
	moment->cqe->network_hdr_type = 200;
	push(moment, moment->cqe);
}

static void wild_status(const struct lie_moment *moment)
{
	moment->cqe->status = 99;
	push(moment, moment->cqe);
}

/* The index is published before we write over it: the end of the turn would mend it. */
static void push_and_say(const struct lie_moment *moment, uint32_t index)
{
	push(moment, moment->cqe);
	pvr_publish(moment->adapter);
	__atomic_store_n(&moment->cq->shm->prod_tail, index, __ATOMIC_RELEASE);
}

/* One more than the ring holds, counted from the oldest that the driver may have left. */
static void jump(const struct lie_moment *moment)
{
	const struct pvr_cq *cq = moment->cq;

	push_and_say(moment, (cq->produced + 1 + cq->cqe) & (2 * cq->cqe - 1));
}

static void wild_index(const struct lie_moment *moment)
{
	push_and_say(moment, WILD);
}

/* -------------------------------------------------------------- events */

static void wild_events(const struct lie_moment *moment)
{
	struct pvr_adapter *adapter = moment->adapter;
	uint32_t type;

	pvr_event_async(adapter, 4000, WILD);
	pvr_event_async(adapter, 0xffffffff, 0xffffffff);
	for (type = 0; type < PVR_EVENT_NUM; type++)
		if (type != PVR_EVENT_DEVICE_FATAL)
			pvr_event_async(adapter, type, WILD);
}

static void fatal_event(const struct lie_moment *moment)
{
	pvr_event_async(moment->adapter, PVR_EVENT_DEVICE_FATAL, WILD);
}

static void wild_event_index(const struct lie_moment *moment)
{
	struct pvr_adapter *adapter = moment->adapter;

	__atomic_store_n(&adapter->events.async.shm->prod_tail, WILD, __ATOMIC_RELEASE);
	pvr_interrupt(adapter, PVR_VEC_ASYNC);
}

static void notify_nobody(const struct lie_moment *moment)
{
	static struct pvr_cq cq = { .handle = WILD }; /* it may have to wait for room */

	pvr_event_cq(moment->adapter, &cq);
}

static void wild_notify_index(const struct lie_moment *moment)
{
	struct pvr_adapter *adapter = moment->adapter;

	__atomic_store_n(&adapter->events.cq[0].ring.shm->prod_tail, WILD, __ATOMIC_RELEASE);
	pvr_interrupt(adapter, PVR_VEC_CQ);
}

/* ------------------------------------------------------------ the table */

#define FIELD(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define REG(reg, ...) .when = LIE_REGISTER, .offset = reg, .size = 4, __VA_ARGS__
#define CAP(field, what) .when = LIE_CAPS, FIELD(struct pvr_caps, field), .value = what
#define RESP(command, field, what) \
	.when = LIE_RESPONSE, .cmd = command, FIELD(union pvr_cmd_resp, field), .value = what
#define TELL(moment, fn) .when = moment, .tell = fn
#define TELL_CMD(moment, command, fn) .when = moment, .cmd = command, .tell = fn

static const struct lie lies[] = {
	{ "version-0", REG(PVR_REG_VERSION, .cmd = LIE_ANY_CMD, .value = 0) },
	{ "errors-for-all", REG(PVR_REG_ERR, .cmd = LIE_ANY_CMD, .value = 200) },

	{ "caps-zero", TELL(LIE_CAPS, caps_zero) },
	{ "caps-ones", TELL(LIE_CAPS, caps_ones) },
	{ "caps-huge", TELL(LIE_CAPS, caps_huge) },
	{ "mode-1", CAP(mode, PVR_MODE_IWARP) },
	{ "two-ports", CAP(phys_port_cnt, 2) },
	{ "both-gid-types", CAP(gid_types, 3) },
	{ "max-qp-0", CAP(max_qp, 0) },
	{ "max-sge-0", CAP(max_sge, 0) },
	{ "no-gids", CAP(gid_tbl_len, 0) },
	{ "max-uar-1000", CAP(max_uar, 1000) },

	{ "port-ones", TELL_CMD(LIE_RESPONSE, PVR_CMD_QUERY_PORT, port_ones) },
	{ "wrong-ack", RESP(PVR_CMD_QUERY_PORT, hdr.ack, PVR_CMD_RESP_ACK | PVR_CMD_NUM) },
	{ "wrong-key", TELL_CMD(LIE_RESPONSE, PVR_CMD_CREATE_UC, wrong_key) },
	{ "error-in-response", RESP(PVR_CMD_CREATE_UC, hdr.err, 255) },
	{ "uc-handle-0", RESP(PVR_CMD_CREATE_UC, create_uc.ctx_handle, 0) },
	{ "destroy-refused", RESP(PVR_CMD_DESTROY_PD, hdr.err, EINVAL) },
	{ "pd-handle", RESP(PVR_CMD_CREATE_PD, create_pd.pd_handle, WILD) },
	{ "mr-handle", RESP(PVR_CMD_CREATE_MR, create_mr.mr_handle, WILD) },
	{ "cq-handle", RESP(PVR_CMD_CREATE_CQ, create_cq.cq_handle, WILD) },
	{ "cq-handle-of-nobody", RESP(PVR_CMD_CREATE_CQ, create_cq.cq_handle, 1) },
	{ "cq-size", RESP(PVR_CMD_CREATE_CQ, create_cq.cqe, WILD) },
	{ "qp-handle", RESP(PVR_CMD_CREATE_QP, create_qp.qp_handle, WILD) },
	{ "qpn-0", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 0) },
	{ "qpn-1", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 1) },
	{ "qpn-25-bits", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 1 << 24) },
	{ "srq-handle", RESP(PVR_CMD_CREATE_SRQ, create_srq.srqn, WILD) },

	{ "unknown-qp", TELL(LIE_COMPLETION, unknown_qp) },
	{ "wild-request", TELL(LIE_COMPLETION, wild_request) },
	{ "told-twice", TELL(LIE_COMPLETION, told_twice) },
	{ "wild-opcode", TELL(LIE_COMPLETION, wild_opcode) },
	{ "wild-flags", TELL(LIE_COMPLETION, wild_flags) },
	{ "wild-status", TELL(LIE_COMPLETION, wild_status) },
	{ "index-jumps", TELL(LIE_COMPLETION, jump) },
	{ "wild-index", TELL(LIE_COMPLETION, wild_index) },

	{ "wild-events", TELL_CMD(LIE_EVENT, PVR_CMD_CREATE_UC, wild_events) },
	{ "fatal-event", TELL_CMD(LIE_EVENT, PVR_CMD_CREATE_UC, fatal_event) },
	{ "wild-event-index", TELL_CMD(LIE_EVENT, PVR_CMD_CREATE_UC, wild_event_index) },
	{ "notify-nobody", TELL_CMD(LIE_EVENT, PVR_CMD_CREATE_UC, notify_nobody) },
	{ "wild-notify-index", TELL_CMD(LIE_EVENT, PVR_CMD_CREATE_UC, wild_notify_index) },
};

const struct lie *lie_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (!strcmp(lies[i].name, name))
			return &lies[i];
	return NULL;
}
