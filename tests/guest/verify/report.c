// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify.h"

#define MAX_REPORTS 20

static void print(const struct run *run, const char *format, va_list args)
{
	printf("verify: %s round %llu: ", run->phase, (unsigned long long)run->round);
	vprintf(format, args);
	putchar('\n');
}

void complain(struct run *run, const char *format, ...)
{
	va_list args;

	if (run->errors++ >= MAX_REPORTS)
		return;
	va_start(args, format);
	print(run, format, args);
	va_end(args);
}

void fail(struct run *run, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(run, format, args);
	va_end(args);
	exit(1);
}

const char *describe(const struct run *run, int index)
{
	static char text[96];
	const struct op *op = &run->plan.ops[index];

	snprintf(text, sizeof(text), "op %d (%s of %u bytes from end %d)", index,
		 kind_names[op->kind], op->length, op->from);
	return text;
}

static bool in_pieces(const struct pieces *pieces, uint32_t offset)
{
	for (int i = 0; i < pieces->num; i++)
		if (offset - pieces->list[i].offset < pieces->list[i].length)
			return true;
	return false;
}

/* The first wrong byte says most; the number of wrong ones says whether it is one or a page. */
void report_memory(struct run *run, const struct end *end)
{
	size_t first = 0, wrong = 0;
	const struct op *op;
	uint32_t slot;
	bool inside;

	for (size_t i = 0; i < end->size; i++) {
		if (end->memory[i] == end->expected[i])
			continue;
		if (!wrong++)
			first = i;
	}
	slot = first / shape_slot(&run->shape);
	op = &run->plan.ops[slot];
	inside = slot < (uint32_t)run->plan.num &&
		 in_pieces(op->from == end->side ? &op->local : &op->remote, first);
	complain(run,
		 "end %d: %zu bytes are wrong, the first at %zu %s of %s: 0x%02x, expected 0x%02x",
		 end->side, wrong, first - slot * shape_slot(&run->shape),
		 inside ? "in a buffer" : "outside the buffers",
		 slot < (uint32_t)run->plan.num ? describe(run, slot) : "an unused slot",
		 end->memory[first], end->expected[first]);
}
