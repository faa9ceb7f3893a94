/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams that arrive, from wherever. */
#ifndef PVR_UD_RECEIVE_H
#define PVR_UD_RECEIVE_H

#include "core/sg.h"

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

#endif /* PVR_UD_RECEIVE_H */
