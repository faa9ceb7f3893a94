/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What there is to know of each operation of a send request. */
#include "rdma/opcode.h"

/* IBTA vol. 1, table 38. */
#define RC (1u << PVR_QPT_RC)
#define BOTH (RC | 1u << PVR_QPT_UC)

/*
 * User space numbers some opcodes differently, and stock providers pass its numbers on:
 * then they are the guest kernel's alone. FAST_REG_MR always is, as its page list could
 * name anybody's memory.
 */
const struct pvr_opcode pvr_opcodes[PVR_OPCODES] = {
	[PVRDMA_WR_RDMA_WRITE] = {
		.kind = PVR_OP_WRITE, .types = BOTH, .remote = PVR_ACCESS_REMOTE_WRITE,
		.done = PVRDMA_WC_RDMA_WRITE,
	},
	[PVRDMA_WR_RDMA_WRITE_WITH_IMM] = {
		.kind = PVR_OP_WRITE, .types = BOTH, .remote = PVR_ACCESS_REMOTE_WRITE,
		.recv = true, .imm = true, .done = PVRDMA_WC_RDMA_WRITE,
	},
	[PVRDMA_WR_SEND] = {
		.kind = PVR_OP_SEND, .types = BOTH, .recv = true, .done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_SEND_WITH_IMM] = {
		.kind = PVR_OP_SEND, .types = BOTH, .recv = true, .imm = true,
		.done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_SEND_WITH_INV] = {
		.kind = PVR_OP_SEND, .right = PVR_OP_USER_OPS, .limited = RC, .recv = true,
		.done = PVRDMA_WC_SEND,
	},
	[PVRDMA_WR_RDMA_READ] = {
		.kind = PVR_OP_READ, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_READ, .done = PVRDMA_WC_RDMA_READ,
	},
	[PVRDMA_WR_ATOMIC_CMP_AND_SWP] = {
		.kind = PVR_OP_ATOMIC, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_ATOMIC, .done = PVRDMA_WC_COMP_SWAP,
	},
	[PVRDMA_WR_ATOMIC_FETCH_AND_ADD] = {
		.kind = PVR_OP_ATOMIC, .types = RC, .local = PVR_ACCESS_LOCAL_WRITE,
		.remote = PVR_ACCESS_REMOTE_ATOMIC, .done = PVRDMA_WC_FETCH_ADD,
	},
	[PVRDMA_WR_LOCAL_INV] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_USER_OPS, .limited = BOTH,
		.done = PVRDMA_WC_LOCAL_INV,
	},
	[PVRDMA_WR_FAST_REG_MR] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_KERNEL, .limited = BOTH,
		.done = PVRDMA_WC_FAST_REG_MR,
	},
	[PVRDMA_WR_BIND_MW] = {
		.kind = PVR_OP_LOCAL, .right = PVR_OP_USER_OPS, .ext = PVR_EXT_MW, .limited = BOTH,
		.done = PVRDMA_WC_BIND_MW,
	},
};
