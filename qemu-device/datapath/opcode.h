/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What there is to know of each operation of a send request. */
#ifndef PVR_OPCODE_H
#define PVR_OPCODE_H

#include "model/objects.h"

enum pvr_op_kind {
	PVR_OP_NONE, /* no operation of ours */
	PVR_OP_SEND,
	PVR_OP_WRITE,
	PVR_OP_READ,
	PVR_OP_ATOMIC,
	PVR_OP_LOCAL, /* stays at home, see datapath/local_ops.h */
};

/* Who may post it, on which queue pairs. */
enum pvr_op_right {
	PVR_OP_ANYBODY,
	PVR_OP_KERNEL, /* the guest's driver itself */
	PVR_OP_USER_OPS, /* and programs, if PVR_QP_USER_OPS */
};

struct pvr_opcode {
	enum pvr_op_kind kind;
	enum pvr_op_right right;
	uint32_t ext; /* PVR_EXT_* that it needs, or 0; not with PVR_OP_ANYBODY */
	uint8_t types; /* of connected queue pairs that have it: bits 1 << enum pvr_qp_type */
	bool recv; /* takes a receive request */
	bool imm; /* brings immediate data */
	bool answer; /* writes to the requester's memory */
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
