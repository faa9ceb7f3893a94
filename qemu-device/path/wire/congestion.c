// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion notification packets (CNPs).
 *
 * Source: IBTA volume 1, annex A17.9.2 and A17.9.3 (RoCEv2 congestion management).
 *
 * DOC: notification and reaction
 *
 * - A packet of RC or UC with the mark CE is answered by a CNP to its sender, at most one for
 *   a queue pair in PVR_ETH_CNP_NS.
 * - A CNP reduces the window of the requester by a share: all congested, by a half; rarely
 *   congested, by little. The share fades without CNPs, as in DCQCN.
 * - READ data have no ACKs and no window. A CNP halves the packets of a turn of the responder,
 *   which then come at intervals. Each turn without a CNP adds a packet.
 * - Neither falls below PVR_ETH_WINDOW_MIN, so forged CNPs stop no queue pair.
 */
#include "path/wire/internal.h"

#define SHARE_ONE (1u << 16)
#define SHARE_STEP 16u /* the share moves by 1/16 */
#define FADE_NS 55000u
#define FADE_MAX 256u /* steps after which nothing is left */
#define DSCP_CNP 48u

static struct pvr_roce_frame cnp_of(void)
{
	return (struct pvr_roce_frame){
		.opcode = PVR_ROCE_OP_CNP,
		.becn = true,
	};
}

void pvr_eth_marked(struct pvr_qp *qp)
{
	uint64_t *last = &qp->adapter->wire->qps[qp->handle].cnp_sent;
	uint64_t now = pvr_now(qp->adapter->engine);
	struct pvr_roce_frame frame = cnp_of();

	if (*last && now - *last < PVR_ETH_CNP_NS)
		return;
	if (!pvr_eth_address(&frame, qp))
		return;
	frame.traffic_class = DSCP_CNP << 2;
	if (pvr_eth_send(qp->adapter, &frame, NULL, 0) != PVR_ETH_SENT)
		return;
	*last = now;
	pvr_eth_count(&qp->adapter->wire->port->stats.tx_cnps, 1);
}

static void fade(struct pvr_eth_sq *sq, uint64_t now)
{
	uint64_t steps = (now - sq->share_time) / FADE_NS;

	sq->share_time += steps * FADE_NS;
	if (steps > FADE_MAX)
		steps = FADE_MAX;
	while (steps--)
		sq->share -= sq->share / SHARE_STEP;
}

static void narrow(struct pvr_eth_sq *sq, uint64_t now)
{
	if (!sq->share_time) { /* the first one: DCQCN begins with all */
		sq->share = SHARE_ONE;
		sq->share_time = now;
	}
	fade(sq, now);
	sq->share += (SHARE_ONE - sq->share) / SHARE_STEP;
	sq->window -= (uint32_t)((uint64_t)sq->window * sq->share / (2 * SHARE_ONE));
	if (sq->window < PVR_ETH_WINDOW_MIN)
		sq->window = PVR_ETH_WINDOW_MIN;
	sq->acked = 0;
}

static void slow_down(struct pvr_eth_rq *rq)
{
	rq->turn = rq->turn ? rq->turn / 2 : PVR_ETH_ANSWER_PACKETS / 2;
	if (rq->turn < PVR_ETH_WINDOW_MIN)
		rq->turn = PVR_ETH_WINDOW_MIN;
}

void pvr_eth_congested(struct pvr_qp *qp)
{
	uint64_t *last = &qp->adapter->wire->qps[qp->handle].cnp_received;
	uint64_t now = pvr_now(qp->adapter->engine);

	pvr_eth_count(&qp->adapter->wire->port->stats.rx_cnps, 1);
	if (*last && now - *last < PVR_ETH_CNP_NS)
		return;
	*last = now;
	if (pvr_eth_sq(qp))
		narrow(pvr_eth_sq(qp), now);
	if (pvr_eth_rq(qp) && pvr_eth_rq(qp)->count)
		slow_down(pvr_eth_rq(qp));
}

unsigned int pvr_eth_turn(const struct pvr_eth_rq *rq)
{
	return rq->turn ? rq->turn : PVR_ETH_ANSWER_PACKETS;
}

void pvr_eth_turn_done(struct pvr_eth_rq *rq)
{
	if (rq->turn && ++rq->turn >= PVR_ETH_ANSWER_PACKETS)
		rq->turn = 0;
}
