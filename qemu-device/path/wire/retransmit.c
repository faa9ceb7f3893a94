// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lost packets of the wire path's requester: its timer, probes and go-back-N.
 *
 * Source: IBTA volume 1, 9.7.6 (timeouts).
 *
 * DOC: silence
 *
 * - A lost tail is not noticed by the peer. So a silence is interrupted by two probes, which
 *   ask for an ACK, long before the guest's timeout: they cost no retry.
 * - After a timeout, a sequence error or a gap in READ data the requester sends again from
 *   the oldest PSN in flight (go-back-N), with half the window.
 */
#include "path/wire/internal.h"

#include <string.h>

#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/qp.h"
#include "rdma/sched.h"

static uint64_t timeout_ns(const struct pvr_qp *qp)
{
	return 4096ull << qp->attr.timeout;
}

/* Return: ns of silence before a probe, without those that were sent. */
static uint64_t silence_ns(const struct pvr_eth_sq *sq)
{
	uint64_t silence = sq->srtt ? 4ull * sq->srtt : PVR_ETH_PROBE_FIRST_NS;

	return silence < PVR_ETH_PROBE_MIN_NS ? PVR_ETH_PROBE_MIN_NS : silence;
}

/* The begin of the next probe; UINT64_MAX: there is none before the timeout. */
static uint64_t probe_due(const struct pvr_eth_sq *sq)
{
	uint64_t silence = silence_ns(sq) << sq->probes;

	if (sq->probes >= PVR_ETH_PROBES || sq->una == sq->next || silence >= timeout_ns(sq->qp))
		return UINT64_MAX;
	return sq->progress + silence;
}

static bool is_timed(const struct pvr_qp *qp)
{
	return qp->attr.timeout && qp->type == PVR_QPT_RC && qp->sq_inflight;
}

/* A timer of an earlier request may be due too late for a probe. */
void pvr_eth_start_timer(struct pvr_eth_sq *sq)
{
	struct pvr_qp *qp = sq->qp;
	uint64_t due;

	if (!is_timed(qp))
		return;
	due = probe_due(sq);
	if (due == UINT64_MAX)
		due = sq->progress + timeout_ns(qp);
	if (!pvr_timer_is_set(&qp->timer) ||
	    pvr_timer_deadline(&qp->adapter->timers, &qp->timer) > due)
		pvr_timer_set(&qp->adapter->timers, &qp->timer, due);
}

void pvr_eth_go_back(struct pvr_eth_sq *sq)
{
	sq->timed_at = 0;
	sq->next = sq->una;
	sq->cursor = 0;
	sq->acked = 0;
	sq->window /= 2;
	if (sq->window < PVR_ETH_WINDOW_MIN)
		sq->window = PVR_ETH_WINDOW_MIN;
	sq->go_backs++;
	pvr_eth_count(&sq->qp->adapter->wire->port->stats.retransmits, 1);
}

void pvr_eth_describe(const struct pvr_qp *qp, struct pvr_qp_detail *detail)
{
	const struct pvr_eth_sq *sq = pvr_eth_sq(qp);
	struct pvr_qp_wire *wire = &detail->wire;

	/* UC has no window. */
	if (!sq || qp->type != PVR_QPT_RC)
		return;
	wire->sends = true;
	memcpy(wire->dmac, qp->attr.ah_attr.dmac, sizeof(wire->dmac));
	wire->window = sq->window;
	wire->packets_in_flight = pvr_eth_distance(sq->una, sq->next);
	wire->round_trip = sq->srtt;
	wire->probes = sq->all_probes;
	wire->go_backs = sq->go_backs;
	if (qp->attr.timeout && silence_ns(sq) < timeout_ns(qp))
		wire->probe_after = silence_ns(sq);
}

/* Return: false if the queue pair has failed. */
static bool try_again(struct pvr_eth_sq *sq, uint64_t now)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_qp *qp = sq->qp;

	/* The guest has lowered its producer index, so no request waits. */
	if (pvr_wq_avail(&qp->sq) <= 0)
		return true;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	if (!pvr_requester_retry(qp, &wqe))
		return false;
	sq->progress = now;
	sq->has_gap = false;
	pvr_eth_go_back(sq);
	return true;
}

bool pvr_eth_check_timeout(struct pvr_eth_sq *sq, uint64_t now)
{
	return !is_timed(sq->qp) || now < sq->progress + timeout_ns(sq->qp) || try_again(sq, now);
}

void pvr_eth_timeout(struct pvr_qp *qp)
{
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);
	uint64_t now = pvr_now(qp->adapter->engine);

	if (!sq || !pvr_eth_is_sending(qp) || !is_timed(qp))
		return;
	if (!pvr_adapter_dma_ok(qp->adapter))
		sq->progress = now;
	if (now < sq->progress + timeout_ns(qp)) {
		if (now >= probe_due(sq))
			pvr_eth_probe(sq);
		pvr_eth_start_timer(sq);
		return;
	}
	if (try_again(sq, now)) {
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
		pvr_sched_kick(qp);
		pvr_eth_start_timer(sq);
	}
	pvr_publish(qp->adapter);
}
