/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Quality of service: limits of the traffic of adapters and fabrics, and weights.
 *
 * DOC: quanta of a limited adapter
 *
 * - A quantum reserves bytes and messages from the buckets of its adapter and of its fabric.
 *   The buckets return the time from which it may use them. Until then a timer of the adapter
 *   waits, and the adapter is on no list of its worker: the wait uses no CPU.
 * - A reservation is about what a limit permits in 1 ms, so that limits are exact over short
 *   times. A quantum that starts late also takes what its buckets have saved.
 * - Reservations of a fabric are served in the order in which they were made, so its adapters
 *   get equal shares.
 * - After the quantum the adapter gives back, or takes, the difference to its traffic.
 * - A requester pays for all bytes that its requests move, also those of RDMA READ.
 * - Quanta that send nothing have no limit: those that flush a queue pair, or that resume the
 *   requester of a peer.
 *
 * DOC: weights
 *
 * An adapter of weight 100 runs one quantum each time its worker visits it, one of weight 200
 * two, and one of weight 50 one in two visits. The weight matters only among the adapters of one
 * worker.
 *
 * Limits change only while no worker runs.
 */
#ifndef PVR_SHAPER_H
#define PVR_SHAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/bucket.h"
#include "core/lock.h"
#include "core/objects.h"

/* The limits of an adapter or of a fabric. */
struct pvr_limit {
	struct pvr_qos qos;
	struct pvr_lock lock; /* of a fabric: its adapters may have several workers */
	struct pvr_bucket bytes, messages; /* unused if the limit is 0 */
	/* Of a quantum at least; those of an unlimited quantum if the limit is 0. */
	uint32_t quantum_bytes, quantum_messages;
};

struct pvr_fabric_limit {
	LIST_ENTRY(pvr_fabric_limit) link; /* of the engine */
	char fabric[PVR_NAME_MAX];
	struct pvr_limit limit;
};

/* NULL in an adapter without limits and with the default weight. */
struct pvr_shaper {
	struct pvr_adapter *adapter;
	struct pvr_limit own;
	struct pvr_limit *fabric; /* or NULL */
	struct pvr_timer timer; /* until a reservation may be used */
	bool is_waiting; /* the next quantum that sends waits for the timer */
	bool has_reserved;
	uint64_t start; /* of the reservation */
	uint32_t bytes, messages; /* reserved */
	uint32_t turns; /* in percent of a quantum; see weights */
	uint64_t waiting_since;
	/* The quantum so far. */
	uint64_t sent_bytes, sent_messages;
	/* At the begin of the quantum, see pvr_shaper_count(). */
	uint64_t tx_bytes, tx_messages, sq_offset;
};

/* Return: whether the adapter's visit by its worker runs a quantum, by its weight. */
bool pvr_shaper_take_turn(struct pvr_shaper *shaper);
/* Return: whether the worker runs another quantum before it visits the next adapter. */
bool pvr_shaper_has_turn(const struct pvr_shaper *shaper);

/*
 * Prepare a quantum of @qp: set adapter->quantum. Return: false: the adapter waits for its
 * timer, and runs no quantum.
 */
bool pvr_shaper_begin(struct pvr_shaper *shaper, const struct pvr_qp *qp);
/* The quantum is over: pay for it. Also after a quantum without pvr_shaper_begin(). */
void pvr_shaper_end(struct pvr_shaper *shaper);
/* No queue pair is ready: give the reservation back. */
void pvr_shaper_rest(struct pvr_shaper *shaper);

/*
 * Return: whether a QP that is destroyed may send its last datagrams: they are paid for, but do
 * not wait. A guest that destroys one QP after the other does not exceed its limits by them.
 */
bool pvr_shaper_may_end_qp(struct pvr_shaper *shaper);

/* The quantum of @qp begins; for pvr_shaper_count(). */
void pvr_shaper_start_count(struct pvr_shaper *shaper, const struct pvr_qp *qp);
/*
 * Take the traffic of a quantum from the counters of the adapter: for paths that count it
 * before the quantum ends.
 */
void pvr_shaper_count(struct pvr_shaper *shaper, const struct pvr_qp *qp);
/* Take what a path has sent: for paths that count it when the response comes. */
static inline void pvr_shaper_sent(struct pvr_shaper *shaper, uint64_t bytes, uint64_t messages)
{
	shaper->sent_bytes += bytes;
	shaper->sent_messages += messages;
}

/* Return: whether a quantum of @qp sends nothing, so that it needs no reservation. */
static inline bool pvr_shaper_is_free(const struct pvr_qp *qp)
{
	return qp->rnr_resume_pending || qp->state == PVR_QPS_SQE || qp->state == PVR_QPS_ERR;
}

/* Called when an adapter is created: apply the limits of its fabric. Return: 0 or -ENOMEM. */
int pvr_shaper_join(struct pvr_adapter *adapter, const struct pvr_qos *qos);
void pvr_shaper_leave(struct pvr_adapter *adapter);
/* Free the limits of all fabrics. */
void pvr_shaper_exit(struct pvr_engine *engine);

#endif /* PVR_SHAPER_H */
