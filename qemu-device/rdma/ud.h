/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, including those of the GSI. */
#ifndef PVR_UD_H
#define PVR_UD_H

#include "rdma/requester.h"
#include "rdma/wr.h"

/* ----------------------------------------------------------------------- receiving */

#define PVR_MULTICAST_QPN 0xffffffu

struct pvr_datagram {
	const struct pvrdma_av *av; /* the destination, only for the GRH */
	const uint8_t *sgid;
	uint8_t gid_type; /* PVR_GID_TYPE_* of both */
	uint32_t src_qpn, qkey;
	uint32_t psn; /* counts the datagrams of the sender */
	__be32 imm; /* if has_imm */
	bool has_imm, solicited, multicast;
	/* Not 0: the receive request completes with this error. For the path of faults. */
	uint16_t recv_status;
	const struct pvr_sg *payload;
};

/**
 * pvr_ud_receive() - offer a datagram to a queue pair
 * @to: the adapter of @qp; its lock is held
 * @qp: the queue pair, or NULL if @to has no queue pair of the number
 *
 * Updates the counters of @to. Return: true if received, false if dropped.
 */
bool pvr_ud_receive(struct pvr_adapter *to, struct pvr_qp *qp, const struct pvr_datagram *dgram);

/*
 * Complete the receive request of the datagram with @dgram->recv_status, and fail @to. Nothing
 * but a count if @to would not receive it. The lock of the adapter of @to is held.
 */
void pvr_ud_fail_receive(struct pvr_qp *to, const struct pvr_datagram *dgram);

/* ------------------------------------------------------------------------- sending */

/* Retry delay of datagrams that wait for a GID query or a connection. */
#define PVR_UD_LATER_NS 2000000ull

/* Run a quantum of a UD or GSI queue pair. Datagrams do not wait for receive requests. */
enum pvr_quantum pvr_ud_run(struct pvr_qp *qp);

/* A datagram whose request has completed, and that is sent later. For the path of faults. */
struct pvr_ud_held {
	struct pvr_send_wqe wqe; /* only its header is valid */
	uint32_t size;
	uint8_t data[];
};

/* The treatment of the datagram at the head by the path of faults. */
struct pvr_ud_treatment {
	uint8_t copies; /* still to be sent; 0: it is lost */
	bool holds; /* none is sent: the function below sets @held */
	struct pvr_ud_held *held; /* charged to the adapter */
	const struct pvr_flips *flips; /* damage of its payload, or NULL */
	uint16_t recv_status; /* see struct pvr_datagram */
};

/*
 * Execute at most @max requests as pvr_ud_run() does, without faults. @treatment: of the only
 * request, if @max is 1; or NULL. After BUSY or a wait the caller executes the request again with
 * the rest of the treatment.
 */
enum pvr_quantum pvr_ud_run_treated(struct pvr_qp *qp, unsigned int max,
				    struct pvr_ud_treatment *treatment);
/*
 * Send @held, of @qp. Return: false if an adapter is locked: the same call later continues, and
 * skips members of a multicast group that have it.
 */
bool pvr_ud_send_held(struct pvr_qp *qp, struct pvr_ud_held *held);
void pvr_ud_free_held(struct pvr_adapter *adapter, struct pvr_ud_held *held);

/* ----------------------------------------------------------------------- lingering */

/*
 * DOC: lingering datagrams
 *
 * A program may post datagrams and destroy its queue pair at once, as mckey does. Then
 * the ring cannot hold datagrams that wait for other hosts: the adapter holds a copy of
 * each.
 */
int pvr_ud_linger_init(struct pvr_adapter *adapter);
void pvr_ud_linger_exit(struct pvr_adapter *adapter);

/*
 * Hold a copy of @dgram until it can be sent, or until @deadline (ns, as pvr_now()): then
 * it is sent to the connected hosts of its group only. An adapter holds at most 64
 * datagrams and 64 KiB; further datagrams are dropped.
 */
void pvr_ud_linger_add(struct pvr_adapter *adapter, uint32_t dst_qpn,
		       const struct pvr_datagram *dgram, uint64_t deadline);
/*
 * Send the held datagrams that can be sent. Return: whether a datagram to @dgid is still held: a
 * newer one to @dgid must be added behind it, because datagrams keep their order.
 */
bool pvr_ud_linger_goes_first(struct pvr_adapter *adapter, const uint8_t dgid[16]);
/* Drop all held datagrams. */
void pvr_ud_linger_drop(struct pvr_adapter *adapter);

#endif /* PVR_UD_H */
