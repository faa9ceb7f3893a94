/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One RC message with scatter/gather on both sides, every byte of both buffers compared. */
#ifndef UNIT_TRANSFER_H
#define UNIT_TRANSFER_H

#include "ends.h"

#define T_BIG_PAGES 320 /* of each end's buffer with t_setup_rc_big() */

struct t_transfer {
	enum pvrdma_wr_opcode op; /* SEND*, RDMA_WRITE*, RDMA_READ */
	uint32_t len;
	uint32_t offset, remote_offset; /* into the two ends' buffers */
	uint32_t sges; /* of the work request; 0: 1 */
	uint32_t recv_sges; /* of the receive request, SEND only; 0: 1 */
};

/* Two guests with connected RC ends, 32 entries per request, and large buffers. */
int t_setup_rc_big(void **state);

/*
 * Fills both buffers, moves the message from env->a to env->b (READ: the other way),
 * and compares all of both buffers, so also what must not have changed. The pieces of a
 * list lie in reverse order with gaps between them.
 */
void t_transfer(struct t_env *env, const struct t_transfer *transfer);

/* The transfer at many lengths, up to nearly all of the buffer. */
void t_transfer_lengths(struct t_env *env, enum pvrdma_wr_opcode op);
/* The transfer with 1 to 32 entries. */
void t_transfer_lists(struct t_env *env, enum pvrdma_wr_opcode op);

/* Rows of TEST_CASES(): these two, and many offsets around page boundaries. */
extern const struct t_transfer_shape {
	const char *label;
	void (*run)(struct t_env *env, enum pvrdma_wr_opcode op);
} t_transfer_shapes[3];

#endif /* UNIT_TRANSFER_H */
