/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, those of the GSI included. */
#ifndef PVR_UD_H
#define PVR_UD_H

#include "rdma/requester.h"
#include "rdma/wr.h"

/* ------------------------------------------------------------------------ arriving */

#define PVR_MULTICAST_QPN 0xffffffu

struct pvr_datagram {
	const struct pvrdma_av *av; /* where to, as the GRH has it; of no other use */
	const uint8_t *sgid;
	uint8_t gid_type; /* PVR_GID_TYPE_* of both */
	uint32_t src_qpn, qkey;
	__be32 imm; /* if has_imm */
	bool has_imm, solicited, multicast;
	const struct pvr_sg *payload;
};

/**
 * pvr_ud_receive() - offer a datagram to a queue pair
 * @to: whose adapter it is; held
 * @qp: the queue pair, or NULL if @to has none of the number
 *
 * Counts at @to. Return: whether it was taken; else it is dropped.
 */
bool pvr_ud_receive(struct pvr_adapter *to, struct pvr_qp *qp, const struct pvr_datagram *dgram);

/* ------------------------------------------------------------------------- sending */

/* Who waits tries again so much later: how to get there may be known by then. */
#define PVR_UD_LATER_NS 2000000ull

/* A quantum of a UD or GSI queue pair: datagrams do not wait for receivers. */
enum pvr_quantum pvr_ud_run(struct pvr_qp *qp);

/* ----------------------------------------------------------------------- lingering */

/*
 * DOC: senders that do not wait
 *
 * A program may post its datagrams and destroy its queue pair at once, as mckey does. Then they
 * cannot wait in its ring: what has to go to other hosts is copied, and waits with the adapter.
 */
int pvr_ud_linger_init(struct pvr_adapter *adapter);
void pvr_ud_linger_exit(struct pvr_adapter *adapter);

/*
 * Keeps a copy, until it can be sent or @deadline (pvr_now()) is over: then it goes to those
 * of a group that can be reached. Of an adapter's 64 datagrams or 64 KiB; what is more gets
 * lost.
 */
void pvr_ud_linger_add(struct pvr_adapter *adapter, uint32_t dst_qpn,
		       const struct pvr_datagram *dgram, uint64_t deadline);
/* All that are left get lost. */
void pvr_ud_linger_drop(struct pvr_adapter *adapter);

#endif /* PVR_UD_H */
