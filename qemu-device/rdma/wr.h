/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work requests: opcodes, their memory, requests to a responder, syndromes. */
#ifndef PVR_WR_H
#define PVR_WR_H

#include "core/sg.h"
#include "core/wq.h"

/* ------------------------------------------------------------------------- opcodes */

enum pvr_op_kind {
	PVR_OP_NONE, /* unknown operation */
	PVR_OP_SEND,
	PVR_OP_WRITE,
	PVR_OP_READ,
	PVR_OP_ATOMIC,
	PVR_OP_ATOMIC_WRITE,
	PVR_OP_FLUSH,
	PVR_OP_LOCAL, /* has no responder, see pvr_local_op() */
};

/* The posters of a limited opcode. */
enum pvr_op_right {
	PVR_OP_KERNEL, /* the guest's driver itself */
	PVR_OP_USER_OPS, /* also programs, with PVR_QP_USER_OPS */
};

struct pvr_opcode {
	uint8_t kind; /* enum pvr_op_kind */
	uint8_t right; /* enum pvr_op_right, if limited */
	/*
	 * Types of connected queue pairs: types for all posters, limited only by right.
	 */
	uint8_t types, limited; /* bits 1 << enum pvr_qp_type */
	bool recv; /* consumes a receive request */
	bool imm; /* carries immediate data */
	uint8_t local, remote; /* required PVR_ACCESS_* of the requester, of the responder */
	uint32_t ext; /* required PVR_EXT_*, if limited */
	uint32_t done; /* opcode of the CQE: enum pvrdma_wc_opcode, PVR_WC_* */
};

#define PVR_OPCODES (PVR_WR_FLUSH + 1)
extern const struct pvr_opcode pvr_opcodes[PVR_OPCODES];

/* @opcode may have any value. */
static inline const struct pvr_opcode *pvr_opcode(uint32_t opcode)
{
	/* LSO, an unsupported opcode, stands for all out of range. */
	const struct pvr_opcode *op = &pvr_opcodes[opcode < PVR_OPCODES ? opcode : PVRDMA_WR_LSO];

	pvr_keep(op);
	return op;
}

/* ------------------------------------------------------------------- gather, check */

static inline bool pvr_inline_ok(const struct pvr_wq *sq, const struct pvr_send_wqe *wqe,
				 uint32_t access)
{
	/* RDMA READ and atomics need SGEs for their result. */
	return !access && !wqe->hdr.num_sge && wqe->hdr.total_len <= sq->max_inline;
}

/**
 * pvr_gather() - find the local memory of a send request, for its payload or its result
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

/* For limited opcodes: true if the QP's extensions and poster permit @op. */
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

/* @done: bytes that have been sent. */
static inline bool pvr_length_ok(const struct pvr_opcode *op, uint64_t length, uint64_t done)
{
	if (op->kind >= PVR_OP_ATOMIC)
		return length == (op->kind == PVR_OP_ATOMIC ? sizeof(uint64_t) : 0) && !done;
	return length <= PVR_MAX_MSG_SIZE && done <= length;
}

/**
 * pvr_prepare() - find the memory of a request that goes to a peer
 * @op: the operation of @wqe, checked by pvr_may_post()
 * @done: bytes that have been sent
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which the request fails.
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

/* The reason of a status of pvr_prepare(), for logs. */
static inline const char *pvr_prepare_why(const struct pvr_qp *qp, const struct pvr_opcode *op,
					  enum pvrdma_wc_status status)
{
	if (op->local && !qp->attr.max_rd_atomic)
		return "RDMA READ or atomic with max_rd_atomic 0";
	if (status == PVRDMA_WC_LOC_LEN_ERR)
		return "message too long, atomic that is not 8 bytes, or ATOMIC WRITE or FLUSH with SGEs";
	return "SGE outside its lkey's range or rights, or num_sge above max_send_sge";
}

/* ------------------------------------------------------ requests to a responder */

/* Messages that a quantum has completed; added to the counters at its end. */
struct pvr_quantum_stats {
	/* No neighbors: gcc would add to both at once, by six instructions more. */
	uint64_t msgs, reads, bytes, atomics;
	uint64_t lost_msgs, lost_bytes; /* of them, UC messages that were dropped */
};

/*
 * One fragment of a message. Large messages have several fragments, executed in order, so
 * that they do not delay other queue pairs. Most messages have one.
 */
struct pvr_request {
	const struct pvr_req_src *from;
	const struct pvr_send_wqe *wqe; /* all requester checks are done */
	const struct pvr_opcode *op; /* the wqe's */
	const struct pvr_sg *local; /* the requester's memory */
	uint64_t length; /* of the message */
	uint64_t offset, chunk; /* the fragment */
	uint32_t psns; /* of the message */
	bool last; /* the last or only fragment */
};

enum pvr_syndrome_kind {
	PVR_SYN_ACK, /* the fragment is done */
	PVR_SYN_RNR, /* no receive request: retry after wait_ns */
	PVR_SYN_NAK, /* complete in error with status */
	PVR_SYN_NONE, /* no response */
	PVR_SYN_PARTIAL, /* from another host: payload is missing, retry when it has come */
	PVR_SYN_PAGE, /* a page is absent at either side: retry after wait_ns, no retry counts */
};

/* Fits in a register: each fragment returns one. */
struct pvr_syndrome {
	uint16_t kind; /* enum pvr_syndrome_kind */
	uint16_t status; /* enum pvrdma_wc_status */
	uint32_t wait_ns;
};

/*
 * Return: the number of PSNs of a message, one per packet of the requester's path MTU.
 * Both sides use this number, so that sides with different MTUs agree.
 */
static inline uint32_t pvr_psns(const struct pvr_qp *from, uint64_t length)
{
	/*
	 * A packet has 128 << path_mtu bytes; an empty message has one packet. Divisions
	 * are slow.
	 */
	return ((length - (length != 0)) >> (7 + from->attr.path_mtu)) + 1;
}

/* --------------------------------------------------------------- local operations */

/*
 * Execute a local operation. Long page lists take time: @bytes grows by the number of
 * bytes whose copy takes as long.
 * Return: 0, or -errno if the request completes with MW_BIND_ERR.
 */
int pvr_local_op(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes);

#endif /* PVR_WR_H */
