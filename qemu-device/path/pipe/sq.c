// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* In-flight WRs to other hosts: allocation, completion and resumption. */
#include "path/pipe/sq.h"

#include <errno.h>

#include "rdma/completer.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "core/charge.h"
#include "core/ext_dma.h"
#include "core/state.h"
#include "gid/fabric.h"
#include "gid/flow.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/worker.h"

/* ------------------------------------------------------------------ its memory */

static size_t sq_bytes(uint32_t size)
{
	return sizeof(struct pvr_pipe_sq) + size * sizeof(struct pvr_inflight);
}

struct pvr_pipe_sq *pvr_pipe_sq_new(struct pvr_qp *qp)
{
	uint32_t size = qp->sq.count < PVR_INFLIGHT_MAX ? qp->sq.count : PVR_INFLIGHT_MAX;
	struct pvr_pipe_sq *sq;

	/* UC has no in-flight WRs. */
	if (qp->type == PVR_QPT_UC)
		size = 1;
	sq = pvr_charge_alloc(qp->adapter, sq_bytes(size));
	if (!sq)
		return NULL;
	sq->qp = qp;
	sq->size = size;
	sq->window = size;
	sq->sent = qp->sq_offset;
	return sq;
}

void pvr_pipe_enlist(struct pvr_pipe_sq *sq, struct pvr_pipe_sqs *list)
{
	if (sq->list == list && list == &sq->qp->adapter->hosts.in_flight)
		return;
	if (sq->list)
		TAILQ_REMOVE(sq->list, sq, link);
	sq->list = list;
	if (list)
		TAILQ_INSERT_TAIL(list, sq, link);
}

void pvr_pipe_sq_stop(struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = qp->pipe_sq;

	qp->sq_inflight = 0;
	if (!sq)
		return;
	sq->cursor = 0;
	sq->sent = 0;
	sq->reads = 0;
	sq->down = false;
	sq->probing = false;
	pvr_pipe_enlist(sq, NULL);
}

void pvr_pipe_sq_free(struct pvr_qp *qp)
{
	pvr_pipe_sq_stop(qp);
	if (qp->pipe_sq)
		pvr_charge_free(qp->adapter, qp->pipe_sq, sq_bytes(qp->pipe_sq->size));
	qp->pipe_sq = NULL;
}

void pvr_pipe_rewind(struct pvr_pipe_sq *sq)
{
	sq->cursor = 0;
	sq->sent = sq->qp->sq_offset;
	sq->gap = false;
}

/* ------------------------------------------------------------------------ state */

static void inflight_fields(struct pvr_codec *codec, struct pvr_inflight *inflight)
{
	pvr_codec_u32_max(codec, "psn", &inflight->psn, PVR_PSN_MASK);
	pvr_codec_u32_max(codec, "psns", &inflight->psns, PVR_PSNS_HALF);
	pvr_codec_u64_max(codec, "length", &inflight->length, PVR_MAX_MSG_SIZE);
	pvr_codec_u8_max(codec, "kind", &inflight->kind, PVR_OP_LOCAL);
}

void pvr_pipe_sq_save(struct pvr_codec *codec, struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = qp->pipe_sq;
	uint32_t i;

	pvr_codec_u32(codec, "requests", &qp->sq_inflight);
	pvr_codec_u64(codec, "highest sent", &sq->highest_sent);
	pvr_codec_bool(codec, "complete", &sq->complete);
	for (i = 0; i < qp->sq_inflight; i++)
		inflight_fields(codec, pvr_inflight(sq, i));
}

/* Their PSNs follow each other, up to that of the next request. */
static void check_inflight(struct pvr_codec *codec, struct pvr_pipe_sq *sq)
{
	const struct pvr_qp *qp = sq->qp;
	uint32_t psn = pvr_inflight(sq, 0)->psn, i, sum = 0;
	const struct pvr_inflight *inflight;

	for (i = 0; i < qp->sq_inflight; i++) {
		inflight = pvr_inflight(sq, i);
		if (inflight->psn != psn || (inflight->kind == PVR_OP_LOCAL) != !inflight->psns)
			pvr_codec_fault(codec, -EINVAL,
					"request %u has PSN 0x%x and %u PSNs, expected PSN 0x%x", i,
					inflight->psn, inflight->psns, psn);
		psn = (psn + inflight->psns) & PVR_PSN_MASK;
		sum += inflight->psns < PVR_PSNS_HALF - sum ? inflight->psns : PVR_PSNS_HALF - sum;
	}
	inflight = pvr_inflight(sq, qp->sq_inflight - 1);
	if (psn != qp->sq_psn)
		pvr_codec_fault(codec, -EINVAL, "the next PSN is 0x%x, expected 0x%x", qp->sq_psn,
				psn);
	/* The newest one began below the limit. */
	if (sum >= PVR_PSNS_HALF && inflight->psns < PVR_PSNS_HALF)
		pvr_codec_fault(codec, -EINVAL, "too many PSNs are in flight");
	if (sq->highest_sent > inflight->length)
		pvr_codec_fault(codec, -EINVAL, "more bytes are sent than the request has");
}

void pvr_pipe_sq_load(struct pvr_codec *codec, struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = pvr_pipe_sq_new(qp);
	uint32_t n = 0, i;

	if (!sq) {
		pvr_codec_fault(codec, -ENOMEM, "the guest needs more memory than its limit");
		return;
	}
	qp->pipe_sq = sq;
	pvr_codec_u32_max(codec, "requests", &n, sq->size);
	pvr_codec_u64(codec, "highest sent", &sq->highest_sent);
	pvr_codec_bool(codec, "complete", &sq->complete);
	if (!codec->err && !n)
		pvr_codec_fault(codec, -EINVAL, "there are no requests");
	for (i = 0; i < n && !codec->err; i++)
		inflight_fields(codec, pvr_inflight(sq, i));
	if (codec->err)
		return;
	qp->sq_inflight = n;
	check_inflight(codec, sq);
	for (i = 0; i < n; i++)
		sq->reads += pvr_inflight_has_response(pvr_inflight(sq, i));
	pvr_pipe_rewind(sq);
	pvr_pipe_enlist(sq, &qp->adapter->hosts.in_flight);
	__atomic_store_n(&qp->adapter->hosts.any, true, __ATOMIC_SEQ_CST);
}

/* ------------------------------------------------------------------ completions */

void pvr_pipe_count(struct pvr_pipe_sq *sq, uint8_t kind, uint64_t length, bool taken)
{
	struct pvr_qp *qp = sq->qp;

	if (kind == PVR_OP_LOCAL)
		return;
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, length);
	if (kind == PVR_OP_READ)
		pvr_count(qp, PVR_STAT_TX_READS, 1);
	if (kind == PVR_OP_ATOMIC)
		pvr_count(qp, PVR_STAT_TX_ATOMICS, 1);
	if (!taken)
		return;
	pvr_count(qp, sq->route.kind == PVR_PIPE_VERBS ? PVR_STAT_RDMA_BYTES : PVR_STAT_TCP_BYTES,
		  length);
	if (!sq->flow)
		return;
	pvr_stat_add(&sq->flow->messages, 1);
	pvr_stat_add(&sq->flow->bytes, length);
}

void pvr_pipe_complete(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe)
{
	const struct pvr_inflight inflight = *pvr_inflight(sq, 0);
	struct pvr_qp *qp = sq->qp;

	pvr_nic_request_done(qp, inflight.psn);
	sq->reads -= pvr_inflight_has_response(&inflight);
	qp->sq_inflight--;
	if (sq->cursor)
		sq->cursor--;
	else
		sq->sent = 0;
	pvr_pipe_count(sq, inflight.kind, inflight.length, true);
	/* Completing may fail the CQ, and the queue pair with it. */
	pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, inflight.length);
}

/* ------------------------------------------------------------------- the route */

bool pvr_pipe_is_routed(const struct pvr_pipe_sq *sq)
{
	return sq->route.generation && sq->route.host == sq->qp->path_host &&
	       !pvr_link_route_changed(&sq->route, sq->qp->qpn);
}

/* ---------------------------------------------------------------------- resumption */

/* Queue pairs that a change of connections resumes at once, in all adapters: about 0.3 ms. */
#define RESUMED_AT_ONCE 1024u

static void resume(struct pvr_qp *qp)
{
	if (qp->wait == PVR_QP_WAIT_CONN || qp->wait == PVR_QP_WAIT_ACKS)
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

static void resume_waiting(struct pvr_pipe_sq *sq)
{
	pvr_pipe_enlist(sq, sq->qp->sq_inflight ? &sq->qp->adapter->hosts.in_flight : NULL);
	resume(sq->qp);
}

/* Resumes a queue pair whose connection was replaced or is down. */
static void resume_changed(struct pvr_pipe_sq *sq)
{
	pvr_path_refresh(sq->qp);
	if (!pvr_pipe_is_routed(sq))
		resume(sq->qp);
}

/* A UD queue pair has no peer: its next quantum resolves the destination. */
static bool is_found(struct pvr_qp *qp)
{
	if (!pvr_qp_is_connected(qp))
		return true;
	pvr_path_refresh(qp);
	return qp->path_searched && !qp->resumes_by_timer && (qp->peer_adapter || qp->path_host);
}

/* Resumes a queue pair whose peer was resolved meanwhile. */
static void resume_found(struct pvr_qp *qp)
{
	if (is_found(qp))
		pvr_requester_resume(qp);
}

void pvr_pipe_resume(struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = qp->pipe_sq;

	if (sq && sq->list == &qp->adapter->hosts.in_flight)
		resume_changed(sq);
	else if (sq && sq->list)
		resume_waiting(sq);
	if (qp->wait == PVR_QP_WAIT_RETRY)
		resume_found(qp);
}

/* Those that wait for a connection of @host; NULL: of any host. Each visit takes one of *@budget. */
static void resume_list(struct pvr_pipe_sqs *list, const struct pvr_host *host, uint32_t *budget)
{
	struct pvr_pipe_sq *sq, *next;

	for (sq = TAILQ_FIRST(list); sq && *budget; sq = next, --*budget) {
		next = TAILQ_NEXT(sq, link);
		if (!host || sq->route.host == host)
			resume_waiting(sq);
	}
}

static void resume_lists(struct pvr_pipe_sq_lists *hosts, const struct pvr_host *host,
			 uint32_t *budget)
{
	struct pvr_pipe_sq *sq;
	struct pvr_qp *qp, *next;

	/* Before the others, which come to this list. */
	for (sq = TAILQ_FIRST(&hosts->in_flight); sq && *budget; sq = TAILQ_NEXT(sq, link)) {
		--*budget;
		resume_changed(sq);
	}
	resume_list(&hosts->starved, host, budget);
	resume_list(&hosts->blocked, host, budget);
	for (qp = TAILQ_FIRST(&hosts->unanswered); qp && *budget; qp = next) {
		next = TAILQ_NEXT(qp, unanswered_link);
		--*budget;
		resume_found(qp);
	}
}

static bool is_idle(const struct pvr_pipe_sq_lists *hosts)
{
	return TAILQ_EMPTY(&hosts->starved) && TAILQ_EMPTY(&hosts->blocked) &&
	       TAILQ_EMPTY(&hosts->in_flight) && TAILQ_EMPTY(&hosts->unanswered);
}

/* Those that the budget does not reach are visited by a sweep, with all others. */
static void resume_adapter(struct pvr_adapter *adapter, const struct pvr_host *host,
			   uint32_t *budget)
{
	struct pvr_pipe_sq_lists *hosts = &adapter->hosts;

	if (is_idle(hosts))
		__atomic_store_n(&hosts->any, false, __ATOMIC_SEQ_CST);
	if (!pvr_adapter_dma_ok(adapter))
		return;
	if (*budget)
		resume_lists(hosts, host, budget);
	if (!*budget && !is_idle(hosts))
		pvr_qp_sweep_begin(adapter, PVR_SWEEP_RESUME);
}

static void lock_and_resume(struct pvr_adapter *adapter, const struct pvr_host *host,
			    uint32_t *budget)
{
	if (!__atomic_load_n(&adapter->hosts.any, __ATOMIC_SEQ_CST))
		return;
	pvr_adapter_lock(adapter);
	resume_adapter(adapter, host, budget);
	pvr_adapter_unlock(adapter);
}

void pvr_host_resume(struct pvr_engine *engine, struct pvr_host *host)
{
	uint32_t budget = RESUMED_AT_ONCE;
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &engine->adapters, link)
		lock_and_resume(adapter, host, &budget);
}

void pvr_host_resume_fabric(struct pvr_engine *engine, const char *name)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);
	uint32_t budget = RESUMED_AT_ONCE;
	struct pvr_adapter *adapter;

	if (!fabric)
		return;
	LIST_FOREACH(adapter, &fabric->adapters, fabric_link)
		lock_and_resume(adapter, NULL, &budget);
}
