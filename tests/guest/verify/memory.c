// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The memory of an end, its regions, and what it must hold. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verify.h"

static struct ibv_mr *register_part(struct run *run, struct end *end, size_t from, size_t to)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	if (offered(run, OFFER_ATOMICS))
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return MUST_HAVE(ibv_reg_mr(run->node.pd, end->memory + from, to - from, access));
}

/* Regions that meet in the middle of a page, of memory that starts in the middle of one. */
void open_memory(struct run *run, struct end *end)
{
	struct rng rng = { .state = run->params.seed + end->side };
	uint32_t skew = run->shape.skew[end->side], slots = run->shape.depth;
	struct op background = { .key = rng_next(&rng) };

	end->size = shape_memory(&run->shape);
	end->mapped = end->size + skew;
	end->mapping = map_memory(end->mapped, 0);
	end->expected = MUST_HAVE(malloc(end->size));
	end->memory = (uint8_t *)end->mapping + skew;
	op_data(&background, 0, end->memory, end->size);
	memcpy(end->expected, end->memory, end->size);
	end->split = (slots + 1) / 2 * shape_slot(&run->shape);
	end->mrs[REGION_LOW] = register_part(run, end, 0, end->split);
	end->mrs[REGION_HIGH] = register_part(run, end, end->split % end->size, end->size);
	end->mrs[REGION_ALL] = register_part(run, end, 0, end->size);
}

void close_memory(struct end *end)
{
	for (int i = 0; i < REGION_NUM; i++)
		MUST(ibv_dereg_mr(end->mrs[i]));
	munmap(end->mapping, end->mapped);
	free(end->expected);
}

/* Buffers at odd addresses are named by the region of all, so that one request names several. */
enum region region_of(const struct end *end, uint32_t offset)
{
	if (offset % 2)
		return REGION_ALL;
	return offset >= end->split ? REGION_HIGH : REGION_LOW;
}

/* Writes an operation's data over pieces of an image of the memory, from byte head of them on. */
static void put_data(uint8_t *image, const struct op *op, const struct pieces *pieces,
		     uint32_t head)
{
	uint32_t done = 0;

	for (int i = 0; i < pieces->num && done < op->length; i++) {
		uint32_t skip = i ? 0 : head;
		uint32_t n = pieces->list[i].length - skip;

		n = n < op->length - done ? n : op->length - done;
		op_data(op, done, image + pieces->list[i].offset + skip, n);
		done += n;
	}
}

static void put_word(uint8_t *image, const struct pieces *pieces, uint64_t word)
{
	memcpy(image + pieces->list[0].offset, &word, sizeof(word));
}

static void prepare_atomic(struct end *end, const struct op *op)
{
	if (op->from == end->side) {
		put_word(end->expected, &op->local, op->before);
		return;
	}
	put_word(end->memory, &op->remote, op->before);
	put_word(end->expected, &op->remote, op_after(op));
}

void prepare_memory(struct run *run, struct end *end)
{
	for (int i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];
		bool mine = op->from == end->side;
		const struct pieces *pieces = mine ? &op->local : &op->remote;
		bool source = mine != (op->kind == KIND_READ);
		uint32_t head = !mine && run->shape.datagram ? GRH_BYTES : 0;

		if (op_is_atomic(op)) {
			prepare_atomic(end, op);
			continue;
		}
		put_data(end->expected, op, pieces, head);
		if (source)
			put_data(end->memory, op, pieces, head);
	}
}

void spoil_inlined(struct run *run, struct end *end)
{
	for (int i = 0; i < run->plan.num; i++) {
		struct op op = run->plan.ops[i];

		if (!op.inlined || op.from != end->side)
			continue;
		op.key = ~op.key;
		put_data(end->memory, &op, &op.local, 0);
		put_data(end->expected, &op, &op.local, 0);
	}
}

/* Unreliable WRITEs may be on their way when all completions are there. */
static bool becomes_expected(const struct run *run, const struct end *end)
{
	double limit = now() + (run->ends[end->side].qp->qp_type == IBV_QPT_UC ? 2 : 0);

	while (memcmp(end->memory, end->expected, end->size))
		if (now() >= limit)
			return false;
	return true;
}

void verify_memory(struct run *run, struct end *end)
{
	if (becomes_expected(run, end))
		return;
	report_memory(run, end);
	/* Once is enough. */
	memcpy(end->expected, end->memory, end->size);
}
