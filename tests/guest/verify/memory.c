/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The memory of an end, its regions, and what it must hold. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "oob.h"
#include "verify.h"

static struct ibv_mr *register_part(struct run *run, struct end *end, size_t from, size_t to)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr(run->node.pd, end->memory + from, to - from,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("ibv_reg_mr of %zu bytes:", to - from);
	return mr;
}

/* Two regions that meet in the middle of a page, of memory that starts in the middle of one. */
void open_memory(struct run *run, struct end *end)
{
	struct rng rng = { .state = run->params.seed + end->side };
	uint32_t skew = rng_below(&rng, 4096), slots = run->shape.depth;
	struct op background = { .key = rng_next(&rng) };

	end->size = shape_memory(&run->shape);
	end->mapped = end->size + skew;
	end->mapping = mmap(NULL, end->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	end->expected = malloc(end->size);
	if (end->mapping == MAP_FAILED || !end->expected)
		die("no memory for 2 x %zu bytes", end->size);
	end->memory = (uint8_t *)end->mapping + skew;
	op_data(&background, 0, end->memory, end->size);
	memcpy(end->expected, end->memory, end->size);
	end->split = (slots + 1) / 2 * shape_slot(&run->shape);
	end->mrs[0] = register_part(run, end, 0, end->split);
	if (end->split < end->size)
		end->mrs[1] = register_part(run, end, end->split, end->size);
}

void close_memory(struct end *end)
{
	int i, err;

	for (i = 0; i < 2; i++) {
		err = end->mrs[i] ? ibv_dereg_mr(end->mrs[i]) : 0;
		if (err)
			die("ibv_dereg_mr: %s", strerror(err));
	}
	munmap(end->mapping, end->mapped);
	free(end->expected);
}

int region_of(const struct end *end, uint32_t offset)
{
	return offset >= end->split;
}

/* Writes an operation's data over pieces of an image of the memory, from byte head of them on. */
static void put_data(uint8_t *image, const struct op *op, const struct pieces *pieces,
		     uint32_t head)
{
	uint32_t done = 0;
	int i;

	for (i = 0; i < pieces->num && done < op->length; i++) {
		uint32_t skip = i ? 0 : head;
		uint32_t n = pieces->list[i].length - skip;

		n = n < op->length - done ? n : op->length - done;
		op_data(op, done, image + pieces->list[i].offset + skip, n);
		done += n;
	}
}

void prepare_memory(struct run *run, struct end *end)
{
	int i;

	for (i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];
		bool mine = op->from == end->side;
		const struct pieces *pieces = mine ? &op->local : &op->remote;
		bool source = mine != (op->kind == KIND_READ);
		uint32_t head = !mine && run->shape.datagram ? GRH_BYTES : 0;

		put_data(end->expected, op, pieces, head);
		if (source)
			put_data(end->memory, op, pieces, head);
	}
}

void verify_memory(struct run *run, struct end *end)
{
	if (!memcmp(end->memory, end->expected, end->size))
		return;
	report_memory(run, end);
	/* Once is enough. */
	memcpy(end->expected, end->memory, end->size);
}
