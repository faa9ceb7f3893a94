// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The faults of the rogue device. */
#include "faults.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "rdma/cq.h"
#include "rdma/event.h"

#define WILD 0xdeadbeefu

static void caps_zero(const struct fault_site *site)
{
	memset(site->data, 0, sizeof(struct pvr_caps));
}

static void caps_ones(const struct fault_site *site)
{
	memset(site->data, 0xff, sizeof(struct pvr_caps));
}

/* Every limit has its largest value, on a device of the right kind. */
static void caps_huge(const struct fault_site *site)
{
	struct pvr_caps *caps = site->data;
	struct pvr_caps old = *caps;

	caps_ones(site);
	caps->node_guid = old.node_guid;
	caps->sys_image_guid = old.sys_image_guid;
	caps->phys_port_cnt = old.phys_port_cnt;
	caps->mode = old.mode;
	caps->gid_types = old.gid_types;
}

static void port_ones(const struct fault_site *site)
{
	union pvr_cmd_resp *resp = site->data;

	memset(&resp->query_port.attrs, 0xff, sizeof(resp->query_port.attrs));
}

static void wrong_key(const struct fault_site *site)
{
	union pvr_cmd_resp *resp = site->data;

	resp->hdr.response ^= 1;
}

/* A driver that reads ERR before the response is there gets an error. */
static void slow(const struct fault_site *site)
{
	const struct timespec pause = { .tv_nsec = 30 * 1000 * 1000 };

	nanosleep(&pause, NULL);
	site->adapter->err = WILD;
}

/* The device offers FLUSH, and then refuses the right to it. */
static void refuse_flush(const struct fault_site *site, __le32 access)
{
	union pvr_cmd_resp *resp = site->data;

	if (access & (PVR_ACCESS_FLUSH_GLOBAL | PVR_ACCESS_FLUSH_PERSISTENT))
		resp->hdr.err = EINVAL;
}

static void refuse_flush_of_qp(const struct fault_site *site)
{
	refuse_flush(site, site->req->modify_qp.attrs.qp_access_flags);
}

static void refuse_flush_of_mr(const struct fault_site *site)
{
	refuse_flush(site, site->req->create_mr.access_flags);
}

/* --------------------------------------------------------- completions */

static void push(const struct fault_site *site, struct pvrdma_cqe *cqe)
{
	__real_pvr_cq_push(site->qp, site->cq, cqe, site->solicited);
}

/* An extra completion of a QP that does not exist, before the correct one. */
static void unknown_qp(const struct fault_site *site)
{
	uint32_t handle = site->qp->handle;
	struct pvrdma_cqe cqe = *site->cqe;

	site->qp->handle = 0xfffe;
	push(site, &cqe);
	site->qp->handle = handle;
}

static void wild_request(const struct fault_site *site)
{
	struct pvrdma_cqe cqe = *site->cqe;

	cqe.wr_id |= 0x7fffffff;
	push(site, &cqe);
}

static void reported_twice(const struct fault_site *site)
{
	struct pvrdma_cqe cqe = *site->cqe;

	push(site, &cqe);
}

static void wild_flags(const struct fault_site *site)
{
	site->cqe->wc_flags = WILD;
	site->cqe->network_hdr_type = 200;
}

/* Publish the index before overwriting it: the end of the turn publishes it again. */
static void overwrite_index(const struct fault_site *site, uint32_t index)
{
	pvr_publish(site->adapter);
	__atomic_store_n(&site->cq->shm->prod_tail, index, __ATOMIC_RELEASE);
}

/* One entry more than the ring holds, from the oldest one that may be unread. */
static void jump(const struct fault_site *site)
{
	const struct pvr_cq *cq = site->cq;

	overwrite_index(site, (cq->produced + cq->cqe) & (2 * cq->cqe - 1));
}

static void wild_index(const struct fault_site *site)
{
	overwrite_index(site, WILD);
}

/* The driver posts the next request to a queue with an impossible index. */
static void wild_queue_index(const struct fault_site *site)
{
	pvr_publish(site->adapter);
	__atomic_store_n(&site->qp->sq.shm->cons_head, WILD, __ATOMIC_RELEASE);
}

/* -------------------------------------------------------------- events */

static void wild_events(const struct fault_site *site)
{
	struct pvr_adapter *adapter = site->adapter;
	uint32_t type;

	pvr_event_async(adapter, 4000, WILD);
	pvr_event_async(adapter, 0xffffffff, 0xffffffff);
	for (type = 0; type < PVR_EVENT_NUM; type++)
		if (type != PVR_EVENT_DEVICE_FATAL)
			pvr_event_async(adapter, type, WILD);
}

static void fatal_event(const struct fault_site *site)
{
	pvr_event_async(site->adapter, PVR_EVENT_DEVICE_FATAL, WILD);
}

static void wild_event_index(const struct fault_site *site)
{
	struct pvr_adapter *adapter = site->adapter;

	__atomic_store_n(&adapter->events.async.shm->prod_tail, WILD, __ATOMIC_RELEASE);
	pvr_interrupt(adapter, PVR_VEC_ASYNC);
}

static void notify_nobody(const struct fault_site *site)
{
	static struct pvr_cq cq = {
		.handle = WILD
	}; /* static: the event may wait for room in the ring */

	pvr_event_cq(site->adapter, &cq);
}

static void wild_notify_index(const struct fault_site *site)
{
	struct pvr_adapter *adapter = site->adapter;

	__atomic_store_n(&adapter->events.cq[0].ring.shm->prod_tail, WILD, __ATOMIC_RELEASE);
	pvr_interrupt(adapter, PVR_VEC_CQ);
}

/* ------------------------------------------------------------ the table */

#define FIELD(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define REG(reg, ...) .when = FAULT_REGISTER, .offset = reg, .size = 4, __VA_ARGS__
#define CAP(field, what) .when = FAULT_CAPS, FIELD(struct pvr_caps, field), .value = what
#define RESP(command, field, what) \
	.when = FAULT_RESPONSE, .cmd = command, FIELD(union pvr_cmd_resp, field), .value = what
#define CQE(field, what) .when = FAULT_COMPLETION, FIELD(struct pvrdma_cqe, field), .value = what
#define CALL(site, fn) .when = site, .apply = fn
#define CALL_CMD(site, command, fn) .when = site, .cmd = command, .apply = fn

static const struct fault faults[] = {
	{ "version-0", REG(PVR_REG_VERSION, .cmd = FAULT_ANY_CMD, .value = 0) },
	{ "errors-for-all", REG(PVR_REG_ERR, .cmd = FAULT_ANY_CMD, .value = 200) },

	{ "caps-zero", CALL(FAULT_CAPS, caps_zero) },
	{ "caps-ones", CALL(FAULT_CAPS, caps_ones) },
	{ "caps-huge", CALL(FAULT_CAPS, caps_huge) },
	{ "mode-1", CAP(mode, PVR_MODE_IWARP) },
	{ "two-ports", CAP(phys_port_cnt, 2) },
	{ "both-gid-types", CAP(gid_types, 3) },
	{ "max-qp-0", CAP(max_qp, 0) },
	{ "max-sge-0", CAP(max_sge, 0) },
	{ "no-gids", CAP(gid_tbl_len, 0) },
	{ "max-uar-1000", CAP(max_uar, 1000) },
	{ "vectors-0", REG(PVR_REG_EXT_CQ_VECTORS, .cmd = FAULT_ANY_CMD, .value = 0) },
	{ "vectors-ones", REG(PVR_REG_EXT_CQ_VECTORS, .cmd = FAULT_ANY_CMD, .value = 0xffffffff) },
	{ "clock-stands", REG(PVR_REG_EXT_CLOCK_LOW, .cmd = FAULT_ANY_CMD, .value = WILD) },

	{ "port-ones", CALL_CMD(FAULT_RESPONSE, PVR_CMD_QUERY_PORT, port_ones) },
	{ "wrong-ack", RESP(PVR_CMD_QUERY_PORT, hdr.ack, PVR_CMD_RESP_ACK | 0xff) },
	{ "wrong-key", CALL_CMD(FAULT_RESPONSE, PVR_CMD_CREATE_UC, wrong_key) },
	{ "error-in-response", RESP(PVR_CMD_CREATE_UC, hdr.err, 255) },
	{ "slow", CALL_CMD(FAULT_RESPONSE, PVR_CMD_CREATE_UC, slow) },
	{ "uc-handle-0", RESP(PVR_CMD_CREATE_UC, create_uc.ctx_handle, 0) },
	{ "destroy-refused", RESP(PVR_CMD_DESTROY_PD, hdr.err, EINVAL) },
	{ "qp-kept", RESP(PVR_CMD_DESTROY_QP, hdr.err, EINVAL) },
	{ "pd-handle", RESP(PVR_CMD_CREATE_PD, create_pd.pd_handle, WILD) },
	{ "destroys-refused", RESP(PVR_CMD_DESTROY_UC, hdr.err, EINVAL) },
	{ "wild-queue-index", CALL(FAULT_COMPLETED, wild_queue_index) },
	{ "mr-handle", RESP(PVR_CMD_CREATE_MR, create_mr.mr_handle, WILD) },
	{ "mr-refused", RESP(PVR_CMD_CREATE_MR, hdr.err, ENOMEM) },
	{ "mr-keys", RESP(PVR_CMD_CREATE_MR, create_mr.rkey, WILD) },
	{ "flush-refused-for-mr", CALL_CMD(FAULT_RESPONSE, PVR_CMD_CREATE_MR, refuse_flush_of_mr) },
	{ "flush-refused-for-qp", CALL_CMD(FAULT_RESPONSE, PVR_CMD_MODIFY_QP, refuse_flush_of_qp) },
	{ "cq-handle", RESP(PVR_CMD_CREATE_CQ, create_cq.cq_handle, WILD) },
	{ "cq-handle-of-nobody", RESP(PVR_CMD_CREATE_CQ, create_cq.cq_handle, 5000) },
	{ "cq-size", RESP(PVR_CMD_CREATE_CQ, create_cq.cqe, WILD) },
	{ "qp-handle", RESP(PVR_CMD_CREATE_QP, create_qp.qp_handle, WILD) },
	{ "qpn-0", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 0) },
	{ "qpn-1", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 1) },
	{ "qpn-25-bits", RESP(PVR_CMD_CREATE_QP, create_qp.qpn, 1 << 24) },
	{ "srq-handle", RESP(PVR_CMD_CREATE_SRQ, create_srq.srqn, WILD) },
	{ "xrcd-handle", RESP(PVR_CMD_CREATE_XRCD, create_xrcd.xrcd_handle, WILD) },
	{ "xrcd-refused", RESP(PVR_CMD_CREATE_XRCD, hdr.err, ENOMEM) },
	{ "moderation-refused", RESP(PVR_CMD_MODIFY_CQ, hdr.err, EINVAL) },
	{ "page-fault-too-long", RESP(PVR_CMD_QUERY_FAULT, query_fault.npages, WILD) },
	{ "page-fault-elsewhere", RESP(PVR_CMD_QUERY_FAULT, query_fault.first, 1ull << 60) },
	{ "page-fault-unknown", RESP(PVR_CMD_QUERY_FAULT, hdr.err, EINVAL) },
	{ "pages-refused", RESP(PVR_CMD_SET_PAGES, hdr.err, EINVAL) },

	{ "unknown-qp", CALL(FAULT_COMPLETION, unknown_qp) },
	{ "wild-request", CALL(FAULT_COMPLETION, wild_request) },
	{ "reported-twice", CALL(FAULT_COMPLETION, reported_twice) },
	{ "wild-opcode", CQE(opcode, 200) },
	{ "wild-flags", CALL(FAULT_COMPLETION, wild_flags) },
	{ "wild-status", CQE(status, 99) },
	{ "index-jumps", CALL(FAULT_COMPLETED, jump) },
	{ "wild-index", CALL(FAULT_COMPLETED, wild_index) },

	{ "wild-events", CALL_CMD(FAULT_EVENT, PVR_CMD_CREATE_UC, wild_events) },
	{ "fatal-event", CALL_CMD(FAULT_EVENT, PVR_CMD_CREATE_UC, fatal_event) },
	{ "wild-event-index", CALL_CMD(FAULT_EVENT, PVR_CMD_CREATE_UC, wild_event_index) },
	{ "notify-nobody", CALL_CMD(FAULT_EVENT, PVR_CMD_CREATE_UC, notify_nobody) },
	{ "wild-notify-index", CALL_CMD(FAULT_EVENT, PVR_CMD_CREATE_UC, wild_notify_index) },
};

const struct fault *fault_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!strcmp(faults[i].name, name))
			return &faults[i];
	return NULL;
}
