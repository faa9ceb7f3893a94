/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The trace of a run: a line for each event, with its virtual time. Two runs of one seed have the
 * same trace, which its hash shows.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_TRACE_LINES 60 /* that a report shows */
#define SIM_TRACE_LEN 160

struct sim_trace {
	uint64_t hash, lines;
	bool prints; /* each line, to stdout */
	const uint64_t *now; /* ns */
	char last[SIM_TRACE_LINES][SIM_TRACE_LEN];
};

void sim_trace_init(struct sim_trace *trace, const uint64_t *now, bool prints);
void sim_trace(struct sim_trace *trace, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The last lines, to stdout. */
void sim_trace_report(const struct sim_trace *trace);

#endif /* SIM_TRACE_H */
