/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Elements of a send queue: the operations, and functions that write each part of an
 * element. Posting by list (post.c) and by function (wr_ex.c) both use them.
 *
 * An element is written into the free slot at sq.tail under sq.lock. pvr_wq_advance()
 * then passes it. A request that fails half-way is not passed. The device gets the number
 * of the request as its wr_id, see struct pvr_wq.
 */
#ifndef PVR_SQE_H
#define PVR_SQE_H

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <util/compiler.h>

#include "pvrdma.h"

/* Parts of an element besides its header, struct pvr_send_op.carries. */
#define PVR_SQE_RDMA (1u << 0) /* remote address and rkey */
#define PVR_SQE_ATOMIC (1u << 1)
#define PVR_SQE_IMM (1u << 2)
#define PVR_SQE_INV (1u << 3) /* rkey to invalidate, instead of the immediate data */
#define PVR_SQE_BIND (1u << 4) /* memory window and its address range */
#define PVR_SQE_SGES (1u << 5) /* scatter/gather entries */
#define PVR_SQE_INLINE (1u << 6) /* inline data */
#define PVR_SQE_FUNCTION (1u << 7) /* operands that only ibv_wr_*() can pass */

struct pvr_send_op {
	uint8_t opcode; /* enum pvrdma_wr_opcode */
	uint16_t qp_types; /* 1 << ibv_qp_type; 0: not supported */
	uint16_t carries; /* PVR_SQE_* */
	uint32_t features; /* required PVR_EXT_*, otherwise EOPNOTSUPP */
};

#define PVR_NUM_SEND_OPS (IBV_WR_ATOMIC_WRITE + 1) /* the last one of verbs */

#define PVR_OPS_RC (1u << IBV_QPT_RC | 1u << IBV_QPT_XRC_SEND)
#define PVR_OPS_CONN (PVR_OPS_RC | 1u << IBV_QPT_UC)
#define PVR_OPS_ALL (PVR_OPS_CONN | 1u << IBV_QPT_UD)
#define PVR_SQE_DATA (PVR_SQE_SGES | PVR_SQE_INLINE)

/* By ibv_wr_opcode. In the header: the functions of wr_ex.c know their opcode. */
static const struct pvr_send_op pvr_send_ops[PVR_NUM_SEND_OPS] = {
	[IBV_WR_RDMA_WRITE] = { PVRDMA_WR_RDMA_WRITE, PVR_OPS_CONN, PVR_SQE_RDMA | PVR_SQE_DATA },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { PVRDMA_WR_RDMA_WRITE_WITH_IMM, PVR_OPS_CONN,
					 PVR_SQE_RDMA | PVR_SQE_IMM | PVR_SQE_DATA },
	[IBV_WR_SEND] = { PVRDMA_WR_SEND, PVR_OPS_ALL, PVR_SQE_DATA },
	[IBV_WR_SEND_WITH_IMM] = { PVRDMA_WR_SEND_WITH_IMM, PVR_OPS_ALL,
				   PVR_SQE_IMM | PVR_SQE_DATA },
	[IBV_WR_RDMA_READ] = { PVRDMA_WR_RDMA_READ, PVR_OPS_RC, PVR_SQE_RDMA | PVR_SQE_SGES },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { PVRDMA_WR_ATOMIC_CMP_AND_SWP, PVR_OPS_RC,
					PVR_SQE_ATOMIC | PVR_SQE_SGES },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { PVRDMA_WR_ATOMIC_FETCH_AND_ADD, PVR_OPS_RC,
					  PVR_SQE_ATOMIC | PVR_SQE_SGES },
	[IBV_WR_LOCAL_INV] = { PVRDMA_WR_LOCAL_INV, PVR_OPS_CONN, PVR_SQE_INV, PVR_EXT_USER_OPS },
	[IBV_WR_BIND_MW] = { PVRDMA_WR_BIND_MW, PVR_OPS_CONN, PVR_SQE_BIND,
			     PVR_EXT_USER_OPS | PVR_EXT_MW },
	[IBV_WR_SEND_WITH_INV] = { PVRDMA_WR_SEND_WITH_INV, PVR_OPS_CONN,
				   PVR_SQE_INV | PVR_SQE_DATA, PVR_EXT_USER_OPS },
	[IBV_WR_FLUSH] = { PVR_WR_FLUSH, PVR_OPS_RC, PVR_SQE_FUNCTION,
			   PVR_EXT_USER_OPS | PVR_EXT_FLUSH },
	[IBV_WR_ATOMIC_WRITE] = { PVR_WR_ATOMIC_WRITE, PVR_OPS_RC, PVR_SQE_FUNCTION,
				  PVR_EXT_USER_OPS | PVR_EXT_ATOMIC_WRITE },
	/* The device does not support other opcodes. */
};

/*
 * Returns 0 and sets *op, or returns the errno of ibv_post_send(3) for this opcode on
 * such a QP.
 */
int pvr_send_op(const struct pvr_context *ctx, enum ibv_qp_type type, enum ibv_wr_opcode opcode,
		const struct pvr_send_op **op);

/* Returns the value of pvr_qp.send_ops. */
uint32_t pvr_send_ops_of(const struct pvr_context *ctx, enum ibv_qp_type type);

/* The value of pvr_qp.plain_ops: connected QPs name their peer in no request. */
static inline uint32_t pvr_plain_ops_of(enum ibv_qp_type type)
{
	const uint32_t both = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_SEND;

	if (type == IBV_QPT_UC)
		return both;
	return type == IBV_QPT_RC ? both | 1u << IBV_WR_RDMA_READ : 0;
}

/*
 * Returns the errno of an opcode that pvr_sqe_begin() refuses, 0 if only the flags are
 * wrong.
 */
int pvr_sqe_why_not(const struct pvr_qp *qp, enum ibv_wr_opcode opcode);

/* Flags that are copied into the element; both sides use the same bits. */
#define PVR_SQE_FLAGS_PASSED (PVR_SEND_FENCE | PVR_SEND_SIGNALED | PVR_SEND_SOLICITED)
#define PVR_SQE_FLAGS_KNOWN (PVR_SQE_FLAGS_PASSED | IBV_SEND_INLINE)

static_assert(PVR_SEND_FENCE == IBV_SEND_FENCE && PVR_SEND_SIGNALED == IBV_SEND_SIGNALED &&
		      PVR_SEND_SOLICITED == IBV_SEND_SOLICITED,
	      "send flags are passed as they are");

static __always_inline bool pvr_sqe_ok(const struct pvr_qp *qp, enum ibv_wr_opcode opcode,
				       unsigned int flags)
{
	return likely(qp->verbs_qp.qp.state >= IBV_QPS_RTS) && opcode < PVR_NUM_SEND_OPS &&
	       (qp->send_ops >> opcode & 1) && !(flags & ~PVR_SQE_FLAGS_KNOWN) &&
	       (!(flags & IBV_SEND_INLINE) || (pvr_send_ops[opcode].carries & PVR_SQE_INLINE));
}

/* Writes the whole header, so that no value of the slot's former request remains. */
static __always_inline void pvr_sqe_write_header(struct pvr_sq_wqe *hdr, uint32_t number,
						 uint32_t opcode, unsigned int flags)
{
	hdr->wr_id = htole64(number);
	hdr->num_sge = 0;
	hdr->total_len = 0;
	hdr->opcode = htole32(opcode);
	hdr->send_flags = htole32(flags);
	memset(&hdr->ex, 0, sizeof(*hdr) - offsetof(struct pvr_sq_wqe, ex));
}

/* Begins the element of a request with the arguments of ibv_post_send(3). Returns an errno. */
static __always_inline int pvr_sqe_begin(struct pvr_qp *qp, enum ibv_wr_opcode opcode,
					 uint64_t wr_id, unsigned int flags,
					 struct pvr_sq_wqe **hdr, const struct pvr_send_op **op)
{
	uint32_t number;
	int err;

	if (unlikely(!pvr_sqe_ok(qp, opcode, flags))) {
		err = pvr_sqe_why_not(qp, opcode);
		return err ? err : EINVAL; /* unsupported flags */
	}
	number = pvr_wq_tail(&qp->sq);
	if (unlikely(pvr_wq_full(&qp->sq, number)))
		return ENOMEM;
	*op = &pvr_send_ops[opcode];
	*hdr = pvr_wq_slot(&qp->sq, number);
	qp->sq.wr_ids[number & qp->sq.mask] = wr_id;
	pvr_sqe_write_header(*hdr, number, (*op)->opcode, flags & PVR_SQE_FLAGS_PASSED);
	return 0;
}

static inline void pvr_sqe_rdma(struct pvr_sq_wqe *hdr, uint64_t remote_addr, uint32_t rkey)
{
	hdr->wr.rdma.remote_addr = htole64(remote_addr);
	hdr->wr.rdma.rkey = htole32(rkey);
}

static inline void pvr_sqe_atomic(struct pvr_sq_wqe *hdr, uint64_t remote_addr, uint32_t rkey,
				  uint64_t compare_add, uint64_t swap)
{
	hdr->wr.atomic.remote_addr = htole64(remote_addr);
	hdr->wr.atomic.rkey = htole32(rkey);
	hdr->wr.atomic.compare_add = htole64(compare_add);
	hdr->wr.atomic.swap = htole64(swap);
}

/* Copies the address handle, which the application may then destroy. */
static inline int pvr_sqe_ud(struct pvr_sq_wqe *hdr, struct ibv_ah *ah, uint32_t remote_qpn,
			     uint32_t remote_qkey)
{
	if (unlikely(!ah))
		return EINVAL;
	hdr->wr.ud.remote_qpn = htole32(remote_qpn);
	hdr->wr.ud.remote_qkey = htole32(remote_qkey);
	hdr->wr.ud.av = to_pvr_ah(ah)->av;
	return 0;
}

/*
 * Writes the bind of mw to the range of info; the window's key becomes new_rkey. Returns
 * the errno of ibv_bind_mw(3). The device checks bounds and rights of the region, and
 * reports errors by a completion.
 */
int pvr_sqe_bind(struct pvr_sq_wqe *hdr, const struct ibv_mw *mw, uint32_t new_rkey,
		 const struct ibv_mw_bind_info *info);

/*
 * The same for IBV_WR_BIND_MW, which applies only to windows of type 2 and cannot unbind:
 * those are unbound by invalidation. ibv_bind_mw(3) binds windows of type 1.
 */
static inline int pvr_sqe_bind_type2(struct pvr_sq_wqe *hdr, const struct ibv_mw *mw,
				     uint32_t new_rkey, const struct ibv_mw_bind_info *info)
{
	if (!mw || mw->type != IBV_MW_TYPE_2 || !info->mr)
		return EINVAL;
	return pvr_sqe_bind(hdr, mw, new_rkey, info);
}

/* Scatter/gather entries or inline data follow the header. */
static inline void *pvr_sqe_data(struct pvr_sq_wqe *hdr)
{
	return hdr + 1;
}

/* pvr_wq_layout() has made the stride large enough for max_sge entries. */
static inline int pvr_sqe_sges(struct pvr_qp *qp, struct pvr_sq_wqe *hdr,
			       const struct ibv_sge *sges, size_t num)
{
	if (unlikely(num > qp->sq.max_sge))
		return EINVAL;
	hdr->num_sge = htole32(num);
	pvr_copy_sges(pvr_sqe_data(hdr), sges, num);
	return 0;
}

/* A call of memcpy() takes longer than the rest for the most common size. */
static inline void pvr_copy_inline(void *to, const void *from, size_t length)
{
	if (length == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (length)
		memcpy(to, from, length);
}

/* Position of the next inline byte in an element, and the bytes that still fit. */
struct pvr_inline {
	uint8_t *to;
	size_t room;
};

static inline struct pvr_inline pvr_inline_begin(struct pvr_qp *qp, struct pvr_sq_wqe *hdr)
{
	return (struct pvr_inline){ .to = pvr_sqe_data(hdr), .room = qp->cap.max_inline_data };
}

static inline int pvr_inline_add(struct pvr_inline *data, const void *from, size_t length)
{
	if (unlikely(length > data->room))
		return EINVAL;
	pvr_copy_inline(data->to, from, length);
	data->to += length;
	data->room -= length;
	return 0;
}

/* An empty message is the same with and without the flag. */
static inline void pvr_inline_end(const struct pvr_inline *data, struct pvr_sq_wqe *hdr)
{
	size_t length = data->to - (uint8_t *)pvr_sqe_data(hdr);

	hdr->total_len = htole32(length);
	if (length)
		hdr->send_flags |= htole32(PVR_SEND_INLINE);
}

#endif /* PVR_SQE_H */
