/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Regions that memory windows expose to the other end, and regions that requests register. */
#ifndef UNIT_RNDV_H
#define UNIT_RNDV_H

#include "common.h"

#define BOUND_FROM 5000u /* the part of the region that windows expose */
#define BOUND_LEN 9000u
#define BIND_ID 900

/* b exposes its region to a. */
struct expose {
	struct t_env *env;
	struct fg_end *a, *b;
	struct fg_mr region; /* all of b's buffer, with the right to bind */
	struct fg_mr mw;
	struct pvr_wqe_bind_mw bind; /* valid: part of the region, all rights */
};

void expose_init(struct expose *l, struct t_env *env, uint32_t flag);
struct pvrdma_sq_wqe_hdr *expose_put(struct fg_end *end, uint64_t wr_id, enum pvrdma_wr_opcode op,
				     uint32_t key);
struct pvrdma_sq_wqe_hdr *expose_put_bind(struct fg_end *end, uint64_t wr_id,
					  const struct pvr_wqe_bind_mw *bind);
void expose_run(struct expose *l, struct fg_end *end);
void expose_bind(struct expose *l);
void expose_reconnect(struct expose *l);
/* The request as it stands must fail; afterwards both are connected anew. */
void expose_bind_refused(struct expose *l);
void expose_invalidate(struct expose *l, struct fg_end *end, uint32_t key);
void expose_invalidated(struct expose *l);
void expose_access(struct expose *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		   uint32_t len);
/* a writes to [addr, addr + len) through the window, which is byte @at of the buffer. */
void expose_write_ok(struct expose *l, uint64_t addr, uint32_t at, uint32_t len);
void expose_all_ok(struct expose *l);
void expose_refused(struct expose *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		    uint32_t len);
/* The window's first byte cannot be reached; the pair is left in ERR. */
void expose_all_refused(struct expose *l);

#define FAST_IOVA 0x10000000ull

/* A region of @pages for FAST_REG_MR. Return: ERR of CREATE_MR. */
uint32_t fast_mr_create(const struct fg_pd *pd, uint32_t pages, struct fg_mr *mr);
/* FAST_REG_MR of all of @buf at FAST_IOVA with all access, not yet rung. */
struct pvrdma_sq_wqe_hdr *put_fast_reg(struct fg_end *end, uint64_t wr_id, const struct fg_buf *buf,
				       uint32_t rkey);

#endif /* UNIT_RNDV_H */
