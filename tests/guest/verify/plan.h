/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The operations of one round of pvr_verify: both ends compute the same plan from a seed, so that
 * each knows every byte its memory must hold afterwards.
 *
 * Each operation has a slot of memory at each end. A slot is cut into pieces, with bytes between
 * them that must stay unchanged.
 */
#ifndef PVR_TEST_PLAN_H
#define PVR_TEST_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MAX_OPS 32
#define PLAN_MAX_SGE 32
#define PLAN_MAX_GAP 63
#define PLAN_MAX_SLACK 64
#define PLAN_DECOY 64
#define GRH_BYTES 40

#define PLAN_PAGE 4096

enum kind {
	KIND_SEND,
	KIND_SEND_IMM,
	KIND_WRITE,
	KIND_WRITE_IMM,
	KIND_READ,
	KIND_FETCH_ADD,
	KIND_CMP_SWAP,
	KIND_NUM
};

/* Kinds as bits: what a type of QP has. */
#define KINDS_UD (1u << KIND_SEND | 1u << KIND_SEND_IMM)
#define KINDS_UC (KINDS_UD | 1u << KIND_WRITE | 1u << KIND_WRITE_IMM)
#define KINDS_RC (KINDS_UC | 1u << KIND_READ)
#define KINDS_ATOMIC (1u << KIND_FETCH_ADD | 1u << KIND_CMP_SWAP)

extern const char *const kind_names[KIND_NUM];

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* A number of 0 .. bound - 1. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

struct piece {
	uint32_t offset; /* in the end's memory */
	uint32_t length;
};

struct pieces {
	int num;
	struct piece list[PLAN_MAX_SGE];
};

struct op {
	enum kind kind;
	int from; /* the end that posts it, 0 or 1 */
	uint32_t length;
	uint32_t imm;
	uint64_t key; /* of the data */
	bool signaled, fenced, solicited;
	bool chained; /* posted in one call with the one before */
	bool inlined; /* its memory is overwritten once it is posted */
	uint64_t before, operand, swap; /* atomics; the operand is to add or to compare with */
	struct pieces local; /* at the end that posts: data to send, or room for what is read */
	struct pieces remote; /* at the other: one piece for WRITE, READ; receive SGEs for SEND */
	struct piece decoy; /* at the other: receive SGE that WRITE_IMM must not write to */
};

/* Parameters of all rounds of a phase. */
struct shape {
	uint64_t seed;
	uint32_t bytes_max;
	uint32_t depth; /* operations of a round: 1 .. depth */
	int max_sge;
	int max_sge_read;
	uint32_t kinds; /* 1 << enum kind */
	uint32_t inline_max;
	uint32_t skew[2]; /* of an end's memory in its first page */
	bool edges; /* buffers begin around the start of a page, and end there */
	bool datagram; /* received behind GRH_BYTES */
	bool one_way; /* only from end 0 */
};

struct plan {
	int num;
	struct op ops[PLAN_MAX_OPS];
};

/* Bytes of one slot, and of the memory of an end. */
size_t shape_slot(const struct shape *shape);
size_t shape_memory(const struct shape *shape);

void plan_round(struct plan *plan, const struct shape *shape, uint64_t round, uint32_t ops_left);
bool op_has_imm(const struct op *op);
bool op_is_atomic(const struct op *op);
/* Return: the value that an atomic leaves at the other end. */
uint64_t op_after(const struct op *op);
/* Does it take a receive at the other end? */
bool op_consumes_receive(const struct op *op);
/* The data of an operation, all of it or from byte "from" on. */
void op_data(const struct op *op, uint32_t from, uint8_t *to, uint32_t length);

#endif
