// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The trace of a run. */
#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sim_trace_init(struct sim_trace *trace, const uint64_t *now, bool prints)
{
	memset(trace, 0, sizeof(*trace));
	trace->hash = 0xcbf29ce484222325ull;
	trace->now = now;
	trace->prints = prints;
}

void sim_trace(struct sim_trace *trace, const char *fmt, ...)
{
	char *line = trace->last[trace->lines++ % SIM_TRACE_LINES];
	va_list args;
	int n;

	n = snprintf(line, SIM_TRACE_LEN, "%14" PRIu64 " ", *trace->now);
	va_start(args, fmt);
	vsnprintf(line + n, (size_t)(SIM_TRACE_LEN - n), fmt, args);
	va_end(args);
	/* FNV-1a. */
	for (const char *c = line; *c; c++)
		trace->hash = (trace->hash ^ (unsigned char)*c) * 0x100000001b3ull;
	if (trace->prints)
		puts(line);
}

void sim_trace_report(const struct sim_trace *trace)
{
	uint64_t first = trace->lines < SIM_TRACE_LINES ? 0 : trace->lines - SIM_TRACE_LINES;

	for (uint64_t i = first; i < trace->lines; i++)
		puts(trace->last[i % SIM_TRACE_LINES]);
}
