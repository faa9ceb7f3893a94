/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests of fake guests. fg_put_*() fills a WQE and publishes it, fg_ring_*()
 * writes the doorbell, fg_post_*() does both, but for doorbells that PVR_EXT_DB_SUPPRESS
 * spares. Nothing is checked that a broken or
 * hostile guest might leave unchecked, but the ring's own capacity.
 */
#ifndef FG_WR_H
#define FG_WR_H

#include <rdma/vmw_pvrdma-abi.h>

#include "fg_qp.h"
#include "fg_srq.h"

struct fg_wr {
	uint64_t wr_id;
	enum pvrdma_wr_opcode opcode;
	uint32_t flags; /* PVR_SEND_* */
	const struct pvrdma_sge *sge;
	uint32_t num_sge;
	const void *data; /* with PVR_SEND_INLINE, instead of entries */
	uint32_t data_len;
	uint32_t imm; /* as it lies in memory */
	uint64_t remote_addr; /* WRITE, READ, atomics */
	uint32_t rkey;
	uint64_t compare_add, swap; /* atomics */
	const struct pvrdma_av *av; /* UD, GSI */
	uint32_t remote_qpn, remote_qkey;
	uint32_t srqn; /* XRC */
};

/* The address vector of @dgid, sent from this guest's GID @sgid_index. */
struct pvrdma_av fg_av(const struct fg_pd *pd, const uint8_t dgid[16], uint8_t sgid_index);

/* Free elements. */
uint32_t fg_sq_space(const struct fg_qp *qp);
uint32_t fg_rq_space(const struct fg_qp *qp);

/* The WQE at an index, for tests that write it themselves. */
struct pvrdma_sq_wqe_hdr *fg_sq_wqe(const struct fg_qp *qp, uint32_t index);
struct pvrdma_rq_wqe_hdr *fg_rq_wqe(const struct fg_qp *qp, uint32_t index);

/* false if the queue is full. No more entries or data than the queue has room for are copied. */
bool fg_put_send(struct fg_qp *qp, const struct fg_wr *wr);
bool fg_put_recv(struct fg_qp *qp, uint64_t wr_id, const struct pvrdma_sge *sge, uint32_t num_sge);
bool fg_put_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct pvrdma_sge *sge,
		     uint32_t num_sge);

/* The words of PVR_EXT_DB_SUPPRESS. */
struct pvr_db_suppress *fg_qp_db_suppress(const struct fg_qp *qp);
struct pvr_db_suppress *fg_srq_db_suppress(const struct fg_srq *srq);

void fg_ring_send(struct fg_qp *qp);
void fg_ring_recv(struct fg_qp *qp);
void fg_ring_srq(struct fg_srq *srq);

bool fg_post_send(struct fg_qp *qp, const struct fg_wr *wr);
bool fg_post_recv(struct fg_qp *qp, uint64_t wr_id, const struct pvrdma_sge *sge, uint32_t num_sge);
bool fg_post_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct pvrdma_sge *sge,
		      uint32_t num_sge);

#endif /* FG_WR_H */
