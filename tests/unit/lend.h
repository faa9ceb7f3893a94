/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A region of one end that memory windows lend to the other. */
#ifndef UNIT_LEND_H
#define UNIT_LEND_H

#include "common.h"

#define BOUND_FROM 5000u /* the part of the region that windows lend */
#define BOUND_LEN 9000u
#define BIND_ID 900

/* b lends its region to a. */
struct lend {
	struct t_env *env;
	struct fg_end *a, *b;
	struct fg_mr region; /* all of b's buffer, with the right to bind */
	struct fg_mr mw;
	struct pvr_wqe_bind_mw bind; /* valid: part of the region, all rights */
};

void lend_init(struct lend *l, struct t_env *env, uint32_t flag);
struct pvrdma_sq_wqe_hdr *lend_put(struct fg_end *end, uint64_t wr_id, enum pvrdma_wr_opcode op,
				   uint32_t key);
struct pvrdma_sq_wqe_hdr *lend_put_bind(struct fg_end *end, uint64_t wr_id,
					const struct pvr_wqe_bind_mw *bind);
void lend_run(struct lend *l, struct fg_end *end);
void lend_bind(struct lend *l);
void lend_reconnect(struct lend *l);
/* The request as it stands must fail; afterwards both are connected anew. */
void lend_bind_refused(struct lend *l);
void lend_invalidate(struct lend *l, struct fg_end *end, uint32_t key);
void lend_invalidated(struct lend *l);
void lend_access(struct lend *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		 uint32_t len);
/* a writes to [addr, addr + len) through the window, which is byte @at of the buffer. */
void lend_write_ok(struct lend *l, uint64_t addr, uint32_t at, uint32_t len);
void lend_all_ok(struct lend *l);
void lend_refused(struct lend *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		  uint32_t len);
/* The window's first byte cannot be reached; the pair is left in ERR. */
void lend_all_refused(struct lend *l);

#endif /* UNIT_LEND_H */
