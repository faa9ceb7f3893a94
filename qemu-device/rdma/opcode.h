/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What there is to know of each operation of a send request. */
#ifndef PVR_OPCODE_H
#define PVR_OPCODE_H

#include "core/objects.h"

enum pvr_op_kind {
	PVR_OP_NONE, /* no operation of ours */
	PVR_OP_SEND,
	PVR_OP_WRITE,
	PVR_OP_READ,
	PVR_OP_ATOMIC,
	PVR_OP_LOCAL, /* stays at home, see rdma/local_ops.h */
};

/* Who may post one that is limited. */
enum pvr_op_right {
	PVR_OP_KERNEL, /* the guest's driver itself */
	PVR_OP_USER_OPS, /* and programs, if PVR_QP_USER_OPS */
};

struct pvr_opcode {
	uint8_t kind; /* enum pvr_op_kind */
	uint8_t right; /* enum pvr_op_right, if limited */
	/* Connected queue pairs on which it may be posted, by all or by some, see right. */
	uint8_t types, limited; /* bits 1 << enum pvr_qp_type */
	bool recv; /* takes a receive request */
	bool imm; /* brings immediate data */
	uint8_t local, remote; /* PVR_ACCESS_* that it needs at either end */
	uint32_t ext; /* PVR_EXT_* that it needs, if it is limited */
	enum pvrdma_wc_opcode done; /* what it completes as */
};

#define PVR_OPCODES (PVRDMA_WR_BIND_MW + 1)
extern const struct pvr_opcode pvr_opcodes[PVR_OPCODES];

/* Any @opcode is allowed. */
static inline const struct pvr_opcode *pvr_opcode(uint32_t opcode)
{
	/* One without meaning stands for all others. */
	return &pvr_opcodes[opcode < PVR_OPCODES ? opcode : PVRDMA_WR_LSO];
}

#endif /* PVR_OPCODE_H */
