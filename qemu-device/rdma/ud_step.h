/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sending of unreliable datagrams, including those of the GSI. Compiled twice, so that a
 * datagram without captures and faults executes no instruction more: ud_send.c has the one
 * without, ud_observed.c the one with both.
 */
#ifndef PVR_UD_STEP_H
#define PVR_UD_STEP_H

#include <stdlib.h>

#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/flips.h"
#include "rdma/wr.h"
#include "rdma/completer.h"
#include "rdma/page_fault.h"
#include "rdma/worker.h"
#include "rdma/path.h"
#include "rdma/shaper.h"
#include "rdma/ud.h"
#include "core/charge.h"
#include "gid/resolve.h"
#include "gid/dest.h"
#include "gid/flow.h"
#include "gid/mcast_group.h"

/* The least work of a copy to one more queue pair of a group, in bytes. */
#define COPY_WORK 1024u
/* The longest wait of a queue pair for a GID query or a connection. */
#define WAIT_MS 200
/*
 * After a failed wait no wait starts for this time, which doubles with each further
 * failure.
 */
#define NO_WAIT_MS 1000u
#define NO_WAIT_SHIFT_MAX 3
#define NS_PER_MS 1000000u
#define QKEY_OF_QP (1u << 31) /* IBTA 10.2.5: use the QP's own Q_Key */

enum pvr_ud_sent {
	PVR_UD_SENT, /* or refused, or lost */
	PVR_UD_BUSY, /* a receiver's adapter is locked: repeat in another quantum */
	PVR_UD_LATER, /* GID query or connection in progress: retry later */
	PVR_UD_ABSENT, /* a page is absent, and the queue pair waits for it */
};

struct datagram {
	struct pvr_qp *from;
	const struct pvr_send_wqe *wqe;
	struct pvr_datagram as_received;
	uint32_t tries, taken; /* queue pairs to which it was offered, that received it */
	bool waits; /* for a GID query or a connection */
};

/* --------------------------------------------------------------------------- waits */

static uint32_t no_wait_ms(const struct pvr_qp *qp)
{
	/* Connection managers retry only after seconds: no backoff for them. */
	return qp->type == PVR_QPT_GSI ? NO_WAIT_MS : NO_WAIT_MS << (qp->ud_failed_waits - 1);
}

/*
 * Called when the datagram at the head cannot be sent yet. Return: true if it may wait.
 * Datagrams to unreachable destinations must not delay the others for long: hence WAIT_MS
 * and the time without waits after a failed one.
 */
static bool may_wait(struct pvr_qp *qp)
{
	uint32_t now = (uint32_t)(pvr_now(qp->adapter->engine) / NS_PER_MS);
	uint32_t ms = now - qp->ud_wait_since;

	if (qp->ud_waits && ms < WAIT_MS)
		return true;
	if (!qp->ud_waits && qp->ud_failed_waits && ms < no_wait_ms(qp))
		return false;
	qp->ud_wait_since = now;
	qp->ud_waits = !qp->ud_waits;
	if (!qp->ud_waits && qp->ud_failed_waits <= NO_WAIT_SHIFT_MAX)
		qp->ud_failed_waits++;
	return qp->ud_waits;
}

/* The datagram was sent or dropped: end a wait. */
static void end_wait(struct pvr_qp *qp)
{
	if (!qp->ud_waits)
		return;
	qp->ud_waits = false;
	qp->ud_failed_waits = 0;
}

/* --------------------------------------------------------------------------- sending */

/*
 * @to: locked; @qp: its queue pair, or NULL if it has no queue pair of the number. Return:
 * whether the datagram was received.
 */
static bool offer(struct datagram *dgram, struct pvr_adapter *to, struct pvr_qp *qp)
{
	dgram->tries++;
	if (!pvr_ud_receive(to, qp, &dgram->as_received))
		return false;
	dgram->taken++;
	return true;
}

/* @flow: or NULL. */
static void count(struct pvr_flow *flow, uint32_t messages, uint64_t bytes)
{
	if (!flow)
		return;
	pvr_stat_add(&flow->messages, messages);
	pvr_stat_add(&flow->bytes, bytes);
}

static uint32_t dst_qpn(const struct datagram *dgram)
{
	return dgram->wqe->hdr.wr.ud.remote_qpn & 0xffffff;
}

static bool is_multicast(const struct datagram *dgram)
{
	return (dgram->from->adapter->features & PVR_EXT_MCAST) &&
	       dst_qpn(dgram) == PVR_MULTICAST_QPN &&
	       pvr_gid_is_multicast(dgram->wqe->hdr.wr.ud.av.dgid);
}

/* The adapter is locked, so its members of the group do not change. */
static void offer_to_mcast_adapter(struct datagram *dgram, const struct pvr_mcast_iter *iter)
{
	uint32_t left = iter->share, taken = 0;
	struct pvr_mcast_qp *mcast_qp;

	for (mcast_qp = iter->first; mcast_qp && left--;
	     mcast_qp = TAILQ_NEXT(mcast_qp, of_mcast_adapter))
		taken += offer(dgram, iter->adapter, mcast_qp->qp);
	if (taken)
		count(pvr_flow_get(dgram->from->adapter, iter->adapter), taken,
		      taken * dgram->as_received.payload->total);
}

static void linger(struct datagram *dgram)
{
	struct pvr_adapter *from = dgram->from->adapter;

	pvr_ud_linger_add(from, dst_qpn(dgram), &dgram->as_received,
			  pvr_now(from->engine) + WAIT_MS * NS_PER_MS);
}

/*
 * Some destination is not reachable yet. Return: true if the datagram or a copy of it
 * waits.
 */
static bool waits(struct datagram *dgram)
{
	struct pvr_qp *from = dgram->from;

	if (!may_wait(from))
		return false;
	if (from->ud_closing)
		linger(dgram);
	dgram->waits = !from->ud_closing;
	return true;
}

/*
 * The destination may have become reachable since an older datagram was held. Return: true if
 * a copy of the datagram is held behind that one.
 */
static bool lingers_behind_older(struct datagram *dgram)
{
	if (!dgram->from->ud_closing ||
	    !pvr_ud_linger_goes_first(dgram->from->adapter, dgram->as_received.av->dgid))
		return false;
	linger(dgram);
	return true;
}

/* Sends to all hosts at the same time, so that no retry sends to a host twice. */
static void send_to_other_hosts(struct datagram *dgram, bool treated)
{
	struct pvr_adapter *from = dgram->from->adapter;
	struct pvr_host_group group;
	bool ready;

	if (lingers_behind_older(dgram))
		return;
	ready = pvr_path_mcast_targets(from, &dgram->as_received, &group);
	dgram->tries += group.count;
	if (!ready && waits(dgram))
		return;
	if (treated && dgram->as_received.recv_status)
		pvr_path_ud_fail(from, PVR_MULTICAST_QPN, &dgram->as_received, &group);
	else
		pvr_path_mcast_send(from, &dgram->as_received, &group);
}

/*
 * Deliver to all members of the group. A sender that is attached receives its own
 * datagram. When an adapter is locked, the next quantum continues with that adapter.
 * Return: false if an adapter was locked.
 */
static pvr_noinline bool deliver_to_group(struct datagram *dgram, bool treated)
{
	const uint8_t *mgid = dgram->wqe->hdr.wr.ud.av.dgid;
	struct pvr_qp *from = dgram->from;
	struct pvr_mcast_iter iter;

	while (pvr_group_next(from->adapter, mgid, from->mcast_next, &iter)) {
		if (!pvr_adapter_lock_peer(from->adapter, iter.adapter))
			return false;
		from->mcast_next = iter.number;
		/* Before the lock its queue pairs may have left the group. */
		if (!pvr_group_at(from->adapter, mgid, &iter))
			continue;
		offer_to_mcast_adapter(dgram, &iter);
		from->mcast_taken |= dgram->taken != 0;
	}
	/* Last, because the loop above may be repeated. */
	send_to_other_hosts(dgram, treated);
	return true;
}

/* The adapter of @dest is locked. */
static void offer_to_qp(struct datagram *dgram, struct pvr_dest *dest)
{
	if (!offer(dgram, dest->adapter, pvr_qp_find(dest->adapter, dst_qpn(dgram))))
		return;
	if (!dest->flow)
		dest->flow = pvr_flow_get(dgram->from->adapter, dest->adapter);
	count(dest->flow, 1, dgram->as_received.payload->total);
}

static pvr_noinline enum pvr_ud_result send_to_another_host(const struct datagram *dgram,
							    bool treated)
{
	struct pvr_adapter *from = dgram->from->adapter;

	if (treated && dgram->as_received.recv_status)
		return pvr_path_ud_fail(from, dst_qpn(dgram), &dgram->as_received, NULL);
	return pvr_path_ud_send(from, dst_qpn(dgram), &dgram->as_received);
}

/* Return: false if an adapter was locked. @treated: by the path of faults */
static pvr_always_inline bool deliver(struct datagram *dgram, bool treated)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &dgram->wqe->hdr;
	struct pvr_adapter *from = dgram->from->adapter;
	struct pvr_dest *dest;

	if (!from->link_up)
		return true;
	if (dgram->as_received.multicast)
		return deliver_to_group(dgram, treated);
	dest = pvr_dest_get(from, hdr->wr.ud.av.dgid);
	if (!dest->adapter) {
		if (!lingers_behind_older(dgram) &&
		    send_to_another_host(dgram, treated) == PVR_UD_RESULT_PENDING)
			waits(dgram);
		return true;
	}
	if (!pvr_adapter_lock_peer(from, dest->adapter))
		return false;
	offer_to_qp(dgram, dest);
	return true;
}

static void count_sent(struct pvr_qp *qp, const struct datagram *dgram)
{
	uint64_t total = dgram->as_received.payload->total;

	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, total);
	pvr_count(qp, PVR_STAT_TX_MCAST, dgram->as_received.multicast);
	if (dgram->taken)
		pvr_count(qp, PVR_STAT_LOCAL_BYTES, total);
}

static void describe(struct datagram *dgram, const struct pvr_gid_entry *sgid)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &dgram->wqe->hdr;
	struct pvr_datagram *as_received = &dgram->as_received;

	as_received->av = &hdr->wr.ud.av;
	as_received->sgid = sgid->gid;
	as_received->gid_type = sgid->type;
	as_received->src_qpn = dgram->from->qpn;
	as_received->psn = dgram->from->sq_psn;
	as_received->qkey = hdr->wr.ud.remote_qkey & QKEY_OF_QP ? dgram->from->attr.qkey
								: hdr->wr.ud.remote_qkey;
	as_received->has_imm = hdr->opcode == PVRDMA_WR_SEND_WITH_IMM;
	as_received->imm = hdr->ex.imm_data;
	as_received->solicited = hdr->send_flags & PVR_SEND_SOLICITED;
}

/* Return: whether the datagram can be sent: one above the MTU, or without a GID, is dropped. */
static bool begin(struct datagram *dgram)
{
	const struct pvr_gid_entry *sgid =
		pvr_gid_get(dgram->from->adapter, dgram->wqe->hdr.wr.ud.av.gid_index);

	dgram->as_received.multicast = is_multicast(dgram);
	if (!sgid || dgram->as_received.payload->total > 128u << PVR_MAX_MTU)
		return false;
	describe(dgram, sgid);
	return true;
}

static uint64_t work_of(const struct datagram *dgram)
{
	uint64_t total = dgram->as_received.payload->total;

	return dgram->tries > 1 ? total + (uint64_t)(dgram->tries - 1) * (total + COPY_WORK)
				: total;
}

/* Return: NULL: over the guest's limit, out of memory, or the payload was unplugged. */
static struct pvr_ud_held *hold(const struct datagram *dgram)
{
	struct pvr_adapter *adapter = dgram->from->adapter;
	uint32_t size = (uint32_t)dgram->as_received.payload->total;
	struct pvr_ud_held *held = pvr_charge_alloc(adapter, sizeof(*held) + size);
	struct pvr_sg to;

	if (!held)
		return NULL;
	held->wqe.hdr = dgram->wqe->hdr;
	held->size = size;
	pvr_sg_build_flat(&to, adapter, held->data, size);
	if (!pvr_sg_copy(&to, 0, dgram->as_received.payload, 0, size))
		return held;
	pvr_ud_free_held(adapter, held);
	return NULL;
}

/* Return: false if an adapter was locked. @treatment keeps the steps that are not done. */
static bool deliver_treated(struct datagram *dgram, struct pvr_ud_treatment *treatment)
{
	if (treatment->holds) {
		treatment->held = hold(dgram);
		if (treatment->held)
			return true;
		treatment->holds = false;
	}
	dgram->as_received.recv_status = treatment->recv_status;
	for (; treatment->copies; treatment->copies--) {
		if (!deliver(dgram, true))
			return false;
		if (dgram->waits)
			return true;
		dgram->from->mcast_next = 0;
	}
	return true;
}

/* Return: false if an adapter was locked; the delivery is then incomplete. */
static pvr_always_inline bool send(struct datagram *dgram, struct pvr_ud_treatment *treatment)
{
	if (!begin(dgram))
		return true;
	return treatment ? deliver_treated(dgram, treatment) : deliver(dgram, false);
}

/* The same with damage. */
static bool send_damaged(struct datagram *dgram, struct pvr_ud_treatment *treatment)
{
	const struct pvr_sg *payload = dgram->as_received.payload;
	struct pvr_sg damaged;
	uint8_t *copy;
	bool done;

	copy = payload->total && payload->total <= 128u << PVR_MAX_MTU
		       ? pvr_flips_copy(treatment->flips, payload, 0, (uint32_t)payload->total)
		       : NULL;
	if (copy) {
		pvr_flips_build(&damaged, payload, 0, copy);
		dgram->as_received.payload = &damaged;
	}
	done = send(dgram, treatment);
	dgram->as_received.payload = payload;
	free(copy);
	return done;
}

/* Count the datagram and clear the state of its delivery. */
static pvr_always_inline void finish(struct datagram *dgram, bool observed)
{
	struct pvr_qp *qp = dgram->from;

	if (observed && pvr_captures(qp->adapter) && dgram->as_received.av)
		pvr_capture_sent_datagram(qp, dst_qpn(dgram), &dgram->as_received);
	dgram->taken |= qp->mcast_taken;
	qp->mcast_next = 0;
	qp->mcast_taken = false;
	end_wait(qp);
	qp->sq_psn = (qp->sq_psn + 1) & 0xffffff;
	count_sent(qp, dgram);
}

/**
 * send_one() - send a datagram
 * @status: status of the completion
 * @length: bytes sent, if successful
 * @work: bytes that the quantum is charged, including copies to a multicast group
 * @observed: there may be captures or a treatment
 *
 * Receiver errors do not reach the sender (IBTA 9.8.3): the receiver drops the datagram
 * and counts it.
 *
 * - A repeated request skips members of a multicast group that have received it.
 * - During a GID query or a connection setup the request waits in its ring, and so do all
 *   requests behind it, for at most WAIT_MS. After a failed wait later requests do not
 *   wait for NO_WAIT_MS or longer.
 * - With @qp->ud_closing the adapter holds a copy instead, see pvr_ud_linger_add().
 */
static pvr_always_inline enum pvr_ud_sent send_one(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
						   enum pvrdma_wc_status *status, uint64_t *length,
						   uint64_t *work, bool observed,
						   struct pvr_ud_treatment *treatment)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &wqe->hdr;
	struct datagram dgram = { .from = qp, .wqe = wqe };
	struct pvr_sg sg PVR_UNINITIALIZED;
	bool done;

	*status = PVRDMA_WC_LOC_QP_OP_ERR;
	if ((hdr->opcode != PVRDMA_WR_SEND && hdr->opcode != PVRDMA_WR_SEND_WITH_IMM) ||
	    (hdr->wr.ud.av.port_pd & PVR_AV_PD_MASK) != qp->pd->handle)
		return PVR_UD_SENT;
	*status = pvr_gather(&sg, qp, wqe, 0);
	if (*status != PVRDMA_WC_SUCCESS)
		return PVR_UD_SENT;
	switch (pvr_requester_page_fault(qp, &sg, 0, sg.total)) {
	case PVR_PAGE_ABSENT:
		return PVR_UD_ABSENT;
	case PVR_PAGE_REFUSED:
		*status = PVRDMA_WC_LOC_PROT_ERR;
		return PVR_UD_SENT;
	case PVR_PAGE_FOUND:
		break;
	}
	dgram.as_received.payload = &sg;
	*length = sg.total;
	done = treatment && treatment->flips ? send_damaged(&dgram, treatment)
					     : send(&dgram, treatment);
	*work = work_of(&dgram);
	if (!done)
		return PVR_UD_BUSY;
	if (dgram.waits)
		return PVR_UD_LATER;
	finish(&dgram, observed);
	return PVR_UD_SENT;
}

/* Executes one request. Datagrams do not wait for receive requests. */
static pvr_always_inline enum pvr_step step(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
					    struct pvr_quantum_budget *budget, bool observed,
					    struct pvr_ud_treatment *treatment)
{
	enum pvrdma_wc_status status;
	uint64_t length = 0, work = 0;
	enum pvr_ud_sent sent;

	sent = send_one(qp, wqe, &status, &length, &work, observed, treatment);
	budget->bytes += work;
	if (sent == PVR_UD_BUSY)
		return PVR_STEP_BUSY;
	if (sent == PVR_UD_ABSENT)
		return PVR_STEP_STOP;
	if (sent == PVR_UD_LATER) {
		__atomic_store_n(&qp->adapter->hosts.any, true, __ATOMIC_SEQ_CST);
		pvr_requester_await(qp, PVR_UD_LATER_NS);
		return PVR_STEP_STOP;
	}
	if (status != PVRDMA_WC_SUCCESS) {
		pvr_requester_fail(qp, wqe, status,
				   "bad datagram: opcode, address vector, length or SGE");
		return PVR_STEP_STOP;
	}
	pvr_send_complete(qp, wqe, status, length);
	return PVR_STEP_NEXT;
}

/* Runs a quantum. @observed: there may be captures or a @treatment, see pvr_ud_run_treated() */
static pvr_always_inline enum pvr_quantum run(struct pvr_qp *qp, unsigned int max, bool observed,
					      struct pvr_ud_treatment *treatment)
{
	struct pvr_quantum_budget budget = pvr_requester_budget(qp, max);
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	while (pvr_requester_fetch(qp, &budget, &wqe))
		if (!pvr_requester_go_on(qp, &budget, step(qp, &wqe, &budget, observed, treatment)))
			break;
	if (qp->adapter->shaper)
		pvr_shaper_count(qp->adapter->shaper, qp);
	return budget.result;
}

#endif /* PVR_UD_STEP_H */
