/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work requests: opcodes, the memory that they name, requests on their way to a responder. */
#ifndef PVR_WR_H
#define PVR_WR_H

#include "core/sg.h"
#include "core/wq.h"

/* ------------------------------------------------------------------------- opcodes */

enum pvr_op_kind {
	PVR_OP_NONE, /* no operation of ours */
	PVR_OP_SEND,
	PVR_OP_WRITE,
	PVR_OP_READ,
	PVR_OP_ATOMIC,
	PVR_OP_LOCAL, /* stays at home, see rdma/wr.h */
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

/* ------------------------------------------------------------------- gather, check */

static inline bool pvr_inline_ok(const struct pvr_wq *sq, const struct pvr_send_wqe *wqe,
				 uint32_t access)
{
	/* What comes back, of RDMA READ and atomics, needs a place to go to. */
	return !access && !wqe->hdr.num_sge && wqe->hdr.total_len <= sq->max_inline;
}

/**
 * pvr_gather() - find what a send request sends, or where it wants an answer
 * @wqe: must live as long as @sg
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 to read
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which the request fails.
 */
static inline enum pvrdma_wc_status pvr_gather(struct pvr_sg *sg, const struct pvr_qp *qp,
					       struct pvr_send_wqe *wqe, uint32_t access)
{
	if (pvr_wqe_is_inline(&qp->sq, wqe)) {
		if (!pvr_inline_ok(&qp->sq, wqe, access))
			return PVRDMA_WC_LOC_QP_OP_ERR;
		pvr_sg_build_flat(sg, qp->adapter, wqe->data, wqe->hdr.total_len);
		return PVRDMA_WC_SUCCESS;
	}
	if (wqe->hdr.num_sge > qp->sq.max_sge)
		return PVRDMA_WC_LOC_QP_OP_ERR;
	if (pvr_sg_build(sg, qp, qp->pd, wqe->sge, wqe->hdr.num_sge, access))
		return PVRDMA_WC_LOC_PROT_ERR;
	return PVRDMA_WC_SUCCESS;
}

/* Of those that not everybody may post. */
static inline bool pvr_has_right(const struct pvr_qp *qp, const struct pvr_opcode *op)
{
	if (op->ext & ~qp->adapter->features)
		return false;
	return qp->pd->uc == &qp->adapter->kernel_uc ||
	       (op->right == PVR_OP_USER_OPS && qp->user_ops);
}

static inline bool pvr_may_post(const struct pvr_qp *qp, const struct pvr_opcode *op)
{
	if (op->types >> qp->type & 1)
		return true;
	return (op->limited >> qp->type & 1) && pvr_has_right(qp, op);
}

/* @done: bytes of it that have been sent. */
static inline bool pvr_length_ok(const struct pvr_opcode *op, uint64_t length, uint64_t done)
{
	if (op->kind == PVR_OP_ATOMIC)
		return length == sizeof(uint64_t) && !done;
	return length <= PVR_MAX_MSG_SIZE && done <= length;
}

/**
 * pvr_prepare() - find the memory of a request that goes to a peer
 * @op: that of @wqe, which may be posted
 * @done: bytes that have been sent
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which it fails.
 */
static pvr_always_inline enum pvrdma_wc_status
pvr_prepare(struct pvr_sg *sg, const struct pvr_qp *qp, struct pvr_send_wqe *wqe,
	    const struct pvr_opcode *op, uint64_t done)
{
	enum pvrdma_wc_status status;

	if (op->local && !qp->attr.max_rd_atomic)
		return PVRDMA_WC_LOC_QP_OP_ERR;
	status = pvr_gather(sg, qp, wqe, op->local);
	if (status != PVRDMA_WC_SUCCESS)
		return status;
	return pvr_length_ok(op, sg->total, done) ? PVRDMA_WC_SUCCESS : PVRDMA_WC_LOC_LEN_ERR;
}

/* Why pvr_prepare() has said so. */
static inline const char *pvr_prepare_why(const struct pvr_qp *qp, const struct pvr_opcode *op,
					  enum pvrdma_wc_status status)
{
	if (op->local && !qp->attr.max_rd_atomic)
		return "RDMA READ or atomic with max_rd_atomic 0";
	if (status == PVRDMA_WC_LOC_LEN_ERR)
		return "message too long, or an atomic that is not 8 bytes";
	return "send of forbidden memory, or of too many pieces";
}

/* --------------------------------------------------- on the way to the responder */

/* Messages that a quantum has completed, to be counted at its end. */
struct pvr_quantum_stats {
	uint64_t msgs, bytes, reads, atomics;
	uint64_t lost_msgs, lost_bytes; /* of them, messages of UC that nobody took */
};

/*
 * One fragment of a message. A message comes in pieces, in order, so that a large one
 * does not keep others waiting; most have just one.
 */
struct pvr_request {
	const struct pvr_req_src *from;
	const struct pvr_send_wqe *wqe; /* checked, but for what the responder checks */
	const struct pvr_opcode *op; /* the wqe's */
	const struct pvr_sg *local; /* the requester's memory */
	uint64_t length; /* of the message */
	uint64_t offset, chunk; /* the fragment */
	uint32_t psns; /* of the message */
	bool last; /* it is the last, or only, piece */
};

enum pvr_syndrome_kind {
	PVR_SYN_ACK, /* the fragment is done */
	PVR_SYN_RNR, /* no receive request: try again after wait_ns */
	PVR_SYN_NAK, /* complete in error with status */
	PVR_SYN_NONE, /* nobody answers */
	PVR_SYN_PARTIAL, /* from another host: payload is missing, try again when it has come */
};

/* Small enough for a register, as every message gets one. */
struct pvr_syndrome {
	uint16_t kind; /* enum pvr_syndrome_kind */
	uint16_t status; /* enum pvrdma_wc_status */
	uint32_t wait_ns;
};

/*
 * How many PSNs the message takes: one per packet of the requester's path MTU. Both
 * sides count by it, so that ends with different MTUs stay in step.
 */
static inline uint32_t pvr_psns(const struct pvr_qp *from, uint64_t length)
{
	/* 128 << path_mtu bytes each, and one for none at all; divisions are slow. */
	return ((length - (length != 0)) >> (7 + from->attr.path_mtu)) + 1;
}

/* --------------------------------------------------------------- local operations */

/*
 * Adds to @bytes how much copying would have taken as long: page lists are long.
 * Return: 0, or -errno if the request completes with MW_BIND_ERR.
 */
int pvr_local_op(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes);

#endif /* PVR_WR_H */
