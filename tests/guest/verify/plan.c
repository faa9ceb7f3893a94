// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <string.h>

#include "plan.h"

const char *const kind_names[KIND_NUM] = {
	[KIND_SEND] = "SEND",
	[KIND_SEND_IMM] = "SEND_WITH_IMM",
	[KIND_WRITE] = "RDMA_WRITE",
	[KIND_WRITE_IMM] = "RDMA_WRITE_WITH_IMM",
	[KIND_READ] = "RDMA_READ",
	[KIND_FETCH_ADD] = "FETCH_AND_ADD",
	[KIND_CMP_SWAP] = "COMPARE_AND_SWAP",
};

/* splitmix64's finalizer: a good word for each number. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t rng_next(struct rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ull;
	return mix(rng->state);
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	return rng_next(rng) % bound;
}

bool op_has_imm(const struct op *op)
{
	return op->kind == KIND_SEND_IMM || op->kind == KIND_WRITE_IMM;
}

bool op_consumes_receive(const struct op *op)
{
	return op->kind != KIND_WRITE && op->kind != KIND_READ && !op_is_atomic(op);
}

bool op_is_atomic(const struct op *op)
{
	return 1u << op->kind & KINDS_ATOMIC;
}

uint64_t op_after(const struct op *op)
{
	if (op->kind == KIND_FETCH_ADD)
		return op->before + op->operand;
	return op->operand == op->before ? op->swap : op->before;
}

void op_data(const struct op *op, uint32_t from, uint8_t *to, uint32_t length)
{
	while (length) {
		uint64_t word = mix(op->key + from / 8);
		uint32_t skip = from % 8, n = 8 - skip < length ? 8 - skip : length;

		memcpy(to, (const uint8_t *)&word + skip, n);
		from += n;
		to += n;
		length -= n;
	}
}

size_t shape_slot(const struct shape *shape)
{
	return (size_t)shape->bytes_max + GRH_BYTES + PLAN_MAX_SLACK +
	       (PLAN_MAX_SGE + 2) * (PLAN_MAX_GAP + 1) + PLAN_DECOY +
	       (shape->edges ? 2 * PLAN_PAGE : 0);
}

size_t shape_memory(const struct shape *shape)
{
	return shape_slot(shape) * shape->depth;
}

/* Many small ones, many around multiples of packets and pages, the rest up to the limit. */
static uint32_t random_length(struct rng *rng, uint32_t max)
{
	uint64_t length, unit;

	switch (rng_below(rng, 8)) {
	case 0:
		length = rng_below(rng, 3);
		break;
	case 1:
	case 2:
		length = rng_below(rng, 65);
		break;
	case 3:
	case 4:
		unit = rng_below(rng, 2) ? 1024 : 4096;
		length = unit * (1 + rng_below(rng, max / unit + 1)) + rng_below(rng, 3) - 1;
		break;
	default:
		length = rng_below(rng, (uint64_t)1 << rng_below(rng, 32));
	}
	return length <= max ? length : rng_below(rng, (uint64_t)max + 1);
}

/* Whole pages and a few bytes less or more. */
static uint32_t edge_length(struct rng *rng, uint32_t max)
{
	uint64_t pages = rng_below(rng, max / PLAN_PAGE < 4 ? max / PLAN_PAGE + 1 : 4);
	uint64_t length = PLAN_PAGE * pages + rng_below(rng, 65);

	length -= length > 32 ? 32 : 0;
	return length <= max ? length : max;
}

static uint32_t gap(struct rng *rng)
{
	return 1 + rng_below(rng, PLAN_MAX_GAP);
}

/* Cuts length bytes into up to max pieces of one byte at least; head more go to the first. */
static void cut(struct pieces *pieces, struct rng *rng, uint32_t at, uint32_t length, int max,
		uint32_t head)
{
	uint32_t most = length < (uint32_t)max ? length : (uint32_t)max;
	uint32_t num = !length ? 0 : rng_below(rng, 4) ? 1 + rng_below(rng, most) : most;
	uint32_t n;

	if (!num && head)
		num = 1;
	for (pieces->num = 0; (uint32_t)pieces->num < num; pieces->num++) {
		uint32_t others = num - pieces->num - 1;

		n = others ? 1 + rng_below(rng, length - others) : length;
		length -= n;
		n += pieces->num ? 0 : head;
		at += gap(rng);
		pieces->list[pieces->num] = (struct piece){ .offset = at, .length = n };
		at += n;
	}
}

/* The word of an atomic lies at a multiple of its size. */
static void plan_atomic(struct op *op, struct rng *rng, const struct shape *shape, uint32_t slot)
{
	uint32_t at = slot * shape_slot(shape) + gap(rng) + 8;

	at -= (shape->skew[!op->from] + at) % 8;
	op->length = 8;
	op->before = rng_next(rng);
	op->swap = rng_next(rng);
	op->operand = op->kind == KIND_CMP_SWAP && rng_below(rng, 2) ? op->before : rng_next(rng);
	op->remote = (struct pieces){ .num = 1, .list = { { .offset = at, .length = 8 } } };
	cut(&op->local, rng, slot * shape_slot(shape), 8, 1, 0);
}

/* Where a buffer's gap begins: its first byte is less than 32 bytes from the start of a page. */
static uint32_t slot_start(const struct shape *shape, uint32_t slot, int side)
{
	uint32_t at = slot * shape_slot(shape);

	if (!shape->edges)
		return at;
	return at + 2 * PLAN_PAGE - 32 - (shape->skew[side] + at) % PLAN_PAGE;
}

static enum kind plan_kind(struct rng *rng, uint32_t kinds)
{
	uint32_t nth = rng_below(rng, __builtin_popcount(kinds));

	while (nth--)
		kinds &= kinds - 1;
	return __builtin_ctz(kinds);
}

static void plan_remote(struct op *op, struct rng *rng, const struct shape *shape, uint32_t slot)
{
	uint32_t at = slot_start(shape, slot, !op->from);
	uint32_t slack = rng_below(rng, 2) ? rng_below(rng, PLAN_MAX_SLACK + 1) : 0;

	if (op->kind == KIND_SEND || op->kind == KIND_SEND_IMM) {
		cut(&op->remote, rng, at, op->length + slack, shape->max_sge,
		    shape->datagram ? GRH_BYTES : 0);
		return;
	}
	cut(&op->remote, rng, at, op->length, 1, 0);
	op->decoy = (struct piece){ .offset = (slot + 1) * shape_slot(shape) - PLAN_DECOY,
				    .length = 1 + rng_below(rng, PLAN_DECOY) };
}

static void plan_op(struct op *op, struct rng *rng, const struct shape *shape, uint32_t slot)
{
	op->kind = plan_kind(rng, shape->kinds);
	op->from = shape->one_way ? 0 : rng_below(rng, 2);
	op->length = shape->edges ? edge_length(rng, shape->bytes_max)
				  : random_length(rng, shape->bytes_max);
	op->imm = rng_next(rng);
	op->key = rng_next(rng);
	op->signaled = rng_below(rng, 4);
	op->fenced = (shape->kinds & 1u << KIND_READ) && !rng_below(rng, 8);
	op->solicited = op_consumes_receive(op) && !rng_below(rng, 4);
	op->chained = rng_below(rng, 2);
	if (op_is_atomic(op)) {
		plan_atomic(op, rng, shape, slot);
		return;
	}
	op->inlined = op->kind != KIND_READ && shape->inline_max &&
		      op->length <= shape->inline_max && rng_below(rng, 2);
	cut(&op->local, rng, slot_start(shape, slot, op->from), op->length,
	    op->kind == KIND_READ ? shape->max_sge_read : shape->max_sge, 0);
	plan_remote(op, rng, shape, slot);
}

/* The last operation of each end must complete after all others. */
static void signal_last(struct plan *plan)
{
	bool seen[2] = { false, false };

	for (int i = plan->num - 1; i >= 0; i--) {
		struct op *op = &plan->ops[i];

		if (!seen[op->from])
			op->signaled = true;
		seen[op->from] = true;
	}
}

void plan_round(struct plan *plan, const struct shape *shape, uint64_t round, uint32_t ops_left)
{
	struct rng rng = { .state = mix(shape->seed) + mix(round + 1) };
	uint32_t most = shape->depth < ops_left ? shape->depth : ops_left;

	memset(plan, 0, sizeof(*plan));
	plan->num = 1 + rng_below(&rng, most);
	for (int i = 0; i < plan->num; i++)
		plan_op(&plan->ops[i], &rng, shape, i);
	signal_last(plan);
}
